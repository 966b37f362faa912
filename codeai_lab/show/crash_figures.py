"""A request dies at any boundary, and one more comes with the same key: how many effects are there then?

Chapter: 004, "Where the cache stops".

Idea: one strip a protocol, one square a boundary, from left to right as a request goes. In the square stands
the number of effects after the follow-up; its ground says the same. Two grounds that look the same to who
comes next are a protocol's blind spot.

Always true:
  KF1. Each boundary of each protocol is one square, in the order of the stages.
  KF2. No effect, one and two have grounds of their own, in hatch as well as in colour; what is stuck, lost or
       unknown is said in the square.

Not here: the crashes (`explore.crash_points`), schedules of several requests (`show.mosaic`).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from codeai_lab.show.drawing import WIDTH, Row, listed, named
from codeai_lab.show.shown import INK, ORANGE, SKY, VERMILION, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import effects

_FIELDS = ("rule_set", "after_stage", "follow_up", "effects", "outcome")
_GROUNDS = (("white", ""), (SKY, ""), (ORANGE, "////"), (VERMILION, "xxxx"))
_KNOWN = {  # protocol -> effects at its boundaries, as they are known
    "unguarded": "4 x 1, 1 x 2",
    "record-first": "1 x 0, 4 x 1",
    "claim-busy": "1 x 0, 5 x 1",
    "takeover-reconcile": "6 x 1",
    "atomic": "4 x 1",
}


def crash_strips(rows: Iterable[Row], *, follow_up: str = "same-key") -> Shown:
    """Show for each protocol, boundary by boundary, how many effects there are after a follow-up.

    Args: rows: of `lessons.crash_points`; those of this follow-up are drawn.
    Raises: RefusedValueError (definite) where there is none of them, and for rows without their fields.
    """
    points = listed(row for row in listed(rows, *_FIELDS) if row["follow_up"] == follow_up)
    strips = {name: [row for row in points if row["rule_set"] == name] for name in named(points, "rule_set")}
    with house_style():
        return show_figure(
            _drawn(strips), alt=_alt(strips, follow_up), caption=_caption(strips, follow_up),
            numbers=pd.DataFrame([{field: row[field] for field in _FIELDS} for row in points]),
            table=_table(strips),
        )  # fmt: skip


def _drawn(strips: dict[str, list[Row]]) -> Figure:
    across = max(map(len, strips.values()))
    fig = Figure(figsize=(WIDTH, 0.62 * len(strips) + 0.6), layout="constrained")
    axes = fig.subplots()
    for line, points in enumerate(strips.values()):
        for place, point in enumerate(points):
            _draw_square(axes, place, line, point)
    axes.set_xlim(-0.05, across + 0.05)
    axes.set_ylim(len(strips), 0)
    axes.set_yticks([line + 0.5 for line in range(len(strips))], list(map(as_drawn, strips)))
    axes.set_xticks([])
    axes.tick_params(left=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    most = max(int(row["effects"]) for points in strips.values() for row in points)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=INK, label=effects(number))
        for number, (colour, hatch) in enumerate(_GROUNDS[: most + 1])
    ]
    fig.legend(handles=handles, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    return fig


def _draw_square(axes: Axes, place: int, line: int, point: Row) -> None:
    colour, hatch = _GROUNDS[min(int(point["effects"]), len(_GROUNDS) - 1)]
    axes.add_patch(
        Rectangle(
            (place + 0.03, line + 0.06), 0.94, 0.88, facecolor=colour, hatch=hatch, edgecolor=INK, lw=0.8
        )
    )
    said = str(point["effects"]) + (f" {point['outcome']}" if point["outcome"] not in _PLAIN else "")
    box = {"boxstyle": "square,pad=0.12", "fc": "white", "ec": "none"}
    axes.text(
        place + 0.5, line + 0.3, said, ha="center", va="center", zorder=4, bbox=box,
        fontsize=7.5 if point["outcome"] in _PLAIN else 6.2,
        weight="normal" if point["outcome"] in _PLAIN else "bold",
    )  # fmt: skip
    words = "\n".join(textwrap.wrap(_stage(point).replace("_", " ").replace("+", " + "), 12))
    axes.text(
        place + 0.5,
        line + 0.68,
        words,
        ha="center",
        va="center",
        fontsize=5.8,
        zorder=4,
        linespacing=1,
        bbox=box,
    )


_PLAIN = ("safe", "duplicate")  # what the ground says already


def _stage(point: Row) -> str:
    """Name the last stage that was done, without what a rule set makes of an exception there."""
    return str(point["after_stage"]).partition("(")[0]


def _counted(points: list[Row]) -> str:
    counts = Counter(int(row["effects"]) for row in points)
    return ", ".join(f"{count} x {number}" for number, count in sorted(counts.items()))


def _alt(strips: dict[str, list[Row]], follow_up: str) -> str:
    each = []
    for name, points in strips.items():
        bad = [f"{row['outcome']} after {_stage(row)}" for row in points if row["outcome"] != "safe"]
        each.append(f"{name}: {', '.join(bad) or 'safe everywhere'}")
    return f"Strips of crash points, then {follow_up}. {'; '.join(each)}."


def _caption(strips: dict[str, list[Row]], follow_up: str) -> str:
    """Name what is known; counts are words here, and are put beside one another as words."""
    compared = [
        f"{name}: {known}, here {_counted(strips[name]) if name in strips else 'not among these rows'}"
        for name, known in _KNOWN.items()
    ]
    known = f"To match: {'; '.join(compared)}. " if follow_up == "same-key" else ""
    return (
        "A square is the last stage that was done before the process died; the number is the effects after "
        f"one more submission ({follow_up}). {known}One request alone cannot show a lease that runs out "
        "under a living holder; that takes two. Nothing says how likely a crash is at a boundary."
    )


def _table(strips: dict[str, list[Row]]) -> ShownTable:
    body = []
    for name, points in strips.items():
        outcomes = Counter(str(row["outcome"]) for row in points)
        said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        bad = ", ".join(_stage(row) for row in points if row["outcome"] != "safe") or "-"
        body.append((name, str(len(points)), _counted(points), said, bad))
    return ShownTable(
        caption="The numbers behind the picture: boundaries by effects and outcome",
        head=("protocol", "boundaries", "boundaries x effects", "outcomes", "not safe after"),
        body=tuple(body),
    )
