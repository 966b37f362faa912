"""What each protection leaves."""

from __future__ import annotations

import pytest
from measured import duplicates

from codeai_lab.errors import RefusedValueError
from codeai_lab.show import protection_figure
from codeai_lab.show.protection_figure import duplicates_by_protection


def test_none_left_has_no_bar_and_says_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars are sampled; where there is no duplicate there is a 0 (RG1, RG2)."""
    kept = []
    monkeypatch.setattr(protection_figure, "show_figure", lambda fig, **_: kept.append(fig))
    duplicates_by_protection(duplicates())
    (axes,) = kept[0].axes
    assert [bar.get_width() for bar in axes.patches] == [0.3712, 0.107]
    assert [text.get_text() for text in axes.texts] == ["0.3712", "0.107", "0"]


def test_what_was_not_run_says_so(drawing) -> None:
    """A rung that one cause lacks is no zero (RG2)."""
    rows = duplicates()
    rows.append(rows[4] | {"model": "crash"})
    table = drawing(duplicates_by_protection, rows).table
    assert table.body == (
        ("none", "0.3712 (0.3766)", "not run"),
        ("claim+lease", "0.107 (0.1)", "not run"),
        ("atomic", "0 (0)", "0 (0)"),
    )


def test_cases_with_extras_are_not_on_the_ladder() -> None:
    """A longer lease is another case; without any rung there is nothing to draw."""
    longer = [row | {"lease": 2} for row in duplicates()]
    with pytest.raises(RefusedValueError, match="nothing to draw"):
        duplicates_by_protection(longer)
