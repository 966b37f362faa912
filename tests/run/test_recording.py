"""Is what was decided on record in one piece, with its cause, and only if the key had not moved?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.decide.identity import action_fingerprint
from codeai_lab.errors import IdempotencyConflictError, OutcomeNotRecordedError
from codeai_lab.records import ActionRequest
from codeai_lab.run.acting import complete, mark_started, observe, perform
from codeai_lab.run.effects import LineAdapter, MarkerWorld, MovableState, raising
from codeai_lab.run.revisions import REVISIONS, Revision
from codeai_lab.run.runtime import Runtime
from codeai_lab.run.stages import look_up, receive
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]

EVERY = pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)

# The appends of one life of a key, each a group of letters: requested, claimed, started, completed, refused.
APPENDS = {
    "7a0d43b": "R C  R C  R C  R C",
    "a1b562a": "R C  R C  R X  R C",
    "1b3c7a2": "R C  R C  R X  R C",
    "88d1291": "R S C  R C  R X  R C",
    "lab": "RKS C  RC  RX  RC",
}
LETTERS = {
    "action.requested": "R",
    "action.claimed": "K",
    "action.execution_started": "S",
    "action.completed": "C",
    "action.replay_refused": "X",
}


@EVERY
def test_one_decision_is_one_append(
    rules: Revision, tmp_path: Path, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """A fresh action, a replay, a conflict, a denial: the batches of the journal are the decisions."""
    with DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="L", clock=ManualClock()) as file:
        runtime, adapter = runtime_on(file, rules), LineAdapter(world)
        runtime.execute_action(req("a1"), authority=auth, adapter=adapter)
        runtime.execute_action(req("a2"), authority=auth, adapter=adapter)
        try:
            runtime.execute_action(req("a3", instruction="else"), authority=auth, adapter=adapter)
        except IdempotencyConflictError:
            assert rules.name != "7a0d43b"
        runtime.execute_action(req("a4"), authority=NO_AUTHORITY, adapter=adapter)
        lines = [json.loads(line) for line in file.journal.read_bytes().splitlines()[1:]]
    written = ""
    for line in lines:
        first, count = line["batch"]
        written += LETTERS[line["kind"]] + (" " if first == count else "")
    assert written.split() == APPENDS[rules.name].split()


@EVERY
def test_every_event_of_an_action_names_its_request_as_the_cause(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """N1: a request is recorded once, has no cause, and is the cause of everything in its stream."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world, after=raising(RuntimeError("lost")))
    for name, authority in (("a1", auth), ("a2", auth), ("a3", NO_AUTHORITY)):
        runtime.execute_action(req(name), authority=authority, adapter=adapter)
        request, *rest = memory.read(name)
        assert (request.kind, request.causation_id) == ("action.requested", None)
        assert rest
        for event in rest:
            assert event.kind != "action.requested"
            assert event.causation_id == request.event_id
            assert (event.idempotency_key, event.run_id, event.actor_id) == ("k", "r", "t")


@EVERY
def test_a_request_is_recorded_word_for_word(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """The request's event says what was asked, under which rules, and the fingerprint of it."""
    request = req("a1", payload={"line": "é", "n": 1.0}, precondition={"v": [1]}, performer="somebody")
    runtime_on(memory, rules).execute_action(
        request, authority=auth, adapter=LineAdapter(world), read_state=lambda: {"v": [1]}
    )
    assert memory.read("a1")[0].payload == {
        "action_id": "a1",
        "capability": "file.append",
        "instruction": "append one line",
        "payload": {"line": "é", "n": 1},
        "precondition": {"v": [1]},
        "performer": "somebody",
        "rules": rules.name,
        "fingerprint": action_fingerprint(request).as_json(),
    }


@EVERY
def test_an_absent_precondition_is_recorded_as_null(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Null stays null, and is another operation than an empty one, also from the record."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world)
    runtime.execute_action(req("a1"), authority=auth, adapter=adapter)
    assert memory.read("a1")[0].payload["precondition"] is None
    if rules.name != "7a0d43b":
        with pytest.raises(IdempotencyConflictError) as conflict:
            runtime.execute_action(req("a2", precondition={}), authority=auth, adapter=adapter)
        assert conflict.value.dimensions == ("precondition",)


def test_a_decision_whose_key_has_moved_records_nothing(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """N2: refused, replayed, failed before the start or admitted: each is conditional on the key."""
    runtime, adapter, state = runtime_on(memory), LineAdapter(world), MovableState("B")

    def stands_before(stage: str, name: str, key: str, **changes: str) -> None:
        walk = runtime.walk(req(name, key, **changes), authority=auth, adapter=adapter, read_state=state.read)
        while walk.next_stage != stage:
            walk.step()
        runtime.execute_action(req(f"{name}-meanwhile", key), authority=NO_AUTHORITY, adapter=adapter)
        before = list(memory.read_all())
        walk.step()
        assert walk.next_stage == "look_up_projection"
        assert list(memory.read_all()) == before

    stands_before("admit", "a1", "k1")
    stands_before("check_precondition_strictly", "a2", "k2", precondition="A")
    runtime.execute_action(req("done", "k3"), authority=auth, adapter=adapter)
    stands_before("replay", "a3", "k3")
    stands_before("compare_identity", "a4", "k3", instruction="else")
    open_ = runtime.walk(req("open", "k4"), authority=auth, adapter=adapter)
    while open_.next_stage != "perform(Exception)":
        open_.step()
    stands_before("refuse_unknown", "a5", "k4")
    assert world.marker_count() == 1


def test_a_replay_has_no_effect_of_its_own_on_record(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """It completes the new request in the original's words, and says that no adapter was entered."""
    runtime = runtime_on(memory)
    crasher = LineAdapter(world, after=raising(ConnectionError("lost")))
    for name in ("a1", "a2"):
        runtime.execute_action(req(name), authority=auth, adapter=crasher, read_state=lambda: "B")
    original, replayed = memory.read("a1")[-1].payload, memory.read("a2")[-1].payload
    assert original["effect_possible"] is True
    assert replayed == original | {
        "action_id": "a2",
        "effect_possible": False,
        "reused_from_action_id": "a1",
    }


def test_a_rule_set_of_ones_own_loses_no_record(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """A student drops the admission: the request is recorded with the first thing that is recorded at all."""
    own = Revision(name="own", stages=(receive, look_up, perform(Exception), observe, complete))
    marked = Revision(name="marked", stages=(receive, look_up, mark_started, perform(Exception), complete))
    adapter = LineAdapter(world)
    runtime_on(memory, own, ids="o").execute_action(req("a1", "k1"), authority=auth, adapter=adapter)
    runtime_on(memory, marked, ids="m").execute_action(req("a2", "k2"), authority=auth, adapter=adapter)
    assert [event.kind for event in memory.read("a1")] == ["action.requested", "action.completed"]
    assert [event.kind for event in memory.read("a2")] == [
        "action.requested", "action.execution_started", "action.completed",
    ]  # fmt: skip


def test_an_outcome_whose_id_was_taken_meanwhile_is_not_lost_in_silence(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Two walks of one id, nothing recorded first: the second's effect is said to be unrecorded."""
    own = Revision(name="own", stages=(receive, look_up, perform(Exception), observe, complete))
    runtime, adapter = runtime_on(memory, own), LineAdapter(world)
    first, second = (runtime.walk(req("a1"), authority=auth, adapter=adapter) for _ in range(2))
    while second.next_stage != "complete":
        second.step()
    first.run()
    with pytest.raises(OutcomeNotRecordedError):
        second.run()
    assert world.marker_count() == 2
