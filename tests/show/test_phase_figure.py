"""The map of loads and stops."""

from __future__ import annotations

import pytest
from measured import phase

from codeai_lab.show import phase_figure
from codeai_lab.show.phase_figure import phase_map


def test_ground_is_drawn_where_cells_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring cells are one area, from border to border, and the line is theory's (PF1)."""
    kept = []
    monkeypatch.setattr(phase_figure, "show_figure", lambda fig, **_: kept.append(fig))
    phase_map(phase())
    (axes,) = kept[0].axes
    areas = [area.get_paths()[0].get_extents().bounds for area in axes.collections]
    assert areas == [
        pytest.approx((150, 1.15, 90, 0.2)),
        pytest.approx((240, 0.775, 80, 0.575)),
    ]
    assert [(float(x), float(y)) for x, y in axes.lines[0].get_xydata()] == [(200.0, 1.25), (280.0, 1.036)]


def test_the_shortest_stops_are_said(drawing) -> None:
    """What was found and what theory gives, load by load, with the horizon (PF2)."""
    shown = drawing(phase_map, phase())
    assert shown.table.body == (("100", "-", "-"), ("200", "1.25", "1.25"), ("280", "1.05", "1.036"))
    assert "3 of 9 cells still fail after 2,000 s" in shown.alt
    assert "as 1.05, here 1.05; at 200: 1.25, here 1.25" in shown.caption
    assert len(shown.numbers) == 9


def test_a_map_on_which_nothing_fails_says_so(drawing) -> None:
    """It is drawn, and has no lowest load."""
    found = phase() | {"failing": [[False] * 3] * 3}
    assert "nothing fails at 2,000 s" in drawing(phase_map, found).alt
