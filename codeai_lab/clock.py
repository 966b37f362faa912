"""What time is it, and how much of it is left?

Chapter: 000, sections on deadlines; 004 needs time only to order what was recorded.

Idea: time is handed in. A program that asks the clock of the machine cannot be replayed, so everything
that needs the time takes a `Clock`; the lessons use a `ManualClock`, whose readings are the same on every
run.

Always true:
  K1. An instant is an integer of microseconds since 1970-01-01 UTC (`_us`); a timeout is a duration, a
      deadline an instant.
  K2. A clock's readings never go backwards.
  K3. The remaining time of a deadline is never negative.

Not here: waiting (nothing in this package sleeps on its own).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now_us(self) -> int:
        """Give the present instant in microseconds since the epoch, UTC; never less than before."""
        ...


class SystemClock:
    """The machine's clock, held so that it never runs backwards when somebody sets it."""

    def __init__(self) -> None:
        self._latest_us = 0

    def now_us(self) -> int:
        self._latest_us = max(self._latest_us, time.time_ns() // 1000)
        return self._latest_us


class ManualClock:
    """A clock that moves only when told to, and by `tick_us` after each reading.

    Example:
        >>> clock = ManualClock(start_us=100, tick_us=10)
        >>> clock.now_us(), clock.now_us()
        (100, 110)
    """

    def __init__(self, *, start_us: int = 1_000_000, tick_us: int = 0) -> None:
        if tick_us < 0:
            raise ValueError("a clock does not tick backwards")
        self._now_us = start_us
        self._tick_us = tick_us

    def now_us(self) -> int:
        now_us = self._now_us
        self._now_us += self._tick_us
        return now_us

    def advance(self, by_us: int) -> None:
        """Move on by a duration in microseconds, zero or more."""
        if by_us < 0:
            raise ValueError("a clock does not run backwards")
        self._now_us += by_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """An instant by which something must be over.

    Example:
        >>> Deadline.after(timeout_us=500, now_us=1_000).remaining_us(now_us=1_400)
        100
    """

    at_us: int

    @classmethod
    def after(cls, *, timeout_us: int, now_us: int) -> Deadline:
        """Give the deadline that lies a timeout, zero or more, after an instant."""
        if timeout_us < 0:
            raise ValueError("a timeout is zero or more")
        return cls(at_us=now_us + timeout_us)

    def remaining_us(self, *, now_us: int) -> int:
        """Give what is left, zero when it has passed."""
        return max(0, self.at_us - now_us)

    def has_passed(self, *, now_us: int) -> bool:
        """Say whether nothing is left; the instant itself counts as passed."""
        return now_us >= self.at_us
