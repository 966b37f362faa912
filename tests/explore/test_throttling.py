"""Adaptive throttling before a backend that takes only so much."""

from __future__ import annotations

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.throttling import throttle


@pytest.mark.parametrize(("k", "load"), [(2.0, 200), (1.5, 150)])
def test_the_backend_sees_k_times_what_it_accepts(k: float, load: float) -> None:
    """Of 500 a second, K times 100 come to the backend, which accepts 100."""
    found = throttle(demand=500, accepts=100, k=k, seconds=60, seed=4)
    assert found.sent.shape == (60,)
    assert found.sent.mean() == pytest.approx(load, abs=4 * load**0.5 / 60**0.5)
    assert (found.accepted == 100).all()


def test_near_one_chance_leaves_some_of_the_backend_unused() -> None:
    """At K = 1.1 some seconds hold fewer than a hundred; K times what was accepted is what came."""
    found = throttle(demand=500, accepts=100, k=1.1, seconds=60, seed=4)
    assert found.accepted.mean() < 100
    assert found.sent.mean() == pytest.approx(1.1 * found.accepted.mean(), rel=0.05)
    assert found.sent.mean() == pytest.approx(110, rel=0.05)


def test_what_is_accepted_anyway_is_not_throttled() -> None:
    """A demand below what the backend accepts comes through whole."""
    found = throttle(demand=50, accepts=100, k=2.0, seconds=5, seed=4)
    assert (found.sent == 50).all()


@pytest.mark.parametrize(
    "wrong", [{"demand": 0}, {"accepts": 0}, {"seconds": True}, {"k": 0.5}, {"seed": -1}]
)
def test_nothing_is_refused(wrong: dict[str, object]) -> None:
    """Whole numbers from 1, K from 1, a seed from 0."""
    asked: dict[str, object] = {"demand": 10, "accepts": 5, "k": 2.0, "seconds": 2, "seed": 1, **wrong}
    with pytest.raises(RefusedRequestError):
        throttle(**asked)  # type: ignore[arg-type]
