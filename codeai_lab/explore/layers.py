"""How many calls reach the bottom when every layer above tries again by itself?

Chapter: 000, section 15.7: one retry owner, since layers of them multiply.

Idea: each layer asks the one below up to `attempts` times, until it is answered; the lowest makes the calls,
each of which fails by chance, independently. The layers are really walked, request by request; that the
result is that of one layer with attempts to the power of layers is for theory to say.

Always true:
  LA1. No request makes more than attempts^layers calls, and each makes at least one.
  LA2. A request fails only after all of its calls have failed: it has made attempts^layers of them.

Not here: the closed form (`decide.overload_laws`); what the calls do to a server (`explore.overload`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codeai_lab.decide.overload_laws import layered_calls
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream

MOST_CALLS = 20_000_000  # in the worst case, of all requests together


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """What each request at the top came to: its calls at the bottom, and whether it was answered."""

    calls: NDArray[np.int64]
    answered: NDArray[np.bool_]


def ask_through_layers(*, layers: int, attempts: int, failure: float, requests: int, seed: int) -> Layered:
    """Send `requests` requests through a stack of layers.

    Raises: RefusedRequestError (definite) for counts below 1, for no probability, and for more than twenty
        million calls in the worst case.
    """
    worst = layered_calls(layers, attempts, 1.0)  # refuses wrong counts
    layered_calls(layers, attempts, failure)
    if type(requests) is not int or not 1 <= requests * worst <= MOST_CALLS:
        raise RefusedRequestError(
            f"Requests are counted from 1, with at most {MOST_CALLS:,} calls in the worst case."
        )
    dice = stream(seed, "layers", layers, attempts, failure)
    calls, answered = _asked(requests, layers, attempts, failure, dice)
    return Layered(calls=calls, answered=answered)


def _asked(
    requests: int, layers: int, attempts: int, failure: float, dice: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Let a layer answer requests by asking the layer below; below the last one stands the call itself."""
    if layers == 0:
        return np.ones(requests, np.int64), dice.random(requests) >= failure
    calls, answered = np.zeros(requests, np.int64), np.zeros(requests, bool)
    waiting = np.arange(requests)
    for _ in range(attempts):
        made, succeeded = _asked(len(waiting), layers - 1, attempts, failure, dice)
        calls[waiting] += made
        answered[waiting] = succeeded
        waiting = waiting[~succeeded]
        if not waiting.size:
            break
    return calls, answered
