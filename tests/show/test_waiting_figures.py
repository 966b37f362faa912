"""The pictures of waits: what is drawn, and what is said of it."""

from __future__ import annotations

from matplotlib.axes import Axes
from measured import shapes, waits

from codeai_lab.show import waiting_figures
from codeai_lab.show.shown import house_style
from codeai_lab.show.waiting_figures import waits_drawn


def lines(axes: Axes) -> list[tuple[list[float], list[float]]]:
    return [([float(x) for x in one.get_xdata()], [float(y) for y in one.get_ydata()]) for one in axes.lines]


def test_a_distribution_is_its_quantiles_without_bins() -> None:
    """Each line goes through the quantiles, so that an atom is vertical (WF1)."""
    with house_style():
        fig = waiting_figures._distributions(shapes(), ["full", "decorrelated"])
    drawn = [line for axes in fig.axes for line in lines(axes)]
    assert drawn == [(row["quantiles"], [0.0, 0.25, 0.5, 0.75, 1.0]) for row in shapes()]
    assert [text.get_text() for axes in fig.axes for text in axes.texts] == ["0.104"]


def test_a_line_is_the_closed_form_and_a_marker_the_sample() -> None:
    """Both are drawn, each from its own part of the row (WF2)."""
    with house_style():
        each, total = waits_drawn(waits()).axes
    full = [row for row in waits() if row["strategy"] == "full"]
    assert lines(each)[0] == ([1.0, 2.0], [row["mean"]["closed_form"] for row in full])
    assert lines(each)[1] == ([1.0, 2.0], [row["mean"]["sampled"] for row in full])
    assert (each.lines[0].get_marker(), each.lines[1].get_linestyle()) == ("", "None")
    assert [float(line.get_xdata()[0]) for line in total.lines if line.get_marker() in "oD"] == [45.61, 68.17]


def test_a_sample_without_theory_has_no_line() -> None:
    """A closed form that is not there is a gap, not a zero."""
    rows = waits()
    for row in rows:
        row["mean"]["closed_form"] = None
    with house_style():
        each = waits_drawn(rows).axes[0]
    assert all(y != y for y in lines(each)[0][1])


def test_the_caption_puts_the_rows_beside_what_is_known() -> None:
    """45.5, 11.33 and 68.25 are named with what these rows have, 0.1039 with the atom."""
    assert "total of full jitter: 45.5, here 45.61; its sd: 11.33, here 11.29" in (
        waiting_figures._means_caption({row["strategy"]: row for row in waits()})
    )
    assert "0.1039, here 0.1042" in waiting_figures._distributions_caption(shapes())
