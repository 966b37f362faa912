"""What does a run of contending clients cost, against the plainest simulator of the same study?

Chapter: 000, section 15.7, and the study that it cites.

Idea: the reference is what one writes first: an event queue, four messages an attempt, a client that reads,
writes and backs off, one run after another. It is written here for this comparison, and both must come to the
same calls before anything is timed.

Always true:
  CB1. Both sides simulate the same cells: 10 to 100 clients, five strategies, as many runs of each.
  CB2. Calls that differ by more than five standard errors are no measurement, and end it here.

Not here: processes; one stands against one.
"""

from __future__ import annotations

import heapq
import math
import random

from benchmarks.rounds import Row, Timed, judged, side_by_side
from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.samples import Sample
from codeai_lab.explore.contention import (
    BASE_MS,
    CAP_MS,
    MESSAGE_MS,
    MESSAGE_SD_MS,
    STUDIED,
    contend,
)

CLIENTS = (10, 20, 50, 100)
MANY, FEW = 100, 4  # runs of a cell in arrays, and of the reference, which takes the same time for each
SEED = 22
AT_LEAST = 4.0


def contention(*, rounds: int) -> list[Row]:
    """Measure all cells up to 100 clients, a hundred runs of each."""
    _require_the_same()

    def in_arrays() -> Timed:
        return lambda: [contend(s, clients=n, runs=MANY, seed=SEED) for n in CLIENTS for s in STUDIED]

    def by_messages() -> Timed:
        return lambda: [four_messages(s, n, FEW, SEED) for n in CLIENTS for s in STUDIED]

    times = side_by_side({"arrays": in_arrays, "messages": by_messages}, rounds=rounds)
    scaled = times.ratio("messages", "arrays").times(MANY / FEW)
    seconds = {name: times.of(name).median for name in times.names}
    return [
        judged(
            "contention up to 100 clients, 5 x 100 runs: four messages an attempt / arrays",
            scaled,
            at_least=AT_LEAST,
            remark=f"{seconds['arrays']:.2f} s; the reference {seconds['messages'] * MANY / FEW:.1f} s",
        )
    ]


def four_messages(strategy: Strategy, clients: int, runs: int, seed: int) -> list[tuple[int, float]]:
    """Simulate runs one after another, message by message; give calls and milliseconds of each."""
    dice = random.Random(f"{seed} {strategy} {clients}")
    return [_run(strategy, clients, dice) for _ in range(runs)]


def _run(strategy: Strategy, clients: int, dice: random.Random) -> tuple[int, float]:
    rule = Backoff(strategy=strategy, base=BASE_MS, cap=CAP_MS)
    queue: list[tuple[float, int, str, int, int]] = []  # when, a number against ties, what, whose, version
    version = calls = number = 0
    failures, delays = [0] * clients, [BASE_MS] * clients
    now = 0.0

    def send(what: str, client: int, carried: int, after: float = 0.0) -> None:
        nonlocal number
        number += 1
        delay = abs(dice.gauss(MESSAGE_MS, MESSAGE_SD_MS))
        heapq.heappush(queue, (now + after + delay, number, what, client, carried))

    for client in range(clients):
        send("read", client, 0)
    while queue:
        now, _, what, client, carried = heapq.heappop(queue)
        if what == "read":
            send("read reply", client, version)
        elif what == "read reply":
            send("write", client, carried)
        elif what == "write":
            calls += 1
            succeeded = carried == version
            version += succeeded
            send("write reply", client, int(succeeded))
        elif not carried:
            failures[client] += 1
            delays[client] = rule.delay(failures[client] + 1, dice.random(), delays[client])
            send("read", client, 0, after=delays[client])
    return calls, now


def _require_the_same() -> None:
    """Hold the two against each other before they are timed."""
    for strategy in STUDIED:
        arrays = Sample.of(contend(strategy, clients=20, runs=MANY, seed=SEED).calls.tolist())
        plain = Sample.of([calls for calls, _ in four_messages(strategy, 20, 20, SEED)])
        far = abs(arrays.mean - plain.mean)
        near = 5 * math.hypot(arrays.se or 0, plain.se or 0)
        assert far <= near, f"{strategy}: the calls are {far:g} apart"
