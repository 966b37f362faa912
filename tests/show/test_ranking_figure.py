"""Where one strategy becomes worse than another."""

from __future__ import annotations

import math

import pytest
from measured import cells

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.ranking_figure import crossing, ranking_flips


@pytest.mark.parametrize(
    ("ratios", "at"),
    [
        ([(100, 0.9), (150, 1.1)], 125.0),
        ([(100, 1.1), (150, 0.9)], 125.0),
        ([(10, 1.1), (20, 0.9), (100, 0.9), (200, 1.1)], 150.0),
        ([(100, 0.9), (150, 1.0)], 150.0),
        ([(100, 0.9), (150, 0.95)], None),
        ([(100, 0.9)], None),
    ],
)
def test_a_crossing_lies_between_neighbours_around_one(
    ratios: list[tuple[int, float]], at: float | None
) -> None:
    """The last one counts, in either direction; without two neighbours around 1 there is none (RF1)."""
    found = crossing([(clients, ratio, 0.01) for clients, ratio in ratios])
    assert found == (None if at is None else pytest.approx(at))


def test_one_run_has_a_ratio_and_no_error(drawing) -> None:
    """Where no spread is known the table has a dash, and the numbers have none."""
    rows = [row | {"runs": 1, "calls_sd": None, "time_ms_sd": None} for row in cells()]
    shown = drawing(ranking_flips, rows)
    assert shown.numbers["se"].isna().all()
    assert shown.numbers["ratio"].notna().all()
    assert all(cell.endswith(", se -") for row in shown.table.body for cell in row[1:] if cell != "not run")


def test_both_crossings_are_said_with_the_span_that_is_known(drawing) -> None:
    """The sentence, the caption and the numbers say the same places."""
    shown = drawing(ranking_flips, cells())
    assert "time of decorrelated over full crosses 1 near 140 clients" in shown.alt
    assert "160 to 170, here 164.1" in shown.caption
    first = shown.numbers.iloc[0]
    assert (first["quantity"], first["clients"]) == ("time_ms", 100)
    assert first["ratio"] == pytest.approx(4_598 / 4_892)
    assert first["se"] == pytest.approx(4_598 / 4_892 * math.hypot(500 / 4_598, 500 / 4_892) / 10)


def test_rows_without_the_strategies_cannot_be_compared() -> None:
    """One sentence, and no empty picture."""
    with pytest.raises(RefusedValueError, match="nothing to draw"):
        ranking_flips([row for row in cells() if row["strategy"] == "full"])
