"""What the tests of the store share: one small ledger, made once, and helpers whose assertions speak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.store import ledger, opening
from codeai_lab.store.files import Files

pytest.register_assert_rewrite("ledger_contract", "ledger_files")

import ledger_files  # noqa: E402


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> ledger_files.Made:
    return ledger_files.make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> ledger_files.Made:
    """Give a ledger of the same events and another name."""
    return ledger_files.make(tmp_path_factory.mktemp("foreign"), ledger_id="L2")


_marks: dict[tuple[bytes | None, ...], Any] = {}


@pytest.fixture
def marks_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no DuckDB to read the mark of an index that was read before: the same bytes have the same mark.

    For tests that open the same index in many states of its journal.
    """
    read = opening.read_mark

    def read_once(files: Files) -> Any:
        known = tuple(path.read_bytes() if path.is_file() else None for path in (files.index, files.wal))
        if known not in _marks:
            _marks[known] = read(files)
        return _marks[known]

    monkeypatch.setattr(opening, "read_mark", read_once)


@pytest.fixture(autouse=True)
def nothing_left_open(tmp_path: Path) -> Iterator[None]:
    """A test closes the ledgers that it opened, whatever it did to them."""
    yield
    assert not [path for path in ledger._cores if path.is_relative_to(tmp_path)]
