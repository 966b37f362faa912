"""How much work and how much time does it take until all of N clients have changed one row?

Chapter: 000, section 15.7: jitter spreads synchronised retries, and the study that the chapter cites.

Idea: every client reads a version, and writes; the write succeeds where nobody else wrote in between, else
the client backs off and reads again. What a client does next follows from two instants, when its read and its
write reach the server, so that one attempt is one event. All runs of a cell go forward together, each by its
own earliest write, as the columns of one array.

Always true:
  CO1. calls - failures = clients: a client stops at its first success.
  CO2. The same seed, strategy, number of clients and runs give the same numbers, whatever else is asked for.
  CO3. The server has no service time and no limit: what costs here is collision, not load.

Not here: load and queues (`explore.overload`); the rules (`decide.backoff`); what theory says of it
(`decide.contention_laws`).

Source: the model behind the well-known jitter study, with one event an attempt instead of four messages,
which gives the same distribution (held against its reference table in the tests).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream

MESSAGE_MS, MESSAGE_SD_MS = 10.0, 2.0  # the delay of one message: |normal(10, 2)|
BASE_MS, CAP_MS = 5.0, 2_000.0  # the study's parameters
STUDIED = (
    Strategy.NO_BACKOFF,
    Strategy.EXPONENTIAL,
    Strategy.EQUAL,
    Strategy.FULL,
    Strategy.DECORRELATED,
)
RUNS_TOGETHER = 100  # more make the arrays leave the cache
STEPS_DRAWN = 128  # of random numbers at once
DOUBLINGS = 64  # retries after which no window of the study grows any more

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """What the runs of one cell came to, one number a run.

    Args:
        calls: writes that reached the server, shape (runs,).
        time_ms: until the last client knows of its success, shape (runs,), milliseconds.
    """

    strategy: Strategy
    clients: int
    calls: Ints
    time_ms: Floats


def contend(
    strategy: Strategy | str,
    *,
    clients: int,
    runs: int,
    seed: int,
    base_ms: float = BASE_MS,
    cap_ms: float = CAP_MS,
) -> Contended:
    """Let `clients` contend for one row, `runs` times over.

    The first backoff is drawn from the window 2 * base, as in the study: a client counts its failure before
    it asks how long to wait.

    Raises: RefusedRequestError (definite) for a number of clients or runs below 1, another strategy than the
        five, and a seed that is none.
    """
    chosen = _studied(strategy)
    for name, value in (("clients", clients), ("runs", runs)):
        if type(value) is not int or value < 1:
            raise RefusedRequestError(f"The number of {name} must be a whole number from 1.")
    rule = Backoff(strategy=chosen, base=base_ms, cap=cap_ms)
    parts = [
        _together(rule, clients, min(RUNS_TOGETHER, runs - start), stream(seed, chosen, clients, start))
        for start in range(0, runs, RUNS_TOGETHER)
    ]
    return Contended(
        strategy=chosen,
        clients=clients,
        calls=np.concatenate([calls for calls, _ in parts]),
        time_ms=np.concatenate([time for _, time in parts]),
    )


def _together(rule: Backoff, clients: int, runs: int, dice: np.random.Generator) -> tuple[Ints, Floats]:
    """Take `runs` runs to their end together; each step handles the earliest write of every run."""
    back_off = _backoff_of(rule, (runs, clients))
    reads = _messages(dice, (runs, clients))
    writes = reads + _messages(dice, (runs, clients)) + _messages(dice, (runs, clients))
    calls, committed = np.zeros(runs, np.int64), np.full(runs, -np.inf)
    waiting = np.full(runs, clients)
    live = np.arange(runs)
    draws = _Draws(dice, runs)
    while live.size:
        messages, chances = draws.next()
        client = writes[live].argmin(axis=1) if live.size < runs else writes.argmin(axis=1)
        at = writes[live, client]
        calls[live] += 1
        succeeded = reads[live, client] >= committed[live]
        won, lost = live[succeeded], live[~succeeded]
        committed[won] = at[succeeded]
        writes[won, client[succeeded]] = np.inf
        waiting[won] -= 1
        loser, when = client[~succeeded], at[~succeeded]
        read_again = when + messages[lost, 0] + back_off(lost, loser, chances[lost])
        reads[lost, loser] = read_again
        writes[lost, loser] = read_again + messages[lost, 1]
        if not waiting[won].all():
            live = np.flatnonzero(waiting)
    return calls, committed + _messages(dice, (runs,))


class _Draws:
    """The random numbers of one step after another, drawn for many steps at once."""

    def __init__(self, dice: np.random.Generator, runs: int) -> None:
        self._dice, self._runs, self._at = dice, runs, STEPS_DRAWN

    def next(self) -> tuple[Floats, Floats]:
        """Give, for every run, two sums of two message delays, and one even draw from [0, 1)."""
        if self._at == STEPS_DRAWN:
            self._messages = _messages(self._dice, (STEPS_DRAWN, self._runs, 2, 2)).sum(axis=3)
            self._chances = self._dice.random((STEPS_DRAWN, self._runs))
            self._at = 0
        self._at += 1
        return self._messages[self._at - 1], self._chances[self._at - 1]


def _backoff_of(rule: Backoff, shape: tuple[int, int]) -> Callable[[Ints, Ints, Floats], Floats]:
    """Give the function (runs, their clients, draws) -> delays, which remembers how often each one failed."""
    if rule.strategy is Strategy.DECORRELATED:
        delays = np.full(shape, rule.base)

        def decorrelated(runs: Ints, clients: Ints, draws: Floats) -> Floats:
            longest = 3 * delays[runs, clients]
            drawn = np.minimum(rule.cap, rule.base + (longest - rule.base) * draws)
            delays[runs, clients] = drawn
            return drawn

        return decorrelated
    spans = [rule.span(n) for n in range(2, DOUBLINGS + 2)]  # the first failure asks for the second window
    low = np.array([span.low for span in spans])
    width = np.array([span.high - span.low for span in spans])
    failures = np.zeros(shape, np.int64)

    def windowed(runs: Ints, clients: Ints, draws: Floats) -> Floats:
        nth = np.minimum(failures[runs, clients], DOUBLINGS - 1)
        failures[runs, clients] += 1
        return low[nth] + width[nth] * draws

    return windowed


def _messages(dice: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw message delays, milliseconds."""
    return np.abs(dice.normal(MESSAGE_MS, MESSAGE_SD_MS, shape))


def _studied(strategy: Strategy | str) -> Strategy:
    if strategy not in STUDIED:
        raise RefusedRequestError(f"The strategies contended with are {', '.join(STUDIED)}.")
    return Strategy(strategy)
