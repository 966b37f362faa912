"""How much of a demand does adaptive throttling let through to a backend that takes only so much?

Chapter: 000, section 15.7: one retry owner, with a budget.

Idea: more is asked for than a backend accepts; it accepts the first so many of each second and turns the rest
away. The client refuses a share at home, by what was accepted lately (`explore.budgets`). What still comes to
the backend is about K times what it accepts.

Always true:
  TH1. What the backend sees is what was asked for less what was refused at home.

Not here: queues and timeouts (`explore.overload`); the backend here answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.budgets import AdaptiveThrottling
from codeai_lab.explore.dice import stream

SETTLING_S = AdaptiveThrottling.SECONDS  # until the window that the client looks at is full


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """What came to the backend, and what it accepted, in each second after the settling."""

    sent: NDArray[np.int64]
    accepted: NDArray[np.int64]


def throttle(*, demand: int, accepts: int, k: float, seconds: int, seed: int) -> Throttled:
    """Ask for `demand` requests a second, evenly spaced, of a backend that accepts `accepts`.

    Raises: RefusedRequestError (definite) for numbers below 1, K among them.
    """
    if any(type(count) is not int or count < 1 for count in (demand, accepts, seconds)):
        raise RefusedRequestError("Demand, what is accepted and the seconds are whole numbers from 1.")
    budget = AdaptiveThrottling(k)
    dice = stream(seed, "throttling", demand, accepts, k)
    sent = np.zeros(SETTLING_S + seconds, np.int64)
    accepted = np.zeros_like(sent)
    for second in range(len(sent)):
        came = 0
        for place, draw in enumerate(dice.random(demand).tolist()):
            at = second + place / demand
            if budget.lets_send(at, draw):
                came += 1
                if came <= accepts:
                    budget.answered(at)
        sent[second], accepted[second] = came, min(came, accepts)
    return Throttled(sent=sent[SETTLING_S:], accepted=accepted[SETTLING_S:])
