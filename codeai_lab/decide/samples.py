"""What does a measured quantity come to, and how sure is that?

Chapter: 000, section 15.7; every figure of this kind stands beside the number that it must match.

Idea: a sample is what was measured, value by value, or as how often each value came. Mean, standard deviation
and standard error are worked out from it here and nowhere else, so that whoever has the sample can work them
out again.

Always true:
  SA1. A sample has at least one value; values are finite.
  SA2. The same values in any order, or as counts, give the same statistics to the last bit.
  SA3. One value has a mean and no spread that could be known: its variance, sd and standard errors are None.

Not here: closed forms (`decide.backoff_laws`, `decide.duplicate_laws`, ...), how it was measured (`explore`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Number = int | float


@dataclass(frozen=True, slots=True)
class Sample:
    """How often each value was measured, in ascending order of the values."""

    counts: tuple[tuple[Number, int], ...]

    def __post_init__(self) -> None:
        if not self.counts or not all(math.isfinite(value) and count > 0 for value, count in self.counts):
            raise ValueError("a sample has at least one value, all of them finite")

    @classmethod
    def of(cls, values: Iterable[Number]) -> Sample:
        """Make a sample of values, one for each measurement."""
        return cls.counted(Counter(values))

    @classmethod
    def counted(cls, counts: Mapping[Number, int]) -> Sample:
        """Make a sample of values that were counted; those that never came are left out."""
        return cls(tuple(sorted((value, count) for value, count in counts.items() if count)))

    @property
    def size(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def mean(self) -> float:
        return math.fsum(value * count for value, count in self.counts) / self.size

    @property
    def variance(self) -> float | None:
        """The unbiased variance: divided by one less than the size; None for a single value."""
        mean, size = self.mean, self.size
        if size == 1:
            return None
        return math.fsum(count * (value - mean) ** 2 for value, count in self.counts) / (size - 1)

    @property
    def sd(self) -> float | None:
        variance = self.variance
        return None if variance is None else math.sqrt(variance)

    @property
    def se(self) -> float | None:
        """The standard error of the mean; None for a single value."""
        spread = self.sd
        return None if spread is None else spread / math.sqrt(self.size)

    @property
    def se_of_sd(self) -> float | None:
        """The standard error of the standard deviation, to first order; 0 where nothing varies."""
        mean, spread, size = self.mean, self.sd, self.size
        if not spread:
            return spread
        fourth = math.fsum(count * (value - mean) ** 4 for value, count in self.counts) / size
        return math.sqrt(max(0.0, fourth - spread**4) / size) / (2 * spread)

    def squares_around(self, centre: float) -> Sample:
        """Give the squared distances from a point; around the true mean their mean is the variance."""
        squares: Counter[Number] = Counter()
        for value, count in self.counts:
            squares[(value - centre) ** 2] += count
        return Sample.counted(squares)

    def where(self, holds: Callable[[Number], bool]) -> Sample:
        """Give the sample of 0 and 1 that says for which measurements something holds."""
        held = sum(count for value, count in self.counts if holds(value))
        return Sample.counted({0: self.size - held, 1: held})

    def recorded(self) -> dict[str, Any]:
        """Give its plain form for a ledger line: values where most differ, counts where few do."""
        if 2 * len(self.counts) > self.size:
            return {"values": [value for value, count in self.counts for _ in range(count)]}
        return {"counts": {_named(value): count for value, count in self.counts}}


def estimate(closed_form: float | None, sample: Sample) -> dict[str, float | None]:
    """Put what theory says beside what was measured, with its standard error (None for a single value)."""
    return {"closed_form": closed_form, "sampled": sample.mean, "se": sample.se}


def _named(value: Number) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
