"""What does a fresh action cost, and what a replay?

Chapter: 004, "What CodeAI does".

Idea: an action under `lab` makes two appends, each durable when it returns. Nothing that promises as much can
be much cheaper than two flushed writes of the same bytes, one look-up whether the key is known, and the
canonical form of what is written; that sum is the floor. The ceiling is the same two facts as two durable
inserts into DuckDB.

    fresh      a key that nobody used; in a new ledger, and in one that had 1,000 events when it was opened
    replay     a request whose key was decided since opening, in both

Always true:
  A1. The adapter does nothing and the precondition holds, so that the protocol alone is measured.
  A2. The floor writes the very lines that such an action wrote, as many in each write.

Not here: replays of keys that are older than the opening (`old_keys`), DBOS itself (`dbos_worker`, which
`peer` talks to).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import rfc8785

from benchmarks.peer import Peer
from benchmarks.plain_table import PlainTable, as_object, row_of
from benchmarks.rounds import PlainFile, Row, Timed, Times, judged, side_by_side
from benchmarks.scratch import act, request, small_ledger
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger

SMALL_ACTIONS = 250  # of four events each
SLOW_ENOUGH_US = 100
FRESH = ("fresh action, new ledger", "fresh action, reopened ledger")
REPLAY = (
    "replay of a key seen since opening, new ledger",
    "replay of a key seen since opening, reopened ledger",
)


def fresh_and_replay(scratch: Path, *, rounds: int, peer: Peer | None) -> list[Row]:
    """Measure fresh actions and replays against the floor, the ceiling and DBOS."""
    with ExitStack() as stack:
        bench = _Bench(scratch, stack)
        floor = bench.measure(
            ["bare write", "one write", "two writes", "look-up", "rfc8785", *FRESH, *REPLAY], rounds=rounds
        )
        ceiling = bench.measure(["two inserts", "look-up", *FRESH], rounds=rounds)
        if peer is not None:
            bench.variants["DBOS"] = lambda: peer.run
            against_dbos = bench.measure(["DBOS", *FRESH], rounds=rounds)
    bare_us = floor.of("bare write").median * 1e6
    quick = (
        "" if bare_us >= SLOW_ENOUGH_US else f"a bare write takes {bare_us:.0f} us, under {SLOW_ENOUGH_US}"
    )
    rows = [_anchor(floor)]
    for fresh in FRESH:
        ratio = floor.ratio(fresh, "two writes", "look-up", "rfc8785")
        name = f"{fresh} / (two flushed writes + look-up + rfc8785)"
        rows.append(judged(name, ratio, at_most=1.5, unjudged=quick))
    for fresh in FRESH:
        ratio = ceiling.ratio(fresh, "two inserts", "look-up")
        name = f"{fresh} / (two durable DuckDB inserts + look-up)"
        rows.append(judged(name, ratio, at_most=0.6, unjudged=quick))
    for fresh in FRESH if peer is not None else ():
        ratio = against_dbos.ratio("DBOS", fresh)
        name = f"DBOS workflow of one step on SQLite / {fresh}"
        rows.append(judged(name, ratio, at_least=3, unjudged=quick))
    for replay in REPLAY:
        ratio = floor.ratio(replay, "one write")
        rows.append(judged(f"{replay} / one flushed write", ratio, at_most=3, unjudged=quick))
    measured = [floor, ceiling, *([against_dbos] if peer is not None else [])]
    return rows + [_medians(times) for times in measured]


class _Bench:
    """Everything that is compared, made ready; what is not being compared does not take a turn."""

    def __init__(self, scratch: Path, stack: ExitStack) -> None:
        reopened_path = small_ledger(scratch / "reopened", actions=SMALL_ACTIONS)
        journal = reopened_path.with_name(f"{reopened_path.name}.journal.jsonl")
        self._lines = journal.read_bytes().splitlines()[-4:]
        self._turn = itertools.count()
        self._table = PlainTable(scratch / "plain.duckdb")
        stack.callback(self._table.close)
        self._table.fill(journal)
        self._table.use_one_thread()
        file = PlainFile(scratch / "plain.jsonl")
        stack.callback(file.close)
        first, second = b"\n".join(self._lines[:3]) + b"\n", self._lines[3] + b"\n"
        replayed = b"\n".join(_lines_of_a_replay(scratch)) + b"\n"
        objects = [as_object(line) for line in self._lines]
        self.variants: dict[str, Callable[[], Timed]] = {
            "bare write": lambda: partial(file.append, first),
            "one write": lambda: partial(file.append, replayed),
            "two writes": lambda: partial(file.append, first, second),
            "look-up": lambda: partial(self._table.look_up, f"unknown-{next(self._turn)}"),
            "rfc8785": lambda: lambda: [rfc8785.dumps(value) for value in objects],
            "two inserts": self._two_inserts,
        }
        paths = (scratch / "new.duckdb", reopened_path)
        for path, fresh, replay in zip(paths, FRESH, REPLAY, strict=True):
            ledger = DuckDBLedger(path)
            stack.callback(ledger.close)
            runtime = Runtime(ledger)
            self.variants[fresh] = _fresh(runtime).__next__
            self.variants[replay] = _replays(runtime).__next__

    def measure(self, names: list[str], *, rounds: int) -> Times:
        return side_by_side({name: self.variants[name] for name in names}, rounds=rounds, warm_up=20)

    def _two_inserts(self) -> Timed:
        rows = [row_of(self._lines[0]), row_of(self._lines[3])]
        for row in rows:
            number = next(self._turn)
            row[0], row[1], row[3], row[6] = 10_000 + number, f"e-{number}", f"s-{number}", f"k-{number}"
        return partial(self._table.insert, *rows)


def _anchor(times: Times) -> Row:
    bare = times.of("bare write")
    remark = f"{bare.median * 1e6:.0f} us (p10 {bare.p10 * 1e6:.0f}, p90 {bare.p90 * 1e6:.0f})"
    return Row(name="anchor: one write of 2 KB and fdatasync", ratio=None, remark=remark)


def _medians(times: Times) -> Row:
    figures = "; ".join(f"{name} {times.of(name).median * 1e6:.0f}" for name in times.names)
    return Row(name="  medians in us", ratio=None, remark=figures)


def _fresh(runtime: Runtime) -> Iterator[Timed]:
    for turn in itertools.count():
        asked = request(turn, key=f"fresh-key-{turn}", name=f"fresh-{turn}")
        yield partial(act, runtime, asked)


def _replays(runtime: Runtime) -> Iterator[Timed]:
    """Replay one key again and again, as somebody does who runs a cell many times."""
    act(runtime, request(0, key="replayed-key", name="replayed"))
    for turn in itertools.count():
        asked = request(0, key="replayed-key", name=f"replay-{turn}")
        yield partial(act, runtime, asked)


def _lines_of_a_replay(scratch: Path) -> list[bytes]:
    path = scratch / "sample.duckdb"
    with DuckDBLedger(path) as ledger:
        runtime = Runtime(ledger)
        replays = _replays(runtime)
        next(replays)()
        return ledger.journal.read_bytes().splitlines()[-2:]
