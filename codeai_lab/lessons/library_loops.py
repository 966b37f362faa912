"""What waits come out of the retry loops that a library puts around any function?

Chapter: 000, section 15.7.

Idea: each function here drives one loop of one library around a function that fails every time, and gives
the waits that the library asked for. The loop is the library's own. Base 1, factor 2, cap 20, jitter 1 and
eight retries.

Always true:
  LO1. Nobody sleeps, and nothing outside the process is asked.
  LO2. A library is imported when its loop is driven, and not before.

Not here: loops around a request (`lessons.library_requests`), what stands in for clock and chance
(`lessons.library_standins`), the same waits as formulas (`explore.library_laws`), the rows
(`lessons.libraries`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from codeai_lab.explore.library_laws import BASE, CAP, JITTER, RETRIES
from codeai_lab.lessons.library_standins import standing_in

ATTEMPTS = RETRIES + 1


class StillFailingError(Exception):
    """What the driven call raises, every time."""


def fail() -> None:
    raise StillFailingError


def tenacity(wait: str, **limits: float) -> Callable[[Random], list[float]]:
    """Drive tenacity with one of its waits, by name; its sleep is a parameter."""

    def drive(chance: Random) -> list[float]:
        import tenacity as library

        waited: list[float] = []
        retrying = library.Retrying(
            wait=getattr(library, wait)(multiplier=BASE, max=CAP, **limits),
            stop=library.stop_after_attempt(ATTEMPTS),
            sleep=waited.append,
        )
        with standing_in(chance, "tenacity.wait:random"), suppress(library.RetryError):
            retrying(fail)
        return waited

    return drive


def stamina(chance: Random) -> list[float]:
    """Drive stamina, which waits through tenacity; its limit of time is switched off."""
    import stamina as library

    caller = library.RetryingCaller(
        attempts=ATTEMPTS, timeout=None, wait_initial=BASE, wait_max=CAP, wait_jitter=JITTER, wait_exp_base=2
    )
    as_it_comes = {"is_active": True, "testing": None, "on_retry": ()}  # and no hook that would log
    with (
        standing_in(
            chance, "tenacity.nap:time", "stamina._core:random", instead={"stamina._core:CONFIG": as_it_comes}
        ) as waited,
        suppress(StillFailingError),
    ):
        caller(StillFailingError, fail)
    return waited


def backoff(jitter: str) -> Callable[[Random], list[float]]:
    """Drive backoff with one of its jitters, by name."""

    def drive(chance: Random) -> list[float]:
        import backoff as library

        driven = library.on_exception(
            library.expo,
            StillFailingError,
            max_tries=ATTEMPTS,
            jitter=getattr(library, jitter),
            logger=None,
            base=2,
            factor=BASE,
            max_value=CAP,
        )(fail)
        with (
            standing_in(chance, "backoff._sync:time", "backoff._jitter:random") as waited,
            suppress(StillFailingError),
        ):
            driven()
        return waited

    return drive


def google_api_core(chance: Random) -> list[float]:
    """Drive google-api-core, which counts no attempts: its deadline is off and the ninth failure final."""
    from google.api_core.retry import Retry

    failures = iter(range(1, ATTEMPTS + 1))
    driven = Retry(
        predicate=lambda _: next(failures) < ATTEMPTS, initial=BASE, maximum=CAP, multiplier=2, timeout=None
    )(fail)
    with (
        standing_in(
            chance, "google.api_core.retry.retry_unary:time", "google.api_core.retry.retry_base:random"
        ) as waited,
        suppress(StillFailingError),
    ):
        driven()
    return waited
