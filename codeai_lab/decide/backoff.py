"""How long should a program wait before it tries again?

Chapter: 000, sections 15.7 and 15.8: a bounded policy samples its delay; it never sleeps by itself.

Idea: every rule of this kind draws one number evenly from a span and clamps it. Which span, and whether the
cap is applied before or after the draw, is all that tells the rules apart, so a rule is a row of a table. The
draw is handed in: the same draws give the same delays.

Always true:
  BO1. n = 1 is the first retry, not the first attempt; a delay has the unit of `base` and `cap`.
  BO2. No delay is above the cap, but those of PROPORTIONAL and ADDITIVE, which clamp before they draw, and
       an upstream minimum.
  BO3. Any n that fits in memory has an answer: no overflow, not even at n = 1,000,000.
  BO4. The chapter's rule answers whole milliseconds and refuses what is no safe whole number, booleans among
       it.

Not here: closed forms (`decide.backoff_laws`), samples by the million (`explore.sleeps`), whether a retry is
safe at all (`decide.projection`, the rest of the package).

Sources: the strategies are named as in the well-known jitter study; the places of the cap are those that
libraries in use have (`lessons.libraries`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeGuard

from codeai_lab.errors import RefusedRequestError

LARGEST_SAFE = 2**53 - 1
LONGEST_WINDOW = 2.0**1000  # the window of a rule that clamps after the draw is reckoned no further than this
LAST_EXPONENT = 30  # the chapter's rule doubles no further


class Strategy(StrEnum):
    """How the span is laid; w is min(cap, base * 2^(n-1)), W the same without the cap, j the jitter."""

    NO_BACKOFF = "no-backoff"  # 0
    EXPONENTIAL = "exponential"  # w
    FULL = "full"  # from 0 to w
    EQUAL = "equal"  # from w/2 to w
    DECORRELATED = "decorrelated"  # from base to 3 * the previous delay, clamped
    ADDITIVE = "additive"  # from w to w + j: the cap before the jitter
    ADDITIVE_CAP_AFTER = "additive-cap-after"  # from W to W + j, clamped
    MULTIPLICATIVE = "multiplicative"  # from w(1-j) to w
    MULTIPLICATIVE_CAP_AFTER = "multiplicative-cap-after"  # from W(1-j) to W, clamped
    PROPORTIONAL = "proportional"  # from w(1-j) to w(1+j)


@dataclass(frozen=True, slots=True)
class Span:
    """One even draw from `low` to `high`, clamped at `limit` afterwards."""

    low: float
    high: float
    limit: float = math.inf

    def at(self, draw: float) -> float:
        """Give the delay for a draw from [0, 1)."""
        return min(self.limit, self.low + (self.high - self.low) * draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """One rule.

    Args:
        base: the first window, above 0, in any unit of time.
        cap: the longest window, above 0; below `base` it wins from the start.
        jitter: j; a time for the additive rules, a share of the window from 0 to 1 for the multiplicative
            and proportional ones, without meaning for the others.

    Raises: RefusedRequestError (definite) for other values.
    """

    strategy: Strategy
    base: float = 1.0
    cap: float = 20.0
    jitter: float = 1.0

    def __post_init__(self) -> None:
        for name in ("base", "cap"):
            _require_time(name, getattr(self, name), above_zero=True)
        _require_time("jitter", self.jitter)
        if self.strategy not in (Strategy.ADDITIVE, Strategy.ADDITIVE_CAP_AFTER) and self.jitter > 1:
            raise RefusedRequestError("A jitter that is a share of the window lies between 0 and 1.")

    def delay(self, n: int, draw: float, previous: float | None = None) -> float:
        """Give the wait before the n-th retry.

        Args:
            n: counted from 1.
            draw: a number from [0, 1), drawn evenly by the caller.
            previous: the delay before, for the decorrelated rule; None before the first.

        Raises: RefusedRequestError (definite) for an n below 1 and a draw outside [0, 1).
        """
        _require_draw(draw)
        return self.span(n, previous).at(draw)

    def span(self, n: int, previous: float | None = None) -> Span:
        """Give the span that the n-th delay is drawn from."""
        window = self.window(n)
        j = self.jitter
        match self.strategy:
            case Strategy.NO_BACKOFF:
                return Span(0.0, 0.0)
            case Strategy.EXPONENTIAL:
                return Span(window, window)
            case Strategy.FULL:
                return Span(0.0, window)
            case Strategy.EQUAL:
                return Span(window / 2, window)
            case Strategy.DECORRELATED:
                return Span(self.base, 3 * (self.base if previous is None else previous), self.cap)
            case Strategy.ADDITIVE:
                return Span(window, window + j)
            case Strategy.MULTIPLICATIVE:
                return Span(window * (1 - j), window)
            case Strategy.PROPORTIONAL:
                return Span(window * (1 - j), window * (1 + j))
        unclamped = _doubled(self.base, n - 1, LONGEST_WINDOW)
        if self.strategy is Strategy.ADDITIVE_CAP_AFTER:
            return Span(unclamped, unclamped + j, self.cap)
        return Span(unclamped * (1 - j), unclamped, self.cap)

    def window(self, n: int) -> float:
        """Give w: the base, doubled n - 1 times, never above the cap."""
        require_count(n)
        return _doubled(self.base, n - 1, self.cap)


def chapter_delay_ms(
    attempts: int, *, base_ms: int, maximum_ms: int, jitter: float, retry_after_ms: int | None = None
) -> int:
    """Give the chapter's delay: floor(jitter * window), or the upstream minimum where that is longer.

    Args:
        attempts: attempts begun so far, the first one included, so that 1 gives the window `base_ms`.
        jitter: a draw from [0, 1).
        retry_after_ms: a validated duration that the other side asked for; it may exceed the cap.

    Returns: milliseconds.
    Raises: RefusedRequestError (definite) for a budget that is no safe whole number from 1, an upstream
        minimum that is none from 0, and a draw outside [0, 1).
    """
    for name, value, least in (
        ("number of attempts", attempts, 1),
        ("base delay", base_ms, 1),
        ("maximum delay", maximum_ms, 1),
        ("upstream minimum", 0 if retry_after_ms is None else retry_after_ms, 0),
    ):
        if type(value) is not int or not least <= value <= LARGEST_SAFE:
            raise RefusedRequestError(
                f"The {name} must be a whole number from {least} to {LARGEST_SAFE:,}, and not a boolean."
            )
    _require_draw(jitter)
    window = min(maximum_ms, base_ms << min(attempts - 1, LAST_EXPONENT))
    return max(math.floor(jitter * window), retry_after_ms or 0)


def _doubled(base: float, times: int, limit: float) -> float:
    """Give base * 2^times, never above the limit, without ever reckoning a number beyond it by much."""
    enough = math.frexp(limit)[1] - math.frexp(base)[1] + 1  # so many doublings reach the limit for certain
    return limit if times >= enough else min(limit, math.ldexp(base, times))


def require_count(n: object) -> None:
    """Refuse what does not count retries, booleans and floats among it."""
    if type(n) is not int or n < 1:
        raise RefusedRequestError("Retries are counted by whole numbers from 1.")


def _require_draw(draw: object) -> None:
    if not _is_number(draw) or not 0 <= draw < 1:
        raise RefusedRequestError("A draw is a number from 0 up to, and without, 1.")


def _require_time(name: str, value: object, *, above_zero: bool = False) -> None:
    if not _is_number(value) or not 0 <= value <= LONGEST_WINDOW or (above_zero and value == 0):
        least = "above 0" if above_zero else "from 0"
        raise RefusedRequestError(f"The {name} must be a number {least}, and not beyond all reckoning.")


def _is_number(value: object) -> TypeGuard[float]:
    """Say whether a value is a number; True and False are none, and no time either."""
    return isinstance(value, int | float) and not isinstance(value, bool)
