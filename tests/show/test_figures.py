"""The picture of effects per case."""

from __future__ import annotations

import pytest
from matplotlib.axes import Axes

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.figures import effects_by_case


@pytest.fixture
def panels(drawing):
    """Give the visible panels of the picture of some rows."""

    def draw(rows) -> list[Axes]:
        return [axes for axes in drawing.figure(effects_by_case, rows).axes if axes.get_visible()]

    return draw


def bars(axes: Axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches]


def brackets(axes: Axes) -> list[list[float]]:
    return [list(line.get_xdata()) for line in axes.lines]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_panel_a_rule_set_and_a_line_a_case(panels, rows) -> None:
    """Rule sets are panels and cases are lines, in the order of the rows."""
    drawn = panels(rows)
    assert [axes.get_title(loc="left") for axes in drawn] == ["rules 7a0d43b", "rules lab"]
    assert [label.get_text() for label in drawn[0].get_yticklabels()] == [
        "B-no-authority", "D-crash-gap", "D-fresh-key",
    ]  # fmt: skip


def test_bar_is_the_world_and_bracket_the_ledger(panels, rows) -> None:
    """The summary reaches neither bar nor bracket (G1)."""
    for row in rows:
        row["effects_summary"] = 77
    assert [bars(axes) for axes in panels(rows)] == [[1, 1, 2], [1, 1, 2]]
    assert brackets(panels(rows)[0]) == [[1, 1], [0, 1], [0, 2]]


def test_duplicate_and_contradiction_have_their_own_signs(drawing, panels, make_row) -> None:
    """A duplicate is hatched and starred, a world outside the range crossed; each also in words (G2)."""
    rows = [
        make_row("plain", "lab", ["succeeded"], effects_ledger=[1, 1], effects_world=1),
        make_row(
            "double", "lab", ["succeeded"], effects_ledger=[1, 2], effects_world=2, labels=["duplicate"]
        ),
        make_row("beyond", "lab", ["failed"], effects_ledger=[0, 0], effects_world=3),
    ]
    (drawn,) = panels(rows)
    assert texts(drawn) == ["1", "2 \u2605", "3 \u2716"]
    assert [bool(bar.get_hatch()) for bar in drawn.patches] == [False, True, False]
    assert drawing(effects_by_case, rows).table.body == (
        ("plain", "1; ledger 1"),
        ("double", "2; ledger 1 to 2; duplicate"),
        ("beyond", "disagree: the ledger allows 0, the world shows 3"),
    )


def test_what_was_not_run_is_not_zero(drawing, panels, rows) -> None:
    """A case that a rule set did not run says so, in the picture and in the table (G3)."""
    drawn = panels(rows[:-1])
    assert texts(drawn[1])[-1] == "not run"
    assert len(bars(drawn[1])) == 2
    assert drawing(effects_by_case, rows[:-1]).table.body[2][2] == "not run"


def test_alt_says_what_is_seen(drawing, rows, make_row) -> None:
    """The sentence is computed from the rows: how many, which are doubled, where the world contradicts."""
    assert drawing(effects_by_case, rows).alt == (
        "Bar chart of effects per case: 3 cases under 2 rule sets. Duplicated effects: D-fresh-key under "
        "every rule set. World outside the ledger's range: none."
    )
    lost = make_row("A", "lab", ["failed"], effects_world=1)
    assert drawing(effects_by_case, [lost]).alt == (
        "Bar chart of effects per case: 1 case under 1 rule set. Duplicated effects: none. World outside the "
        "ledger's range: A under lab."
    )


def test_caption_says_what_it_cannot_show(drawing, rows) -> None:
    """The caption names the limit of the picture."""
    assert "cannot show an effect that leaves no receipt" in drawing(effects_by_case, rows).caption


def test_numbers_are_one_observation_a_line(drawing, rows) -> None:
    """The frame behind the picture is tidy, for a CSV file."""
    numbers = drawing(effects_by_case, rows).numbers
    assert list(numbers.columns) == [
        "case", "revision", "world", "ledger_low", "ledger_high", "labels", "agreement",
    ]  # fmt: skip
    assert len(numbers) == 6


def test_same_rows_same_bytes(drawing, rows) -> None:
    """Drawing twice gives the same bytes (F1)."""
    assert drawing.again(effects_by_case, rows).svg == drawing(effects_by_case, rows).svg


def test_five_rule_sets_stand_in_one_row_and_a_sixth_below(panels, make_row) -> None:
    """Up to five panels share a row; unused places are not drawn."""
    rows = [make_row("A", f"r{n}", ["failed"]) for n in range(6)]
    drawn = panels(rows)
    assert len(drawn) == 6
    assert len({round(axes.get_position().y0, 3) for axes in panels(rows[:5])}) == 1


def test_dollar_signs_stay_dollar_signs(panels, make_row) -> None:
    """A name with dollar signs is drawn as it is, never read as mathematics."""
    (drawn,) = panels([make_row("cost $1 or $\\frac$", "lab", ["failed"])])
    assert drawn.get_yticklabels()[0].get_text() == r"cost \$1 or \$\frac\$"


def test_nothing_and_twice_are_refused(rows) -> None:
    """No row and two rows for one place each give one sentence."""
    with pytest.raises(RefusedValueError, match="there is nothing to draw"):
        effects_by_case([])
    with pytest.raises(RefusedValueError, match="B-no-authority, 7a0d43b: there are two rows for this place"):
        effects_by_case([*rows, rows[0]])
