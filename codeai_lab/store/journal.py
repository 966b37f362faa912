"""How does a line get onto the disk, and what is kept of a line that did not?

Chapter: 004, "What CodeAI does": the ledger is append-only; "Where the cache stops": only what reached it
counts.

Idea: `append` writes a whole batch with one write and flushes it before it returns; what it returned for is
acknowledged. After a crash the end of the file may hold a torn line or half a batch: nobody was told that it
was recorded, so it is set aside in a file of its own, never deleted. Everything before that must be whole.

Always true:
  J1. What `append` returned for is on disk (fdatasync, or fsync where there is none).
  J2. After a failed append the file ends where it ended before: the last complete batch.
  J3. After a failed *flush* nothing is known about what is durable, and no append is taken until reopened.
  J4. Only the writer repairs, only at the end, only what was never acknowledged.

Not here: the lock that makes this the only writer (`store.ledger`), what a line says (`store.lines`).
Source: the fsync failures described by Rebello et al., "Can Applications Recover from fsync Failures?", 2020.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from codeai_lab.errors import LedgerError, LedgerFailedError, LedgerFullError, NotALedgerError
from codeai_lab.store.lines import LONGEST_LINE, Line, damaged, decode_creation, decode_line, line_digest

_flush = getattr(os, "fdatasync", os.fsync)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where the last complete batch ends: `size` in bytes, the seq and the digest of its last line."""

    size: int
    seq: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What an opening found: line 0, the ledger's id, the end of what is whole, and the bytes of the file in all."""

    created: bytes
    ledger_id: str
    end: End
    file_size: int


class Journal:
    """The one writer's view of a journal file."""

    def __init__(self, path: Path, end: End) -> None:
        self.end = end
        self._failed = False
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)

    def append(self, lines: Sequence[bytes], *, last_digest: str) -> None:
        """Write the lines of one batch and flush them.

        Raises: LedgerFullError (definite; nothing was kept), LedgerFailedError (indefinite; see J3).
        """
        if self._failed:
            raise LedgerFailedError("An earlier flush to disk failed; close the ledger and open it again.")
        data = b"\n".join(lines) + b"\n"
        try:
            self._write(data)
            self._flush()
            # One assignment, so that an interrupt finds either the old end or the new one.
            self.end = End(size=self.end.size + len(data), seq=self.end.seq + len(lines), digest=last_digest)
        except BaseException:
            self._cut_back()
            raise

    def close(self) -> None:
        """Let go of the file; further appends fail."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise LedgerFullError(
                    "There is no space left for the ledger; nothing of this append was kept. "
                    "Free some space and append again."
                ) from None
            raise LedgerError(
                f"The ledger could not be written ({error.strerror}); nothing was kept."
            ) from None

    def _flush(self) -> None:
        try:
            _flush(self._descriptor)
        except OSError as error:
            self._failed = True
            if error.errno in _NO_SPACE:
                raise LedgerFailedError(
                    "The disk filled up during a flush; free some space and reopen."
                ) from None
            raise LedgerFailedError(
                f"A flush to disk failed ({error.strerror}); close the ledger and open it again to see what is there."
            ) from None

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, self.end.size)
        except OSError:
            self._failed = True


def create(path: Path, lines: Iterable[bytes]) -> None:
    """Make a journal of these lines, the first being line 0; it appears under its name whole or not at all."""
    draft = path.with_name(f"{path.name}.new")
    with draft.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    flush_folder(path.parent)


def start_of(created: bytes) -> End:
    """Give the end of a journal that holds only line 0."""
    return End(size=len(created) + 1, seq=0, digest=line_digest(created))


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def find_tail(path: Path) -> Tail:
    """Find the end of the last complete batch, reading only the beginning and the end of the file.

    Raises: NotALedgerError, LedgerTooNewError, or LedgerDamagedError when a finished line near the end is not
        whole.
    """
    with path.open("rb") as file:
        creation = file.readline(LONGEST_LINE)
        if not creation.endswith(b"\n"):
            raise NotALedgerError(
                "The journal does not begin with ledger.created; this is not a ledger of codeai_lab."
            )
        ledger_id = decode_creation(creation[:-1])
        file_size = os.fstat(file.fileno()).st_size
        end = _last_complete_batch(path, creation)
        return Tail(created=creation[:-1], ledger_id=ledger_id, end=end, file_size=file_size)


def set_tail_aside(path: Path, tail: Tail) -> Path | None:
    """Move what follows the last complete batch into a file of its own; give that file, None if there is nothing."""
    if tail.file_size == tail.end.size:
        return None
    aside = free_name(path.with_name(f"{path.name}.tail"))
    with path.open("rb") as file:
        file.seek(tail.end.size)
        rest = file.read()
    with aside.open("xb") as file:
        file.write(rest)
        file.flush()
        os.fsync(file.fileno())
    with path.open("r+b") as file:
        file.truncate(tail.end.size)
        os.fsync(file.fileno())
    flush_folder(path.parent)
    return aside


def free_name(path: Path) -> Path:
    """Give the first of `path-1`, `path-2`, ... that is not taken."""
    number = 1
    while (candidate := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    return candidate


def read_lines(path: Path, *, after: End | None = None) -> Iterator[tuple[bytes, Line]]:
    """Give each line of the complete batches after an end, raw and decoded, checking the chain as it goes.

    An incomplete batch at the end of the file is left out.
    Raises: LedgerDamagedError naming the first line that does not fit.
    """
    with path.open("rb") as file:
        if after is None:
            after = start_of(file.readline(LONGEST_LINE).rstrip(b"\n"))
        file.seek(after.size)
        number, prev = after.seq, after.digest
        batch: list[tuple[bytes, Line]] = []
        for raw in file:
            if not raw.endswith(b"\n"):
                return
            number += 1
            raw = raw[:-1]
            line = decode_line(raw, number=number)
            if line.prev != prev:
                raise _broken_link(number, raw, successor=file.readline())
            if line.batch[0] != len(batch) + 1 or (batch and line.batch[1] != batch[0][1].batch[1]):
                raise damaged(number, "does not belong to the batch it stands in")
            prev = line_digest(raw)
            batch.append((raw, line))
            if line.batch[0] == line.batch[1]:
                yield from batch
                batch = []


def _broken_link(number: int, raw: bytes, *, successor: bytes) -> LedgerError:
    """Name the line that changed: this one, unless its successor still vouches for it."""
    vouched = f'"prev":"{line_digest(raw)}"'.encode() in successor
    return damaged(number - 1 if vouched else number, "is not what was acknowledged: the chain breaks there")


def _last_complete_batch(path: Path, creation: bytes) -> End:
    lines = _finished_lines_backward(path, floor=len(creation))
    cut_short = 0
    for offset, raw in lines:
        line = _decode_near_end(path, offset, raw)
        if line.batch[0] < line.batch[1] and not cut_short:
            cut_short = line.batch[0]  # half a batch: pass over the lines of it that are there
        if cut_short:
            cut_short -= 1
        else:
            predecessor = next(lines, None)
            if predecessor is not None and line.prev != line_digest(predecessor[1]):
                raise damaged(line.event.seq - 1, "is not what was acknowledged: the chain breaks there")
            return End(size=offset + len(raw) + 1, seq=line.event.seq, digest=line_digest(raw))
    return start_of(creation[:-1])


def _decode_near_end(path: Path, offset: int, raw: bytes) -> Line:
    try:
        return decode_line(raw)
    except LedgerError:
        number = path.read_bytes()[:offset].count(b"\n")
        raise damaged(number, "is not an event that was written there") from None


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
