"""What the tests of the store share: one small ledger, made once, and helpers whose assertions speak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codeai_lab.store import ledger

pytest.register_assert_rewrite("ledger_contract", "ledger_files")

import ledger_files  # noqa: E402


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> ledger_files.Made:
    return ledger_files.make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> ledger_files.Made:
    """Give a ledger of the same events and another name."""
    return ledger_files.make(tmp_path_factory.mktemp("foreign"), ledger_id="L2")


@pytest.fixture(autouse=True)
def nothing_left_open(tmp_path: Path) -> Iterator[None]:
    """A test closes the ledgers that it opened, whatever it did to them."""
    yield
    assert not [path for path in ledger._cores if path.is_relative_to(tmp_path)]
