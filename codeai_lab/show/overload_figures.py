"""How does an overload that feeds itself look, second by second?

Chapter: 000, section 15.7: layered retry amplification.

Idea: one panel a run. A server stands still for some seconds, goes on, and the retries hold it down: the load
stays where it is, and nothing of it is answered in time.

Always true:
  OF1. A run is drawn as it was counted, second by second; nothing is smoothed.

Not here: what ends it (`show.rescue_figure`), for which loads it comes (`show.phase_figure`), the rows
(`lessons.what_if`, `lessons.overload`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
from matplotlib.figure import Figure

from codeai_lab.show.drawing import (
    LOOKS,
    Row,
    legend_above,
    line,
    listed,
    must_match,
    named,
    panels,
    said,
)
from codeai_lab.show.shown import GREY, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_LAST_S = 60  # the last minute of a run


def overload_trace(rows: Iterable[Row]) -> Shown:
    """Show load and goodput of one run or several, second by second, a panel each.

    Args:
        rows: of `lessons.overload.trace_rows` or `lessons.what_if.traces`, one run after another; ground is
            dotted for the seconds that say `stands_still`.

    Raises: RefusedValueError (definite) for no row, and for rows without their fields.
    """
    seconds = listed(rows, "case", "second", "load", "goodput", "queue")
    runs = {case: [row for row in seconds if row["case"] == case] for case in named(seconds, "case")}
    last = {case: _last_minute(of_run) for case, of_run in runs.items()}
    with house_style():
        return show_figure(
            trace_drawn(seconds), alt=_trace_alt(last), caption=_trace_caption(last),
            numbers=pd.DataFrame([dict(row) for row in seconds]), table=_trace_table(runs),
        )  # fmt: skip


def trace_drawn(rows: Iterable[Row]) -> Figure:
    """Draw the same, for who makes another frame around it."""
    seconds = listed(rows, "case", "second", "load", "goodput", "queue")
    cases = named(seconds, "case")
    fig, axes = panels(1, down=len(cases), height=2.3 * len(cases) + 0.7, sharex=True)
    for panel, case in zip(axes, cases, strict=True):
        of_run = [row for row in seconds if row["case"] == case]
        at = [row["second"] for row in of_run]
        line(panel, at, [row["load"] for row in of_run], LOOKS[1], "load: attempts", marker="", linewidth=1.1)
        line(
            panel, at, [row["goodput"] for row in of_run], LOOKS[0], "goodput: answers in time", marker="",
            linewidth=1.8,
        )  # fmt: skip
        still = [row["second"] for row in of_run if row.get("stands_still")]
        if still:
            panel.axvspan(
                still[0],
                still[-1] + 1,
                facecolor="#E4E4E4",
                edgecolor=GREY,
                hatch="...",
                linewidth=0,
                zorder=0,
            )
        panel.set_title(as_drawn(case), loc="left")
        panel.set_ylabel("a second")
        panel.set_ylim(bottom=0)
    axes[-1].set_xlabel("s; dotted ground: the server stands still")
    axes[-1].set_xlim(0, max(row["second"] for row in seconds) + 1)
    legend_above(fig, axes[0])
    return fig


def _last_minute(of_run: list[Row]) -> tuple[float, float]:
    """Give mean load and mean goodput of the last minute."""
    end = of_run[-_LAST_S:]
    return tuple(math.fsum(row[field] for row in end) / len(end) for field in ("load", "goodput"))  # type: ignore[return-value]


def _trace_alt(last: dict[str, tuple[float, float]]) -> str:
    each = [
        f"{case}: load {said(round(load))}, goodput {said(round(goodput))}"
        for case, (load, goodput) in last.items()
    ]
    return f"Load and goodput second by second. In the last minute, a second: {'; '.join(each)}."


def _trace_caption(last: dict[str, tuple[float, float]]) -> str:
    load, goodput = last.get("280-one-retry", (None, None))
    return (
        must_match(
            ("280 first tries a second, one retry: load in the last minute", "560, within 18", load),
            ("its goodput", "0", goodput),
            ("140 a second: goodput", "140, within 8", last.get("140-one-retry", (None, None))[1]),
        )
        + " The stop is over after ten seconds, and the retries go on without it. The picture cannot show "
        "why a single request failed, and it is one run: another seed scatters around the same levels."
    )


def _trace_table(runs: dict[str, list[Row]]) -> ShownTable:
    body = []
    for case, of_run in runs.items():
        for start in range(0, len(of_run), _LAST_S):
            part = of_run[start : start + _LAST_S]
            means = [math.fsum(row[field] for row in part) / len(part) for field in ("load", "goodput")]
            span = f"{part[0]['second']} to {part[-1]['second']}"
            body.append((case, span, *(f"{mean:,.1f}" for mean in means), said(part[-1]["queue"])))
    return ShownTable(
        caption="The numbers behind the picture: means over a minute, and the queue at its end",
        head=("run", "seconds", "load", "goodput", "queue"),
        body=tuple(body),
        row_heads=2,
    )
