"""Does the front door keep the chapter's promises, and the historical rule sets their defects?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.decide.authority import Authority
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, ActionResult, ActionStatus, Event
from codeai_lab.run.effects import LineAdapter, MarkerWorld, raising
from codeai_lab.run.revisions import LAB, R_1B3C7A2, R_88D1291, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]

EVERY = pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind.removeprefix("action.") for event in ledger.read_all()]


def last(ledger: Ledger) -> Event:
    return list(ledger.read_all())[-1]


def told(result: ActionResult) -> tuple[str, str, str]:
    return str(result.status), str(result.effect_state), str(result.next_operation)


# --- the chapter's fragment ----------------------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("rules", [R_1B3C7A2, R_88D1291, LAB], ids=lambda rules: rules.name)
def test_the_chapters_own_fragment(
    rules: Revision, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Case D: the marker appears once, the ledger says failed, the retry returns the failure as history."""
    runtime = runtime_on(ledger, rules)
    crasher = LineAdapter(world, after=raising(RuntimeError("connection lost")))

    first = runtime.execute_action(req("d1", "kc"), authority=auth, adapter=crasher)
    second = runtime.execute_action(req("d2", "kc"), authority=auth, adapter=crasher)
    assert (first.status, second.status) == (ActionStatus.FAILED, ActionStatus.FAILED)
    assert second.reused_from_action_id == "d1"
    assert crasher.calls == 1

    assert world.marker_count() == 1
    assert first.reused_from_action_id is None
    assert told(first) == told(second) == ("failed", "unknown", "reconcile_effect")
    assert second.error == {
        "code": "adapter-raised",
        "type": "RuntimeError",
        "message": "connection lost",
    }


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError, OSError, ValueError, KeyError])
@EVERY
def test_the_exception_that_only_later_rules_record(
    rules: Revision,
    error: type[Exception],
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Before 1b3c7a2 it escapes and the same key acts again: 2 calls and 2 markers; from then on 1 and 1."""
    runtime = runtime_on(memory, rules)
    crasher = LineAdapter(world, after=raising(error("reset by peer")))
    caught = []
    for action_id in ("x1", "x2"):
        try:
            runtime.execute_action(req(action_id), authority=auth, adapter=crasher)
        except error as escaped:
            caught.append(escaped)
    if rules.name in ("7a0d43b", "a1b562a"):
        assert (len(caught), crasher.calls, world.marker_count()) == (2, 2, 2)
        assert kinds(memory) == ["requested", "requested"]
    else:
        assert (len(caught), crasher.calls, world.marker_count()) == (0, 1, 1)
        assert last(memory).payload["reused_from_action_id"] == "x1"
        assert last(memory).payload["error"]["type"] == error.__name__


@EVERY
def test_a_fresh_key_after_a_failure_duplicates_under_every_rule_set(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Keys minted anew manufacture duplicates: two markers, no reuse link."""
    runtime = runtime_on(memory, rules)
    crasher = LineAdapter(world, after=raising(RuntimeError("connection lost")))
    results = [
        runtime.execute_action(req(name, key), authority=auth, adapter=crasher)
        for name, key in (("f1", "kf-1"), ("f2", "kf-2"))
    ]
    assert world.marker_count() == 2
    assert [one.reused_from_action_id for one in results] == [None, None]


@EVERY
def test_an_exact_duplicate_is_a_replay(
    rules: Revision, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Two requests, one effect, and a third names the first and not the second."""
    runtime, adapter = runtime_on(ledger, rules), LineAdapter(world)
    first, second, third = (
        runtime.execute_action(req(name), authority=auth, adapter=adapter) for name in ("a1", "a2", "a3")
    )
    assert [one.reused_from_action_id for one in (first, second, third)] == [None, "a1", "a1"]
    assert first.output == second.output == third.output == {"marker": "0001.txt"}
    assert told(first) == told(second) == ("succeeded", "observed", "none")
    assert world.marker_count() == adapter.calls == 1


# --- ids and openings ----------------------------------------------------------------------------------


@EVERY
def test_one_action_id_is_one_request(
    rules: Revision,
    tmp_path: Path,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """A taken id is refused under its own key and another, also after reopening; nothing is recorded."""
    adapter = LineAdapter(world)
    for opening in (1, 2):
        with DuckDBLedger(tmp_path / "lab.duckdb") as file:
            runtime = runtime_on(file, rules, ids=f"o{opening}")
            if opening == 1:
                runtime.execute_action(req("a1", "k"), authority=auth, adapter=adapter)
            before = list(file.read_all())
            for key in ("k", "other"):
                with pytest.raises(RefusedRequestError, match="belongs to an earlier request") as refused:
                    runtime.execute_action(req("a1", key), authority=auth, adapter=adapter)
                assert refused.value.definite
                assert list(file.read_all()) == before
    assert world.marker_count() == 1


def test_two_runtimes_on_one_ledger_are_one_protocol(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """What one did, the other replays; what one has under way, the other is told of."""
    adapter = LineAdapter(world)
    one, other = runtime_on(memory, ids="one"), runtime_on(memory, ids="other")
    one.execute_action(req("a1", "k1"), authority=auth, adapter=adapter)
    assert (
        other.execute_action(req("a2", "k1"), authority=auth, adapter=adapter).reused_from_action_id == "a1"
    )
    walk = one.walk(req("b1", "k2"), authority=auth, adapter=adapter)
    while walk.next_stage != "perform(Exception)":
        walk.step()
    assert other.execute_action(req("b2", "k2"), authority=auth, adapter=adapter).status == "in_progress"
    assert walk.run().status == "succeeded"


def test_a_runtime_with_the_machines_clock_and_ids_needs_nothing_else(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority
) -> None:
    """The shortest way: a ledger and nothing more."""
    runtime, adapter = Runtime(memory), LineAdapter(world)
    assert runtime.rules is LAB
    runtime.execute_action(req("a1"), authority=auth, adapter=adapter)
    assert runtime.execute_action(req("a2"), authority=auth, adapter=adapter).reused_from_action_id == "a1"
    events = list(memory.read_all())
    assert len({event.event_id for event in events}) == len(events)
    assert [event.recorded_at_us for event in events] == sorted(event.recorded_at_us for event in events)
    denied = runtime.execute_action(req("a3"), adapter=adapter)
    assert denied.status == "denied"
