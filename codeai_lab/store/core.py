"""What do all ledgers on one file in one process share?

Chapter: 004, "Two threads, one key, two effects": check and append must be one step.

Idea: the core of an open ledger. An append takes the guard, compares the conditions, writes the journal,
and takes the events into memory; DuckDB is filled later, in batches. Memory answers for what came since
opening, the index for what is older, and a new ledger never asks the index at all. Where the index fails it
is opened again, and where it stays away the journal answers, slower.

    append:  absorb -> compare -> place -> journal (durable) -> take in -> now and then: fill the index

Always true:
  D1. `append` returns only for what is on disk, and tells nobody of anything else.
  D2. Checking a condition and appending is one step, under one guard; claims rest on it.
  D3. An interrupt at any moment leaves a core that the next call can use: what the journal has and memory
      lacks is absorbed first.
  D4. A forked child's copy refuses to be used.
  D5. An append is never failed by the index.
  D6. The index is filled from the very lines that were written, whatever became of the events since.

Not here: which core serves which path (`store.ledger`), what an opening repairs (`store.opening`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TypeVar

import duckdb

from codeai_lab.clock import Clock
from codeai_lab.errors import LedgerClosedError, LedgerError, RefusedValueError
from codeai_lab.records import Event, EventDraft
from codeai_lab.store.chain import read_lines
from codeai_lab.store.database import failure
from codeai_lab.store.files import Files, lock_files, unreadable
from codeai_lab.store.index import Answer, Index
from codeai_lab.store.lines import Line, decode_line, encode_batch, encode_creation, place
from codeai_lab.store.opening import Progress, open_files, reopen_index
from codeai_lab.store.protocol import Unchanged

FLUSH_AT = 1_000
_log = logging.getLogger("codeai_lab")
_T = TypeVar("_T")


class Core:
    """The lock, the journal, the index and what was seen lately: what all ledgers on one file share."""

    def __init__(self, files: Files, ledger_id: str, clock: Clock, progress: Progress | None) -> None:
        self.files = files
        self.pid = os.getpid()
        self.users = 0
        self.closed = False
        self.live_actions: set[str] = set()
        self._guard = threading.RLock()
        with ExitStack() as undo:
            self._file_lock = lock_files(files)
            undo.callback(self._file_lock.release)
            opened = open_files(
                files,
                created=lambda: encode_creation(ledger_id=ledger_id, recorded_at_us=clock.now_us()),
                progress=progress,
            )
            undo.pop_all()
        self.journal = opened.journal
        self._index = opened.index
        self.ledger_id = opened.tail.ledger_id
        self.notices = opened.notices
        self._tail = opened.tail
        self._opened = self._absorbed = opened.tail.end
        self._unindexed: list[tuple[int, bytes]] = []  # seq and raw line
        self._flush_at = FLUSH_AT
        self._event_ids: set[str] | None = None if self._opened.seq else set()
        self._older: dict[tuple[str, str], list[Event]] = {}
        self._older_names: set[int] | None = None
        self._recent: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        for notice in self.notices:
            _log.warning(notice)

    def append(self, drafts: Sequence[EventDraft], conditions: Sequence[Unchanged]) -> tuple[Event, ...]:
        if not drafts:
            raise ValueError("an append records at least one event")
        with self._guard:
            self._absorb()
            if any(self._moved(condition) for condition in conditions):
                return ()
            self._refuse_known(drafts)
            events = place(drafts, after_seq=self.journal.end.seq)
            lines, raws, digest = encode_batch(events, prev=self.journal.end.digest)
            self.journal.append(raws, last_digest=digest)
            self._take(zip(raws, lines, strict=True))
            if len(self._unindexed) >= self._flush_at:
                self._flush_quietly()
            return events

    def history(self, by: str, name: str) -> tuple[Event, ...]:
        """Give the events that carry a `key` or belong to a `stream`, in order of seq."""
        with self._guard:
            self._absorb()
            return (*self._older_history(by, name), *self._recent.get((by, name), ()))

    def read_all(self) -> Iterator[Event]:
        try:
            for _, line in read_lines(self.files.journal, until=self.journal.end):
                yield line.event
        except OSError as error:
            raise unreadable(self.files, error) from None

    def sql(self, query: str) -> Answer:
        with self._guard:
            self._absorb()
            self._flush()
            return self._ask(lambda index: index.sql(query))

    def shut(self) -> None:
        """Flush, close both files and free the lock; what the index lacks, the next opening adds."""
        if os.getpid() != self.pid:
            return
        with self._guard, ExitStack() as last:  # an interrupt still leaves the lock free
            last.callback(self._file_lock.release)
            last.callback(self.journal.close)
            last.callback(self._close_index)
            if not self.closed:
                self.closed = True
                if self.journal.is_in_place():
                    self._flush_quietly()

    def refuse_in_child(self) -> None:
        if os.getpid() != self.pid:
            raise LedgerClosedError(
                "The ledger belongs to the parent of this forked process; open another in the child."
            )

    def _absorb(self) -> None:
        """Take in what an interrupt kept an earlier append from taking in (D3)."""
        if self.closed:
            raise LedgerClosedError("The ledger was closed; open it again.")
        if self._absorbed != self.journal.end:
            self._take(read_lines(self.files.journal, after=self._absorbed, until=self.journal.end))

    def _take(self, lines: Iterable[tuple[bytes, Line]]) -> None:
        for raw, line in lines:
            event = line.event
            known = [self._recent["stream", event.stream_id]]
            if event.idempotency_key is not None:
                known.append(self._recent["key", event.idempotency_key])
            for history in known:
                if not history or history[-1].seq < event.seq:
                    history.append(event)
            if not self._unindexed or self._unindexed[-1][0] < event.seq:
                self._unindexed.append((event.seq, raw))
            if self._event_ids is not None:
                self._event_ids.add(event.event_id)
        self._absorbed = self.journal.end

    def _older_history(self, by: str, name: str) -> list[Event]:
        """Give what was there before this opening; asked of the index once, never of a new ledger."""
        if self._opened.seq == 0:
            return []
        if self._older_names is None:
            self._older_names = self._ask_or_read(
                lambda index: index.names(),
                lambda lines: {
                    hash(name)
                    for line in lines
                    for name in (line.event.stream_id, line.event.idempotency_key)
                },
            )
        # Most names are new, and to know that costs a thousandth of what the index takes to say so.
        if hash(name) not in self._older_names:
            return []
        if (by, name) not in self._older:
            column = "idempotency_key" if by == "key" else "stream_id"
            found = self._ask_or_read(
                lambda index: index.history(by, name),
                lambda lines: [line for line in lines if getattr(line.event, column) == name],
            )
            self._older[by, name] = [line.event for line in found if line.event.seq <= self._opened.seq]
        return self._older[by, name]

    def _moved(self, condition: Unchanged) -> bool:
        by, name = condition.subject
        history = self._recent.get((by, name)) or self._older_history(by, name)
        return (history[-1].seq if history else 0) != condition.last_seq

    def _refuse_known(self, drafts: Sequence[EventDraft]) -> None:
        if self._event_ids is None:
            self._event_ids = self._ask_or_read(
                lambda index: index.event_ids(), lambda lines: {line.event.event_id for line in lines}
            )
        ids = [draft.event_id for draft in drafts]
        if len(set(ids)) < len(ids) or not self._event_ids.isdisjoint(ids):
            raise RefusedValueError("event_id", "this event id is recorded already")

    def _ask(self, question: Callable[[Index], _T]) -> _T:
        """Ask the index; where it fails, once more after opening it again, and once more after rebuilding it.

        Raises: LedgerError when it fails all the same.
        """
        remedies = iter((True, False))
        while True:
            try:
                return question(self._index)
            except duckdb.Error as error:
                _log.warning("The index failed (%s).", type(error).__name__)
                trusted = next(remedies, None)
                if trusted is None:
                    raise failure(error) from None
            self._renew_index(trusted=trusted)

    def _renew_index(self, *, trusted: bool) -> None:
        self._close_index()
        tail = replace(self._tail, end=self.journal.end, file_size=self.journal.end.size)
        self._index, notices = reopen_index(self.files, tail, trusted=trusted)
        self.notices += notices

    def _ask_or_read(self, question: Callable[[Index], _T], otherwise: Callable[[Iterable[Line]], _T]) -> _T:
        try:
            return self._ask(question)
        except LedgerError as error:
            _log.warning("%s", error)
            return otherwise(line for _, line in read_lines(self.files.journal, until=self._opened))

    def _flush(self) -> None:
        if self._unindexed:
            lines = [decode_line(raw) for _, raw in self._unindexed]
            self._ask(lambda index: index.add(lines, self._absorbed))
            self._unindexed = []
            self._flush_at = FLUSH_AT

    def _flush_quietly(self) -> None:
        """An append is not failed by its index: the journal has it, and the index is filled later (D5)."""
        try:
            self._flush()
        except LedgerError as error:
            self._flush_at = len(self._unindexed) + FLUSH_AT
            _log.warning("%s", error)

    def _close_index(self) -> None:
        with suppress(duckdb.Error):  # what was not written is added at the next opening
            self._index.close()
