"""Which files make a ledger, and who may write to them?

Chapter: 004, "Two threads, one key, two effects": single writer as a lock, not as an assumption.

Idea: a ledger is the index `<path>`, the journal beside it, and a lock file, which says nothing by being
there. Whoever holds the lock holds it for as long as the ledger is open; the kernel frees it when the
process ends, however it ends. So whoever gets it knows that every earlier writer is gone.

Always true:
  G1. A second process is refused at once, in one sentence.
  G2. A forked child neither holds nor frees its parent's lock; the filelock package sees to that.
  G3. A link to a ledger is the ledger.

Not here: two ledgers of one process on one file (`store.ledger`), what the files hold (`store.opening`).
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

import filelock

from codeai_lab.errors import (
    LedgerError,
    LedgerFullError,
    LedgerInUseError,
    LedgerNotFoundError,
    LedgerReadOnlyError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one ledger; `wal` is DuckDB's own log of what is not in the index's file yet."""

    index: Path
    wal: Path
    journal: Path
    lock: Path

    @classmethod
    def of(cls, path: Path) -> Files:
        """Give the files that belong to a ledger's path, links followed.

        Raises: LedgerNotFoundError when its folder is missing or it is a folder itself; LedgerError for a
            path that DuckDB would take for another one.
        """
        try:
            path = path.resolve()
            files = cls(
                index=path,
                wal=path.with_name(f"{path.name}.wal"),
                journal=path.with_name(f"{path.name}.journal.jsonl"),
                lock=path.with_name(f"{path.name}.lock"),
            )
            path.with_name(
                f"{path.name}.journal.jsonl.tail-99.new"
            ).exists()  # the longest that may be needed
            is_folder = path.is_dir() and not files.journal.is_file()
            regular = all(not one.exists() or one.is_file() or one.is_dir() for one in (path, files.journal))
            has_folder = path.parent.is_dir()
        except (OSError, ValueError, RuntimeError):
            raise LedgerNotFoundError("No file can have such a name here; choose another.") from None
        if os.sep == "/" and not set(str(path)).isdisjoint("?\\"):
            raise LedgerError("DuckDB cannot use a path with ? or \\ in it; choose another name or folder.")
        if is_folder:
            raise LedgerNotFoundError(f"{path.name} is a folder; name a file in it, such as lab.duckdb.")
        if not regular:
            raise LedgerNotFoundError(f"{path.name} is no regular file; name one, such as lab.duckdb.")
        if not has_folder:
            raise LedgerNotFoundError(
                f"The folder that {path.name} should lie in does not exist; make it first."
            )
        return files


def lock_files(files: Files) -> filelock.BaseFileLock:
    """Take the lock of a ledger's files; free it with `release`.

    Raises: LedgerInUseError when another process has it, LedgerReadOnlyError when there can be no lock.
    """
    lock = filelock.FileLock(files.lock, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise LedgerInUseError(
            f"Another process, perhaps another notebook, writes to {files.index.name}: "
            "close it first, or read along with LedgerReader or `codeai-lab inspect`."
        ) from None
    except OSError as error:
        raise unusable(files, error) from None
    return lock


def unreadable(files: Files, error: OSError) -> LedgerError:
    """Say in one sentence why the journal cannot be read."""
    return LedgerReadOnlyError(f"{files.journal.name} cannot be read ({error.strerror}).")


def unusable(files: Files, error: OSError) -> LedgerError:
    """Say in one sentence why the system would not let a ledger be opened for writing."""
    if error.errno == errno.ENOSPC:
        return LedgerFullError(f"There is no space left to open {files.index.name}; free some space.")
    return LedgerReadOnlyError(
        f"{files.index.name} cannot be opened for writing ({error.strerror}); check the folder's permissions."
    )
