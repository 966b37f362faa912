"""Is every line what was acknowledged, and how are lost lines brought back?

Chapter: 004, "Checking it without trusting it"; the ledger must stand up to the same doubt as a bundle.

Idea: an ordinary opening looks at the end of the journal and at the index's mark. The full check reads
every line, follows the chain, and compares with the index's mark. Where the journal has lost acknowledged
lines that the index still has, `restore` writes them back, and only if they fit the chain on both sides.

Always true:
  T1. A check changes nothing and waits for nobody; beside a writer, which keeps its index to itself, it
      leaves the mark out. One that writes and ends meanwhile makes no alarm.
  T2. A restore appends to the journal or makes a missing one; it changes no line that is there, and adds
      none to a journal that holds a line which is not what was acknowledged.
  T3. What is written back gives the digests that were acknowledged, or nothing is written.

Not here: repairing a torn end (`store.opening`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from codeai_lab.errors import LedgerError, LedgerNotFoundError
from codeai_lab.store.chain import check_lines, find_tail, read_creation, start_of
from codeai_lab.store.database import failure
from codeai_lab.store.files import Files, lock_files, unusable
from codeai_lab.store.index import Index, Mark
from codeai_lab.store.journal import Journal, create, set_aside, settle_end
from codeai_lab.store.lines import decode_creation, encode_line, line_digest
from codeai_lab.store.opening import (
    CHUNK,
    Progress,
    mark_beside_others,
    read_mark,
    refuse_ahead,
    refuse_missing_journal,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a full check found whole: the ledger's id and the number of events."""

    ledger_id: str
    events: int


def check(path: Path, *, progress: Progress | None = None) -> Checked:
    """Read every line of a ledger's journal, follow the chain, and compare with the index's mark.

    Raises: LedgerDamagedError naming the first line that is not what was acknowledged; IndexAheadError when
        the journal has lost lines.
    """
    files = Files.of(Path(path))
    if not files.journal.exists() or not read_creation(files.journal):
        refuse_missing_journal(files)
    if not files.journal.exists():
        raise LedgerNotFoundError(f"There is no ledger called {files.index.name} here.")
    mark = mark_beside_others(files)
    tail = find_tail(files.journal)
    end = start_of(tail.created)
    for number, end in enumerate(check_lines(files.journal)):
        if progress is not None and number % CHUNK == CHUNK - 1:
            progress(end.seq, max(end.seq, tail.end.seq))
    if mark is not None and mark.created == tail.created:
        refuse_ahead(files, mark, last_seq=end.seq)
    return Checked(ledger_id=tail.ledger_id, events=end.seq)


def restore(path: Path) -> int:
    """Write back the acknowledged lines that the journal has lost and the index has; give their number.

    Raises: LedgerDamagedError naming the first line that is not what was acknowledged; LedgerError when the
        index is missing or unreadable, or its lines do not fit the journal's.
    """
    files = Files.of(Path(path))
    if not files.index.exists():
        raise LedgerNotFoundError(
            f"There is no index called {files.index.name} here; nothing can be restored from it."
        )
    with lock_files(files):
        mark = read_mark(files)
        if mark is None:
            raise LedgerError(
                f"The index {files.index.name} is unreadable, lacks rows or is none of ours; "
                "nothing can be restored from it."
            )
        try:
            return _write_back(files, mark)
        except duckdb.Error as error:
            raise failure(error) from None
        except OSError as error:
            raise unusable(files, error) from None


def _write_back(files: Files, mark: Mark) -> int:
    begun = files.journal.exists() and read_creation(files.journal) != b""
    tail = find_tail(files.journal) if begun else None
    if tail is None:
        decode_creation(mark.created)
        end = start_of(mark.created)
    elif tail.created != mark.created:
        raise LedgerError(f"The index {files.index.name} belongs to another ledger; nothing was restored.")
    else:
        end = tail.end
        for _ in check_lines(files.journal):
            pass
        if mark.end.seq <= end.seq:
            refuse_ahead(files, mark, last_seq=end.seq)
            return 0
    raws, last_digest = _lost_lines(files, after_seq=end.seq, prev=end.digest)
    if last_digest != mark.end.digest or end.seq + len(raws) != mark.end.seq:
        raise LedgerError("The index does not reach what was acknowledged; nothing was restored.")
    if tail is None:
        if files.journal.exists():
            set_aside(files.journal)
        create(files.journal, [mark.created, *raws])
        return len(raws)
    settle_end(files.journal, tail)
    journal = Journal(files.journal, end)
    try:
        journal.append(raws, last_digest=last_digest)
    finally:
        journal.close()
    return len(raws)


def _lost_lines(files: Files, *, after_seq: int, prev: str) -> tuple[list[bytes], str]:
    """Give the index's lines above a seq as they were written, and the digest of the last."""
    index = Index(str(files.index), read_only=True)
    try:
        raws = []
        for line in index.lines(after_seq=after_seq):
            if line.prev != prev:
                raise LedgerError(
                    f"Event {line.event.seq} of the index does not follow the journal; nothing was restored."
                )
            raws.append(encode_line(line))
            prev = line_digest(raws[-1])
        return raws, prev
    finally:
        index.close()
