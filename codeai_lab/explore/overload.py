"""What happens to a server under load when its clients try again?

Chapter: 000, section 15.7: layered retry amplification.

Idea: one server takes requests in the order in which they come, each of them 1 / capacity seconds. A client
gives up on an attempt after a timeout and tries again; the server does not know that, and works on. Once, for
some seconds, the server stands still. In a queue of this kind the time of an answer is known when a request
comes, so the run is one heap of instants: attempts that come, and failures that become known.

Always true:
  OV1. An attempt is answered in time, late, dropped or turned away, or it was never sent; each is counted
       once, at the instant at which it came.
  OV2. The same system, seed and name give the same run, whatever else is run: first tries, thinking times
       and draws have a stream of their own each.
  OV3. What a budget hears, it hears in the order of time: no answer before it was given, no failure before
       its timeout has passed.
  OV4. In an open system first tries come whatever becomes of earlier ones; in a closed one a client begins a
       request only when the one before has ended.

Not here: what theory says (`decide.overload_laws`), many runs at once and the map of loads and triggers
(`explore.slotted`), the accounts that hold retries back (`explore.budgets`).
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from codeai_lab.decide.backoff import Strategy
from codeai_lab.explore.budgets import Budget
from codeai_lab.explore.dice import stream
from codeai_lab.explore.systems import Closed, Open, System

QUIET_S = 10  # so many good seconds at the end of a run, or it has not recovered
DRAWN = 4_096  # random numbers at once
NEVER, TURNED_AWAY = math.inf, -math.inf

Ints = NDArray[np.int64]
Event = tuple[float, int, int, float | None, bool]  # instant, number, failures so far, last wait, it comes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run by the second; every array has one number for each second of it.

    Args:
        load: attempts that came to the server.
        goodput: answers that a client was still waiting for.
        failed: attempts that came, or would have, and were not answered in time.
        queue: requests at the server at the end of the second.
        recovered_after_s: from `System.eased_at_s` to the end of the last bad second, in which less than half
            of what a healthy system answers was answered; None where the last ten seconds hold a bad one.
    """

    load: Ints
    goodput: Ints
    failed: Ints
    queue: Ints
    recovered_after_s: float | None


def simulate(system: System, *, seed: int, name: str) -> Trace:
    """Run a system once.

    Args:
        name: what its random streams are named after; systems with other names share no chance.

    Raises: RefusedRequestError (definite) for a seed that is none.
    """
    return _Run(system, seed, name).go()


class _Run:
    """One run under way."""

    def __init__(self, system: System, seed: int, name: str) -> None:
        dice = {what: stream(seed, "overload", name, what) for what in ("first tries", "thinking", "draws")}
        self._system = system
        self._timeout_s = system.timeout_s
        self._server = _Server(system)
        self._budget = system.budget() if system.budget is not None else None
        self._most_failures = math.inf if system.retries is None else system.retries
        self._draws = _endless(dice["draws"].random)
        rule = system.backoff
        self._span = lru_cache(maxsize=64)(rule.span) if rule is not None else None
        self._heeds_wait = rule is not None and rule.strategy is Strategy.DECORRELATED
        self._heap: list[Event] = []
        self._numbers = itertools.count()  # of two events at one instant the older comes first
        self._came: list[float] = []
        self._turned_away: list[float] = []
        self._answered: list[float] = []
        self._failed: list[float] = []
        self._not_heard: deque[float] = deque()  # answers that the budget will hear of
        demand = system.demand
        self._thinking = _endless(dice["thinking"].standard_exponential)
        self._think_s = demand.think_s if isinstance(demand, Closed) else None
        if isinstance(demand, Open):
            self._first_tries = iter(_first_tries(demand, system.horizon_s, dice["first tries"]))
            self._next_first_try()
        else:
            self._first_tries = iter(())
            for _ in range(demand.clients):
                self._thinks(0.0)
        # Where nothing follows from the last failure, nobody needs to hear of it.
        self._heeds_last = self._budget is not None or isinstance(demand, Closed)

    def go(self) -> Trace:
        heap, horizon = self._heap, self._system.horizon_s
        while heap and heap[0][0] < horizon:
            at, _, failures, wait, comes = heappop(heap)
            if self._budget is not None:
                self._tell(self._budget, at)
            if comes:
                self._comes(at, failures, wait)
            else:
                self._fails(at, failures, wait)
        return self._trace()

    def _comes(self, at: float, failures: int, wait: float | None) -> None:
        """Let an attempt come: a first try, or one that follows so many failures."""
        if not failures:
            self._next_first_try()
        if self._budget is not None and not self._is_sent(self._budget, at, failures):
            self._failed.append(at)
            self._ends(at)
            return
        self._came.append(at)
        ready = self._server.take(at)
        given_up_at = at + self._timeout_s
        if at < ready <= given_up_at:
            self._answered.append(ready)
            if self._budget is not None:
                self._not_heard.append(ready)
            self._ends(ready)
            return
        self._failed.append(at)
        if ready == TURNED_AWAY:
            self._turned_away.append(at)
            given_up_at = at
        if failures < self._most_failures or self._heeds_last:
            heappush(self._heap, (given_up_at, next(self._numbers), failures + 1, wait, False))

    def _fails(self, at: float, failures: int, wait: float | None) -> None:
        """Let a client learn that its attempt failed; it tries again, after a wait, or gives up."""
        if self._budget is not None:
            self._budget.failed(at)
        if failures > self._most_failures or (self._budget is not None and not self._budget.lets_retry(at)):
            self._ends(at)
            return
        if self._span is None:
            self._comes(at, failures, None)
            return
        wait = self._span(failures, wait if self._heeds_wait else None).at(next(self._draws))
        heappush(self._heap, (at + wait, next(self._numbers), failures, wait, True))

    def _is_sent(self, budget: Budget, at: float, failures: int) -> bool:
        if not failures:
            budget.asked(at)
        return budget.lets_send(at, next(self._draws))

    def _tell(self, budget: Budget, at: float) -> None:
        """Let the budget hear of the answers that were given meanwhile."""
        while self._not_heard and self._not_heard[0] <= at:
            budget.answered(self._not_heard.popleft())

    def _ends(self, at: float) -> None:
        """End a request; in a closed system its client begins to think."""
        if self._think_s is not None:
            self._thinks(at)

    def _thinks(self, at: float) -> None:
        assert self._think_s is not None
        begins = at + self._think_s * next(self._thinking)
        heappush(self._heap, (begins, next(self._numbers), 0, None, True))

    def _next_first_try(self) -> None:
        for at in self._first_tries:
            heappush(self._heap, (at, next(self._numbers), 0, None, True))
            return

    def _trace(self) -> Trace:
        horizon = self._system.horizon_s
        came, left = _by_second(self._came, horizon), _by_second(self._server.left, horizon)
        goodput = _by_second(self._answered, horizon)
        healthy = np.array([self._system.asked_for(second) for second in range(horizon)])
        bad = np.flatnonzero(goodput < healthy / 2)
        last = int(bad[-1]) + 1 if bad.size else 0
        return Trace(
            load=came,
            goodput=goodput,
            failed=_by_second(self._failed, horizon),
            queue=np.cumsum(came - left - _by_second(self._turned_away, horizon)),
            recovered_after_s=max(0.0, last - self._system.eased_at_s) if last <= horizon - QUIET_S else None,
        )


class _Server:
    """Takes requests in their order; for each it is known at once when its answer will be ready."""

    def __init__(self, system: System) -> None:
        self.left: list[float] = []  # when each request that was taken leaves, in order
        self._service_s = 1 / system.capacity
        self._stop_s = system.trigger_s
        self._stops_at, self._goes_on_at = system.trigger_at_s, system.trigger_at_s + system.trigger_s
        self._limit, self._drops, self._timeout_s = system.queue_limit, system.drops, system.timeout_s
        self._free_at, self._gone = 0.0, 0

    def take(self, at: float) -> float:
        """Give when the answer to a request that comes now is ready: NEVER if dropped, or TURNED_AWAY."""
        if self._limit is not None and self._waiting(at) >= self._limit:
            return TURNED_AWAY
        begins = max(at, self._free_at)
        if self._stops_at <= begins < self._goes_on_at:
            begins = self._goes_on_at
        ready = begins + self._service_s
        if begins < self._stops_at < ready:
            ready += self._stop_s
        if self._drops != "nothing":
            too_late = begins if self._drops == "expired" else ready
            if too_late > at + self._timeout_s:
                self.left.append(begins)
                return NEVER
        self._free_at = ready
        self.left.append(ready)
        return ready

    def _waiting(self, at: float) -> int:
        while self._gone < len(self.left) and self.left[self._gone] <= at:
            self._gone += 1
        return len(self.left) - self._gone


def _first_tries(demand: Open, horizon_s: float, dice: np.random.Generator) -> list[float]:
    """Lay the first tries of a Poisson process: so many in each stretch, evenly and independently."""
    cut = horizon_s if demand.cut_at_s is None else min(demand.cut_at_s, horizon_s)
    before = dice.random(dice.poisson(demand.first_tries * cut)) * cut
    after = cut + dice.random(dice.poisson(demand.cut_to * (horizon_s - cut))) * (horizon_s - cut)
    return [*np.sort(before).tolist(), *np.sort(after).tolist()]


def _endless(draw: Callable[[int], NDArray[np.float64]]) -> Iterator[float]:
    while True:
        yield from draw(DRAWN).tolist()


def _by_second(instants: list[float], horizon_s: int) -> Ints:
    """Count instants by the second that they fall in; what lies beyond the end is left out."""
    seconds = np.asarray(instants, float).astype(np.int64)
    return np.bincount(seconds[seconds < horizon_s], minlength=horizon_s)
