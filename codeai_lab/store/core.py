"""What do all ledgers on one file in one process share?

Chapter: 004, "Two threads, one key, two effects": check and append must be one step.

Idea: the core of an open ledger. An append takes the guard, compares the conditions, writes the journal, and
takes the events into memory; DuckDB is filled later, in batches. Memory answers for what came since opening,
the index for what is older, and a new ledger never asks the index at all.

    append:  absorb -> compare -> place -> journal (durable) -> take in -> now and then: fill the index

Always true:
  D1. `append` returns only for what is on disk, and tells nobody of anything else.
  D2. Checking a condition and appending is one step, under one guard; claims rest on it.
  D3. An interrupt at any moment leaves a core that the next call can use: what the journal has and memory
      lacks is absorbed first.
  D4. A forked child's copy refuses to be used.
  D5. An append is never failed by the index.

Not here: which core serves which path (`store.ledger`), what an opening repairs (`store.opening`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence

import duckdb
import filelock

from codeai_lab.clock import Clock
from codeai_lab.errors import (
    LedgerClosedError,
    LedgerError,
    LedgerInUseError,
    LedgerReadOnlyError,
    RefusedValueError,
)
from codeai_lab.records import Event, EventDraft
from codeai_lab.store.index import Answer
from codeai_lab.store.journal import Journal, read_lines
from codeai_lab.store.lines import Line, encode_batch, encode_creation, place
from codeai_lab.store.opening import Files, Progress, open_files
from codeai_lab.store.protocol import Unchanged

FLUSH_AT = 1_000
_log = logging.getLogger("codeai_lab")


class Core:
    """What all ledgers on one file in this process share: the lock, the journal, the index, what was seen lately."""

    def __init__(self, files: Files, ledger_id: str, clock: Clock, progress: Progress | None) -> None:
        self.files = files
        self.pid = os.getpid()
        self._guard = threading.RLock()
        self._file_lock = lock_files(files)
        try:
            opened = open_files(
                files,
                created=lambda: encode_creation(ledger_id=ledger_id, recorded_at_us=clock.now_us()),
                progress=progress,
            )
            self.journal = Journal(files.journal, opened.tail.end)
        except OSError as error:
            self._file_lock.release()
            raise LedgerReadOnlyError(
                f"{files.index.name} cannot be opened for writing ({error.strerror}); check the folder's permissions."
            ) from None
        except BaseException:
            self._file_lock.release()
            raise
        self.ledger_id = opened.tail.ledger_id
        self.notices = opened.notices
        self.live_actions: set[str] = set()
        self.users = 0
        self._index = opened.index
        self._opened = self._absorbed = opened.tail.end
        self._unindexed: list[Line] = []
        self._event_ids: set[str] = set()
        self._older: dict[tuple[str, str], list[Event]] = {}
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
            self._take(lines)
            if len(self._unindexed) >= FLUSH_AT:
                self._flush_quietly()
            return events

    def history(self, by: str, name: str) -> tuple[Event, ...]:
        with self._guard:
            self._absorb()
            return (*self._older_history(by, name), *self._recent.get((by, name), ()))

    def read_all(self) -> Iterator[Event]:
        end = self.journal.end
        for _, line in read_lines(self.files.journal):
            if line.event.seq > end.seq:
                return
            yield line.event

    def sql(self, query: str) -> Answer:
        with self._guard:
            self._absorb()
            self._flush()
            return self._index.sql(query)

    def shut(self) -> None:
        """Flush, close both files and free the lock; what the index lacks, the next opening adds."""
        if os.getpid() != self.pid:
            return
        with self._guard:
            self._flush_quietly()
            try:
                self._index.close()
            except duckdb.Error:
                _log.warning(
                    "The index could not be closed cleanly; it will be caught up at the next opening."
                )
            self.journal.close()
            self._file_lock.release()

    def refuse_in_child(self) -> None:
        if os.getpid() != self.pid:
            raise LedgerClosedError(
                "The ledger belongs to the parent of this forked process; open another in the child."
            )

    def _absorb(self) -> None:
        """Take in what an interrupt kept an earlier append from taking in (D3)."""
        if self._absorbed != self.journal.end:
            self._take([line for _, line in read_lines(self.files.journal, after=self._absorbed)])

    def _take(self, lines: Sequence[Line]) -> None:
        for line in lines:
            event = line.event
            places = [("stream", event.stream_id)]
            if event.idempotency_key is not None:
                places.append(("key", event.idempotency_key))
            for place_ in places:
                if not (known := self._recent[place_]) or known[-1].seq < event.seq:
                    known.append(event)
            self._event_ids.add(event.event_id)
            if not self._unindexed or self._unindexed[-1].event.seq < event.seq:
                self._unindexed.append(line)
        self._absorbed = self.journal.end

    def _older_history(self, by: str, name: str) -> list[Event]:
        """Give what was there before this opening; asked of the index once, and not at all of a new ledger."""
        if self._opened.seq == 0:
            return []
        if (by, name) not in self._older:
            look = self._index.by_key if by == "key" else self._index.by_stream
            found = [line.event for line in look(name) if line.event.seq <= self._opened.seq]
            self._older[by, name] = found
        return self._older[by, name]

    def _moved(self, condition: Unchanged) -> bool:
        by, name = ("key", condition.key) if condition.key is not None else ("stream", condition.stream)
        if name is None:
            raise ValueError("a condition names a key or a stream")
        history = self._recent.get((by, name)) or self._older_history(by, name)
        return (history[-1].seq if history else 0) != condition.last_seq

    def _refuse_known(self, drafts: Sequence[EventDraft]) -> None:
        ids = [draft.event_id for draft in drafts]
        if len(set(ids)) < len(ids) or not self._event_ids.isdisjoint(ids):
            raise RefusedValueError("event_id", "this event id is recorded already")

    def _flush(self) -> None:
        if not self._unindexed:
            return
        try:
            mark = self._index.mark()
            reached = mark.end.seq if mark is not None else 0
            self._index.add([line for line in self._unindexed if line.event.seq > reached], self._absorbed)
        except duckdb.Error as error:
            raise LedgerError(
                f"The index could not be filled ({str(error).splitlines()[0]}); the journal is whole."
            ) from None
        self._unindexed = []

    def _flush_quietly(self) -> None:
        """An append is not failed by its index: the journal has it, and the index is filled later."""
        try:
            self._flush()
        except LedgerError as error:
            _log.warning("%s", error)


def lock_files(files: Files) -> filelock.BaseFileLock:
    lock = filelock.FileLock(files.lock, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise LedgerInUseError(
            f"Another process, perhaps another notebook, writes to {files.index.name}. "
            "Close it first, or read along with LedgerReader or `codeai-lab inspect`."
        ) from None
    except OSError as error:
        raise LedgerReadOnlyError(
            f"{files.index.name} cannot be opened for writing ({error.strerror}); check the folder's permissions."
        ) from None
    return lock
