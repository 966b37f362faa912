"""How does a ledger answer questions in SQL without being asked to be the truth?

Chapter: 004, notes on the ledger's table; design of the ledger: the journal is the truth, DuckDB the index
over it.

Idea: DuckDB is filled from the journal in batches and can always be filled again. It carries a *mark*:
whose index it is and how far it reaches. Comparing the mark with the journal's end tells everything an
opening must know.

    behind the journal      catch up from the mark
    foreign, damaged, gaps  set aside, rebuild
    ahead of the journal    refuse: the journal has lost acknowledged lines (`store.restore`)

Always true:
  X1. Rows and mark change in one transaction; only seqs above the mark are added, nothing is updated or
      deleted.
  X2. A query is one SELECT, cannot read files, and is answered in a transaction that can write nothing.
  X3. Losing the index loses nothing.

Not here: the traps of DuckDB (`store.database`), deciding what to do about a mark (`store.opening`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from codeai_lab.errors import QueryRefusedError
from codeai_lab.store.chain import End, start_of
from codeai_lab.store.database import connect, disconnect, interrupts, is_broken, shut_out_files, transaction
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
_TYPES = {
    "seq": "BIGINT", "event_id": "VARCHAR", "run_id": "VARCHAR", "stream_id": "VARCHAR", "kind": "VARCHAR",
    "actor_id": "VARCHAR", "idempotency_key": "VARCHAR", "recorded_at_us": "BIGINT",
    "causation_id": "VARCHAR", "payload": "JSON", "batch": "INTEGER[2]", "prev": "VARCHAR",
}  # fmt: skip
_COLUMNS = ", ".join(_TYPES)


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
    """One DuckDB database over one journal; `place` is its file, or `:memory:`.

    Every method raises duckdb.Error when the database fails, and KeyboardInterrupt when it is interrupted.
    """

    def __init__(self, place: str, *, read_only: bool = False) -> None:
        self._connection = connect(place, read_only=read_only)
        self._by: dict[str, duckdb.Statement] = {}

    def create(self, created: bytes) -> None:
        """Make the empty tables and a mark that reaches just line 0, given without its newline."""
        end = start_of(created)
        with transaction(self._connection):
            self._connection.execute(_SCHEMA)
            self._connection.execute(
                "INSERT INTO ledger_mark VALUES (?, ?, ?, ?, ?)",
                [SCHEMA_VERSION, created.decode(), end.seq, end.size, end.digest],
            )

    def mark(self) -> Mark | None:
        """Give the mark, None when this is no index of ours or has rows missing."""
        with interrupts():
            try:
                marks = self._connection.execute(
                    "SELECT schema_version, created, seq, size, digest FROM ledger_mark"
                ).fetchall()
                counted = self._connection.execute("SELECT count(*), max(seq) FROM events").fetchall()
            except (duckdb.CatalogException, duckdb.BinderException):
                return None
        if len(marks) != 1 or marks[0][0] != SCHEMA_VERSION:
            return None
        _, created, seq, size, digest = marks[0]
        if counted != [(seq, seq or None)]:
            return None
        return Mark(created=created.encode(), end=End(size=size, seq=seq, digest=digest))

    def settle(self) -> None:
        """Close the door to the file system and prepare the look-ups; call once, when the index is filled."""
        # One thread makes a look-up by key a third cheaper; a classroom's ledger needs no more.
        self._connection.execute("SET threads = 1")
        shut_out_files(self._connection)
        for by, column in (("key", "idempotency_key"), ("stream", "stream_id")):
            query = f"SELECT {_COLUMNS} FROM events WHERE {column} = ?"  # alone: any further condition scans
            self._by[by] = self._connection.extract_statements(query)[0]

    def add(self, lines: Sequence[Line], end: End) -> None:
        """Add those of the lines that are above the mark, and move the mark to `end`, in one transaction."""
        with transaction(self._connection):
            mark = self.mark()
            if mark is None:
                raise duckdb.DataError("the index lacks rows")
            appender = self._connection.appender("events")
            appender.append_rows([encode_row(line) for line in lines if line.event.seq > mark.end.seq])
            appender.flush()
            self._move_mark(end)

    def fill_from(self, journal: Path, *, after: End, end: End) -> None:
        """Add the events between two ends of a checked journal, as DuckDB itself reads it; move the mark."""
        with transaction(self._connection):
            self._connection.execute(
                f"INSERT INTO events SELECT {_COLUMNS} FROM read_json(?, format = 'newline_delimited', "
                f"hive_partitioning = false, columns = {_TYPES}) WHERE seq > ? AND seq <= ?",
                [_literally(journal), after.seq, end.seq],
            )
            self._move_mark(end)

    def history(self, by: str, name: str) -> list[Line]:
        """Give the indexed lines that carry a `key` or belong to a `stream`, in order of seq."""
        if name != name.encode(errors="ignore").decode():
            return []  # a lone surrogate is in no line
        with interrupts():
            rows = self._connection.execute(self._by[by], [name]).fetchall()
        return sorted(map(decode_row, rows), key=lambda line: line.event.seq)

    def names(self) -> set[int]:
        """Give the hash of every indexed key and stream; a name whose hash is not among them has no line."""
        query = "SELECT stream_id FROM events UNION SELECT idempotency_key FROM events"
        with interrupts():
            return {hash(row[0]) for row in self._connection.execute(query).fetchall()}

    def event_ids(self) -> set[str]:
        """Give the id of every indexed event."""
        with interrupts():
            return {row[0] for row in self._connection.execute("SELECT event_id FROM events").fetchall()}

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
            with interrupts():
                statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise QueryRefusedError("Only one SELECT is answered; the ledger is changed by append alone.")
            with transaction(self._connection, read_only=True):
                found = self._connection.execute(statements[0])
                names = tuple(column[0] for column in found.description or ())
                return Answer(columns=names, rows=tuple(found.fetchall()))
        except (TypeError, UnicodeError):
            raise QueryRefusedError("A query is text, and this is not.") from None
        except duckdb.Error as error:
            if is_broken(error):
                raise
            raise QueryRefusedError(f"The query fails: {str(error).strip().splitlines()[0]}") from None

    def close(self) -> None:
        """Let go of the database."""
        disconnect(self._connection)

    def _move_mark(self, end: End) -> None:
        self._connection.execute(
            "UPDATE ledger_mark SET seq = ?, size = ?, digest = ?", [end.seq, end.size, end.digest]
        )


def _literally(path: Path) -> str:
    """Quote what DuckDB would take for a pattern in a file's name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
