"""What does it gain, and cost, to ask a second time before the first answer is late?

Chapter: 000, section 15.7: a timeout does not imply that there was no effect.

Idea: a request that was not answered after a while is sent once more, and the sooner answer counts. Both
latencies are exponential with mean 1, so that every time here is in mean latencies. Long waits become rare
for little extra load; but the second copy is a second effect, unless the effect's side knows the key.

Always true:
  HE1. A hedge makes no request slower than it would have been.
  HE2. A request is sent twice if, and only if, its first answer takes longer than the wait.

Not here: retries after a failure (`explore.overload`); the closed forms (`decide.overload_laws`); duplicates
under protection (`explore.duplicates`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedged:
    """What each request came to: the latency without and with a hedge, and whether it was sent twice."""

    alone: NDArray[np.float64]
    latency: NDArray[np.float64]
    twice: NDArray[np.bool_]

    def exceeded_by(self, share: float, *, hedged: bool = True) -> float:
        """Give the latency that so small a share of the requests exceeds, with the hedge or without it."""
        return float(np.quantile(self.latency if hedged else self.alone, 1 - share))


def hedge(*, after: float, requests: int, seed: int) -> Hedged:
    """Send requests, each of them once more after `after` mean latencies without an answer.

    Raises: RefusedRequestError (definite) for a number of requests below 1 and a wait below 0.
    """
    if type(requests) is not int or requests < 1 or not after >= 0:
        raise RefusedRequestError("Hedging takes a number of requests from 1, and a wait from 0.")
    dice = stream(seed, "hedging", after)
    alone = dice.exponential(size=requests)
    twice = alone > after
    latency = alone.copy()
    latency[twice] = np.minimum(alone[twice], after + dice.exponential(size=int(twice.sum())))
    return Hedged(alone=alone, latency=latency, twice=twice)
