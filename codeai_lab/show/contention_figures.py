"""What do five ways of waiting cost when N clients want to change one row?

Chapter: 000, section 15.7, and the study of contention that it cites.

Idea: calls and time against the number of clients, on logarithmic axes, with what theory says beside what
was run.

Always true:
  CF1. Points are means over the runs of a cell; theory is a line of its own, never fitted to the points.

Not here: where the ranking flips (`show.ranking_figure`), the rows (`lessons.contention`), the theory
(`decide.contention_laws`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from codeai_lab.decide.contention_laws import CYCLE_MS, mean_gap_ms, one_after_another
from codeai_lab.show.drawing import (
    Row,
    legend_above,
    line,
    listed,
    look,
    must_match,
    named,
    panels,
    said,
)
from codeai_lab.show.shown import GREY, INK, Shown, house_style, show_figure
from codeai_lab.show.tables import ShownTable

CELL_FIELDS = ("strategy", "clients", "runs", "calls_mean", "calls_sd", "time_ms_mean", "time_ms_sd")
_N_LOG_N = 1.22  # calls of equal jitter over N log2 N, between 50 and 190 clients


def calls_and_time(rows: Iterable[Row]) -> Shown:
    """Show calls and time against the number of clients, strategy by strategy, with what theory says.

    Args: rows: of `lessons.contention`.
    Raises: RefusedValueError (definite) for no row, and for rows without these fields.
    """
    cells = listed(rows, *CELL_FIELDS)
    with house_style():
        return show_figure(
            contention_drawn(cells), alt=_calls_alt(cells), caption=_calls_caption(cells),
            numbers=_numbers(cells), table=_calls_table(cells),
        )  # fmt: skip


def contention_drawn(rows: Iterable[Row]) -> Figure:
    """Draw the same, for who makes another frame around it."""
    cells = listed(rows, *CELL_FIELDS)
    rules, counts = named(cells, "strategy"), counts_of(cells)
    fig, (calls, time) = panels(2, height=4.2)
    for rule in rules:
        of_rule = sorted(
            (row for row in cells if row["strategy"] == rule), key=lambda row: int(row["clients"])
        )
        for axes, field, unit in ((calls, "calls_mean", 1.0), (time, "time_ms_mean", 1_000.0)):
            line(axes, [row["clients"] for row in of_rule], [row[field] / unit for row in of_rule],
                 look(rule, rules), rule)  # fmt: skip
    _draw_theory(calls, time, rules, counts)
    for axes, words in ((calls, "calls until all have changed the row"), (time, "time, s")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(words, loc="left")
        axes.set_xlabel("clients")
        axes.set_xticks(_few(counts), list(map(str, _few(counts))))
        axes.xaxis.set_minor_formatter(NullFormatter())
    time.yaxis.set_major_formatter(ScalarFormatter())
    legend_above(fig, calls, ncols=4)
    return fig


def _draw_theory(calls: Axes, time: Axes, rules: Sequence[str], counts: list[int]) -> None:
    thin: dict[str, Any] = {"color": INK, "linewidth": 1.0, "zorder": 1}
    if "no-backoff" in rules:
        known = [without_backoff(count) for count in counts]
        given: dict[str, Any] = {
            "linestyle": "-",
            "marker": "+",
            "markersize": 4,
            "label": "theory: no backoff",
        }
        calls.plot(counts, [value for value, _ in known], **thin, **given)
        time.plot(counts, [value / 1_000 for _, value in known], **thin, **given)
    log_n = [_N_LOG_N * count * math.log2(count) if count > 1 else 1.0 for count in counts]
    calls.plot(counts, log_n, **thin | {"color": GREY}, linestyle=(0, (3, 2)), label="1.22 N log2 N")
    alone = [one_after_another(count) for count in counts]
    given = {"color": GREY, "linestyle": (0, (1, 2)), "label": "one after another"}
    calls.plot(counts, [value for value, _ in alone], **thin | given)
    time.plot(counts, [value / 1_000 for _, value in alone], **thin | given)


def without_backoff(clients: int) -> tuple[float, float]:
    """Give expected calls and time, as `decide.contention_laws` does; gaps are reckoned one time only."""
    gaps = [_gap(k) for k in range(1, clients + 1)]
    return math.fsum(k * gap / CYCLE_MS for k, gap in enumerate(gaps, start=1)), math.fsum(gaps[1:])


@cache
def _gap(clients: int) -> float:
    return mean_gap_ms(clients)


def _calls_alt(cells: list[Row]) -> str:
    most = counts_of(cells)[-1]
    last = [
        f"{row['strategy']} {said(round(row['calls_mean']))} calls in {said(row['time_ms_mean'] / 1_000)} s"
        for row in cells
        if row["clients"] == most
    ]
    return (
        f"Calls and time against the number of clients, both axes logarithmic. At {most}: {'; '.join(last)}."
    )


def _calls_caption(cells: list[Row]) -> str:
    return (
        "Points: means over the runs of a cell. "
        + must_match(
            ("calls at 100 clients, full jitter", "796", value_of(cells, "full", 100, "calls_mean")),
            ("exponential", "1,859", value_of(cells, "exponential", 100, "calls_mean")),
            ("time in ms, full", "4,892", value_of(cells, "full", 100, "time_ms_mean")),
            ("exponential", "63,628", value_of(cells, "exponential", 100, "time_ms_mean")),
        )
        + " Theory without backoff takes the clients to be spread from the start, so that it is 9 % low at "
        "50 clients and right to 1.5 % at 500; jitter changes the factor, not the law. The picture cannot "
        "show load: the server of this model has no service time, and a failed call costs it nothing."
    )


def _calls_table(cells: list[Row]) -> ShownTable:
    rules = named(cells, "strategy")
    body = [
        (
            str(count),
            *(_cell_words(cells, rule, count) for rule in rules),
            said(round(without_backoff(count)[0])),
        )
        for count in counts_of(cells)
    ]
    return ShownTable(
        caption="The numbers behind the picture: mean calls; mean time in ms",
        head=("clients", *rules, "calls, theory: no backoff"),
        body=tuple(body),
    )


def _cell_words(cells: list[Row], rule: str, count: int) -> str:
    calls, time = (value_of(cells, rule, count, field) for field in ("calls_mean", "time_ms_mean"))
    return "not run" if calls is None or time is None else f"{calls:,.1f}; {time:,.0f}"


# --- cells ---------------------------------------------------------------------------------------------


def counts_of(cells: list[Row]) -> list[int]:
    return sorted({int(row["clients"]) for row in cells})


def _few(counts: list[int]) -> list[int]:
    """Give the numbers that a logarithmic axis has room for."""
    kept = counts[:1]
    for count in counts[1:]:
        if count / kept[-1] > 1.25:
            kept.append(count)
    return kept


def value_of(cells: list[Row], rule: str, count: int, field: str) -> float | None:
    """Give a field of one cell; None where the cell was not run."""
    return next((row[field] for row in cells if row["strategy"] == rule and row["clients"] == count), None)


def _numbers(cells: list[Row]) -> pd.DataFrame:
    return pd.DataFrame([{field: row[field] for field in CELL_FIELDS} for row in cells])
