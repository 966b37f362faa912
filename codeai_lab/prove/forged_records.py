"""What may a bundle say that is false about a trajectory or a simulation, with every digest made good again?

Chapter: 003, "Keep recovery in the execution record"; 004, "Checking it without trusting it".

Idea: a trajectory is only worth its record: the failure stays in it, another path says so, and a checkpoint
rests on what was recorded before it. A simulation is only worth its samples. Each of these forgeries changes
one of these, and everything beside it that would give it away at once.

Always true:
  FT1. After every forgery here the chain and all manifests are consistent.

Not here: forged actions (`prove.forgeries`), forged calls (`prove.forged_calls`).
"""

from __future__ import annotations

from typing import Any

from codeai_lab.prove.copies import Copy, Corruption, Event, kinds_in, without

FORGED_RECORDS: list[Corruption] = []
kind = kinds_in(FORGED_RECORDS)


@kind(code="recovery-unfounded", needs="no call of it timed out")
def hide_timeout(copy: Copy) -> None:
    """A timeout is gone from the record, and from checkpoints, summary and protocol."""
    events = copy.events()
    failed = next(
        one for one in events
        if one["kind"] == "call.failed" and one["payload"]["error"]["code"] == "timeout"
    )  # fmt: skip
    own = [one for one in events if one["stream_id"] == failed["stream_id"]]
    for event in own:
        if event["causation_id"] == failed["event_id"]:
            event["causation_id"] = failed["causation_id"]
        if event["kind"] == "checkpoint.committed":
            event["payload"]["failures"] = []
    _rewrite(copy, without(events, failed))
    _say(copy, failed, timeout_in_record=False)


@kind(code="provenance-hidden", needs="it holds no fallback")
def hide_fallback(copy: Copy) -> None:
    """A fallback is gone from the record, and summary and protocol call the path unchanged."""
    events = copy.events()
    fallback = next(one for one in events if one["kind"] == "fallback.used")
    _rewrite(copy, without(events, fallback))
    _say(copy, fallback, provenance_changed=False)


@kind(code="checkpoint-incomplete", needs="it holds no checkpoint")
def lose_link(copy: Copy) -> None:
    """The newest checkpoint no longer says on which sources it rests."""
    events = copy.events()
    del _checkpoint(events)["payload"]["sources"]
    _rewrite(copy, events)


@kind(code="checkpoint-differs", needs="it holds no checkpoint of a film")
def edit_evidence(copy: Copy) -> None:
    """A checkpoint quotes a passage that its source does not have."""
    events = copy.events()
    sources = _checkpoint(events)["payload"]["sources"].values()
    passage = next(passage for source in sources for passage in source["passages"])
    passage["text"] += " Nobody wrote this."
    _rewrite(copy, events)


@kind(code="row-repeated-calls", needs="it has no restart")
def claim_no_repeats(copy: Copy) -> None:
    """The summary says that a restart repeated nothing."""
    results = copy.document("results")
    row = next(row for row in results["rows"] if row["policy"] == "restart")
    row |= {"repeated_calls": 0, "skipped_calls": row["skipped_calls"] + row["repeated_calls"]}
    copy.write_document("results", results)
    copy.seal()


@kind(code="row-sample", needs="it holds no sample")
def edit_sample(copy: Copy) -> None:
    """A value that was measured is another, the figures are the old ones."""
    events = copy.events()
    payload = next(one for one in events if one["kind"] == "sample.recorded")["payload"]
    if "values" in payload:
        payload["values"][0] += 1
    else:
        value = next(iter(payload["counts"]))
        payload["counts"][f"{float(value) + 0.5}"] = payload["counts"].pop(value)
    _rewrite(copy, events)


def _checkpoint(events: list[Event]) -> Event:
    return next(one for one in reversed(events) if one["kind"] == "checkpoint.committed")


def _say(copy: Copy, event: Event, **changes: Any) -> None:
    """Let summary and protocol say something else of the case of an event."""
    case = event["run_id"].partition("/")[2]
    results, protocol = copy.document("results"), copy.document("protocol")
    next(row for row in results["rows"] if row["policy"] == case).update(changes)
    next(plan for plan in protocol["cases"] if plan["case"] == case)["expected"].update(changes)
    copy.write_document("results", results)
    copy.write_document("protocol", protocol)
    copy.seal()


def _rewrite(copy: Copy, events: list[Event]) -> None:
    copy.write_events(events)
    copy.seal()
