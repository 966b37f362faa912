"""What a person may choose about a film that stays missing, read from states that runs came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.decide.plan import NodeStatus
from codeai_lab.decide.repair import WayOn
from codeai_lab.decide.trajectory import Call, TrajectoryState
from codeai_lab.decide.ways import missing_film, offered_ways, other_path, words_of_other_path
from codeai_lab.errors import NotPermittedError, RefusedRequestError
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.run.planner import ScriptedPlanner
from codeai_lab.store.memory import MemoryLedger

MISSING = "memory-film"


class NeverRight(ScriptedPlanner):
    """A planner whose every revision is refused, each in another way."""

    def revise(self, state: TrajectoryState, failed: Call, repair: int) -> Mapping[str, Any]:
        return {"question": f"revision {repair}"}


def asking(*, asks: bool = True) -> Story:
    """A story in which the memory search is asked wrongly, and a person is asked about it."""
    limits = replace(STORY.limits, asks=asks)
    return replace(STORY, fails=(), limits=limits).seeking(MISSING, query="")


def missing(told: Story | None = None, ledger: MemoryLedger | None = None) -> Play:
    """Run until the film is missing."""
    play = Play(told or asking(), "resume", ledger or MemoryLedger(), planner=NeverRight())
    assert play.harness.run(play.name) == "paused"
    return play


def kinds(play: Play) -> list[str]:
    return [event.kind for event in play.events]


def test_a_missing_film_pauses_with_three_ways_and_no_policy() -> None:
    """After three failed repairs a person is asked; nothing is open of the three policies."""
    play = missing()
    state = play.harness.state(play.name)
    assert missing_film(state) == MISSING
    assert offered_ways(state) == (WayOn.OTHER_ROUTE, WayOn.ASK, WayOn.REPORT_MISSING)
    assert play.harness.choices(play.name) == ()
    assert state.working.status == {
        "ai-film": NodeStatus.VERIFIED, MISSING: NodeStatus.UNRESOLVED, "compare": NodeStatus.OPEN,
    }  # fmt: skip


def test_nobody_is_asked_unless_the_story_says_so() -> None:
    """By default the trajectory ends, and its answer names what is missing (WY1)."""
    play = Play(asking(asks=False), "resume", MemoryLedger(), planner=NeverRight())
    assert play.harness.run(play.name) == "completed"
    assert play.events[-1].payload["missing"] == [MISSING, "compare"]
    assert offered_ways(play.harness.state(play.name)) == ()


def test_the_other_route_is_a_recorded_fallback_with_its_error() -> None:
    """The choice and the fallback are one append; the film is then found by the other search."""
    play = missing()
    play.choose_way("other_route")
    chosen, used = play.events[-2:]
    assert (chosen.kind, used.kind) == ("way.chosen", "fallback.used")
    assert used.payload["original_error"]["class"] == "input"
    assert (used.payload["old"]["tool"], used.payload["new"]["tool"]) == ("vector_search", "lexical_search")
    assert used.payload["acceptance_threshold"]["new"]["method"] == "lexical_search"
    assert play.harness.run(play.name) == "completed"
    completed = play.events[-1].payload
    assert (completed["status"], completed["completion"]) == ("complete", "recovered")


def test_the_other_route_is_offered_once() -> None:
    """Where it leads nowhere either, two ways are left, and each branch is judged by its own path (WY2)."""
    play = missing(asking().seeking(MISSING, rewritten="of the"))
    play.choose_way("other_route")
    assert play.harness.run(play.name) == "paused"
    state = play.harness.state(play.name)
    assert other_path(state, MISSING) is None
    assert offered_ways(state) == (WayOn.ASK, WayOn.REPORT_MISSING)
    with pytest.raises(RefusedRequestError, match="not open here"):
        play.choose_way("other_route")


def test_a_question_that_is_answered_opens_the_branch_under_the_readers_words() -> None:
    """The answer is in the record, and the search is made with it, by the same path."""
    words = "a person whose memories are erased after a relationship"
    play = missing(replace(asking(), answers={MISSING: words}))
    play.choose_way("ask")
    assert play.events[-1].payload == {"node": MISSING, "way": "ask", "query": words}
    assert play.harness.run(play.name) == "completed"
    assert "fallback.used" not in kinds(play)
    searched = [e.payload for e in play.events if e.kind == "call.started" and e.payload["node"] == MISSING]
    assert searched[4]["arguments"] == {"query": words}
    assert play.events[-1].payload["recommended_film"] == "eternal-sunshine-of-the-spotless-mind"


def test_a_question_without_an_answer_goes_on_waiting() -> None:
    """It is on record, it is not put twice, and the other ways stay open (WY2)."""
    play = missing()
    play.choose_way("ask")
    assert play.harness.run(play.name) == "paused"
    assert offered_ways(play.harness.state(play.name)) == (WayOn.OTHER_ROUTE, WayOn.REPORT_MISSING)
    play.choose_way("report_missing")
    assert play.harness.run(play.name) == "completed"
    assert play.events[-1].payload["recommendation"] == f"none; unresolved: {MISSING}, compare"


def test_a_choice_begins_the_bound_anew_and_keeps_what_is_verified() -> None:
    """After an answer that is no better there are three repairs again, and Ex Machina was read once (WY3)."""
    play = missing(replace(asking(), answers={MISSING: "   "}))
    play.choose_way("ask")
    assert play.harness.run(play.name) == "paused"
    assert kinds(play).count("query.repaired") == 6
    assert kinds(play).count("node.unresolved") == 2
    nodes = [event.payload["node"] for event in play.events if event.kind == "call.started"]
    assert nodes.count("ai-film") == 3


def test_the_choice_may_be_made_in_another_process() -> None:
    """What is open is read from the record."""
    ledger = MemoryLedger()
    missing(ledger=ledger)
    later = Play(asking(), "resume", ledger, process="later")
    assert later.to_the_failure() == ()
    later.choose_way("other_route")
    assert later.harness.run(later.name) == "completed"


def test_only_the_performer_of_the_request_chooses() -> None:
    """Somebody else is refused before anything is recorded."""
    ledger = MemoryLedger()
    play = missing(ledger=ledger)
    before = play.events
    other = replace(asking(), request=replace(STORY.request, performer="somebody else"))
    with pytest.raises(NotPermittedError):
        Play(other, "resume", ledger, process="other").harness.choose_way(play.name, "report_missing")
    assert play.events == before


def test_words_of_the_other_path_name_the_newest_error_of_the_branch() -> None:
    """Where no call of the branch failed, there is no error to name."""
    play = missing()
    state = play.harness.state(play.name)
    detour = other_path(state, MISSING)
    assert detour is not None
    newest = state.working.failures[-1]
    assert words_of_other_path(state, detour)["original_error"] == newest.error
    clean = replace(state, working=replace(state.working, failures=()))
    assert words_of_other_path(clean, detour)["original_error"] is None
