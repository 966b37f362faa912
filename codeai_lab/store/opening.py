"""What does an opening find, and what does it do about it?

Chapter: 004, "The line that may already be there": what is there after a crash is a question, not an
assumption.

Idea: under the lock there is no other writer, so what lies in the folder is all there is. The journal's end
and the index's mark are compared; the answer is one of a few. First everything that may refuse, which only
reads; then the repairs.

    journal            index                  then
    none               none                   a new ledger
    none, or no line   ours                   refused: the journal is missing (`store.restore`)
    whole              none                   rebuilt
    whole              unreadable, foreign,   set aside, rebuilt
                       rows missing
    whole              behind                 caught up
    torn at the end    not ahead              the torn end is set aside
    any                ahead                  refused: acknowledged lines are missing (`store.restore`)
    any                open elsewhere         refused

Always true:
  O1. Nothing is overwritten: what is not used is set aside under a new name.
  O2. What was repaired is said, one sentence each.
  O3. A refusal leaves every file as it was.

Not here: the names and the lock (`store.files`), an index that fails later (`store.core`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import duckdb

from codeai_lab.errors import IndexAheadError, LedgerInUseError, NotALedgerError
from codeai_lab.store.chain import (
    End,
    Tail,
    check_lines,
    damaged,
    find_tail,
    read_creation,
    read_lines,
    start_of,
)
from codeai_lab.store.database import failure, is_full
from codeai_lab.store.files import Files, unusable
from codeai_lab.store.index import Index, Mark
from codeai_lab.store.journal import Journal, create, set_aside, settle_end
from codeai_lab.store.lines import LONGEST_LINE, line_digest

Progress = Callable[[int, int], None]
CHUNK = 10_000


@dataclass(slots=True, kw_only=True)
class Opened:
    """An opened pair of journal and index, and what was repaired on the way."""

    tail: Tail
    journal: Journal
    index: Index
    notices: list[str] = field(default_factory=list)


def open_files(files: Files, *, created: Callable[[], bytes], progress: Progress | None = None) -> Opened:
    """Open the files of a ledger for writing, or make a new one; the caller holds the lock.

    Args:
        created: gives line 0 of a new ledger.
        progress: is told (events done, events in all) during a rebuild.

    Raises: NotALedgerError, LedgerTooNewError, LedgerDamagedError, IndexAheadError, LedgerInUseError,
        LedgerFullError, LedgerReadOnlyError.
    """
    try:
        if not files.journal.exists() or not read_creation(files.journal):
            refuse_missing_journal(files)
            if not files.journal.exists():
                create(files.journal, [created()])
        tail = find_tail(files.journal)
        mark = _usable_mark(files, tail)
        reached = start_of(tail.created) if mark is None else mark.end
        _refuse_damage(files, after=reached, end=tail.end, progress=progress)
        notices = []
        torn = settle_end(files.journal, tail)
        if torn is not None:
            size = tail.file_size - tail.end.size
            notices.append(f"The last append was never finished; its {size} bytes are in {torn.name}.")
        with ExitStack() as undo:
            journal = Journal(files.journal, tail.end)
            undo.callback(journal.close)
            index, said = _index_over(files, tail, mark, progress)
            undo.pop_all()
    except OSError as error:
        raise unusable(files, error) from None
    return Opened(tail=tail, journal=journal, index=index, notices=notices + said)


def refuse_missing_journal(files: Files) -> None:
    """Raise what is to be said of an index without a journal; do nothing when there is no index either."""
    if not files.index.exists():
        return
    mark = read_mark(files)
    if mark is None:
        raise NotALedgerError(
            f"{files.index.name} is not a ledger of codeai_lab; it was left untouched. Choose another name."
        )
    raise IndexAheadError(
        f"The journal of {files.index.name} is missing; {mark.end.seq} of its events are in the index. "
        f"Run: codeai-lab restore {files.index.name}",
        missing=(1, mark.end.seq),
    )


def read_mark(files: Files) -> Mark | None:
    """Give the mark of an index, changing nothing; None for one that is unreadable, not ours or lacks rows.

    Raises: LedgerInUseError when something else has the index open.
    """
    try:
        index = Index(str(files.index), read_only=True)
    except duckdb.Error as error:
        if any(words in str(error) for words in ("set lock", "being used", "different configuration")):
            raise LedgerInUseError(
                f"Another program, or another connection in this one, has {files.index.name} open; "
                "close it first."
            ) from None
        return None
    try:
        return index.mark()
    except duckdb.Error:
        return None
    finally:
        index.close()


def mark_beside_others(files: Files) -> Mark | None:
    """Give the mark as `read_mark` does, and None as well while a writer keeps its index to itself.

    To be asked for before the journal is read: what an index knows was in the journal by then, so that a
    writer who comes and goes meanwhile never makes the index seem ahead.
    """
    try:
        return read_mark(files) if files.index.exists() else None
    except LedgerInUseError:
        return None


def refuse_ahead(files: Files, mark: Mark, *, last_seq: int) -> None:
    """Raise when the index holds events that the journal lacks, or knows another line where its mark is."""
    if mark.end.seq > last_seq:
        first, last = last_seq + 1, mark.end.seq
        named = f"event {last}" if first == last else f"events {first} to {last}"
        raise IndexAheadError(
            f"The index of {files.index.name} knows more than its journal, which has lost {named}: "
            f"acknowledged, and still in the index. Run: codeai-lab restore {files.index.name}",
            missing=(first, last),
        )
    with files.journal.open("rb") as file:
        before = max(0, mark.end.size - LONGEST_LINE - 2)
        file.seek(before)
        line = file.read(mark.end.size - before)[:-1].rpartition(b"\n")[2]
    if line_digest(line) != mark.end.digest:
        raise damaged(mark.end.seq, "is not what was acknowledged: the index knows another one")


def reopen_index(files: Files, tail: Tail, *, trusted: bool) -> tuple[Index, list[str]]:
    """Open an index again that failed, and rebuild it if it is not usable or not trusted; say what was done.

    The caller holds the lock. Raises: LedgerError.
    """
    try:
        return _index_over(files, tail, _usable_mark(files, tail) if trusted else None, None)
    except OSError as error:
        raise unusable(files, error) from None


def _usable_mark(files: Files, tail: Tail) -> Mark | None:
    mark = read_mark(files) if files.index.exists() else None
    if mark is None or mark.created != tail.created:
        return None
    refuse_ahead(files, mark, last_seq=tail.end.seq)
    return mark


def _refuse_damage(files: Files, *, after: End, end: End, progress: Progress | None) -> None:
    """Check every line that the index is about to take, before anything is changed."""
    reached = after
    for number, reached in enumerate(check_lines(files.journal, after=after)):
        if progress is not None and number % CHUNK == CHUNK - 1:
            progress(reached.seq, end.seq)
    if reached != end:
        raise damaged(reached.seq + 1, "is missing")


def _index_over(
    files: Files, tail: Tail, mark: Mark | None, progress: Progress | None
) -> tuple[Index, list[str]]:
    """Open the index and fill it up to the journal's end, or else set it aside and make a new one."""
    try:
        if mark is not None:
            try:
                return _filled(files, tail, mark), []
            except duckdb.Error as error:
                if is_full(error):
                    raise
                _refuse_damage(files, after=start_of(tail.created), end=tail.end, progress=progress)
        notices = _clear_the_place(files)
        index = _filled(files, tail, None)
    except duckdb.Error as error:
        raise failure(error) from None
    return index, notices + (["The index was rebuilt from the journal."] if tail.end.seq else [])


def _clear_the_place(files: Files) -> list[str]:
    """Set aside what lies where the index should be."""
    moved = [set_aside(path).name for path in (files.index, files.wal) if path.exists()]
    if not moved:
        return []
    why = "it is unreadable, belongs to another ledger, or lacks rows"
    return [f"The index was set aside as {' and '.join(moved)}: {why}."]


def _filled(files: Files, tail: Tail, mark: Mark | None) -> Index:
    """Open the index, or make it, and fill it up to the journal's end; half-made, it is removed again."""
    end = tail.end
    index = Index(str(files.index))
    try:
        if mark is None:
            index.create(tail.created)
        reached = start_of(tail.created) if mark is None else mark.end
        if end.seq - reached.seq > CHUNK or (mark is None and end.seq):
            index.fill_from(files.journal, after=reached, end=end)
        elif end.seq > reached.seq:
            index.add([line for _, line in read_lines(files.journal, after=reached, until=end)], end)
        index.settle()
    except BaseException:
        index.close()
        if mark is None:
            files.index.unlink(missing_ok=True)
            files.wal.unlink(missing_ok=True)
        raise
    return index
