"""Up to how many clients does it hold that one strategy is better than another?

Chapter: 000, section 15.7, and the study of contention that it cites.

Idea: two ratios against the number of clients, each near 1. Where a ratio crosses 1, the better strategy
becomes the worse one; a picture that stops at 100 clients does not show it.

Always true:
  RF1. A crossing is named only where two neighbouring numbers of clients lie on either side of 1.
  RF2. The bars are two standard errors of the ratio, from the scatter of the runs.

Not here: calls and time themselves (`show.contention_figures`), the rows (`lessons.contention`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure

from codeai_lab.show.contention_figures import CELL_FIELDS, counts_of, value_of
from codeai_lab.show.drawing import LOOKS, Row, guide, line, listed, must_match, panels
from codeai_lab.show.shown import GREY, INK, Shown, house_style, show_figure
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import NOTHING

# quantity, above the line, below the line; between which numbers of clients the ratio is known to cross 1
FLIPS = (("time_ms", "decorrelated", "full"), ("calls", "equal", "full"))
_WHERE = ((130, 150), (160, 170))
_WORDS = {"calls": "calls", "time_ms": "time"}
Ratios = list[tuple[int, float, float]]  # clients, ratio, its standard error


def ranking_flips(rows: Iterable[Row]) -> Shown:
    """Show two ratios of strategies against the number of clients, and where they cross 1.

    Args: rows: of `lessons.contention`, for decorrelated, equal and full jitter.
    Raises: RefusedValueError (definite) for no row, and for rows without these fields.
    """
    ratios = ratios_of(rows)
    listed(one for found in ratios.values() for one in ({"n": n} for n, _, _ in found))
    with house_style():
        return show_figure(
            _flips_drawn(ratios), alt=_flips_alt(ratios), caption=_flips_caption(ratios),
            numbers=_flip_numbers(ratios), table=_flips_table(ratios),
        )  # fmt: skip


def ratios_of(rows: Iterable[Row]) -> dict[tuple[str, str, str], Ratios]:
    """Give each pair's ratio for each number of clients, with its standard error."""
    cells = listed(rows, *CELL_FIELDS)
    return {flip: _ratios(cells, *flip) for flip in FLIPS}


def _flips_drawn(ratios: dict[tuple[str, str, str], Ratios]) -> Figure:
    fig, axes = panels(2, height=3.6)
    for panel, flip, (low, high) in zip(axes, FLIPS, _WHERE, strict=True):
        quantity, above, below = flip
        found = ratios[flip]
        counts = [count for count, _, _ in found]
        panel.axvspan(low, high, facecolor="#E4E4E4", edgecolor=GREY, hatch="..", linewidth=0, zorder=0)
        guide(panel, 1.0, "level", across=True)
        line(panel, counts, [ratio for _, ratio, _ in found], LOOKS[0])
        panel.errorbar(
            counts, [ratio for _, ratio, _ in found], yerr=[2 * error for _, _, error in found],
            linestyle="none", ecolor=INK, capsize=3, linewidth=1,
        )  # fmt: skip
        panel.set_title(f"{_WORDS[quantity]}: {above} / {below}", loc="left")
        panel.set_xlabel(f"clients; dotted ground: {low} to {high}")
    return fig


def _ratios(cells: list[Row], quantity: str, above: str, below: str) -> Ratios:
    found: Ratios = []
    for count in counts_of(cells):
        runs = value_of(cells, above, count, "runs")
        top, bottom = (value_of(cells, rule, count, f"{quantity}_mean") for rule in (above, below))
        known = [value_of(cells, rule, count, f"{quantity}_sd") for rule in (above, below)]
        spreads = [math.nan if spread is None else spread for spread in known]  # one run has none
        if runs and top and bottom:
            relative = math.hypot(spreads[0] / top, spreads[1] / bottom) / math.sqrt(runs)
            found.append((count, top / bottom, top / bottom * relative))
    return found


def crossing(found: Ratios) -> float | None:
    """Give where a ratio crosses 1 for the last time; None where no two neighbours lie around it (RF1)."""
    at = None
    for (left, low, _), (right, high, _) in pairwise(found):
        if low != high and (low - 1) * (high - 1) <= 0:
            at = left + (right - left) * (1 - low) / (high - low)
    return at


def _flips_alt(ratios: dict[tuple[str, str, str], Ratios]) -> str:
    each = []
    for (quantity, above, below), found in ratios.items():
        at = crossing(found)
        where = "does not cross 1" if at is None else f"crosses 1 near {at:.0f} clients"
        each.append(f"{_WORDS[quantity]} of {above} over {below} {where}")
    return f"Two ratios against the number of clients: {'; '.join(each)}."


def _flips_caption(ratios: dict[tuple[str, str, str], Ratios]) -> str:
    pairs = [
        (f"{_WORDS[flip[0]]} of {flip[1]} and {flip[2]} cross", f"{low} to {high}", crossing(ratios[flip]))
        for flip, (low, high) in zip(FLIPS, _WHERE, strict=True)
    ]
    return (
        f"Above 1 the first is the worse one; bars are two standard errors. {must_match(*pairs)} The picture "
        "cannot show the place closely: near 1 the difference is smaller than the scatter of a hundred "
        "runs, and another base, cap or network has its crossing elsewhere."
    )


def _flip_numbers(ratios: dict[tuple[str, str, str], Ratios]) -> pd.DataFrame:
    lines = [(*key, *values) for key, found in ratios.items() for values in found]
    return pd.DataFrame(lines, columns=["quantity", "above", "below", "clients", "ratio", "se"])


def _flips_table(ratios: dict[tuple[str, str, str], Ratios]) -> ShownTable:
    counts = sorted({count for found in ratios.values() for count, _, _ in found})
    named_ones = [f"{_WORDS[quantity]}: {above} / {below}" for quantity, above, below in ratios]
    body = []
    for count in counts:
        each = [next((one for one in found if one[0] == count), None) for found in ratios.values()]
        words = ["not run" if one is None else f"{one[1]:.4f}, se {_error(one[2])}" for one in each]
        body.append((str(count), *words))
    return ShownTable(
        caption="The numbers behind the picture: ratios of means",
        head=("clients", *named_ones),
        body=tuple(body),
    )


def _error(error: float) -> str:
    return NOTHING if math.isnan(error) else f"{error:.4f}"
