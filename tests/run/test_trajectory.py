"""How a trajectory moves: turns, what they record, and every place where it may be killed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from codeai_lab.decide.recovery import POLICIES, Policy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import EXPECTED, STORY
from codeai_lab.lessons.film_rows import call_key, row_of_recovery
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger

CALL = ["call.started", "call.succeeded"]
PLANNED = ["trajectory.started", "checkpoint.committed", *CALL, "validation.decided"]
FOUND = [*CALL, *CALL, *CALL, "validation.decided", "checkpoint.committed"]
COMPARED = [*CALL, "validation.decided", "checkpoint.committed", "trajectory.completed"]
TO_THE_TIMEOUT = [*PLANNED, *FOUND, "call.started", "call.failed"]
CLEAN = replace(STORY, fails=())
ROWS = {row["policy"]: row for row in EXPECTED}


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


def test_a_clean_trajectory_has_one_history() -> None:
    """Plan, two branches and the comparison, each accepted before it is committed."""
    run = Play(CLEAN, "resume", MemoryLedger())
    assert run.harness.run(run.name) == "completed"
    assert kinds(run.events) == [*PLANNED, *FOUND, *FOUND, *COMPARED]


@pytest.mark.parametrize(
    ("policy", "after"),
    [
        ("restart", ["recovery.started", *PLANNED[2:], *FOUND, *FOUND, *COMPARED]),
        ("resume", ["recovery.started", "authority.asked", *FOUND, *COMPARED]),
        ("fallback", ["recovery.started", "fallback.used", "authority.asked", *FOUND, *COMPARED]),
    ],
)
def test_each_policy_has_one_history(policy: str, after: list[str]) -> None:
    """The timeout commits nothing and stays in the record, whatever is done about it."""
    run = Play(STORY, policy, MemoryLedger())
    run.to_the_failure()
    assert kinds(run.events) == TO_THE_TIMEOUT
    assert run.recover() == "completed"
    assert kinds(run.events) == [*TO_THE_TIMEOUT, *after]
    assert row_of_recovery(run.events) == ROWS[policy]


def test_versions_and_budget_follow_the_record() -> None:
    """Checkpoints are numbered as they come, and each says what was spent, failed calls included."""
    run = Play(STORY, "restart", MemoryLedger())
    run.to_the_failure()
    run.recover()
    committed = [event.payload for event in run.events if event.kind == "checkpoint.committed"]
    assert [said["version"] for said in committed] == [1, 2, 3, 4, 5]
    assert [said["budget"]["spent"] for said in committed] == [0, 4, 9, 12, 13]
    assert [len(said["failures"]) for said in committed] == [0, 0, 1, 1, 1]


# --- killed after any stage -----------------------------------------------------------------------------


def boundaries(story: Story, policy: Policy) -> Iterator[tuple[Event, ...]]:
    """Play a story to its end, and give at every boundary what a process leaves that is killed there.

    The choice of a policy is a step like any other.
    """
    ledger = MemoryLedger()
    run = Play(story, policy, ledger)
    yield ledger.snapshot()
    while True:
        walk = run.harness.walk(run.name)
        while not walk.is_over:
            walk.step()
            yield ledger.snapshot()
        if walk.facts.end == "completed":
            return
        run.harness.recover(run.name, policy)
        yield ledger.snapshot()


def go_on(story: Story, policy: Policy, ledger: MemoryLedger) -> tuple[Event, ...]:
    """Do what another process does that finds this ledger: run on, and recover where it is paused."""
    run = Play(story, policy, ledger, process="successor")
    if run.harness.run(run.name) == "paused":
        run.recover()
    return run.events


@pytest.mark.parametrize(
    ("story", "policy"), [*((STORY, policy) for policy in POLICIES), (CLEAN, Policy.RESUME)]
)
def test_killed_after_any_stage_and_resumed_elsewhere(story: Story, policy: Policy) -> None:
    """At every boundary: verified work is kept, one call repeated at most, no verified branch run again."""
    whole = Play(story, policy, MemoryLedger())
    if whole.harness.run(whole.name) == "paused":
        whole.recover()
    usual, places = len(calls(whole.events)), 0
    for left in boundaries(story, policy):
        ledger = MemoryLedger()
        ledger.restore(left)
        events = go_on(story, policy, ledger)
        assert events[: len(left)] == left
        assert repeated(left, events[len(left) :]) == unanswered(left)
        assert len(calls(events)) == usual + unanswered(left)
        assert_no_verified_branch_ran_again(events)
        assert events[-1].payload["recommendation"] == whole.events[-1].payload["recommendation"]
        places += 1
    assert places > 30
    assert left == whole.events


def repeated(left: tuple[Event, ...], after: tuple[Event, ...]) -> int:
    """Count the calls made again because of the kill: not those that failed, nor those of a restart."""
    restarts = [event.seq for event in (*left, *after) if event.payload.get("policy") == "restart"]
    begins = max([seq for seq in restarts if seq <= left[-1].seq], default=0)
    ends = min([seq for seq in restarts if seq > left[-1].seq], default=after[-1].seq + 1 if after else 0)
    failed = {event.payload["call_id"] for event in left if event.kind == "call.failed"}
    known = {
        call_key(event)
        for event in left
        if event.kind == "call.started" and event.seq > begins and event.payload["call_id"] not in failed
    }
    made = {call_key(event) for event in after if event.kind == "call.started" and event.seq < ends}
    return len(made & known)


def unanswered(left: tuple[Event, ...]) -> int:
    """Count the calls of which nobody knows what came: one at most, the one that was being made."""
    started = sum(event.kind == "call.started" for event in left)
    open_calls = started - sum(event.kind in ("call.succeeded", "call.failed") for event in left)
    assert open_calls <= 1
    return open_calls


def test_killed_twice_in_the_same_place_repeats_one_call_each_time() -> None:
    """Whoever dies while a tool is asked leaves that one call to be made again, and nothing else."""
    ledger = MemoryLedger()
    for _ in range(3):
        run = Play(CLEAN, "resume", ledger, process=str(len(ledger.snapshot())))
        walk = run.harness.walk(run.name)
        while walk.step() != "ask":
            pass
    events = go_on(CLEAN, Policy.RESUME, ledger)
    attempts = [event.payload["attempt"] for event in events if event.kind == "call.started"]
    assert attempts == [1, 2, 3, 4, 1, 1, 1, 1, 1, 1, 1]


def calls(events: tuple[Event, ...]) -> list[tuple[str, ...]]:
    return [call_key(event) for event in events if event.kind == "call.started"]


def assert_no_verified_branch_ran_again(events: tuple[Event, ...]) -> None:
    verified: set[str] = set()
    for event in events:
        if event.kind == "checkpoint.committed":
            verified = {node for node, said in event.payload["node_status"].items() if said == "verified"}
        elif event.payload.get("policy") == "restart":
            verified = set()
        elif event.kind == "call.started":
            assert event.payload["node"] not in verified


# --- two at once ----------------------------------------------------------------------------------------


def test_of_two_walks_one_is_told_that_the_other_went_on() -> None:
    """The append of a walk that was overtaken records nothing, and asks nobody."""
    ledger = MemoryLedger()
    first = Play(CLEAN, "resume", ledger)
    second = Play(CLEAN, "resume", ledger, process="second")
    walks = [first.harness.walk(first.name), second.harness.walk(second.name)]
    for walk in walks:
        assert walk.step() == "read_state"
    assert walks[0].step() == "attempt"
    with pytest.raises(RefusedRequestError, match="Somebody else went on"):
        walks[1].step()
    assert len(calls(ledger.read(first.name))) == 1


def test_a_walk_that_is_over_goes_no_further() -> None:
    """A step after the end is refused, and an unknown trajectory has no walk."""
    run = Play(CLEAN, "resume", MemoryLedger())
    walk = run.harness.walk(run.name)
    assert walk.run() == "completed"
    with pytest.raises(ValueError, match="over"):
        walk.step()
    with pytest.raises(RefusedRequestError, match="no such trajectory"):
        run.harness.walk("another")


def test_a_turn_ends_where_the_next_one_begins() -> None:
    """A turn is a call with its answer and what follows from it; the next begins by reading the state."""
    run = Play(CLEAN, "resume", MemoryLedger())
    walk = run.harness.walk(run.name)
    turns = []
    while not walk.is_over:
        before = len(run.events)
        walk.turn()
        turns.append(kinds(run.events)[before:])
    assert turns[:5] == [[*CALL, "validation.decided"], CALL, CALL, FOUND[4:], CALL]
    assert turns[-2:] == [["trajectory.completed"], []]
