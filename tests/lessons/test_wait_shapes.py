"""Waits as quantiles."""

from __future__ import annotations

import pytest

from codeai_lab.decide.samples import Sample
from codeai_lab.lessons.backoff import backoff_measured
from codeai_lab.lessons.wait_shapes import STEPS, _quantiles, wait_shapes


def test_quantiles_rise_from_the_shortest_to_the_longest() -> None:
    """The first is the shortest wait and the last the longest (WS1)."""
    rows = wait_shapes(backoff_measured(clients=57, strategies=("full", "decorrelated")), attempts=(2, 8))
    assert [(row["strategy"], row["attempt"]) for row in rows] == [
        ("full", 2), ("full", 8), ("decorrelated", 2), ("decorrelated", 8),
    ]  # fmt: skip
    for row in rows:
        assert len(row["quantiles"]) == STEPS + 1
        assert row["quantiles"] == sorted(row["quantiles"])
    assert rows[3]["quantiles"][-1] == 20.0
    assert rows[3]["quantiles"].count(20.0) == pytest.approx(100 * rows[3]["atom_at_cap"]["sampled"], abs=1)


def test_a_quantile_is_the_smallest_value_with_its_share_at_or_below() -> None:
    """Four values, each a quarter: a step of the distribution every 25 of 100."""
    found = list(_quantiles(Sample.of([1.0, 2.0, 3.0, 4.0])))
    assert (found[0], found[1], found[25], found[26], found[75], found[76], found[100]) == (
        1,
        1,
        1,
        2,
        3,
        4,
        4,
    )


def test_an_atom_is_many_equal_quantiles() -> None:
    """Nine of ten at one value: its quantiles begin after a tenth."""
    found = list(_quantiles(Sample.counted({1.0: 1, 5.0: 9})))
    assert found == [1.0] * 11 + [5.0] * 90
