"""What does a backoff rule do on average, exactly?

Chapter: 000, section 15.7: full jitter samples a delay within a bounded window.

Idea: a delay is one even draw, clamped (`decide.backoff`). The mean, the variance and the share that lies
exactly on the cap of such a draw are three short formulas, and a total of independent draws adds them up.
Only the decorrelated rule needs more, since each of its delays depends on the one before: what is expected
after one more delay is one integral, and that integral, done n times, is the law of the n-th delay.

Always true:
  BL1. Nothing is sampled here.
  BL2. Without a clamp the atom at the cap is 0; a rule that clamps after the draw, or the exponential one,
       may have an atom of 1: then every client waits for exactly the cap.
  BL3. For the decorrelated rule the answers are quadratures, right to about six digits; all others are
       right to rounding.

Not here: the rules (`decide.backoff`), the samples that these are held against (`explore.sleeps`).

Source: derived; held against published values and against samples in the tests.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codeai_lab.decide.backoff import Backoff, Span, Strategy, require_count
from codeai_lab.errors import RefusedRequestError

SETTLED = 1e-12  # relative change of an expectation from one delay to the next that counts as none
PANELS = 400  # quadrature intervals between two kinks of the decorrelated law
MOST_DELAYS = 1_000  # of a decorrelated total; its quadrature takes about 10 ms a delay
MOST_WINDOWS = 12  # beyond, the alternating sum of the exact distribution loses its digits in doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Mean, variance (the unit squared), and the probability of being exactly the cap."""

    mean: float
    variance: float
    atom_at_cap: float


def law(rule: Backoff, n: int) -> Law:
    """Give the law of the n-th delay, n counted from 1."""
    if rule.strategy is Strategy.DECORRELATED:
        return _Decorrelated(rule).law(n)
    return _clamped(rule.span(n), rule.cap)


def total_law(rule: Backoff, retries: int) -> Law:
    """Give mean and variance of the first `retries` delays together; its atom is where all are the cap."""
    require_count(retries)
    if rule.strategy is Strategy.DECORRELATED:
        return _Decorrelated(rule).total_law(retries)
    each = [law(rule, n) for n in range(1, retries + 1)]
    return Law(
        mean=math.fsum(one.mean for one in each),
        variance=math.fsum(one.variance for one in each),
        atom_at_cap=math.prod(one.atom_at_cap for one in each),
    )


def full_total_cdf(windows: Sequence[float], x: float) -> float:
    """Give P(total <= x) of even draws from [0, w) for each window w, exactly.

    Raises: RefusedRequestError (definite) for more than 12 windows, where doubles no longer carry the sum,
        and for a window that is not above 0.
    """
    if not 1 <= len(windows) <= MOST_WINDOWS or min(windows) <= 0:
        raise RefusedRequestError(f"The exact distribution takes 1 to {MOST_WINDOWS} windows above 0.")
    if x >= sum(windows):
        return 1.0
    power = len(windows)
    terms = (
        (-1) ** size * max(0.0, x - sum(chosen)) ** power
        for size in range(power + 1)
        for chosen in itertools.combinations(windows, size)
    )
    return math.fsum(terms) / (math.factorial(power) * math.prod(windows))


def uncapped_decorrelated_mean(base: float, n: int) -> float:
    """Give the mean of the n-th decorrelated delay where nothing caps it: base (2 * 1.5^n - 1)."""
    return base * (2 * 1.5**n - 1)


def _clamped(span: Span, cap: float) -> Law:
    """Give the law of one even draw from a span, clamped at its limit."""
    low, high, limit = span.low, span.high, span.limit
    if high <= low or low >= limit:
        value = min(low, limit)
        return Law(mean=value, variance=0.0, atom_at_cap=float(value == cap))
    if high <= limit:
        width = high - low
        return Law(mean=low + width / 2, variance=width * width / 12, atom_at_cap=0.0)
    atom = (high - limit) / (high - low)  # divided first: a window of 2^1000 has no square
    below = limit - low
    mean = limit - (1 - atom) * below / 2
    square = (1 - atom) * below * below / 3  # the mean square of the way that is missing to the limit
    return Law(mean=mean, variance=square - (limit - mean) ** 2, atom_at_cap=atom)


class _Decorrelated:
    """The decorrelated rule on a grid from the base to the cap.

    With s the delay before, the next is min(cap, U(base, 3s)). So for any function g of a delay, what is
    expected of it one step later is `expected(g)(s)` = (integral of g from base to min(3s, cap), plus
    (3s - cap) g(cap) where that is positive) / (3s - base).
    """

    def __init__(self, rule: Backoff) -> None:
        self.base, self.cap = float(rule.base), float(rule.cap)
        self.grid = _grid(self.base, self.cap) if self.cap > self.base else [self.cap]

    def law(self, n: int) -> Law:
        require_count(n)
        mean = self._after(n, self.grid, self.cap)
        square = self._after(n, [s * s for s in self.grid], self.cap**2)
        atom = self._after(n, [0.0] * len(self.grid), 1.0)
        return Law(mean=mean, variance=max(0.0, square - mean * mean), atom_at_cap=atom)

    def total_law(self, retries: int) -> Law:
        """Look back from the last delay: the rest's mean and mean square, given the delay before."""
        if retries > MOST_DELAYS:
            raise RefusedRequestError(f"A decorrelated total is reckoned for up to {MOST_DELAYS:,} delays.")
        rest, rest_square = [0.0] * len(self.grid), [0.0] * len(self.grid)
        for _ in range(retries):
            with_rest = [s + r for s, r in zip(self.grid, rest, strict=True)]
            squared = [s * s + 2 * s * r + q for s, r, q in zip(self.grid, rest, rest_square, strict=True)]
            rest = self.expected(with_rest, with_rest[-1])
            rest_square = self.expected(squared, squared[-1])
        mean, square = rest[0], rest_square[0]  # the delay "before the first" is the base, grid[0]
        atom = 1.0 if self.cap <= self.base else 0.0
        return Law(mean=mean, variance=max(0.0, square - mean * mean), atom_at_cap=atom)

    def expected(self, values: list[float], at_cap: float) -> list[float]:
        """Give what is expected of g one delay later, for every delay of the grid."""
        if self.cap <= self.base:
            return [at_cap]
        upto = _cumulative(self.grid, values)
        area = _interpolated(self.grid, upto)
        return [
            (area(min(3 * s, self.cap)) + max(0.0, 3 * s - self.cap) * at_cap) / (3 * s - self.base)
            for s in self.grid
        ]

    def _after(self, n: int, values: list[float], at_cap: float) -> float:
        for _ in range(n):
            before, values = values, self.expected(values, at_cap)
            at_cap = values[-1]
            if max(map(abs, map(operator.sub, values, before))) <= SETTLED * max(map(abs, values)):
                break  # the law no longer depends on n
        return values[0]


def _grid(base: float, cap: float) -> list[float]:
    """Lay points from base to cap, with one on every kink: base * 3^k and cap / 3^k."""
    kinks = {base, cap}
    up, down = 3 * base, cap / 3
    while up < cap:
        kinks.add(up)
        up *= 3
    while down > base:
        kinks.add(down)
        down /= 3
    marks = sorted(kinks)
    points = [
        left + (right - left) * i / PANELS for left, right in itertools.pairwise(marks) for i in range(PANELS)
    ]
    return [*points, cap]


def _cumulative(grid: Sequence[float], values: Sequence[float]) -> list[float]:
    """Integrate from the grid's first point to each of its points, by trapezoids."""
    steps = (
        (b - a) * (x + y) / 2
        for (a, b), (x, y) in zip(itertools.pairwise(grid), itertools.pairwise(values), strict=True)
    )
    return [0.0, *itertools.accumulate(steps)]


def _interpolated(grid: Sequence[float], values: Sequence[float]) -> Callable[[float], float]:
    """Give the function that the points stand for; it is asked in ascending order only."""
    place = 0

    def at(x: float) -> float:
        nonlocal place
        while place < len(grid) - 2 and grid[place + 1] < x:
            place += 1
        a, b = grid[place], grid[place + 1]
        share = (x - a) / (b - a)
        return values[place] * (1 - share) + values[place + 1] * share

    return at
