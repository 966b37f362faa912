"""What would the same facts cost in a plain DuckDB table with the same indexes?

Idea: the other side of the comparison, written as well as we can. The table has the columns and the two
indexes of the ledger's own; statements are parsed once, and one thread is used, which is the fastest way
found for single rows.

Always true: every insert here is a transaction of its own and durable when it returns.

Not here: anything of the package; only the journal's file format is shared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

COLUMNS = {
    "seq": "BIGINT", "event_id": "VARCHAR", "run_id": "VARCHAR", "stream_id": "VARCHAR", "kind": "VARCHAR",
    "actor_id": "VARCHAR", "idempotency_key": "VARCHAR", "recorded_at_us": "BIGINT",
    "causation_id": "VARCHAR", "payload": "JSON", "batch": "INTEGER[2]", "prev": "VARCHAR",
}  # fmt: skip


class PlainTable:
    """A table of events with an index on the key and one on the stream."""

    def __init__(self, place: Path) -> None:
        self._connection = duckdb.connect(str(place))
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self._connection.execute(f"CREATE TABLE events({columns})")
        self._connection.execute("CREATE INDEX by_key ON events(idempotency_key)")
        self._connection.execute("CREATE INDEX by_stream ON events(stream_id)")
        holes = ", ".join("?" for _ in COLUMNS)
        self._insert = self._connection.extract_statements(f"INSERT INTO events VALUES ({holes})")[0]
        self._look_up = self._connection.extract_statements(
            f"SELECT {', '.join(COLUMNS)} FROM events WHERE idempotency_key = ?"
        )[0]

    def fill(self, journal: Path) -> None:
        """Take in a whole journal as DuckDB itself reads it."""
        kinds = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
        self._connection.execute(
            f"INSERT INTO events SELECT {', '.join(COLUMNS)} FROM read_json(?, format = 'newline_delimited', "
            f"columns = {{{kinds}}}) WHERE seq > 0",
            [str(journal)],
        )

    def use_one_thread(self) -> None:
        self._connection.execute("SET threads = 1")

    def insert(self, *rows: Sequence[Any]) -> None:
        """Insert events, each by itself and durably."""
        for row in rows:
            self._connection.execute(self._insert, row)

    def look_up(self, key: str) -> list[tuple[Any, ...]]:
        """Find a key's events through the index."""
        return self._connection.execute(self._look_up, [key]).fetchall()

    def close(self) -> None:
        self._connection.close()


def as_object(line: bytes) -> dict[str, Any]:
    """Read a journal's line as the object that it is."""
    fields: dict[str, Any] = json.loads(line)
    return fields


def row_of(line: bytes) -> list[Any]:
    """Give a journal's line as a row of the table, its payload as text."""
    fields = as_object(line)
    fields["payload"] = json.dumps(fields["payload"], separators=(",", ":"), sort_keys=True)
    return [fields[name] for name in COLUMNS]
