"""Are the protocols composed of our own stages, and does joining stages make them one step?"""

from __future__ import annotations

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.moments import move, runtime_of, submit
from codeai_lab.explore.other_stages import answer
from codeai_lab.explore.protocols import (
    PROTOCOLS,
    Composed,
    composed,
    rules_named,
    together,
)
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.records import ActionResult
from codeai_lab.run.acting import complete, perform
from codeai_lab.run.revisions import LAB, REVISIONS, Revision
from codeai_lab.run.stages import append_request, look_up, replay
from codeai_lab.run.walk import Walk
from codeai_lab.store.memory import MemoryLedger


def kinds(ledger: MemoryLedger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


def walk_under(rules: Composed, ledger: MemoryLedger, name: str, world: CountedWorld | None = None) -> Walk:
    return submit(runtime_of(rules, ledger, name=name), name, world or rules.new_world())


def test_joined_stages_are_one_step() -> None:
    """What `together` joins runs in one step, in order, and stops at the first end (PT1)."""
    joined = Revision(
        name="joined", stages=(together(append_request, look_up, replay), perform(Exception), complete)
    )
    ledger, world = MemoryLedger(), CountedWorld()
    walk = walk_under(composed(joined), ledger, "a", world)
    assert walk.step() == "append_request+look_up+replay"
    assert kinds(ledger) == ["action.requested"]
    walk.run()
    again = walk_under(composed(joined), ledger, "b", world)
    again.step()
    assert again.result.reused_from_action_id == "a"
    assert len(world.receipts()) == 1


def test_joined_stages_may_have_a_name() -> None:
    """A step is called by the names of its stages or as its composer likes."""
    assert together(look_up, replay).__name__ == "look_up+replay"
    assert together(look_up, replay, name="claim").__name__ == "claim"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_alone_every_protocol_acts_and_then_replays(name: str) -> None:
    """A first request acts once, a second with its key gets the outcome, nothing stays alive."""
    rules = PROTOCOLS[name]
    ledger, world = MemoryLedger(), rules.new_world()
    assert walk_under(rules, ledger, "a", world).run().status == "succeeded"
    second = walk_under(rules, ledger, "b", world).run()
    assert second.status == "succeeded"
    assert second.reused_from_action_id == "a"
    assert len(world.receipts()) == 1
    assert ledger.live_actions == set()


@pytest.mark.parametrize(
    "name", ["claim-busy", "claim-wait", "lock", "claim-in-memory", "takeover-reconcile"]
)
def test_who_comes_while_the_key_is_held_is_told_busy(name: str) -> None:
    """Outside an explorer nobody waits: the answer is in progress, with wait as the next operation (PT2)."""
    rules = PROTOCOLS[name]
    ledger = MemoryLedger()
    first = walk_under(rules, ledger, "a")
    while not str(first.next_stage).startswith("perform"):
        first.step()
    second: ActionResult = walk_under(rules, ledger, "b").run()
    assert (second.status, second.next_operation) == ("in_progress", "wait")
    assert first.run().status == "succeeded"


def test_a_takeover_that_reconciles_leaves_its_verdict() -> None:
    """The orphan's effect is looked up, the verdict recorded, and the key answers reconciled."""
    rules = PROTOCOLS["takeover-reconcile"]
    ledger, world = MemoryLedger(), CountedWorld()
    dead = walk_under(rules, ledger, "a", world)
    while dead.next_stage != "complete":
        dead.step()
    dead.close()
    assert walk_under(rules, ledger, "b", world).run().status == "reconciled"
    assert len(world.receipts()) == 1
    assert kinds(ledger)[3:] == ["action.reconciled", "action.requested", "action.completed"]


def test_a_takeover_that_cannot_find_out_refuses() -> None:
    """Where the effect system cannot tell, nobody acts and the caller is told to reconcile."""
    rules = PROTOCOLS["takeover-reconcile"]
    ledger, world = MemoryLedger(), CountedWorld()
    dead = walk_under(rules, ledger, "a", world)
    while dead.next_stage != "complete":
        dead.step()
    dead.close()
    world.resolve = lambda reference: False  # type: ignore[method-assign]
    assert walk_under(rules, ledger, "b", world).run().status == "refused"
    assert len(world.receipts()) == 1


def test_asking_before_taking_over_finds_the_effect_and_records_no_verdict() -> None:
    """One step more for who takes over; what it finds is reused, nobody who lives is judged (OS2, PT4)."""
    rules = PROTOCOLS["takeover-alive-reconcile"]
    ledger, world = MemoryLedger(), CountedWorld()
    holder = walk_under(rules, ledger, "a", world)
    assert [move(rules, holder) for _ in range(4)] == [
        "receive", "look_up+replay", "claim", "perform(Exception)",
    ]  # fmt: skip
    late = walk_under(rules, ledger, "b", world)
    steps = []
    while not late.is_over:
        steps.append(move(rules, late))
    assert steps == ["receive", "look_up+replay", "claim", "ask_first", "complete"]
    assert (late.result.status, late.result.reused_from_action_id) == ("reconciled", "a")
    assert holder.run().status == "succeeded"
    assert len(world.receipts()) == 1
    assert "action.reconciled" not in kinds(ledger)


def test_asking_before_the_holder_acts_leaves_a_gap() -> None:
    """The holder is not there yet when it is asked about, and nothing stops it afterwards: two effects."""
    rules = PROTOCOLS["takeover-alive-reconcile"]
    ledger, world = MemoryLedger(), CountedWorld()
    holder = walk_under(rules, ledger, "a", world)
    for _ in range(3):
        move(rules, holder)
    assert walk_under(rules, ledger, "b", world).run().status == "succeeded"
    assert holder.run().status == "succeeded"
    assert len(world.receipts()) == 2


def test_a_success_recorded_first_is_false_until_the_effect() -> None:
    """Between record and effect the ledger says succeeded and the world shows nothing."""
    ledger, world = MemoryLedger(), CountedWorld()
    walk = walk_under(PROTOCOLS["record-first"], ledger, "a", world)
    for _ in range(3):
        walk.step()
    assert kinds(ledger) == ["action.requested", "action.completed"]
    assert world.receipts() == ()


def test_answering_needs_an_outcome() -> None:
    """A composition that answers before it performs is told so."""
    silent = Revision(name="silent", stages=(append_request, answer))
    with pytest.raises(ValueError, match="performs before"):
        walk_under(composed(silent), MemoryLedger(), "a").run()


def test_rules_are_found_by_name() -> None:
    """Rule sets and protocols share one list of names; an unknown one names those that there are."""
    assert rules_named("lab").revision is LAB
    assert rules_named("unguarded") is PROTOCOLS["unguarded"]
    assert not set(REVISIONS) & set(PROTOCOLS)
    with pytest.raises(
        RefusedRequestError, match=r"no rules called nonsense; there are: 7a0d43b, .*unguarded"
    ):
        rules_named("nonsense")
