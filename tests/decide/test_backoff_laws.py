"""What backoff rules do on average: closed forms against published values and against samples."""

from __future__ import annotations

import random

import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import (
    full_total_cdf,
    law,
    total_law,
    uncapped_decorrelated_mean,
)
from codeai_lab.errors import RefusedRequestError

TOTALS = [  # base 1, cap 20, 8 retries, jitter 1: mean and standard deviation of the total
    (Strategy.NO_BACKOFF, 0.0, 0.0),
    (Strategy.EXPONENTIAL, 91.0, 0.0),
    (Strategy.FULL, 45.5, 11.332),
    (Strategy.EQUAL, 68.25, 5.666),
    (Strategy.DECORRELATED, 64.95, 28.92),
    (Strategy.ADDITIVE, 95.0, 0.8165),
    (Strategy.ADDITIVE_CAP_AFTER, 93.5, 0.6455),
    (Strategy.PROPORTIONAL, 91.0, 22.664),
]


@pytest.mark.parametrize(("strategy", "mean", "sd"), TOTALS)
def test_totals_are_the_published_ones(strategy: Strategy, mean: float, sd: float) -> None:
    """Base 1, cap 20, eight retries: the totals of the reference table."""
    total = total_law(Backoff(strategy=strategy), 8)
    assert total.mean == pytest.approx(mean, abs=0.005)
    assert total.variance**0.5 == pytest.approx(sd, abs=0.005)


def test_the_decorrelated_atom_grows() -> None:
    """P(a decorrelated delay is exactly the cap): the published values, the third and fourth exact."""
    atoms = [law(Backoff(strategy=Strategy.DECORRELATED), n).atom_at_cap for n in range(1, 9)]
    assert atoms[:4] == pytest.approx([0, 0, 0.006417, 0.103946], abs=1e-6)
    assert atoms[4:] == pytest.approx([0.210, 0.284, 0.332, 0.362], abs=5e-4)


@pytest.mark.parametrize(("cap", "atom"), [(5, 0.583), (10, 0.483), (20, 0.413)])
def test_the_decorrelated_atom_settles(cap: float, atom: float) -> None:
    """After many delays a quarter to a half of them are exactly the cap, by cap over base."""
    settled = law(Backoff(strategy=Strategy.DECORRELATED, cap=cap), 10**6)
    assert settled.atom_at_cap == pytest.approx(atom, abs=5e-4)


def test_decorrelated_without_a_cap_has_a_closed_form() -> None:
    """Where the cap is out of reach the quadrature gives base (2 * 1.5^n - 1), and its known spread."""
    far = Backoff(strategy=Strategy.DECORRELATED, cap=1e6)
    found = [law(far, n) for n in range(1, 5)]
    assert [one.mean for one in found] == pytest.approx([2, 3.5, 5.75, 9.125], rel=1e-6)
    assert [uncapped_decorrelated_mean(1, n) for n in range(1, 5)] == [2, 3.5, 5.75, 9.125]
    assert [one.variance**0.5 for one in found] == pytest.approx([0.577, 1.76, 4.10, 8.50], rel=3e-3)


def test_a_cap_below_the_base_is_all_there_is() -> None:
    """With the cap below the base every decorrelated delay is the cap."""
    small = Backoff(strategy=Strategy.DECORRELATED, base=5, cap=2)
    assert (law(small, 3).mean, law(small, 3).variance, law(small, 3).atom_at_cap) == (2, 0, 1)
    assert total_law(small, 4).mean == 8


@pytest.mark.parametrize(
    ("x", "share"), [(1, 1 / 48), (2, 0.145833), (3.5, 0.5), (5, 0.854167), (7, 1), (0, 0)]
)
def test_the_exact_distribution_of_a_full_total(x: float, share: float) -> None:
    """Windows 1, 2 and 4: the exact share of totals up to x."""
    assert full_total_cdf([1, 2, 4], x) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("windows", [[], [1.0] * 13, [1.0, 0.0]])
def test_the_exact_distribution_knows_its_limit(windows: list[float]) -> None:
    """More than 12 windows, or one of length 0, is refused, since doubles no longer carry the sum."""
    with pytest.raises(RefusedRequestError, match="1 to 12 windows"):
        full_total_cdf(windows, 1.0)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("jitter", [0.3, 1.0])
def test_samples_agree_with_the_laws(strategy: Strategy, jitter: float) -> None:
    """4,000 sampled sequences of six delays agree with the closed forms, each within 5 standard errors."""
    rule, dice, count, retries = Backoff(strategy=strategy, jitter=jitter), random.Random(20261130), 4_000, 6
    sampled: list[list[float]] = []
    for _ in range(count):
        delays: list[float] = []
        for n in range(1, retries + 1):
            delays.append(rule.delay(n, dice.random(), delays[-1] if delays else None))
        sampled.append(delays)
    for n in range(1, retries + 1):
        known = law(rule, n)
        found = [delays[n - 1] for delays in sampled]
        se = (known.variance / count) ** 0.5
        assert sum(found) / count == pytest.approx(known.mean, abs=5 * se + 1e-5)
        atom = sum(value == rule.cap for value in found) / count
        se = (known.atom_at_cap * (1 - known.atom_at_cap) / count) ** 0.5
        assert atom == pytest.approx(known.atom_at_cap, abs=5 * se + 1e-9)
    total = total_law(rule, retries)
    mean = sum(map(sum, sampled)) / count
    assert mean == pytest.approx(total.mean, abs=5 * (total.variance / count) ** 0.5 + 1e-4)
    spread = sum((sum(delays) - mean) ** 2 for delays in sampled) / (count - 1)
    assert spread == pytest.approx(total.variance, rel=0.12, abs=1e-4)


@pytest.mark.parametrize("bad", [0, True, 1.5])
def test_totals_count_retries(bad: object) -> None:
    """A total is of a whole number of delays from 1."""
    for strategy in (Strategy.FULL, Strategy.DECORRELATED):
        with pytest.raises(RefusedRequestError, match="counted by whole numbers"):
            total_law(Backoff(strategy=strategy), bad)  # type: ignore[arg-type]


def test_a_decorrelated_total_has_a_bound() -> None:
    """A quadrature of more than 1,000 delays is refused rather than left running."""
    with pytest.raises(RefusedRequestError, match="up to 1,000"):
        total_law(Backoff(strategy=Strategy.DECORRELATED), 1_001)
