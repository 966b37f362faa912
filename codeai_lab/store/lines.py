"""How is an event written as a line, and what makes a line whole?

Chapter: 004, "Checking it without trusting it": evidence is the very lines that were acknowledged.

Idea: a ledger is a text file. Line 0 says which ledger it is; every further line is one event as canonical
JSON, with its place in a batch ([i, n]) and the SHA-256 of the line before it (`prev`). A batch is whole when
its n lines are all there; a chain is whole when each `prev` fits the bytes before it.

    {"kind":"ledger.created","ledger_id":...,"seq":0,...}
    {"batch":[1,2],"event_id":...,"prev":<sha256 of the line above>,"seq":1,...}
    {"batch":[2,2],...,"seq":2,...}

Always true:
  L1. The digest is over the line's raw bytes without its newline, so that no reader has to serialise
      anything.
  L2. What `decode` accepts, `encode` writes back to the same bytes.
  L3. A line holds at most LONGEST_LINE bytes; a larger payload is refused before anything is written.

Not here: files and flushing (`store.journal`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codeai_lab.canonical import encoded, plain
from codeai_lab.errors import LedgerDamagedError, LedgerTooNewError, NotALedgerError, RefusedValueError
from codeai_lab.records import Event, EventDraft

SCHEMA_VERSION = 1
LONGEST_LINE = 2**20
FIELDS = (
    "seq", "event_id", "run_id", "stream_id", "kind", "actor_id",
    "idempotency_key", "recorded_at_us", "causation_id", "payload",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One decoded line: the event, its place in the batch and the digest of the line before."""

    event: Event
    batch: tuple[int, int]
    prev: str


def line_digest(line: bytes) -> str:
    """Give the SHA-256 of a line's bytes, without its newline."""
    return hashlib.sha256(line).hexdigest()


def encode_creation(*, ledger_id: str, recorded_at_us: int) -> bytes:
    """Give line 0 of a new ledger, without its newline."""
    return encoded(
        {
            "kind": "ledger.created",
            "ledger_id": plain(ledger_id, "ledger_id"),
            "recorded_at_us": recorded_at_us,
            "schema_version": SCHEMA_VERSION,
            "seq": 0,
        }
    )


def decode_creation(line: bytes) -> str:
    """Give the ledger id of line 0.

    Raises: NotALedgerError when it is not one of ours, LedgerTooNewError when a newer version wrote it.
    """
    try:
        created = json.loads(line)
        version = created["schema_version"]
        ledger_id = created["ledger_id"]
        ours = created["kind"] == "ledger.created" and type(version) is int and isinstance(ledger_id, str)
    except (ValueError, TypeError, KeyError):
        ours = False
    if not ours:
        raise NotALedgerError(
            "The journal does not begin with ledger.created; this is not a ledger of codeai_lab."
        )
    if version > SCHEMA_VERSION:
        raise LedgerTooNewError(
            f"The ledger has schema version {version} and this codeai_lab knows {SCHEMA_VERSION}; "
            "it was left untouched. Use a newer codeai_lab."
        )
    return str(ledger_id)


def place(drafts: Sequence[EventDraft], *, after_seq: int) -> tuple[Event, ...]:
    """Give the drafts their seqs and plain payloads.

    Raises: RefusedValueError (definite) when a payload has no JSON form.
    """
    return tuple(
        Event(
            seq=after_seq + number,
            event_id=plain(draft.event_id, "event_id"),
            run_id=plain(draft.run_id, "run_id"),
            stream_id=plain(draft.stream_id, "stream_id"),
            kind=plain(draft.kind, "kind"),
            actor_id=plain(draft.actor_id, "actor_id"),
            idempotency_key=plain(draft.idempotency_key, "idempotency_key"),
            recorded_at_us=plain(draft.recorded_at_us, "recorded_at_us"),
            causation_id=plain(draft.causation_id, "causation_id"),
            payload=plain(draft.payload, "payload"),
        )
        for number, draft in enumerate(drafts, start=1)
    )


def encode_batch(events: Sequence[Event], *, prev: str) -> tuple[list[Line], list[bytes], str]:
    """Give the lines of one batch, the bytes of each without its newline, and the digest of the last.

    Raises: RefusedValueError (definite) when a line would be too long.
    """
    lines, raws = [], []
    for number, event in enumerate(events, start=1):
        line = Line(event=event, batch=(number, len(events)), prev=prev)
        raw = encode_line(line)
        if len(raw) > LONGEST_LINE:
            raise RefusedValueError(
                "payload",
                f"the event takes {len(raw):,} bytes and at most {LONGEST_LINE:,} are taken; "
                "keep the bulk in a file and record its digest",
            )
        lines.append(line)
        raws.append(raw)
        prev = line_digest(raw)
    return lines, raws, prev


def encode_line(line: Line) -> bytes:
    """Give the bytes of one line, without its newline; its event must be plain."""
    fields: dict[str, Any] = {name: getattr(line.event, name) for name in FIELDS}
    return encoded({**fields, "batch": list(line.batch), "prev": line.prev})


def decode_line(raw: bytes, *, number: int | None = None) -> Line:
    """Read one line; `number` is where it stands, line 0 being the creation, or None where that is not known.

    Raises: LedgerDamagedError naming the line.
    """
    try:
        fields = json.loads(raw)
        first, count = fields.pop("batch")
        prev = fields.pop("prev")
        event = Event(**fields)
        whole = number in (None, event.seq) and 1 <= first <= count and isinstance(event.payload, dict)
    except (ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise damaged(-1 if number is None else number, "is not an event that was written there")
    return Line(event=event, batch=(first, count), prev=prev)


def encode_row(line: Line) -> tuple[Any, ...]:
    """Give a line as a row of the index, its payload as canonical text."""
    fields = [getattr(line.event, name) for name in FIELDS[:-1]]
    return (*fields, encoded(line.event.payload).decode(), list(line.batch), line.prev)


def decode_row(row: Sequence[Any]) -> Line:
    """Read a row of the index back into a line."""
    *fields, payload, batch, prev = row
    event = Event(**dict(zip(FIELDS[:-1], fields, strict=True)), payload=json.loads(payload))
    return Line(event=event, batch=(batch[0], batch[1]), prev=prev)


def damaged(number: int, what: str) -> LedgerDamagedError:
    """Give the error for a line that is not what was acknowledged."""
    return LedgerDamagedError(
        f"Line {number} of the journal {what}; nothing was changed. "
        "Copy the ledger's files away, then restore the journal from the index or from a bundle.",
        line=number,
    )
