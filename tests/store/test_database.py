"""The laws of store.database: the traps of DuckDB, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from ledger_files import contents

from codeai_lab.errors import LedgerError, LedgerFullError
from codeai_lab.store import database
from codeai_lab.store.database import connect, disconnect, failure, interrupts, is_broken, transaction


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect(":memory:")
    connection.execute("CREATE TABLE t(a INTEGER)")
    yield connection
    disconnect(connection)


def rows(connection: duckdb.DuckDBPyConnection) -> list[tuple[int]]:
    return connection.execute("SELECT a FROM t ORDER BY a").fetchall()


def test_a_transaction_is_kept_whole_or_not_at_all(connection: duckdb.DuckDBPyConnection) -> None:
    """B1: what runs through is committed; what is broken off, by an error or an interrupt, leaves nothing."""

    def insert_and(value: int, error: BaseException | None) -> None:
        with transaction(connection):
            connection.execute("INSERT INTO t VALUES (?)", [value])
            if error is not None:
                raise error

    insert_and(1, None)
    for error in (ValueError(), KeyboardInterrupt(), RuntimeError("Query interrupted")):
        with pytest.raises((ValueError, KeyboardInterrupt)):
            insert_and(2, error)
    with pytest.raises(duckdb.CatalogException), transaction(connection):
        connection.execute("INSERT INTO missing VALUES (1)")
    insert_and(3, None)
    assert rows(connection) == [(1,), (3,)]


def test_a_transaction_that_was_left_open_is_rolled_back_first(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: after an interrupt even in the roll-back, the next transaction begins from what was committed."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database, "_roll_back", interrupted)
        with pytest.raises(KeyboardInterrupt), transaction(connection):
            connection.execute("INSERT INTO missing VALUES (1)")
    with transaction(connection):
        connection.execute("INSERT INTO t VALUES (2)")
    assert rows(connection) == [(2,)]


def test_in_a_read_only_transaction_nothing_is_written(connection: duckdb.DuckDBPyConnection) -> None:
    """B2: DuckDB itself refuses, also where a SELECT hides the writing."""
    for query in (
        "INSERT INTO t VALUES (1)",
        "WITH i AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM i",
    ):
        with pytest.raises(duckdb.Error, match="read-only"), transaction(connection, read_only=True):
            connection.execute(query)
    assert rows(connection) == []


@pytest.mark.parametrize(
    ("raised", "arrives"),
    [
        (RuntimeError("Query interrupted"), KeyboardInterrupt),
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), KeyboardInterrupt),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError("something else"), RuntimeError),
        (duckdb.DataError("something else"), duckdb.DataError),
    ],
)
def test_an_interrupt_arrives_as_one(raised: BaseException, arrives: type[BaseException]) -> None:
    """B1: what DuckDB makes of an interrupt becomes a KeyboardInterrupt, and nothing else does."""
    with pytest.raises(arrives), interrupts():
        raise raised


def test_a_database_sees_no_variable_and_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2: a name in a query is a table or nothing, and a missing extension is not sought in the network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    connection = connect(":memory:")
    variable = connection.sql("SELECT 1 AS a")
    with pytest.raises(duckdb.CatalogException, match="variable does not exist"):
        connection.execute("SELECT * FROM variable")
    with pytest.raises(duckdb.CatalogException, match="excel extension"):
        connection.execute("SELECT * FROM read_xlsx('a.xlsx')")
    assert variable.fetchall() == [(1,)]
    assert connection.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]
    disconnect(connection)
    assert contents(tmp_path) == {}


def test_a_failure_is_told_from_a_bad_question() -> None:
    """What means that the database must be opened again, or made anew, is not laid to the question."""
    for broken in (
        duckdb.FatalException("invalidated"),
        duckdb.InternalException("assertion"),
        duckdb.ConnectionException("already closed"),
        duckdb.Error("Corrupt database file: computed checksum 1 does not match stored checksum 2"),
    ):
        assert is_broken(broken)
    for asked in (
        duckdb.ParserException("syntax"),
        duckdb.DataError("checksum"),
        duckdb.IOException("no such file"),
    ):
        assert not is_broken(asked)


def test_the_text_of_a_failure_holds_no_path() -> None:
    """E2: what DuckDB says about its files is not passed on; a full disk is told apart."""
    full = failure(
        duckdb.IOException('Could not write file "/secret/lab.duckdb.wal": No space left on device')
    )
    other = failure(duckdb.FatalException('IO Error: "/secret/lab.duckdb"'))
    assert type(full) is LedgerFullError
    assert type(other) is LedgerError
    assert "/secret" not in f"{full} {other}"
    assert "FatalException" in str(other)
