"""The laws of store.core: nothing lost and nothing doubled, whatever breaks off a call or fails beside it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ledger_contract import draft, ids
from ledger_files import NAME, contents, flipped, never

from codeai_lab.errors import LedgerError, LedgerFullError, QueryRefusedError
from codeai_lab.store import core, database, journal
from codeai_lab.store.core import Core
from codeai_lab.store.index import Index
from codeai_lab.store.journal import Journal
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.protocol import Unchanged


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with DuckDBLedger(folder / NAME) as ledger:
        ledger.append(draft("old"))
    return folder


@pytest.fixture
def ledger(tmp_path: Path, old: Path, marks_remembered: None) -> Iterator[DuckDBLedger]:
    """Give a ledger with one event from an earlier session and one from this."""
    shutil.copytree(old, tmp_path, dirs_exist_ok=True)
    with DuckDBLedger(tmp_path / NAME) as ledger:
        ledger.append(draft("new"))
        yield ledger


class Once:
    """A stand-in that interrupts its first call, before or after the real thing is done."""

    def __init__(self, real: Callable[..., Any], *, after: bool, error: BaseException) -> None:
        self.real, self.after, self.error = real, after, error
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == 1 and not self.after:
            raise self.error
        result = self.real(*args, **kwargs)
        if self.calls == 1:
            raise self.error
        return result

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        return lambda *args, **kwargs: self(instance, *args, **kwargs)


def whole(ledger: DuckDBLedger) -> list[str]:
    """Check that memory, journal, index and the next opening tell of the same events once; give their ids."""
    told = ids(ledger.read_all())
    assert len(set(told)) == len(told)
    assert [event.seq for event in ledger.read_all()] == list(range(1, len(told) + 1))
    assert ids(ledger.find("k")) == ids(ledger.read("s")) == told
    assert ledger.sql("SELECT list(event_id ORDER BY seq) FROM events").rows == ((told,),)
    (last,) = ledger.append(
        draft(f"after {len(told)}"), unless_changed=[Unchanged(key="k", last_seq=len(told))]
    )
    assert last.seq == len(told) + 1
    assert ledger.sql("SELECT count(*), max(seq) FROM events").rows == ((last.seq, last.seq),)
    path = Path(str(ledger.journal).removesuffix(".journal.jsonl"))
    ledger.close()
    with DuckDBLedger(path) as again:
        assert again.notices == ()
        assert ids(again.read_all()) == ids(again.find("k")) == [*told, last.event_id]
    return told


# --- interrupts -----------------------------------------------------------------------------------------

POINTS = [
    pytest.param(os, "write", False, id="before the write"),
    pytest.param(os, "write", True, id="after the write"),
    pytest.param(journal, "_flush", False, id="before the flush"),
    pytest.param(journal, "_flush", True, id="after the flush"),
    pytest.param(Journal, "append", False, id="before the journal"),
    pytest.param(Journal, "append", True, id="between journal and memory"),
    pytest.param(Core, "_take", False, id="before taking in"),
    pytest.param(Core, "_take", True, id="after taking in"),
    pytest.param(core, "encode_batch", True, id="after encoding"),
]


@pytest.mark.parametrize(("where", "name", "after"), POINTS)
def test_an_interrupted_append_is_recorded_once_or_not_at_all(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, after: bool
) -> None:
    """D1, D3: an interrupt anywhere in an append passes; the next call works; the append is whole or gone."""
    once = Once(getattr(where, name), after=after, error=KeyboardInterrupt())
    monkeypatch.setattr(where, name, once)
    with pytest.raises(KeyboardInterrupt):
        ledger.append(draft("a"), draft("b"))
    recorded = ids(ledger.find("k"))
    assert recorded in (["old", "new"], ["old", "new", "a", "b"])
    if recorded == ["old", "new"]:
        ledger.append(draft("a"), draft("b"))
    assert once.calls >= 1
    assert whole(ledger) == ["old", "new", "a", "b"]


def test_a_take_in_that_stops_half_way_is_finished_first(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D3: an interrupt between two events of a batch leaves neither of them out, and none twice."""
    real = Core._take

    def half(self: Core, lines: Any) -> None:
        def interrupted() -> Iterator[Any]:
            for number, line in enumerate(lines):
                if number == 1:
                    monkeypatch.setattr(Core, "_take", real)
                    raise KeyboardInterrupt
                yield line

        real(self, interrupted())

    monkeypatch.setattr(Core, "_take", half)
    with pytest.raises(KeyboardInterrupt):
        ledger.append(draft("a"), draft("b"), draft("c"))
    assert ids(ledger.find("k")) == ["old", "new", "a", "b", "c"]
    assert whole(ledger) == ["old", "new", "a", "b", "c"]


@pytest.mark.parametrize("second", [False, True], ids=["once", "again while cutting back"])
def test_a_real_signal_in_a_flush_is_an_interrupt_like_any_other(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch, second: bool
) -> None:
    """D3, J2: SIGINT while the disk is busy, and again while that is cleaned up: nothing lost or torn."""
    real_flush, real_cut = journal._flush, os.ftruncate

    def flush(descriptor: int) -> None:
        monkeypatch.setattr(journal, "_flush", real_flush)
        real_flush(descriptor)
        signal.raise_signal(signal.SIGINT)

    def cut(descriptor: int, size: int) -> None:
        monkeypatch.setattr(os, "ftruncate", real_cut)
        if second:
            signal.raise_signal(signal.SIGINT)
        real_cut(descriptor, size)

    monkeypatch.setattr(journal, "_flush", flush)
    monkeypatch.setattr(os, "ftruncate", cut)
    with pytest.raises(KeyboardInterrupt):
        ledger.append(draft("a"))
    assert ids(ledger.find("k")) == ["old", "new"]
    assert whole(ledger) == ["old", "new"]


def test_an_append_that_was_cut_back_twice_over_is_not_absorbed(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D1: what still lies in the file of an append that was broken off is told to nobody, then cut off."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(journal, "_flush", interrupted)
        patched.setattr(os, "ftruncate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.append(draft("a"))
    assert b'"event_id":"a"' in ledger.journal.read_bytes()
    assert ids(ledger.read_all()) == ids(ledger.find("k")) == ["old", "new"]
    ledger.append(draft("b"))
    assert b'"event_id":"a"' not in ledger.journal.read_bytes()
    assert whole(ledger) == ["old", "new", "b"]


PYTHONS, DUCKDBS = KeyboardInterrupt(), RuntimeError("Query interrupted")
FLUSH_POINTS = [
    pytest.param("append", Index, "add", False, PYTHONS, id="before the index"),
    pytest.param("append", Index, "add", True, PYTHONS, id="after the index"),
    pytest.param("append", Index, "_move_mark", False, PYTHONS, id="before the mark"),
    pytest.param("append", Index, "_move_mark", False, DUCKDBS, id="before the mark, by duckdb"),
    pytest.param("append", Index, "_move_mark", True, PYTHONS, id="before the commit"),
    pytest.param("append", Index, "_move_mark", True, DUCKDBS, id="before the commit, by duckdb"),
    pytest.param("append", database, "_roll_back", False, PYTHONS, id="instead of the roll-back"),
    pytest.param("append", database, "_roll_back", False, DUCKDBS, id="instead of the roll-back, by duckdb"),
    pytest.param("sql", Index, "_move_mark", True, DUCKDBS, id="in a query"),
    pytest.param("close", Index, "_move_mark", True, DUCKDBS, id="in closing"),
]


@pytest.mark.parametrize(("during", "where", "name", "after", "error"), FLUSH_POINTS)
def test_an_interrupted_flush_loses_and_doubles_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    during: str,
    where: Any,
    name: str,
    after: bool,
    error: BaseException,
) -> None:
    """B1, D3: an interrupt in a flush arrives as one; no transaction stays open; nothing is doubled."""
    monkeypatch.setattr(core, "FLUSH_AT", 2)
    ledger = DuckDBLedger(tmp_path / NAME)
    ledger.append(draft("a"))
    if name == "_roll_back":  # then something has to be rolled back
        monkeypatch.setattr(Index, "_move_mark", Once(Index._move_mark, after=False, error=error))
    monkeypatch.setattr(where, name, Once(getattr(where, name), after=after, error=error))
    call = {
        "append": lambda: ledger.append(draft("b")),
        "sql": lambda: ledger.sql("SELECT 1"),
        "close": ledger.close,
    }
    with pytest.raises(KeyboardInterrupt):
        call[during]()
    expected = ["a", "b"] if during == "append" else ["a"]
    if during == "close":
        ledger = DuckDBLedger(tmp_path / NAME)
    assert ids(ledger.find("k")) == expected
    assert whole(ledger) == expected


def test_an_interrupted_query_leaves_no_transaction(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: DuckDB's own report of an interrupt is a KeyboardInterrupt, and the next query is answered."""

    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            if name == "extract_statements":
                return lambda query: [Statement()]
            return getattr(real, name)

        def execute(self, *_: object) -> None:
            raise RuntimeError("Query interrupted")

    class Statement:
        type = duckdb.StatementType.SELECT

    ledger.sql("SELECT 1")
    index: Any = ledger._core._index
    real = index._connection
    index._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        ledger.sql("SELECT 2")
    index._connection = real
    assert ledger.sql("SELECT 3").rows == ((3,),)
    assert whole(ledger) == ["old", "new"]


# --- an index that fails --------------------------------------------------------------------------------


def failing(times: int, real: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Give a stand-in that fails some times, and does the real thing from then on."""
    left = [times]

    def call(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return real(*args, **kwargs)

    return call


FATAL = duckdb.FatalException(
    'database has been invalidated because of a previous fatal error: "/secret/lab.duckdb"'
)


@pytest.mark.parametrize(("times", "said"), [(1, ()), (2, ("set aside", "rebuilt"))])
@pytest.mark.parametrize("method", ["sql", "add", "history"])
def test_after_a_fatal_error_the_index_is_opened_again_or_rebuilt(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch, method: str, times: int, said: tuple[str, ...]
) -> None:
    """DuckDB gave up: it is opened again, or rebuilt if that does not help, which is said; the call works."""
    monkeypatch.setattr(Index, method, failing(times, getattr(Index, method), FATAL))
    assert ids(ledger.find("k")) == ["old", "new"]
    assert ledger.sql("SELECT event_id FROM events ORDER BY seq").rows == (("old",), ("new",))
    assert len(ledger.notices) == len(said)
    assert all(word in notice for word, notice in zip(said, ledger.notices, strict=True))
    assert ledger.append(draft("a"))[0].seq == 3


def test_an_index_that_stays_away_fails_no_append_and_no_look_up(
    tmp_path: Path, ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """D5: with the index gone for good the journal answers; only SQL says that it cannot, in one sentence."""

    def fails(*_: object, **__: object) -> None:
        raise FATAL

    monkeypatch.setattr(core, "FLUSH_AT", 1)
    with monkeypatch.context() as patched:
        for method in ("add", "history", "names", "event_ids", "sql"):
            patched.setattr(Index, method, fails)
        patched.setattr(core, "reopen_index", lambda *_, **__: (ledger._core._index, []))
        patched.setattr(Core, "_close_index", lambda self: None)
        assert ledger.append(draft("a"), unless_changed=[Unchanged(key="k", last_seq=2)])
        assert ids(ledger.find("k")) == ids(ledger.read("s")) == ["old", "new", "a"]
        assert ledger.find("unknown") == ()
        with pytest.raises(LedgerError) as refused:
            ledger.sql("SELECT 1")
    assert "/secret" not in str(refused.value) + caplog.text
    assert whole(ledger) == ["old", "new", "a"]


def test_a_block_that_was_damaged_while_nobody_looked_is_found_and_mended(tmp_path: Path) -> None:
    """X3: damage in the middle of the index, which no opening sees, is found by the first use and rebuilt."""
    path = tmp_path / NAME
    with DuckDBLedger(path) as ledger:
        for start in range(0, 2000, 500):
            ledger.append(*(draft(str(n), key=f"k{n}", payload={"n": n}) for n in range(start, start + 500)))
    good, lines = path.read_bytes(), ledger.journal.read_bytes()
    for block in range(1, (len(good) - 12288) // 262144, 2):
        path.write_bytes(flipped(good, 12288 + 262144 * block + 5000, 0xFF))
        ledger.journal.write_bytes(lines)
        with DuckDBLedger(path) as again:
            assert ids(again.find("k77")) == ["77"]
            assert len(again.read("s")) == 2000
            assert again.append(draft("next"))[0].seq == 2001
            assert again.sql("SELECT count(*), count(DISTINCT event_id), max(seq) FROM events").rows == (
                (2001, 2001, 2001),
            )
        with DuckDBLedger(path) as again:
            assert again.notices == ()
            assert again.sql("SELECT count(DISTINCT payload::VARCHAR) FROM events").rows == ((2001,),)


def test_an_index_without_space_is_not_rebuilt_and_not_tried_again_at_once(
    ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """D5: with no space for the index appends go on, it is tried now and then, and SQL says it."""
    full = duckdb.TransactionException("Failed to commit: Could not write file: No space left on device")
    tries = []

    def fails(self: Index, lines: list[Any], end: Any) -> None:
        tries.append(len(lines))
        raise full

    monkeypatch.setattr(core, "FLUSH_AT", 10)
    ledger._core._flush_at = 10
    with monkeypatch.context() as patched:
        patched.setattr(Index, "add", fails)
        for number in range(35):
            ledger.append(draft(str(number)))
        assert tries == [10, 10, 20, 20, 30, 30]
        with pytest.raises(LedgerFullError, match="no space left for the index; the journal is whole"):
            ledger.sql("SELECT 1")
    assert not [name for name in contents(tmp_path) if "aside" in name]
    assert len(whole(ledger)) == 37


def test_a_new_ledger_never_asks_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in a new ledger is in memory: neither look-ups nor conditions ask DuckDB."""
    with DuckDBLedger(tmp_path / NAME) as ledger, monkeypatch.context() as patched:
        for method in ("history", "names", "event_ids", "add", "sql"):
            patched.setattr(Index, method, never(method))
        for number in range(20):
            ledger.append(draft(str(number)), unless_changed=[Unchanged(key="k", last_seq=number)])
        assert len(ledger.find("k")) == len(ledger.read("s")) == 20
        assert ledger.find("unknown") == ()


def test_an_old_key_is_asked_for_once(ledger: DuckDBLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier session recorded does not change: one look-up by name is enough."""
    asked = []
    real = Index.history

    def history(self: Index, by: str, name: str) -> Any:
        asked.append(name)
        return real(self, by, name)

    monkeypatch.setattr(Index, "history", history)
    for number in range(3):
        assert len(ledger.find("k")) == 2 + number
        ledger.append(draft(str(number)), unless_changed=[Unchanged(key="k", last_seq=2 + number)])
        assert ledger.find("new key") == ()
    assert asked == ["k"]


def test_repairs_are_said_in_the_log_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """O2: what an opening repaired is a warning in the log, without a path."""
    with DuckDBLedger(tmp_path / NAME) as ledger:
        ledger.append(draft("a"))
    (tmp_path / NAME).write_bytes(b"garbage")
    with caplog.at_level(logging.WARNING, logger="codeai_lab"), DuckDBLedger(tmp_path / NAME) as ledger:
        assert [record.getMessage() for record in caplog.records] == list(ledger.notices)
    assert str(tmp_path) not in caplog.text


def test_a_refused_query_says_why_and_breaks_nothing(ledger: DuckDBLedger) -> None:
    """A query that fails is the asker's affair: it is refused, and the index is left as it is."""
    with pytest.raises(QueryRefusedError):
        ledger.sql("SELECT nothing FROM nowhere")
    assert ledger.notices == ()
    assert whole(ledger) == ["old", "new"]
