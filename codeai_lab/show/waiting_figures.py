"""How long do clients wait before each retry, and how well are they spread?

Chapter: 000, section 15.7: full jitter samples a delay within a bounded window.

Idea: two pictures. In the first, one panel a rule and one line a retry: for each wait, the share of clients
that waited no longer. A rise that is vertical is a crowd: clients that wait for exactly the same time. In the
second, what each wait and all of them together come to on average.

Always true:
  WF1. Waits are drawn from the quantiles of a sample, without bins: an atom is a vertical line.
  WF2. A marker is a sample, a line a closed form; where they part, the picture shows it.

Not here: the rows (`lessons.backoff`, `lessons.wait_shapes`), what waiting is good for
(`show.contention_figures`, `show.overload_figures`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codeai_lab.show.drawing import (
    LOOKS,
    Row,
    beside,
    key,
    legend_above,
    line,
    listed,
    look,
    must_match,
    named,
    panels,
    said,
    sampled,
    theory,
)
from codeai_lab.show.shown import INK, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_COUNTING = (
    "Retry 1 has the window base here; a rule that counts the failure first, as the jitter study does, "
    "begins at 2 x base, and the decorrelated rule's first wait is 2 x base on average."
)


def wait_distributions(rows: Iterable[Row]) -> Shown:
    """Show, for each rule and some of its retries, the share of clients that wait no longer than a time.

    Args: rows: of `lessons.wait_shapes`: strategy, attempt, quantiles, atom_at_cap.
    Raises: RefusedValueError (definite) for no row, and for rows without these fields.
    """
    shapes = listed(rows, "strategy", "attempt", "quantiles", "atom_at_cap")
    rules = named(shapes, "strategy")
    with house_style():
        fig = _distributions(shapes, rules)
        return show_figure(
            fig, alt=_distributions_alt(shapes, rules), caption=_distributions_caption(shapes),
            numbers=_quantile_numbers(shapes), table=_atoms_table(shapes, rules),
        )  # fmt: skip


def _distributions(shapes: list[Row], rules: list[str]) -> Figure:
    across = min(5, len(rules))
    down = -(-len(rules) // across)
    fig, axes = panels(across, down=down, height=2.5 * down + 0.9, sharex=True, sharey=True)
    attempts = sorted({row["attempt"] for row in shapes})
    for panel, rule in zip(axes, rules, strict=False):
        panel.set_title(as_drawn(rule), loc="left")
        for row in (row for row in shapes if row["strategy"] == rule):
            _draw_shape(panel, row, attempts)
    for panel in axes[len(rules) :]:
        panel.set_visible(False)
    for panel in axes[max(0, len(rules) - across) : len(rules)]:
        panel.tick_params(labelbottom=True)
    longest = max(row["quantiles"][-1] for row in shapes)
    axes[0].set_xlim(-0.05 * longest, 1.25 * longest)
    axes[0].set_ylabel("share that waits no longer")
    fig.supxlabel("wait, in the unit of base and cap", fontsize=9.5)
    legend_above(fig, axes[0])
    return fig


def _draw_shape(axes: Axes, row: Row, attempts: list[int]) -> None:
    waits = row["quantiles"]
    shares = [place / (len(waits) - 1) for place in range(len(waits))]
    which = LOOKS[attempts.index(row["attempt"]) % len(LOOKS)]
    line(axes, waits, shares, which, f"retry {row['attempt']}", markevery=25)
    atom = sampled(row, "atom_at_cap")
    if 0 < atom < 1:
        axes.annotate(
            said(round(atom, 3)), (waits[-1], 1 - atom), (4, 0), textcoords="offset points", va="center",
            fontsize=7.5, color=INK,
        )  # fmt: skip


def _distributions_alt(shapes: list[Row], rules: list[str]) -> str:
    last = max(row["attempt"] for row in shapes)
    ends = {row["strategy"]: sampled(row, "atom_at_cap") for row in shapes if row["attempt"] == last}
    crowds = [f"{rule} {said(round(ends[rule], 3))}" for rule in rules if rule in ends]
    return (
        f"Cumulative distributions of waits, {len(rules)} rules. Share of clients that wait for exactly the "
        f"cap before retry {last}: {', '.join(crowds)}."
    )


def _distributions_caption(shapes: list[Row]) -> str:
    found = _of(shapes, "decorrelated", 4)
    here = None if found is None else sampled(found, "atom_at_cap")
    return (
        "A vertical rise is a crowd that waits for exactly the same time; the number at its foot is its "
        "share at the cap. Base 1 and cap 20. "
        f"{must_match(('decorrelated, retry 4, share at the cap', '0.1039', here))} {_COUNTING} The picture "
        "cannot show what a wait achieves, nor that decorrelated waits follow from one another."
    )


def _quantile_numbers(shapes: list[Row]) -> pd.DataFrame:
    lines = [
        (row["strategy"], row["attempt"], place / (len(row["quantiles"]) - 1), wait)
        for row in shapes
        for place, wait in enumerate(row["quantiles"])
    ]
    return pd.DataFrame(lines, columns=["strategy", "attempt", "share", "wait"])


def _atoms_table(shapes: list[Row], rules: list[str]) -> ShownTable:
    attempts = sorted({row["attempt"] for row in shapes})
    return ShownTable(
        caption="The numbers behind the picture: half wait no longer than; share at the cap (theory)",
        head=("strategy", *(f"retry {attempt}" for attempt in attempts)),
        body=tuple(
            (rule, *(_atom_words(_of(shapes, rule, attempt)) for attempt in attempts)) for rule in rules
        ),
    )


def _atom_words(row: Row | None) -> str:
    if row is None:
        return "not drawn"
    middle = row["quantiles"][len(row["quantiles"]) // 2]
    return f"{said(middle)}; {beside(row, 'atom_at_cap')}"


def _of(rows: Sequence[Row], rule: str, attempt: int) -> Row | None:
    return next((row for row in rows if (row["strategy"], row["attempt"]) == (rule, attempt)), None)


# --- means and totals ----------------------------------------------------------------------------------


def mean_waits(rows: Iterable[Row]) -> Shown:
    """Show the mean wait before each retry, and mean and spread of all waits together, rule by rule.

    Args: rows: of `lessons.backoff`: strategy, attempt, mean, total_mean, total_sd.
    Raises: RefusedValueError (definite) for no row, and for rows without these fields.
    """
    waits = listed(rows, "strategy", "attempt", "mean", "total_mean", "total_sd")
    with house_style():
        totals = {row["strategy"]: row for row in waits}
        return show_figure(
            waits_drawn(waits), alt=_means_alt(totals), caption=_means_caption(totals),
            numbers=_mean_numbers(waits), table=_totals_table(waits, totals),
        )  # fmt: skip


def waits_drawn(rows: Iterable[Row]) -> Figure:
    """Draw the same, for who makes another frame around it."""
    waits = listed(rows, "strategy", "attempt", "mean", "total_mean", "total_sd")
    rules = named(waits, "strategy")
    fig, (each, total) = panels(2, height=0.3 * len(rules) + 2.4, width_ratios=(3, 2))
    for rule in rules:
        of_rule = [row for row in waits if row["strategy"] == rule]
        _draw_means(each, of_rule, rule, rules)
        _draw_total(total, of_rule[0], len(rules) - rules.index(rule), rule, rules)
    each.set_xlabel("retry")
    each.set_ylabel("mean wait")
    each.legend(
        handles=[key(look(rule, rules), rule) for rule in rules], frameon=False, fontsize=8, handlelength=3.2
    )
    total.set_yticks(range(len(rules), 0, -1), list(map(as_drawn, rules)))
    total.set_xlabel("total wait: mean, one sd to each side")
    total.set_xlim(left=0)
    return fig


def _draw_means(axes: Axes, of_rule: list[Row], rule: str, rules: list[str]) -> None:
    attempts = [row["attempt"] for row in of_rule]
    which = look(rule, rules)
    line(axes, attempts, [theory(row, "mean") for row in of_rule], which, marker="")
    line(axes, attempts, [sampled(row, "mean") for row in of_rule], which, linestyle="none")


def _draw_total(axes: Axes, row: Row, place: int, rule: str, rules: list[str]) -> None:
    which = look(rule, rules)
    axes.errorbar(
        [sampled(row, "total_mean")], [place], xerr=[sampled(row, "total_sd")], marker=which.marker,
        color=which.colour, markeredgecolor=INK, ecolor=INK, capsize=4, linewidth=1.2,
    )  # fmt: skip


def _means_alt(totals: dict[str, Row]) -> str:
    each = [
        f"{rule} {said(sampled(row, 'total_mean'))}, sd {said(sampled(row, 'total_sd'))}"
        for rule, row in totals.items()
    ]
    return f"Mean wait before each retry, and the total of all waits. Totals: {'; '.join(each)}."


def _means_caption(totals: dict[str, Row]) -> str:
    full, equal = totals.get("full"), totals.get("equal")
    return (
        "Markers: a sample; lines: the closed form. Base 1, cap 20, 8 retries. "
        + must_match(
            ("total of full jitter", "45.5", None if full is None else sampled(full, "total_mean")),
            ("its sd", "11.33", None if full is None else sampled(full, "total_sd")),
            ("total of equal jitter", "68.25", None if equal is None else sampled(equal, "total_mean")),
        )
        + " A mean hides who waits together: a rule with no spread at all, and one with little, bring a "
        "crowd back at once. The picture cannot show which total is worth its time."
    )


def _mean_numbers(waits: list[Row]) -> pd.DataFrame:
    lines = [
        {"strategy": row["strategy"], "attempt": row["attempt"]}
        | {f"{name}_sampled": sampled(row, name) for name in ("mean", "total_mean", "total_sd")}
        | {f"{name}_theory": theory(row, name) for name in ("mean", "total_mean", "total_sd")}
        for row in waits
    ]
    return pd.DataFrame(lines)


def _totals_table(waits: list[Row], totals: dict[str, Row]) -> ShownTable:
    attempts = sorted({row["attempt"] for row in waits})
    body = []
    for rule, total in totals.items():
        each = [_of(waits, rule, attempt) for attempt in attempts]
        means = [said(None if row is None else sampled(row, "mean")) for row in each]
        body.append((rule, *means, beside(total, "total_mean"), beside(total, "total_sd")))
    return ShownTable(
        caption="The numbers behind the picture: mean wait before each retry, as sampled; totals (theory)",
        head=("strategy", *map(str, attempts), "total", "sd of total"),
        body=tuple(body),
    )
