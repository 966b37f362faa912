"""Is a walk anywhere between two stages what the ledger says it is: under way, over, or an orphan?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.records import ActionRequest, ActionStatus
from codeai_lab.run.effects import LineAdapter, MarkerWorld, raising
from codeai_lab.run.revisions import LAB, R_1B3C7A2, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime
from codeai_lab.run.stages import append_request
from codeai_lab.run.walk import Walk
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]
Begin = Callable[..., Walk]

STARTED = ["action.requested", "action.claimed", "action.execution_started"]


def until(walk: Walk, stage: str) -> Walk:
    while walk.next_stage != stage:
        walk.step()
    return walk


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


@pytest.fixture
def begin(ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn) -> Begin:
    """Begin the walk of an action under `lab`, on either ledger: `begin("a1", "k", adapter=..., ...)`."""
    runtime = runtime_on(ledger)

    def make(
        action_id: str, key: str = "k", *, adapter: LineAdapter | None = None,
        authority: Authority = auth, **changes: str,
    ) -> Walk:  # fmt: skip
        adapter = adapter or LineAdapter(world)
        return runtime.walk(req(action_id, key, **changes), authority=authority, adapter=adapter)

    return make


# --- moving --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)
def test_one_step_is_one_stage(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """M1: moved by hand it takes the stages in order, and comes to what the ordinary call comes to."""
    walk = runtime_on(memory, rules).walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    assert kinds(memory) == []
    taken = []
    while not walk.is_over:
        expected = walk.next_stage
        taken.append(walk.step())
        assert taken[-1] == expected
    assert tuple(taken) == rules.stage_names
    assert walk.next_stage is None
    whole = MemoryLedger()
    other = MarkerWorld(world.folder.parent / "other")
    result = runtime_on(whole, rules).execute_action(req("a1"), authority=auth, adapter=LineAdapter(other))
    assert walk.result == result
    assert list(memory.read_all()) == list(whole.read_all())


BOUNDARIES = {
    "7a0d43b": {0: "", 1: "R", 8: "RC"},
    "a1b562a": {0: "", 1: "R", 9: "RC"},
    "1b3c7a2": {0: "", 1: "R", 9: "RC"},
    "88d1291": {0: "", 1: "R", 7: "RS", 10: "RSC"},
    "lab": {0: "", 8: "RKS", 11: "RKSC"},
}
LETTERS = {
    "action.requested": "R",
    "action.claimed": "K",
    "action.execution_started": "S",
    "action.completed": "C",
}


@pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)
def test_a_boundary_between_stages_is_a_boundary_of_durability(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """After each stage the ledger is what a crash there would leave, and the effect is where `perform` is."""
    walk = runtime_on(memory, rules).walk(req("a1"), authority=auth, adapter=LineAdapter(world))
    found, effect_after = {0: ""}, None
    for count, stage in enumerate(rules.stage_names, start=1):
        walk.step()
        letters = "".join(LETTERS[kind] for kind in kinds(memory))
        if letters != list(found.values())[-1]:
            found[count] = letters
        if world.marker_count() and effect_after is None:
            effect_after = stage
    assert found == BOUNDARIES[rules.name]
    assert effect_after is not None
    assert effect_after.startswith("perform")


def test_a_walk_that_is_over_moves_no_more(begin: Begin) -> None:
    """M1: the end stays the end; the result may be asked for again and again."""
    walk = begin("a1")
    with pytest.raises(ValueError, match="not over"):
        _ = walk.result
    first = walk.run()
    assert walk.is_over
    assert walk.run() is walk.result is first
    with pytest.raises(ValueError, match="is over"):
        walk.step()
    walk.close()
    assert walk.result is first


def test_an_exception_from_a_stage_ends_the_walk(begin: Begin, ledger: Ledger, world: MarkerWorld) -> None:
    """M1: it is raised by the step, and again by the result."""
    walk = begin("a1", adapter=LineAdapter(world, after=raising(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        until(walk, "observe")
    assert walk.is_over
    with pytest.raises(KeyboardInterrupt):
        _ = walk.result
    assert kinds(ledger) == STARTED
    assert ledger.live_actions == set()


def test_a_conflict_is_recorded_by_the_step_and_raised_by_the_result(begin: Begin, ledger: Ledger) -> None:
    """What the caller gets as an exception was recorded first; the step itself only takes the stage."""
    begin("a1").run()
    walk = begin("a2", instruction="something else")
    assert until(walk, "compare_identity").step() == "compare_identity"
    assert walk.is_over
    assert kinds(ledger)[-2:] == ["action.requested", "action.replay_refused"]
    with pytest.raises(IdempotencyConflictError):
        walk.run()


def test_a_walk_says_where_it_stands(begin: Begin) -> None:
    """Its repr names the action, the rule set and the next stage, and nothing of a machine."""
    walk = begin("a1")
    assert repr(walk) == "Walk('a1', rules lab, before receive)"
    walk.run()
    assert repr(walk) == "Walk('a1', rules lab, over)"


# --- alive, or an orphan -------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["perform(Exception)", "observe", "complete"])
def test_while_it_is_held_an_admitted_walk_is_in_progress(
    stage: str, begin: Begin, ledger: Ledger, world: MarkerWorld
) -> None:
    """M2: another request of the key is told to wait, and after the end gets the winner's outcome."""
    walk = until(begin("a1"), stage)
    loser = begin("a2").run()
    assert (loser.status, loser.effect_state, loser.next_operation) == ("in_progress", "unknown", "wait")
    refusal = ledger.read("a2")[-1]
    assert (refusal.kind, refusal.payload["reason"]) == ("action.replay_refused", "in-progress")
    assert refusal.payload["original_action_id"] == "a1"
    assert refusal.payload["dimensions"] == []
    walk.run()
    assert begin("a3").run().reused_from_action_id == "a1"
    assert (world.marker_count(), ledger.live_actions) == (1, set())


@pytest.mark.parametrize("how", ["dropped", "closed"])
@pytest.mark.parametrize("stage", ["perform(Exception)", "observe", "complete"])
def test_given_up_it_is_an_orphan_at_once(
    how: str, stage: str, begin: Begin, ledger: Ledger, world: MarkerWorld
) -> None:
    """M2: the key is refused and reconcile is named, whether or not the effect happened."""
    walk = until(begin("a1"), stage)
    effects = world.marker_count()
    if how == "closed":
        walk.close()
        with pytest.raises(ValueError, match="closed before its end"):
            _ = walk.result
    del walk
    assert ledger.live_actions == set()
    for name in ("a2", "a3"):
        loser = begin(name).run()
        assert (loser.status, loser.effect_state, loser.next_operation) == (
            "refused", "unknown", "reconcile_effect",
        )  # fmt: skip
        assert ledger.read(name)[-1].payload["reason"] == "effect-unknown"
    assert world.marker_count() == effects
    assert begin("b1", "another key").run().status == "succeeded"


@pytest.mark.parametrize("count", range(8))
def test_given_up_before_its_admission_it_leaves_no_trace(
    count: int, begin: Begin, ledger: Ledger, world: MarkerWorld
) -> None:
    """A crash before the first append leaves nothing, because nothing could have happened."""
    walk = begin("a1")
    for _ in range(count):
        walk.step()
    assert walk.next_stage == LAB.stage_names[count]
    walk.close()
    assert (kinds(ledger), ledger.live_actions) == ([], set())
    assert begin("a1").run().status == "succeeded"
    assert world.marker_count() == 1


@EITHER
def test_a_walk_is_registered_from_its_admission_on(begin: Begin, ledger: Ledger) -> None:
    """M2: not before, and until its end."""
    walk = until(begin("a1"), "admit")
    assert ledger.live_actions == set()
    walk.step()
    assert len(ledger.live_actions) == 1
    walk.run()
    assert ledger.live_actions == set()


@EITHER
def test_a_second_walk_of_one_action_id_takes_nothing_from_the_first(begin: Begin, ledger: Ledger) -> None:
    """M2: the walk that lost the id ends, and the one that has it is still in progress."""
    second = until(begin("a1"), "admit")
    first = until(begin("a1"), "perform(Exception)")
    second.step()
    while not second.is_over:
        second.step()
    with pytest.raises(Exception, match="belongs to an earlier request"):
        _ = second.result
    del second
    assert begin("a2").run().status == "in_progress"
    assert first.run().status == "succeeded"
    assert ledger.live_actions == set()


def test_an_orphan_of_an_earlier_opening_is_unknown(
    tmp_path: Path, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The walk died with its ledger: another opening finds no live walk and says reconcile."""
    path, adapter = tmp_path / "lab.duckdb", LineAdapter(world)
    with DuckDBLedger(path) as file:
        walk = until(runtime_on(file).walk(req("a1"), authority=auth, adapter=adapter), "observe")
    with DuckDBLedger(path) as file:
        result = runtime_on(file, ids="later").execute_action(req("a2"), authority=auth, adapter=adapter)
        assert (result.status, result.next_operation) == ("refused", "reconcile_effect")
    assert not walk.is_over
    assert world.marker_count() == 1


def test_an_orphan_of_older_rules_stops_lab_and_not_those_rules(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """One ledger, two rule sets: what the older record cannot tell stays unknown under `lab`."""
    adapter = LineAdapter(world)
    runtime_on(memory, R_1B3C7A2, ids="old").walk(req("a1"), authority=auth, adapter=adapter).step()
    lab = runtime_on(memory, ids="lab").execute_action(req("a2"), authority=auth, adapter=adapter)
    assert lab.status == "refused"
    older = runtime_on(memory, R_1B3C7A2, ids="older")
    assert older.execute_action(req("a3"), authority=auth, adapter=adapter).status == "succeeded"
    assert world.marker_count() == 1


# --- looking again -------------------------------------------------------------------------------------


@EITHER
def test_the_loser_of_a_race_is_judged_again(begin: Begin, ledger: Ledger, world: MarkerWorld) -> None:
    """M3: both looked before either was admitted; the second finds the key moved and looks again."""
    first, second = until(begin("a1"), "admit"), until(begin("a2"), "admit")
    first.step()
    assert second.step() == "admit"
    assert second.next_stage == "look_up_projection"
    assert second.run().status == "in_progress"
    assert first.run().status == "succeeded"
    assert world.marker_count() == 1


def test_a_loser_that_asks_for_something_else_gets_the_conflict(begin: Begin, world: MarkerWorld) -> None:
    """M3: identity is judged again, before anything of the winner is told."""
    first = until(begin("a1"), "admit")
    second = until(begin("a2", instruction="something else"), "admit")
    first.step()
    with pytest.raises(IdempotencyConflictError) as conflict:
        second.run()
    assert (conflict.value.original_id, conflict.value.dimensions) == ("a1", ("instruction",))
    first.run()
    assert world.marker_count() == 1


def test_a_loser_that_lost_its_authority_meanwhile_gets_the_denial(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """M3: authority is judged again too; a denied loser learns nothing of the winner."""
    runtime, adapter = runtime_on(ledger), LineAdapter(world)
    second = until(runtime.walk(req("a2"), authority=auth, adapter=adapter), "admit")
    first = until(runtime.walk(req("a1"), authority=auth, adapter=adapter), "perform(Exception)")
    second.facts = replace(second.facts, authority=NO_AUTHORITY)
    result = second.run()
    assert (result.status, result.effect_state, result.next_operation) == ("denied", "none", "none")
    assert first.run().status == "succeeded"


def test_a_caller_without_authority_is_denied_while_another_acts(begin: Begin) -> None:
    """Nobody without authority is told that a key is in progress."""
    walk = until(begin("a1"), "perform(Exception)")
    denied = begin("a2", authority=NO_AUTHORITY).run()
    assert denied.status == "denied"
    alone = begin("a3", "an unused key", authority=NO_AUTHORITY).run()
    assert denied.public() == alone.public()
    assert walk.run().status == "succeeded"


def test_a_denial_does_not_depend_on_whether_the_key_moved(begin: Begin, ledger: Ledger) -> None:
    """Somebody else's request between look-up and denial changes not even the way of the walk."""
    walk = until(begin("a1", authority=NO_AUTHORITY), "require_authority")
    begin("b1").run()
    walk.step()
    assert walk.is_over
    assert walk.result.public() == begin("a2", "unused", authority=NO_AUTHORITY).run().public()
    assert [event.kind for event in ledger.read("a1")] == ["action.requested", "action.completed"]


def test_what_a_walk_found_is_found_anew(begin: Begin, ledger: Ledger) -> None:
    """M3: a replay decided on a key that moved records nothing and looks again."""
    begin("a1").run()
    walk = until(begin("a2"), "replay")
    begin("a3").run()
    before = len(kinds(ledger))
    assert walk.step() == "replay"
    assert walk.next_stage == "look_up_projection"
    assert len(kinds(ledger)) == before
    assert walk.run().reused_from_action_id == "a1"


def test_a_grant_that_expires_while_a_walk_is_held_permits_no_effect(
    memory: MemoryLedger, world: MarkerWorld, req: Req, runtime_on: RuntimeOn
) -> None:
    """Authority is judged once more right before the attempt: held too long is denied."""
    clock = ManualClock(start_us=100)
    grants = Authority(grants=(Grant(capability="file.append", expires_at_us=200),))
    adapter = LineAdapter(world)
    walk = runtime_on(memory, LAB, clock=clock).walk(req("a1"), authority=grants, adapter=adapter)
    while walk.next_stage != "admit":
        walk.step()
    clock.advance(100)

    result = walk.run()

    assert (result.status, adapter.calls) == (ActionStatus.DENIED, 0)
    assert [event.kind for event in memory.read_all()] == ["action.requested", "action.completed"]


def test_a_request_recorded_early_does_not_stand_in_its_own_way(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """A reader's rule set may record the request first and still look up the projection."""
    composed = Revision(name="my-rules", stages=(append_request, *LAB.stages[1:]))
    runtime = runtime_on(memory, composed)

    results = [
        runtime.execute_action(req(name), authority=auth, adapter=LineAdapter(world)) for name in ("a1", "a2")
    ]

    assert [result.status for result in results] == ["succeeded", "succeeded"]
    assert results[1].reused_from_action_id == "a1"
    assert world.marker_count() == 1
