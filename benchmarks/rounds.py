"""How can a shared, noisy machine still give a figure that means something?

Idea: absolute times on such a machine say little, and a ratio of two times taken a minute apart says less.
So the things to be compared take turns: in every round each of them runs once, in an order that is shuffled
anew, and the ratio is taken within the round. The median over many rounds is the figure; the 10th and 90th
percentiles say how far to trust it.

Always true:
  B1. Both sides of a ratio were measured in the same round of the same process.
  B2. The first rounds are thrown away: they pay for warming up.
  B3. A bound is judged by the median alone, and a row that cannot be judged says why.

Not here: what is measured (the other modules).
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Timed = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle of a list of figures, and its 10th and 90th percentiles."""

    median: float
    p10: float
    p90: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        ordered = sorted(figures)
        last = len(ordered) - 1
        return cls(
            median=statistics.median(ordered),
            p10=ordered[round(last * 0.1)],
            p90=ordered[round(last * 0.9)],
        )

    def times(self, factor: float) -> Spread:
        """Give the same figures for another amount of work on one side."""
        return Spread(median=self.median * factor, p10=self.p10 * factor, p90=self.p90 * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Args:
        bound: what the ratio is held against, as `<= 1.5`; empty for a row that is there to be read.
        held: True, False, or None where it was not judged; `remark` says why, or anything else worth knowing.
    """

    name: str
    ratio: Spread | None
    bound: str = ""
    held: bool | None = None
    remark: str = ""


class Times:
    """What every variant took, in seconds, round by round."""

    def __init__(self, seconds: Mapping[str, Sequence[float]]) -> None:
        self._seconds = seconds

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._seconds)

    def of(self, name: str) -> Spread:
        return Spread.of(self._seconds[name])

    def ratio(self, over: str, *under: str) -> Spread:
        """Give the ratios of one variant to the sum of others, each taken within a round."""
        below = [sum(parts) for parts in zip(*(self._seconds[name] for name in under), strict=True)]
        return Spread.of([one / other for one, other in zip(self._seconds[over], below, strict=True)])


def side_by_side(
    variants: Mapping[str, Callable[[], Timed]], *, rounds: int, warm_up: int = 1, seed: int = 22
) -> Times:
    """Let the variants take turns.

    Args:
        variants: name -> a function that prepares one run, untimed, and gives what is timed. A run that
            gives a float was timed by somebody else, and these are the seconds.
        warm_up: rounds before the first that counts.
    """
    dice = random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(warm_up + rounds):
        names = list(variants)
        dice.shuffle(names)
        for name in names:
            run = variants[name]()
            begun = time.perf_counter()
            told = run()
            taken = time.perf_counter() - begun
            if number >= warm_up:
                seconds[name].append(told if isinstance(told, float) else taken)
    return Times(seconds)


def judged(name: str, ratio: Spread, *, at_most: float | None = None, at_least: float | None = None,
           unjudged: str = "", remark: str = "") -> Row:  # fmt: skip
    """Hold a ratio against its bound, unless `unjudged` says why it cannot be."""
    if at_most is not None:
        bound, held = f"<= {at_most:g}", ratio.median <= at_most
    elif at_least is not None:
        bound, held = f">= {at_least:g}", ratio.median >= at_least
    else:
        return Row(name=name, ratio=ratio, remark=remark)
    if unjudged:
        return Row(name=name, ratio=ratio, bound=bound, remark="; ".join(filter(None, (unjudged, remark))))
    return Row(name=name, ratio=ratio, bound=bound, held=held, remark=remark)


class PlainFile:
    """A file that bytes are appended to with `write` and `fdatasync`: the floor under any record."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._flush = getattr(os, "fdatasync", os.fsync)

    def append(self, *contents: bytes) -> None:
        """Write and flush, each by itself."""
        for content in contents:
            os.write(self._descriptor, content)
            self._flush(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
