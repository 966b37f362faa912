"""How does a ledger answer questions in SQL without being asked to be the truth?

Chapter: 004, notes on the ledger's table; design of the ledger: the journal is the truth, DuckDB the index
over it.

Idea: DuckDB is filled from the journal in batches and can always be filled again. It carries a *mark*: whose
index it is and how far it reaches. Comparing the mark with the journal's end tells everything an opening must
know.

    behind the journal      catch up from the mark
    foreign, damaged, gaps  set aside, rebuild
    ahead of the journal    refuse: the journal has lost acknowledged lines (`store.restore`)

Always true:
  X1. Rows and mark change in one transaction; only seqs above the mark are added, nothing is updated or
      deleted.
  X2. A query is one SELECT, cannot read files, and is rolled back.
  X3. Losing the index loses nothing.

Not here: deciding what to do about a mark (`store.opening`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from codeai_lab.errors import LedgerFullError, QueryRefusedError
from codeai_lab.store.journal import End, start_of
from codeai_lab.store.lines import SCHEMA_VERSION, Line, decode_row, encode_row

_SCHEMA = """
CREATE TABLE ledger_mark(schema_version INTEGER, created VARCHAR, seq BIGINT, size BIGINT, digest VARCHAR);
CREATE TABLE events(
  seq BIGINT NOT NULL, event_id VARCHAR NOT NULL, run_id VARCHAR NOT NULL, stream_id VARCHAR NOT NULL,
  kind VARCHAR NOT NULL, actor_id VARCHAR NOT NULL, idempotency_key VARCHAR, recorded_at_us BIGINT NOT NULL,
  causation_id VARCHAR, payload JSON NOT NULL, batch INTEGER[2] NOT NULL, prev VARCHAR NOT NULL);
CREATE INDEX events_by_key ON events(idempotency_key);
CREATE INDEX events_by_stream ON events(stream_id);
"""
_COLUMNS = "seq, event_id, run_id, stream_id, kind, actor_id, idempotency_key, recorded_at_us, causation_id, payload, batch, prev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Whose index this is (`created` is line 0 of the journal) and how far it reaches in the journal."""

    created: bytes
    end: End


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a query gave: column names and rows, in the order of the query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Index:
    """One DuckDB database over one journal; `place` is its file, or `:memory:`."""

    def __init__(self, place: str) -> None:
        self._connection = duckdb.connect(place)
        _open_connections.append(self._connection)
        self._by_key: Any = None
        self._by_stream: Any = None

    def create(self, created: bytes) -> None:
        """Make the empty tables and a mark that reaches just line 0, given without its newline."""
        end = start_of(created)
        with self._transaction():
            self._connection.execute(_SCHEMA)
            self._connection.execute(
                "INSERT INTO ledger_mark VALUES (?, ?, ?, ?, ?)",
                [SCHEMA_VERSION, created.decode(), end.seq, end.size, end.digest],
            )

    def mark(self) -> Mark | None:
        """Give the mark, None when this is no index of ours or has rows missing.

        Raises: duckdb.Error when the file cannot be read.
        """
        try:
            row = self._connection.execute("SELECT * FROM ledger_mark").fetchone()
            count, newest = self._connection.execute(
                "SELECT count(*), coalesce(max(seq), 0) FROM events"
            ).fetchall()[0]
        except duckdb.CatalogException:
            return None
        if row is None or row[0] != SCHEMA_VERSION or not count == newest == row[2]:
            return None
        return Mark(created=row[1].encode(), end=End(seq=row[2], size=row[3], digest=row[4]))

    def settle(self) -> None:
        """Close the door to the file system and prepare the look-ups; call once, when the index is filled."""
        # One thread makes a look-up by key a third cheaper, and a classroom's ledger has no query that needs more.
        self._connection.execute("SET threads = 1")
        self._connection.execute("SET enable_external_access = false")
        self._by_key = self._connection.extract_statements(
            f"SELECT {_COLUMNS} FROM events WHERE idempotency_key = ?"  # alone: any further condition scans
        )[0]
        self._by_stream = self._connection.extract_statements(
            f"SELECT {_COLUMNS} FROM events WHERE stream_id = ?"
        )[0]

    def add(self, lines: Sequence[Line], end: End) -> None:
        """Add lines that follow the mark, and move the mark to `end`, in one transaction."""
        with self._transaction():
            appender = self._connection.appender("events")
            appender.append_rows([encode_row(line) for line in lines])
            appender.flush()
            self._move_mark(end)

    def fill_from(self, journal: Path, end: End) -> None:
        """Add all events of a journal that was checked up to `end`, as DuckDB itself reads it, and move the mark."""
        columns = (
            "{seq: 'BIGINT', event_id: 'VARCHAR', run_id: 'VARCHAR', stream_id: 'VARCHAR', kind: 'VARCHAR', "
            "actor_id: 'VARCHAR', idempotency_key: 'VARCHAR', recorded_at_us: 'BIGINT', causation_id: 'VARCHAR', "
            "payload: 'JSON', batch: 'INTEGER[2]', prev: 'VARCHAR'}"
        )
        with self._transaction():
            self._connection.execute(
                f"INSERT INTO events SELECT {_COLUMNS} FROM read_json(?, format = 'newline_delimited', "
                f"columns = {columns}) WHERE seq BETWEEN 1 AND ?",
                [_literally(journal), end.seq],
            )
            self._move_mark(end)

    def by_key(self, key: str) -> list[Line]:
        """Give the indexed lines that carry a key, in order of seq."""
        return _in_order(self._connection.execute(self._by_key, [key]).fetchall())

    def by_stream(self, stream_id: str) -> list[Line]:
        """Give the indexed lines of a stream, in order of seq."""
        return _in_order(self._connection.execute(self._by_stream, [stream_id]).fetchall())

    def lines(self, *, after_seq: int) -> Iterator[Line]:
        """Give the indexed lines above a seq, in order."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM events WHERE seq > ? ORDER BY seq", [after_seq]
        )
        while some := rows.fetchmany(1000):
            yield from map(decode_row, some)

    def sql(self, query: str) -> Answer:
        """Answer one SELECT.

        Raises: QueryRefusedError for anything else, and for a query that fails.
        """
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise QueryRefusedError("Only one SELECT is answered; the ledger is changed by append alone.")
            self._connection.begin()
            try:
                found = self._connection.execute(statements[0])
                return Answer(
                    columns=tuple(column[0] for column in found.description or ()),
                    rows=tuple(found.fetchall()),
                )
            finally:
                self._connection.rollback()
        except duckdb.Error as error:
            raise QueryRefusedError(f"The query fails: {_first_line(error)}") from None

    def close(self) -> None:
        """Let go of the database."""
        _open_connections[:] = [one for one in _open_connections if one is not self._connection]
        self._connection.close()

    def _move_mark(self, end: End) -> None:
        self._connection.execute(
            "UPDATE ledger_mark SET seq = ?, size = ?, digest = ?", [end.seq, end.size, end.digest]
        )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)


class _Transaction:
    """Commit at the end, roll back on anything else, a KeyboardInterrupt included."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._commit()
        else:
            self._roll_back()

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except duckdb.TransactionException as error:
            if "space" in str(error).lower():
                raise LedgerFullError(
                    "There is no space left for the index; the journal has everything."
                ) from None
            raise

    def _roll_back(self) -> None:
        # After a failed statement DuckDB may have ended the transaction already; then there is nothing to roll back.
        try:
            self._connection.rollback()
        except duckdb.Error:
            return


def _in_order(rows: Iterable[tuple[Any, ...]]) -> list[Line]:
    return sorted(map(decode_row, rows), key=lambda line: line.event.seq)


def _literally(path: Path) -> str:
    """Quote what DuckDB would take for a pattern in a file's name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


_open_connections: list[duckdb.DuckDBPyConnection] = []


def _keep_alive_in_child() -> None:
    # A forked child that ends would run DuckDB's clean-up on the parent's files: there it must never be destroyed.
    for connection in _open_connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_alive_in_child)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
