"""A run, second by second."""

from __future__ import annotations

from measured import seconds

from codeai_lab.show.overload_figures import overload_trace, trace_drawn
from codeai_lab.show.shown import house_style


def test_a_run_is_drawn_as_it_was_counted() -> None:
    """Every second is a point, and the ground is dotted where the server stands still (OF1)."""
    with house_style():
        (axes,) = trace_drawn(seconds()).axes
    load, goodput = axes.lines
    assert [float(y) for y in load.get_ydata()] == [float(row["load"]) for row in seconds()]
    assert [float(y) for y in goodput.get_ydata()] == [float(row["goodput"]) for row in seconds()]
    (ground,) = axes.patches
    assert (ground.get_x(), ground.get_x() + ground.get_width()) == (4, 6)


def test_no_ground_where_the_rows_do_not_say_when_it_stood_still() -> None:
    """Nothing is guessed."""
    rows = [{name: row[name] for name in ("case", "second", "load", "goodput", "queue")} for row in seconds()]
    with house_style():
        (axes,) = trace_drawn(rows).axes
    assert not axes.patches


def test_the_last_minute_is_said_beside_what_is_known(drawing) -> None:
    """560 and 0 for the published setting, from the last sixty rows."""
    shown = drawing(overload_trace, seconds())
    assert "560, within 18, here 561; its goodput: 0, here 0" in shown.caption
    assert "280-one-retry: load 561, goodput 0" in shown.alt
    assert shown.table.body[1] == ("280-one-retry", "60 to 65", "561.0", "0.0", "650")
