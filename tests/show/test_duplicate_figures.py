"""Duplicates where nothing protects."""

from __future__ import annotations

import pytest
from measured import duplicates

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.duplicate_figures import attempts_drawn, duplicates_by_attempts
from codeai_lab.show.shown import house_style


def test_markers_are_sampled_and_lines_are_the_closed_form() -> None:
    """A line for every number of attempts, markers where rows are (DF1)."""
    bare = [row for row in duplicates() if row["protection"] == "none"]
    with house_style():
        expected, chance = attempts_drawn(bare).axes
    assert [float(y) for y in expected.lines[0].get_ydata()] == pytest.approx([0, 0.5, 0.75, 0.875])
    assert [float(y) for y in expected.lines[1].get_ydata()] == [0.498, 0.881]
    assert [float(y) for y in chance.lines[0].get_ydata()] == pytest.approx([0, 0.5, 0.5, 0.5])


def test_what_protects_is_not_among_the_bare_ones(drawing) -> None:
    """Rows of other protections are left out; only such rows are nothing to draw."""
    shown = drawing(duplicates_by_attempts, duplicates())
    assert [line[:3] for line in shown.table.body] == [
        ("0.5", "0", "2"),
        ("0.5", "0", "4"),
        ("0.3", "0.2", "4"),
    ]
    assert "half the responses lost, 4 attempts: expected: 0.875, here 0.881" in shown.caption
    with pytest.raises(RefusedValueError, match="nothing to draw"):
        duplicates_by_attempts(duplicates()[3:])
