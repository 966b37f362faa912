"""Does the verifier find what is wrong when every digest and the whole chain are right?"""

from __future__ import annotations

import hashlib
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from codeai_lab.prove import bundle, verify

Good = Callable[..., Path]
Event = dict[str, Any]


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify.verify(folder).findings}


def events_of(folder: Path) -> list[Event]:
    return [json.loads(line) for line in (folder / "data/ledger.jsonl").read_bytes().splitlines()[1:]]


def write(folder: Path, events: list[Event]) -> None:
    """Number and chain the events anew and make every digest good again."""
    path = folder / "data/ledger.jsonl"
    lines = [path.read_bytes().splitlines()[0]]
    for seq, event in enumerate(events, 1):
        lines.append(rfc8785.dumps(event | {"seq": seq, "prev": hashlib.sha256(lines[-1]).hexdigest()}))
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    bundle.seal(folder)


def pick(events: list[Event], kind: str, stream: str) -> Event:
    return next(event for event in events if (event["kind"], event["stream_id"]) == (kind, stream))


def document(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    path = folder / "data" / f"{name}.json"
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    bundle.seal(folder)


def sign(event: Event) -> None:
    """Give a request the fingerprint of what it asks for now."""
    payload, stored = event["payload"], event["payload"]["fingerprint"]
    stored["dimensions"] = {
        name: hashlib.sha256(rfc8785.dumps(payload[name])).hexdigest() for name in stored["dimensions"]
    }
    unsigned = {"version": stored["version"], "dimensions": stored["dimensions"]}
    stored["digest"] = hashlib.sha256(rfc8785.dumps(unsigned)).hexdigest()


# --- the ledger: (rule set, kind of event, stream, what is changed in its payload, the code that names it)

PAYLOAD_CHANGES: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("lab", "action.completed", "a2", {"reused_from_action_id": "nobody"}, "reuse-unresolved"),
    ("lab", "action.completed", "a2", {"reused_from_action_id": "a2"}, "reuse-unresolved"),
    ("lab", "action.completed", "a2", {"reused_from_action_id": "b1"}, "reuse-unresolved"),
    ("lab", "action.completed", "a2", {"reused_from_action_id": "c1"}, "reuse-unresolved"),
    ("lab", "action.completed", "a2", {"output": {"bytes": True}}, "replay-differs"),
    ("lab", "action.completed", "a2", {"observed": None}, "replay-differs"),
    ("lab", "action.completed", "a2", {"status": "failed"}, "replay-differs"),
    ("lab", "action.completed", "a2", {"effect_possible": True}, "completion-impossible"),
    ("lab", "action.completed", "a2", {"reused_from_action_id": None}, "not-replayed"),
    ("lab", "action.completed", "a1", {"effect_possible": False}, "start-disagrees"),
    ("1b3c7a2", "action.completed", "a1", {"effect_possible": False}, "completion-impossible"),
    ("lab", "action.completed", "a1", {"error": {"code": "adapter-raised"}}, "completion-impossible"),
    ("lab", "action.completed", "d1", {"error": None}, "completion-impossible"),
    ("lab", "action.completed", "d1", {"error": {"code": "not-authorised"}}, "completion-impossible"),
    ("lab", "action.completed", "g1", {"error": {"code": "adapter-raised"}}, "completion-impossible"),
    ("lab", "action.completed", "n2", {"error": {"code": ["not-authorised"]}}, "completion-impossible"),
    ("lab", "action.completed", "n2", {"status": "succeeded"}, "completion-impossible"),
    ("lab", "action.completed", "a1", {"status": "refused"}, "event-shape"),
    ("lab", "action.completed", "a1", {"extra": 1}, "event-shape"),
    ("lab", "action.completed", "a1", {"error": "text"}, "event-shape"),
    ("lab", "action.claimed", "a1", {"extra": 1}, "event-shape"),
    ("lab", "action.claimed", "a1", {"action_id": "a2"}, "stream-differs"),
    ("lab", "action.replay_refused", "b2", {"dimensions": []}, "dimensions-differ"),
    ("lab", "action.replay_refused", "b2", {"dimensions": ["payload"]}, "dimensions-differ"),
    ("lab", "action.replay_refused", "b2", {"dimensions": ["instruction", "payload"]}, "dimensions-differ"),
    ("lab", "action.replay_refused", "b2", {"dimensions": [1]}, "dimensions-differ"),
    ("lab", "action.replay_refused", "b2", {"fingerprint_version": "v2"}, "dimensions-differ"),
    ("lab", "action.replay_refused", "b2", {"original_action_id": "a1"}, "refusal-unresolved"),
    ("lab", "action.replay_refused", "b2", {"idempotency_key": "ka"}, "refusal-unresolved"),
    ("lab", "action.replay_refused", "b2", {"reason": "in-progress"}, "refusal-unfounded"),
    ("lab", "action.replay_refused", "o2", {"reason": "identity-conflict"}, "dimensions-differ"),
    ("lab", "action.replay_refused", "o2", {"reason": "tired"}, "refusal-unfounded"),
    ("a1b562a", "action.replay_refused", "b2", {"reason": "effect-unknown"}, "refusal-unfounded"),
    ("lab", "action.requested", "a1", {"instruction": "another"}, "fingerprint-disagrees"),
    ("lab", "action.requested", "a1", {"precondition": {}}, "fingerprint-disagrees"),
    ("lab", "action.requested", "a1", {"rules": "88d1291"}, "revision-differs"),
    ("lab", "action.requested", "a1", {"rules": "tomorrow"}, "revision-differs"),
    ("lab", "action.requested", "a1", {"capability": 5}, "event-shape"),
    ("lab", "action.requested", "a1", {"payload": []}, "event-shape"),
    ("lab", "call.manifest", "c1", {"fingerprint": {}}, "fingerprint-disagrees"),
    ("lab", "call.requested", "c1", {"prompt": "Other."}, "fingerprint-disagrees"),
    ("lab", "attempt.observed", "c1", {"attempt": 2}, "out-of-order"),
    ("lab", "attempt.started", "c1", {"attempt": True}, "out-of-order"),
    ("lab", "attempt.observed", "c1", {"response": "other"}, "observation-differs"),
    ("lab", "call.completed", "c2", {"replayed": False}, "completion-impossible"),
    ("lab", "call.completed", "c2", {"response": "other"}, "replay-differs"),
    ("lab", "call.completed", "c2", {"original_call_id": "a1"}, "reuse-unresolved"),
    ("lab", "call.completed", "c2", {"replayed": False, "original_call_id": None}, "not-replayed"),
    ("lab", "call.completed", "c1", {"call_id": "c2"}, "stream-differs"),
    ("lab", "call.replay_refused", "c3", {"dimensions": ["chamber"]}, "dimensions-differ"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "kind", "stream", "changes", "code"), PAYLOAD_CHANGES)
def test_a_false_payload_is_named(
    good: Good, rules: str, kind: str, stream: str, changes: dict[str, Any], code: str
) -> None:
    """With chain and digests made good again, what a payload cannot say where it stands is named."""
    folder = good(rules, rarer=True)
    events = events_of(folder)
    pick(events, kind, stream)["payload"].update(changes)
    write(folder, events)

    assert code in codes(folder)


ENVELOPE_CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    ("action.completed", "a1", {"causation_id": None}, "causation-broken"),
    ("action.completed", "a1", {"causation_id": "e2"}, "causation-broken"),
    ("action.completed", "a1", {"run_id": "retry-effects/E-drift"}, "stream-differs"),
    ("action.completed", "a1", {"idempotency_key": "kb"}, "stream-differs"),
    ("action.completed", "a1", {"batch": [1, 2]}, "batch-torn"),
    ("action.completed", "a1", {"batch": [0, 1]}, "event-shape"),
    ("action.completed", "a1", {"batch": [True, 1]}, "event-shape"),
    ("action.completed", "a1", {"kind": "action.imagined"}, "out-of-order"),
    ("action.requested", "a1", {"kind": "action.imagined"}, "unknown-kind"),
    ("action.completed", "a1", {"kind": "action.requested"}, "out-of-order"),
    ("action.completed", "a1", {"recorded_at_us": -1}, "event-shape"),
    ("action.completed", "a1", {"recorded_at_us": 1.5}, "event-shape"),
    ("action.completed", "a1", {"actor_id": None}, "event-shape"),
    ("action.completed", "a1", {"note": "more"}, "event-shape"),
    ("call.completed", "c2", {"kind": "call.manifest"}, "event-shape"),
]


@pytest.mark.parametrize(("kind", "stream", "changes", "code"), ENVELOPE_CHANGES)
def test_a_false_envelope_is_named(
    good: Good, kind: str, stream: str, changes: dict[str, Any], code: str
) -> None:
    """What an event says about its own place is held against the place where it stands."""
    folder = good("lab")
    events = events_of(folder)
    pick(events, kind, stream).update(changes)
    write(folder, events)

    assert code in codes(folder)


def test_an_event_with_the_id_of_its_request_is_named(good: Good) -> None:
    """Two events of one request do not share an id."""
    folder = good("lab")
    events = events_of(folder)
    request, completion = (pick(events, f"action.{kind}", "a1") for kind in ("requested", "completed"))
    completion["event_id"] = request["event_id"]
    write(folder, events)

    assert codes(folder) == {"causation-broken"}


@pytest.mark.parametrize(
    ("rules", "code"), [("1b3c7a2", "out-of-order"), ("88d1291", "out-of-order"), ("lab", "out-of-order")]
)
def test_an_answered_request_is_not_answered_again(good: Good, rules: str, code: str) -> None:
    """One request, one completion, under all rules."""
    folder = good(rules)
    events = events_of(folder)
    last = events[-1]
    events.append(json.loads(json.dumps(last)) | {"event_id": "again", "batch": [1, 1]})
    write(folder, events)

    assert code in codes(folder)


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ("1b3c7a2", "action.execution_started"),
        ("88d1291", "action.claimed"),
        ("7a0d43b", "action.replay_refused"),
    ],
)
def test_what_a_rule_set_never_records_is_named(good: Good, rules: str, kind: str) -> None:
    """Each rule set has its own kinds of events; another's are out of place."""
    folder = good(rules)
    events = events_of(folder)
    request = pick(events, "action.requested", "a1")
    payload: dict[str, Any] = {"action_id": "a1"}
    if kind == "action.replay_refused":
        payload |= {"dimensions": [], "fingerprint_version": "x", "idempotency_key": "ka"}
        payload |= {"original_action_id": "a1", "reason": "identity-conflict"}
    extra = request | {
        "kind": kind,
        "event_id": "extra",
        "causation_id": request["event_id"],
        "payload": payload,
    }
    events.insert(events.index(request) + 1, extra)
    write(folder, events)

    assert "out-of-order" in codes(folder)


def test_the_lab_never_appends_a_request_alone(good: Good) -> None:
    """A request is recorded together with what was decided about it, in a batch of that very size."""
    folder = good("lab")
    events = events_of(folder)
    for event in events:
        if event["stream_id"] == "a1" and event["batch"][1] == 3:
            event["batch"] = [1, 1]
    write(folder, events)

    assert "batch-shape" in codes(folder)


def test_a_batch_belongs_to_one_request(good: Good) -> None:
    """Two lines of one batch cannot speak of two requests."""
    folder = good("lab")
    events = events_of(folder)
    places = [place for place, event in enumerate(events) if event["stream_id"] in ("a2", "n2")]
    first, second = places[1], places[3]
    events[first], events[second] = events[second], events[first]
    write(folder, events)

    assert "batch-torn" in codes(folder)


def test_a_key_starts_once_under_the_lab_rules(good: Good) -> None:
    """Two claims of one key are two effects in the making."""
    folder = good("lab", rarer=True)
    events = events_of(folder)
    for event in events:
        if event["stream_id"] == "f2":
            event["idempotency_key"] = "kf1"
    write(folder, events)

    assert {"second-start", "not-replayed"} <= codes(folder)


def test_the_lab_never_replays_a_denial(good: Good) -> None:
    """A denial decides nothing for its key, so it cannot be what a replay returns."""
    folder = good("lab", rarer=True)
    events = events_of(folder)
    again = [json.loads(json.dumps(event)) for event in events if event["stream_id"] == "h1"]
    for place, event in enumerate(again):
        event |= {"stream_id": "h3", "event_id": f"h3-{place}"}
        event["causation_id"] = "h3-0" if place else None
        event["payload"]["action_id"] = "h3"
    again[1]["payload"]["reused_from_action_id"] = "h1"
    place = next(place for place, event in enumerate(events) if event["stream_id"] == "h2")
    write(folder, [*events[:place], *again, *events[place:]])

    assert "reuse-undecided" in codes(folder)


def test_a_replay_of_another_operation_is_named(good: Good, revision: str) -> None:
    """The same key with another operation is replayed by the oldest rules alone."""
    folder = good(revision)
    events = events_of(folder)
    request = pick(events, "action.requested", "a2")
    request["payload"]["instruction"] = "another"
    sign(request)
    write(folder, events)

    assert ("replay-of-another" in codes(folder)) == (revision != "7a0d43b")


def test_a_colliding_request_left_unanswered_is_named(good: Good) -> None:
    """The historical rules leave a call's collision without an event, never an action's."""
    folder = good("1b3c7a2")
    assert verify.verify(folder).valid
    events = [event for event in events_of(folder) if event["kind"] != "action.replay_refused"]
    write(folder, events)

    assert "refusal-missing" in codes(folder)


def test_two_keys_in_one_payload_are_found_at_any_depth(good: Good) -> None:
    """A duplicate key hides one of two values, even with the chain written anew over it."""
    folder = good("lab")
    path = folder / "data/ledger.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"n":1', b'"n":2,"n":1')
    write_raw(path, lines)

    assert "duplicate-key" in codes(folder)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"n":1', b'"n":NaN', "number-not-finite"),
        (b'"n":1', b'"n":1e400', "number-not-finite"),
        (b'"n":1', b'"n":9007199254740992', "not-canonical"),
        (b'"n":1', b'"n":"\\ud800"', "not-canonical"),
        (b'"n":1', b'"n":01', "not-json"),
        (b'"ligne"', b' "ligne"', "event-shape"),
        (b'"actor_id"', b' "actor_id"', "event-shape"),
        (b"alice", b"al\\u0069ce", "event-shape"),
        (b"alice", b"al\xffice", "not-utf8"),
        (b"alice", b"al\tice", "not-json"),
    ],
)
def test_lines_are_strict_json_in_one_form(good: Good, old: bytes, new: bytes, code: str) -> None:
    """Below a good chain there is one way of writing an event, and strict JSON in it."""
    folder = good("lab")
    path = folder / "data/ledger.jsonl"
    lines = path.read_bytes().splitlines()
    assert old in lines[1]
    lines[1] = lines[1].replace(old, new, 1)
    write_raw(path, lines)

    assert code in codes(folder)


def write_raw(path: Path, lines: list[bytes]) -> None:
    """Chain lines anew without parsing them, and make every digest good again."""
    for place in range(1, len(lines)):
        before, mark, after = lines[place].rpartition(b'"prev":"')
        lines[place] = before + mark + hashlib.sha256(lines[place - 1]).hexdigest().encode() + after[64:]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    bundle.seal(path.parents[1])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"schema_version":1', b'"schema_version":2', "unknown-version"),
        (b'"schema_version":1', b'"schema_version":"1"', "unknown-version"),
        (b'"ledger_id":"L1"', b'"ledger_id":"L2"', "ledger-id-differs"),
        (b'"ledger_id":"L1"', b'"ledger_id":null', "event-shape"),
        (b'"seq":0', b'"seq":1', "event-shape"),
    ],
)
def test_the_first_line_creates_the_ledger(good: Good, old: bytes, new: bytes, code: str) -> None:
    """Identity and version stand in the first line; of an unknown version nothing else is judged."""
    folder = good("lab")
    path = folder / "data/ledger.jsonl"
    lines = path.read_bytes().splitlines()
    lines[0] = lines[0].replace(old, new)
    write_raw(path, lines)

    assert codes(folder) == {code} if code == "unknown-version" else code in codes(folder)


def test_a_line_longer_than_any_ledger_writes_is_not_kept(good: Good) -> None:
    """V3: a line without an end does not fill the memory."""
    folder = good("lab")
    path = folder / "data/ledger.jsonl"
    with path.open("ab") as file:
        file.write(b"x" * (3 * 2**20))
    bundle.seal(folder)

    assert "line-torn" in codes(folder)


# --- the world


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"action_id":"a1"', b'"action_id":"nobody"', "receipt-unknown-action"),
        (b'"action_id":"a1"', b'"action_id":"b1"', "receipt-unknown-action"),
        (b'"action_id":"a1"', b'"action_id":"c1"', "receipt-unknown-action"),
        (b'"action_id":"a1"', b'"action_id":"a2"', "effects-outside-bounds"),
        (b'"n":1', b'"n":2', "receipt-shape"),
        (b'"n":1', b'"n":true', "receipt-shape"),
        (b'"marker":"0001.txt"', b'"marker":"0002.txt"', "marker-missing"),
        (b'"marker":"0001.txt"', b'"marker":"../markers/0001.txt"', "receipt-shape"),
        (b'"marker":"0001.txt"', b'"marker":"/0001.txt"', "receipt-shape"),
        (b"}\n", b"}", "receipt-shape"),
        (b"}\n", b"}\n\n", "receipt-shape"),
    ],
)
def test_a_false_receipt_is_named(good: Good, old: bytes, new: bytes, code: str) -> None:
    """Receipts and markers are one to one, and belong to an action that may have acted."""
    folder = good("lab")
    path = folder / "data/world/A-exact-duplicate/receipts.jsonl"
    path.write_bytes(path.read_bytes().replace(old, new))
    bundle.seal(folder)

    assert code in codes(folder)


def test_two_receipts_do_not_share_a_marker(good: Good) -> None:
    """One marker witnesses one effect."""
    folder = good("lab")
    path = folder / "data/world/D-fresh-key/receipts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0002.txt", b"0001.txt"))
    bundle.seal(folder)

    assert {"marker-shared", "receipt-missing"} <= codes(folder)


@pytest.mark.parametrize("name", ["A-exact-duplicate", "E-drift"])
def test_every_case_has_receipts(good: Good, name: str) -> None:
    """A case without effects has an empty file of receipts, not none."""
    folder = good("lab")
    (folder / "data/world" / name / "receipts.jsonl").unlink()
    bundle.seal(folder)

    assert "missing-file" in codes(folder)


def test_a_world_of_a_case_that_was_never_run_is_named(good: Good) -> None:
    """An effect of a case that the ledger does not know is an effect of nobody."""
    folder = good("lab")
    (folder / "data/world/E-drift").rename(folder / "data/world/Z-never-run")
    marker = folder / "data/world/Z-never-run/markers/0001.txt"
    marker.parent.mkdir()
    marker.touch()
    bundle.seal(folder)

    assert "receipt-missing" in codes(folder)


# --- the rows


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("requests", 3, "row-requests"),
        ("statuses", ["failed", "succeeded"], "row-statuses"),
        ("statuses", [], "row-statuses"),
        ("reused_from", [None, None], "row-reused-from"),
        ("raised", [None, "IdempotencyConflictError"], "row-raised"),
        ("raised", ["RuntimeError", None], "row-raised"),
        ("raised", [None], "row-raised"),
        ("effects_ledger", [0, 1], "row-effects-ledger"),
        ("effects_world", 2, "row-effects-world"),
        ("effects_summary", 2, "row-effects-summary"),
        ("labels", [None, "retry"], "row-labels"),
        ("event_kinds", ["action.requested"], "row-event-kinds"),
        ("provider_calls", 1, "row-provider-calls"),
        ("revision", "88d1291", "row-revision"),
        ("evidence_label", "rumour", "document-shape"),
        ("case", "A-other", "cases-differ"),
    ],
)
def test_a_false_row_is_named_field_by_field(good: Good, name: str, value: object, code: str) -> None:
    """What the producer says is compared with what ledger and world give, and the field is named."""
    folder = good("lab")
    document(folder, "results", lambda results: results["rows"][0].update({name: value}))

    assert code in codes(folder)


@pytest.mark.parametrize("name", ["requests", "effects_world", "statuses", "reused_from", "raised"])
def test_a_disappointed_expectation_is_named(good: Good, name: str) -> None:
    """What was expected before the run is compared too, field by field."""
    folder = good("lab")

    def change(protocol: Any) -> None:
        expected = protocol["cases"][0]["expected"]
        expected[name] = 7 if isinstance(expected[name], int) else ["other"]

    document(folder, "protocol", change)

    assert codes(folder) == {f"expected-{name.replace('_', '-')}"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda protocol: protocol["cases"].pop(), "cases-differ"),
        (lambda protocol: protocol["cases"].reverse(), "cases-differ"),
        (lambda protocol: protocol["cases"].append(protocol["cases"][0]), "cases-differ"),
        (lambda protocol: protocol["cases"][0]["requests"].reverse(), "requests-differ"),
        (lambda protocol: protocol["cases"][0]["requests"][0].update(key="kb"), "requests-differ"),
        (lambda protocol: protocol["cases"][0]["requests"][0].update(kind="call"), "requests-differ"),
        (lambda protocol: protocol.update(revision="88d1291"), "revision-differs"),
        (lambda protocol: protocol.update(ledger_id="L2"), "ledger-id-differs"),
        (lambda protocol: protocol.update(lesson="other"), "revision-differs"),
    ],
)
def test_another_plan_is_named(good: Good, change: Callable[[Any], None], code: str) -> None:
    """The protocol was fixed before the run: cases, requests and rules are held against the ledger."""
    folder = good("lab")
    document(folder, "protocol", change)

    assert code in codes(folder)


def test_the_order_of_threads_is_not_compared(good: Good) -> None:
    """In a marked case the requests may come in any order and each may have any status that was allowed."""
    folder = good("lab", rarer=True)

    def change(protocol: Any) -> None:
        plan = next(case for case in protocol["cases"] if case["marked"])
        plan["requests"].reverse()
        plan["expected"] |= {
            "statuses": ["in_progress", "succeeded", "denied"],
            "reused_from": ["x"],
            "raised": [],
        }

    document(folder, "protocol", change)
    assert verify.verify(folder).valid

    document(folder, "protocol", lambda protocol: forbid(protocol, "in_progress"))
    assert codes(folder) == {"expected-statuses"}


def forbid(protocol: Any, status: str) -> None:
    plan = next(case for case in protocol["cases"] if case["marked"])
    plan["expected"]["statuses"] = [other for other in plan["expected"]["statuses"] if other != status]


# --- V2: whatever the values


@pytest.mark.parametrize("depth", [80, 400, 900, 980])
def test_deep_values_end_in_findings(good: Good, depth: int) -> None:
    """V2: a value nested as deeply as a parser allows is no reason for a traceback."""
    folder = good("lab")
    path = folder / "data/ledger.jsonl"
    deep = b"[" * depth + b"]" * depth
    for old in (b'"response":"hello"', b'"output":null', b'"n":1', b'"dimensions":["instruction"]'):
        lines = path.read_bytes().splitlines()
        place = next(place for place, line in enumerate(lines) if old in line)
        lines[place] = lines[place].replace(old, old.partition(b":")[0] + b":" + deep, 1)
        write_raw(path, lines)

        assert not verify.verify(folder).valid


def test_values_of_any_type_end_in_a_verdict(good: Good) -> None:
    """V2: each field of each event and document, replaced by a value of another type, gives a verdict."""
    folder = good("lab", rarer=True)
    strange: list[Any] = [None, True, -1, 0.5, 2**70, "", "\ud800", "x", [], [[]], {}, {"a": [1]}]
    dice = random.Random(25)
    events = events_of(folder)
    first_of_each_kind = {event["kind"]: event for event in reversed(events)}.values()
    for event in first_of_each_kind:
        for holder in (event, event["payload"]):
            for name, value in list(holder.items()):
                holder[name] = dice.choice(strange)
                write_loosely(folder, events)
                verify.verify(folder)
                holder[name] = value
    write(folder, events)
    assert verify.verify(folder).valid

    for name in ("protocol", "results", "environment"):
        original = json.loads((folder / f"data/{name}.json").read_bytes())
        for path in paths_into(original):
            value = json.loads(json.dumps(original))
            holder = value
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = dice.choice(strange)
            (folder / f"data/{name}.json").write_text(json.dumps(value), encoding="utf-8")
            bundle.seal(folder)
            verify.verify(folder)
        document(folder, name, lambda value, original=original: value.update(original) or None)


def paths_into(value: Any) -> list[list[Any]]:
    """Give the way to every value inside a document, but of each list only the first item."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value[:1]))
    ways = []
    for name, inner in items:
        ways.append([name])
        if isinstance(inner, dict | list):
            ways += [[name, *way] for way in paths_into(inner)]
    return ways


def write_loosely(folder: Path, events: list[Event]) -> None:
    """Write events that may have no canonical form, chained anew."""
    path = folder / "data/ledger.jsonl"
    lines = [path.read_bytes().splitlines()[0]]
    for event in events:
        linked = event | {"prev": hashlib.sha256(lines[-1]).hexdigest()}
        lines.append(json.dumps(linked, sort_keys=True, separators=(",", ":")).encode())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    bundle.seal(folder)


# --- V3


def test_what_is_kept_does_not_grow_with_what_the_lines_hold(good: Good, script: Any, tmp_path: Path) -> None:
    """V3: replays of a hundred times the size are judged with about the same memory."""

    def peak(size: int) -> int:
        written = script("lab") if size == 1 else type(script("lab"))(tmp_path / "large", "lab")
        answer = {"status": "succeeded", "output": "x" * size}
        written.begin("A")
        written.carried_out(written.asked("action", "a", "k"), "line\n", **answer)
        for number in range(300):
            again = written.asked("action", f"r{number}", "k")
            written.completed_at_once(again, reused_from_action_id="a", **answer)
        count = 301
        written.end(
            ["succeeded"] * count, [None, *["a"] * 300], [None] * count, [1, 1], [None, *["replay"] * 300]
        )
        written.freeze(tmp_path / f"bundle-{size}")
        tracemalloc.start()
        assert verify.verify(tmp_path / f"bundle-{size}").valid
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    small, large = peak(1), peak(20_000)
    assert (tmp_path / "bundle-20000/data/ledger.jsonl").stat().st_size > 6_000_000
    assert large < small + 4_500_000  # two blocks of the file being read, one of them split into lines
