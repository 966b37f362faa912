"""Is what an attempt did on record, whatever the adapter returned or raised and whoever failed to look?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.authority import Authority
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, ActionResult, Event
from codeai_lab.run.effects import LineAdapter, MarkerWorld, lost_acknowledgement, raising
from codeai_lab.run.revisions import REVISIONS, Revision
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


def broken_reader() -> str:
    raise PermissionError(13, "denied", "a place")


@EVERY
def test_a_reader_that_fails_hides_nothing(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """The adapter raised and the reader fails: both are on record, apart from one another."""
    crasher = LineAdapter(world, after=raising(RuntimeError("connection lost")))
    result = runtime_on(memory, rules).execute_action(
        req("d1"), authority=auth, adapter=crasher, read_state=broken_reader
    )
    payload = last(memory).payload
    assert payload["error"] == {
        "code": "adapter-raised",
        "type": "RuntimeError",
        "message": "connection lost",
    }
    assert payload["observed"] == {"readable": False, "error": "PermissionError"}
    assert (result.error, result.observed) == (payload["error"], payload["observed"])
    assert told(result) == ("failed", "unknown", "reconcile_effect")


@EVERY
def test_the_state_is_read_again_also_when_the_adapter_raised(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """A FAILED result carries a reading taken after the raise."""
    crasher = LineAdapter(world, after=raising(RuntimeError("connection lost")))
    result = runtime_on(memory, rules).execute_action(
        req("d1"), authority=auth, adapter=crasher, read_state=world.marker_count
    )
    assert (result.status, result.observed) == ("failed", {"readable": True, "state": 1})


@EITHER
def test_words_that_utf_8_does_not_hold_do_not_lose_the_failure(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Half a pair of surrogates, a path of the system: recorded as failed, in words that may be shown."""
    for number, error in enumerate(
        [ValueError("half \ud83d"), FileNotFoundError(2, "No such file", "/" + "secret/\udcff.txt")]
    ):
        crasher = LineAdapter(world, after=raising(error))
        result = runtime_on(ledger, ids=f"w{number}").execute_action(
            req(f"a{number}", f"k{number}"), authority=auth, adapter=crasher
        )
        assert told(result) == ("failed", "unknown", "reconcile_effect")
        assert b"secret" not in result.public()
        assert last(ledger).payload["error"]["message"] in ("half ?", "No such file")


class Returning:
    """An adapter that acts and then returns what it was given."""

    def __init__(self, world: MarkerWorld, output: Any) -> None:
        self._world, self._output = world, output

    def execute(self, request: ActionRequest) -> Any:
        self._world.append_line(request.action_id, "one")
        return self._output


@pytest.mark.parametrize(
    "output",
    [{1, 2}, float("nan"), {"a": b"x"}, {"big": "x" * 10_000_000}, [[["deep"]] * 3]],
    ids=["set", "nan", "bytes", "10 MB", "fine"],
)
def test_an_output_that_no_line_takes_leaves_the_report_standing(
    output: Any, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The status stands, the output is named as left out, and a replay says the same."""
    runtime = runtime_on(ledger)
    adapter = Returning(world, output)
    first = runtime.execute_action(req("a1"), authority=auth, adapter=adapter, read_state=lambda: "B")
    second = runtime.execute_action(req("a2"), authority=auth, adapter=adapter)
    assert told(first) == told(second) == ("succeeded", "observed", "none")
    assert second.reused_from_action_id == "a1"
    assert (first.output, first.error, first.observed) == (second.output, second.error, second.observed)
    assert first.observed == {"readable": True, "state": "B"}
    if output == [[["deep"]] * 3]:
        assert (first.output, first.error) == (output, None)
    else:
        assert first.output is None
        assert first.error is not None
        assert first.error["code"] == "output-not-recordable"
    assert world.marker_count() == 1


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("state", ["x" * 2_000_000, deep(99)], ids=["2 MB", "deep"])
def test_a_reading_that_no_line_takes_does_not_hide_the_failure(
    state: Any, memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """What is left out is the reading; the adapter's failure stays on record."""
    crasher = LineAdapter(world, after=raising(ConnectionError("lost")))
    result = runtime_on(memory).execute_action(
        req("d1"), authority=auth, adapter=crasher, read_state=lambda: state
    )
    assert result.error == {"code": "adapter-raised", "type": "ConnectionError", "message": "lost"}
    assert result.observed is not None
    assert result.observed["readable"] is False
    assert last(memory).payload["observed"] == result.observed


def test_a_large_output_and_a_large_reading_are_both_left_out(
    memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Status and effect stand even then."""
    result = runtime_on(memory).execute_action(
        req("a1"),
        authority=auth,
        adapter=Returning(world, "x" * 2_000_000),
        read_state=lambda: "y" * 2_000_000,
    )
    assert told(result) == ("succeeded", "observed", "none")
    assert result.output is None
    assert result.observed is not None
    assert result.observed["readable"] is False


async def coroutine() -> str:
    return "done"


@pytest.mark.parametrize("make", [coroutine, lambda: (n for n in range(3))], ids=["coroutine", "generator"])
def test_an_adapter_that_only_builds_something_is_no_success(
    make: Callable[[], Any],
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Recorded as failed with its effect unknown, never as a success with no effect."""
    result = runtime_on(memory).execute_action(req("a1"), authority=auth, adapter=Returning(world, make()))
    assert told(result) == ("failed", "unknown", "reconcile_effect")
    assert result.error is not None
    assert result.error["code"] == "adapter-not-driven"


@pytest.mark.parametrize("adapter", [None, lambda request: None, "file.append", object()])
def test_what_cannot_execute_is_refused_before_anything_is_recorded(
    adapter: Any, memory: MemoryLedger, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """A plain function is no adapter; saying so must not cost the caller the key."""
    with pytest.raises(RefusedRequestError, match="must have a method execute"):
        runtime_on(memory).execute_action(req("a1"), authority=auth, adapter=adapter)
    assert kinds(memory) == []


@EITHER
def test_a_request_too_large_for_a_line_is_refused_before_the_effect(
    ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """10 MB of payload: one definite refusal that says what to do; nothing recorded, nothing done."""
    runtime, adapter = runtime_on(ledger), LineAdapter(world)
    with pytest.raises(Exception, match="keep the bulk in a file") as refused:
        runtime.execute_action(req("a1", payload={"line": "x" * 10_000_000}), authority=auth, adapter=adapter)
    assert refused.value.definite
    assert (kinds(ledger), adapter.calls, ledger.live_actions) == ([], 0, set())
    assert runtime.execute_action(req("a1"), authority=auth, adapter=adapter).status == "succeeded"


@EVERY
def test_what_the_caller_does_to_an_answer_changes_no_record(
    rules: Revision, ledger: Ledger, req: Req, auth: Authority, world: MarkerWorld, runtime_on: RuntimeOn
) -> None:
    """Neither the adapter's own object nor an answer leads into the ledger."""
    output = {"lines": ["one"]}
    runtime, adapter = runtime_on(ledger, rules), Returning(world, output)
    ask = {"authority": auth, "adapter": adapter, "read_state": lambda: ["B"]}
    results = []
    for name in ("a1", "a2", "a3"):
        results.append(runtime.execute_action(req(name), **ask))
        output["lines"].append("forged")
        results[-1].output["lines"].append("forged")
        results[-1].observed["state"].append("forged")
    answer = runtime.execute_action(req("a4"), **ask)
    assert answer.output == {"lines": ["one"]}
    assert answer.observed == {"readable": True, "state": ["B"]}
    for event in ledger.read_all():
        assert "forged" not in json.dumps(event.payload)


@EVERY
def test_what_an_adapter_does_to_its_request_stays_its_own_affair(
    rules: Revision, memory: MemoryLedger, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The caller may ask again with the very same object."""

    class Careless:
        def execute(self, request: ActionRequest) -> Any:
            return request.payload.pop("line")  # type: ignore[attr-defined]

    request = req("a1")
    runtime = runtime_on(memory, rules)
    assert runtime.execute_action(request, authority=auth, adapter=Careless()).output == "one"
    assert request.payload == {"line": "one"}
    assert memory.read("a1")[0].payload["payload"] == {"line": "one"}
    again = runtime.execute_action(req("a2", payload=request.payload), authority=auth, adapter=Careless())
    assert again.reused_from_action_id == "a1"


def test_a_replayed_failure_is_marked_each_time_also_after_reopening(
    tmp_path: Path, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The same failure each time, each with its source; nothing is pending; one effect."""
    crasher = LineAdapter(world, after=lost_acknowledgement())
    results = []
    for opening in (1, 2):
        with DuckDBLedger(tmp_path / "lab.duckdb") as file:
            runtime = runtime_on(file, ids=f"o{opening}")
            for number in (1, 2, 3):
                request = req(f"a{opening}{number}")
                results.append(runtime.execute_action(request, authority=auth, adapter=crasher))
            assert file.live_actions == set()
    assert [one.reused_from_action_id for one in results] == [None, *["a11"] * 5]
    assert len({one.public() for one in results[1:]}) == 1
    assert {told(one) for one in results} == {("failed", "unknown", "reconcile_effect")}
    assert crasher.calls == world.marker_count() == 1
