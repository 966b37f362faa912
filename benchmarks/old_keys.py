"""Does a replay cost more when there is much to look through?

Chapter: 004, "Do this now", step 1: reopen and confirm it again.

Idea: the same replay in a large ledger and in a small one, of keys that were decided before the ledger was
opened, so that the index has to find them. Both ledgers are made the same way, with as many events to a key.

Always true:
  O1. Each key is replayed once after an opening: the second time it would be found in memory.
  O2. The first action after an opening is not timed; it reads which names there are.

Not here: replays of keys that were seen since opening (`acting`).
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.rounds import Row, Timed, judged, side_by_side
from benchmarks.scratch import Made, act, ledger_of, make, request
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger

FEW = 1_000


def old_keys(scratch: Path, large: Made, *, rounds: int) -> list[Row]:
    """Replay old keys in a large ledger and in one of 1,000 events."""
    small = make(scratch / "few", events=FEW)
    replayers = {"large": _Replayer(scratch / "large", large), "small": _Replayer(scratch / "small", small)}
    try:
        times = side_by_side({name: one.prepare for name, one in replayers.items()}, rounds=rounds, warm_up=5)
    finally:
        for one in replayers.values():
            one.close()
    name = f"replay of an old key, ledger of {large.events:,} events / of {small.events:,}"
    remark = f"{times.of('large').median * 1e6:.0f} us / {times.of('small').median * 1e6:.0f} us"
    return [judged(name, times.ratio("large", "small"), at_most=2, remark=remark)]


class _Replayer:
    """Replays the keys of a made ledger one after the other; when all were used, it opens a fresh copy."""

    def __init__(self, folder: Path, made: Made) -> None:
        self._made = made
        first = {asked.idempotency_key: asked for case in made.cases for asked in reversed(case.asked)}
        self._requests = list(first.values())
        random.Random(22).shuffle(self._requests)
        self._turn = itertools.count()
        self._copies = (folder / f"copy-{number}" for number in itertools.count())
        self._ledger: DuckDBLedger | None = None

    def prepare(self) -> Timed:
        turn = next(self._turn)
        place = turn % len(self._requests)
        if place == 0:
            self.close()
            self._ledger = DuckDBLedger(ledger_of(self._made, next(self._copies)))
            self._runtime = Runtime(self._ledger)
            act(self._runtime, request(0, key=f"new-key-{turn}", name=f"new-{turn}"))
        return partial(act, self._runtime, replace(self._requests[place], action_id=f"replay-{turn}"))

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
