"""What must one know of DuckDB before trusting it with anything?

Chapter: 004, notes on the ledger's table; each of these was met, not read about.

Idea: the traps of the database stand here, so that `store.index` can be read without them. An interrupt
arrives as an error of DuckDB's own; a failed statement ends the transaction; a forked child that ends would
clean up its parent's files; the text of an error may hold a path; and after a fatal error nothing is
answered until the database is opened again.

Always true:
  B1. An interrupt arrives as KeyboardInterrupt, whatever DuckDB makes of it, and leaves no transaction
      open.
  B2. A query sees the database alone: no variable of the caller, no file, no network.
  B3. A forked child changes nothing by ending.

Not here: tables and queries (`store.index`), opening a failed database again (`store.core`).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from codeai_lab.errors import LedgerError, LedgerFullError

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def connect(place: str, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a database file, or `:memory:`; let go of it with `disconnect`. Read-only, it changes no byte.

    Raises: duckdb.Error.
    """
    settings = dict(_SETTINGS)
    if place == ":memory:":
        settings["temp_directory"] = ""  # or it would make a folder where the program happens to stand
    connection = duckdb.connect(place, read_only=read_only, config=settings)
    _open_connections[id(connection)] = connection
    return connection


def disconnect(connection: duckdb.DuckDBPyConnection) -> None:
    """Close a database; what its log still holds goes into its file."""
    _open_connections.pop(id(connection), None)
    connection.close()


def shut_out_files(connection: duckdb.DuckDBPyConnection) -> None:
    """Close the door to the file system, for good."""
    connection.execute("SET enable_external_access = false")


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection, *, read_only: bool = False) -> Iterator[None]:
    """Commit at the end, unless nothing may be written; roll back on anything else, an interrupt included."""
    begin = "BEGIN TRANSACTION READ ONLY" if read_only else "BEGIN TRANSACTION"
    with interrupts():
        try:
            connection.execute(begin)
        except duckdb.TransactionException:  # an interrupt came in the middle of a roll-back
            _roll_back(connection)
            connection.execute(begin)
        try:
            yield
            if not read_only:
                connection.commit()
        except BaseException:
            _roll_back(connection)
            raise
        if read_only:
            _roll_back(connection)


@contextmanager
def interrupts() -> Iterator[None]:
    """Pass on as KeyboardInterrupt what DuckDB reports as an error of its own when it notices one (B1)."""
    try:
        yield
    except (RuntimeError, duckdb.InterruptException) as error:
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from None
        raise


def is_broken(error: Exception) -> bool:
    """Say whether it is the database that failed, and not the question."""
    if isinstance(error, (duckdb.FatalException, duckdb.InternalException, duckdb.ConnectionException)):
        return True
    return type(error) in (duckdb.Error, duckdb.IOException) and "checksum" in str(error)


def is_full(error: duckdb.Error) -> bool:
    """Say whether there was no space left."""
    return "no space left" in str(error).lower()


def failure(error: duckdb.Error) -> LedgerError:
    """Say in one sentence why the index does not answer, without DuckDB's own text."""
    if is_full(error):
        return LedgerFullError("There is no space left for the index; the journal is whole. Free some space.")
    return LedgerError(
        f"The index does not answer ({type(error).__name__}); the journal is whole. "
        "Close the ledger and open it again."
    )


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    # After a failed statement DuckDB may have ended the transaction already.
    try:
        connection.rollback()
    except duckdb.Error:
        return


_open_connections: dict[int, duckdb.DuckDBPyConnection] = {}


def _keep_alive_in_child() -> None:
    for connection in _open_connections.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_alive_in_child)
