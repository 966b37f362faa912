"""Is it authority first, identity second, replay last, and the world asked only before a fresh attempt?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.records import ActionRequest, ActionResult, Event
from codeai_lab.run.effects import LineAdapter, MarkerWorld, MovableState
from codeai_lab.run.revisions import LAB, R_7A0D43B, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]

EVERY = pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)
LATER = pytest.mark.parametrize(
    "rules", [one for name, one in REVISIONS.items() if name != "7a0d43b"], ids=lambda one: one.name
)


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind.removeprefix("action.") for event in ledger.read_all()]


def last(ledger: Ledger) -> Event:
    return list(ledger.read_all())[-1]


def told(result: ActionResult) -> tuple[str, str, str]:
    return str(result.status), str(result.effect_state), str(result.next_operation)


# --- authority first -----------------------------------------------------------------------------------


@LATER
def test_a_denied_caller_learns_nothing(
    rules: Revision, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """A used, an unused and a colliding key give the same bytes, and so do the recorded errors."""
    runtime, adapter = runtime_on(ledger, rules), LineAdapter(world)
    runtime.execute_action(req("a1", "used"), authority=auth, adapter=adapter)
    asked = [
        req("n1", "used"),
        req("n2", "unused"),
        req("n3", "used", instruction="remove the file"),
    ]
    answers, errors, histories = set(), [], set()
    for request in asked:
        result = runtime.execute_action(request, authority=NO_AUTHORITY, adapter=adapter)
        assert told(result) == ("denied", "none", "none")
        answers.add(result.public())
        own = ledger.read(request.action_id)
        histories.add(tuple(event.kind for event in own))
        errors.append(own[-1].payload["error"])
        assert own[-1].payload | {"action_id": ""} == {
            "action_id": "",
            "status": "denied",
            "effect_possible": False,
            "output": None,
            "error": errors[0],
            "observed": None,
            "reused_from_action_id": None,
        }
    assert len(answers) == 1
    assert errors[0] == {
        "code": "not-authorised",
        "message": "The current authority does not permit this: no grant names this capability.",
    }
    assert errors[1:] == errors[:2]
    assert histories == {("action.requested", "action.completed")}
    assert world.marker_count() == 1


def test_the_oldest_rules_answer_a_caller_without_authority(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Case B as found under 7a0d43b: another operation, and no authority, are replayed in silence."""
    runtime, adapter = runtime_on(memory, R_7A0D43B), LineAdapter(world)
    runtime.execute_action(req("b1"), authority=auth, adapter=adapter)
    silent = runtime.execute_action(
        req("b2", instruction="remove the file"), authority=NO_AUTHORITY, adapter=adapter
    )
    assert (silent.status, silent.reused_from_action_id) == ("succeeded", "b1")
    assert kinds(memory) == ["requested", "completed", "requested", "completed"]


@EVERY
def test_a_grant_permits_until_its_very_instant(
    rules: Revision, memory: MemoryLedger, world: MarkerWorld, req: Req, runtime_on: RuntimeOn
) -> None:
    """The clock that is handed in decides, and it is read when the request is judged."""
    clock = ManualClock(start_us=99)
    runtime, adapter = runtime_on(memory, rules, clock=clock), LineAdapter(world)
    until = Authority(grants=(Grant(capability="file.append", performer="agent", expires_at_us=100),))
    assert runtime.execute_action(req("a1", "k1"), authority=until, adapter=adapter).status == "succeeded"
    clock.advance(1)
    late = runtime.execute_action(req("a2", "k2"), authority=until, adapter=adapter)
    assert late.status == "denied"
    assert late.error is not None
    assert late.error["message"].endswith("the grant has expired.")
    other = runtime.execute_action(req("a3", "k3", performer="mallory"), authority=until, adapter=adapter)
    assert other.status == "denied"


@EVERY
def test_denied_first_then_permitted(
    rules: Revision, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The historical rules replay the old denial for ever; `lab` decides anew."""
    runtime, adapter = runtime_on(ledger, rules), LineAdapter(world)
    runtime.execute_action(req("p1"), authority=NO_AUTHORITY, adapter=adapter)
    second = runtime.execute_action(req("p2"), authority=auth, adapter=adapter)
    third = runtime.execute_action(req("p3"), authority=auth, adapter=adapter)
    if rules is LAB:
        assert told(second) == ("succeeded", "observed", "none")
        assert (third.status, third.reused_from_action_id) == ("succeeded", "p2")
        assert world.marker_count() == 1
    else:
        assert (second.status, second.reused_from_action_id) == ("denied", "p1")
        assert (third.status, third.reused_from_action_id) == ("denied", "p1")
        assert world.marker_count() == 0


def test_a_key_first_denied_belongs_to_nobody(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Under `lab` a denial binds the key to no operation: another one may take it."""
    runtime, adapter = runtime_on(memory), LineAdapter(world)
    runtime.execute_action(req("p1"), authority=NO_AUTHORITY, adapter=adapter)
    other = runtime.execute_action(req("p2", instruction="something else"), authority=auth, adapter=adapter)
    assert other.status == "succeeded"
    with pytest.raises(IdempotencyConflictError):
        runtime.execute_action(req("p3"), authority=auth, adapter=adapter)


# --- identity second -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimension", "other"),
    [
        ("capability", "file.remove"),
        ("instruction", "remove the line"),
        ("payload", {"line": "two"}),
        ("precondition", "state-B"),
        ("precondition", {}),
        ("performer", "somebody"),
    ],
)
@LATER
def test_a_conflict_names_the_dimension_durably(
    rules: Revision,
    dimension: str,
    other: Any,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    runtime_on: RuntimeOn,
) -> None:
    """Before any effect: the error and the refusal on record name key, action, version and dimension."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world)
    auth = Authority.of("file.append", "file.remove")
    runtime.execute_action(req("b1"), authority=auth, adapter=adapter)
    with pytest.raises(IdempotencyConflictError) as conflict:
        runtime.execute_action(req("b2", **{dimension: other}), authority=auth, adapter=adapter)
    error, refusal = conflict.value, last(memory)
    assert (error.idempotency_key, error.original_id) == ("k", "b1")
    assert (error.fingerprint_version, error.dimensions) == ("action-fingerprint-v1", (dimension,))
    assert refusal.kind == "action.replay_refused"
    assert refusal.payload == {
        "action_id": "b2",
        "reason": "identity-conflict",
        "idempotency_key": "k",
        "original_action_id": "b1",
        "fingerprint_version": "action-fingerprint-v1",
        "dimensions": [dimension],
    }
    assert (adapter.calls, world.marker_count()) == (1, 1)


def test_a_changed_amount_conflicts_in_a_warm_cache_and_after_reopening(
    tmp_path: Path, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Ten was done, eleven is asked: the conflict names the payload both times; nobody is denied."""
    adapter = LineAdapter(world)
    for opening in (1, 2):
        with DuckDBLedger(tmp_path / "lab.duckdb") as file:
            runtime = runtime_on(file, ids=f"o{opening}")
            runtime.execute_action(
                req(f"ten-{opening}", payload={"amount": 10}), authority=auth, adapter=adapter
            )
            eleven = req(f"eleven-{opening}", payload={"amount": 11})
            with pytest.raises(IdempotencyConflictError) as conflict:
                runtime.execute_action(eleven, authority=auth, adapter=adapter)
            assert conflict.value.dimensions == ("payload",)
            assert conflict.value.original_id == "ten-1"
            nobody = req(f"nobody-{opening}", payload={"amount": 11})
            denied = runtime.execute_action(nobody, authority=NO_AUTHORITY, adapter=adapter)
            assert denied.status == "denied"
            assert file.read(eleven.action_id)[-1].kind == "action.replay_refused"
    assert world.marker_count() == 1


@LATER
def test_equal_numbers_and_another_order_of_keys_are_the_same_operation(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """`1` and `1.0` are one number in live and recorded form; True is another value."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world)
    runtime.execute_action(
        req("a1", payload={"n": 1, "m": {"x": 1, "y": 2}}), authority=auth, adapter=adapter
    )
    same = req("a2", payload={"m": {"y": 2.0, "x": 1.0}, "n": 1.0})
    assert runtime.execute_action(same, authority=auth, adapter=adapter).reused_from_action_id == "a1"
    with pytest.raises(IdempotencyConflictError):
        runtime.execute_action(
            req("a3", payload={"n": True, "m": {"x": 1, "y": 2}}), authority=auth, adapter=adapter
        )


def forge(
    ledger: MemoryLedger, request: ActionRequest, digest_of: ActionRequest, runtime_on: RuntimeOn
) -> None:
    """Record a completed action whose stored fingerprint is another request's."""
    scratch, beside = MemoryLedger(), MemoryLedger()
    for on, asked in ((scratch, request), (beside, digest_of)):
        runtime_on(on, ids=asked.action_id).execute_action(
            asked, authority=Authority.of("file.append"), adapter=Silent()
        )
    stored = next(beside.read_all()).payload["fingerprint"]
    drafts = list(scratch.read_all())
    drafts[0].payload["fingerprint"] = stored  # type: ignore[index]
    ledger.restore(tuple(drafts))


class Silent:
    def __init__(self) -> None:
        self.calls = 0

    def execute(self, request: ActionRequest) -> str:
        self.calls += 1
        return "done"


@LATER
def test_a_stored_digest_that_disagrees_is_a_finding_and_decides_nothing(
    rules: Revision, memory: MemoryLedger, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The fingerprint is rebuilt from the recorded words: the same words replay, other words conflict."""
    other = req("z9", instruction="something else")
    forge(memory, req("a1"), other, runtime_on)
    runtime, adapter = runtime_on(memory, rules), Silent()
    replayed = runtime.execute_action(req("a2"), authority=auth, adapter=adapter)
    assert replayed.reused_from_action_id == "a1"
    assert replayed.findings == ("stored-fingerprint-disagrees",)
    with pytest.raises(IdempotencyConflictError) as conflict:
        runtime.execute_action(req("a3", instruction="something else"), authority=auth, adapter=adapter)
    assert conflict.value.dimensions == ("instruction",)
    assert adapter.calls == 0


def test_a_finding_about_a_record_that_no_longer_decides_is_dropped(
    memory: MemoryLedger, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Looked at again, the key belongs to an honest request: the answer rests on that one alone."""
    forge(memory, req("a1"), req("z9", instruction="something else"), runtime_on)
    runtime, adapter = runtime_on(memory), Silent()
    walk = runtime.walk(req("a2"), authority=auth, adapter=adapter)
    while walk.next_stage != "replay":
        walk.step()
    assert walk.facts.findings == ("stored-fingerprint-disagrees",)
    completed = last(memory)
    verdict = replace(
        completed,
        event_id="verdict",
        kind="action.reconciled",
        payload={"action_id": "a1", "verdict": "no_effect_confirmed"},
    )
    memory.append(verdict)
    runtime.execute_action(req("a3"), authority=auth, adapter=adapter)
    result = walk.run()
    assert (result.reused_from_action_id, result.findings, adapter.calls) == ("a3", (), 1)


# --- preconditions -------------------------------------------------------------------------------------


@EVERY
def test_a_drifted_world_is_refused_before_the_effect(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Case E: failed, no effect, and the error names what was expected and what was observed."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world)
    result = runtime.execute_action(
        req("e1", precondition="state-A"), authority=auth, adapter=adapter, read_state=lambda: "state-B"
    )
    assert told(result) == ("failed", "none", "fix_inputs")
    assert result.error is not None
    assert (result.error["code"], result.error["expected"], result.error["observed"]) == (
        "precondition-drift", "state-A", "state-B",
    )  # fmt: skip
    assert last(memory).payload["error"] == result.error
    assert last(memory).payload["effect_possible"] is False
    assert kinds(memory) == ["requested", "completed"]
    assert (adapter.calls, world.marker_count()) == (0, 0)


@EVERY
def test_drifted_then_back(
    rules: Revision, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The historical rules replay the old failure though the world is back; `lab` decides anew."""
    runtime, adapter, state = runtime_on(ledger, rules), LineAdapter(world), MovableState("state-B")
    ask = {"authority": auth, "adapter": adapter, "read_state": state.read}
    runtime.execute_action(req("w1", precondition="state-A"), **ask)
    state.move("state-A")
    second = runtime.execute_action(req("w2", precondition="state-A"), **ask)
    if rules is LAB:
        assert (second.status, second.reused_from_action_id, world.marker_count()) == ("succeeded", None, 1)
    else:
        assert (second.status, second.reused_from_action_id, world.marker_count()) == ("failed", "w1", 0)


@EVERY
def test_a_replay_does_not_ask_the_world_again(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """The action itself moved the world from A to B; its own success does not destroy its replay."""
    state, readings = MovableState("state-A"), []

    def read() -> str:
        readings.append(state.read())
        return state.read()

    adapter = LineAdapter(world, after=lambda: state.move("state-B"))
    runtime = runtime_on(memory, rules)
    ask = {"authority": auth, "adapter": adapter, "read_state": read}
    first = runtime.execute_action(req("m1", precondition="state-A"), **ask)
    second = runtime.execute_action(req("m2", precondition="state-A"), **ask)
    assert readings == ["state-A", "state-B"]
    assert first.observed == second.observed == {"readable": True, "state": "state-B"}
    assert (second.status, second.reused_from_action_id, world.marker_count()) == ("succeeded", "m1", 1)


def broken_reader() -> str:
    raise PermissionError(13, "denied", "a place")


@pytest.mark.parametrize("read_state", [None, broken_reader, lambda: {1, 2}], ids=["none", "broken", "a set"])
@EVERY
def test_a_precondition_that_nobody_can_check(
    rules: Revision,
    read_state: Callable[[], Any] | None,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """The historical rules pass over it and act; `lab` refuses before acting, and the key stays free."""
    runtime, adapter = runtime_on(memory, rules), LineAdapter(world)
    ask = {"authority": auth, "adapter": adapter}
    result = runtime.execute_action(req("u1", precondition="state-A"), read_state=read_state, **ask)
    if rules is not LAB:
        assert (result.status, world.marker_count()) == ("succeeded", 1)
        return
    assert told(result) == ("failed", "none", "fix_inputs")
    assert result.error is not None
    assert result.error["code"] == "precondition-unreadable"
    assert world.marker_count() == 0
    again = runtime.execute_action(req("u2", precondition="state-A"), read_state=lambda: "state-A", **ask)
    assert (again.status, world.marker_count()) == ("succeeded", 1)


@pytest.mark.parametrize(
    ("planned", "read", "drifted"),
    [
        (1, 1.0, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ((1, 2), [1, 2], False),
        (True, 1, True),
        ([0], [False], True),
        ({}, None, True),
        ("1", 1, True),
        ("é", "e\u0301", True),
    ],
)
def test_states_are_compared_as_json(
    planned: Any,
    read: Any,
    drifted: bool,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Two states are the same when their bytes are, as everywhere else: True is not 1."""
    result = runtime_on(memory).execute_action(
        req("a1", precondition=planned), authority=auth, adapter=LineAdapter(world), read_state=lambda: read
    )
    assert (result.status == "failed") is drifted
    assert world.marker_count() == (0 if drifted else 1)


@EVERY
def test_without_a_precondition_nothing_is_read_before(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """No precondition, no comparison; the reading afterwards is taken all the same."""
    seen: list[int] = []

    def read() -> int:
        seen.append(world.marker_count())
        return world.marker_count()

    result = runtime_on(memory, rules).execute_action(
        req("a1"), authority=auth, adapter=LineAdapter(world), read_state=read
    )
    assert seen == [1]
    assert result.observed == {"readable": True, "state": 1}
