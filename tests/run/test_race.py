"""Can two requests of one key ever act twice, whatever happens between any two of their stages?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.records import ActionRequest
from codeai_lab.run.revisions import LAB, R_1B3C7A2, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.walk import Walk
from codeai_lab.store.memory import MemoryLedger

AUTH = Authority.of("file.append")


def req(action_id: str, **changes: str) -> ActionRequest:
    usual = {"capability": "file.append", "instruction": "append one line"}
    return ActionRequest(action_id=action_id, idempotency_key="k", **usual | changes)


class Acting:
    """Counts effects; the second caller's may fail after acting."""

    def __init__(self, fails: bool = False) -> None:
        self.effects = 0
        self._fails = fails

    def execute(self, request: ActionRequest) -> str:
        self.effects += 1
        if self._fails:
            raise ConnectionError("lost")
        return "done"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """One of the two that race."""

    request: ActionRequest
    authority: Authority = AUTH


class Table:
    """A ledger, an adapter and the walks on it; a schedule is the sequence of walks that moved."""

    def __init__(self, rules: Revision, callers: tuple[Caller, ...], *, fails: bool = False) -> None:
        self.ledger = MemoryLedger()
        self.adapter = Acting(fails)
        self.runtime = Runtime(self.ledger, rules=rules, clock=ManualClock(), new_id=counted_ids("e"))
        self.walks = [
            self.runtime.walk(one.request, authority=one.authority, adapter=self.adapter) for one in callers
        ]

    def play(self, schedule: tuple[int, ...]) -> Table:
        for turn in schedule:
            self.walks[turn].step()
        return self

    def told(self, walk: Walk) -> str:
        try:
            result = walk.result
        except IdempotencyConflictError:
            return "conflict"
        return str(result.status) if result.reused_from_action_id is None else "replayed"

    def state(self) -> tuple[object, ...]:
        """Give everything that the rest of the schedule depends on, without ids and digests."""
        walks = tuple(
            (walk.position, walk.is_over, walk.facts.guard, len(walk.facts.history), walk.facts.is_recorded,
             walk.facts.outcome is not None, self.told(walk) if walk.is_over else None)
            for walk in self.walks
        )  # fmt: skip
        events = tuple((event.kind, event.stream_id) for event in self.ledger.read_all())
        return walks, events, self.adapter.effects


def ends(make: Callable[[], Table]) -> Iterator[tuple[tuple[int, ...], Table]]:
    """Give every end that two walks can come to, each with one schedule that leads there.

    Two schedules that lead to equal states go on alike, so that one of them is enough.
    """
    seen, waiting, table, at = set(), [()], make(), ()
    while waiting:
        schedule = waiting.pop()
        if schedule[: len(at)] == at:  # one step on from where the table stands
            table.play(schedule[len(at) :])
        else:
            table = make().play(schedule)
        at = schedule
        if (state := table.state()) in seen:
            continue
        seen.add(state)
        turns = [turn for turn, walk in enumerate(table.walks) if not walk.is_over]
        if not turns:
            yield schedule, table
        waiting += [(*schedule, turn) for turn in turns]


TWINS = (Caller(request=req("a1")), Caller(request=req("a2")))
OTHER = (Caller(request=req("a1")), Caller(request=req("a2", instruction="something else")))
NOBODY = (Caller(request=req("a1")), Caller(request=req("a2"), authority=NO_AUTHORITY))


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails after acting"])
def test_lab_acts_once_under_every_schedule(fails: bool) -> None:
    """All interleavings of two: one acts; the other waits or is handed the winner's outcome."""
    outcomes = Counter()
    for schedule, table in ends(lambda: Table(LAB, TWINS, fails=fails)):
        assert table.adapter.effects == 1, schedule
        assert table.ledger.live_actions == set(), schedule
        told = sorted(table.told(walk) for walk in table.walks)
        outcomes[tuple(told)] += 1
        after = table.runtime.execute_action(req("a3"), authority=AUTH, adapter=table.adapter)
        assert after.reused_from_action_id in ("a1", "a2"), schedule
        assert table.adapter.effects == 1, schedule
    own = "failed" if fails else "succeeded"
    assert set(outcomes) == {tuple(sorted((own, "in_progress"))), tuple(sorted((own, "replayed")))}


def test_another_operation_never_acts_beside_the_first() -> None:
    """All interleavings: whoever comes second gets the conflict, never the other's outcome, never "wait"."""
    winners = set()
    for schedule, table in ends(lambda: Table(LAB, OTHER)):
        assert table.adapter.effects == 1, schedule
        told = [table.told(walk) for walk in table.walks]
        assert sorted(told) == ["conflict", "succeeded"], schedule
        winners.add(told.index("succeeded"))
    assert winners == {0, 1}


def test_a_caller_without_authority_learns_nothing_under_any_schedule() -> None:
    """All interleavings: the denial has the same bytes at every moment of the other's way."""
    answers = set()
    for schedule, table in ends(lambda: Table(LAB, NOBODY)):
        assert [table.told(walk) for walk in table.walks] == ["succeeded", "denied"], schedule
        answers.add(table.walks[1].result.public())
    assert len(answers) == 1


def test_a_walk_given_up_anywhere_never_lets_the_other_act_twice() -> None:
    """All interleavings, and after each step the one that moved is dropped: at most one effect, ever."""
    told = set()
    seen, waiting = set(), [()]
    while waiting:
        schedule = waiting.pop()
        table = Table(LAB, TWINS).play(schedule)
        if (state := table.state()) in seen:
            continue
        seen.add(state)
        turns = [turn for turn, walk in enumerate(table.walks) if not walk.is_over]
        waiting += [(*schedule, turn) for turn in turns]
        for turn in turns:
            crashed = Table(LAB, TWINS).play(schedule)
            crashed.walks[turn].close()
            other = crashed.walks[1 - turn]
            if not other.is_over:
                other.run()
            third = crashed.runtime.execute_action(req("a3"), authority=AUTH, adapter=crashed.adapter)
            assert crashed.adapter.effects <= 1, (schedule, turn)
            assert third.status in ("succeeded", "refused"), (schedule, turn)
            assert crashed.ledger.live_actions == set()
            told.add((crashed.told(other), str(third.status)))
    assert ("refused", "refused") in told
    assert ("succeeded", "succeeded") in told


PROBE = (0, 1) * 9


def test_the_probes_schedule_gives_two_effects_under_the_chapters_rules() -> None:
    """Barrier-synchronised, the window held open: both look, both act, both record, none is marked reused."""
    table = Table(R_1B3C7A2, TWINS).play(PROBE)
    assert [table.told(walk) for walk in table.walks] == ["succeeded", "succeeded"]
    assert table.adapter.effects == 2
    assert [event.kind for event in table.ledger.read_all()] == [
        "action.requested", "action.requested", "action.completed", "action.completed",
    ]  # fmt: skip


def test_the_probes_schedule_gives_one_effect_under_lab() -> None:
    """Moved in turns, the second finds the key taken, looks again, and is handed the winner's outcome."""
    table = Table(LAB, TWINS)
    while turns := [walk for walk in table.walks if not walk.is_over]:
        for walk in turns:
            walk.step()
    assert [table.told(walk) for walk in table.walks] == ["succeeded", "replayed"]
    assert table.adapter.effects == 1


@pytest.mark.parametrize("name", ["7a0d43b", "a1b562a", "1b3c7a2", "88d1291"])
def test_the_historical_rules_have_good_and_bad_schedules(name: str) -> None:
    """One after the other is safe, side by side is not: the same rules give one effect or two."""
    effects = Counter(table.adapter.effects for _, table in ends(lambda: Table(REVISIONS[name], TWINS)))
    assert set(effects) == {1, 2}
