"""The laws of the ledger under real kills: what was acknowledged is there, and the ledger opens."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codeai_lab.store.chain import End, read_batches
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.restore import check

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILD = Path(__file__).with_name("ledger_child.py")


class Template:
    """A warm process that has opened nothing; it forks the children that are killed here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path.with_name(f"{path.name}.journal.jsonl")
        self._ears, mouth = os.pipe()
        os.set_blocking(self._ears, False)
        self._process = subprocess.Popen(
            [sys.executable, CHILD, "template", path, str(mouth)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[mouth], text=True,
        )  # fmt: skip
        os.close(mouth)
        self._end: End | None = None
        self._ids: dict[int, str] = {}
        self.acknowledged: dict[int, str] = {}
        self.in_doubt = self.openings = self.repairs = 0

    def kill_one(self, kind: str, name: str, moment: random.Random) -> None:
        """Fork a child, kill it at a random moment, and check that nothing it acknowledged is lost."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {name}\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if moment.random() < 0.75:
            select.select([self._ears], [], [], 30)  # it is open, or just acknowledged something
        time.sleep(moment.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        assert self._process.stdout.readline() == "gone\n"
        self._compare(self._heard())

    def _heard(self) -> list[list[str]]:
        heard = b""
        while True:
            try:
                heard += os.read(self._ears, 1 << 16)
            except BlockingIOError:
                return [line.split() for line in heard.decode().splitlines()]

    def _compare(self, heard: list[list[str]]) -> None:
        told: dict[int, str] = {}
        for word, *rest in heard:
            assert word in ("open", "acknowledged"), (word, rest)
            if word == "open":
                self.openings += 1
                self.repairs += int(rest[0])
            else:
                told |= {int(seq): event_id for seq, event_id in (each.split("=") for each in rest)}
        found = dict(self._new_in_the_journal())
        assert told.items() <= found.items()
        self.in_doubt += len(found) - len(told)
        self._ids |= found
        self.acknowledged |= told

    def _new_in_the_journal(self) -> Iterator[tuple[int, str]]:
        if not self.journal.exists():
            return
        for end, batch in read_batches(self.journal, after=self._end):
            self._end = end
            yield from ((line.event.seq, line.event.event_id) for _, line in batch)

    def __repr__(self) -> str:
        return (
            f"{self.openings} openings, {len(self.acknowledged)} acknowledged, {self.in_doubt} in doubt, "
            f"{self.repairs} repairs"
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=30) == 0
        os.close(self._ears)

    def check_in_the_end(self) -> None:
        """Open the ledger: every acknowledged event once, in journal, memory and index."""
        with DuckDBLedger(self.path) as ledger:
            events = list(ledger.read_all())
            assert {event.seq: event.event_id for event in events} == self._ids
            assert self.acknowledged.items() <= self._ids.items()
            assert len({event.event_id for event in events}) == len(events)
            asked = ledger.sql("SELECT count(*), count(DISTINCT event_id), max(seq) FROM events").rows
            assert asked == ((len(events), len(events), len(events)),)
            assert [event.seq for event in ledger.find("1")] == [
                e.seq for e in events if e.event_id.endswith("1")
            ]
        assert check(self.path).events == len(events)


@contextmanager
def a_template(path: Path) -> Iterator[Template]:
    template = Template(path)
    try:
        yield template
    finally:
        template.close()


def test_two_hundred_kills_of_an_appending_child_lose_nothing(tmp_path: Path) -> None:
    """kill -9 at random moments of opening, appending and flushing: nothing is lost, and it opens."""
    moment = random.Random(22)
    acknowledged = openings = 0
    for part in range(4):  # a ledger for each fifty, so that opening it stays quick
        with a_template(tmp_path / f"{part}.duckdb") as template:
            for number in range(50):
                template.kill_one(moment.choice(["appending", "flushing"]), str(number), moment)
            template.check_in_the_end()
        acknowledged += len(template.acknowledged)
        openings += template.openings
    assert acknowledged > 500
    assert openings > 100


def test_kills_while_the_ledger_is_closed_and_opened_lose_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle of closing, which writes DuckDB's checkpoint, and of opening again: the same."""
    moment = random.Random(4)
    with a_template(tmp_path / "lab.duckdb") as template:
        for number in range(60):
            template.kill_one("closing", str(number), moment)
        template.check_in_the_end()
    assert template.openings > 30
