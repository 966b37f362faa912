"""The picture of all schedules, a square each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.mosaic import letters, mosaic, schedules_table, step_rows

RINGED = "both look-ups first"


def square(schedule: tuple[int, ...], effects: int, marked: bool = False) -> dict[str, Any]:
    return {"schedule": schedule, "effects": effects, "marked": marked}


@pytest.fixture
def squares() -> list[dict[str, Any]]:
    """Give six schedules: two good ones, four bad ones, two of these marked."""
    return [
        square((0, 0, 1, 1), 1),
        square((0, 1, 0, 1), 2, marked=True),
        square((0, 1, 1, 0), 2, marked=True),
        square((1, 0, 0, 1), 2),
        square((1, 0, 1, 0), 2),
        square((1, 1, 0, 0), 1),
    ]


@pytest.fixture
def drawn(drawing):
    """Give the axes that squares are drawn on."""
    return lambda squares, **given: drawing.figure(mosaic, squares, **given).axes[0]


def grounds(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_each_schedule_is_one_square_in_the_order_given(drawn, squares) -> None:
    """Squares fill the rows from the top left, numbered from 1, each with its letters (MS1)."""
    axes = drawn(squares, columns=4, ringed=RINGED)
    assert [(int(one.get_x()), int(one.get_y())) for one in grounds(axes)] == [
        (0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1),
    ]  # fmt: skip
    assert [text.get_text() for text in axes.texts] == [
        "1", "aabb", "2", "abab", "3", "abba", "4", "baab", "5", "baba", "6", "bbaa",
    ]  # fmt: skip


def test_bad_squares_are_hatched_and_marked_ones_ringed(drawn, squares) -> None:
    """What is bad and what is marked is told by shape as well as by colour (MS2)."""
    axes = drawn(squares, columns=4, ringed=RINGED)
    assert [bool(one.get_hatch()) for one in grounds(axes)] == [False, True, True, True, True, False]
    assert [float(line.get_xdata()[0]) for line in axes.lines] == [1.5, 2.5]


def test_every_number_of_effects_has_its_own_hatch_or_ground(drawn) -> None:
    """In grey, no two numbers of effects look the same (MS2)."""
    axes = drawn([square((0,), effects) for effects in range(5)])
    assert len({(one.get_hatch(), one.get_facecolor()) for one in grounds(axes)}) == 5
    assert len({one.get_hatch() for one in grounds(axes)[1:]}) == 4


def test_alt_and_table_are_counted_from_the_squares(drawing, squares) -> None:
    """The sentence and the table say how many, which, and how many of them ringed (MS3)."""
    shown = drawing(mosaic, squares, ringed=RINGED)
    assert shown.alt == (
        "Mosaic of 6 schedules: 2 with 1 effect, 4 with 2 effects. "
        "Ringed (both look-ups first): 2, of these 2 with 2 effects."
    )
    assert shown.table.body == (
        ("1 effect", "2", "0", "1, 6", "-"),
        ("2 effects", "4", "2", "2 to 5", "2, 3"),
        ("all", "6", "2", "1 to 6", "2, 3"),
    )
    squares[1]["effects"] = 1
    assert "of these 1 with 1 effect, 1 with 2 effects." in drawing(mosaic, squares, ringed=RINGED).alt


def test_nothing_marked_needs_no_words(squares) -> None:
    """Without a mark nothing is said of rings, and objects are as good as mappings."""
    shown = mosaic([SimpleNamespace(schedule=one["schedule"], effects=1) for one in squares])
    assert shown.alt == "Mosaic of 6 schedules: 6 with 1 effect."


def test_numbers_are_one_square_a_line(drawing, squares) -> None:
    """The frame behind the picture is tidy, for a CSV file."""
    numbers = drawing(mosaic, squares, ringed=RINGED).numbers
    assert numbers.to_dict("records")[1] == {
        "number": 2, "schedule": "abab", "effects": 2, "ringed": True,
    }  # fmt: skip
    assert len(numbers) == 6


def test_same_squares_same_bytes(squares) -> None:
    """Drawing twice gives the same bytes."""
    one, other = (mosaic(squares, ringed=RINGED) for _ in range(2))
    assert (one.svg, one.png) == (other.svg, other.png)


def test_a_long_schedule_is_broken_into_lines(drawn) -> None:
    """Eight letters a line, so that the letters stay inside their square."""
    axes = drawn([square((0, 1) * 10, 2)])
    assert axes.texts[1].get_text() == "abababab\nabababab\nabab"


def test_caption_says_what_it_cannot_show(drawing, squares) -> None:
    """The caption names the limit of the picture, unless another is given."""
    assert "cannot show how long a step takes" in drawing(mosaic, squares, ringed=RINGED).caption
    assert drawing(mosaic, squares, ringed=RINGED, caption="Mine.").caption == "Mine."


def test_what_cannot_be_read_is_refused(squares) -> None:
    """No square, too many, too many effects, a ring without words, an unknown walk: one sentence each."""
    for refused, given, why in [
        ([], {}, "there is nothing to draw"),
        ([square((0,), 1)] * 401, {}, "more than 400 cannot be read"),
        ([square((0,), 5)], {}, "from 0 to 4"),
        ([square((0,), -1)], {}, "from 0 to 4"),
        (squares, {}, "say in a few words what a ring means"),
        (squares, {"columns": 0, "ringed": RINGED}, "1 to 20 squares"),
        ([square((0, 8), 1)], {}, "numbered from 0 to 7"),
        ([square((0, -1), 1)], {}, "numbered from 0 to 7"),
    ]:
        with pytest.raises(RefusedValueError, match=why):
            mosaic(refused, **given)


def test_a_schedule_as_letters() -> None:
    """Walk 0 is a, walk 1 is b."""
    assert letters((0, 0, 1, 2)) == "aabc"


def test_a_played_schedule_as_lines() -> None:
    """One line a step; what a caller is told stands at the last step of its walk; under way is a gap."""
    steps = [
        SimpleNamespace(walk=0, stage="request", recorded=("action.requested",), effects=0),
        SimpleNamespace(walk=1, stage="request", recorded=("x", "y"), effects=0),
        SimpleNamespace(walk=0, stage="perform", recorded=(), effects=1),
    ]
    rows = step_rows(SimpleNamespace(steps=steps, answers=("succeeded", None)))
    assert [tuple(row.values()) for row in rows] == [
        (1, "a", "request", "action.requested", 0, None),
        (2, "b", "request", "x, y", 0, None),
        (3, "a", "perform", None, 1, "succeeded"),
    ]


def test_rule_sets_side_by_side() -> None:
    """One line a rule set, a column for each number of effects that occurs, both measures, a bad schedule."""
    rows = [
        {"rule_set": "open", "schedules": 8, "effects": {"1": 2, "2": 6}, "fair_coin": {"1": 0.5, "2": 0.5},
         "shortest_bad": [0, 0, 1]},
        {"rule_set": "shut", "schedules": 10, "effects": {"1": 10}, "fair_coin": {"1": 1.0},
         "shortest_bad": None},
        {"rule_set": "wild", "schedules": 10, "effects": {"3": 10}, "fair_coin": {"3": 1.0},
         "shortest_bad": [1, 0]},
    ]  # fmt: skip
    table = schedules_table(rows, "Compared")
    assert table.head == (
        "rule set", "schedules", "with 1 effect", "with 2 effects", "with 3 effects", "bad, each alike",
        "bad, a fair coin", "a shortest bad one",
    )  # fmt: skip
    assert table.body == (
        ("open", "8", "2", "6", "0", "0.7500", "0.5000", "aab"),
        ("shut", "10", "10", "0", "0", "0", "0", "-"),
        ("wild", "10", "0", "0", "10", "1", "1", "ba"),
    )


def test_nearly_is_not_certainly() -> None:
    """A share that would be rounded to 0 or 1 keeps its distance (MS4)."""
    row = {
        "rule_set": "r", "schedules": 10**6, "effects": {"1": 1, "2": 10**6 - 1},
        "fair_coin": {"1": 1 - 1e-6, "2": 1e-6}, "shortest_bad": [0],
    }  # fmt: skip
    assert schedules_table([row], "Compared").body[0][4:6] == ("0.9999", "0.0001")
