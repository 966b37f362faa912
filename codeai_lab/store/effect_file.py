"""What is in the file of an effect service, and how does it stay whole when the process is killed?

Chapter: 004, "Retry, replay, duplicate": completion-record durability.

Idea: four tables in one DuckDB file. The log of effects and the collections only grow; completion records are
dropped when they are no longer needed. What is remembered of a client is read from the rows each time, so
that nothing in memory can differ from what a killed process leaves.

    leases        who may ask for something new, until when
    effects       the log: the effects themselves
    completions   the saved results
    collections   which results were dropped, and why

Always true:
  EF1. The file is there whole or not at all: it is made under another name first.
  EF2. What happens between `held` and its end is committed together, or nothing of it.
  EF3. The database itself refuses a second effect, or a second record, under one id.
  EF4. DuckDB's own log is never folded into the file, since a kill in the middle of that can spoil both. The
       two only grow.

Not here: when to act (`store.effect_service`). A disk that loses what it was told to keep.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import filelock

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.retention import RequestId, Retained
from codeai_lab.decide.witnesses import Receipt
from codeai_lab.errors import LedgerFailedError, LedgerInUseError, RefusedRequestError
from codeai_lab.store.database import connect, disconnect, transaction
from codeai_lab.store.files import Files, unusable

_SCHEMA = """
CREATE TABLE leases(client_id VARCHAR NOT NULL, until_us BIGINT NOT NULL);
CREATE TABLE effects(n BIGINT PRIMARY KEY, client_id VARCHAR NOT NULL, sequence BIGINT NOT NULL,
  action_id VARCHAR NOT NULL, line VARCHAR NOT NULL, digest VARCHAR NOT NULL, UNIQUE(client_id, sequence));
CREATE TABLE completions(client_id VARCHAR NOT NULL, sequence BIGINT NOT NULL, result VARCHAR NOT NULL,
  PRIMARY KEY(client_id, sequence));
CREATE TABLE collections(client_id VARCHAR NOT NULL, up_to BIGINT NOT NULL, reason VARCHAR NOT NULL,
  dropped BIGINT NOT NULL);
"""
ACKNOWLEDGED, LEASE_OVER = "acknowledged", "lease over"


class EffectFile:
    """The open file, locked against every other; everything but `held` and `close` is called inside `held`.

    Raises: LedgerInUseError when it is open already; RefusedRequestError for another kind of file;
        LedgerError for a place where none can be.
    """

    def __init__(self, path: Path) -> None:
        self._guard = threading.Lock()
        files = Files.of(path)
        with ExitStack() as undo:
            self._lock = _lock(files)
            undo.callback(self._lock.release)
            self._connection = _open(files)
            undo.pop_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the file for one transaction (EF2).

        Raises: LedgerFailedError (indefinite) when the database fails.
        """
        with self._guard:
            try:
                with transaction(self._connection):
                    yield
            except duckdb.Error as error:
                raise LedgerFailedError(
                    f"The effect service does not answer ({type(error).__name__}); open it again, "
                    "and ask once more under the same id."
                ) from None

    def retained(self, client_id: str, *, in_progress: Set[int]) -> Retained:
        """Give what is remembered of a client."""
        leases = self._rows("SELECT until_us FROM leases WHERE client_id = ?", client_id)
        marks = self._rows("SELECT up_to, reason FROM collections WHERE client_id = ?", client_id)
        results = self._rows("SELECT sequence, result FROM completions WHERE client_id = ?", client_id)
        return Retained(
            lease_until_us=max((until_us for (until_us,) in leases), default=0),
            acknowledged=max((up_to for up_to, _ in marks), default=0),
            results={sequence: json.loads(result) for sequence, result in results},
            in_progress=frozenset(in_progress),
            collected=any(reason == LEASE_OVER for _, reason in marks),
        )

    def note(self, client_id: str, before: Retained, after: Retained) -> None:
        """Record that a client's mark rose or that it was collected, and drop the results that this drops."""
        if (before.acknowledged, before.collected) == (after.acknowledged, after.collected):
            return
        reason = LEASE_OVER if after.collected else ACKNOWLEDGED
        dropped = len(before.results) - len(after.results)
        self._rows(
            "DELETE FROM completions WHERE client_id = ? AND sequence <= ?", client_id, after.acknowledged
        )
        self._rows(
            "INSERT INTO collections VALUES (?, ?, ?, ?)", client_id, after.acknowledged, reason, dropped
        )

    def add_lease(self, client_id: str, *, until_us: int) -> None:
        self._rows("INSERT INTO leases VALUES (?, ?)", client_id, until_us)

    def clients(self) -> tuple[str, ...]:
        """Give the client ids in the order of their first lease."""
        rows = self._rows("SELECT client_id FROM leases ORDER BY rowid")
        return tuple(dict.fromkeys(client_id for (client_id,) in rows))

    def write_effect(self, request: RequestId, line: str, *, action_id: str) -> Receipt:
        """Append to the log: this is the effect."""
        ((number,),) = self._rows("SELECT count(*) + 1 FROM effects")
        receipt = Receipt(n=number, action_id=action_id, marker=f"effects/{number}", effect=digest_of(line))
        who = (request.client_id, request.sequence)
        self._rows(
            "INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?)", number, *who, action_id, line, receipt.effect
        )
        return receipt

    def write_record(self, request: RequestId, result: Any) -> None:
        """Save the result of a request."""
        saved = canonical_bytes(result).decode()
        self._rows("INSERT INTO completions VALUES (?, ?, ?)", request.client_id, request.sequence, saved)

    def receipts(self) -> tuple[Receipt, ...]:
        rows = self._rows("SELECT n, action_id, digest FROM effects ORDER BY n")
        return tuple(
            Receipt(n=number, action_id=action_id, marker=f"effects/{number}", effect=digest)
            for number, action_id, digest in rows
        )

    def line(self, number: int) -> str | None:
        """Give a line of the log; None where there is none of that number."""
        rows = self._rows("SELECT line FROM effects WHERE n = ?", number)
        return str(rows[0][0]) if rows else None

    def counts(self) -> dict[str, int]:
        """Count effects, the records kept of them, and the events of collection."""
        tables = {"effects": "effects", "records": "completions", "collections": "collections"}
        return {
            name: int(self._rows(f"SELECT count(*) FROM {table}")[0][0]) for name, table in tables.items()
        }

    def close(self) -> None:
        """Let go of the file and its lock; harmless when it was done before."""
        with self._guard:
            disconnect(self._connection)
            self._lock.release()

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, list(values)).fetchall()


def digest_of(line: str) -> str:
    """Give the digest of the bytes that a line is in a log."""
    return hashlib.sha256(f"{line}\n".encode()).hexdigest()


def _lock(files: Files) -> filelock.BaseFileLock:
    lock = filelock.FileLock(files.lock, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise LedgerInUseError(
            f"The effect service {files.index.name} is open already; close it there first."
        ) from None
    except OSError as error:
        raise unusable(files, error) from None
    return lock


def _open(files: Files) -> duckdb.DuckDBPyConnection:
    name = files.index.name
    try:
        if not files.index.exists():
            _make(files.index)
        connection = connect(str(files.index))
    except OSError as error:
        raise unusable(files, error) from None
    except duckdb.Error:
        raise RefusedRequestError(f"{name} cannot be read as an effect service; name another file.") from None
    try:
        connection.execute("SELECT 1 FROM leases, effects, completions, collections LIMIT 0")
        connection.execute("SET checkpoint_threshold = '1TB'; PRAGMA disable_checkpoint_on_shutdown")
    except duckdb.Error:
        disconnect(connection)
        raise RefusedRequestError(f"{name} is no effect service; name another file.") from None
    return connection


def _make(path: Path) -> None:
    """Make the file whole before it has its name (EF1)."""
    unfinished = path.with_name(f"{path.name}.new")
    for left in (unfinished, unfinished.with_name(f"{unfinished.name}.wal")):
        left.unlink(missing_ok=True)
    connection = connect(str(unfinished))
    try:
        connection.execute(_SCHEMA)
    finally:
        disconnect(connection)
    unfinished.replace(path)
