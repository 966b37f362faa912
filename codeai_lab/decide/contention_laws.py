"""What does theory say of N clients that change one row, before anything is simulated?

Chapter: 000, section 15.7; the study of contention that the chapter cites.

Idea: after a commit, the next one is the first write whose *read* came after it. With k clients spread evenly
over their cycle, reads arrive at a rate of k per cycle, and each becomes a write one window later. The mean
gap between commits follows, and adding up the gaps from N clients down to one gives time and calls.

Always true:
  CT1. Without backoff the number of calls grows with the square of N, the factor falling slowly.
  CT2. What is given is an approximation from below: it takes the clients to be spread over their cycle, which
       at the synchronised start they are not. At N = 50 it is 9 % low, at N = 500 about 1 %.

Not here: the simulation (`explore.contention`).

Source: derived; held against the reference runs in the tests.
"""

from __future__ import annotations

import math

from codeai_lab.errors import RefusedRequestError

CYCLE_MS = 40.0  # four messages of 10 ms: read and its reply, write and its reply
WINDOW_MS = 20.0  # the middle two: read at the server until write at the server
WINDOW_SD_MS = math.sqrt(2) * 2.0
STEP_MS = 0.05  # of the quadrature
LONGEST_GAP_MS = 4_000.0


def mean_gap_ms(clients: int, cycle_ms: float = CYCLE_MS) -> float:
    """Give the mean time between two commits while so many clients are left, milliseconds.

    P(gap > s) = exp(-(k / cycle) * integral from 0 to s of Phi((u - 20) / 2.83)); its integral is the mean.
    """
    if type(clients) is not int or clients < 1:
        raise RefusedRequestError("The number of clients must be a whole number from 1.")
    rate = clients / cycle_ms
    area = total = at = 0.0
    longer = 1.0
    while longer > 1e-12 and at < LONGEST_GAP_MS:
        middle = _phi((at + STEP_MS / 2 - WINDOW_MS) / WINDOW_SD_MS)
        area += middle * STEP_MS
        still_longer = math.exp(-rate * area)
        total += (longer + still_longer) / 2 * STEP_MS
        longer = still_longer
        at += STEP_MS
    return total


def without_backoff(clients: int) -> tuple[float, float]:
    """Give the expected calls, and the expected time in ms, of N clients that never wait."""
    gaps = [mean_gap_ms(k) for k in range(1, clients + 1)]
    calls = math.fsum(k * gap / CYCLE_MS for k, gap in enumerate(gaps, start=1))
    return calls, math.fsum(gaps[1:])


def one_after_another(clients: int) -> tuple[int, float]:
    """Give calls and time in ms of a perfect schedule: one read and write after another."""
    return clients, clients * WINDOW_MS


def calls_per_n_log_n(calls: float, clients: int) -> float:
    """Give calls / (N log2 N): constant, near 1.22, for equal jitter between 50 and 190 clients."""
    return calls / (clients * math.log2(clients))


def _phi(x: float) -> float:
    """The standard normal distribution function."""
    return (1 + math.erf(x / math.sqrt(2))) / 2
