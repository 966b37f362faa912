"""What if two threads ask for the same effect at the same moment?

Chapter: 004, "Two threads, one key, two effects": barrier-synchronised, the race window held open.

Idea: real threads, the ordinary stages, and two places where they wait for one another: after the look-up,
and inside the window, right before the effect. Where nothing is claimed all come into the window, and all
act. Where the key is claimed one comes, and the others never will; so nobody waits for those whose walk is
over, and for the rest only so long.

    a   look_up .. looked .................. window -> effect -> record     historical: both come, two effects
    b   look_up .. looked .................. window -> effect -> record     lab: one comes, one effect

Always true:
  PB1. A wait ends when all have come or are over, and at the latest when its time has passed.
  PB2. That somebody never came is no failure: it is noted on the row.
  PB3. What a thread is told reaches its own caller; no thread ends the play.

Not here: all schedules of two threads, enumerated without any thread (`explore`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.lessons.cases import PERMITTED, Ask, Case
from codeai_lab.lessons.playing import FROZEN_AT_US, Table, request_of
from codeai_lab.lessons.rows import row_of
from codeai_lab.records import ActionResult
from codeai_lab.run.effects import LineAdapter, MarkerWorld
from codeai_lab.run.revisions import LAB, Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader

LONGEST_WAIT_S = 20.0
_T = TypeVar("_T")


class Meeting:
    """A place where threads wait for one another, and which nobody can keep the others in.

    Args:
        parties: how many may come.
        at_most_s: how long the first ones wait for the rest.
    """

    def __init__(self, parties: int, *, at_most_s: float) -> None:
        self.came: list[str] = []
        self._over: set[str] = set()
        self._parties = parties
        self._at_most_s = at_most_s
        self._changed = threading.Condition()

    def come(self, name: str) -> bool:
        """Wait here for the others (PB1); say whether all of them came."""
        with self._changed:
            self.came.append(name)
            self._changed.notify_all()
            self._changed.wait_for(self._nobody_else_will, timeout=self._at_most_s)
            return len(self.came) == self._parties

    def is_over(self, name: str) -> None:
        """Let the others wait no longer for this one; harmless for one that came."""
        with self._changed:
            self._over.add(name)
            self._changed.notify_all()

    def _nobody_else_will(self) -> bool:
        return len(self._over.union(self.came)) == self._parties


def probe(table: Table, case: Case) -> None:
    """Race the requests of each key, a thread for each, one key after the other: the case's script."""
    asks = [ask for ask in case.asks if isinstance(ask, Ask)]
    for key in dict.fromkeys(ask.key for ask in asks):
        race(table, [ask for ask in asks if ask.key == key])


def race(
    table: Table, asks: Sequence[Ask], *, at_most_s: float = LONGEST_WAIT_S
) -> tuple[ActionResult | None, ...]:
    """Submit asks at the same moment, each in a thread of its own, and hold the window open.

    Returns: what each was told, in the order of the asks; None where an exception reached the caller, which
        the table remembers.
    """
    looked, window = (Meeting(len(asks), at_most_s=at_most_s) for _ in range(2))

    def submit(ask: Ask) -> ActionResult | None:
        told = None
        try:
            with table.hearing(ask):
                walk = table.walk(ask, before=lambda: window.come(ask.id))
                while not walk.is_over and walk.facts.seen is None:
                    walk.step()
                looked.come(ask.id)
                told = walk.run()
        finally:
            looked.is_over(ask.id)
            window.is_over(ask.id)
        return told

    told = _at_once(submit, asks)
    note = f"{asks[0].key}: {len(window.came)} of {len(asks)} threads came into the window before the effect"
    table.notes.append(note if len(window.came) == len(asks) else f"{note}, the rest never arrived")
    return told


def open_together(
    folder: Path, asks: Sequence[Ask], revision: Revision = LAB, *, at_most_s: float = LONGEST_WAIT_S
) -> dict[str, Any]:
    """Let threads open one new ledger file at the same moment, each for itself, and ask: the earlier variant.

    Args:
        folder: where ledger and world are made; must be there.

    Returns: a row; a thread that failed stands in its notes, and under `raised` if its request was recorded.

    Raises: LedgerError when not one thread could open it.
    """
    path, world = folder / "lab.duckdb", MarkerWorld(folder / "world")
    gate = Meeting(len(asks), at_most_s=at_most_s)
    adapters = {ask.id: LineAdapter(world) for ask in asks}
    clock = ManualClock(start_us=FROZEN_AT_US)
    failed: dict[str, str] = {}

    def submit(ask: Ask) -> None:
        gate.come(ask.id)
        try:
            with DuckDBLedger(path, ledger_id="opened-together", clock=clock) as ledger:
                runtime = Runtime(
                    ledger, rules=revision, clock=clock, new_id=counted_ids(ask.id), run_id="opened-together"
                )
                runtime.execute_action(
                    request_of(ask), authority=Authority.of(PERMITTED), adapter=adapters[ask.id]
                )
        except Exception as error:
            failed[ask.id] = type(error).__name__

    _at_once(submit, asks)
    row = row_of(
        tuple(LedgerReader(path).read_all()),
        world.receipts(),
        summary=sum(adapter.effects for adapter in adapters.values()),
        case="opened-together",
        revision=revision.name,
        raised=failed,
    )
    row["notes"] += [f"{name} ended in {error}" for name, error in sorted(failed.items())]
    return row


def _at_once(work: Callable[[Ask], _T], asks: Sequence[Ask]) -> tuple[_T, ...]:
    with ThreadPoolExecutor(len(asks)) as threads:
        return tuple(threads.map(work, asks))
