"""How is an event written as a line, and what makes a line whole?

Chapter: 004, "Checking it without trusting it": evidence is the very lines that were acknowledged.

Idea: a ledger is a text file. Line 0 says which ledger it is; every further line is one event as canonical
JSON, with its place in a batch ([i, n]) and the SHA-256 of the line before it (`prev`). A batch is whole
when its n lines are all there; a chain is whole when each `prev` fits the bytes before it.

    {"kind":"ledger.created","ledger_id":...,"seq":0,...}
    {"batch":[1,2],"event_id":...,"prev":<sha256 of the line above>,"seq":1,...}
    {"batch":[2,2],...,"seq":2,...}

Always true:
  L1. The digest is over the line's raw bytes without its newline, so that no reader has to serialise
      anything.
  L2. What `encode` writes, `decode` reads, and `encode` writes again to the same bytes.
  L3. A line holds at most LONGEST_LINE bytes; a larger payload is refused before anything is written.
  L4. A payload is an object, names are text, an instant is a whole number; anything else is refused by
      name.

Not here: files and flushing (`store.journal`), following the chain (`store.chain`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from types import NoneType
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
_TEXT, _TEXT_OR_NULL = (str,), (str, NoneType)
_MEMBERS = {
    "seq": (int,), "event_id": _TEXT, "run_id": _TEXT, "stream_id": _TEXT, "kind": _TEXT, "actor_id": _TEXT,
    "idempotency_key": _TEXT_OR_NULL, "recorded_at_us": (int,), "causation_id": _TEXT_OR_NULL,
    "payload": (dict,), "batch": (list,), "prev": _TEXT,
}  # fmt: skip
# The few combinations of types that a line's members may have: one look-up instead of twelve comparisons.
_SHAPES = frozenset(product(*_MEMBERS.values()))
_members_of = itemgetter(*_MEMBERS)
_scan = json.JSONDecoder().raw_decode


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
    """Give line 0 of a new ledger, without its newline.

    Raises: RefusedValueError (definite) for an id that is not text or makes the line too long.
    """
    created = {
        "kind": "ledger.created",
        "ledger_id": _text(ledger_id, "ledger_id"),
        "recorded_at_us": _instant(recorded_at_us),
        "schema_version": SCHEMA_VERSION,
        "seq": 0,
    }
    return _short_enough(encoded(created), "ledger_id")


def decode_creation(line: bytes) -> str:
    """Give the ledger id of line 0.

    Raises: NotALedgerError when it is not one of ours, LedgerTooNewError when a newer version wrote it.
    """
    try:
        created = json.loads(line)
        version = created["schema_version"]
        ledger_id = created["ledger_id"]
        ours = created["kind"] == "ledger.created" and type(version) is int and isinstance(ledger_id, str)
    except (ValueError, TypeError, KeyError, RecursionError):
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

    Raises: RefusedValueError (definite), naming the field and the place in it that has no JSON form.
    """
    return tuple(
        Event(
            seq=after_seq + number,
            event_id=_text(draft.event_id, "event_id"),
            run_id=_text(draft.run_id, "run_id"),
            stream_id=_text(draft.stream_id, "stream_id"),
            kind=_text(draft.kind, "kind"),
            actor_id=_text(draft.actor_id, "actor_id"),
            idempotency_key=_text_or_null(draft.idempotency_key, "idempotency_key"),
            causation_id=_text_or_null(draft.causation_id, "causation_id"),
            recorded_at_us=_instant(draft.recorded_at_us),
            payload=_object(draft.payload),
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
        raw = _short_enough(encode_line(line), "payload")
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
    return line_of(decode_members(raw, number=number))


def decode_members(raw: bytes, *, number: int | None = None) -> dict[str, Any]:
    """Read one line as its members, each of the type that a line has; cheaper than a whole `Line`.

    Raises: LedgerDamagedError naming the line.
    """
    try:
        text = raw.decode()
        members: dict[str, Any]
        members, end = _scan(text)
        first, count = members["batch"]
        whole = (
            end == len(text)
            and len(members) == len(_MEMBERS)
            and tuple(map(type, _members_of(members))) in _SHAPES
            and number in (None, members["seq"])
            and type(first) is type(count) is int
            and 1 <= first <= count
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise damaged(-1 if number is None else number, "is not an event that was written there")
    return members


def line_of(members: dict[str, Any]) -> Line:
    """Give the line that has these members, as `decode_members` gave them."""
    first, count = members.pop("batch")
    prev = members.pop("prev")
    return Line(event=Event(**members), batch=(first, count), prev=prev)


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
        "Keep the ledger's files as they are: the index or a bundle may still hold that line.",
        line=number,
    )


def _text(value: object, where: str) -> str:
    if type(value) is not str:
        raise RefusedValueError(where, f"must be text, not {type(value).__name__}")
    return str(plain(value, where))


def _text_or_null(value: object, where: str) -> str | None:
    return None if value is None else _text(value, where)


def _instant(value: object) -> int:
    if type(value) is not int:
        raise RefusedValueError("recorded_at_us", "must be a whole number of microseconds")
    return int(plain(value, "recorded_at_us"))


def _object(value: object) -> dict[str, Any]:
    if type(value) is not dict:
        raise RefusedValueError("payload", f"must be a JSON object, not {type(value).__name__}")
    copied: dict[str, Any] = plain(value, "payload")
    return copied


def _short_enough(raw: bytes, where: str) -> bytes:
    if len(raw) > LONGEST_LINE:
        raise RefusedValueError(
            where,
            f"the event takes {len(raw):,} bytes and at most {LONGEST_LINE:,} are taken; "
            "keep the bulk in a file and record its digest",
        )
    return raw
