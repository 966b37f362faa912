"""Does the verifier know what a chain of calls leaves when its process dies, and what the next one did?"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.prove.copies import Copy, Event
from codeai_lab.prove.corrupt import KINDS, corrupt
from codeai_lab.prove.verify import verify

RESUMED = "killed-after-manifest"


@pytest.fixture(scope="module")
def frozen(frozen_working_state: Path) -> Path:
    return frozen_working_state


@pytest.fixture
def copy(frozen: Path, tmp_path: Path) -> Copy:
    shutil.copytree(frozen, tmp_path / "copy")
    return Copy(tmp_path / "copy")


def codes(folder: Path) -> frozenset[str]:
    return frozenset(finding.code for finding in verify(folder).findings)


def pick(events: list[Event], case: str, kind: str) -> Event:
    return next(one for one in events if one["run_id"].endswith(f"/{case}") and one["kind"] == kind)


def rewrite(copy: Copy, change: Callable[[list[Event]], Any]) -> None:
    events = copy.events()
    change(events)
    copy.write_events(events)
    copy.seal()


def test_what_killed_processes_left_is_accepted(frozen: Path) -> None:
    """The eight cases, really killed, hold together; each is marked as played by processes."""
    report = verify(frozen)
    plans = json.loads((frozen / "data/protocol.json").read_bytes())["cases"]

    assert (report.valid, report.findings) == (True, ())
    assert [plan["marked"] for plan in plans] == [["processes"]] * 8


PAYLOAD_CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    ("clean-complete", "directive.opened", {"work_id": "other"}, "stream-differs"),
    ("clean-complete", "task.created", {"prompt": "other"}, "intention-differs"),
    ("clean-complete", "task.created", {"required": ["source"]}, "intention-differs"),
    ("clean-complete", "context.item_offered", {"content": "other"}, "intention-differs"),
    ("clean-complete", "context.compilation_requested", {"offered": []}, "intention-differs"),
    ("clean-complete", "context.compiled", {"context": {}}, "intention-differs"),
    ("clean-complete", "context.compiled", {"more": 1}, "event-shape"),
    ("compilation-failed", "context.compilation_failed", {"missing": []}, "intention-differs"),
    ("clean-complete", "call.requested", {"prompt": "other"}, "fingerprint-disagrees"),
    ("clean-complete", "call.manifest", {"request_body_hash": "0" * 64}, "body-hash-differs"),
    ("clean-complete", "attempt.observed", {"response": "text"}, "event-shape"),
    ("clean-complete", "attempt.observed", {"attempt": 2}, "out-of-order"),
    (
        "clean-complete", "attempt.observed", {"response": {"body": "{}", "encoding": "utf-8"}},
        "interpretation-differs",
    ),
    (
        "clean-complete", "attempt.observed", {"response": {"body": "{}", "encoding": "base64"}},
        "interpretation-differs",
    ),
    ("clean-complete", "attempt.interpreted", {"status": "failed"}, "interpretation-differs"),
    ("clean-complete", "attempt.interpreted", {"response": None}, "interpretation-differs"),
    ("clean-complete", "attempt.interpreted", {"error": "none"}, "interpretation-differs"),
    ("clean-complete", "attempt.retry_decided", {"retry": True}, "interpretation-differs"),
    ("clean-complete", "attempt.completed", {"status": "failed"}, "interpretation-differs"),
    ("clean-complete", "call.status_decided", {"status": "failed"}, "interpretation-differs"),
    ("clean-complete", "call.completed", {"status": "failed"}, "observation-differs"),
    ("clean-complete", "call.completed", {"response": {"text": "other"}}, "observation-differs"),
    ("killed-after-observation", "call.completed", {"response": None}, "observation-differs"),
    (RESUMED, "call.resumed", {"stage": "requested"}, "intention-differs"),
    (RESUMED, "call.resumed", {"request_body_hash": "0" * 64}, "body-hash-differs"),
    (RESUMED, "call.resumed", {"new_call_id": "other"}, "intention-differs"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "kind", "changes", "code"), PAYLOAD_CHANGES)
def test_a_false_payload_is_named(
    copy: Copy, case: str, kind: str, changes: dict[str, Any], code: str
) -> None:
    """Every step goes by the one before it, and what is made of an answer follows from its bytes."""
    rewrite(copy, lambda events: pick(events, case, kind)["payload"].update(changes))

    assert code in codes(copy.folder)


@pytest.mark.parametrize(
    ("case", "kind", "changes", "code"),
    [
        ("clean-complete", "task.created", {"causation_id": None}, "causation-broken"),
        ("clean-complete", "call.requested", {"causation_id": "nothing"}, "causation-broken"),
        ("clean-complete", "attempt.started", {"causation_id": None}, "causation-broken"),
        ("clean-complete", "task.created", {"idempotency_key": "other"}, "stream-differs"),
        ("clean-complete", "context.compiled", {"kind": "context.imagined"}, "unknown-kind"),
        ("clean-complete", "attempt.completed", {"kind": "attempt.started"}, "out-of-order"),
        (RESUMED, "call.resumed", {"batch": [1, 1]}, "batch-shape"),
    ],
)
def test_a_false_envelope_is_named(
    copy: Copy, case: str, kind: str, changes: dict[str, Any], code: str
) -> None:
    """Causes, keys, batches and kinds are held against the place where an event stands."""
    rewrite(copy, lambda events: pick(events, case, kind).update(changes))

    assert code in codes(copy.folder)


@pytest.mark.parametrize(
    "kind", ["context.item_offered", "call.manifest", "attempt.started", "attempt.observed"]
)
def test_a_step_that_is_missing_is_named(copy: Copy, kind: str) -> None:
    """No step of the chain can be left out."""
    rewrite(copy, lambda events: events.remove(pick(events, "clean-complete", kind)))

    assert "out-of-order" in codes(copy.folder)


ROW_CHANGES: list[tuple[str, str, Any, str]] = [
    ("clean-complete", "stage", "observed", "row-stage"),
    ("clean-complete", "provider_effect", "none", "row-provider-effect"),
    ("clean-complete", "next_operation", "reinterpret", "row-next-operation"),
    ("clean-complete", "duplicate_risk", True, "row-duplicate-risk"),
    ("clean-complete", "receipts", 0, "row-receipts"),
    ("clean-complete", "events", 13, "row-events"),
    ("clean-complete", "then", "resume", "row-outcome"),
    ("clean-complete", "outcome", "succeeded", "row-outcome"),
    ("clean-complete", "receipts_after", 2, "row-receipts-after"),
    ("clean-complete", "events_after", 13, "row-events-after"),
    ("clean-complete", "events_after", 15, "tail-missing"),
    ("clean-complete", "evidence_label", "rumour", "document-shape"),
    ("compilation-failed", "next_operation", "recompile", "row-next-operation"),
    (RESUMED, "then", "naive-restart", "row-then"),
    (RESUMED, "outcome", "failed", "row-outcome"),
    (RESUMED, "receipts", 1, "row-receipts"),
    ("killed-after-manifest-drift", "outcome", "refused: start_call", "row-outcome"),
    ("killed-during-effect", "outcome", "refused: request_body_hash", "row-outcome"),
    ("killed-during-effect", "then", "naive-restart", "row-then"),
    ("killed-during-effect-naive-restart", "receipts", 2, "row-receipts"),
    ("killed-after-observation", "then", None, "row-then"),
]


@pytest.mark.parametrize(("case", "name", "value", "code"), ROW_CHANGES)
def test_a_false_row_is_named_field_by_field(copy: Copy, case: str, name: str, value: Any, code: str) -> None:
    """Where a process stood and what the next one did are worked out from ledger and provider."""
    results = copy.document("results")
    next(row for row in results["rows"] if row["case"] == case)[name] = value
    copy.write_document("results", results)
    copy.seal()

    assert code in codes(copy.folder)
    assert all(said.startswith(("row-", "tail-", "document-")) for said in codes(copy.folder))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"key": "other"}, "receipt-unknown-call"),
        ({"request_body_hash": "0" * 64}, "receipt-unknown-call"),
        ({"n": 2}, "receipt-shape"),
        ({"more": 1}, "receipt-shape"),
    ],
)
def test_a_false_receipt_of_a_provider_is_named(copy: Copy, changes: dict[str, Any], code: str) -> None:
    """A provider was asked for a call that is on record, in the words that are."""
    log = copy.world / "clean-complete" / "receipts.jsonl"
    log.write_bytes(canonical_bytes(json.loads(log.read_bytes()) | changes) + b"\n")
    copy.seal()

    assert code in codes(copy.folder)


def test_a_provider_that_says_it_was_not_asked_is_named(copy: Copy) -> None:
    """An answer that was observed came from somebody."""
    (copy.world / "clean-complete" / "receipts.jsonl").write_bytes(b"")
    copy.seal()

    assert "effects-outside-bounds" in codes(copy.folder)


def test_the_links_of_processes_are_compared(copy: Copy) -> None:
    """Only where threads race it is nobody's promise which request is replayed."""
    protocol = copy.document("protocol")
    protocol["cases"][0]["expected"]["reused_from"] = ["another"]
    copy.write_document("protocol", protocol)
    copy.seal()

    assert codes(copy.folder) == {"expected-reused-from"}


def test_every_kind_of_corruption_that_applies_is_named(frozen: Path, tmp_path: Path) -> None:
    """CO2 for a bundle of calls: each is refused by its own code, and told from every other."""
    found, outside = defaultdict(list), []
    for kind in KINDS:
        try:
            corrupt(frozen, kind.name, tmp_path / kind.name)
        except CorruptionDoesNotApplyError:
            continue
        if kind.outside:
            outside.append(codes(tmp_path / kind.name))
            continue
        said = codes(tmp_path / kind.name)
        assert kind.code in said, kind.name
        found[said].append(kind.name)

    assert [names for names in found.values() if len(names) > 1] == []
    assert {"edit-answer", "ask-twice", "forge-stage"} <= {name for [name] in found.values()}
    assert outside == [frozenset()]


def test_values_of_any_type_end_in_a_verdict(copy: Copy) -> None:
    """V2 for calls, works and their rows: whatever stands in a field, the answer is findings."""
    strange: list[Any] = [None, True, -1, 0.5, 2**70, "", "\ud800", "x", [], [[]], {}, {"a": [1]}]
    dice = random.Random(22)
    events = copy.events()
    for event in {event["kind"]: event for event in reversed(events)}.values():
        for holder in (event, event["payload"]):
            for name, value in list(holder.items()):
                holder[name] = dice.choice(strange)
                write_loosely(copy, events)
                verify(copy.folder)
                holder[name] = value
    copy.write_events(events)
    results = copy.document("results")
    for name, value in list(results["rows"][3].items()):
        for other in strange:
            results["rows"][3][name] = other
            (copy.folder / "data/results.json").write_text(json.dumps(results), encoding="utf-8")
            copy.seal()
            verify(copy.folder)
        results["rows"][3][name] = value


def write_loosely(copy: Copy, events: list[Event]) -> None:
    """Write events that may have no canonical form, chained anew."""
    lines = [copy.ledger.read_bytes().splitlines()[0]]
    for event in events:
        linked = event | {"prev": hashlib.sha256(lines[-1]).hexdigest()}
        lines.append(json.dumps(linked, sort_keys=True, separators=(",", ":")).encode())
    copy.write_lines([line + b"\n" for line in lines])
    copy.seal()
