"""Where the ranking of the strategies turns over, and how far theory reaches; too long for a unit test."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from codeai_lab.decide.contention_laws import without_backoff
from codeai_lab.explore.contention import contend
from codeai_lab.lessons.contention import contention_measured

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def two() -> Iterator[Executor]:
    """Two processes, for all of this file."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def crossing(pool: Executor, field: str, clients: list[int], strategies: tuple[str, str], runs: int) -> float:
    """Give the number of clients at which a line through the differences of two means crosses zero."""
    measured = contention_measured(clients=clients, strategies=strategies, runs=runs, executor=pool)
    means = {(one.row["strategy"], one.row["clients"]): one.row[field] for one in measured}
    differences = [means[strategies[0], n] - means[strategies[1], n] for n in clients]
    slope, height = np.polyfit(clients, differences, 1)
    return float(-height / slope)


def test_decorrelated_becomes_slower_than_full(two: Executor) -> None:
    """Decorrelated jitter finishes first up to 130 clients, full jitter from 150 on."""
    found = crossing(two, "time_ms_mean", [125, 130, 135, 140], ("decorrelated", "full"), 3_000)
    assert 130 < found < 150


def test_equal_makes_fewer_calls_than_full(two: Executor) -> None:
    """Full jitter makes fewer calls up to 160 clients, equal jitter from 170 on."""
    found = crossing(two, "calls_mean", [150, 160, 170, 180], ("equal", "full"), 600)
    assert 160 < found < 170


def test_theory_holds_for_five_hundred_clients() -> None:
    """Without backoff, 500 clients: calls and time within 1.5 % of theory."""
    calls, time_ms = without_backoff(500)
    found = contend("no-backoff", clients=500, runs=10, seed=20261130)
    assert found.calls.mean() == pytest.approx(calls, rel=0.015)
    assert found.time_ms.mean() == pytest.approx(time_ms, rel=0.015)
