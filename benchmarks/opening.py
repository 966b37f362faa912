"""What does it cost to open a large ledger?

Chapter: 004, "Do this now", step 1: reopen and confirm it again.

Idea: an ordinary opening reads the end of the journal and the mark of the index, whatever lies before.
Without an index every line is checked and the index made anew; the plainest program that does as much reads
the journal into a table with the same indexes, and takes SHA-256 and `json.loads` of each line.

Always true: an opening is timed in a process that has opened a ledger before, so that loading DuckDB is not
counted.

Not here: what appending costs (`acting`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path

from benchmarks.plain_table import PlainTable
from benchmarks.rounds import Row, Timed, judged, side_by_side
from benchmarks.scratch import Made, ledger_of
from codeai_lab.store.ledger import DuckDBLedger


def intact(scratch: Path, made: Made, *, rounds: int) -> list[Row]:
    """Open a large ledger whose index is there, and an empty one."""
    empty = scratch / "empty.duckdb"
    DuckDBLedger(empty).close()
    large = ledger_of(made, scratch / "intact")
    opened: list[DuckDBLedger] = []

    def opening(path: Path) -> Timed:
        while opened:
            opened.pop().close()
        return lambda: opened.append(DuckDBLedger(path))

    variants = {"empty": lambda: opening(empty), "large": lambda: opening(large)}
    times = side_by_side(variants, rounds=rounds, warm_up=2)
    opened.pop().close()
    remark = f"{times.of('large').median * 1e3:.1f} ms / {times.of('empty').median * 1e3:.1f} ms"
    name = f"open a ledger of {made.events:,} events, index intact / open an empty one"
    return [judged(name, times.ratio("large", "empty"), at_most=10, remark=remark)]


def missing(scratch: Path, made: Made, *, rounds: int) -> list[Row]:
    """Open a large ledger whose index is missing, and do the same work plainly."""
    large = ledger_of(made, scratch / "missing", indexed=False)
    turn = itertools.count()
    opened: list[DuckDBLedger | PlainTable] = []

    def clear() -> None:
        while opened:
            opened.pop().close()

    def rebuilding() -> Timed:
        clear()
        large.unlink(missing_ok=True)
        return lambda: opened.append(DuckDBLedger(large))

    def plainly() -> Timed:
        clear()
        table = PlainTable(scratch / f"plain-{next(turn)}.duckdb")
        opened.append(table)

        def run() -> None:
            table.fill(made.journal)
            with made.journal.open("rb") as file:
                for line in file:
                    hashlib.sha256(line[:-1]).hexdigest()
                    json.loads(line)

        return run

    times = side_by_side({"missing": rebuilding, "plain": plainly}, rounds=rounds, warm_up=0)
    clear()
    remark = f"{times.of('missing').median:.1f} s / {times.of('plain').median:.1f} s"
    name = f"open a ledger of {made.events:,} events, index missing"
    name += " / (read_json into a table + sha256 + json.loads)"
    return [judged(name, times.ratio("missing", "plain"), at_most=1.5, remark=remark)]
