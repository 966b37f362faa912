"""Which systems come back from an overload, and which stay down?

Chapter: 000, section 15.7: layered retry amplification.

Idea: one bar a system, the load of its last minute; a white diamond says what theory gives. Above an open
system, in which first tries come whatever happens, below it a closed one, in which every client waits for its
answer: waiting longer between attempts rescues only the second.

Always true:
  RE1. Whether a system has come back is said in words and in hatch, as well as in colour.
  RE2. Open and closed systems are never in one panel.

Not here: single runs (`show.overload_figures`), the rows (`lessons.overload`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from codeai_lab.show.drawing import Row, guide, listed, must_match, named, panels, said
from codeai_lab.show.shown import INK, ORANGE, SKY, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_FIELDS = (
    "case", "system", "load", "goodput", "recovered_after_s", "expected_load", "capacity", "horizon_s",
)  # fmt: skip
_DIAMOND: dict[str, Any] = {
    "linestyle": "none", "marker": "D", "markersize": 4.5, "markerfacecolor": "white", "markeredgecolor": INK,
}  # fmt: skip


def rescues(rows: Iterable[Row]) -> Shown:
    """Show for each system the load of its last minute and whether it came back, open and closed apart.

    Args: rows: of `lessons.overload`.
    Raises: RefusedValueError (definite) for no row, and for rows without their fields.
    """
    systems = listed(rows, *_FIELDS)
    with house_style():
        return show_figure(
            _rescues_drawn(systems), alt=_rescues_alt(systems), caption=_rescues_caption(systems),
            numbers=pd.DataFrame([{name: row[name] for name in _FIELDS} for row in systems]),
            table=_rescues_table(systems),
        )  # fmt: skip


def _rescues_drawn(systems: list[Row]) -> Figure:
    kinds = named(systems, "system")
    counts = [sum(row["system"] == kind for row in systems) for kind in kinds]
    fig, axes = panels(
        1, down=len(kinds), height=0.27 * len(systems) + 0.75 * len(kinds) + 0.6, sharex=True,
        height_ratios=[count + 1 for count in counts],
    )  # fmt: skip
    for panel, kind in zip(axes, kinds, strict=True):
        of_kind = [row for row in systems if row["system"] == kind]
        for place, row in enumerate(of_kind):
            _draw_system(panel, place, row)
        panel.set_yticks(range(len(of_kind)), [as_drawn(str(row["case"])) for row in of_kind], fontsize=8)
        panel.set_ylim(len(of_kind) - 0.4, -0.6)
        panel.set_xlim(0, 1.35 * max(float(row["load"]) for row in systems))
        panel.set_title(f"{kind} system", loc="left")
        panel.tick_params(left=False)
        guide(panel, float(of_kind[0]["capacity"]), "capacity")
    axes[-1].set_xlabel("attempts a second in the last minute; dashed: what the server can do")
    fig.legend(
        handles=[
            Patch(facecolor=SKY, edgecolor=INK, label="came back"),
            Patch(facecolor=ORANGE, edgecolor=INK, hatch="////", label="fails to the end"),
            Line2D([], [], label="load that theory gives", **_DIAMOND),
        ],
        loc="outside upper left", ncols=3, frameon=False, fontsize=9,
    )  # fmt: skip
    return fig


def _draw_system(axes: Axes, place: int, row: Row) -> None:
    back = row["recovered_after_s"]
    colour, hatch = (ORANGE, "////") if back is None else (SKY, "")
    axes.barh(place, row["load"], height=0.66, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.8)
    axes.plot([row["expected_load"]], [place], zorder=4, **_DIAMOND)
    right = max(float(row["load"]), float(row["expected_load"]))
    axes.annotate(
        _end(row), (right, place), (8, 0), textcoords="offset points", va="center", fontsize=8,
        bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
    )  # fmt: skip


def _end(row: Row) -> str:
    back = row["recovered_after_s"]
    return "fails to the end" if back is None else f"back after {said(back)} s"


def _rescues_alt(systems: list[Row]) -> str:
    each = []
    for kind in named(systems, "system"):
        failing = [
            str(row["case"]) for row in systems if row["system"] == kind and row["recovered_after_s"] is None
        ]
        total = sum(row["system"] == kind for row in systems)
        each.append(f"{kind}: {len(failing)} of {total} fail to the end ({', '.join(failing) or 'none'})")
    return f"Bar chart of the load in the last minute, system by system. {'; '.join(each)}."


def _rescues_caption(systems: list[Row]) -> str:
    by_case = {str(row["case"]): row for row in systems}

    def of(case: str, field: str) -> float | None:
        return by_case[case][field] if case in by_case else None

    return (
        must_match(
            ("open, one retry: load", "560, within 18", of("280-one-retry", "load")),
            ("its goodput", "0", of("280-one-retry", "goodput")),
            ("with waits of up to 1 s, full jitter", "560", of("280-full-1s", "load")),
            ("no retry: back after", "125 s, one run 118 to 139", of("280-no-retry", "recovered_after_s")),
            ("closed, no wait: load", "400", of("closed-no-backoff", "load")),
            ("closed, 1 to 20 s: back after", "8 to 10 s", of("closed-full-1s-20s", "recovered_after_s")),
        )
        + " In the open system waiting alone rescues nothing, since first tries do not wait; in the closed "
        "one it takes load away. The picture cannot show what a rescue costs those whose retry is "
        "refused, nor what comes after the horizon."
    )  # fmt: skip


def _rescues_table(systems: list[Row]) -> ShownTable:
    return ShownTable(
        caption="The numbers behind the picture: the last minute, a second (theory)",
        head=("system", "case", "load", "goodput", "end"),
        body=tuple(
            (
                str(row["system"]),
                str(row["case"]),
                f"{row['load']:,.1f} ({said(row['expected_load'])})",
                f"{row['goodput']:,.1f}",
                f"{_end(row)} ({said(row['horizon_s'])} s)"
                if row["recovered_after_s"] is None
                else _end(row),
            )
            for row in systems
        ),
        row_heads=2,
    )
