"""How does a second notebook look at a ledger that somebody else writes?

Chapter: 004, "Do this now", step 1: reopen and confirm it again; design of the ledger: one writer, many
readers.

Idea: a reader opens the journal, takes no lock, writes nothing and creates nothing. Whole batches are all it
sees; a batch that is being written does not exist yet. Questions in SQL go to an index of its own, in memory,
made when the first one is asked.

Always true:
  V1. What a reader sees is a prefix of the ledger: whole batches, in order, from seq 1.
  V2. A reader changes no byte and makes no file.
  V3. Every line that is read is checked against the chain.

Not here: the full check of files and index (`store.restore`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from codeai_lab.errors import IndexAheadError, LedgerNotFoundError, LedgerReadOnlyError
from codeai_lab.records import Event
from codeai_lab.store.index import Answer, Index
from codeai_lab.store.journal import End, read_lines, start_of
from codeai_lab.store.lines import LONGEST_LINE, Line, decode_creation, line_digest
from codeai_lab.store.opening import CHUNK, Files


class LedgerReader:
    """A ledger in a file, open for reading only, live.

    Raises: LedgerNotFoundError, NotALedgerError, LedgerTooNewError, LedgerReadOnlyError, IndexAheadError (the
    journal is missing), each of one sentence.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files = Files.of(Path(path).resolve())
        self._created = _creation(self._files)
        self.ledger_id = decode_creation(self._created)
        self._index: Index | None = None
        self._indexed = start_of(self._created)

    def read_all(self) -> Iterator[Event]:
        """Give every event that is whole now, in order of seq.

        Raises: LedgerDamagedError naming the first line that is not what was acknowledged.
        """
        for _, line in read_lines(self._files.journal):
            yield line.event

    def read(self, stream_id: str) -> tuple[Event, ...]:
        return tuple(line.event for line in self._current_index().by_stream(stream_id))

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        return tuple(line.event for line in self._current_index().by_key(idempotency_key))

    def sql(self, query: str) -> Answer:
        """Answer one SELECT over `events`, as they are now."""
        return self._current_index().sql(query)

    def close(self) -> None:
        """Let go of the index in memory."""
        if self._index is not None:
            self._index.close()
            self._index = None
            self._indexed = start_of(self._created)

    def __repr__(self) -> str:
        return f"LedgerReader({self._files.index.name!r})"

    def _current_index(self) -> Index:
        """Give the index in memory with everything that is whole now; half-filled, it is thrown away."""
        if self._index is None:
            self._index = Index(":memory:")
            self._index.create(self._created)
            self._index.settle()
        try:
            for chunk in _chunks(read_lines(self._files.journal, after=self._indexed)):
                size = self._indexed.size + sum(len(raw) + 1 for raw, _ in chunk)
                raw, last = chunk[-1]
                self._indexed = End(size=size, seq=last.event.seq, digest=line_digest(raw))
                self._index.add([line for _, line in chunk], self._indexed)
        except BaseException:
            self.close()
            raise
        return self._index


def _chunks(lines: Iterator[tuple[bytes, Line]]) -> Iterator[list[tuple[bytes, Line]]]:
    while chunk := list(islice(lines, CHUNK)):
        yield chunk


def _creation(files: Files) -> bytes:
    try:
        with files.journal.open("rb") as file:
            return file.readline(LONGEST_LINE).rstrip(b"\n")
    except FileNotFoundError:
        if files.index.exists():
            raise IndexAheadError(
                f"The journal of {files.index.name} is missing. Run: codeai-lab restore {files.index.name}",
                missing=(1, 1),
            ) from None
        raise LedgerNotFoundError(f"There is no ledger called {files.index.name} here.") from None
    except OSError as error:
        raise LedgerReadOnlyError(f"{files.journal.name} cannot be read ({error.strerror}).") from None
