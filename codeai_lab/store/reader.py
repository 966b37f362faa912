"""How does a second notebook look at a ledger that somebody else writes?

Chapter: 004, "Do this now", step 1: reopen and confirm it again; design of the ledger: one writer, many
readers.

Idea: a reader opens the journal, takes no lock, writes nothing and creates nothing. Whole batches are all
it sees; a batch that is being written does not exist yet. Questions in SQL go to an index of its own, in
memory, made when the first one is asked.

Always true:
  V1. What a reader sees is a prefix of the ledger: whole batches, in order, from seq 1. It may see a batch
      a moment before it is acknowledged; one that its writer takes back, for want of space, it forgets
      again.
  V2. A reader changes no byte and makes no file.
  V3. Every line that is read is checked against the chain.
  V4. An index that knows more than the journal is said when asked for; a writer at work makes no alarm.

Not here: the full check of files and index (`store.restore`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import duckdb

from codeai_lab.errors import (
    LedgerDamagedError,
    LedgerNotFoundError,
    NotALedgerError,
    QueryRefusedError,
)
from codeai_lab.records import Event
from codeai_lab.store.chain import End, read_batches, read_creation, start_of
from codeai_lab.store.database import failure
from codeai_lab.store.files import Files, unreadable
from codeai_lab.store.index import Answer, Index, Mark
from codeai_lab.store.lines import Line, decode_creation
from codeai_lab.store.opening import CHUNK, mark_beside_others, refuse_ahead, refuse_missing_journal

_T = TypeVar("_T")


class LedgerReader:
    """A ledger in a file, open for reading only, live; may be used from several threads.

    Raises: LedgerNotFoundError, NotALedgerError, LedgerTooNewError, LedgerReadOnlyError, IndexAheadError (the
    journal is missing), LedgerInUseError (and something has the index open), each of one sentence.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files = Files.of(Path(path))
        self._created = _creation(self._files)
        self.ledger_id = decode_creation(self._created)
        self._guard = threading.RLock()
        self._index: Index | None = None
        self._indexed = start_of(self._created)
        self._pid = os.getpid()

    def read_all(self) -> Iterator[Event]:
        """Give every event that is whole now, in order of seq.

        Raises: LedgerDamagedError naming the first line that is not what was acknowledged.
        """
        for _, lines in self._batches(start_of(self._created)):
            yield from (line.event for line in lines)

    def index_mark(self) -> Mark | None:
        """Give how far the index file knows this ledger; None where there is none, or a writer keeps it.

        Ask before reading: only of a journal that is read later can it be said that it lacks something.
        """
        mark = mark_beside_others(self._files)
        return mark if mark is not None and mark.created == self._created else None

    def refuse_lost(self, mark: Mark, *, last_seq: int) -> None:
        """Compare what was read, up to `last_seq`, with a mark that was given before.

        Raises: IndexAheadError when the index knows more; LedgerDamagedError when it knows another line.
        """
        try:
            refuse_ahead(self._files, mark, last_seq=last_seq)
        except OSError as error:
            raise unreadable(self._files, error) from None

    def read(self, stream_id: str) -> tuple[Event, ...]:
        """Give the events of one stream in order of seq."""
        return self._history("stream", stream_id)

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        """Give the events that carry a key in order of seq."""
        return self._history("key", idempotency_key)

    def sql(self, query: str) -> Answer:
        """Answer one SELECT over `events`, as they are now.

        Raises: QueryRefusedError for anything but one SELECT, and for a query that fails.
        """
        return self._ask(lambda index: index.sql(query))

    def close(self) -> None:
        """Let go of the index in memory."""
        with self._guard:
            if self._index is not None:
                self._index.close()
            self._forget()

    def __enter__(self) -> LedgerReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LedgerReader({self._files.index.name!r})"

    def _history(self, by: str, name: str) -> tuple[Event, ...]:
        return tuple(line.event for line in self._ask(lambda index: index.history(by, name)))

    def _ask(self, question: Callable[[Index], _T]) -> _T:
        """Ask the index in memory of all that is whole now; half-filled or failed, it is thrown away."""
        with self._guard:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._forget()  # in a forked child the index is the parent's
            try:
                try:
                    index = self._filled_index()
                except LedgerDamagedError:
                    # The writer may have taken back what was read before: once more from the beginning.
                    self.close()
                    index = self._filled_index()
                return question(index)
            except QueryRefusedError:
                raise
            except duckdb.Error as error:
                self.close()
                raise failure(error) from None
            except OSError as error:
                raise unreadable(self._files, error) from None
            except BaseException:
                self.close()
                raise

    def _filled_index(self) -> Index:
        if self._index is None or self._files.journal.stat().st_size < self._indexed.size:
            self.close()
            self._index = Index(":memory:")
            self._index.create(self._created)
            self._index.settle()
        some: list[Line] = []
        end = self._indexed
        for end, lines in self._batches(self._indexed):
            some += lines
            if len(some) >= CHUNK:
                self._index.add(some, end)
                self._indexed, some = end, []
        if some:
            self._index.add(some, end)
            self._indexed = end
        return self._index

    def _forget(self) -> None:
        self._index = None
        self._indexed = start_of(self._created)

    def _batches(self, after: End) -> Iterator[tuple[End, list[Line]]]:
        """Give the whole batches after an end; where one does not fit, look once more."""
        doubted = None
        while True:
            try:
                for end, batch in read_batches(self._files.journal, after=after):
                    yield end, [line for _, line in batch]
                    after = end
                return
            except LedgerDamagedError:
                # The writer may have taken a batch back and written another one just while it was read.
                if doubted == after:
                    raise
                doubted = after
            except OSError as error:
                raise unreadable(self._files, error) from None


def _creation(files: Files) -> bytes:
    try:
        created = read_creation(files.journal)
    except FileNotFoundError:
        refuse_missing_journal(files)
        raise LedgerNotFoundError(f"There is no ledger called {files.index.name} here.") from None
    except OSError as error:
        raise unreadable(files, error) from None
    if not created:
        refuse_missing_journal(files)
        raise NotALedgerError(f"{files.journal.name} is empty or is not a ledger of codeai_lab.")
    return created
