"""How do the pictures of waiting, overload and duplicates look alike?

Chapter: 000, section 15.7.

Idea: a thing that is measured has one look everywhere: a colour, a line, a marker and a hatch that belong
together. A number is said in one way. A caption names the numbers that the picture must match, and puts
beside each what these rows came to.

Always true:
  DW1. Two looks in one picture differ in line, marker and hatch as well as in colour.
  DW2. Each of the five strategies of the jitter study has one look, whatever is drawn beside it.
  DW3. What a caption says "here" of is read from the rows; where they do not hold it, it says so.

Not here: which pictures there are (`show.waiting_figures` and its neighbours), how a figure becomes a page
(`show.shown`).
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.shown import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION, as_drawn
from codeai_lab.show.words import NOTHING, read

Row = Mapping[str, Any]
PURPLE = "#CC79A7"
WIDTH = 9.2
_GRID = "#D0D0D0"


@dataclass(frozen=True, slots=True)
class Look:
    """How one thing is drawn: as a line, as points, and as a bar."""

    colour: str
    line: Any
    marker: str
    hatch: str


LOOKS = (
    Look(BLUE, "-", "o", ""),
    Look(VERMILION, "--", "s", "////"),
    Look(GREEN, "-.", "^", "...."),
    Look(ORANGE, ":", "D", "xxxx"),
    Look(PURPLE, (0, (6, 1, 1, 1, 1, 1)), "v", "\\\\\\\\"),
    Look(SKY, (0, (1, 1)), "P", "++++"),
    Look(INK, (0, (8, 2)), "X", "oo"),
)
_OF_STRATEGIES = {
    "no-backoff": Look(INK, (0, (1, 1)), "X", "oo"),
    "exponential": LOOKS[1],
    "equal": LOOKS[3],
    "full": LOOKS[0],
    "decorrelated": LOOKS[2],
}


def look(name: str, names: Sequence[str]) -> Look:
    """Give the look of one of several names that are drawn together."""
    if name in _OF_STRATEGIES:
        return _OF_STRATEGIES[name]
    others = [one for one in names if one not in _OF_STRATEGIES]
    taken = [_OF_STRATEGIES[one].marker for one in names if one in _OF_STRATEGIES]
    free = [one for one in LOOKS if one.marker not in taken] or list(LOOKS)
    return free[others.index(name) % len(free)]


# --- rows ----------------------------------------------------------------------------------------------


def listed(rows: Iterable[Row], *fields: str) -> list[Row]:
    """Give rows as a list.

    Raises: RefusedValueError (definite) where there is none, or one lacks a field.
    """
    found = list(rows)
    if not found:
        raise RefusedValueError("rows", "there is nothing to draw; hand in at least one row.")
    for name in fields:
        if any(name not in row for row in found):
            raise RefusedValueError(name, "a row has no such field; hand in the rows of the lesson.")
    return found


def named(rows: Iterable[Row], field: str) -> list[str]:
    """Give the different values of a field, in the order of the rows."""
    return list(dict.fromkeys(str(row[field]) for row in rows))


def sampled(row: Row, field: str) -> float:
    """Give what was measured, where the field has theory beside it, and else the field; NaN for None."""
    value = read(row[field], "sampled") if isinstance(row[field], Mapping) else row[field]
    return math.nan if value is None else float(value)


def theory(row: Row, field: str) -> float | None:
    """Give the closed form, or None where there is none."""
    return read(row[field], "closed_form") if isinstance(row[field], Mapping) else None


def error_of(row: Row, field: str) -> float:
    """Give the standard error: 0 where the field has none, NaN where it is None and so is not known."""
    error = read(row[field], "se", 0.0) if isinstance(row[field], Mapping) else 0.0
    return math.nan if error is None else float(error)


# --- words ---------------------------------------------------------------------------------------------


def said(number: float | None) -> str:
    """Say a number with four digits that count, thousands apart; none is a dash."""
    if number is None or number != number:
        return NOTHING
    if abs(number) >= 1_000 or float(number).is_integer():
        return f"{number:,.0f}"
    return f"{number:.4g}"


def beside(row: Row, field: str) -> str:
    """Say what was measured, and in brackets what theory gives."""
    known = theory(row, field)
    return said(sampled(row, field)) + ("" if known is None else f" ({said(known)})")


def must_match(*pairs: tuple[str, str, float | None]) -> str:
    """Say which numbers a picture must match, and what its rows came to.

    Args:
        pairs: what it is, the number that is known for it, and the rows' own; None where they lack it.
    """
    compared = [
        f"{what}: {known}, here {'not among these rows' if here is None else said(here)}"
        for what, known, here in pairs
    ]
    return f"To match: {'; '.join(compared)}."


# --- axes ----------------------------------------------------------------------------------------------


def panels(across: int, *, height: float = 3.5, down: int = 1, **how: Any) -> tuple[Figure, list[Axes]]:
    """Give a figure of the usual width and its axes, row by row."""
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = list(fig.subplots(down, across, squeeze=False, **how).flat)
    for one in axes:
        one.grid(color=_GRID, linewidth=0.6)
        one.set_axisbelow(True)
    return fig, axes


def line(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float | None],
    as_: Look,
    label: str | None = None,
    **how: Any,
) -> None:
    """Draw a line with its markers; where there is no value, there is no line."""
    heights = [math.nan if value is None else value for value in ys]
    axes.plot(xs, heights, label=None if label is None else as_drawn(label), **(_drawn_as(as_) | how))


def key(as_: Look, label: str) -> Line2D:
    """Give a legend's entry for a look: line and marker."""
    return Line2D([], [], label=as_drawn(label), **_drawn_as(as_))


def _drawn_as(as_: Look) -> dict[str, Any]:
    return {
        "color": as_.colour, "linestyle": as_.line, "marker": as_.marker, "linewidth": 1.6, "markersize": 5,
        "markeredgecolor": INK, "markeredgewidth": 0.5,
    }  # fmt: skip


def guide(axes: Axes, at: float, label: str, *, across: bool = False) -> None:
    """Draw a thin line at a value that is known, and name it."""
    draw = axes.axhline if across else axes.axvline
    draw(at, color=GREY, linewidth=1.1, linestyle=(0, (4, 2)), label=as_drawn(label), zorder=1)


def legend_above(fig: Figure, axes: Axes, ncols: int = 6) -> None:
    """Put one legend above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    fig.legend(
        handles, labels, loc="outside upper left", ncols=ncols, frameon=False, fontsize=9, handlelength=3.2,
        columnspacing=1.6,
    )  # fmt: skip


def picture_of(fig: Figure, places: Sequence[Bbox] = ()) -> bytes:
    """Give a figure as an SVG picture alone, quickly: for what is drawn while somebody waits.

    It is drawn in the style that holds (`show.shown.house_style`).

    Args: places: where the axes lie, one for each; without them the figure lays them out, which takes longer.
    """
    if len(places) == len(fig.axes):
        fig.set_layout_engine("none")
        for axes, place in zip(fig.axes, places, strict=True):
            axes.set_position(place)
    kept = io.BytesIO()
    draw: Any = FigureCanvasSVG(fig).print_svg  # the canvas itself: `savefig` would draw all of it twice
    draw(kept, metadata={"Date": None, "Creator": None})
    return kept.getvalue()
