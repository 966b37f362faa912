"""How far is a journal whole?

Chapter: 004, "Checking it without trusting it": the chain is followed over the bytes as they lie there.

Idea: there are two ways to read a journal. From the end backward, to find where the last complete batch
ends: that is all an ordinary opening needs, however long the file is. From the front (or from an end that
is already known) forward, batch by batch, each line against the digest in its successor: that is the full
check, and every reading.

Always true:
  H1. What is given is whole: complete batches, in order, each line fitting the one before it.
  H2. What follows the last complete batch is not an error; it was never acknowledged.
  H3. Any other line that does not fit is refused by its number. For a program the line of creation is 0, so
      that a line has the seq of its event; a sentence counts from 1, as an editor does.

Not here: what one line says (`store.lines`), writing and repairing (`store.journal`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from codeai_lab.errors import LedgerDamagedError, NotALedgerError
from codeai_lab.store.lines import (
    LONGEST_LINE,
    Line,
    decode_creation,
    decode_members,
    line_digest,
    line_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where a complete batch ends: `size` in bytes, the seq and the digest of its last line."""

    size: int
    seq: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What an opening found: line 0, the ledger's id, the end of what is whole, and the size of the file."""

    created: bytes
    ledger_id: str
    end: End
    file_size: int


def start_of(created: bytes) -> End:
    """Give the end of a journal that holds only line 0, given without its newline."""
    return End(size=len(created) + 1, seq=0, digest=line_digest(created))


def read_creation(path: Path) -> bytes:
    """Give line 0 without its newline, b"" when it is not there or not finished.

    Raises: OSError when the file cannot be read.
    """
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE + 1)
    return line[:-1] if line.endswith(b"\n") else b""


def find_tail(path: Path) -> Tail:
    """Find the end of the last complete batch, reading only the beginning and the end of the file.

    Raises: NotALedgerError, LedgerTooNewError; LedgerDamagedError for a finished line near the end that is
        not whole.
    """
    created = read_creation(path)
    if not created:
        raise NotALedgerError(
            "The journal does not begin with ledger.created; this is not a ledger of codeai_lab."
        )
    ledger_id = decode_creation(created)
    file_size = path.stat().st_size
    return Tail(
        created=created, ledger_id=ledger_id, end=_last_complete_batch(path, created), file_size=file_size
    )


def read_batches(
    path: Path, *, after: End | None = None, until: End | None = None
) -> Iterator[tuple[End, list[tuple[bytes, Line]]]]:
    """Give each complete batch between two ends: where it ends, and its lines, raw and decoded.

    Raises: LedgerDamagedError naming the first line that does not fit.
    """
    batch: list[tuple[bytes, Line]] = []
    for end, raw, members in _follow(path, after=after, until=until):
        batch.append((raw, line_of(members)))
        if end is not None:
            yield end, batch
            batch = []


def read_lines(
    path: Path, *, after: End | None = None, until: End | None = None
) -> Iterator[tuple[bytes, Line]]:
    """Give each line of the complete batches between two ends, raw and decoded.

    Raises: LedgerDamagedError naming the first line that does not fit.
    """
    for _, batch in read_batches(path, after=after, until=until):
        yield from batch


def check_lines(path: Path, *, after: End | None = None) -> Iterator[End]:
    """Check each line of the complete batches after an end, and give where each batch ends; keeps nothing.

    Raises: LedgerDamagedError naming the first line that does not fit.
    """
    for end, _, _ in _follow(path, after=after, until=None):
        if end is not None:
            yield end


def damaged(number: int, what: str) -> LedgerDamagedError:
    """Give the error for a line that is not what was acknowledged; -1 for one that could not be counted."""
    what_it_is = f"event {number}" if number else "the line of creation"
    named = (
        f"Line {number + 1} of the journal file, {what_it_is}," if number >= 0 else "A line of the journal"
    )
    return LedgerDamagedError(
        f"{named} {what}; nothing was changed. "
        "Keep the ledger's files as they are: the index or a bundle may still hold that line.",
        line=number,
    )


def _members(raw: bytes, *, number: int = -1) -> dict[str, Any]:
    try:
        return decode_members(raw, number=None if number < 0 else number)
    except LedgerDamagedError:
        raise damaged(number, "is not an event that was written there") from None


def _follow(
    path: Path, *, after: End | None, until: End | None
) -> Iterator[tuple[End | None, bytes, dict[str, Any]]]:
    """Follow the chain and give each line that fits; with the last one of a batch, where the batch ends."""
    with path.open("rb") as file:
        if after is None:
            after = start_of(file.readline(LONGEST_LINE + 1).rstrip(b"\n"))
        file.seek(after.size)
        number, prev, size = after.seq, after.digest, after.size
        place = count = 0
        for raw in file:
            if not raw.endswith(b"\n") or (until is not None and number >= until.seq):
                return
            number += 1
            size += len(raw)
            raw = raw[:-1]
            members = _members(raw, number=number)
            if members["prev"] != prev:
                raise _broken_link(number, raw, members["prev"], prev, successor=file.readline())
            if members["batch"] != [place + 1, count or members["batch"][1]]:
                raise damaged(number, "does not belong to the batch it stands in")
            place, count = members["batch"]
            prev = line_digest(raw)
            if place == count:
                place = count = 0
                yield End(size=size, seq=number, digest=prev), raw, members
            else:
                yield None, raw, members


def _broken_link(
    number: int, raw: bytes, found: str, expected: str, *, successor: bytes
) -> LedgerDamagedError:
    """Name the line that changed: this one, or the one before it, of which `expected` is the digest."""
    if successor.endswith(b"\n"):
        this_one = f'"prev":"{line_digest(raw)}"'.encode() not in successor  # nobody vouches for it
    else:
        # The digest of other bytes differs almost everywhere; one that was itself damaged differs in a place.
        this_one = sum(map(str.__ne__, found, expected)) <= 2
    return damaged(number if this_one else number - 1, "is not what was acknowledged: the chain breaks there")


def _last_complete_batch(path: Path, created: bytes) -> End:
    lines = _finished_lines_backward(path, floor=len(created) + 1)
    try:
        offset, raw, line = _next_decoded(lines)
        while line is not None and line["batch"][0] < line["batch"][1]:
            # Half a batch at the end: pass over the lines of it that are there, down to the first.
            place, count = line["batch"]
            offset, raw, line = _next_decoded(lines)
            found = [0, 0] if line is None else line["batch"]
            if found != [place - 1, count] and (place > 1 or found[0] < found[1]):
                raise damaged(-1, "does not belong to the batch it stands in")
        if line is None:
            return start_of(created)
        _, before = next(lines, (0, created))
        if line["prev"] != line_digest(before):
            raise _broken_link(line["seq"], raw, line["prev"], line_digest(before), successor=b"")
    except LedgerDamagedError:
        for _ in check_lines(path):  # only from the front can a line be counted
            pass
        raise
    return End(size=offset + len(raw) + 1, seq=line["seq"], digest=line_digest(raw))


def _next_decoded(lines: Iterator[tuple[int, bytes]]) -> tuple[int, bytes, dict[str, Any] | None]:
    offset, raw = next(lines, (0, b""))
    return offset, raw, _members(raw) if offset else None


def _finished_lines_backward(path: Path, *, floor: int) -> Iterator[tuple[int, bytes]]:
    """Give (offset, line) of each finished line that begins at or after `floor`, the last one first."""
    with path.open("rb") as file:
        end = _after_last_newline(file, before=os.fstat(file.fileno()).st_size, floor=floor)
        while end > floor:
            start = _after_last_newline(file, before=end - 1, floor=floor)
            file.seek(start)
            yield start, file.read(end - start - 1)
            end = start


def _after_last_newline(file: BinaryIO, *, before: int, floor: int) -> int:
    position = before
    while position > floor:
        step = min(1 << 16, position - floor)
        position -= step
        file.seek(position)
        found = file.read(step).rfind(b"\n")
        if found >= 0:
            return position + found + 1
    return floor
