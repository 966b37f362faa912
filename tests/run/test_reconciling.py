"""Does reconciling find out what happened, and never repeat it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, EffectState, NextOperation
from codeai_lab.run.effects import FencedLineAdapter, LineAdapter, MarkerWorld, WorldLookup, raising
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import LAB, R_1B3C7A2
from codeai_lab.run.runtime import Runtime
from codeai_lab.run.waiting import waiting
from codeai_lab.run.walk import Walk
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]

JUDGE = Authority.of(RECONCILE)


class Blind:
    """An effect system that cannot tell, or fails, or points at nothing."""

    def __init__(self, found: Any = None, *, resolves: bool = True) -> None:
        self.found = found
        self.resolves = resolves

    def find(self, _: Mapping[str, Any]) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def resolve(self, _: Mapping[str, Any]) -> bool:
        return self.resolves


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


@pytest.fixture
def die(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> Callable[..., Walk]:
    """Let the walk of `a1` die under `lab`, before or after its effect: `die("after")`."""

    def make(where: str) -> Walk:
        walk = runtime_on(ledger, LAB, ids=where).walk(req("a1"), authority=auth, adapter=LineAdapter(world))
        while walk.next_stage != "perform(Exception)":
            walk.step()
        if where == "after":
            walk.step()
        walk.close()
        return walk

    return make


@EITHER
@pytest.mark.parametrize(
    ("died", "verdict", "state", "then", "status", "effects"),
    [
        ("after", "effect_confirmed", EffectState.OBSERVED, NextOperation.NONE, "reconciled", 1),
        ("before", "no_effect_confirmed", EffectState.NONE, NextOperation.START, "succeeded", 1),
    ],
)
def test_a_verdict_decides_what_the_same_key_gives(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn,
    die: Callable[..., Walk], died: str, verdict: str, state: EffectState, then: NextOperation, status: str,
    effects: int,
) -> None:  # fmt: skip
    """Confirmed: answered from the verdict. Confirmed absent: tried afresh. One effect both times."""
    die(died)
    runtime = runtime_on(ledger, LAB, ids="later")

    judged = runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=WorldLookup(world))
    again = runtime.execute_action(req("a2"), authority=auth, adapter=LineAdapter(world))

    assert (judged.verdict, judged.effect_state, judged.next_operation) == (verdict, state, then)
    assert (again.status, world.marker_count()) == (status, effects)


def test_still_unknown_is_a_final_answer(
    ledger: Ledger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
    die: Callable[..., Walk],
) -> None:
    """An effect system that cannot tell leaves the key as it was: not acted on."""
    die("after")
    runtime = runtime_on(ledger, LAB, ids="later")

    judged = runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=Blind())
    again = runtime.execute_action(req("a2"), authority=auth, adapter=LineAdapter(world))

    assert (judged.verdict, judged.effect_state) == ("still_unknown", EffectState.UNKNOWN)
    assert (again.status, world.marker_count()) == ("refused", 1)


@pytest.mark.parametrize(
    ("lookup", "evidence"),
    [
        (Blind(OSError("gone")), {"lookup_failed": "OSError"}),
        (Blind([{"receipt": 7}], resolves=False), {"unresolved": {"receipt": 7}}),
    ],
)
def test_a_reference_that_does_not_resolve_is_no_evidence(
    ledger: Ledger, runtime_on: RuntimeOn, die: Callable[..., Walk], lookup: Blind, evidence: dict[str, Any]
) -> None:
    """A look-up that fails, or points at what is not there, leaves the effect unknown and says why."""
    die("after")

    judged = runtime_on(ledger, LAB, ids="later").reconcile_action(
        "a1", authority=JUDGE, effect_lookup=lookup
    )

    assert (judged.verdict, judged.evidence) == ("still_unknown", (evidence,))


def test_who_may_act_may_not_therefore_judge(
    ledger: Ledger, world: MarkerWorld, auth: Authority, runtime_on: RuntimeOn, die: Callable[..., Walk]
) -> None:
    """Reconciling has a capability of its own; the refusal is recorded, and tells nothing of the effect."""
    die("after")

    judged = runtime_on(ledger, LAB, ids="later").reconcile_action(
        "a1", authority=auth, effect_lookup=WorldLookup(world)
    )

    assert (judged.verdict, judged.refused, judged.evidence) == (None, "not-authorised", ())
    assert kinds(ledger)[-1] == "action.reconcile_refused"


def test_a_walk_that_is_alive_is_not_judged(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """While somebody holds it, it is in progress; its completion afterwards is an ordinary one."""
    runtime = runtime_on(ledger, LAB)
    walk = runtime.walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    while walk.next_stage != "observe":
        walk.step()

    judged = runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=WorldLookup(world))

    assert judged.refused == "in-progress"
    assert walk.run().status == "succeeded"
    assert kinds(ledger)[-2:] == ["action.reconcile_refused", "action.completed"]


@pytest.mark.parametrize("action_id", ["a1", "never-asked"])
def test_there_must_be_something_to_reconcile(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn, action_id: str
) -> None:
    """A succeeded action is refused durably, an action that is not recorded at once."""
    runtime = runtime_on(ledger, LAB)
    runtime.execute_action(req("a1"), authority=auth, adapter=LineAdapter(world))

    if action_id == "a1":
        judged = runtime.reconcile_action(action_id, authority=JUDGE, effect_lookup=WorldLookup(world))
        assert judged.refused == "nothing-to-reconcile"
    else:
        with pytest.raises(RefusedRequestError):
            runtime.reconcile_action(action_id, authority=JUDGE, effect_lookup=WorldLookup(world))


def test_a_failure_after_the_effect_can_be_confirmed(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """FAILED stays the status, the effect becomes observed: two axes."""
    runtime = runtime_on(ledger, R_1B3C7A2)
    crasher = LineAdapter(world, after=raising(ConnectionError("lost")))
    runtime.execute_action(req("a1"), authority=auth, adapter=crasher)

    judged = runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=WorldLookup(world))
    again = runtime_on(ledger, LAB, ids="later").execute_action(req("a2"), authority=auth, adapter=crasher)

    assert (judged.verdict, judged.effect_state) == ("effect_confirmed", EffectState.OBSERVED)
    assert (again.status, again.effect_state, crasher.calls) == ("failed", EffectState.OBSERVED, 1)


@EITHER
def test_a_late_completion_is_a_contradiction_and_overwrites_nothing(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Taken for dead, judged absent, going on all the same: recorded beside the verdict, unknown again."""
    runtime = runtime_on(ledger, LAB)
    walk = runtime.walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    while walk.next_stage != "perform(Exception)":
        walk.step()
    walk.disown()
    runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=WorldLookup(world))

    late = walk.run()
    again = runtime.execute_action(req("a2"), authority=auth, adapter=LineAdapter(world))

    assert (late.status, late.effect_state) == ("succeeded", EffectState.UNKNOWN)
    assert late.findings == ("completed-after-a-verdict",)
    assert kinds(ledger)[3:5] == ["action.reconciled", "action.completed_late"]
    assert (again.status, again.next_operation) == ("refused", NextOperation.RECONCILE_EFFECT)
    assert world.marker_count() == 1


def test_an_effect_that_checks_the_fencing_number_turns_a_late_walk_away(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The claim's seq travels with the effect; the older one comes too late, and there is one effect."""
    runtime, fences = runtime_on(ledger, LAB), dict[str, int]()
    walk = runtime.walk(req("a1"), authority=auth, adapter=FencedLineAdapter(world, fences))
    while walk.next_stage != "perform(Exception)":
        walk.step()
    walk.disown()
    runtime.reconcile_action("a1", authority=JUDGE, effect_lookup=WorldLookup(world))
    fresh = runtime.execute_action(req("a2"), authority=auth, adapter=FencedLineAdapter(world, fences))

    late = walk.run()
    third = runtime.execute_action(req("a3"), authority=auth, adapter=FencedLineAdapter(world, fences))

    assert (fresh.status, late.status, world.marker_count()) == ("succeeded", "failed", 1)
    assert late.error is not None
    assert late.error["type"] == "StaleFenceError"
    assert (third.status, third.reused_from_action_id) == ("succeeded", "a2")


def test_a_loser_that_waits_is_handed_the_winners_outcome(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """While it waits the winner completes; it looks again and replays."""
    runtime, clock = runtime_on(memory, LAB), ManualClock(tick_us=1)
    winner = runtime.walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    while winner.next_stage != "observe":
        winner.step()

    loser = runtime.execute_action(
        req("a2"), authority=auth, adapter=LineAdapter(world),
        wait=waiting(clock=clock, timeout_us=1_000, pause=lambda: winner.is_over or winner.step()),
    )  # fmt: skip

    assert (loser.status, loser.reused_from_action_id, world.marker_count()) == ("succeeded", "a1", 1)


def test_a_wait_ends_by_its_deadline(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The winner does not move; the loser is told that the key is in progress, after the time it gave."""
    runtime, clock, pauses = runtime_on(memory, LAB), ManualClock(), []
    winner = runtime.walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    while winner.next_stage != "observe":
        winner.step()

    def pause() -> None:
        pauses.append(clock.now_us())
        clock.advance(100)

    loser = runtime.execute_action(
        req("a2"), authority=auth, adapter=LineAdapter(world),
        wait=waiting(clock=clock, timeout_us=1_000, pause=pause),
    )  # fmt: skip

    assert (loser.status, len(pauses)) == ("in_progress", 10)


def test_who_waits_is_judged_again(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The winner is gone while the loser waits: unknown, never a second effect."""
    runtime, clock = runtime_on(memory, LAB), ManualClock(tick_us=1)
    winner = runtime.walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    while winner.next_stage != "observe":
        winner.step()

    loser = runtime.execute_action(
        req("a2"), authority=auth, adapter=LineAdapter(world),
        wait=waiting(clock=clock, timeout_us=1_000, pause=winner.close),
    )  # fmt: skip

    assert (loser.status, loser.next_operation) == ("refused", NextOperation.RECONCILE_EFFECT)
    assert world.marker_count() == 1
