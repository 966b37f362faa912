"""The laws of store.journal: what is acknowledged is on disk, and what is not leaves nothing in the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_contract import draft, ids
from ledger_files import NAME

from codeai_lab.errors import LedgerError, LedgerFailedError, LedgerFullError
from codeai_lab.store import journal as module
from codeai_lab.store.chain import find_tail, read_lines
from codeai_lab.store.journal import Journal, create, free_name
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.lines import encode_batch, encode_creation, line_digest, place

CREATED = encode_creation(ledger_id="L", recorded_at_us=1)


class Writer:
    """A journal, and the batches that it is asked to append."""

    def __init__(self, path: Path) -> None:
        create(path, [CREATED])
        self.path = path
        self.journal = Journal(path, find_tail(path).end)

    def append(self, *names: str) -> None:
        events = place([draft(name) for name in names], after_seq=self.journal.end.seq)
        _, raws, digest = encode_batch(events, prev=self.journal.end.digest)
        self.journal.append(raws, last_digest=digest)

    def whole(self) -> list[str]:
        """Check that the file is exactly what the journal believes, and give the ids in it."""
        tail = find_tail(self.path)
        assert tail.end == self.journal.end
        assert tail.file_size == tail.end.size
        return [line.event.event_id for _, line in read_lines(self.path)]


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "j")


def fails(number: int) -> Callable[..., int]:
    def call(*_: object) -> int:
        raise OSError(number, os.strerror(number), "/secret/path")

    return call


def test_what_is_appended_is_flushed_before_it_returns(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J1: a batch is one write and one flush of that file, in this order."""
    calls = []
    real_write, real_flush = os.write, module._flush

    def write(descriptor: int, data: bytes) -> int:
        calls.append("write")
        return real_write(descriptor, data)

    def flush(descriptor: int) -> None:
        calls.append("flush")
        real_flush(descriptor)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(module, "_flush", flush)
    writer.append("a", "b")
    writer.append("c")
    assert calls == ["write", "flush"] * 2
    assert writer.whole() == ["a", "b", "c"]


def test_short_writes_are_gone_on_with(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """J1: a system that takes a few bytes at a time gets the rest."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    writer.append("a", "b")
    assert writer.whole() == ["a", "b"]


@pytest.mark.parametrize("written", [0, 1, 100, 300, 500])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, LedgerFullError),
        (errno.EDQUOT, LedgerFullError),
        (errno.EFBIG, LedgerFullError),
        (errno.EIO, LedgerError),
    ],
)
def test_a_write_that_fails_is_cut_back(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, written: int, number: int, kind: type[LedgerError]
) -> None:
    """J2: whatever got into the file of an append that failed is cut off; when there is space it goes on."""
    writer.append("a")
    real = os.write
    left = [written]

    def write(descriptor: int, data: memoryview) -> int:
        if not left[0]:
            fails(number)()
        size = real(descriptor, data[: left[0]])
        left[0] -= size
        return size

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(LedgerError) as refused:
            writer.append("b", "c")
    assert type(refused.value) is kind
    assert refused.value.definite
    assert "/secret" not in str(refused.value)
    assert writer.whole() == ["a"]
    writer.append("b", "c")
    assert writer.whole() == ["a", "b", "c"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_after_a_flush_that_failed_no_append_is_taken(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """J3: what is durable after a failed flush is unknown: indefinite, and refused until reopened."""
    writer.append("a")
    with monkeypatch.context() as patched:
        patched.setattr(module, "_flush", fails(number))
        with pytest.raises(LedgerFailedError) as refused:
            writer.append("b")
    assert not refused.value.definite
    assert "open it again" in str(refused.value)
    for _ in range(2):
        with pytest.raises(LedgerFailedError, match="An earlier flush to disk failed"):
            writer.append("c")
    assert writer.whole() == ["a"]


def test_a_failed_append_that_cannot_be_cut_back_is_the_last(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J2: nothing is ever written after a torn end; the next opening sets it aside."""
    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: real(fd, data[:20]) and fails(errno.EIO)())
        patched.setattr(os, "ftruncate", fails(errno.EIO))
        with pytest.raises(LedgerError):
            writer.append("a")
        with pytest.raises(LedgerFailedError):
            writer.append("b")
    assert len(writer.path.read_bytes()) == len(CREATED) + 21


def test_a_ledger_whose_flush_failed_goes_on_when_reopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J3: reads go on; opened again it takes appends, with everything acknowledged and nothing twice."""
    ledger = DuckDBLedger(tmp_path / NAME)
    ledger.append(draft("a"))
    with monkeypatch.context() as patched:
        patched.setattr(module, "_flush", fails(errno.EIO))
        with pytest.raises(LedgerFailedError):
            ledger.append(draft("b"))
    assert ids(ledger.find("k")) == ids(ledger.read_all()) == ["a"]
    assert ledger.sql("SELECT event_id FROM events").rows == (("a",),)
    with pytest.raises(LedgerFailedError):
        ledger.append(draft("b"))
    ledger.close()
    with DuckDBLedger(tmp_path / NAME) as again:
        recorded = ids(again.find("k"))
        assert recorded == ["a"]
        again.append(draft("b"))
        assert ids(again.find("k")) == ["a", "b"]


def test_a_journal_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: a journal that cannot be made leaves no file, under its own name or another."""
    monkeypatch.setattr(os, "fsync", fails(errno.ENOSPC))
    with pytest.raises(OSError, match="space"):
        create(tmp_path / "j", [CREATED])
    with pytest.raises(LedgerFullError, match=f"no space left to open {NAME}"):
        DuckDBLedger(tmp_path / NAME)
    assert {path.name for path in tmp_path.iterdir()} <= {f"{NAME}.lock"}


def test_a_free_name_is_the_first_that_is_free(tmp_path: Path) -> None:
    """O1: names are counted from 1, past those that are taken."""
    (tmp_path / "x-1").write_text("")
    (tmp_path / "x-2").mkdir()
    assert free_name(tmp_path / "x").name == "x-3"


def test_line_0_is_what_the_first_line_follows(writer: Writer) -> None:
    """The first event's `prev` is the digest of line 0."""
    writer.append("a")
    ((_, line),) = read_lines(writer.path)
    assert line.prev == line_digest(CREATED)
