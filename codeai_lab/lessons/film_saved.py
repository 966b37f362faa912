"""What can be resumed from an answer only, from a structured checkpoint, from a whole transcript?

Chapter: 003, "Resume from the last verified checkpoint": "Ex Machina is a good choice" cannot be tested, and
every token of a transcript buries what is to be tested.

Idea: one trajectory is run to its failure. Then its newest checkpoint is put away in three forms, each in a
ledger of its own that holds nothing else that was done, and a new process goes on from there. What it makes
of the form is read off its record: what it loads, and what it does again.

    answer       the sentence that a reader was told
    checkpoint   the eight links
    transcript   the request and every call with its answer, in words and in order

Always true:
  SV1. All three are read by the same function, which refuses two of them by the links that they lack.
  SV2. What is repeated is counted from the record of the new process; sizes are of canonical bytes.

Not here: the form of a checkpoint (`decide.checkpoints`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.checkpoints import (
    COMMITTED,
    SCHEMA,
    TYPE,
    Checkpoint,
    newest_valid_checkpoint,
    read_checkpoint,
)
from codeai_lab.decide.recovery import Policy
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_rows import call_key, films_kept, succeeded_calls
from codeai_lab.records import Event, EventDraft
from codeai_lab.store.memory import MemoryLedger

SAVED_COLUMNS = (
    "saved", "loads", "lacks", "which_request", "which_source", "validated", "verified_kept",
    "repeated_calls", "bytes",
)  # fmt: skip


def saved_rows(story: Story = STORY) -> list[dict[str, Any]]:
    """Go on from each of the three forms and give what came of it.

    Raises: ValueError for a story that commits no more than checkpoint v1 before its failure.
    """
    run = Play(story, Policy.RESUME, MemoryLedger())
    run.to_the_failure()
    events = run.events
    newest = newest_valid_checkpoint(events)
    if newest.checkpoint is None or newest.checkpoint.version < 2:
        raise ValueError("the story needs a verified branch before its failure")
    until = next(place for place, event in enumerate(events) if event.seq == newest.seq)
    return [
        _row("answer", _saved({"answer": _answer(newest.checkpoint)}), events[:2], story, events),
        _row("checkpoint", events[until].payload, events[:until], story, events),
        _row("transcript", _saved({"transcript": transcript(events)}), events[:2], story, events),
    ]


def transcript(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Give the exchange as it was, in order: who said what, and no word on what became of it."""
    said = [{"role": "user", "content": events[0].payload["request"]["goal"]}]
    for event in events:
        if event.kind == "call.started":
            asked = {name: event.payload[name] for name in ("tool", "arguments")}
            said.append({"role": "assistant", "content": asked})
        elif event.kind in ("call.succeeded", "call.failed"):
            answer = event.payload.get("result", event.payload.get("error"))
            said.append({"role": "tool", "content": answer})
    return said


def _row(
    name: str,
    saved: Mapping[str, Any],
    before: Sequence[Event],
    story: Story,
    original: Sequence[Event],
) -> dict[str, Any]:
    ledger = MemoryLedger()
    ledger.append(*(_again(event) for event in before))
    [put] = ledger.append(_again(replace(original[1], event_id="saved", payload=saved)))
    read = read_checkpoint(put, before)
    run = Play(replace(story, fails=()), Policy.RESUME, ledger, process="successor")
    run.harness.run(run.name)
    known = {call_key(call) for call in succeeded_calls(original)}
    again = [event for event in run.events if event.kind == "call.started" and event.seq > put.seq]
    loads, words = isinstance(read, Checkpoint), str(saved)
    version = saved["version"] if loads else 1
    return {
        "saved": name,
        "loads": loads,
        "lacks": [] if isinstance(read, Checkpoint) else list(read.links),
        "which_request": _said(loads, original[0].payload["request"]["goal"] in words),
        "which_source": _said(loads, any(source in words for source in _sources(original))),
        "validated": "says so, and by which decision" if loads else "not said",
        "verified_kept": films_kept(run.events, version),
        "repeated_calls": sum(call_key(call) in known for call in again),
        "bytes": len(canonical_bytes(dict(saved))),
    }


def _said(loads: bool, in_words: bool) -> str:
    if loads:
        return "named"
    return "somewhere in its words" if in_words else "not said"


def _answer(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.evidence.items[-1].result['title']} is a good choice."


def _sources(events: Sequence[Event]) -> tuple[str, ...]:
    committed = [event.payload for event in events if event.kind == COMMITTED]
    return tuple(source["source_id"] for source in committed[-1]["sources"].values())


def _saved(words: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": TYPE, "schema": SCHEMA, "version": 2, **words}


def _again(event: Event) -> EventDraft:
    names = EventDraft.__dataclass_fields__
    return EventDraft(**{name: getattr(event, name) for name in names})
