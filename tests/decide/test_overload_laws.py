"""What theory says of retries under load, against numbers that were derived or published."""

from __future__ import annotations

import itertools

import pytest

from codeai_lab.decide.overload_laws import (
    backlog_after_trigger,
    break_even_failure_share,
    closed_healthy,
    closed_overload,
    harmless_trigger_s,
    hedged_quantile,
    hedged_share,
    hidden_capacity,
    layered_calls,
    layered_failure,
    recovery_after_cut_s,
    recovery_s,
    recovery_sd_s,
    request_funded_load,
    smallest_trigger_s,
    sustained_load,
    throttled_load,
)
from codeai_lab.errors import RefusedRequestError


def recovery(first_tries: float, retries: int) -> float | None:
    return recovery_s(first_tries, retries=retries, capacity=300, trigger_s=10, timeout_s=1)


def test_the_published_setting_sustains_twice_its_load() -> None:
    """280 first tries with one retry hold the load at 560, and only below 150 an overload dies down."""
    assert sustained_load(280, 1) == 560
    assert hidden_capacity(300, 1) == 150
    assert sustained_load(280, 3) == 1_120


@pytest.mark.parametrize(
    ("first_tries", "retries", "seconds"),
    [(280, 0, 125), (140, 1, 118), (120, 1, 33), (280, 1, None), (150, 1, None), (100, 0, 3.5)],
)
def test_recovery_takes_the_backlog_over_the_spare_capacity(
    first_tries: float, retries: int, seconds: float | None
) -> None:
    """Where 1 + R times the load is below the capacity the time is known; at and above it, there is none."""
    assert recovery(first_tries, retries) == seconds


def test_recovery_scatters_more_where_less_is_spare() -> None:
    """The standard deviation is the noise of what came, over the spare capacity."""
    assert recovery_sd_s(280, retries=0, capacity=300, trigger_s=10, recovery=125) == pytest.approx(
        9.72, abs=0.01
    )
    assert recovery_sd_s(120, retries=1, capacity=300, trigger_s=10, recovery=33) == pytest.approx(
        2.39, abs=0.01
    )


@pytest.mark.parametrize(("cut_to", "seconds"), [(50, 116.1), (100, 232.2), (140, 1161), (160, None)])
def test_a_cut_below_the_hidden_capacity_is_necessary_and_not_quick(
    cut_to: float, seconds: float | None
) -> None:
    """The later the cut, the more has piled up; at 140 it takes twenty minutes, at 160 it never ends."""
    found = recovery_after_cut_s(
        280, cut_to, retries=1, capacity=300, trigger_s=10, timeout_s=1, cut_after_s=70
    )
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_a_cut_at_once_is_a_lower_load_from_the_trigger_on() -> None:
    """With no time between trigger and cut, only the backlog is that of the higher load."""
    queue = backlog_after_trigger(280, retries=1, trigger_s=10, timeout_s=1)
    assert queue == 280 * 19
    found = recovery_after_cut_s(280, 100, retries=1, capacity=300, trigger_s=10, timeout_s=1, cut_after_s=0)
    assert found == (queue - 300) / 100


@pytest.mark.parametrize(("first_tries", "seconds"), [(280, 1.036), (200, 1.25), (150, 1.5), (300, 1.0)])
def test_the_smallest_trigger(first_tries: float, seconds: float) -> None:
    """The nearer the load to the capacity, the nearer is the smallest stop to the timeout."""
    assert smallest_trigger_s(first_tries, capacity=300, timeout_s=1) == pytest.approx(seconds, abs=5e-4)


def test_a_stop_of_little_more_than_the_timeout_may_do_no_harm() -> None:
    """It is never longer than the smallest trigger; both are 1.5 s at half the capacity."""
    for first_tries in range(150, 301, 10):
        known = {"capacity": 300.0, "timeout_s": 1.0}
        harmless = harmless_trigger_s(first_tries, **known)
        assert 1 <= harmless <= smallest_trigger_s(first_tries, **known) + 1e-12
    assert harmless_trigger_s(150, capacity=300, timeout_s=1) == pytest.approx(1.5)
    assert harmless_trigger_s(280, capacity=300, timeout_s=1) == pytest.approx(1.0048, abs=1e-4)


def test_a_budget_funded_by_requests_is_a_smaller_number_of_retries() -> None:
    """5, 10 and 20 % at 280 make 294, 308 and 336: only the first is below 300, and hardly so."""
    assert [request_funded_load(280, ratio) for ratio in (0.05, 0.1, 0.2)] == pytest.approx([294, 308, 336])
    assert [request_funded_load(240, ratio) for ratio in (0.1, 0.2)] == pytest.approx([264, 288])


def test_the_other_limits() -> None:
    """Success-funded: 9.1 % failures break even at 0.1. Throttled: K times what is accepted, or all of it."""
    assert break_even_failure_share(0.1) == pytest.approx(0.0909, abs=1e-4)
    assert [throttled_load(1_000, 100, k) for k in (2, 1.5, 1.1)] == pytest.approx([200, 150, 110])
    assert throttled_load(150, 100, 2) == 150


def test_a_closed_system_is_limited_by_its_clients() -> None:
    """400 clients that never wait make 400 attempts a second, and answered ones fewer than 400 / 1.5."""
    assert closed_overload(400, 1.0) == 400
    assert 262 < closed_healthy(400, 1.5, 0.02) < 400 / 1.5


@pytest.mark.parametrize(
    ("layers", "attempts", "failure", "calls"),
    [
        (3, 4, 1.0, 64),
        (5, 3, 1.0, 243),
        (4, 3, 1.0, 81),
        (4, 4, 1.0, 256),
        (1, 3, 0.5, 1.75),
        (3, 3, 0.9, 9.4185),
        (3, 4, 0.5, 2.0),
        (2, 4, 0.8, 4.8593),
        (2, 4, 0.0, 1.0),
    ],
)
def test_layers_multiply(layers: int, attempts: int, failure: float, calls: float) -> None:
    """Published totals, four owners read both ways, and what partial failure leaves of them."""
    assert layered_calls(layers, attempts, failure) == pytest.approx(calls, abs=1e-4)


@pytest.mark.parametrize(("layers", "attempts"), [*itertools.product((1, 2, 3), repeat=2)])
@pytest.mark.parametrize("failure", [0.2, 0.9])
def test_the_product_over_the_layers_telescopes(layers: int, attempts: int, failure: float) -> None:
    """Going up layer by layer, each asking the one below until it is answered, gives the same numbers."""
    calls, fails = 1.0, failure
    for _ in range(layers):
        calls, fails = calls * sum(fails**k for k in range(attempts)), fails**attempts
    assert layered_calls(layers, attempts, failure) == pytest.approx(calls)
    assert layered_failure(layers, attempts, failure) == pytest.approx(fails)


@pytest.mark.parametrize("wrong", [(0, 3, 0.5), (3, 0, 0.5), (True, 3, 0.5), (3, 3, 1.5), (3, 3, -0.1)])
def test_no_layers_and_no_probability_are_refused(wrong: tuple[int, int, float]) -> None:
    """Counts from 1, a probability from 0 to 1."""
    with pytest.raises(RefusedRequestError):
        layered_calls(*wrong)


@pytest.mark.parametrize(
    ("after", "share", "rare"),
    [(0.5, 0.6065, 3.704), (1, 0.3679, 3.954), (3, 0.0498, 4.954), (9, 0.0001, 6.908)],
)
def test_a_hedge_pays_for_the_tail(after: float, share: float, rare: float) -> None:
    """Extra load e^-d; the 99.9th percentile is (ln 1000 + d) / 2, or ln 1000 where it comes too late."""
    assert hedged_share(after) == pytest.approx(share, abs=5e-5)
    assert hedged_quantile(after, 0.001) == pytest.approx(rare, abs=5e-4)
