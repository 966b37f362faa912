"""What may a bundle say that is false about a call whose process died, with every digest made good again?

Chapter: 004, "Checking it without trusting it" and "Where the cache stops".

Idea: a call leaves three things that can be held against one another: the bytes of the answer and what was
read from them, the attempts on record and the provider's own receipts, and the row that says how far it came.
Each of these forgeries changes one of them.

Always true:
  FC1. After every forgery here the chain and all manifests are consistent.

Not here: forged actions (`prove.forgeries`).
"""

from __future__ import annotations

import json

from codeai_lab.canonical import canonical_bytes
from codeai_lab.prove.copies import Copy, Corruption, kinds_in

FORGED_CALLS: list[Corruption] = []
kind = kinds_in(FORGED_CALLS)


@kind(code="interpretation-differs", needs="it holds no call whose answer was kept as bytes")
def edit_answer(copy: Copy) -> None:
    """A provider's stored answer says something else than what was read from it."""
    events = copy.events()
    read = next(one for one in events if one["kind"] == "attempt.interpreted")
    kept = next(
        one["payload"]["response"] for one in events
        if one["kind"] == "attempt.observed" and one["stream_id"] == read["stream_id"]
    )  # fmt: skip
    kept["body"] = kept["body"].replace("response", "refusal")
    copy.write_events(events)
    copy.seal()


@kind(code="effects-outside-bounds", needs="its world holds no receipt of a provider")
def ask_twice(copy: Copy) -> None:
    """A provider was asked once more than attempts were started."""
    logs = [path for path in sorted(copy.world.glob("*/receipts.jsonl")) if path.read_bytes()]
    lines = logs[0].read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    again = {"key": last["key"], "n": last["n"] + 1, "request_body_hash": last["request_body_hash"]}
    logs[0].write_bytes(b"".join(lines) + canonical_bytes(again) + b"\n")
    copy.seal()


@kind(code="row-stage", needs="no row of it has an unknown effect")
def forge_stage(copy: Copy) -> None:
    """The summary says that a call of unknown effect was answered."""
    results = copy.document("results")
    row = next(row for row in results["rows"] if row["stage"] == "effect_unknown")
    row |= {"stage": "completed", "provider_effect": "observed", "next_operation": "none"}
    copy.write_document("results", results)
    copy.seal()
