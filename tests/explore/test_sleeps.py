"""The waits of many clients at once: their laws, and how well they are spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import full_total_cdf, law
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.sleeps import busiest_share, sleeps

CLIENTS = 5_000
KS_AT_ONE_IN_10_000 = 2.23 / math.sqrt(CLIENTS)  # the bound of Kolmogorov's statistic for this many


def ks(values: np.ndarray, cdf: np.ndarray) -> float:
    """Give the largest distance between an empirical distribution and the values of its own cdf."""
    places = np.arange(1, len(values) + 1) / len(values)
    return float(np.maximum(places - cdf, cdf - places + 1 / len(values)).max())


@pytest.mark.parametrize(
    "strategy", [Strategy.FULL, Strategy.EQUAL, Strategy.ADDITIVE, Strategy.PROPORTIONAL]
)
def test_a_continuous_wait_is_even_over_its_span(strategy: Strategy) -> None:
    """Kolmogorov and Smirnov, per retry: the wait is even over its span."""
    rule = Backoff(strategy=strategy, jitter=0.5)
    waits = sleeps(rule, retries=8, clients=CLIENTS, seed=20261130)
    for n in range(1, 9):
        span = rule.span(n)
        ordered = np.sort(waits[:, n - 1])
        assert ks(ordered, (ordered - span.low) / (span.high - span.low)) < KS_AT_ONE_IN_10_000


def test_totals_of_full_jitter_have_the_exact_distribution() -> None:
    """Windows 1, 2, 4 and 8: the totals against the exact distribution of their sum."""
    waits = sleeps(Backoff(strategy=Strategy.FULL), retries=4, clients=CLIENTS, seed=20261130)
    ordered = np.sort(waits.sum(axis=1))
    exact = np.array([full_total_cdf([1, 2, 4, 8], float(total)) for total in ordered])
    assert ks(ordered, exact) < KS_AT_ONE_IN_10_000


@pytest.mark.parametrize(
    "strategy", [Strategy.DECORRELATED, Strategy.ADDITIVE_CAP_AFTER, Strategy.MULTIPLICATIVE_CAP_AFTER]
)
def test_the_atom_at_the_cap_is_binomial(strategy: Strategy) -> None:
    """The share of waits that are exactly the cap, per retry, within 4.5 binomial standard errors."""
    rule = Backoff(strategy=strategy)
    waits = sleeps(rule, retries=8, clients=20_000, seed=20261130)
    for n in range(1, 9):
        atom = law(rule, n).atom_at_cap
        share = float((waits[:, n - 1] == rule.cap).mean())
        assert share == pytest.approx(atom, abs=4.5 * math.sqrt(atom * (1 - atom) / 20_000) + 1e-9)


@pytest.mark.parametrize(
    ("strategy", "jitter", "share"),
    [
        (Strategy.EXPONENTIAL, 1.0, 1.0),
        (Strategy.ADDITIVE_CAP_AFTER, 1.0, 0.551),
        (Strategy.ADDITIVE, 1.0, 0.452),
        (Strategy.PROPORTIONAL, 0.2, 0.086),
        (Strategy.EQUAL, 1.0, 0.068),
        (Strategy.FULL, 1.0, 0.035),
        (Strategy.DECORRELATED, 1.0, 0.012),
    ],
)
def test_a_crowd_is_spread_as_published(strategy: Strategy, jitter: float, share: float) -> None:
    """The share of a crowd's eighth retries in the busiest second, base 1 and cap 20."""
    waits = sleeps(Backoff(strategy=strategy, jitter=jitter), retries=8, clients=100_000, seed=1)
    assert busiest_share(waits.sum(axis=1)) == pytest.approx(share, abs=0.003)


def test_the_same_seed_gives_the_same_waits() -> None:
    """The same seed and rule give the same bytes; another seed others; more clients keep the first ones."""
    full = Backoff(strategy=Strategy.FULL)
    first = sleeps(full, retries=3, clients=10, seed=1)
    assert first.tobytes() == sleeps(full, retries=3, clients=10, seed=1).tobytes()
    assert first.tobytes() != sleeps(full, retries=3, clients=10, seed=2).tobytes()
    assert (sleeps(full, retries=3, clients=20, seed=1)[:10] == first).all()


@pytest.mark.parametrize("bad", [0, True, 1.5])
def test_clients_and_retries_are_counted(bad: object) -> None:
    """What counts nothing is refused."""
    with pytest.raises(RefusedRequestError):
        sleeps(Backoff(strategy=Strategy.FULL), retries=bad, clients=1, seed=1)  # type: ignore[arg-type]
    with pytest.raises(RefusedRequestError):
        sleeps(Backoff(strategy=Strategy.FULL), retries=1, clients=bad, seed=1)  # type: ignore[arg-type]


def test_the_busiest_window_is_found_wherever_it_lies() -> None:
    """A window may start anywhere; its end does not belong to it."""
    assert busiest_share(np.array([0.0, 0.5, 0.9, 1.0, 5.0])) == 0.6
    assert busiest_share(np.array([3.0])) == 1.0
