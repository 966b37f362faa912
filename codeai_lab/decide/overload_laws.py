"""What does theory say of retries under load, before anything is simulated?

Chapter: 000, section 15.7: layered retry amplification.

Idea: a server that answers `capacity` requests a second, and clients that give up on an attempt after a
timeout and try again. As long as every attempt is late, each first try costs 1 + R attempts. Whether that is
more than the capacity decides whether the overload feeds itself; how much has piled up, and how fast the
rest of the capacity works it off, gives the time until it is over.

Always true:
  OL1. An overload that feeds itself has no recovery time: the answer is None, never a large number.
  OL2. Nothing here depends on how the waits between retries are drawn: in an open system backoff postpones
       work and takes none of it away.
  OL3. Times are of the fluid, in which requests are as fine as water; real runs scatter around them by
       `recovery_sd_s`, and by about one timeout.

Not here: the runs (`explore.overload`), the map of loads and triggers (`explore.slotted`).

Sources: the published setting of a metastable failure (280 requests a second against 300, one retry); the
rules of adaptive throttling and of hedged requests. The formulas were derived, and are held against runs.
"""

from __future__ import annotations

import math

from codeai_lab.errors import RefusedRequestError

# --- an open system: first tries do not wait for answers -----------------------------------------------


def sustained_load(first_tries: float, retries: int) -> float:
    """Give the attempts a second while every attempt is late: lambda (1 + R)."""
    return first_tries * (1 + retries)


def hidden_capacity(capacity: float, retries: int) -> float:
    """Give the first tries a second above which an overload, once there, feeds itself: mu / (1 + R)."""
    return capacity / (1 + retries)


def backlog_after_trigger(first_tries: float, *, retries: int, trigger_s: float, timeout_s: float) -> float:
    """Give the requests in the queue at the end of a stop: (1 + R) lambda D - R lambda T.

    The last timeout's worth of first tries has not come back yet. It takes a stop of at least R timeouts.
    """
    return first_tries * ((1 + retries) * trigger_s - retries * timeout_s)


def recovery_s(
    first_tries: float, *, retries: int, capacity: float, trigger_s: float, timeout_s: float
) -> float | None:
    """Give how long after the end of a stop the wait falls to the timeout again; None where it never does."""
    drain = capacity - sustained_load(first_tries, retries)
    if drain <= 0:
        return None
    queue = backlog_after_trigger(first_tries, retries=retries, trigger_s=trigger_s, timeout_s=timeout_s)
    return max(0.0, (queue - capacity * timeout_s) / drain)


def recovery_sd_s(
    first_tries: float, *, retries: int, capacity: float, trigger_s: float, recovery: float
) -> float:
    """Give the standard deviation of that time: Poisson first tries, each of which costs 1 + R attempts."""
    drain = capacity - sustained_load(first_tries, retries)
    return (1 + retries) * math.sqrt(first_tries * (trigger_s + recovery)) / drain


def recovery_after_cut_s(
    first_tries: float,
    cut_to: float,
    *,
    retries: int,
    capacity: float,
    trigger_s: float,
    timeout_s: float,
    cut_after_s: float,
) -> float | None:
    """Give how long after the first tries are cut the wait falls to the timeout; None where it never does.

    Args:
        cut_after_s: from the end of the stop until the cut, during which the overload goes on.
    """
    drain = capacity - sustained_load(cut_to, retries)
    if drain <= 0:
        return None
    queue = backlog_after_trigger(first_tries, retries=retries, trigger_s=trigger_s, timeout_s=timeout_s)
    queue += (sustained_load(first_tries, retries) - capacity) * cut_after_s
    return max(0.0, (queue - capacity * timeout_s) / drain)


def smallest_trigger_s(first_tries: float, *, capacity: float, timeout_s: float) -> float:
    """Give the stop at whose end, with one retry, a timeout's worth of work waits: (mu T / lambda + T) / 2.

    It takes everything before the stop's end to have been late. In truth a shorter stop makes the first part
    of it late, and that may be enough, or not last: the border that `explore.slotted` finds lies within 60 ms
    of this for a timeout of a second.
    """
    return (capacity * timeout_s / first_tries + timeout_s) / 2


def harmless_trigger_s(first_tries: float, *, capacity: float, timeout_s: float) -> float:
    """Give the stop up to which, with one retry, no retry is late, so that the system is sure to come back.

    With rho = lambda / mu it is T + T (1 - rho)^2 / rho: first tries of the stop's beginning are late, and
    their retries are few enough to be served in time. It takes a load between mu / 2 and mu.
    """
    spare = 1 - first_tries / capacity
    return timeout_s * (1 + spare * spare / (1 - spare))


# --- what holds retries back ---------------------------------------------------------------------------


def request_funded_load(first_tries: float, ratio: float) -> float:
    """Give the load while every attempt is late and `ratio` retries are allowed for each first try."""
    return first_tries * (1 + ratio)


def break_even_failure_share(ratio: float) -> float:
    """Give the share of failed attempts at which a bucket funded by success neither fills nor empties."""
    return ratio / (1 + ratio)


def throttled_load(demand: float, accepted: float, k: float) -> float:
    """Give what adaptive throttling lets through to a backend: min(demand, K x what it accepts)."""
    return min(demand, k * accepted)


# --- a closed system: so many clients, each of which waits for its answer -------------------------------


def closed_overload(clients: int, timeout_s: float) -> float:
    """Give the attempts a second while every attempt is late and nobody waits in between: N / T."""
    return clients / timeout_s


def closed_healthy(clients: int, think_s: float, answer_s: float) -> float:
    """Give the requests a second of clients that think, ask and are answered: N / (Z + answer)."""
    return clients / (think_s + answer_s)


# --- layers, each of which retries ---------------------------------------------------------------------


def layered_calls(layers: int, attempts: int, failure: float) -> float:
    """Give the calls at the bottom for one request at the top: (1 - f^(a^L)) / (1 - f), and a^L for f = 1.

    The product over the layers telescopes: the stack behaves like one layer with a^L attempts.

    Raises: RefusedRequestError (definite) for layers or attempts below 1, and for no probability.
    """
    most = _most(layers, attempts, failure)
    return float(most) if failure == 1 else (1 - failure**most) / (1 - failure)


def layered_failure(layers: int, attempts: int, failure: float) -> float:
    """Give the probability that the request at the top fails: f^(a^L)."""
    return float(failure ** _most(layers, attempts, failure))


def _most(layers: int, attempts: int, failure: float) -> int:
    if any(type(count) is not int or count < 1 for count in (layers, attempts)):
        raise RefusedRequestError("Layers and attempts are counted by whole numbers from 1.")
    if not 0 <= failure <= 1:
        raise RefusedRequestError("The failure probability of a call lies between 0 and 1.")
    return int(attempts**layers)


# --- hedging -------------------------------------------------------------------------------------------


def hedged_share(after: float) -> float:
    """Give the share of requests that are sent a second time, for an exponential latency of mean 1: e^-d.

    It is the extra load. For a write without idempotency at the effect's side it is also the expected
    number of duplicates, unless the other copy is known to be cancelled before its effect.
    """
    return math.exp(-after)


def hedged_quantile(after: float, beyond: float) -> float:
    """Give the latency that a share `beyond` of hedged requests exceeds: (ln(1 / beyond) + d) / 2.

    It holds where that is longer than `after`; else the hedge comes too late to matter.
    """
    unhedged = -math.log(beyond)
    return unhedged if unhedged <= after else (unhedged + after) / 2
