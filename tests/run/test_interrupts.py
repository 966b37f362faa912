"""Does an interrupt at any moment end the walk, and never lead to a silent second effect?"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import codeai_lab
from codeai_lab.decide.authority import Authority
from codeai_lab.errors import LedgerFailedError, LedgerFullError, OutcomeNotRecordedError
from codeai_lab.records import ActionRequest, EventDraft
from codeai_lab.run.effects import LineAdapter, MarkerWorld, raising
from codeai_lab.run.revisions import LAB, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger, Unchanged

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

Req = Callable[..., ActionRequest]
RuntimeOn = Callable[..., Runtime]

INTERRUPTS = pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
# The other rooms are pure: an interrupt there is an interrupt of the line that called.
ROOMS = tuple(str(Path(codeai_lab.__file__).parent / room) for room in ("run", "store"))


class Acting:
    """An adapter that counts its effects and may be interrupted in the middle of one."""

    def __init__(self, inside: Callable[[], object] | None = None) -> None:
        self.effects = 0
        self._inside = inside

    def execute(self, request: ActionRequest) -> str:
        self.effects += 1
        if self._inside is not None:
            self._inside()
        return "done"


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
@INTERRUPTS
def test_an_interrupt_of_the_adapter_is_raised_again_and_leaves_the_effect_unknown(
    interrupt: type[BaseException],
    moment: str,
    ledger: Ledger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Under `lab` the same key is then not run, reconcile is named, and the next calls work."""
    runtime = runtime_on(ledger)
    adapter: Any = {
        "before": LineAdapter(world, before=raising(interrupt())),
        "inside": Acting(raising(interrupt())),
        "after": LineAdapter(world, after=raising(interrupt())),
    }[moment]
    with pytest.raises(interrupt):
        runtime.execute_action(req("i1"), authority=auth, adapter=adapter)
    assert [event.kind for event in ledger.read_all()] == [
        "action.requested", "action.claimed", "action.execution_started",
    ]  # fmt: skip
    assert ledger.live_actions == set()
    good = LineAdapter(world)
    for name in ("i2", "i3"):
        again = runtime.execute_action(req(name), authority=auth, adapter=good)
        assert (again.status, again.effect_state, again.next_operation) == (
            "refused", "unknown", "reconcile_effect",
        )  # fmt: skip
    assert good.calls == 0
    assert runtime.execute_action(req("j1", "next"), authority=auth, adapter=good).status == "succeeded"
    assert ledger.live_actions == set()


@INTERRUPTS
def test_an_interrupt_before_the_start_leaves_nothing(
    interrupt: type[BaseException],
    ledger: Ledger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """While the world is read for the precondition nothing could have happened: a later run is allowed."""
    runtime, adapter = runtime_on(ledger), LineAdapter(world)
    ask = {"authority": auth, "adapter": adapter}
    with pytest.raises(interrupt):
        runtime.execute_action(req("i1", precondition="A"), read_state=raising(interrupt()), **ask)
    assert list(ledger.read_all()) == []
    result = runtime.execute_action(req("i2", precondition="A"), read_state=lambda: "A", **ask)
    assert (result.status, world.marker_count()) == ("succeeded", 1)


@INTERRUPTS
def test_an_interrupt_of_the_reading_afterwards_leaves_the_effect_unknown(
    interrupt: type[BaseException],
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """Between the effect and its record is no safe moment."""
    runtime, adapter = runtime_on(memory), LineAdapter(world)
    with pytest.raises(interrupt):
        runtime.execute_action(req("i1"), authority=auth, adapter=adapter, read_state=raising(interrupt()))
    assert runtime.execute_action(req("i2"), authority=auth, adapter=adapter).status == "refused"
    assert (adapter.calls, memory.live_actions) == (1, set())


@pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)
def test_no_rule_set_records_an_interrupt_as_a_failure(
    rules: Revision,
    memory: MemoryLedger,
    world: MarkerWorld,
    req: Req,
    auth: Authority,
    runtime_on: RuntimeOn,
) -> None:
    """It escapes under all of them; only `lab` then keeps the key from acting again."""
    runtime = runtime_on(memory, rules)
    with pytest.raises(KeyboardInterrupt):
        runtime.execute_action(
            req("i1"), authority=auth, adapter=LineAdapter(world, after=raising(KeyboardInterrupt()))
        )
    assert "action.completed" not in [event.kind for event in memory.read_all()]
    again = runtime.execute_action(req("i2"), authority=auth, adapter=LineAdapter(world))
    assert (again.status, world.marker_count()) == (("refused", 1) if rules is LAB else ("succeeded", 2))


# --- an interrupt at every line ------------------------------------------------------------------------


def interrupted_at(number: int, act: Callable[[], object]) -> KeyboardInterrupt | None:
    """Run `act` with a Ctrl-C at the n-th line of ours that it reaches; give the interrupt, if any."""
    reached = 0

    def within(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal reached
        # Between the body of a `with` and its exit the interpreter delivers no signal, so neither do we.
        if event == "line" and not getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            reached += 1
            if reached == number:
                raise KeyboardInterrupt
        return within

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        return within if frame.f_code.co_filename.startswith(ROOMS) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        act()
    except KeyboardInterrupt as interrupt:
        return interrupt
    finally:
        sys.settrace(before)
    return None


def sweep(
    ledger: Callable[[], Ledger], step: int, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> list[str]:
    """Interrupt one action at its n-th line, for every n; give what the next request of its key was told."""
    said = []
    number = 1
    while True:
        on, adapter, key = ledger(), Acting(), f"k{number}"
        runtime = runtime_on(on, ids=f"n{number}")
        # Held, as a notebook holds its last traceback, and every frame with it.
        interrupt = interrupted_at(
            number,
            lambda name=f"a{number}", key=key, runtime=runtime, adapter=adapter: runtime.execute_action(
                req(name, key), authority=auth, adapter=adapter
            ),
        )
        if interrupt is None:
            assert adapter.effects == 1
            return said
        assert on.live_actions == set(), f"still registered after an interrupt at line {number}"
        again = runtime.execute_action(req(f"b{number}", key), authority=auth, adapter=adapter)
        assert adapter.effects <= 1, f"a second effect after an interrupt at line {number}"
        if again.status == "succeeded":
            assert adapter.effects == 1
        else:
            assert (again.status, again.next_operation) == ("refused", "reconcile_effect")
        said.append(str(again.status) if again.reused_from_action_id is None else "replayed")
        fresh = runtime.execute_action(req(f"c{number}", f"other-{number}"), authority=auth, adapter=Acting())
        assert fresh.status == "succeeded"
        number += step


def test_an_interrupt_at_any_line_never_leads_to_a_second_effect(
    req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """First nothing happened and the key acts; then it is unknown; once recorded it replays."""
    said = sweep(MemoryLedger, 1, req, auth, runtime_on)
    order = [one for place, one in enumerate(said) if place == 0 or said[place - 1] != one]
    assert order == ["succeeded", "refused", "replayed"]
    assert min(said.count(one) for one in order) > 5


def test_an_interrupt_leaves_a_file_ledger_that_goes_on(
    tmp_path: Path, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The same on one file, interrupted here and there: no transaction and no registration is left."""
    with DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="L") as file:
        said = sweep(lambda: file, 7, req, auth, runtime_on)
        assert set(said) == {"succeeded", "refused", "replayed"}
        count = len(list(file.read_all()))
        assert file.sql("SELECT count(*) FROM events").rows == ((count,),)


# --- an outcome that the ledger does not take ----------------------------------------------------------


class Stubborn:
    """A ledger that stops taking completions when told to."""

    def __init__(self, inner: Ledger, error: Exception) -> None:
        self._inner, self._error = inner, error
        self.full = True

    def append(self, *drafts: EventDraft, unless_changed: Sequence[Unchanged] = ()) -> Any:
        if self.full and drafts[-1].kind == "action.completed":
            raise self._error
        return self._inner.append(*drafts, unless_changed=unless_changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@EITHER
@pytest.mark.parametrize(
    "error", [LedgerFullError("No space is left."), LedgerFailedError("The flush failed.")]
)
def test_an_outcome_that_cannot_be_recorded_is_said_to_be_unknown(
    error: Exception, ledger: Ledger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """The effect is there, the error is indefinite and keeps its cause; the same key is refused then."""
    full = Stubborn(ledger, error)
    runtime, adapter = runtime_on(full), LineAdapter(world)
    with pytest.raises(OutcomeNotRecordedError) as raised:
        runtime.execute_action(req("a1"), authority=auth, adapter=adapter)
    assert raised.value.definite is False
    assert raised.value.__cause__ is error
    assert (world.marker_count(), ledger.live_actions) == (1, set())
    full.full = False
    again = runtime.execute_action(req("a2"), authority=auth, adapter=adapter)
    assert (again.status, again.next_operation, world.marker_count()) == ("refused", "reconcile_effect", 1)


@pytest.mark.parametrize("name", ["1b3c7a2", "88d1291"])
def test_the_historical_rules_act_again_after_a_lost_record(
    name: str, memory: MemoryLedger, world: MarkerWorld, req: Req, auth: Authority, runtime_on: RuntimeOn
) -> None:
    """Their look-up reads completions only, so an unrecorded one is no reason not to act."""
    full = Stubborn(memory, LedgerFullError("No space is left."))
    runtime, adapter = runtime_on(full, REVISIONS[name]), LineAdapter(world)
    with pytest.raises(OutcomeNotRecordedError):
        runtime.execute_action(req("a1"), authority=auth, adapter=adapter)
    full.full = False
    assert runtime.execute_action(req("a2"), authority=auth, adapter=adapter).status == "succeeded"
    assert world.marker_count() == 2


def test_a_denial_that_cannot_be_recorded_did_nothing(
    memory: MemoryLedger, world: MarkerWorld, req: Req, runtime_on: RuntimeOn
) -> None:
    """Where no adapter ran, the ledger's own error is definite and comes through as it is."""
    full = Stubborn(memory, LedgerFullError("No space is left."))
    with pytest.raises(LedgerFullError) as raised:
        runtime_on(full).execute_action(req("a1"), adapter=LineAdapter(world))
    assert raised.value.definite
    assert (list(memory.read_all()), world.marker_count()) == ([], 0)
