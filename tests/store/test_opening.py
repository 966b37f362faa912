"""The laws of store.opening: what lies in the folder is used, set aside, or refused and left alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from ledger_contract import draft, ids
from ledger_files import NAME, Made, contents, flipped, never

from codeai_lab.errors import (
    IndexAheadError,
    LedgerDamagedError,
    LedgerError,
    LedgerInUseError,
    LedgerReadOnlyError,
    LedgerTooNewError,
    NotALedgerError,
)
from codeai_lab.store import opening
from codeai_lab.store.files import Files
from codeai_lab.store.index import Index
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader
from codeai_lab.store.restore import check, restore

SEQS = list(range(1, 7))


def refusal(
    path: Path, kind: type[LedgerError], *, by: Callable[[Path], object] = DuckDBLedger
) -> LedgerError:
    """Open what must be refused: one sentence of the right kind, no path, every file as it was (O3)."""
    before = contents(path.parent)
    with pytest.raises(LedgerError) as refused:
        by(path)
    assert type(refused.value) is kind, refused.value
    assert str(path.parent) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert contents(path.parent) == before
    return refused.value


def opened_whole(path: Path, *, said: str | None = None) -> DuckDBLedger:
    """Open a ledger that must give all six events, from journal, index and SQL, and say what it repaired."""
    with DuckDBLedger(path) as ledger:
        assert [event.seq for event in ledger.read_all()] == SEQS
        assert [event.seq for event in ledger.find("k1")] == [2, 3, 5, 6]
        assert ledger.sql("SELECT list(seq ORDER BY seq) FROM events").rows == ((SEQS,),)
        if said is None:
            assert ledger.notices == ()
        else:
            assert any(said in notice for notice in ledger.notices)
    if said is not None:
        with DuckDBLedger(path) as again:
            assert again.notices == ()
    return ledger


# --- the journal is cut ---------------------------------------------------------------------------------


def some_cuts(made: Made) -> list[int]:
    """Every ending of a line or batch in the last batch, a byte to each side, and some places between."""
    edges = {end + step for end in made.line_ends[-3:] for step in (-1, 0, 1)}
    return sorted(
        cut
        for cut in edges | set(range(made.batch_ends[-2], len(made.journal), 151))
        if made.batch_ends[-2] <= cut < len(made.journal)
    )


@pytest.mark.usefixtures("marks_remembered")
def test_cut_in_the_last_batch_before_a_flush_it_is_set_aside_and_said(tmp_path: Path, made: Made) -> None:
    """Cut as by a kill before any flush: the torn end is kept in a file, and that is said; appends go on."""
    for cut in some_cuts(made):
        path = made.lay(tmp_path / str(cut), journal=made.journal[:cut], index=made.early_index)
        torn = made.journal[made.batch_ends[-2] : cut]
        with DuckDBLedger(path) as ledger:
            assert [event.seq for event in ledger.read_all()] == SEQS[:-2]
            assert [event.seq for event in ledger.find("k0")] == [1, 4]
            assert ledger.append(draft("next"))[0].seq == 5
            if torn:
                aside = path.with_name(f"{NAME}.journal.jsonl.tail-1")
                assert aside.read_bytes() == torn
                (notice,) = ledger.notices
                assert f"{len(torn)} bytes are in {aside.name}" in notice
            else:
                assert ledger.notices == ()
        assert check(path).events == 5


def test_cut_at_every_byte_behind_the_index_it_is_refused(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut anywhere in the last batch while the index has it: refused, naming what is missing."""
    path = made.lay(tmp_path, journal=made.journal, index=made.index)
    mark = opening.read_mark(Files.of(path))
    monkeypatch.setattr(opening, "read_mark", lambda files: mark)  # it is the same at every byte
    journal = path.with_name(f"{NAME}.journal.jsonl")
    index = path.stat()
    for cut in range(made.batch_ends[-2], len(made.journal)):
        journal.write_bytes(made.journal[:cut])
        with pytest.raises(IndexAheadError) as refused:
            DuckDBLedger(path)
        assert refused.value.missing == (5, 6)
        assert "The index of lab.duckdb knows more than its journal, which has lost events 5 to 6" in str(
            refused.value
        )
        assert str(refused.value).endswith("Run: codeai-lab restore lab.duckdb")
        assert journal.read_bytes() == made.journal[:cut]
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (index.st_size, index.st_mtime_ns)
    assert set(contents(tmp_path)) == {NAME, journal.name}


@pytest.mark.usefixtures("marks_remembered")
def test_what_the_index_has_is_restored_byte_for_byte(tmp_path: Path, made: Made) -> None:
    """Cut in the last batch or at any batch, behind the index: refused, and restored to the exact bytes."""
    for cut in {*some_cuts(made)[::5], *made.batch_ends[:-1]}:
        path = made.lay(tmp_path / str(cut), journal=made.journal[:cut], index=made.index)
        first = sum(end <= cut for end in made.line_ends) if cut in made.batch_ends else 5
        error = refusal(path, IndexAheadError)
        assert isinstance(error, IndexAheadError)
        assert error.missing == (first, 6)
        assert restore(path) == 7 - first
        assert path.with_name(f"{NAME}.journal.jsonl").read_bytes() == made.journal
        assert path.read_bytes() == made.index
        torn = made.journal[max(end for end in made.batch_ends if end <= cut) : cut]
        kept = {name: content for name, content in contents(path.parent).items() if "tail" in name}
        assert list(kept.values()) == ([torn] if torn else [])
    opened_whole(path)


@pytest.mark.usefixtures("marks_remembered")
@pytest.mark.parametrize("left", [None, 0, 1, 50], ids=["deleted", "emptied", "one byte", "half of line 0"])
def test_without_its_journal_an_index_is_refused_and_restores_it(
    tmp_path: Path, made: Made, left: int | None
) -> None:
    """A journal that is deleted or cut to nothing: refused by everybody; restored to its bytes."""
    journal = None if left is None else made.journal[:left]
    path = made.lay(tmp_path, journal=journal, index=made.index)
    for by in (DuckDBLedger, LedgerReader, check):
        error = refusal(path, IndexAheadError, by=by)
        assert isinstance(error, IndexAheadError)
        assert error.missing == (1, 6)
        assert "The journal of lab.duckdb is missing; 6 of its events are in the index." in str(error)
    assert restore(path) == 6
    assert path.with_name(f"{NAME}.journal.jsonl").read_bytes() == made.journal
    stump = path.with_name(f"{NAME}.journal.jsonl.aside-1")
    assert (stump.read_bytes() if stump.exists() else None) == journal
    opened_whole(path)


# --- the journal is damaged -----------------------------------------------------------------------------


@pytest.mark.usefixtures("marks_remembered")
def test_a_flipped_byte_is_refused_by_its_line_wherever_every_line_is_read(
    tmp_path: Path, made: Made
) -> None:
    """Flipped in the middle: full check, rebuild and catching up name the line and change nothing."""
    for place in range(made.line_ends[0] + 5, made.line_ends[-3], 97):
        line = sum(end <= place for end in made.line_ends)
        damaged = flipped(made.journal, place)
        path = made.lay(tmp_path, journal=damaged, index=made.index)
        error = refusal(path, LedgerDamagedError, by=check)
        assert isinstance(error, LedgerDamagedError)
        assert error.line == line
        (tmp_path / NAME).unlink()
        error = refusal(path, LedgerDamagedError)
        assert isinstance(error, LedgerDamagedError)
        assert error.line == line
        made.lay(tmp_path, journal=damaged, index=made.early_index)
        error = refusal(path, LedgerDamagedError)
        assert isinstance(error, LedgerDamagedError)
        assert error.line == line
        with pytest.raises(LedgerDamagedError, match=f"^Line {line + 1} of the journal file, event {line}, "):
            list(LedgerReader(path).read_all())


@pytest.mark.usefixtures("marks_remembered")
def test_a_changed_last_line_is_refused_where_the_index_knows_another(tmp_path: Path, made: Made) -> None:
    """Flipped in the last line, behind the index's mark: refused by its number by opening and check alike."""
    for place in range(made.line_ends[-2] + 5, len(made.journal) - 1, 97):
        path = made.lay(tmp_path, journal=flipped(made.journal, place), index=made.index)
        for by in (DuckDBLedger, check):
            error = refusal(path, LedgerDamagedError, by=by)
            assert isinstance(error, LedgerDamagedError)
            assert error.line == 6


def test_damage_before_the_end_leaves_a_foreign_index_where_it_is(
    tmp_path: Path, made: Made, foreign: Made
) -> None:
    """O3: what would be set aside or torn off stays when the journal is then refused."""
    damaged = flipped(made.journal, made.line_ends[1] + 9) + b"torn"
    refusal(made.lay(tmp_path, journal=damaged, index=foreign.index), LedgerDamagedError)
    refusal(made.lay(tmp_path, journal=damaged, index=b"garbage"), LedgerDamagedError)


# --- the index is damaged -------------------------------------------------------------------------------


def with_a_row_missing(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 3")


def with_its_last_row_missing(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 6")


def without_its_mark(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM ledger_mark")


def without_its_tables(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP TABLE ledger_mark; DROP TABLE events; CREATE TABLE other(a INTEGER)")


def with_a_mark_of_another_shape(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP TABLE ledger_mark; CREATE TABLE ledger_mark(seq INTEGER)")


def of_another_schema(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE ledger_mark SET schema_version = 2")


def as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").write_text("inside")


def shortened_to(share: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def zeroed(begin: int, end: int | None) -> Callable[[Path], None]:
    def zero(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[begin:end] = bytes(len(content[begin:end]))
        path.write_bytes(content)

    return zero


DAMAGES = {
    "emptied": shortened_to(0),
    "cut to a tenth": shortened_to(0.1),
    "cut in half": shortened_to(0.5),
    "cut at the end": shortened_to(0.98),
    "zeroed": zeroed(0, None),
    "head zeroed": zeroed(0, 4096),
    "metadata zeroed": zeroed(12288, 12288 + 4096),
    "garbage": lambda path: path.write_bytes(b"garbage" * 1000),
    "a folder": as_a_folder,
    "a row missing": with_a_row_missing,
    "the last row missing": with_its_last_row_missing,
    "the mark missing": without_its_mark,
    "tables missing": without_its_tables,
    "another mark": with_a_mark_of_another_shape,
    "another schema": of_another_schema,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_index_is_set_aside_and_rebuilt(
    tmp_path: Path, made: Made, damage: Callable[[Path], None]
) -> None:
    """X3, O1, O2: whatever became of the index, it is kept under another name, rebuilt, and that is said."""
    path = made.lay(tmp_path, journal=made.journal, index=made.index)
    damage(path)
    before = None if path.is_dir() else path.read_bytes()
    opened_whole(path, said=f"set aside as {NAME}.aside-1")
    assert contents(tmp_path)[f"{NAME}.aside-1"] == before
    assert path.with_name(f"{NAME}.journal.jsonl").read_bytes() == made.journal


def test_a_missing_index_is_rebuilt(tmp_path: Path, made: Made) -> None:
    """X3: without an index nothing is lost, and there is nothing to set aside."""
    path = made.lay(tmp_path, journal=made.journal)
    opened_whole(path, said="The index was rebuilt from the journal.")
    assert set(contents(tmp_path)) == {NAME, f"{NAME}.journal.jsonl"}


def test_an_index_of_another_ledger_is_set_aside(tmp_path: Path, made: Made, foreign: Made) -> None:
    """X3, O1: an index whose mark names another ledger is not used, though its events look the same."""
    path = made.lay(tmp_path, journal=made.journal, index=foreign.index)
    opened_whole(path, said="belongs to another ledger")
    assert path.with_name(f"{NAME}.aside-1").read_bytes() == foreign.index


def test_an_index_that_is_behind_is_caught_up(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the journal has beyond the mark is added in silence, line by line or, if much, by DuckDB."""
    for chunk in (100, 2):
        monkeypatch.setattr(opening, "CHUNK", chunk)
        opened_whole(made.lay(tmp_path / str(chunk), journal=made.journal, index=made.early_index))


@pytest.mark.parametrize("index", ["none", "whole", "damaged"])
def test_a_left_over_log_of_duckdb_is_never_lost(tmp_path: Path, made: Made, index: str) -> None:
    """O1: a `.wal` that does not belong to the index does no harm; beside a missing index it is set aside."""
    content = {"none": None, "whole": made.index, "damaged": made.index[:5000]}[index]
    path = made.lay(tmp_path, journal=made.journal, index=content)
    wal = path.with_name(f"{NAME}.wal")
    wal.write_bytes(b"left over")
    opened_whole(path, said=None if index == "whole" else f"{NAME}.wal.aside-1")
    if index != "whole":
        assert path.with_name(f"{NAME}.wal.aside-1").read_bytes() == b"left over"


def test_a_left_over_log_beside_nothing_is_set_aside(tmp_path: Path) -> None:
    """O1: a new ledger destroys no `.wal` that was there before it."""
    (tmp_path / f"{NAME}.wal").write_bytes(b"left over")
    with DuckDBLedger(tmp_path / NAME) as ledger:
        ledger.append(draft("a"))
        assert "set aside as lab.duckdb.wal.aside-1" in ledger.notices[0]
    assert (tmp_path / f"{NAME}.wal.aside-1").read_bytes() == b"left over"


def test_what_is_set_aside_never_takes_a_name_that_is_taken(tmp_path: Path, made: Made) -> None:
    """O1: a second repair takes the next number."""
    for number in (1, 2, 3):
        path = made.lay(tmp_path, journal=made.journal + b"torn", index=b"garbage %d" % number)
        DuckDBLedger(path).close()
        assert (tmp_path / f"{NAME}.aside-{number}").read_bytes() == b"garbage %d" % number
        assert (tmp_path / f"{NAME}.journal.jsonl.tail-{number}").read_bytes() == b"torn"


def test_a_rebuild_that_is_broken_off_leaves_no_half_index(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X3: an interrupt in the middle of a rebuild passes, and the next opening rebuilds."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path = made.lay(tmp_path, journal=made.journal)
    with monkeypatch.context() as patched:
        patched.setattr(Index, "fill_from", interrupted)
        with pytest.raises(KeyboardInterrupt):
            DuckDBLedger(path)
    assert set(contents(tmp_path)) == {f"{NAME}.journal.jsonl"}
    opened_whole(path, said="rebuilt")


def test_a_rebuild_tells_how_far_it_is(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild reports (done, in all) as it goes; an ordinary opening has nothing to report."""
    monkeypatch.setattr(opening, "CHUNK", 2)
    told: list[tuple[int, int]] = []
    path = made.lay(tmp_path, journal=made.journal)
    DuckDBLedger(path, progress=lambda done, of: told.append((done, of))).close()
    assert told == [(3, 6), (6, 6)]
    DuckDBLedger(path, progress=never("progress")).close()


# --- what is not ours -----------------------------------------------------------------------------------


def a_database_of_somebody_else(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE events(seq INTEGER); INSERT INTO events VALUES (1)")


def a_sqlite_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("My diary, in plain words.\n"),
        lambda path: path.write_bytes(b""),
        a_database_of_somebody_else,
        a_sqlite_database,
    ],
    ids=["text", "empty", "another database", "sqlite"],
)
@pytest.mark.parametrize("by", [DuckDBLedger, LedgerReader, check])
def test_a_file_that_is_not_a_ledger_is_left_untouched(
    tmp_path: Path, write: Callable[[Path], None], by: Callable[[Path], object]
) -> None:
    """O3: somebody else's file under the ledger's name is refused, unchanged, and gets no journal."""
    write(tmp_path / NAME)
    error = refusal(tmp_path / NAME, NotALedgerError, by=by)
    assert "is not a ledger of codeai_lab" in str(error)


def test_a_database_that_somebody_left_with_its_log_is_left_so(tmp_path: Path, made: Made) -> None:
    """O3: a database with a `.wal`, ours or not, is looked at without writing the log into it."""
    refusal(made.lay(tmp_path, index=made.index, log=b"anything"), IndexAheadError)
    other, log = tmp_path / "other.duckdb", tmp_path / "other.duckdb.wal"
    a_sqlite_database(other)
    log.write_bytes(b"anything")
    refusal(other, NotALedgerError)
    other.unlink()
    log.unlink()
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE t(a INTEGER)")
        connection.execute("CHECKPOINT")
        connection.execute("INSERT INTO t VALUES (1)")
        as_killed = other.read_bytes(), log.read_bytes()
    other.write_bytes(as_killed[0])
    log.write_bytes(as_killed[1])
    refusal(other, NotALedgerError)
    with duckdb.connect(str(other)) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_what_duckdb_has_in_its_log_is_looked_at_where_it_is(tmp_path: Path, made: Made) -> None:
    """O3: an index with rows in DuckDB's log, as after a kill, is refused without writing them into it."""
    for journal in (None, made.journal[: made.batch_ends[-2]]):
        path = made.lay(tmp_path, journal=journal, index=made.early_index, log=made.log)
        for by in (DuckDBLedger, check):
            refusal(path, IndexAheadError, by=by)
        restore(path)
        assert path.with_name(f"{NAME}.journal.jsonl").read_bytes() == made.journal
        assert (path.read_bytes(), path.with_name(f"{NAME}.wal").read_bytes()) == (made.early_index, made.log)
    opened_whole(path)


@pytest.mark.usefixtures("marks_remembered")
def test_a_journal_that_is_not_one_is_left_untouched(tmp_path: Path, made: Made) -> None:
    """O3: somebody else's file under the journal's name is refused, with or without an index of ours."""
    for index in (None, made.index):
        for text in (b"My diary.\n", b'{"kind":"other"}\n'):
            path = made.lay(tmp_path, journal=text, index=index)
            for by in (DuckDBLedger, LedgerReader, check):
                refusal(path, NotALedgerError, by=by)
    path = made.lay(tmp_path, journal=b"")
    refusal(path, NotALedgerError)


@pytest.mark.usefixtures("marks_remembered")
def test_a_newer_ledger_is_left_unread(tmp_path: Path, made: Made) -> None:
    """A schema version of the future is refused by writer, reader and check, and nothing is changed."""
    newer = made.journal.replace(b'"schema_version":1', b'"schema_version":3', 1)
    for index in (None, made.index):
        path = made.lay(tmp_path, journal=newer, index=index)
        for by in (DuckDBLedger, LedgerReader, check):
            error = refusal(path, LedgerTooNewError, by=by)
            assert "schema version 3" in str(error)


def test_an_index_that_is_open_elsewhere_is_not_set_aside(tmp_path: Path, made: Made) -> None:
    """O3: while another connection has the index open, an opening is refused, not helped out by a rename."""
    path = made.lay(tmp_path, journal=made.journal, index=made.index)
    with duckdb.connect(str(path)):
        error = refusal(path, LedgerInUseError)
    assert "has lab.duckdb open; close it first" in str(error)
    opened_whole(path)


# --- what may not be written or read --------------------------------------------------------------------


@contextmanager
def without_rights() -> Iterator[None]:
    """Be somebody whom the system may refuse something: not root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("this system has no rights of this kind")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """Give a folder that everybody may reach, so that only its own rights decide."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path


def test_a_folder_that_may_not_be_written_is_refused(open_to_all: Path, made: Made) -> None:
    """Unwritable: one sentence, for a new ledger and an old one; reading goes on; nothing is changed."""
    path = made.lay(open_to_all / "closed", journal=made.journal, index=made.index)
    path.parent.chmod(0o555)
    with without_rights():
        for name in (path, path.with_name("new.duckdb")):
            error = refusal(name, LedgerReadOnlyError)
            assert "cannot be opened for writing (Permission denied)" in str(error)
        assert [event.seq for event in LedgerReader(path).read_all()] == SEQS
        assert check(path).events == 6
    path.parent.chmod(0o755)


def test_a_journal_that_may_not_be_read_or_written_is_refused(open_to_all: Path, made: Made) -> None:
    """Unreadable, or only readable: one sentence, and nothing is set aside."""
    path = made.lay(open_to_all / "open", journal=made.journal + b"torn", index=b"garbage")
    path.parent.chmod(0o777)
    journal = path.with_name(f"{NAME}.journal.jsonl")
    for mode in (0o000, 0o444):
        journal.chmod(mode)
        with without_rights(), pytest.raises(LedgerReadOnlyError) as refused:
            DuckDBLedger(path)
        assert str(path.parent) not in str(refused.value)
        assert set(contents(path.parent)) == {NAME, journal.name}


def test_an_index_that_may_not_be_read_is_set_aside_and_rebuilt(open_to_all: Path, made: Made) -> None:
    """X3: an index that the system keeps to itself is like one that is damaged."""
    path = made.lay(open_to_all / "open", journal=made.journal, index=made.index)
    path.parent.chmod(0o777)
    path.with_name(f"{NAME}.journal.jsonl").chmod(0o666)
    path.chmod(0o000)
    with without_rights(), DuckDBLedger(path) as ledger:
        assert ids(ledger.find("k0")) == ["0.0", "2.0"]
        assert "set aside" in ledger.notices[0]
