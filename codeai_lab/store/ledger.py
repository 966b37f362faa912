"""Where does a program keep what it must not forget, and who else may write there?

Chapter: 004, "Two threads, one key, two effects": single writer as a lock, not as an assumption.

Idea: one writer for as long as it lives. A file lock, freed by the kernel on death, says that every earlier
writer is gone; inside the process one core serves every `DuckDBLedger` on the same file, so that a set-up
cell may be run twice. An append goes to the journal and is durable; DuckDB is filled behind it. What was
seen since opening is found in memory, what is older through the index.

Always true:
  D7. Two ledgers on one file in one process are one ledger, whatever name they reached it by.
  D8. The last one to close frees the lock; so does the end of the process.
  D9. A core that failed, or whose journal was deleted, is not handed out again: opening the ledger once more
      opens what is there now.

Not here: appending and finding (`store.core`), repairing at opening (`store.opening`), reading beside the
writer (`store.reader`).
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from codeai_lab.clock import Clock, SystemClock
from codeai_lab.errors import LedgerClosedError
from codeai_lab.records import Event, EventDraft
from codeai_lab.store.core import Core
from codeai_lab.store.files import Files
from codeai_lab.store.index import Answer
from codeai_lab.store.opening import Progress
from codeai_lab.store.protocol import Unchanged


class DuckDBLedger:
    """A ledger in a file, open for writing; made when it is not there.

    Args:
        path: the DuckDB file; the journal lies beside it as `<path>.journal.jsonl`.
        ledger_id: the name of a new ledger; a random one by default. An existing ledger keeps its own.
        clock: says when a new ledger is made; the machine's by default.
        progress: is told (events done, events in all) while a missing index is rebuilt.

    Raises: a LedgerError of one sentence; nothing is changed then.
    Touches: the files `<path>`, `<path>.journal.jsonl`, `<path>.lock`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ledger_id: str | None = None,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> None:
        name = str(uuid4()) if ledger_id is None else ledger_id
        self._core = _core_of(Files.of(Path(path)), name, clock or SystemClock(), progress)
        self._closed = False
        # A set-up cell that runs again drops the ledger of its first run; that one must not keep the lock.
        self._let_go = weakref.finalize(self, _release, self._core)
        self._let_go.atexit = False  # the end of the process shuts every core itself

    @property
    def ledger_id(self) -> str:
        """The name that the ledger was given when it was created."""
        return self._core.ledger_id

    @property
    def live_actions(self) -> set[str]:
        """The event ids of the requests whose walk is alive in this process."""
        return self._core.live_actions

    @property
    def notices(self) -> tuple[str, ...]:
        """What was repaired at opening, one sentence each."""
        return tuple(self._core.notices)

    @property
    def journal(self) -> Path:
        """The journal file: the acknowledged lines themselves."""
        return self._core.files.journal

    def append(self, *drafts: EventDraft, unless_changed: Sequence[Unchanged] = ()) -> tuple[Event, ...]:
        """Record events together, durably; give () when a key or stream has moved.

        Raises: RefusedValueError and LedgerFullError (definite: nothing was recorded), LedgerFailedError
            (indefinite).
        """
        return self._usable().append(drafts, unless_changed)

    def read(self, stream_id: str) -> tuple[Event, ...]:
        """Give the events of one stream in order of seq."""
        return self._usable().history("stream", stream_id)

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        """Give the events that carry a key in order of seq."""
        return self._usable().history("key", idempotency_key)

    def read_all(self) -> Iterator[Event]:
        """Give every event in order of seq."""
        return self._usable().read_all()

    def sql(self, query: str) -> Answer:
        """Answer one SELECT over `events`, everything appended so far included.

        Raises: QueryRefusedError for anything but one SELECT, and for a query that fails.
        """
        return self._usable().sql(query)

    def close(self) -> None:
        """Let go; the last one on a file closes it and frees the lock."""
        if not self._closed:
            self._closed = True
            self._let_go()

    def __enter__(self) -> DuckDBLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DuckDBLedger({self._core.files.index.name!r}, events={self._core.journal.end.seq})"

    def _usable(self) -> Core:
        self._core.refuse_in_child()
        if self._closed:
            raise LedgerClosedError("The ledger was closed; open it again.")
        return self._core


_cores: dict[Path, Core] = {}
_cores_guard = threading.RLock()


def _core_of(files: Files, ledger_id: str, clock: Clock, progress: Progress | None) -> Core:
    with _cores_guard:
        core = _cores.get(files.journal) or _same_file(files)
        if core is not None and not core.journal.is_usable():
            core.shut()
        if core is None or core.closed:
            core = _cores[files.journal] = Core(files, ledger_id, clock, progress)
        core.users += 1
        return core


def _release(core: Core) -> None:
    with _cores_guard:
        core.users -= 1
        if core.users <= 0:
            try:
                core.shut()
            finally:
                if _cores.get(core.files.journal) is core:
                    del _cores[core.files.journal]


def _same_file(files: Files) -> Core | None:
    """Find a core that has the journal or the index open under another name, a hard link."""
    for core in _cores.values():
        for ours, theirs in ((files.journal, core.files.journal), (files.index, core.files.index)):
            with suppress(OSError):  # one of them is not there, or hidden from us
                if ours.samefile(theirs):
                    return core
    return None


def _shut_all() -> None:
    with ExitStack() as last:
        for core in _cores.values():
            last.callback(core.shut)


def _leave_to_the_parent() -> None:
    # In a forked child another thread may have held the guard; and what is open belongs to the parent.
    global _cores_guard
    _cores_guard = threading.RLock()
    _cores.clear()


atexit.register(_shut_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
