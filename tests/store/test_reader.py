"""The laws of store.reader: a second notebook sees whole batches in order, and leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ledger_contract import draft, ids, in_threads
from ledger_files import NAME, Made, contents, flipped, never

from codeai_lab.errors import (
    IndexAheadError,
    LedgerDamagedError,
    LedgerError,
    LedgerNotFoundError,
    LedgerReadOnlyError,
    QueryRefusedError,
)
from codeai_lab.store import reader as module
from codeai_lab.store.chain import read_batches
from codeai_lab.store.index import Index
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def ledger(path: Path) -> Iterator[DuckDBLedger]:
    with DuckDBLedger(path, ledger_id="L") as ledger:
        yield ledger


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal.jsonl")


def test_a_reader_sees_what_the_writer_records_as_it_comes(ledger: DuckDBLedger, path: Path) -> None:
    """V1: the same reader sees more each time, by every way of asking, without waiting for a flush."""
    with LedgerReader(path) as reader:
        assert reader.ledger_id == "L"
        assert list(reader.read_all()) == []
        assert reader.sql("SELECT count(*) FROM events").rows == ((0,),)
        for number in range(1, 4):
            ledger.append(draft(f"{number}a", key=f"k{number}"), draft(f"{number}b", key=None, stream="t"))
            assert list(reader.read_all()) == list(ledger.read_all())
            assert reader.find(f"k{number}") == ledger.find(f"k{number}")
            assert reader.read("t") == ledger.read("t")
            assert reader.find("\ud800") == ()
            assert reader.sql("SELECT count(*), max(seq) FROM events").rows == ((2 * number, 2 * number),)


def test_a_reader_stops_before_an_incomplete_batch_at_every_byte(path: Path, made: Made) -> None:
    """V1: of a batch that is being written nothing is seen until it is whole."""
    made.lay(path.parent, journal=made.journal, index=made.index)
    reader = LedgerReader(path)
    for cut in range(made.batch_ends[-3], len(made.journal) + 1):
        journal_of(path).write_bytes(made.journal[:cut])
        whole = sum(
            end <= cut for end in made.line_ends if end <= max(e for e in made.batch_ends if e <= cut)
        )
        assert [event.seq for event in reader.read_all()] == list(range(1, whole))


def test_a_reader_leaves_no_trace(path: Path, made: Made) -> None:
    """V2: looking, asking and closing change no byte and make no file, beside a torn end or no index too."""
    for index in (made.index, None):
        made.lay(path.parent, journal=made.journal + b"torn", index=index)
        before = {**contents(path.parent), "names": str(sorted(path.parent.iterdir())).encode()}
        with LedgerReader(path) as reader:
            assert len(list(reader.read_all())) == 6
            assert ids(reader.find("k0")) == ["0.0", "2.0"]
            assert reader.sql("SELECT count(*) FROM events").rows == ((6,),)
        assert {**contents(path.parent), "names": str(sorted(path.parent.iterdir())).encode()} == before


def test_where_there_is_no_ledger_a_reader_makes_none(path: Path) -> None:
    """V2: a ledger that is not there is said to be missing, and is still missing."""
    with pytest.raises(LedgerNotFoundError, match=f"There is no ledger called {NAME} here"):
        LedgerReader(path)
    assert list(path.parent.iterdir()) == []


def test_an_index_that_knows_more_is_said(path: Path, made: Made, foreign: Made) -> None:
    """V4, V2: cut at each batch, the lost seqs are named, and no byte and no file is changed by asking."""
    for log in (None, made.log):
        index = made.index if log is None else made.early_index
        for end, first in zip(made.batch_ends, (1, 2, 4, 5, 7), strict=True):
            made.lay(path.parent, journal=made.journal[:end], index=index, log=log)
            before = {**contents(path.parent), "names": str(sorted(path.parent.iterdir())).encode()}
            reader = LedgerReader(path)
            mark = reader.index_mark()
            assert mark is not None
            assert mark.end.seq == 6
            if first > 6:
                reader.refuse_lost(mark, last_seq=6)
            else:
                with pytest.raises(IndexAheadError, match="knows more than its journal") as refused:
                    reader.refuse_lost(mark, last_seq=first - 1)
                assert refused.value.missing == (first, 6)
            assert {**contents(path.parent), "names": str(sorted(path.parent.iterdir())).encode()} == before
    for other in (foreign.index, b"garbage", None):
        made.lay(path.parent, journal=made.journal, index=other)
        assert LedgerReader(path).index_mark() is None


def test_a_changed_last_line_is_said_where_the_index_knows_another(path: Path, made: Made) -> None:
    """V4: in the last line the chain shows no change, but the index does."""
    place = made.journal.rindex(b'"recorded_at_us":1') + len(b'"recorded_at_us":')
    made.lay(path.parent, journal=flipped(made.journal, place), index=made.index)
    reader = LedgerReader(path)
    mark = reader.index_mark()
    assert len(list(reader.read_all())) == 6
    assert mark is not None
    with pytest.raises(LedgerDamagedError, match="Line 7 of the journal file, event 6, ") as refused:
        reader.refuse_lost(mark, last_seq=6)
    assert refused.value.line == 6


def test_a_writer_at_work_makes_no_alarm(ledger: DuckDBLedger, path: Path) -> None:
    """V4: while a writer keeps its index, the mark is not known; what it leaves at its end lacks nothing."""
    ledger.append(draft("a"))
    ledger.sql("SELECT 1")
    reader = LedgerReader(path)
    assert reader.index_mark() is None
    ledger.append(draft("b"))
    assert ids(ledger.find("k")) == ["a", "b"]
    ledger.close()
    mark = reader.index_mark()
    assert mark is not None
    reader.refuse_lost(mark, last_seq=2)


def test_a_damaged_line_is_named_by_whatever_reads_it(path: Path, made: Made) -> None:
    """V3: every way of asking reads the chain, and names the first line that does not fit, each time."""
    made.lay(path.parent, journal=flipped(made.journal, made.line_ends[2] + 9))
    reader = LedgerReader(path)
    for ask in (
        lambda: list(reader.read_all()),
        lambda: reader.find("k"),
        lambda: reader.read("s"),
        lambda: reader.sql("SELECT 1"),
    ):
        for _ in range(2):
            with pytest.raises(LedgerDamagedError) as refused:
                ask()
            assert refused.value.line == 3
    seen: list[int] = []
    with pytest.raises(LedgerDamagedError):
        seen.extend(event.seq for event in reader.read_all())
    assert seen == [1]  # the batch that the damaged line belongs to is not shown in part


def test_a_batch_that_the_writer_took_back_is_forgotten(path: Path, made: Made) -> None:
    """V1: after a failed append was cut back, and another written, a reader sees the ledger as it is."""
    made.lay(path.parent, journal=made.journal)
    reader = LedgerReader(path)
    assert len(reader.find("k1")) == 4
    journal_of(path).write_bytes(made.journal[: made.batch_ends[-2]])
    assert len(reader.find("k1")) == 2
    assert len(list(reader.read_all())) == 4
    journal_of(path).write_bytes(made.journal)
    assert len(reader.find("k1")) == 4
    journal_of(path).write_bytes(made.journal[: made.batch_ends[-2]])
    with DuckDBLedger(path) as ledger:
        ledger.append(draft("another", payload={"long": "x" * 2000}))
    assert ids(reader.find("k")) == ["another"]
    assert len(reader.find("k1")) == 2
    assert reader.sql("SELECT count(*) FROM events").rows == ((5,),)


def test_a_batch_that_is_taken_back_while_it_is_read_is_read_again(
    path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V1: what does not fit is looked at once more before it is called damaged."""
    made.lay(path.parent, journal=made.journal)
    real = read_batches
    calls: list[int] = []

    def torn_once(*args: Any, after: Any, **kwargs: Any) -> Iterator[Any]:
        calls.append(after.seq)
        for end, batch in real(*args, after=after, **kwargs):
            if end.seq == 4 and len(calls) == 1:
                raise LedgerDamagedError("half of one batch and half of another", line=4)
            yield end, batch

    monkeypatch.setattr(module, "read_batches", torn_once)
    assert [event.seq for event in LedgerReader(path).read_all()] == [1, 2, 3, 4, 5, 6]
    assert calls == [0, 3]


def test_a_half_filled_index_is_thrown_away(
    ledger: DuckDBLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: an interrupt while a reader fills its index passes, and the next question is answered in full."""
    monkeypatch.setattr(module, "CHUNK", 2)
    for number in range(5):
        ledger.append(draft(str(number)))
    reader = LedgerReader(path)
    real, calls = Index.add, []

    def interrupted(self: Index, *args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(Index, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.find("k")
    assert ids(reader.find("k")) == ["0", "1", "2", "3", "4"]
    assert len(calls) == 5
    reader.close()


def test_an_index_in_memory_that_fails_is_made_again(
    ledger: DuckDBLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader's failed index says so in one sentence, and the next question gets a new one."""

    def fails(*_: object) -> None:
        raise duckdb.FatalException("invalidated")

    ledger.append(draft("a"))
    reader = LedgerReader(path)
    for method, ask in (("sql", lambda: reader.sql("SELECT 1")), ("history", lambda: reader.find("k"))):
        with monkeypatch.context() as patched:
            patched.setattr(Index, method, fails)
            with pytest.raises(LedgerError, match="The index does not answer"):
                ask()
        assert ids(reader.find("k")) == ["a"]
    with pytest.raises(QueryRefusedError):
        reader.sql("SELECT nothing")
    reader.close()


def test_a_reader_may_be_asked_from_several_threads(ledger: DuckDBLedger, path: Path) -> None:
    """Each thread gets the answer to its own question."""
    ledger.append(*(draft(str(n), key=f"k{n}", stream=f"s{n}") for n in range(8)))
    reader = LedgerReader(path)

    def work(number: int) -> None:
        for _ in range(15):
            assert ids(reader.find(f"k{number}")) == ids(reader.read(f"s{number}")) == [str(number)]
            assert reader.sql(f"SELECT {number}").rows == ((number,),)

    in_threads(8, work)
    reader.close()


def test_a_forked_child_makes_an_index_of_its_own(
    ledger: DuckDBLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B3: in another process the index in memory is the parent's; it is left alone, another one is made."""
    ledger.append(draft("a"))
    reader = LedgerReader(path)
    assert ids(reader.find("k")) == ["a"]
    parents = reader._index
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)
        patched.setattr(Index, "close", never("closing the parent's index"))
        assert ids(reader.find("k")) == ["a"]
        assert reader._index is not parents
    assert parents is not None
    parents.close()
    reader.close()


def test_a_journal_that_goes_away_is_said(ledger: DuckDBLedger, path: Path) -> None:
    """A journal that is moved away while it is read is one sentence, not a traceback."""
    reader = LedgerReader(path)
    reader.find("k")
    journal_of(path).rename(path.with_name("moved"))
    for ask in (lambda: list(reader.read_all()), lambda: reader.find("k"), lambda: reader.sql("SELECT 1")):
        with pytest.raises(LedgerReadOnlyError, match="cannot be read"):
            ask()
    path.with_name("moved").rename(journal_of(path))
    assert reader.find("k") == ()
    assert repr(reader) == f"LedgerReader({NAME!r})"
    reader.close()
