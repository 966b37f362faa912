"""What does an opening find, and what does it do about it?

Chapter: 004, "The line that may already be there": what is there after a crash is a question, not an
assumption.

Idea: under the lock there is no other writer, so what lies in the folder is all there is. The journal's end
and the index's mark are compared; the answer is one of a few.

    journal            index                  then
    none               none                   a new ledger
    none               ours                   refused: the journal is missing (`store.restore`)
    whole              none or unreadable     rebuilt
    whole              foreign, rows missing  set aside, rebuilt
    whole              behind                 caught up
    torn at the end    not ahead              the torn end is set aside
    any                ahead                  refused: acknowledged lines are missing (`store.restore`)

Always true:
  O1. Nothing is overwritten: what is not used is set aside under a new name.
  O2. What was repaired is said, one sentence each.
  O3. A refusal leaves every file as it was.

Not here: the lock (`store.ledger`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from codeai_lab.errors import IndexAheadError, LedgerNotFoundError, LedgerReadOnlyError, NotALedgerError
from codeai_lab.store.index import Index, Mark
from codeai_lab.store.journal import Tail, create, find_tail, free_name, read_lines, set_tail_aside
from codeai_lab.store.lines import Line, damaged, line_digest

Progress = Callable[[int, int], None]
CHUNK = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one ledger."""

    index: Path
    journal: Path
    lock: Path

    @classmethod
    def of(cls, path: Path) -> Files:
        """Give the files that belong to a ledger's path.

        Raises: LedgerNotFoundError when its folder is missing or it is a folder itself.
        """
        if path.is_dir():
            raise LedgerNotFoundError(f"{path.name} is a folder; name a file in it, such as lab.duckdb.")
        if not path.parent.is_dir():
            raise LedgerNotFoundError(
                f"The folder that {path.name} should lie in does not exist; make it first."
            )
        return cls(
            index=path,
            journal=path.with_name(f"{path.name}.journal.jsonl"),
            lock=path.with_name(f"{path.name}.lock"),
        )


@dataclass(slots=True, kw_only=True)
class Opened:
    """An opened pair of journal and index, and what was repaired on the way."""

    tail: Tail
    index: Index
    notices: list[str] = field(default_factory=list)


def open_files(files: Files, *, created: Callable[[], bytes], progress: Progress | None = None) -> Opened:
    """Open the files of a ledger for writing, or make a new one; the caller holds the lock.

    Args:
        created: gives line 0 of a new ledger.
        progress: is told (events done, events in all) during a rebuild.

    Raises: NotALedgerError, LedgerTooNewError, LedgerDamagedError, IndexAheadError, LedgerReadOnlyError.
    """
    if not files.journal.exists():
        _refuse_index_without_journal(files)
        create(files.journal, [created()])
    try:
        tail = find_tail(files.journal)
    except PermissionError:
        raise LedgerReadOnlyError(f"{files.journal.name} cannot be read; check its permissions.") from None
    notices: list[str] = []
    index = _usable_index(files, tail, notices)
    aside = set_tail_aside(files.journal, tail)
    if aside is not None:
        notices.append(
            f"The last append was never finished; its {tail.file_size - tail.end.size} bytes are in {aside.name}."
        )
    if index is None:
        index = rebuild(files, tail, progress)
        notices.append("The index was rebuilt from the journal.") if tail.end.seq else None
    else:
        catch_up(index, files.journal, tail)
    index.settle()
    return Opened(tail=tail, index=index, notices=notices)


def rebuild(files: Files, tail: Tail, progress: Progress | None = None) -> Index:
    """Make a new index of the whole journal, checking every line.

    Raises: LedgerDamagedError naming the first line that does not fit.
    """
    done = 0
    for done, _ in enumerate(read_lines(files.journal), start=1):
        if progress is not None and done % CHUNK == 0:
            progress(done, tail.end.seq)
    if done != tail.end.seq:
        raise damaged(done + 1, "is missing")
    index = Index(str(files.index))
    index.create(tail.created)
    if tail.end.seq:
        index.fill_from(files.journal, tail.end)
    return index


def catch_up(index: Index, journal: Path, tail: Tail) -> None:
    """Add to an index what the journal has beyond its mark."""
    mark = index.mark()
    if mark is None or mark.end.seq == tail.end.seq:
        return
    lines: list[Line] = [line for _, line in read_lines(journal, after=mark.end)]
    index.add(lines, tail.end)


def _refuse_index_without_journal(files: Files) -> None:
    if not files.index.exists():
        return
    index, mark = _open_index(files.index)
    if index is not None:
        index.close()
    if mark is None:
        raise NotALedgerError(
            f"{files.index.name} is not a ledger of codeai_lab; it was left untouched. Choose another name."
        )
    raise IndexAheadError(
        f"The journal of {files.index.name} is missing; the index holds its events 1 to {mark.end.seq}. "
        f"Run: codeai-lab restore {files.index.name}",
        missing=(1, mark.end.seq),
    )


def _usable_index(files: Files, tail: Tail, notices: list[str]) -> Index | None:
    """Give the index if its mark lies on this journal; else set it aside and give None."""
    if not files.index.exists():
        return None
    index, mark = _open_index(files.index)
    if index is not None and mark is not None and mark.created == tail.created:
        _refuse_index_ahead(files, index, mark, tail)
        _refuse_changed_history(files, index, mark, tail)
        return index
    if index is not None:
        index.close()
    aside = free_name(files.index.with_name(f"{files.index.name}.aside"))
    files.index.rename(aside)
    wal = files.index.with_name(f"{files.index.name}.wal")
    if wal.exists():
        wal.rename(aside.with_name(f"{aside.name}.wal"))
    why = "cannot be read" if index is None else "belongs to another ledger or lacks rows"
    notices.append(f"The index {why}; it was set aside as {aside.name}.")
    return None


def _open_index(path: Path) -> tuple[Index | None, Mark | None]:
    try:
        index = Index(str(path))
    except (duckdb.Error, OSError):
        return None, None
    try:
        return index, index.mark()
    except (duckdb.Error, ValueError):
        index.close()
        return None, None


def _refuse_index_ahead(files: Files, index: Index, mark: Mark, tail: Tail) -> None:
    if mark.end.seq <= tail.end.seq:
        return
    index.close()
    first, last = tail.end.seq + 1, mark.end.seq
    named = f"event {last}" if first == last else f"events {first} to {last}"
    raise IndexAheadError(
        f"The journal of {files.index.name} has lost {named}: acknowledged, and still in the index. "
        f"Run: codeai-lab restore {files.index.name}",
        missing=(first, last),
    )


def _refuse_changed_history(files: Files, index: Index, mark: Mark, tail: Tail) -> None:
    with files.journal.open("rb") as file:
        before = max(0, mark.end.size - (1 << 20) - 2)
        file.seek(before)
        line = file.read(mark.end.size - before)[:-1].rpartition(b"\n")[2]
    if line_digest(line) != mark.end.digest:
        index.close()
        raise damaged(mark.end.seq, "is not what was acknowledged: the index knows another one")
