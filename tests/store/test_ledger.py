"""The laws of store.ledger: one core for one file, whoever holds it and however often it is opened."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import filelock
import pytest
from ledger_contract import draft, ids, in_threads

from codeai_lab.clock import ManualClock
from codeai_lab.errors import (
    LedgerClosedError,
    LedgerInUseError,
    LedgerNotFoundError,
    LedgerReadOnlyError,
    RefusedValueError,
)
from codeai_lab.store import ledger as module
from codeai_lab.store.core import Core
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.protocol import Unchanged


def test_a_new_ledger_is_named_and_dated_by_what_is_handed_in(tmp_path: Path) -> None:
    """Id and time of creation come from outside, so that the same run gives the same bytes."""
    for name in ("one.duckdb", "two.duckdb"):
        with DuckDBLedger(tmp_path / name, ledger_id="L1", clock=ManualClock(start_us=7)) as ledger:
            ledger.append(draft("a"))
    one, two = ((tmp_path / f"{name}.duckdb.journal.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.startswith(
        b'{"kind":"ledger.created","ledger_id":"L1","recorded_at_us":7,"schema_version":1,"seq":0}\n'
    )


def test_an_existing_ledger_keeps_its_own_name(tmp_path: Path) -> None:
    """A name given at a later opening changes nothing."""
    DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="first").close()
    with DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="second") as ledger:
        assert ledger.ledger_id == "first"


@pytest.mark.parametrize("name", [5, "\ud800", "x" * 2**20])
def test_a_name_that_no_line_takes_makes_no_ledger(tmp_path: Path, name: str) -> None:
    """A ledger that could not be opened again is not made."""
    with pytest.raises(RefusedValueError):
        DuckDBLedger(tmp_path / "lab.duckdb", ledger_id=name)
    assert not (tmp_path / "lab.duckdb.journal.jsonl").exists()
    assert not (tmp_path / "lab.duckdb").exists()


def test_the_set_up_cell_may_be_run_twice(tmp_path: Path) -> None:
    """D7: two ledgers on one path are one: each sees at once what the other appends, conditions included."""
    ledger = first = DuckDBLedger(tmp_path / "lab.duckdb")
    first.append(draft("a"))
    ledger = DuckDBLedger(tmp_path / "lab.duckdb")  # the cell again
    assert ids(ledger.find("k")) == ["a"]
    assert ledger.append(draft("b"), unless_changed=[Unchanged(key="k", last_seq=1)])
    assert first.append(draft("c"), unless_changed=[Unchanged(key="k", last_seq=1)]) == ()
    assert first.live_actions is ledger.live_actions
    first.close()
    ledger.close()


def test_closing_one_leaves_the_other(tmp_path: Path) -> None:
    """D8: a ledger that was closed says so; the other goes on, and the last one frees the lock."""
    one, other = DuckDBLedger(tmp_path / "lab.duckdb"), DuckDBLedger(tmp_path / "lab.duckdb")
    one.close()
    one.close()
    for use in (
        lambda: one.append(draft("a")),
        lambda: one.find("k"),
        lambda: one.read_all(),
        lambda: one.sql(""),
    ):
        with pytest.raises(LedgerClosedError, match="open it again"):
            use()
    other.append(draft("a"))
    other.close()
    with DuckDBLedger(tmp_path / "lab.duckdb") as again:
        assert ids(again.read_all()) == ["a"]


def test_threads_that_open_one_path_get_one_core(tmp_path: Path) -> None:
    """D7: threads opening the same path at the same moment all succeed, on one ledger."""
    start, opened = threading.Barrier(8), []

    def work(number: int) -> None:
        start.wait(timeout=30)
        ledger = DuckDBLedger(tmp_path / "lab.duckdb")
        opened.append(ledger)
        ledger.append(draft(str(number)))

    in_threads(8, work)
    assert len({ledger.ledger_id for ledger in opened}) == 1
    assert sorted(ids(opened[0].read_all())) == [str(n) for n in range(8)]
    for ledger in opened:
        ledger.close()


@pytest.mark.parametrize(
    "link", ["symlink", "hard link of both", "hard link of the index", "hard link of the journal"]
)
def test_a_link_to_an_open_ledger_is_that_ledger(tmp_path: Path, link: str) -> None:
    """D7, G3: reached by a link, in this process, it is the same ledger."""
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        ledger.append(draft("a"))
        other = tmp_path / "other.duckdb"
        if link == "symlink":
            other.symlink_to(tmp_path / "lab.duckdb")
        if link in ("hard link of both", "hard link of the index"):
            os.link(tmp_path / "lab.duckdb", other)
        if link in ("hard link of both", "hard link of the journal"):
            os.link(ledger.journal, tmp_path / "other.duckdb.journal.jsonl")
        with DuckDBLedger(other) as same:
            assert same.journal == ledger.journal
            assert ids(same.read_all()) == ["a"]
            same.append(draft("b"))
        assert ids(ledger.read_all()) == ["a", "b"]
        assert ledger.sql("SELECT count(*) FROM events").rows == ((2,),)


def test_a_symbolic_link_leads_to_the_files_beside_the_ledger_itself(tmp_path: Path) -> None:
    """G3: opened through a symbolic link, made or not yet, nothing appears at the link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.duckdb").symlink_to(tmp_path / "real" / "lab.duckdb")
    for _ in range(2):
        DuckDBLedger(tmp_path / "link.duckdb").close()
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link.duckdb"}
    assert (tmp_path / "real" / "lab.duckdb.journal.jsonl").exists()


def test_a_relative_path_means_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D7: a ledger opened by a relative path goes on in the same files after the program moved elsewhere."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with DuckDBLedger("lab.duckdb") as ledger:
        monkeypatch.chdir(tmp_path / "there")
        ledger.append(draft("a"))
        assert ids(ledger.read_all()) == ["a"]
        assert ledger.sql("SELECT event_id FROM events").rows == (("a",),)
        with DuckDBLedger("../here/lab.duckdb") as same, DuckDBLedger("lab.duckdb") as other:
            assert ids(same.read_all()) == ["a"]
            assert ids(other.read_all()) == []
    assert (tmp_path / "here" / "lab.duckdb").exists()


def test_a_failed_core_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D9: though the old ledger was never closed, opening once more opens the files once more."""
    old = DuckDBLedger(tmp_path / "lab.duckdb")
    old.append(draft("a"))
    old._core.journal.failed = True
    new = DuckDBLedger(tmp_path / "lab.duckdb")
    new.append(draft("b"))
    with pytest.raises(LedgerClosedError):
        old.append(draft("c"))
    with pytest.raises(LedgerClosedError):
        old.find("k")
    old.close()  # and does not take the new one with it
    assert ids(new.find("k")) == ["a", "b"]
    new.close()


def test_a_ledger_whose_folder_was_made_anew_is_a_new_ledger(tmp_path: Path) -> None:
    """D9, J5: a set-up cell that clears its folder gets an empty ledger; the old one takes no more."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    old = DuckDBLedger(folder / "lab.duckdb")
    old.append(draft("a"))
    old.sql("SELECT 1")
    old.append(draft("b"))
    shutil.rmtree(folder)
    with pytest.raises(LedgerNotFoundError, match="deleted or moved while the ledger was open") as refused:
        old.append(draft("c"))
    assert refused.value.definite
    folder.mkdir()
    with DuckDBLedger(folder / "lab.duckdb") as new:
        assert list(new.read_all()) == []
        assert new.ledger_id != old.ledger_id
        with pytest.raises(LedgerClosedError):
            old.append(draft("c"))
        new.append(draft("a"))
        old.close()
        assert new.sql("SELECT count(*) FROM events").rows == ((1,),)
    with DuckDBLedger(folder / "lab.duckdb") as again:
        assert again.notices == ()
        assert ids(again.read_all()) == ["a"]


@pytest.mark.parametrize("back", [True, False], ids=["moved back", "gone"])
def test_a_journal_that_is_moved_away_is_not_written_to(tmp_path: Path, back: bool) -> None:
    """J5: while it is away nothing is recorded, and reading says so; moved back, the same ledger goes on."""
    ledger = DuckDBLedger(tmp_path / "lab.duckdb")
    ledger.append(draft("a"))
    ledger.journal.rename(tmp_path / "moved")
    with pytest.raises(LedgerNotFoundError):
        ledger.append(draft("b"))
    with pytest.raises(LedgerReadOnlyError, match="cannot be read"):
        list(ledger.read_all())
    assert ids(ledger.find("k")) == ["a"]
    if back:
        (tmp_path / "moved").rename(ledger.journal)
        ledger.append(draft("b"))
        assert ids(ledger.read_all()) == ids(ledger.find("k")) == ["a", "b"]
    ledger.close()
    if not back:
        (tmp_path / "moved").rename(ledger.journal)
    with DuckDBLedger(tmp_path / "lab.duckdb") as again:
        assert again.notices == ()
        assert ids(again.find("k")) == (["a", "b"] if back else ["a"])


def test_an_interrupted_closing_still_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D8: whatever breaks off a closing, the next opening is not told that somebody else writes."""

    def interrupted(self: Core) -> None:
        raise KeyboardInterrupt

    ledger = DuckDBLedger(tmp_path / "lab.duckdb")
    ledger.append(draft("a"))
    with monkeypatch.context() as patched:
        patched.setattr(Core, "_flush_quietly", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.close()
    with DuckDBLedger(tmp_path / "lab.duckdb") as again:
        assert ids(again.find("k")) == ["a"]


def test_the_lock_is_held_as_long_as_the_ledger_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: whoever comes by another way while it is open is refused, and files are as they were."""
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        ledger.append(draft("a"))
        before = ledger.journal.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(module, "_cores", {})  # as another process sees it
            with pytest.raises(LedgerInUseError, match="Another process"):
                DuckDBLedger(tmp_path / "lab.duckdb")
        assert ledger.journal.read_bytes() == before


def test_what_it_shows_of_itself_holds_no_path(tmp_path: Path) -> None:
    """A ledger's repr is its file's name and the number of events."""
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        ledger.append(draft("a"), draft("b"))
        assert repr(ledger) == "DuckDBLedger('lab.duckdb', events=2)"
    assert repr(ledger) == "DuckDBLedger('lab.duckdb', events=2)"


def test_a_set_up_cell_that_runs_again_keeps_no_lock(tmp_path: Path) -> None:
    """The ledger of the first run is dropped with its name; closing the second one frees the file."""
    path = tmp_path / "lab.duckdb"
    ledger = DuckDBLedger(path)
    ledger = DuckDBLedger(path)
    ledger.close()

    with pytest.raises(LedgerClosedError):
        ledger.find("k")
    assert filelock.FileLock(tmp_path / "lab.duckdb.lock", timeout=0).acquire()
