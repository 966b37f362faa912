"""The laws of the ledger between processes: one writer, many readers, forks, interrupts, a full disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from ledger_child import draft

from codeai_lab.errors import LedgerFullError, LedgerInUseError
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader
from codeai_lab.store.restore import check

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILD = Path(__file__).with_name("ledger_child.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab.duckdb"


class Child:
    """Another process that plays one scene."""

    def __init__(self, scene: str, path: Path) -> None:
        ears, mouth = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, CHILD, scene, path, str(mouth)],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[mouth], text=True,
        )  # fmt: skip
        os.close(mouth)
        self.ears: IO[str] = os.fdopen(ears)

    def hears(self, word: str) -> list[list[str]]:
        """Give what the child said up to a word, or to its end."""
        heard = []
        for line in self.ears:
            heard.append(line.split())
            if heard[-1][0] == word:
                break
        return heard

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)


@contextmanager
def playing(scene: str, path: Path) -> Iterator[Child]:
    child = Child(scene, path)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.kill()
        for stream in (child.process.stdin, child.process.stderr, child.ears):
            assert stream is not None
            stream.close()


def whole(path: Path) -> list[str]:
    """Open a ledger for writing, check that journal and index tell the same, and give the ids in it."""
    with DuckDBLedger(path) as ledger:
        told = [event.event_id for event in ledger.read_all()]
        rows = ledger.sql("SELECT seq, event_id FROM events ORDER BY seq").rows
        assert rows == tuple(enumerate(told, start=1))
    assert check(path).events == len(told)
    assert len(set(told)) == len(told)
    return told


# --- one writer, many readers ---------------------------------------------------------------------------


def test_a_second_writer_is_refused_at_once_and_may_read(path: Path) -> None:
    """G1: while another process writes, writing is refused and reading works; not after its death."""
    with playing("hold", path) as child:
        child.hears("acknowledged")
        began = time.monotonic()
        with pytest.raises(LedgerInUseError) as refused:
            DuckDBLedger(path)
        assert time.monotonic() - began < 1
        assert "writes to lab.duckdb" in str(refused.value)
        assert str(path.parent) not in str(refused.value)
        with LedgerReader(path) as reader:
            assert [event.event_id for event in reader.read_all()] == ["held.1"]
            assert reader.sql("SELECT count(*) FROM events").rows == ((1,),)
        child.kill()
        assert whole(path) == ["held.1"]


def test_a_reader_beside_a_writer_sees_only_whole_prefixes(path: Path) -> None:
    """V1: while 5,000 events are appended, each look sees whole batches, in order, and never fewer."""
    with playing("write_many", path) as child:
        child.hears("begun")
        sizes = [0]
        with LedgerReader(path) as reader:
            while sizes[-1] < 5_000:
                events = list(reader.read_all())
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                place = 0
                for event in events:
                    assert event.payload["n"] == place + 1
                    place = event.payload["n"] % event.payload["of"]
                assert place == 0
                ((count, newest),) = reader.sql("SELECT count(*), coalesce(max(seq), 0) FROM events").rows
                assert count == newest >= len(events) >= sizes[-1]
                sizes.append(len(events))
        child.hears("written")
        assert len(set(sizes)) > 3
        with pytest.raises(LedgerInUseError):
            DuckDBLedger(path)
        child.kill()
    with DuckDBLedger(path) as ledger:
        assert ledger.notices == ()
        assert ledger.append(draft("mine"))[0].seq == 5_001
    assert len(whole(path)) == 5_001


def test_a_process_that_just_ends_leaves_everything(path: Path) -> None:
    """D8: without closing anything, by an exception: the lock is free, journal and index are whole."""
    with playing("leave", path) as child:
        child.hears("nothing more")
        assert child.process.wait(timeout=30) == 1
        assert child.process.stderr is not None
        assert child.process.stderr.read() == "0 notices\n"
    with DuckDBLedger(path) as ledger:
        assert ledger.notices == ()
    assert whole(path) == ["left.1", "left.2"]


# --- interrupts -----------------------------------------------------------------------------------------


def test_a_storm_of_interrupts_loses_and_doubles_nothing(path: Path) -> None:
    """D3: SIGINT at random moments; each append is looked up and repeated only where it is not recorded."""
    moment = random.Random(9)
    with playing("interrupted", path) as child:
        child.hears("open")
        for _ in range(60):
            time.sleep(moment.uniform(0.004, 0.02))
            child.process.send_signal(signal.SIGINT)
        path.with_name("lab.duckdb.enough").touch()
        heard = child.hears("appended")
        assert child.process.wait(timeout=30) == 0
    _, appended, _, interrupts = heard[-1]
    assert int(interrupts) > 20
    assert whole(path) == [f"i-{number}" for number in range(int(appended))]


# --- fork -----------------------------------------------------------------------------------------------


def test_a_forked_child_is_refused_and_does_its_parent_no_harm(path: Path) -> None:
    """D4, B3: whatever a child tries and however it ends, the parent's appends, lock and index stay whole."""
    with playing("fork_and_use", path) as child:
        heard = child.hears("ready")
        with pytest.raises(LedgerInUseError):
            DuckDBLedger(path)
        assert child.process.stdin is not None
        child.process.stdin.close()  # upon which it kills itself
        child.process.wait(timeout=30)
    refused = [words[1:] for words in heard if words[0] == "refused"]
    assert not [words for words in heard if words[0] == "used"]
    assert len(refused) == 4 * 6
    for _, use, kind, *sentence in refused:
        if use == "open":
            assert kind == "LedgerInUseError"
        else:
            assert kind == "LedgerClosedError"
            assert " ".join(sentence).startswith("The ledger belongs to the parent of this forked process;")
    acknowledged = [word.split("=")[1] for words in heard if words[0] == "acknowledged" for word in words[1:]]
    assert [words[1] for words in heard if words[0] == "counted"] == ["4", "6", "8", "10"]
    assert whole(path) == acknowledged
    assert len(acknowledged) == 10


def test_a_child_that_lives_on_does_not_keep_its_dead_parents_lock(path: Path) -> None:
    """G2, B3: the parent is killed, its child lives: writing is free; the child ends without harm."""
    with playing("fork_and_die", path) as child:
        heard = child.hears("child")
        child.process.wait(timeout=30)
        orphan = int(heard[-1][1])
        os.kill(orphan, 0)
        with DuckDBLedger(path) as ledger:
            assert [event.event_id for event in ledger.read_all()] == [
                "parents.1", "parents.2", "parents.3", "unflushed.1"
            ]  # fmt: skip
            ledger.append(draft("while the child lives"))
            ledger.sql("SELECT 1")
            assert child.process.stdin is not None
            child.process.stdin.close()
            assert child.hears("nothing more")[-1] == ["child", "ends"]
            while _is_alive(orphan):
                time.sleep(0.01)
            ledger.append(draft("after the child"))
            assert ledger.sql("SELECT count(*) FROM events").rows == ((6,),)
    assert whole(path)[-2:] == ["while the child lives", "after the child"]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


# --- a full disk ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of four megabytes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a file system can be mounted by root alone")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this system mounts no tmpfs here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk: Path, *, leaving: int) -> Path:
    """Fill a disk up to some bytes with a file, to be removed again."""
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - leaving)))
    return filler


def append_until_full(ledger: DuckDBLedger, name: str, *, size: int) -> list[str]:
    """Append until there is no space, which must be said; give the ids that were acknowledged before."""
    kept: list[str] = []

    def append_on() -> None:
        for number in range(500):
            kept.extend(event.event_id for event in ledger.append(draft(f"{name}{number}", x="y" * size)))

    with pytest.raises(LedgerFullError) as refused:
        append_on()
    assert refused.value.definite
    assert str(refused.value).endswith("nothing of this append was kept. Free some space and append again.")
    return kept


def test_a_full_disk_at_the_journal_keeps_what_was_acknowledged(small_disk: Path) -> None:
    """J2: with no space an append is refused and leaves nothing; with space again the same ledger goes on."""
    path = small_disk / "lab.duckdb"
    ledger = DuckDBLedger(path)
    kept = [event.event_id for event in ledger.append(draft("first"), draft("second"))]
    ledger.sql("SELECT 1")
    for name, room in (("a", 150_000), ("b", 9_000)):
        filler = fill(small_disk, leaving=room)
        kept += append_until_full(ledger, name, size=5_000)
        assert append_until_full(ledger, f"large {name}", size=100_000) == []
        assert [event.event_id for event in ledger.read_all()] == kept
        filler.unlink()
        kept += [event.event_id for event in ledger.append(draft(f"after {name}", x="y" * 100_000))]
    assert ledger.sql("SELECT count(*) FROM events").rows == ((len(kept),),)
    ledger.close()
    assert whole(path) == kept
    assert not list(small_disk.glob("*.aside*"))


@pytest.mark.parametrize("closed", ["before there is space", "after"])
def test_a_full_disk_at_the_index_loses_nothing(small_disk: Path, closed: str) -> None:
    """D5: with no space for the index SQL says so; with space again it answers, closed meanwhile or not."""
    path = small_disk / "lab.duckdb"
    ledger = DuckDBLedger(path)
    kept = [event.event_id for event in ledger.append(*(draft(f"a{n}", x="y" * 500) for n in range(200)))]
    filler = fill(small_disk, leaving=40_000)
    for _ in range(2):
        with pytest.raises(LedgerFullError, match="no space left for the index; the journal is whole"):
            ledger.sql("SELECT 1")
    kept += append_until_full(ledger, "b", size=1)  # DuckDB may have taken the last of the space
    assert [event.event_id for event in ledger.read_all()] == kept
    assert ledger.find("1") == tuple(event for event in ledger.read_all() if event.idempotency_key == "1")
    if closed == "before there is space":
        ledger.close()
        with pytest.raises(LedgerFullError) as refused:
            DuckDBLedger(path)
        assert str(small_disk) not in str(refused.value)
        filler.unlink()
    else:
        filler.unlink()
        assert ledger.sql("SELECT count(*) FROM events").rows == ((len(kept),),)
        ledger.close()
    assert whole(path) == kept
    assert not list(small_disk.glob("*.aside*"))


def test_on_a_full_disk_nothing_is_begun(small_disk: Path) -> None:
    """O3: a new ledger, a rebuild and a repair that find no space are refused, and leave what was there."""
    path = small_disk / "lab.duckdb"
    with DuckDBLedger(path) as ledger:
        kept = [event.event_id for event in ledger.append(*(draft(f"e{n}", x="y" * 900) for n in range(300)))]
    lines = ledger.journal.read_bytes()
    path.unlink()
    filler = fill(small_disk, leaving=20_000)
    for _ in range(2):
        with pytest.raises(LedgerFullError):
            DuckDBLedger(path)
    filler.unlink()
    filler = fill(small_disk, leaving=0)
    with pytest.raises(LedgerFullError):
        DuckDBLedger(small_disk / "new.duckdb")
    filler.unlink()
    assert ledger.journal.read_bytes() == lines
    assert {file.name for file in small_disk.iterdir() if file.suffix != ".lock"} == {ledger.journal.name}
    assert whole(path) == kept
    assert whole(small_disk / "new.duckdb") == []
