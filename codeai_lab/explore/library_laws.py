"""What does each retry library wait, written as a formula?

Chapter: 000, section 15.7: a bounded policy samples its delay.

Idea: a law gives the waits of one loop from even draws of [0, 1), in the order in which the library draws
them. Handed one number at a time it answers for one client; handed an array, for a whole crowd. So the same
formula can be held against a real loop, draw for draw, and can then say how a crowd of 200,000 is spread,
which no loop could be driven for.

Always true:
  LL1. Base 1, factor 2, cap 20, jitter 1 and eight retries; where a library sets a number itself, it is
       written out.
  LL2. A law draws in the order in which its library does; a library may draw once more, for a wait after its
       last attempt that never comes.

Not here: the real loops (`lessons.library_loops`), which are what these formulas must agree with; rules by
name with their closed forms (`decide.backoff`, `decide.backoff_laws`).

Sources: read from the libraries' own source; gRPC's rule from its proposal A6, Polly's from its version 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codeai_lab.explore.dice import stream
from codeai_lab.explore.sleeps import Floats

BASE, CAP, JITTER, RETRIES = 1.0, 20.0, 1.0, 8

Draw = Callable[[], Any]  # one even draw from [0, 1): a number, or an array with one for each client
Delay = Callable[[int, Draw], Any]  # the wait before the n-th retry, n counted from 1
Law = Callable[[Draw], list[Any]]  # the waits of one loop


def crowd(law: Law, *, clients: int, seed: int, name: str) -> Floats:
    """Give for each client when its last retry begins, all clients having failed together at 0."""
    chance = stream(seed, "crowd", name)
    totals = np.zeros(clients)
    for wait in law(lambda: chance.random(clients)):
        totals += wait
    return totals


def busiest_second(times: Floats | Sequence[float]) -> tuple[float, float]:
    """Give where the busiest window of one second begins and which share of the times falls into it.

    A window that was chosen because its share is the largest is a flattering one: for few times the share is
    too high. For 200,000 clients that is under a fiftieth of it.
    """
    ordered = np.sort(times)
    held = np.searchsorted(ordered, ordered + 1.0, side="left") - np.arange(len(ordered))
    first = int(held.argmax())
    return float(ordered[first]), float(held[first] / len(ordered))


def each(delay: Delay) -> Law:
    """Make a law of a rule whose waits do not depend on each other."""
    return lambda draw: [delay(n, draw) for n in range(1, RETRIES + 1)]


def no_retry(_: Draw) -> list[Any]:
    """Wait for nothing: the first answer stands."""
    return []


def exponential(n: int, _: Draw) -> Any:
    """Double, up to the cap."""
    return min(CAP, BASE * 2 ** (n - 1))


def full_jitter(n: int, draw: Draw) -> Any:
    """Draw from the whole window; the cap bounds the window."""
    return min(CAP, BASE * 2 ** (n - 1)) * draw()


def jitter_then_cap(n: int, draw: Draw) -> Any:
    """Add the jitter and clamp the sum: from the sixth retry on every wait is the cap itself."""
    return np.minimum(CAP, BASE * 2 ** (n - 1) + JITTER * draw())


def cap_then_jitter(n: int, draw: Draw) -> Any:
    """Clamp the window and add the jitter: a wait may exceed the cap."""
    return min(CAP, BASE * 2 ** (n - 1)) + JITTER * draw()


def urllib3_exponential(n: int, draw: Draw) -> Any:
    """Retry the first time at once, without a draw."""
    return 0.0 if n == 1 else exponential(n, draw)


def urllib3_jitter(n: int, draw: Draw) -> Any:
    """Retry the first time at once, without a draw; clamp the sum afterwards."""
    return 0.0 if n == 1 else jitter_then_cap(n, draw)


def httpx_retries(jitter: float) -> Delay:
    """Start from twice the base; take a share of the window, then clamp."""
    return lambda n, draw: np.minimum(CAP, BASE * 2**n * (1 - jitter + jitter * draw()))


def aiohttp_exponential(n: int, _: Draw) -> Any:
    """Start from twice the base."""
    return min(CAP, BASE * 2**n)


def aiohttp_jitter(n: int, draw: Draw) -> Any:
    """Raise the jitter to the power of the factor: with factor 2 it is squared."""
    return min(CAP, BASE * 2**n) + (JITTER * draw()) ** 2


def botocore_standard(scale: float) -> Delay:
    """Draw from the whole window, whose base depends on the kind of error."""
    return lambda n, draw: min(CAP, scale * 2 ** (n - 1)) * draw()


def botocore_legacy(n: int, draw: Draw) -> Any:
    """Know no cap."""
    return 2 ** (n - 1) * draw()


def model_sdk(n: int, draw: Draw) -> Any:
    """Use numbers of its own: base 0.5, cap 8, and up to a quarter less."""
    return min(8.0, 0.5 * 2 ** (n - 1)) * (1 - 0.25 * draw())


def grpc(n: int, draw: Draw) -> Any:
    """Spread by a fifth to both sides of the capped window."""
    return min(CAP, BASE * 2 ** (n - 1)) * (0.8 + 0.4 * draw())


def polly(draw: Draw) -> list[Any]:
    """Take the distances between points of a curve: each point ends one wait and begins the next."""
    waits, before = [], 0.0
    for n in range(1, RETRIES + 1):
        at = n - 1 + draw()
        point = 2**at * np.tanh(np.sqrt(4 * at))
        waits.append(np.minimum(CAP, BASE * (point - before) / 1.4))
        before = point
    return waits


def study_full_jitter(n: int, draw: Draw) -> Any:
    """Count the failure before the wait is reckoned, so that the first window is twice the base."""
    return min(CAP, BASE * 2**n) * draw()


def chapter(n: int, draw: Draw) -> Any:
    """Give whole milliseconds, as `decide.backoff.chapter_delay_ms` does."""
    return np.floor(draw() * int(1000 * min(CAP, BASE * 2 ** (n - 1)))) / 1000
