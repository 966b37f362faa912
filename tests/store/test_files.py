"""The laws of store.files: which names can be a ledger, and what is said of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ledger_contract import draft, ids

from codeai_lab.errors import LedgerError, LedgerNotFoundError
from codeai_lab.store.files import Files
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader


@pytest.mark.parametrize(
    "name",
    [
        "with spaces.duckdb",
        "brackets [a-z]{1}.duckdb",
        "stars*.duckdb",
        "[.duckdb",
        "日本 😀.duckdb",
        "quote's \" and %.duckdb",
        "no extension",
        ".hidden",
        "x.json",
    ],
)
def test_any_file_name_is_a_ledgers(tmp_path: Path, name: str) -> None:
    """A ledger works, is rebuilt and is read under any usual name, in a folder of such a name."""
    path = tmp_path / f"seq=7 {name}" / name
    path.parent.mkdir()
    (tmp_path / f"seq=7 {name}" / "decoy.duckdb.journal.jsonl").write_text("{}\n")
    with DuckDBLedger(path) as ledger:
        ledger.append(draft("a"), draft("b"))
    path.unlink()
    with DuckDBLedger(path) as ledger:
        assert ids(ledger.find("k")) == ["a", "b"]
        assert ledger.sql("SELECT seq, event_id FROM events ORDER BY seq").rows == ((1, "a"), (2, "b"))
    assert ids(LedgerReader(path).find("k")) == ["a", "b"]


@pytest.mark.parametrize("opening", [DuckDBLedger, LedgerReader])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder is a folder; name a file in it"),
        ("missing/lab.duckdb", "The folder that lab.duckdb should lie in does not exist; make it first."),
        ("file.txt/lab.duckdb", "The folder that lab.duckdb should lie in does not exist; make it first."),
        ("x" * 300, "No file can have such a name here"),
        ("x" * 250, "No file can have such a name here"),
        ("a\0b", "No file can have such a name here"),
        ("loop", "No file can have such a name here"),
        ("what?.duckdb", "DuckDB cannot use a path with ? or \\ in it"),
        ("a\\b.duckdb", "DuckDB cannot use a path with ? or \\ in it"),
    ],
)
def test_a_path_that_cannot_be_a_ledger_is_refused(
    tmp_path: Path, opening: type[DuckDBLedger] | type[LedgerReader], name: str, said: str
) -> None:
    """A folder, a missing folder, a name that the system does not take: one sentence, and nothing is made."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LedgerError) as refused:
        opening(tmp_path / name)
    assert str(refused.value).startswith(said)
    assert str(tmp_path) not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_where_the_lock_or_the_journal_should_be_is_refused(tmp_path: Path) -> None:
    """What stands in the way of a ledger's other files is refused in one sentence, and left there."""
    for place in ("lab.duckdb.lock", "lab.duckdb.journal.jsonl"):
        blocked = tmp_path / place
        blocked.mkdir()
        with pytest.raises(LedgerError) as refused:
            DuckDBLedger(tmp_path / "lab.duckdb")
        assert str(refused.value).count(".") <= 3
        assert str(tmp_path) not in str(refused.value)
        assert not (tmp_path / "lab.duckdb").exists()
        blocked.rmdir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
@pytest.mark.parametrize("name", ["lab.duckdb", "lab.duckdb.journal.jsonl"])
def test_a_pipe_is_no_ledger_and_nobody_waits_for_it(tmp_path: Path, name: str) -> None:
    """What is no regular file is refused by its name before it is opened."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(LedgerNotFoundError, match=r"lab\.duckdb is no regular file"):
        Files.of(tmp_path / "lab.duckdb")
