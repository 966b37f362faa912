"""The rows of layers, throttling and hedging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.lessons.amplification import LAYERED, hedging_measured, layers_measured, throttling_measured
from codeai_lab.lessons.measured import Measured, rows_of


def estimates(measured: Measured) -> dict[str, Any]:
    return {name: measured.row[name] for name in measured.samples}


def test_layers_are_shown_in_both_readings() -> None:
    """64 and 243 as published; four owners make 81 if three counts attempts, and 256 if it counts retries."""
    found = {one.case: one for one in layers_measured(requests=2_000)}
    assert found.keys() == LAYERED.keys()
    assert {case: one.row["calls"]["sampled"] for case, one in found.items() if one.row["failure"] == 1} == {
        "three-layers-four-attempts": 64,
        "five-layers-three-attempts": 243,
        "four-owners-three-attempts": 81,
        "four-owners-three-retries": 256,
    }
    for one in found.values():
        for said in estimates(one).values():
            assert said["sampled"] == pytest.approx(said["closed_form"], abs=4 * said["se"] + 1e-9)


def test_throttling_lets_through_k_times_what_is_accepted() -> None:
    """200, 150 and 110 a second of a demand of 400, for a backend that accepts 100."""
    rows = rows_of(throttling_measured(demand=400, seconds=60))
    assert [row["load"]["closed_form"] for row in rows] == pytest.approx([200, 150, 110])
    for row in rows:
        assert row["load"]["sampled"] == pytest.approx(row["k_times_accepted"], rel=0.05)


def test_hedging_trades_load_for_the_tail() -> None:
    """Extra load e^-d, and the 99.9th percentile falls from 6.9 to (ln 1000 + d) / 2."""
    rows = rows_of(hedging_measured())
    assert [row["extra_load"]["closed_form"] for row in rows] == pytest.approx(
        [0.6065, 0.3679, 0.0498], abs=5e-5
    )
    assert [row["p999_closed_form"] for row in rows] == pytest.approx([3.704, 3.954, 4.954], abs=5e-4)
    for row in rows:
        for name in ("extra_load", "rare"):
            said = row[name]
            assert said["sampled"] == pytest.approx(said["closed_form"], abs=4 * said["se"])
        assert row["p999_sampled"] == pytest.approx(row["p999_closed_form"], abs=4 * 0.026)
        assert row["p999_unhedged"] == pytest.approx(6.908, abs=4 * 0.05)


@pytest.mark.parametrize(
    ("table", "asked"),
    [
        (layers_measured, {"requests": 50}),
        (throttling_measured, {"demand": 50, "seconds": 3}),
        (hedging_measured, {"requests": 500}),
    ],
    ids=["layers", "throttling", "hedging"],
)
def test_a_row_follows_from_its_samples(table: Callable[..., list[Measured]], asked: dict[str, int]) -> None:
    """Each estimate is the mean of its sample, all of it is plain JSON, and the same seed gives the same."""
    told: list[str] = []
    found = table(**asked, progress=lambda name, *_: told.append(name))
    assert told == [one.case for one in found]
    for one, again in zip(found, table(**asked), strict=True):
        for name, sample in one.samples.items():
            assert one.row[name]["sampled"] == sample.mean
            assert one.row[name]["se"] == sample.se
            canonical_bytes(sample.recorded())
        assert canonical_bytes(dict(one.row)) == canonical_bytes(dict(again.row))
