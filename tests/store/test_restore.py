"""The laws of store.restore: a check that misses nothing, and a restore that invents nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from ledger_contract import ACCEPTED, NAMES, draft
from ledger_files import NAME, Made, contents, flipped

from codeai_lab.errors import (
    IndexAheadError,
    LedgerDamagedError,
    LedgerError,
    LedgerInUseError,
    LedgerNotFoundError,
)
from codeai_lab.store import restore as module
from codeai_lab.store.chain import End
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.restore import check, restore


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal.jsonl")


def refused(path: Path, kind: type[LedgerError] = LedgerError) -> str:
    """Ask for a restore that must be refused, leaving every file as it was; give what was said."""
    before = contents(path.parent)
    with pytest.raises(LedgerError) as error:
        restore(path)
    assert type(error.value) is kind
    assert contents(path.parent) == before
    assert str(path.parent) not in str(error.value)
    return str(error.value)


def test_a_check_says_what_is_whole(tmp_path: Path, made: Made) -> None:
    """T1: id and number of events, with or without an index; nothing is changed, a torn end not counted."""
    for index in (made.index, made.early_index, None, b"garbage"):
        path = made.lay(tmp_path, journal=made.journal + b"torn", index=index)
        before = contents(tmp_path)
        checked = check(path)
        assert (checked.ledger_id, checked.events) == ("L1", 6)
        assert contents(tmp_path) == before


def test_a_check_runs_beside_the_writer(tmp_path: Path) -> None:
    """T1: a ledger that is open is checked all the same, in this process too, and goes on."""
    with DuckDBLedger(tmp_path / NAME) as ledger:
        ledger.append(draft("a"))
        assert check(tmp_path / NAME).events == 1
        ledger.append(draft("b"))
        assert ledger.sql("SELECT count(*) FROM events").rows == ((2,),)
        assert check(tmp_path / NAME).events == 2


def test_a_check_tells_how_far_it_is(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1: progress counts the events that were read, and those there are."""
    monkeypatch.setattr(module, "CHUNK", 2)
    told: list[tuple[int, int]] = []
    check(made.lay(tmp_path, journal=made.journal), progress=lambda done, of: told.append((done, of)))
    assert told == [(3, 6), (6, 6)]


def test_a_check_names_what_the_journal_has_lost(tmp_path: Path, made: Made) -> None:
    """T1: cut at a batch the chain is whole, and only the index's mark shows what is missing."""
    for end, missing in zip(made.batch_ends, [(1, 6), (2, 6), (4, 6), (5, 6)], strict=False):
        path = made.lay(tmp_path, journal=made.journal[:end], index=made.index)
        with pytest.raises(IndexAheadError) as error:
            check(path)
        assert error.value.missing == missing


def test_where_nothing_is_there_nothing_is_checked(tmp_path: Path) -> None:
    """T1: no ledger is one sentence, and none is made."""
    for job in (check, restore):
        with pytest.raises(LedgerNotFoundError):
            job(tmp_path / NAME)
    assert list(tmp_path.iterdir()) == []


def test_every_accepted_event_is_restored_to_its_bytes(tmp_path: Path) -> None:
    """T3: every payload and name, indexed line by line or by DuckDB, comes back as the same bytes."""
    path = tmp_path / NAME
    with DuckDBLedger(path) as ledger:
        for name, (payload, _) in ACCEPTED.items():
            ledger.append(draft(name, payload=payload), draft(f"{name} 2", key=None, payload=payload))
        for name in NAMES:
            ledger.append(draft(f"id {name}", key=name, stream=name, causation_id=name))
    lines = journal_of(path).read_bytes()
    for rebuilt in (False, True):
        if rebuilt:
            path.unlink()
            DuckDBLedger(path).close()
        journal_of(path).unlink()
        assert restore(path) == 2 * len(ACCEPTED) + len(NAMES)
        assert journal_of(path).read_bytes() == lines


def test_what_lacks_nothing_is_left_alone(tmp_path: Path, made: Made) -> None:
    """T2: a journal that has all the index has, or more, gets nothing back."""
    for index in (made.index, made.early_index):
        path = made.lay(tmp_path, journal=made.journal, index=index)
        before = contents(tmp_path)
        assert restore(path) == 0
        assert contents(tmp_path) == before


def test_a_restore_never_changes_a_line_that_is_there(tmp_path: Path, made: Made, foreign: Made) -> None:
    """T2, T3: where the journal's end does not fit the index, or is another ledger's, nothing is written."""
    cut = made.journal[: made.batch_ends[-2]]
    place = cut.rindex(b'"recorded_at_us":1') + len(b'"recorded_at_us":')
    path = made.lay(tmp_path, journal=flipped(cut, place), index=made.index)
    assert "does not follow the journal; nothing was restored" in refused(path)
    path = made.lay(tmp_path, journal=foreign.journal[: foreign.batch_ends[-2]], index=made.index)
    assert "belongs to another ledger; nothing was restored" in refused(path)
    path = made.lay(tmp_path, journal=flipped(made.journal, len(made.journal) - 30), index=made.index)
    assert "Line 7 of the journal file, event 6, " in refused(path, LedgerDamagedError)


def test_a_restore_reads_every_line_first(tmp_path: Path, made: Made) -> None:
    """T2: an old line that was edited to the same length is refused by its place, lines lost or none."""
    edited = made.journal.replace(b'"event_id":"1.0"', b'"event_id":"X.0"', 1)
    assert len(edited) == len(made.journal)
    for end in (len(edited), made.batch_ends[-2]):
        path = made.lay(tmp_path, journal=edited[:end], index=made.index)
        assert "Line 3 of the journal file, event 2, " in refused(path, LedgerDamagedError)


def test_a_writer_who_comes_and_goes_makes_no_alarm(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T1: what is appended and indexed while a check reads is no loss."""
    path = made.lay(tmp_path, journal=made.journal, index=made.index)
    real = module.check_lines

    def with_a_writer(journal: Path) -> Iterator[End]:
        yield from list(real(journal))
        with DuckDBLedger(path) as ledger:
            ledger.append(draft("meanwhile"))

    monkeypatch.setattr(module, "check_lines", with_a_writer)
    assert check(path).events == 6
    monkeypatch.undo()
    assert check(path).events == 7


def test_an_index_that_was_tampered_with_restores_nothing(tmp_path: Path, made: Made) -> None:
    """T3: rows that do not give the acknowledged digests are not written, whichever of them was changed."""
    for change in (
        "UPDATE events SET actor_id = 'other' WHERE seq = 5",
        "UPDATE events SET actor_id = 'other' WHERE seq = 6",
        "UPDATE ledger_mark SET digest = repeat('0', 64)",
    ):
        path = made.lay(tmp_path, journal=made.journal[: made.batch_ends[-2]], index=made.index)
        with duckdb.connect(str(path)) as connection:
            connection.execute(change)
        assert "nothing was restored" in refused(path)
    for change in ("DELETE FROM events WHERE seq = 5", "DROP TABLE events"):
        path = made.lay(tmp_path, index=made.index)
        with duckdb.connect(str(path)) as connection:
            connection.execute(change)
        assert "nothing can be restored from it" in refused(path)
    assert "nothing can be restored from it" in refused(made.lay(tmp_path, index=b"garbage"))


def test_an_open_ledger_is_not_restored(tmp_path: Path) -> None:
    """T2: a restore needs the lock that the writer has."""
    with DuckDBLedger(tmp_path / NAME) as ledger:
        ledger.append(draft("a"))
        with pytest.raises(LedgerInUseError):
            restore(tmp_path / NAME)
        ledger.append(draft("b"))


def test_a_restore_that_was_broken_off_can_be_repeated(tmp_path: Path, made: Made) -> None:
    """T2, T3: half-written back, the journal ends torn or short; the next restore does the rest."""
    for written in (made.line_ends[4] + 10, made.line_ends[4], made.line_ends[3] + 1):
        path = made.lay(tmp_path / str(written), journal=made.journal[:written], index=made.index)
        restore(path)
        assert journal_of(path).read_bytes() == made.journal
