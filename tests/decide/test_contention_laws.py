"""What theory says of contention, held against the reference runs of the study's model."""

from __future__ import annotations

import pytest

from codeai_lab.decide.contention_laws import (
    calls_per_n_log_n,
    mean_gap_ms,
    one_after_another,
    without_backoff,
)
from codeai_lab.errors import RefusedRequestError


@pytest.mark.parametrize(("clients", "gap"), [(10, 23.2), (50, 18.5), (100, 17.3), (190, 16.4)])
def test_the_gap_between_commits_shrinks_slowly(clients: int, gap: float) -> None:
    """The mean gap between two commits, by the number of clients that are left."""
    assert mean_gap_ms(clients) == pytest.approx(gap, abs=0.05)


def test_two_clients_wait_for_each_other() -> None:
    """With two clients the gap is nearly a window and half a cycle: 20 + 20 ms, less the smoothing of 0.2."""
    assert mean_gap_ms(2) == pytest.approx(39.8, abs=0.05)


@pytest.mark.parametrize(
    ("clients", "calls", "time_ms"),
    [(50, 631, 1_047), (100, 2_307, 1_939), (190, 7_785, 3_449), (500, 49_436, 8_300)],
)
def test_without_backoff_theory_gives_calls_and_time(clients: int, calls: float, time_ms: float) -> None:
    """Calls and time of clients that never wait, within a thousandth and a half of the published theory."""
    assert without_backoff(clients) == pytest.approx((calls, time_ms), rel=1.5e-3)


def test_a_perfect_schedule_makes_one_call_each() -> None:
    """The yardstick: N calls, 20 ms each."""
    assert one_after_another(100) == (100, 2_000)


def test_equal_jitter_grows_as_n_log_n() -> None:
    """The reference runs of equal jitter at 50, 100 and 190 clients share one factor, 1.22 to 1.23."""
    reference = [(347.3, 50), (812.6, 100), (1_761.0, 190)]
    assert [calls_per_n_log_n(*one) for one in reference] == pytest.approx([1.231, 1.223, 1.224], abs=1e-3)


@pytest.mark.parametrize("bad", [0, -1, True, 1.0])
def test_clients_are_counted(bad: object) -> None:
    """What is no whole number from 1 counts no clients."""
    with pytest.raises(RefusedRequestError, match="whole number from 1"):
        mean_gap_ms(bad)  # type: ignore[arg-type]
