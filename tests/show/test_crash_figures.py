"""Strips of crash points."""

from __future__ import annotations

import pytest
from matplotlib.patches import Rectangle
from measured import crashes

from codeai_lab.errors import RefusedValueError
from codeai_lab.show import crash_figures
from codeai_lab.show.crash_figures import crash_strips


def test_every_boundary_is_a_square_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips from above, stages from the left; two effects are hatched, what is stuck is said (KF1, KF2)."""
    kept = []
    monkeypatch.setattr(crash_figures, "show_figure", lambda fig, **_: kept.append(fig))
    crash_strips(crashes())
    axes = kept[0].axes[0]
    squares = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(int(one.get_x()), int(one.get_y()), one.get_hatch() or None) for one in squares] == [
        (0, 0, None), (1, 0, "////"), (2, 0, None), (0, 1, None), (1, 1, None), (2, 1, None),
    ]  # fmt: skip
    assert [text.get_text() for text in axes.texts][::2] == ["1", "2", "1", "1", "0 stuck", "1 stuck"]


def test_strips_are_counted_from_their_squares(drawing) -> None:
    """The table and the caption say the same counts, beside what is known."""
    shown = drawing(crash_strips, crashes())
    assert shown.table.body[0] == ("unguarded", "3", "2 x 1, 1 x 2", "1 duplicate, 2 safe", "perform")
    assert "unguarded: 4 x 1, 1 x 2, here 2 x 1, 1 x 2" in shown.caption
    assert "atomic: 4 x 1, here not among these rows" in shown.caption


def test_another_follow_up_is_compared_with_nothing(drawing) -> None:
    """What is known is known of a retry with the same key; an unknown follow-up has no square."""
    assert "To match" not in drawing(crash_strips, crashes(), follow_up="new-key").caption
    with pytest.raises(RefusedValueError, match="nothing to draw"):
        crash_strips(crashes(), follow_up="never")
