"""What may a bundle say that is false, with every digest inside it made good again?

Chapter: 004, "Checking it without trusting it": the five seeded corruptions of the pinned rerun and the
mutated summary of the older demo; then more of the kind.

Idea: hashes prove that nobody changed the bytes *afterwards*. Here somebody writes chain and digests anew,
and only the meaning is left: a reuse link must resolve, a collision must leave a refusal, the world must fit
the ledger. The last two fit in every way, and only a digest that is kept outside tells them from the truth.

Always true:
  FO1. After every forgery here the chain and all manifests are consistent.

Not here: damage that digests or names give away (`prove.corruptions`), forged calls
(`prove.forged_calls`), forged trajectories and samples (`prove.forged_records`).
"""

from __future__ import annotations

import hashlib
import shutil
from typing import Any

from codeai_lab.canonical import canonical_bytes
from codeai_lab.prove.copies import Copy, Corruption, Event, kinds_in, without

FORGERIES: list[Corruption] = []
kind = kinds_in(FORGERIES)


@kind(code="reuse-unresolved", needs="it holds no replay")
def alter_provenance(copy: Copy) -> None:
    """A replay names another action as its original."""
    events = copy.events()
    replay = _replay(events)
    other = next(
        event["stream_id"] for event in events
        if event["kind"] == "action.completed" and event["idempotency_key"] != replay["idempotency_key"]
    )  # fmt: skip
    replay["payload"]["reused_from_action_id"] = other
    _rewrite(copy, events)


@kind(code="effects-outside-bounds", needs="its world holds no marker")
def inflate_receipt(copy: Copy) -> None:
    """One effect more in the world, receipt and marker."""
    folder = next(folder for folder in sorted(copy.world.iterdir()) if (folder / "markers").is_dir())
    receipts = folder / "receipts.jsonl"
    last = receipts.read_bytes().splitlines(keepends=True)[-1]
    number = len(receipts.read_bytes().splitlines()) + 1
    name = f"{number:04d}.txt"
    shutil.copyfile(folder / "markers" / "0001.txt", folder / "markers" / name)
    receipts.write_bytes(
        receipts.read_bytes()
        + last.replace(
            b'"marker":"%04d.txt","n":%d' % (number - 1, number - 1),
            b'"marker":"%s","n":%d' % (name.encode(), number),
        )
    )
    copy.seal()


@kind(code="refusal-missing", needs="it holds no refusal of a colliding key")
def drop_refusal(copy: Copy) -> None:
    """The refusal of a colliding key is gone."""
    events = copy.events()
    refusal = next(
        one for one in events if one["kind"] == "action.replay_refused" and one["payload"]["dimensions"]
    )
    _rewrite(copy, without(events, refusal))


@kind(code="request-missing", needs="it holds no completion")
def drop_request(copy: Copy) -> None:
    """A request is gone, what followed it is there."""
    events = copy.events()
    asked = [one for one in events if one["kind"] == "action.requested"]
    _rewrite(copy, without(events, next(one for one in asked if one["stream_id"] in _completed(events))))


@kind(code="replay-differs", needs="it holds no FAILED whose effect was possible")
def rewrite_failed(copy: Copy) -> None:
    """A FAILED completion says succeeded, its replay does not."""
    events = copy.events()
    _succeed(_failed(events)["payload"])
    _rewrite(copy, events)


@kind(code="row-effects-summary", needs="no case of it had one effect")
def claim_two_effects(copy: Copy) -> None:
    """The summary claims two physical effects."""
    results = copy.document("results")
    row = next(row for row in results["rows"] if row["effects_world"] == 1)
    row["effects_summary"] = 2
    copy.write_document("results", results)
    copy.seal()


@kind(code="row-statuses", needs="no row of it failed")
def edit_results_status(copy: Copy) -> None:
    """The summary calls a failure a success."""
    results = copy.document("results")
    row = next(row for row in results["rows"] if "failed" in row["statuses"])
    row["statuses"] = ["succeeded" if status == "failed" else status for status in row["statuses"]]
    copy.write_document("results", results)
    copy.seal()


@kind(code="expected-effects-world")
def edit_expectation(copy: Copy) -> None:
    """The protocol expects another number of effects."""
    protocol = copy.document("protocol")
    protocol["cases"][0]["expected"]["effects_world"] += 1
    copy.write_document("protocol", protocol)
    copy.seal()


@kind(code="fingerprint-disagrees")
def forge_fingerprint(copy: Copy) -> None:
    """A stored fingerprint is not that of its request."""
    events = copy.events()
    request = next(one for one in events if one["kind"] == "action.requested")
    request["payload"]["fingerprint"]["digest"] = "0" * 64
    _rewrite(copy, events)


@kind(code="replay-of-another", needs="it holds no replay, or its rules compare no fingerprints")
def edit_request(copy: Copy) -> None:
    """A replayed request asked for something else, consistently."""
    events = copy.events()
    replay = _replay(events)
    request = next(
        one for one in events if one["kind"] == "action.requested" and one["stream_id"] == replay["stream_id"]
    )
    payload = request["payload"]
    if payload["rules"] == "7a0d43b":
        raise KeyError("rules that replay by key alone take any operation for the same")
    payload["instruction"] += ", and one more"
    dimensions = payload["fingerprint"]["dimensions"]
    dimensions["instruction"] = hashlib.sha256(canonical_bytes(payload["instruction"])).hexdigest()
    signed = {"version": payload["fingerprint"]["version"], "dimensions": dimensions}
    payload["fingerprint"]["digest"] = hashlib.sha256(canonical_bytes(signed)).hexdigest()
    _rewrite(copy, events)


@kind(code="dimensions-differ", needs="it holds no refusal of a colliding key")
def hide_dimension(copy: Copy) -> None:
    """A refusal names a dimension that does not differ."""
    events = copy.events()
    refusal = next(
        one for one in events if one["kind"] == "action.replay_refused" and one["payload"]["dimensions"]
    )
    refusal["payload"]["dimensions"] = ["performer"]
    _rewrite(copy, events)


@kind(code="replay-of-replay", needs="it holds no replay")
def chain_replays(copy: Copy) -> None:
    """A replay names a replay as its original."""
    events = copy.events()
    replay = _replay(events)
    own = [one for one in events if one["stream_id"] == replay["stream_id"]]
    shift = len(events)
    again = [
        {
            **one, "stream_id": "again", "event_id": f"again-{place}", "seq": shift + place,
            "causation_id": None if one["causation_id"] is None else "again-1",
            "payload": {**one["payload"], "action_id": "again"},
        }
        for place, one in enumerate(own, start=1)
    ]  # fmt: skip
    again[-1]["payload"]["reused_from_action_id"] = replay["stream_id"]
    _rewrite(copy, [*events, *again])


@kind(code="start-disagrees", needs="its rules record no starts")
def drop_start(copy: Copy) -> None:
    """An execution start and its claim are gone, the completion is there."""
    events = copy.events()
    started = [one for one in events if one["kind"] == "action.execution_started"]
    start = next(one for one in started if one["stream_id"] in _completed(events))
    claims = [
        one for one in events if one["kind"] == "action.claimed" and one["stream_id"] == start["stream_id"]
    ]
    _rewrite(copy, without(events, start, *claims))


@kind(code="batch-torn", needs="its last batch is a single line")
def tear_batch(copy: Copy) -> None:
    """The last batch lacks its last line."""
    events = copy.events()
    if events[-1]["batch"][1] == 1:
        raise ValueError("its last batch is a single line")
    _rewrite(copy, events[:-1])


@kind(code="outside-digest-differs", needs="it holds no FAILED whose effect was possible", outside=True)
def forge_completion(copy: Copy) -> None:
    """A failure became a success, everywhere at once."""
    events = copy.events()
    failed = _failed(events)
    family = {failed["stream_id"]}
    for event in events:
        payload = event["payload"]
        if event["kind"] == "action.completed" and (
            event is failed or payload["reused_from_action_id"] == failed["stream_id"]
        ):
            family.add(event["stream_id"])
            _succeed(payload)
    case = failed["run_id"].partition("/")[2]
    _rewrite(copy, events, seal=False)
    results, protocol = copy.document("results"), copy.document("protocol")
    row = next(row for row in results["rows"] if row["case"] == case)
    plan = next(plan for plan in protocol["cases"] if plan["case"] == case)
    places = [place for place, asked in enumerate(plan["requests"]) if asked["id"] in family]
    for place in places:
        row["statuses"][place] = plan["expected"]["statuses"][place] = "succeeded"
        if row["labels"][place] == "unknown":
            row["labels"][place] = None
    row["effects_ledger"][0] += 1
    copy.write_document("results", results)
    copy.write_document("protocol", protocol)
    copy.seal()


@kind(code="outside-digest-differs", needs="one case is all it has", outside=True)
def truncate_consistently(copy: Copy) -> None:
    """The last case is gone, everywhere at once."""
    protocol, results = copy.document("protocol"), copy.document("results")
    if len(protocol["cases"]) < 2:
        raise ValueError("one case is all there is")
    case = protocol["cases"].pop()["case"]
    results["rows"] = [row for row in results["rows"] if row.get("case", row.get("policy")) != case]
    copy.write_document("protocol", protocol)
    copy.write_document("results", results)
    shutil.rmtree(copy.world / case)
    events = copy.events()
    _rewrite(copy, [event for event in events if event["run_id"].partition("/")[2] != case])


def _rewrite(copy: Copy, events: list[Event], *, seal: bool = True) -> None:
    copy.write_events(events)
    if seal:
        copy.seal()


def _completed(events: list[Event]) -> set[str]:
    return {one["stream_id"] for one in events if one["kind"] == "action.completed"}


def _replay(events: list[Event]) -> Event:
    return next(
        one for one in events if one["kind"] == "action.completed" and one["payload"]["reused_from_action_id"]
    )


def _failed(events: list[Event]) -> Event:
    """Find a FAILED whose effect was possible, one that was replayed where there is one."""
    replayed = {one["payload"].get("reused_from_action_id") for one in events}
    completions = [one for one in events if one["kind"] == "action.completed"]
    failed = [
        one
        for one in completions
        if one["payload"]["status"] == "failed" and one["payload"]["effect_possible"]
    ]
    return next((one for one in failed if one["stream_id"] in replayed), failed[0])


def _succeed(payload: dict[str, Any]) -> None:
    payload |= {"status": "succeeded", "error": None, "output": {"marker": "0001.txt"}}
