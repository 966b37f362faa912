"""For which load, and after how long a stop, does an overload feed itself?

Chapter: 000, section 15.7: layered retry amplification.

Idea: time in slots of ten milliseconds. What comes in a slot are first tries and the retries of what was late
one timeout ago; whether a slot is late follows from the queue that it finds. Many systems go forward
together, as the columns of one array: as a fluid for the map of loads and stops, with Poisson first tries for
replicas of one system.

Always true:
  SO1. A map says how long it looked: what is still failing there may recover later, unless its load times
       1 + R is above the capacity.
  SO2. A column is taken out only when its fate is sealed: late for longer than all its retries take, at a
       load that cannot be served; or quiet for as long, at one that can.
  SO3. The same seed gives the same replicas, and a map has no chance in it.

Not here: single runs, budgets, backoff, closed systems (`explore.overload`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream

SLOT_S = 0.01
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDiagram:
    """Which systems still fail at the horizon.

    Args:
        failing: True where attempts are late at the horizon, shape (loads, triggers).
        horizon_s: how long it was looked, from the beginning of the stop.
    """

    loads: tuple[float, ...]
    triggers_s: tuple[float, ...]
    failing: NDArray[np.bool_]
    horizon_s: float


def phase_diagram(
    loads: Sequence[float],
    triggers_s: Sequence[float],
    *,
    retries: int = 1,
    horizon_s: float = 2_000.0,
    capacity: float = 300.0,
    timeout_s: float = 1.0,
) -> PhaseDiagram:
    """Follow the fluid of every load through every stop.

    Raises: RefusedRequestError (definite) for times that are no whole number of slots of 10 ms, and numbers
        that are none from 0.
    """
    stops = np.array([_slots(trigger) for trigger in triggers_s])
    if not len(loads) or not len(stops) or min(loads) < 0 or type(retries) is not int or retries < 0:
        raise RefusedRequestError("A map needs loads, stops and retries, all of them from 0.")
    columns = np.arange(len(loads) * len(stops))
    rate = np.repeat(np.asarray(loads, float), len(stops))
    ends = np.tile(stops, len(loads))
    slots = _Slots(np.zeros_like(ends), ends, retries=retries, capacity=capacity, timeout_s=timeout_s)
    failing = np.zeros(len(columns), bool)
    late_for, quiet_for = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.int64)
    for slot in range(_slots(horizon_s)):
        late = slots.step(slot, rate * SLOT_S)
        late_for, quiet_for = (late_for + 1) * late, (quiet_for + 1) * ~late
        if slot % slots.timeout:
            continue
        decided = slots.timeout * (retries + 1)
        lost = (late_for > decided) & (rate * (1 + retries) >= capacity) & (slot >= ends)
        saved = (quiet_for > decided) & (rate <= capacity) & (slot >= ends)
        failing[columns[lost]] = True
        open_ones = np.flatnonzero(~(lost | saved))
        columns, rate, ends = columns[open_ones], rate[open_ones], ends[open_ones]
        late_for, quiet_for = late_for[open_ones], quiet_for[open_ones]
        slots.keep(open_ones)
        if not columns.size:
            break
    failing[columns] = late_for > 0
    return PhaseDiagram(
        loads=tuple(loads),
        triggers_s=tuple(triggers_s),
        failing=failing.reshape(len(loads), len(stops)),
        horizon_s=horizon_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """Attempts, and answers in time, a second in the last part of every run; shape (runs,)."""

    load: Floats
    goodput: Floats


def replicas(
    first_tries: float,
    *,
    runs: int,
    seed: int,
    retries: int = 1,
    trigger_at_s: float = 20.0,
    trigger_s: float = 10.0,
    horizon_s: float = 400.0,
    measured_s: float = 60.0,
    capacity: float = 300.0,
    timeout_s: float = 1.0,
) -> Replicas:
    """Run one open system many times over, and measure the last `measured_s` seconds.

    Raises: RefusedRequestError (definite) for times that are no whole number of slots of 10 ms.
    """
    dice = stream(seed, "replicas", first_tries, retries, trigger_s)
    begins = np.full(runs, _slots(trigger_at_s))
    slots = _Slots(
        begins, begins + _slots(trigger_s), retries=retries, capacity=capacity, timeout_s=timeout_s
    )
    load, goodput = np.zeros(runs), np.zeros(runs)
    last = _slots(horizon_s)
    for slot in range(last):
        late = slots.step(slot, dice.poisson(first_tries * SLOT_S, runs).astype(float))
        if slot >= last - _slots(measured_s):
            load += slots.came
            goodput += slots.came * ~late
    return Replicas(load=load / measured_s, goodput=goodput / measured_s)


class _Slots:
    """The queues of many systems, and what of their attempts was late within the last timeout."""

    def __init__(self, begins: Ints, ends: Ints, *, retries: int, capacity: float, timeout_s: float) -> None:
        self._begins, self._ends = begins, ends
        self._served = capacity * SLOT_S
        self.timeout = _slots(timeout_s)
        self._all_stops_end = int(ends.max())
        self._queue = np.zeros(len(ends))
        self._late = np.zeros((retries, self.timeout, len(ends)))  # by try, slot within a timeout, system
        self.came = self._queue

    def step(self, slot: int, first_tries: Floats) -> NDArray[np.bool_]:
        """Go one slot on, and say in which systems what comes in it is late."""
        place = slot % self.timeout
        due = self._late[:, place]
        self.came = came = first_tries + due.sum(axis=0)
        wait = (self._queue + came / 2) / self._served  # in slots
        if slot < self._all_stops_end:
            stopped = (self._begins <= slot) & (slot < self._ends)
            wait += np.where(stopped, self._ends - slot, 0)
            served = np.where(stopped, 0.0, self._served)
            self._queue = np.maximum(self._queue + came - served, 0.0)
        else:
            self._queue = np.maximum(self._queue + came - self._served, 0.0)
        late: NDArray[np.bool_] = wait > self.timeout
        if len(due):
            due[1:] = due[:-1] * late
            due[0] = first_tries * late
        return late

    def keep(self, columns: Ints) -> None:
        """Go on with these systems only."""
        self._begins, self._ends = self._begins[columns], self._ends[columns]
        self._queue, self._late = self._queue[columns], self._late[:, :, columns]


def _slots(seconds: float) -> int:
    count = round(seconds / SLOT_S)
    if count < 0 or abs(count * SLOT_S - seconds) > 1e-9:
        raise RefusedRequestError("Times are whole numbers of slots of 10 ms, from 0.")
    return count
