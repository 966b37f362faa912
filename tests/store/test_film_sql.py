"""Does the corpus answer SELECTs, give its errors as values, and keep everything else shut?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.repair import Problem
from codeai_lab.store.film_sql import MOST_ROWS, SCHEMA, FilmDatabase

RECORDS: tuple[dict[str, Any], ...] = tuple(
    {"film_id": name, "title": name.title(), "year": year, "director": "D", "summary": "S.", "themes": themes}
    for name, year, themes in (
        ("heat", 1995, ["heist", "crime"]),
        ("moon", 2009, ("clones",)),
        ("her", 2013, ()),
    )
)


@pytest.fixture(scope="module")
def films() -> Iterator[FilmDatabase]:
    """Three films as tables, the same for every question: none of them changes anything (FQ1)."""
    with FilmDatabase(RECORDS) as database:
        yield database


def answered(films: FilmDatabase, query: str) -> dict[str, Any]:
    answer = films.ask(query)
    assert isinstance(answer, dict), answer
    return answer


def problem(films: FilmDatabase, query: Any) -> Problem:
    answer = films.ask(query)
    assert isinstance(answer, Problem), answer
    return answer


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        ("SELECT title FROM films ORDER BY year DESC LIMIT 2", ["title"], [["Her"], ["Moon"]]),
        ("FROM themes WHERE theme = 'heist'", ["film_id", "theme"], [["heat", "heist"]]),
        ("SELECT count(*) AS n FROM films JOIN themes USING (film_id)", ["n"], [[3]]),
        (
            "WITH old AS (SELECT * FROM films WHERE year < 2000) SELECT film_id FROM old",
            ["film_id"],
            [["heat"]],
        ),
        ("SELECT NULL AS a, [1, 2] AS b, true AS c;", ["a", "b", "c"], [[None, [1, 2], True]]),
        (
            "SELECT table_name FROM information_schema.tables ORDER BY 1",
            ["table_name"],
            [["films"], ["themes"]],
        ),
        ("SELECT film_id FROM films", ["film_id"], [["heat"], ["moon"], ["her"]]),
        ("SELECT max(range) AS m FROM range(3)", ["m"], [[2]]),
    ],
)
def test_a_select_is_answered_in_plain_json(
    films: FilmDatabase, query: str, columns: list[str], rows: list[Any]
) -> None:
    """An answer is columns and rows that have a JSON form, the same each time it is asked for (FQ3)."""
    answer = answered(films, query)
    assert answer == {"columns": columns, "rows": rows, "is_cut": False}
    assert json.loads(canonical_bytes(answer)) == answer
    assert films.ask(query) == answer


@pytest.mark.parametrize(
    ("query", "kind", "says"),
    [
        ("SELCT title FROM films", "syntax", 'at or near "SELCT"'),
        ("SELECT (SELECT", "syntax", "syntax error"),
        ("SELECT titel FROM films", "schema", '"titel" not found in FROM clause'),
        ("SELECT title FROM filmz", "schema", 'filmz does not exist!\nDid you mean "films"'),
        ("SELECT uper(title) FROM films", "schema", "Function with name uper does not exist"),
        ("SELECT year FROM films GROUP BY title", "schema", "must appear in the GROUP BY clause"),
        ("SELECT title FROM films WHERE year = 'long ago'", "value", "Could not convert string 'long ago'"),
        ("SELECT 1 / 0", "value", "cast it to text"),
        ("SELECT DATE '2001-01-01'", "value", "cast it to text"),
        ("SELECT title FROM films WHERE year = ?", "value", "parameters"),
    ],
)
def test_a_wrong_query_is_a_value_with_duckdbs_own_words(
    films: FilmDatabase, query: str, kind: str, says: str
) -> None:
    """A syntax error is told from a schema error, and where the schema is the point, it is given (FQ3)."""
    found = problem(films, query)
    assert (found.kind, says in found.message) == (kind, True), found
    assert found.hint == (SCHEMA if kind == "schema" else "")
    assert films.ask(query) == found


def test_an_error_points_at_the_columns_that_there_are(films: FilmDatabase) -> None:
    """What a misspelt column is repaired from stands in the error: candidates, the place, the tables."""
    found = problem(films, "SELECT titel FROM films")
    assert 'Candidate bindings: "title"' in found.message
    assert "LINE 1: SELECT titel FROM films" in found.message
    assert "title VARCHAR, year INTEGER, director VARCHAR" in found.hint
    assert "themes(film_id VARCHAR, theme VARCHAR)" in found.hint


WRITES = [
    "INSERT INTO films VALUES ('x', 'X', 1, 'D', 'S')",
    "UPDATE films SET year = 0",
    "DELETE FROM films",
    "DROP TABLE films",
    "CREATE TABLE t(i INTEGER)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "TRUNCATE films",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; DELETE FROM films",
]
OUTSIDE = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "WITH films AS (SELECT * FROM read_blob('{file}')) SELECT * FROM films",
    "SELECT * FROM '{file}'",
    "SELECT * FROM '{folder}/secret'",
    'SELECT * FROM "{file}" f, films',
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{file}')",
    "COPY films TO '{folder}/out.csv'",
    "COPY films FROM '{file}'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/out.db'",
    "INSTALL spatial",
    "LOAD spatial",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('duckdb_settings')",
]
SETTINGS = [
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "SET threads = 2",
    "RESET threads",
    "SET enable_external_access = true",
    "CALL pragma_version()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_settings",
    "FROM system.main.duckdb_settings",
    "SUMMARIZE duckdb_settings",
    "SELECT title FROM films WHERE EXISTS (FROM duckdb_extensions())",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM pg_settings",
    "SELECT current_setting('secret_directory')",
    "SELECT 'secret_directory'.current_setting()",
    "SELECT list_transform(['secret_directory'], lambda x: current_setting(x))",
    "EXPLAIN SELECT 1",
]


@pytest.mark.parametrize(
    "query", [*WRITES, *OUTSIDE, *SETTINGS, "", "-- nothing", None, 5, "SELECT '\ud800'"]
)
def test_what_is_no_question_to_the_corpus_is_refused(
    films: FilmDatabase, tmp_path: Path, query: Any
) -> None:
    """FQ1, FQ2: no write, no file, no setting, no code; what is there stays, and no folder is named."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    if isinstance(query, str):
        query = query.replace("{file}", secret.as_posix()).replace("{folder}", tmp_path.as_posix())
    before = answered(films, "FROM films")
    found = problem(films, query)
    assert found.kind == "refused"
    assert found.message.startswith("The query is refused: ")
    assert tmp_path.as_posix() not in found.message
    assert answered(films, "FROM films") == before
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize(("deep", "kind"), [(700, "refused"), (3000, "syntax")])
def test_a_query_that_is_nested_beyond_reading_is_a_problem(
    films: FilmDatabase, deep: int, kind: str
) -> None:
    """FQ1: too deep for this module or for DuckDB, it is a value, and the next query is answered."""
    assert problem(films, "SELECT " + "abs(" * deep + "1" + ")" * deep).kind == kind
    assert answered(films, "SELECT 1 AS a")["rows"] == [[1]]


def test_no_problem_names_a_folder_of_the_machine(films: FilmDatabase) -> None:
    """FQ2: whatever is refused or wrong, neither the home folder nor the working folder is told."""
    for query in (*WRITES, *OUTSIDE, *SETTINGS):
        told = problem(films, query)
        for folder in (Path.home(), Path.cwd()):
            assert folder.as_posix() not in told.message + told.hint


def test_a_long_answer_is_cut_and_says_so(films: FilmDatabase) -> None:
    """An answer has at most 200 rows; that there are more is said."""
    assert answered(films, f"FROM range({MOST_ROWS})")["is_cut"] is False
    cut = answered(films, f"FROM range({MOST_ROWS + 1})")
    assert (len(cut["rows"]), cut["is_cut"]) == (MOST_ROWS, True)


def test_an_empty_corpus_can_be_asked() -> None:
    """No films are no rows, not an error."""
    with FilmDatabase(()) as database:
        assert answered(database, "FROM themes")["rows"] == []


def test_the_users_variables_are_not_tables(films: FilmDatabase) -> None:
    """FQ2: a query does not see what the calling program happens to hold."""
    holding = RECORDS
    assert holding
    assert problem(films, "SELECT * FROM holding").kind == "schema"


def test_duckdb_itself_is_shut_as_well(films: FilmDatabase, tmp_path: Path) -> None:
    """FQ2: were a query misread, DuckDB would still open no file and change no setting."""
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(duckdb.PermissionException):
        films._connection.execute("SELECT * FROM read_text(?)", [secret.as_posix()])
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        films._connection.execute("SET threads = 2")
