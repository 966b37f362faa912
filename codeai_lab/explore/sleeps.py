"""What do many clients' waits look like when all of them failed together?

Chapter: 000, section 15.7: full jitter spreads synchronised retries.

Idea: the same rules as in `decide.backoff`, drawn for many clients at once: one row a client, one column a
retry. From the rows follows how well a crowd is spread: the share of clients whose n-th retry falls into the
busiest second.

Always true:
  SL1. The same seed and rule give the same waits; more clients leave the first ones as they were.
  SL2. A column has the law that `decide.backoff_laws` gives for its retry.

Not here: what the waits are good for (`explore.contention`, `explore.overload`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codeai_lab.decide.backoff import Backoff, Strategy, require_count
from codeai_lab.explore.dice import stream

Floats = NDArray[np.float64]


def sleeps(rule: Backoff, *, retries: int, clients: int, seed: int) -> Floats:
    """Draw the waits of `clients` clients before each of `retries` retries, shape (clients, retries).

    The unit is that of the rule. Raises: RefusedRequestError (definite) for numbers below 1 and for no seed.
    """
    require_count(retries)
    require_count(clients)
    draws = stream(seed, "sleeps", rule.strategy).random((clients, retries))
    waits = np.empty_like(draws)
    for n in range(1, retries + 1):
        if rule.strategy is Strategy.DECORRELATED:
            before = waits[:, n - 2] if n > 1 else np.full(clients, rule.base)
            waits[:, n - 1] = np.minimum(rule.cap, rule.base + (3 * before - rule.base) * draws[:, n - 1])
        else:
            span = rule.span(n)
            waits[:, n - 1] = np.minimum(span.limit, span.low + (span.high - span.low) * draws[:, n - 1])
    return waits


def busiest_share(times: Floats, width: float = 1.0) -> float:
    """Give the largest share of the times that falls into any window of this width."""
    ordered = np.sort(times)
    beyond = np.searchsorted(ordered, ordered + width, side="left")
    return float((beyond - np.arange(len(ordered))).max() / len(ordered))
