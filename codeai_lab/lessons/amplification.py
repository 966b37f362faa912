"""What do layers, throttling and hedging do to the number of calls?

Chapter: 000, section 15.7: layered retry amplification.

Idea: three tables beside the overload. Layers that each retry multiply; a client that looks at what was
accepted holds itself back by a factor; a second copy sent early buys speed for calls, and for duplicates. In
each row theory stands beside what was measured.

Always true:
  AM1. One stream of chance for each row: another row beside it changes none.

Not here: queues and what keeps an overload alive (`lessons.overload`), theory (`decide.overload_laws`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeai_lab.decide.overload_laws import (
    hedged_quantile,
    hedged_share,
    layered_calls,
    layered_failure,
    throttled_load,
)
from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.explore.hedging import hedge
from codeai_lab.explore.layers import ask_through_layers
from codeai_lab.explore.throttling import throttle
from codeai_lab.lessons.measured import Measured, Progress

SEED = 20_261_130
REQUESTS, HEDGED_REQUESTS = 20_000, 400_000
RARE = 0.001  # the share beyond the 99.9th percentile

# name: layers, attempts of each, failure probability of a call
LAYERED: dict[str, tuple[int, int, float]] = {
    "three-layers-four-attempts": (3, 4, 1.0),
    "five-layers-three-attempts": (5, 3, 1.0),
    "four-owners-three-attempts": (4, 3, 1.0),  # client, router, SDK, gateway, if "three" counts attempts,
    "four-owners-three-retries": (4, 4, 1.0),  # and if it counts retries
    "one-layer-half-fails": (1, 3, 0.5),
    "two-layers-most-fails": (2, 4, 0.8),
    "three-layers-half-fails": (3, 4, 0.5),
    "three-layers-nearly-all-fails": (3, 3, 0.9),
}


def layers_measured(
    *, requests: int = REQUESTS, seed: int = SEED, progress: Progress | None = None
) -> list[Measured]:
    """Give a row for each stack of layers: calls at the bottom, and failures at the top, for one request.

    Raises: RefusedRequestError (definite) for a number of requests that is none or too large.
    """
    found: list[Measured] = []
    for name, (layers, attempts, failure) in LAYERED.items():
        _told(progress, name, len(found), len(LAYERED))
        asked = ask_through_layers(
            layers=layers, attempts=attempts, failure=failure, requests=requests, seed=seed
        )
        samples = {"calls": Sample.of(asked.calls.tolist()), "failed": _shares((~asked.answered).tolist())}
        row = {
            "case": name,
            "layers": layers,
            "attempts": attempts,
            "failure": failure,
            "requests": requests,
            "calls": estimate(layered_calls(layers, attempts, failure), samples["calls"]),
            "failed": estimate(layered_failure(layers, attempts, failure), samples["failed"]),
        }
        found.append(Measured(case=name, row=row, samples=samples))
    return found


def throttling_measured(
    *,
    k: Sequence[float] = (2.0, 1.5, 1.1),
    demand: int = 1_000,
    accepts: int = 100,
    seconds: int = 120,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each K: what comes to a backend in a second, and what it accepts.

    Near K = 1 chance leaves some seconds with less than the backend would accept; then K times what it did
    accept, `k_times_accepted`, is met, and K times what it could is not.

    Raises: RefusedRequestError (definite) for numbers below 1.
    """
    found: list[Measured] = []
    for factor in k:
        name = f"k-{factor:g}"
        _told(progress, name, len(found), len(k))
        seen = throttle(demand=demand, accepts=accepts, k=factor, seconds=seconds, seed=seed)
        samples = {"load": Sample.of(seen.sent.tolist()), "accepted": Sample.of(seen.accepted.tolist())}
        row = {
            "case": name,
            "k": factor,
            "demand": demand,
            "accepts": accepts,
            "load": estimate(throttled_load(demand, accepts, factor), samples["load"]),
            "accepted": estimate(float(min(demand, accepts)), samples["accepted"]),
            "k_times_accepted": throttled_load(demand, samples["accepted"].mean, factor),
        }
        found.append(Measured(case=name, row=row, samples=samples))
    return found


def hedging_measured(
    *,
    after: Sequence[float] = (0.5, 1.0, 3.0),
    requests: int = HEDGED_REQUESTS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each wait before the second copy, in mean latencies.

    `extra_load` is also the expected number of duplicates of a write that nothing protects. `rare` is the
    share of requests beyond the 99.9th percentile that theory gives.

    Raises: RefusedRequestError (definite) for a number of requests below 1 and a wait below 0.
    """
    found: list[Measured] = []
    for wait in after:
        name = f"after-{wait:g}"
        _told(progress, name, len(found), len(after))
        sent = hedge(after=wait, requests=requests, seed=seed)
        quantile = hedged_quantile(wait, RARE)
        samples = {
            "extra_load": _shares(sent.twice.tolist()),
            "rare": _shares((sent.latency > quantile).tolist()),
        }
        row: dict[str, Any] = {
            "case": name,
            "after": wait,
            "requests": requests,
            "extra_load": estimate(hedged_share(wait), samples["extra_load"]),
            "rare": estimate(RARE, samples["rare"]),
            "p999_closed_form": quantile,
            "p999_sampled": sent.exceeded_by(RARE),
            "p999_unhedged": sent.exceeded_by(RARE, hedged=False),
        }
        found.append(Measured(case=name, row=row, samples=samples))
    return found


def _shares(held: Sequence[bool]) -> Sample:
    """Give the sample of 0 and 1 that says for which requests something held."""
    count = sum(held)
    return Sample.counted({0: len(held) - count, 1: count})


def _told(progress: Progress | None, name: str, done: int, of: int) -> None:
    if progress is not None:
        progress(name, done, of)
