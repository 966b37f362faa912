"""Is every line what was acknowledged, and how are lost lines brought back?

Chapter: 004, "Checking it without trusting it"; the ledger must stand up to the same doubt as a bundle.

Idea: an ordinary opening looks at the end of the journal and at the index's mark. The full check reads every
line, follows the chain, and compares with the index. Where the journal has lost acknowledged lines that the
index still has, `restore` writes them back, and only if they fit the chain on both sides.

Always true:
  T1. A check changes nothing and takes no lock.
  T2. A restore appends to the journal or makes a missing one; it changes no line that is there.
  T3. What is written back gives the digests that were acknowledged, or nothing is written.

Not here: repairing a torn end (`store.opening`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from codeai_lab.errors import LedgerError, LedgerNotFoundError
from codeai_lab.store.core import lock_files
from codeai_lab.store.index import Index, Mark
from codeai_lab.store.journal import (
    Journal,
    create,
    find_tail,
    flush_folder,
    read_lines,
    set_tail_aside,
    start_of,
)
from codeai_lab.store.lines import decode_creation, encode_line, line_digest
from codeai_lab.store.opening import Files, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a full check found whole: the ledger's id and the number of events."""

    ledger_id: str
    events: int


def check(path: Path, *, progress: Progress | None = None) -> Checked:
    """Read every line of a ledger's journal and follow the chain.

    Raises: LedgerDamagedError naming the first line that is not what was acknowledged.
    """
    files = Files.of(path.resolve())
    if not files.journal.exists():
        raise LedgerNotFoundError(f"There is no journal of {files.index.name} here.")
    tail = find_tail(files.journal)
    events = 0
    for events, _ in enumerate(read_lines(files.journal), start=1):
        if progress is not None and events % 10_000 == 0:
            progress(events, max(events, tail.end.seq))
    return Checked(ledger_id=tail.ledger_id, events=events)


def restore(path: Path) -> int:
    """Write back the acknowledged lines that the journal has lost and the index has; give their number.

    Raises: LedgerError when the index is missing or unreadable, or its lines do not fit the journal's.
    """
    files = Files.of(path.resolve())
    if not files.index.exists():
        raise LedgerNotFoundError(
            f"There is no index called {files.index.name} here; nothing can be restored from it."
        )
    with lock_files(files):
        index, mark = _readable(files)
        try:
            return _write_back(files, index, mark)
        finally:
            index.close()


def _write_back(files: Files, index: Index, mark: Mark) -> int:
    if files.journal.exists():
        tail = find_tail(files.journal)
        if tail.created != mark.created:
            raise LedgerError(
                f"The index {files.index.name} belongs to another ledger; nothing was restored."
            )
        end = tail.end
    else:
        decode_creation(mark.created)
        tail, end = None, start_of(mark.created)
    raws, prev = [], end.digest
    for line in index.lines(after_seq=end.seq):
        if line.prev != prev:
            raise LedgerError(
                f"Event {line.event.seq} of the index does not follow the journal; nothing was restored."
            )
        raws.append(encode_line(line))
        prev = line_digest(raws[-1])
    if prev != mark.end.digest or end.seq + len(raws) != mark.end.seq:
        raise LedgerError("The index does not reach what was acknowledged; nothing was restored.")
    if tail is None:
        create(files.journal, [mark.created, *raws])
    elif raws:
        set_tail_aside(files.journal, tail)
        journal = Journal(files.journal, end)
        try:
            journal.append(raws, last_digest=prev)
        finally:
            journal.close()
        flush_folder(files.journal.parent)
    return len(raws)


def _readable(files: Files) -> tuple[Index, Mark]:
    try:
        index = Index(str(files.index))
    except duckdb.Error:
        raise LedgerError(
            f"The index {files.index.name} cannot be read; nothing can be restored from it."
        ) from None
    mark = index.mark()
    if mark is None:
        index.close()
        raise LedgerError(
            f"The index {files.index.name} lacks rows or is none of ours; nothing was restored."
        )
    return index, mark
