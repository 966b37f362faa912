"""How does a line get onto the disk, and what is kept of a line that did not?

Chapter: 004, "What CodeAI does": the ledger is append-only; "Where the cache stops": only what reached it
counts.

Idea: `append` writes a whole batch with one write and flushes it before it returns; what it returned for is
acknowledged. After a crash the end of the file may hold a torn line or half a batch: nobody was told that
it was recorded, so it is set aside in a file of its own, never deleted. Everything before that must be
whole.

Always true:
  J1. What `append` returned for is on disk (fdatasync, or fsync where there is none).
  J2. A failed append leaves nothing behind that a later one could be written after, however it was broken
      off.
  J3. After a failed *flush* nothing is known about what is durable, and no append is taken until reopened.
  J4. Only the writer repairs, only at the end, only what was never acknowledged.
  J5. Nothing is appended to a file that has been deleted or moved.

Not here: the lock that makes this the only writer (`store.ledger`), where the end is (`store.chain`).
Source: the fsync failures described by Rebello et al., "Can Applications Recover from fsync Failures?",
2020.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from codeai_lab.errors import LedgerError, LedgerFailedError, LedgerFullError, LedgerNotFoundError
from codeai_lab.store.chain import End, Tail

_flush = getattr(os, "fdatasync", os.fsync)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Journal:
    """The one writer's view of a journal file."""

    def __init__(self, path: Path, end: End) -> None:
        self.end = end
        self.failed = False
        self._path = path
        self._unfinished = False
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)

    def append(self, lines: Sequence[bytes], *, last_digest: str) -> None:
        """Write the lines of one batch and flush them.

        Raises: LedgerFullError and LedgerNotFoundError (definite; nothing was kept), LedgerFailedError
            (indefinite; see J3).
        """
        if not self.is_in_place():
            raise LedgerNotFoundError(
                "The journal was deleted or moved while the ledger was open, and nothing was recorded; "
                "open the ledger again."
            )
        if self._unfinished:
            self._cut_back()  # an interrupt came while the append before this one was being cut back
        if self.failed:
            raise LedgerFailedError("An earlier flush to disk failed; close the ledger and open it again.")
        data = b"\n".join(lines) + b"\n"
        self._unfinished = True
        try:
            self._write(data)
            self._flush()
            # One assignment, so that an interrupt finds either the old end or the new one.
            self.end = End(size=self.end.size + len(data), seq=self.end.seq + len(lines), digest=last_digest)
        except BaseException:
            self._cut_back()
            raise
        self._unfinished = False

    def is_usable(self) -> bool:
        """Say whether appends are taken: no flush has failed, and the file is where it was."""
        return not self.failed and self.is_in_place()

    def is_in_place(self) -> bool:
        """Say whether the file is still the one that its name leads to."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False

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
            self.failed = True
            if error.errno in _NO_SPACE:
                raise LedgerFailedError(
                    "The disk filled up during a flush; free some space, close the ledger and open it again."
                ) from None
            raise LedgerFailedError(
                f"A flush to disk failed ({error.strerror}); close the ledger and open it again."
            ) from None

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, self.end.size)
            self._unfinished = False
        except OSError:
            self.failed = True


def create(path: Path, lines: Iterable[bytes]) -> None:
    """Make a journal of these lines, the first being line 0."""
    _write_whole(path, (line + b"\n" for line in lines))


def settle_end(path: Path, tail: Tail) -> Path | None:
    """Make a journal end with its last complete batch, durably.

    What follows is moved into a file of its own; give that file, None if nothing followed.
    """
    aside = None
    with path.open("r+b") as file:
        if tail.file_size > tail.end.size:
            file.seek(tail.end.size)
            aside = free_name(path.with_name(f"{path.name}.tail"))
            _write_whole(aside, [file.read()])
            file.truncate(tail.end.size)
        # The last batch may have been written by a process that died before it was flushed.
        os.fsync(file.fileno())
    return aside


def set_aside(path: Path) -> Path:
    """Rename a file so that its name is free; give its new name."""
    aside = free_name(path.with_name(f"{path.name}.aside"))
    path.rename(aside)
    return aside


def free_name(path: Path) -> Path:
    """Give the first of `path-1`, `path-2`, ... that is not taken."""
    number = 1
    while (candidate := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    return candidate


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Make a file that appears under its name whole and durable, or not at all."""
    draft = path.with_name(f"{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)
