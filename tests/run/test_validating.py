"""What is made of an answer: contradictions, thresholds, and only then a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.lessons.film_play import Fails, Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.run.harness import TURN
from codeai_lab.run.planner import ScriptedPlanner
from codeai_lab.run.trajectory import Stage
from codeai_lab.run.validating import commit, threshold_of_the_plan, validating
from codeai_lab.store.memory import MemoryLedger

CLEAN = replace(STORY, fails=())
NAIVE: tuple[Stage, ...] = (*TURN[:4], validating(threshold_of_the_plan), commit)


def said(events: tuple[Event, ...], kind: str) -> list[Mapping[str, Any]]:
    return [event.payload for event in events if event.kind == kind]


def run(story: Story, planner: ScriptedPlanner | None = None) -> tuple[Event, ...]:
    play = Play(story, "resume", MemoryLedger(), planner=planner)
    play.harness.run(play.name)
    return play.events


def test_a_contradiction_reopens_discovery_and_commits_nothing() -> None:
    """A record whose plot is another film's excludes the candidate; the next one is looked up instead."""
    events = run(replace(STORY, fails=(Fails(tool="get_film", nth=2, kind="contradiction"),)))
    kinds = [event.kind for event in events]
    [reopened] = said(events, "discovery.reopened")
    assert reopened == {
        "node": "memory-film", "film_id": "eternal-sunshine-of-the-spotless-mind", "reason": "contradiction",
    }  # fmt: skip
    place = kinds.index("discovery.reopened")
    assert kinds[place - 1 : place + 3] == [
        "validation.decided", "discovery.reopened", "call.started", "call.succeeded",
    ]  # fmt: skip
    refused = events[place - 1].payload
    assert (refused["accepted"], refused["reason"], refused["field"]) == (False, "contradiction", "summary")
    assert events[place + 1].payload["tool"] == "get_film"
    [completed] = said(events, "trajectory.completed")
    assert (completed["status"], completed["completion"]) == ("complete", "retried")
    assert "eternal-sunshine-of-the-spotless-mind" not in completed["scores"]


def test_without_another_candidate_the_node_stays_unresolved() -> None:
    """A title that was asked for by name has one candidate; when its record contradicts it, none is left."""
    events = run(replace(STORY, fails=(Fails(tool="get_film", nth=1, kind="contradiction"),)))
    assert said(events, "node.unresolved")[0]["node"] == "ai-film"
    assert said(events, "trajectory.completed")[0]["missing"] == ["ai-film", "compare"]
    assert all("ai-film" not in one["sources"] for one in said(events, "checkpoint.committed"))


def test_a_fallback_under_the_old_threshold_is_refused_by_the_field() -> None:
    """A harness that keeps the plan's threshold commits no fallback, and the record names the field."""
    play = Play(STORY, "fallback", MemoryLedger(), turn=NAIVE)
    play.to_the_failure()
    play.recover()
    decided = [one for one in said(play.events, "validation.decided") if one["node"] == "memory-film"]
    assert [(one["accepted"], one["field"]) for one in decided] == [(False, "acceptance_threshold")]
    assert decided[0]["acceptance"]["method"] == "vector_search"
    assert said(play.events, "node.unresolved")[0]["node"] == "memory-film"
    assert said(play.events, "checkpoint.committed")[-1]["version"] == 2


def test_the_same_harness_accepts_what_came_by_the_planned_path() -> None:
    """The old threshold is right for the old path."""
    play = Play(STORY, "resume", MemoryLedger(), turn=NAIVE)
    play.to_the_failure()
    assert play.recover() == "completed"
    assert said(play.events, "trajectory.completed")[0]["status"] == "complete"


def test_a_fallback_is_committed_under_its_own_threshold() -> None:
    """The accepting decision, the fallback and the checkpoint name the same path."""
    play = Play(STORY, "fallback", MemoryLedger())
    play.to_the_failure()
    play.recover()
    [used] = said(play.events, "fallback.used")
    assert used["original_error"]["code"] == "timeout"
    assert used["rule"] == "vector_search-failed-use-lexical_search"
    assert used["old"]["tool"] == "vector_search"
    assert used["new"]["arguments"] == {"query": "erased memories former relationship"}
    thresholds = used["acceptance_threshold"]
    assert thresholds["old"] != thresholds["new"]
    decided = [one for one in said(play.events, "validation.decided") if one["node"] == "memory-film"]
    assert decided[0]["acceptance"] == thresholds["new"]
    source = said(play.events, "checkpoint.committed")[-1]["sources"]["memory-film"]
    assert (source["method"], source["source_id"]) == (
        "lexical_search", "film:eternal-sunshine-of-the-spotless-mind",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "answer", "field", "node"),
    [
        ("plan", {"nodes": []}, "plan", "plan"),
        ("plan", {"nodes": [{"node": "x"}]}, "plan", "plan"),
        ("plan", "a plan", "plan", "plan"),
        ("quote", {"passages": ["film:heat#1"]}, "passages", "ai-film"),
        ("compare", {"text": "Both are fine.", "recommended": "ex-machina"}, "recommended", "compare"),
    ],
)
def test_what_the_model_makes_up_is_refused(tool: str, answer: Any, field: str, node: str) -> None:
    """A plan that is none, a quote that is nowhere, a recommendation that the evidence denies."""

    class MakesUp(ScriptedPlanner):
        def call(self, asked: str, arguments: Mapping[str, Any]) -> Any:
            return answer if asked == tool else super().call(asked, arguments)

    events = run(CLEAN, MakesUp())
    refused = [one for one in said(events, "validation.decided") if not one["accepted"]]
    assert (refused[0]["node"], refused[0]["field"]) == (node, field)
    assert node in said(events, "trajectory.completed")[0]["missing"]


def test_every_checkpoint_follows_an_accepting_decision() -> None:
    """But for v1, the event before a checkpoint is the decision that it rests on."""
    for policy in ("restart", "resume", "fallback"):
        play = Play(STORY, policy, MemoryLedger())
        play.to_the_failure()
        play.recover()
        committed = [place for place, e in enumerate(play.events) if e.kind == "checkpoint.committed"][1:]
        for place in committed:
            before = play.events[place - 1]
            assert before.kind == "validation.decided"
            assert before.payload["accepted"]
            held = play.events[place].payload["validations"][before.payload["node"]]
            assert held == {"accepted": True, "seq": before.seq}


def test_the_recommendation_is_computed_from_the_evidence() -> None:
    """Another criterion over the same films recommends another film."""
    criterion = replace(STORY.request.criterion, name="robots", terms=("robot", "intelligence"))
    events = run(replace(CLEAN, request=replace(STORY.request, criterion=criterion)))
    [completed] = said(events, "trajectory.completed")
    assert completed["scores"] == {"ex-machina": 2, "eternal-sunshine-of-the-spotless-mind": 0}
    assert completed["recommended_film"] == "ex-machina"
    assert completed["intended_write"] == {"idempotency_key": "request-42/add-ex-machina"}
