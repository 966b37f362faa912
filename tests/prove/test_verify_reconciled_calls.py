"""Does the verifier know what reconciling leaves of a call, a denied call, and rules without a name here?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.prove import bundle
from codeai_lab.prove.copies import Copy, Event
from codeai_lab.prove.verify import verify
from codeai_lab.run.callwalk import Work
from codeai_lab.run.provider import ReceiptLookup, SyntheticProvider
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.ledger import DuckDBLedger

JUDGE = Authority.of(RECONCILE)
LESSON = "reconciled-calls"
Play = Callable[[Runtime, SyntheticProvider, ReceiptLookup], Any]


class CannotTell:
    """A provider whose receipts say nothing."""

    def find(self, request: Mapping[str, Any]) -> None:
        del request

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        del reference
        return False


def die(runtime: Runtime, provider: SyntheticProvider, before: str, call: str = "c") -> None:
    work = Work(
        work_id=f"w-{call}", call_id=call, idempotency_key="k", directive="find out", prompt="Say it.",
        offered={"chapter": "text"},
    )  # fmt: skip
    walk = open_work(runtime._bench, work, provider)
    while walk.next_step != before:
        walk.step()
    walk.close()


def confirmed(runtime: Runtime, provider: SyntheticProvider, receipts: ReceiptLookup) -> None:
    die(runtime, provider, "observe")
    runtime.reconcile_call("c", authority=NO_AUTHORITY, receipt_lookup=receipts)
    runtime.reconcile_call("c", authority=JUDGE, receipt_lookup=CannotTell())
    runtime.reconcile_call("c", authority=JUDGE, receipt_lookup=receipts)
    runtime.reconcile_call("c", authority=JUDGE, receipt_lookup=receipts)


def absent(runtime: Runtime, provider: SyntheticProvider, receipts: ReceiptLookup) -> None:
    die(runtime, provider, "ask_provider")
    runtime.reconcile_call("c", authority=JUDGE, receipt_lookup=receipts)


def denied(runtime: Runtime, provider: SyntheticProvider, _: ReceiptLookup) -> None:
    work = Work(
        work_id="w", call_id="c", idempotency_key="k", directive="find out", prompt="Say it.",
        offered={"chapter": "text"},
    )  # fmt: skip
    open_work(runtime._bench, work, provider, authority=NO_AUTHORITY).run()


# What was played, then stage, effect, next operation and risk as `WorkState` has them, and the receipts.
CASES: dict[str, tuple[Play, str, str, str, bool, int]] = {
    "confirmed": (confirmed, "reconciled", "observed", "none", True, 1),
    "absent": (absent, "reconciled", "none", "start_call", False, 0),
    "denied": (denied, "denied", "none", "none", False, 0),
}


def build(to: Path, name: str) -> Path:
    """Play one case and freeze what it left."""
    play, stage, effect, then, risk, receipts = CASES[name]
    log = to / "world" / name / "receipts.jsonl"
    log.parent.mkdir(parents=True)
    log.touch()
    clock = ManualClock(tick_us=1)
    with DuckDBLedger(to / "lab.duckdb", ledger_id="L", clock=clock) as ledger:
        runtime = Runtime(
            ledger, clock=clock, new_id=counted_ids("e"), run_id=f"{LESSON}/{name}", actor_id="t"
        )
        play(runtime, SyntheticProvider(log), ReceiptLookup(log))
        kinds = [event.kind for event in ledger.read_all()]
        status = "denied" if name == "denied" else None
        row = {
            "case": name, "stage": stage, "provider_effect": effect, "next_operation": then,
            "duplicate_risk": risk, "receipts": receipts, "events": len(kinds), "then": None, "outcome": None,
            "receipts_after": receipts, "events_after": len(kinds), "evidence_label": "demo",
        }  # fmt: skip
        plan = {
            "format": "codeai-lab-protocol-v1", "lesson": LESSON, "revision": "lab", "seed": 0,
            "ledger_id": "L", "cases": [{
                "case": name, "question": "?", "marked": [],
                "requests": [{"id": "c", "kind": "call", "key": "k"}],
                "expected": {"requests": 1, "statuses": [status], "reused_from": [None], "raised": [None],
                             "effects_world": receipts},
            }],
        }  # fmt: skip
        results = {
            "format": "codeai-lab-results-v1", "lesson": LESSON, "revision": "lab",
            "producer": {"name": "codeai_lab", "version": "0"}, "rows": [row],
        }  # fmt: skip
        bundle.freeze(
            to / "bundle", protocol=plan, ledger=ledger.journal, world=to / "world", results=results,
            environment=bundle.environment(), producer="codeai_lab 0", readme="Calls.\n",
        )  # fmt: skip
    return to / "bundle"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build(tmp_path_factory.mktemp(name), name) for name in CASES}


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify(folder).findings}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_of_a_call_is_accepted(frozen: dict[str, Path], name: str) -> None:
    """Verdicts, refusals to judge and denials fit what was asked and what the provider shows."""
    assert verify(frozen[name]).findings == ()


def test_the_cases_hold_what_they_are_for(frozen: dict[str, Path]) -> None:
    """The two events of reconciling are there, and a completion with an error."""
    events = [event for folder in frozen.values() for event in Copy(folder).events()]

    assert {event["kind"] for event in events} >= {"call.reconciled", "call.reconcile_refused"}
    assert any("error" in event["payload"] for event in events if event["kind"] == "call.completed")


def at(kind: str, which: int = 0) -> Callable[[list[Event]], Event]:
    return lambda events: [event for event in events if event["kind"] == kind][which]


@pytest.mark.parametrize(
    ("name", "find", "changes", "code"),
    [
        ("confirmed", at("call.reconciled", 1), {"evidence": []}, "verdict-unfounded"),
        ("confirmed", at("call.reconciled", 1), {"evidence": [{"receipt": 7}]}, "evidence-unresolved"),
        ("confirmed", at("call.reconciled", 1), {"verdict": "no_effect_confirmed"}, "effects-outside-bounds"),
        ("confirmed", at("call.reconciled", 1), {"verdict": "imagined"}, "verdict-unfounded"),
        ("confirmed", at("call.reconciled", 0), {"verdict": "no_effect_confirmed"}, "verdict-unfounded"),
        ("confirmed", at("call.reconcile_refused"), {"reason": "nothing-to-reconcile"}, "verdict-unfounded"),
        ("confirmed", at("call.reconcile_refused", 1), {"reason": "tired"}, "verdict-unfounded"),
        ("confirmed", at("call.reconcile_refused"), {"call_id": "d"}, "stream-differs"),
        ("absent", at("call.reconciled"), {"verdict": "still_unknown"}, "row-stage"),
        ("absent", at("call.reconciled"), {"verdict": "effect_confirmed"}, "verdict-unfounded"),
        ("denied", at("call.completed"), {"status": "failed"}, "completion-impossible"),
        ("denied", at("call.completed"), {"response": "text"}, "completion-impossible"),
        ("denied", at("call.completed"), {"error": None}, "event-shape"),
        ("denied", at("call.completed"), {"more": 1}, "event-shape"),
    ],
)
def test_a_false_word_is_named(
    frozen: dict[str, Path], tmp_path: Path, name: str, find: Callable[[list[Event]], Event],
    changes: dict[str, Any], code: str,
) -> None:  # fmt: skip
    """A verdict is about a call that is open, and rests on the provider's receipts; a denial asks nobody."""
    shutil.copytree(frozen[name], tmp_path / "copy")
    copy = Copy(tmp_path / "copy")
    events = copy.events()
    find(events)["payload"].update(changes)
    copy.write_events(events)
    copy.seal()

    assert code in codes(copy.folder)


# --- rules that say themselves whether they record starts --------------------------------------------------


@pytest.mark.parametrize(
    ("said", "bounds", "label"),
    [(None, [0, 1], "unknown"), (False, [0, 1], "unknown"), (True, [0, 0], None)],
)
def test_other_rules_are_taken_at_their_word(
    script: Callable[[str], Any], tmp_path: Path, said: Any, bounds: list[int], label: str | None
) -> None:
    """A request without a start had no effect where the rules record every start; else nobody knows."""
    written = script("my-own")
    written.begin("A")
    name, kind, payload = written.asked("action", "a1", "k")
    written.append((name, kind, payload | ({} if said is None else {"records_starts": said})))
    written.end([None], [None], [None], bounds, [label])

    written.freeze(tmp_path / "bundle")

    assert verify(tmp_path / "bundle").findings == ()


def test_other_rules_may_carry_an_operation_out_again(script: Callable[[str], Any], tmp_path: Path) -> None:
    """What rules without a name here do with a key is not judged; start, completion and effects are."""
    written = script("my-own")
    written.begin("A")
    done = {"status": "succeeded", "output": None, "observed": None}
    for name in ("a1", "a2"):
        stream, kind, payload = written.asked("action", name, "k")
        written.carried_out((stream, kind, payload | {"records_starts": False}), f"{name}\n", **done)
    written.end(["succeeded"] * 2, [None] * 2, [None] * 2, [2, 2], [None, "retry"])
    written.freeze(tmp_path / "bundle")

    assert verify(tmp_path / "bundle").findings == ()
