"""How are the waits before one retry distributed, from the shortest to the longest?

Chapter: 000, section 15.7.

Idea: a sample is handed on as its quantiles: the wait that a share of the clients stays below, for a hundred
and one shares. Where many clients wait for exactly the same time, many quantiles are that time; a histogram
would blur this, and it is what the lesson is about.

Always true:
  WS1. Quantiles rise; the first is the shortest wait of the sample and the last its longest.

Not here: the sample (`lessons.backoff`), drawing it (`show.waiting_figures`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from codeai_lab.decide.samples import Sample
from codeai_lab.lessons.measured import Measured

STEPS = 100


def wait_shapes(measured: Iterable[Measured], attempts: Iterable[int] = (2, 4, 6, 8)) -> list[dict[str, Any]]:
    """Give a row for each rule and chosen retry, with `quantiles` and the atom at the cap.

    Args:
        measured: what `lessons.backoff` measured.
        attempts: the retries that are wanted, counted from 1.
    """
    wanted = set(attempts)
    return [
        {
            "strategy": one.row["strategy"],
            "attempt": one.row["attempt"],
            "quantiles": list(_quantiles(one.samples["mean"])),
            "atom_at_cap": one.row["atom_at_cap"],
        }
        for one in measured
        if one.row["attempt"] in wanted
    ]


def _quantiles(sample: Sample) -> Iterator[float]:
    """Give, for each share, the smallest value with at least that share of the sample at or below it."""
    upto = accumulate(count for _, count in sample.counts)
    places = zip((value for value, _ in sample.counts), upto, strict=True)
    value, reached = next(places)
    size = sample.size  # a sum over all of it
    for step in range(STEPS + 1):
        while reached * STEPS < step * size:
            value, reached = next(places)
        yield float(value)
