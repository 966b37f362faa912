"""What the events of a trajectory come to, and what is done next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.checkpoints import newest_valid_checkpoint
from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.moves import Act, next_move
from codeai_lab.decide.plan import Role
from codeai_lab.lessons.film_play import Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger


def recorded() -> tuple[Event, ...]:
    run = Play(STORY, "resume", MemoryLedger())
    run.to_the_failure()
    run.recover()
    return run.events


EVENTS = recorded()
FAILED = next(place for place, event in enumerate(EVENTS) if event.kind == "call.failed") + 1


def test_a_history_begins_with_its_start() -> None:
    """Other events are no trajectory."""
    for events in ((), EVENTS[1:]):
        with pytest.raises(ValueError, match=r"begins with trajectory\.started"):
            project_trajectory(events)


def test_the_next_move_follows_from_the_events_alone() -> None:
    """Each prefix of the history calls for what the record has next."""
    acts = [next_move(project_trajectory(EVENTS[:until])).act for until in range(2, len(EVENTS) + 1)]
    for act, event in zip(acts, EVENTS[2:], strict=False):
        expected = {
            "call.started": Act.CALL,
            "validation.decided": Act.VALIDATE,
            "checkpoint.committed": Act.COMMIT,
            "trajectory.completed": Act.COMPLETE,
            "recovery.started": Act.PAUSE,
        }.get(event.kind)
        assert expected is None or act is expected
    assert acts[-1] is Act.OVER


def test_a_failed_call_changes_no_conclusion() -> None:
    """After the timeout nodes and evidence are as before; the budget and the failures are not."""
    before, after = project_trajectory(EVENTS[: FAILED - 1]), project_trajectory(EVENTS[:FAILED])
    assert before.working.status == after.working.status
    assert before.evidence == after.evidence
    assert before.version == after.version == 2
    assert [one.call_id for one in after.working.failures] == ["call-5"]
    assert after.failure is not None
    assert after.failure.proposal.tool == "vector_search"


def test_a_started_call_is_spent_before_it_is_answered() -> None:
    """A call counts from its start, so that nobody spends it twice unseen."""
    for until in range(2, len(EVENTS) + 1):
        started = sum(event.kind == "call.started" for event in EVENTS[:until])
        assert project_trajectory(EVENTS[:until]).working.budget.spent == started


def test_an_answer_on_record_is_not_asked_for_again() -> None:
    """After the search of a branch its record is next, whoever reads the events."""
    place = next(n for n, e in enumerate(EVENTS) if e.payload.get("role") == Role.FETCH)
    state = project_trajectory(EVENTS[:place])
    move = next_move(state)
    assert move.proposal is not None
    assert move.proposal.role is Role.FETCH
    assert state.call("ai-film", Role.SEARCH) is not None


def test_the_state_does_not_depend_on_which_checkpoint_it_rests_on() -> None:
    """With v2 refused the older one is loaded, and what came after it comes to the same verified work."""
    broken = [
        replace(e, payload={**e.payload, "schema": 9}) if e.payload.get("version") == 2 else e
        for e in EVENTS[: FAILED - 2]
    ]
    assert [refused.code for refused in newest_valid_checkpoint(broken).refused] == ["newer-schema"]
    move = next_move(project_trajectory(broken))
    assert (move.act, move.node) == (Act.COMMIT, "ai-film")


def test_folding_leaves_the_events_as_they_were() -> None:
    """The same events give equal states, again and again."""
    assert project_trajectory(EVENTS) == project_trajectory(EVENTS)
