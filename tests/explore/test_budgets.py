"""The accounts that hold retries back, one rule after another."""

from __future__ import annotations

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.budgets import (
    AdaptiveThrottling,
    Budget,
    CircuitBreaker,
    RequestFunded,
    RetryQuota,
    SuccessFunded,
)


def retries_let(budget: Budget, at: float, asked: int) -> int:
    return sum(budget.lets_retry(at) for _ in range(asked))


def test_what_says_nothing_lets_everything_through() -> None:
    """The plain budget forbids nothing, whatever it hears."""
    budget = Budget()
    for _ in range(100):
        budget.asked(0)
        budget.failed(0)
    assert retries_let(budget, 1, 5) == 5
    assert budget.lets_send(1, 0.0)


def test_requests_pay_for_a_share_of_retries() -> None:
    """At 25 %, twenty requests pay for five retries, and the sixth has to wait for more."""
    budget = RequestFunded(0.25)
    for _ in range(20):
        budget.asked(0.5)
    assert retries_let(budget, 0.6, 9) == 5
    for _ in range(4):
        budget.asked(1.5)
    assert retries_let(budget, 1.6, 9) == 1


def test_what_requests_paid_is_gone_after_ten_seconds() -> None:
    """A long quiet time does not pay for a burst of retries."""
    budget = RequestFunded(0.5)
    for second in range(100):
        budget.asked(second)
    assert retries_let(budget, 99.5, 100) == 5
    budget = RequestFunded(0.5)
    for _ in range(10):
        budget.asked(0)
    assert retries_let(budget, 9.99, 1) == 1
    assert retries_let(budget, 10.0, 1) == 0
    assert retries_let(budget, 1_000.0, 1) == 0


def test_failures_empty_the_bucket_and_successes_fill_it() -> None:
    """Retries stop after 50 failures of 100 tokens, and come back with the successes, ten to a token."""
    budget = SuccessFunded(100, 0.1)
    for _ in range(49):
        budget.failed(0)
    assert budget.lets_retry(0)
    budget.failed(0)
    assert not budget.lets_retry(0)
    for _ in range(10):
        budget.answered(0)
    assert budget.lets_retry(0)


def test_a_bucket_has_a_bottom_and_a_brim() -> None:
    """Neither many failures nor many successes leave the bounds."""
    budget = SuccessFunded(100, 0.1)
    for _ in range(5_000):
        budget.answered(0)
    assert budget.tokens == 100
    for _ in range(5_000):
        budget.failed(0)
    assert budget.tokens == 0


@pytest.mark.parametrize(("cost", "retries"), [(5, 100), (14, 35)])
def test_a_quota_is_spent_by_retries_alone(cost: float, retries: int) -> None:
    """500 tokens are 100 retries at 5, or 35 at 14; each success gives one token back."""
    budget = RetryQuota(500, cost)
    for _ in range(1_000):
        budget.failed(0)
    assert retries_let(budget, 0, 1_000) == retries
    for _ in range(int(cost)):
        budget.answered(0)
    assert retries_let(budget, 0, 1_000) == 1
    for _ in range(5_000):
        budget.answered(0)
    assert budget.tokens == 500


def test_throttling_refuses_by_what_was_accepted_lately() -> None:
    """With everything accepted nothing is refused; with nothing accepted, nearly everything is."""
    budget = AdaptiveThrottling(2)
    for _ in range(100):
        assert budget.lets_send(0, 0.0)
        budget.answered(0)
    for _ in range(98):
        budget.lets_send(1, 0.0)
    assert budget.lets_send(1, 0.0)  # 198 requests, 2 x 100 accepted
    for _ in range(1_000):
        budget.lets_send(60, 0.0)
    assert not budget.lets_send(60, 0.8)
    assert budget.lets_send(60, 0.9)
    assert budget.lets_send(300, 0.0)  # two minutes later all of that is forgotten


def test_a_breaker_opens_probes_and_closes() -> None:
    """After 20 failures in a row one attempt in 5 s may pass; one success closes it again."""
    budget = CircuitBreaker(20, 5.0)
    for _ in range(19):
        budget.failed(1.0)
    budget.answered(1.0)
    for _ in range(20):
        assert budget.lets_send(1.0, 0.5)
        budget.failed(1.0)
    assert [budget.lets_send(at, 0.5) for at in (1.0, 5.9, 6.0, 6.1, 10.9, 11.0)] == [
        False, False, True, False, False, True,
    ]  # fmt: skip
    budget.failed(11.5)
    assert not budget.lets_send(12.0, 0.5)
    budget.answered(13.0)
    assert budget.lets_send(13.0, 0.5)


def test_wrong_measures_are_refused() -> None:
    """A ratio below 0, no ratio, and a K below 1."""
    for wrong in (-0.1, float("nan")):
        with pytest.raises(RefusedRequestError, match="ratio"):
            RequestFunded(wrong)
    with pytest.raises(RefusedRequestError, match="K is"):
        AdaptiveThrottling(0.9)
