"""What does the film corpus answer to a question in SQL, and what to a wrong one?

Chapter: 003, "Retry only operations that can be repeated safely": a SQL tool returns its syntax and schema
errors, so that the query can change before another attempt.

Idea: two tables in a DuckDB database in memory, which is closed to files and to change before the first
question. An answer is plain JSON. A wrong question is no exception but a `Problem`, with DuckDB's own words
and the tables that there are: that is what a query is repaired from.

    films(film_id, title, year, director, summary)     themes(film_id, theme)

Always true:
  FQ1. One SELECT is answered, in a transaction that can write nothing; anything else is `refused`.
  FQ2. No query reads a file, loads code, changes a setting or sees one; such an attempt is `refused`, in
      words of our own, since DuckDB's name folders of the machine.
  FQ3. A query that asks neither chance nor the clock gives the same answer, or the same problem, every time.

Not here: deciding whether a query is tried again (`decide.repair`). Nothing here stops a query that computes
without end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import duckdb

from codeai_lab.canonical import plain
from codeai_lab.decide.repair import Problem
from codeai_lab.errors import LabError, RefusedValueError
from codeai_lab.store.database import (
    connect,
    disconnect,
    interrupts,
    is_broken,
    shut_out_files,
    transaction,
)

MOST_ROWS = 200
_TABLES = {
    "films": {
        "film_id": "VARCHAR", "title": "VARCHAR", "year": "INTEGER", "director": "VARCHAR",
        "summary": "VARCHAR",
    },
    "themes": {"film_id": "VARCHAR", "theme": "VARCHAR"},
}  # fmt: skip
SCHEMA = "; ".join(
    f"{table}({', '.join(f'{name} {kind}' for name, kind in columns.items())})"
    for table, columns in _TABLES.items()
)
_KINDS: tuple[tuple[type[duckdb.Error], str], ...] = (
    (duckdb.PermissionException, "refused"),
    (duckdb.ParserException, "syntax"),
    (duckdb.SyntaxException, "syntax"),
    (duckdb.CatalogException, "schema"),
    (duckdb.BinderException, "schema"),
)
# DuckDB's own tables and look-ups tell about the machine; these table functions make rows out of nothing.
_HARMLESS = {"range", "generate_series", "unnest"}
_INNER = ("duckdb_", "pg_", "pragma_", "sqlite_")
_TELLING = {"current_setting", "getenv", "which_secret"}


class FilmDatabase:
    """The corpus as tables; close it, or use it in a `with` block.

    Args:
        records: one mapping a film, with film_id, title, year, director, summary and themes.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        self._connection = connect(":memory:")
        try:
            self._fill(tuple(records))
            self._connection.execute("SET threads = 1")  # rows come in one order (FQ3)
            self._connection.execute("SET memory_limit = '256MB'")
            shut_out_files(self._connection)
            self._connection.execute("SET lock_configuration = true")
        except BaseException:
            self.close()
            raise

    def ask(self, query: str) -> dict[str, Any] | Problem:
        """Answer one SELECT.

        Returns: `columns`, `rows` and `is_cut` (there are more than 200 rows), plain JSON; or the problem.
        Raises: LabError (definite) when the database itself fails.
        """
        try:
            with interrupts():
                return self._answer(query)
        except (TypeError, UnicodeError):
            return _refused("a query is text, and this is not")
        except RecursionError:
            return _refused("it is nested too deeply")
        except RefusedValueError as error:
            return Problem(kind="value", message=f"A value has no JSON form; cast it to text: {error.why}.")
        except duckdb.Error as error:
            if is_broken(error):
                raise LabError("The film database does not answer any more; open it again.") from None
            return _problem(error)

    def close(self) -> None:
        """Let go of the database."""
        disconnect(self._connection)

    def __enter__(self) -> FilmDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"FilmDatabase({SCHEMA!r})"

    def _answer(self, query: str) -> dict[str, Any] | Problem:
        statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return _refused("one SELECT is answered, and nothing else")
        if why := self._reaches_out(query):
            return _refused(why)
        with transaction(self._connection, read_only=True):
            found = self._connection.execute(statements[0])
            names = [column[0] for column in found.description or ()]
            rows = found.fetchmany(MOST_ROWS + 1)
        given = [list(row) for row in rows[:MOST_ROWS]]
        return {"columns": names, "rows": plain(given, "rows"), "is_cut": len(rows) > MOST_ROWS}

    def _reaches_out(self, query: str) -> str | None:
        """Say what a query wants beside the corpus, from its parsed form; None for nothing."""
        (text,) = self._connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0]
        tree = json.loads(text)
        if tree["error"]:
            return "this statement is not a plain SELECT"
        return next(filter(None, map(_wish, _parts(tree))), None)

    def _fill(self, records: tuple[Mapping[str, Any], ...]) -> None:
        for table, columns in _TABLES.items():
            described = ", ".join(f"{name} {kind} NOT NULL" for name, kind in columns.items())
            self._connection.execute(f"CREATE TABLE {table}({described})")
        films = [[record[name] for name in _TABLES["films"]] for record in records]
        themes = [[record["film_id"], theme] for record in records for theme in record["themes"]]
        for table, rows in (("films", films), ("themes", themes)):
            if rows:
                marks = ", ".join("?" for _ in _TABLES[table])
                self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _wish(part: Mapping[str, Any]) -> str | None:
    """Say what one part of a parsed query wants beside the corpus; None for nothing."""
    kind = part.get("type")
    if kind == "TABLE_FUNCTION" and part["function"].get("function_name", "").lower() not in _HARMLESS:
        return "no function that reads a file or the machine may stand for a table"
    if str(part.get("function_name", "")).lower() in _TELLING:
        return "the settings of the database are not part of the corpus"
    table = str(part.get("table_name", "")).lower()
    if kind in {"BASE_TABLE", "SHOW_REF"} and table.startswith(_INNER):
        return "the database's own tables are not part of the corpus"
    if kind == "BASE_TABLE" and any(sign in table for sign in "/\\.:*?"):
        return "the name of a file may not stand for a table"
    return None


def _parts(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _parts(part)


def _problem(error: duckdb.Error) -> Problem:
    kind = next((kind for type_of, kind in _KINDS if isinstance(error, type_of)), "value")
    if kind == "refused":
        return _refused("nothing outside of the corpus is read")
    return Problem(kind=kind, message=str(error).strip(), hint=SCHEMA if kind == "schema" else "")


def _refused(why: str) -> Problem:
    return Problem(kind="refused", message=f"The query is refused: {why}.", hint=SCHEMA)
