"""For which load, and after how long a stop, does an overload feed itself?

Chapter: 000, section 15.7: layered retry amplification.

Idea: a map. To the right the load of first tries, upwards how long the server stood still; hatched ground is
where the system still fails at the horizon. Two lines are known beforehand: the load below which nothing
stays, and the shortest stop after which all attempts are late at once.

Always true:
  PF1. Ground is drawn cell by cell, as it was found; the lines are theory and are not fitted to it.
  PF2. The horizon is named: what fails at it may come back later.

Not here: the map's numbers (`lessons.overload.phase_diagram`), single runs (`show.overload_figures`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, pairwise
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.drawing import guide, must_match, panels, said
from codeai_lab.show.shown import INK, ORANGE, Shown, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_FIELDS = ("loads", "triggers_s", "failing", "horizon_s", "hidden_capacity", "smallest_trigger_s")


def phase_map(found: Mapping[str, Any]) -> Shown:
    """Show which loads and stops leave a system that still fails at the horizon.

    Args: found: what `lessons.overload.phase_diagram` gives.
    Raises: RefusedValueError (definite) where a part of it is missing.
    """
    for name in _FIELDS:
        if name not in found:
            raise RefusedValueError(name, "the map has no such field; hand in what the lesson gives.")
    first = _first_failing(found)
    with house_style():
        return show_figure(
            _drawn(found), alt=_alt(found, first), caption=_caption(found, first), numbers=_numbers(found),
            table=_table(found, first),
        )  # fmt: skip


def _drawn(found: Mapping[str, Any]) -> Figure:
    loads, stops = found["loads"], found["triggers_s"]
    fig, (axes,) = panels(1, height=4.0)
    ground: dict[str, Any] = {"facecolor": ORANGE, "edgecolor": INK, "hatch": "////", "linewidth": 0}
    # One area for neighbouring cells, so that the hatch goes through.
    columns = zip(pairwise(_edges(loads)), found["failing"], strict=True)
    for failing, alike in groupby(columns, key=lambda one: _runs(one[1], _edges(stops))):
        sides = [side for pair, _ in alike for side in pair]
        for low, high in failing:
            axes.fill_between([sides[0], sides[-1]], low, high, **ground)
    known = [
        (load, stop)
        for load, stop in zip(loads, found["smallest_trigger_s"], strict=True)
        if stop is not None
    ]
    if known:
        axes.plot(*zip(*known, strict=True), color=INK, linewidth=2, label="shortest stop, theory")
    guide(axes, found["hidden_capacity"], f"hidden capacity, {said(found['hidden_capacity'])} a second")
    axes.set_xlim(_edges(loads)[0], _edges(loads)[-1])
    axes.set_ylim(max(0.0, stops[0]), _edges(stops)[-1])
    axes.set_xlabel("first tries a second")
    axes.set_ylabel("the server stands still, s")
    handles, labels = axes.get_legend_handles_labels()
    still = f"still fails after {said(found['horizon_s'])} s"
    fig.legend(
        [Patch(**ground | {"linewidth": 1}), *handles], [still, *labels], loc="outside upper left", ncols=3,
        frameon=False, fontsize=9,
    )  # fmt: skip
    return fig


def _edges(middles: list[float]) -> list[float]:
    """Give the borders of cells around their middles."""
    if len(middles) == 1:
        return [middles[0] - 0.5, middles[0] + 0.5]
    between = [(low + high) / 2 for low, high in pairwise(middles)]
    return [2 * middles[0] - between[0], *between, 2 * middles[-1] - between[-1]]


def _runs(column: list[bool], edges: list[float]) -> list[tuple[float, float]]:
    """Give from where to where neighbouring cells fail."""
    runs: list[tuple[float, float]] = []
    for fails, low, high in zip(column, edges[:-1], edges[1:], strict=True):
        if fails and runs and runs[-1][1] == low:
            runs[-1] = (runs[-1][0], high)
        elif fails:
            runs.append((low, high))
    return runs


def _first_failing(found: Mapping[str, Any]) -> dict[float, float | None]:
    return {
        load: next((stop for stop, fails in zip(found["triggers_s"], column, strict=True) if fails), None)
        for load, column in zip(found["loads"], found["failing"], strict=True)
    }


def _alt(found: Mapping[str, Any], first: dict[float, float | None]) -> str:
    failing = [load for load, stop in first.items() if stop is not None]
    cells = sum(map(sum, found["failing"]))
    if not failing:
        return f"Map of loads and stops: nothing fails at {said(found['horizon_s'])} s."
    lowest, highest = min(failing), max(failing)
    return (
        f"Map of loads and stops: {cells} of {len(found['loads']) * len(found['triggers_s'])} cells still "
        f"fail after {said(found['horizon_s'])} s. The lowest load that does is {said(lowest)} a second, "
        f"after a stop of {said(first[lowest])} s; at {said(highest)} a stop of {said(first[highest])} s is "
        "enough."
    )


def _caption(found: Mapping[str, Any], first: dict[float, float | None]) -> str:
    failing = [load for load, stop in first.items() if stop is not None]
    return (
        must_match(
            ("shortest stop at 280 a second", "1.036 s, found in steps of 0.05 s as 1.05", first.get(280)),
            ("at 200", "1.25", first.get(200)),
            ("lowest load that stays failing", "150, the hidden capacity", min(failing, default=None)),
        )
        + f" One server of {said(found.get('capacity'))} a second, a timeout of "
        f"{said(found.get('timeout_s'))} s, retries: {said(found.get('retries'))}. The map is of a fluid, "
        "without chance: near its border real runs fall to either side, which it cannot show."
    )


def _numbers(found: Mapping[str, Any]) -> pd.DataFrame:
    lines = [
        (load, stop, bool(fails))
        for load, column in zip(found["loads"], found["failing"], strict=True)
        for stop, fails in zip(found["triggers_s"], column, strict=True)
    ]
    return pd.DataFrame(lines, columns=["load", "trigger_s", "failing"])


def _table(found: Mapping[str, Any], first: dict[float, float | None]) -> ShownTable:
    theory = dict(zip(found["loads"], found["smallest_trigger_s"], strict=True))
    step = max(1, len(found["loads"]) // 10)
    chosen = list(first)[::-step][::-1]
    return ShownTable(
        caption="The numbers behind the picture: shortest stop after which a system still fails, s",
        head=("first tries a second", "found", "theory"),
        body=tuple((said(load), said(first[load]), said(theory[load])) for load in chosen),
    )
