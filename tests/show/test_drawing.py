"""The looks, the numbers and the captions that the pictures share."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.drawing import (
    LOOKS,
    beside,
    error_of,
    line,
    listed,
    look,
    must_match,
    picture_of,
    said,
    sampled,
    theory,
)
from codeai_lab.show.shown import house_style

STRATEGIES = ["no-backoff", "exponential", "equal", "full", "decorrelated"]


def test_two_looks_differ_without_colour() -> None:
    """Line, marker and hatch each tell any two of the looks apart (DW1)."""
    for looks in (list(LOOKS), [look(name, STRATEGIES) for name in STRATEGIES]):
        for one, other in combinations(looks, 2):
            assert one.marker != other.marker
            assert one.line != other.line
            assert one.hatch != other.hatch


def test_a_strategy_looks_the_same_whatever_is_beside_it() -> None:
    """Its look depends on its name, and others beside it have another (DW2)."""
    names = ["additive", *STRATEGIES[:3], "multiplicative"]
    assert look("equal", names) == look("equal", STRATEGIES)
    assert len({look(name, names).marker for name in names}) == len(names)


@pytest.mark.parametrize(
    ("number", "words"),
    [(None, "-"), (float("nan"), "-"), (0.0, "0"), (63_628.4, "63,628"), (0.10394, "0.1039"), (91.0, "91")],
)
def test_a_number_is_said_with_four_digits(number: float | None, words: str) -> None:
    """No number is written out longer than it is known, and none is a dash."""
    assert said(number) == words


def test_a_field_is_read_with_or_without_theory() -> None:
    """A plain number is its own sample and has no closed form."""
    row = {"plain": 3.0, "both": {"closed_form": 2.0, "sampled": 2.1, "se": 0.1}}
    assert (sampled(row, "plain"), theory(row, "plain"), beside(row, "plain")) == (3.0, None, "3")
    assert (sampled(row, "both"), theory(row, "both"), beside(row, "both")) == (2.1, 2.0, "2.1 (2)")


def test_what_one_value_cannot_tell_is_not_a_number() -> None:
    """None is NaN, so that no bar is drawn and a dash is said; a field without an error has 0."""
    row = {"sd": {"closed_form": 2.0, "sampled": None, "se": None}, "plain": None, "sure": 3.0}
    assert beside(row, "sd") == "- (2)"
    assert said(sampled(row, "plain")) == "-"
    assert math.isnan(error_of(row, "sd"))
    assert error_of(row, "sure") == 0.0


def test_a_caption_says_what_the_rows_lack() -> None:
    """What is known stands beside what was found, or beside that it was not (DW3)."""
    assert must_match(("calls", "796", 797.2), ("time", "4,892", None)) == (
        "To match: calls: 796, here 797.2; time: 4,892, here not among these rows."
    )


def test_rows_without_a_field_are_refused_by_its_name() -> None:
    """Every row must have it."""
    with pytest.raises(RefusedValueError, match=r"^b: "):
        listed([{"a": 1, "b": 2}, {"a": 1}], "a", "b")


def test_a_missing_value_leaves_a_gap_in_the_line() -> None:
    """A line is drawn through what there is."""
    axes: Axes = Figure().subplots()
    line(axes, [1, 2, 3], [1.0, None, 3.0], LOOKS[0], "x")
    drawn = [float(y) for y in axes.lines[0].get_ydata()]
    assert (drawn[0], drawn[2]) == (1.0, 3.0)
    assert drawn[1] != drawn[1]


def test_a_quick_picture_is_the_same_bytes_twice_and_keeps_the_places() -> None:
    """With places it is not laid out again, and the axes lie where they lay."""

    def figure() -> Figure:
        fig = Figure(layout="constrained")
        fig.subplots().plot([1, 2])
        return fig

    with house_style():
        laid_out = figure()
        first = picture_of(laid_out)
        places = [axes.get_position() for axes in laid_out.axes]
        pictures = {picture_of(figure(), places) for _ in range(2)}
    assert first.startswith(b"<?xml")
    assert len(pictures) == 1
    again = figure()
    with house_style():
        picture_of(again, places)
    assert again.axes[0].get_position().bounds == places[0].bounds
