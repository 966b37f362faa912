"""What do layers, throttling and hedging do to the number of calls?

Chapter: 000, section 15.7: layered retry amplification.

Idea: three pictures, each of a law beside what was measured. Layers that each retry multiply; a client that
looks at what was accepted holds itself to a factor of it; a second copy sent early buys speed for calls, and
for duplicates where nothing protects a write.

Always true:
  YF1. A bar or a marker is measured, a white diamond or a line is the closed form.

Not here: the rows (`lessons.amplification`), queues (`show.overload_figures`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from codeai_lab.decide.overload_laws import hedged_quantile, hedged_share
from codeai_lab.show.drawing import (
    LOOKS,
    Row,
    beside,
    error_of,
    guide,
    line,
    listed,
    must_match,
    panels,
    said,
    sampled,
    theory,
)
from codeai_lab.show.shown import INK, SKY, Shown, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_DIAMOND: dict[str, Any] = {
    "marker": "D", "linestyle": "none", "markerfacecolor": "white", "markeredgecolor": INK, "markersize": 6,
    "label": "closed form", "zorder": 4,
}  # fmt: skip
RARE = 0.001


def layers(rows: Iterable[Row]) -> Shown:
    """Show how many calls reach the bottom of a stack of layers for one request at its top.

    Args: rows: of `lessons.amplification.layers_measured`.
    Raises: RefusedValueError (definite) for no row, and for rows without their fields.
    """
    stacks = listed(rows, "layers", "attempts", "failure", "calls")
    names = [_stack(row) for row in stacks]
    with house_style():
        fig, (axes,) = panels(1, height=0.42 * len(stacks) + 1.1)
        places = range(len(stacks), 0, -1)
        measured = [sampled(row, "calls") for row in stacks]
        axes.barh(places, measured, height=0.6, color=SKY, edgecolor=INK, hatch="//", label="measured")
        axes.plot([theory(row, "calls") or math.nan for row in stacks], list(places), **_DIAMOND)
        for place, row in zip(places, stacks, strict=True):
            axes.annotate(
                beside(row, "calls"), (sampled(row, "calls"), place), (9, 0), textcoords="offset points",
                va="center", fontsize=8.5,
            )  # fmt: skip
        axes.set_yticks(places, names)
        axes.set_xscale("log")
        axes.set_xlim(0.9, 3 * max(measured))
        axes.set_xlabel("calls at the bottom for one request; in brackets the closed form")
        axes.legend(loc="lower right", frameon=False, fontsize=8.5)
        return show_figure(
            fig, alt=_layers_alt(stacks), caption=_layers_caption(stacks),
            numbers=_numbers(stacks, ("layers", "attempts", "failure"), ("calls", "failed")),
            table=ShownTable(
                caption="The numbers behind the picture: calls at the bottom, as measured (closed form)",
                head=("stack", "calls"),
                body=tuple((name, beside(row, "calls")) for name, row in zip(names, stacks, strict=True)),
            ),
        )  # fmt: skip


def _stack(row: Row) -> str:
    failing = "every call fails" if row["failure"] == 1 else f"{row['failure']:.0%} fail"
    return f"{_counted(row['layers'], 'layer')} x {_counted(row['attempts'], 'attempt')}, {failing}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _layers_alt(stacks: list[Row]) -> str:
    each = [f"{_stack(row)}: {said(sampled(row, 'calls'))}" for row in stacks]
    return f"Bar chart of calls at the bottom for one request at the top. {'; '.join(each)}."


def _layers_caption(stacks: list[Row]) -> str:
    def calls(layers: int, attempts: int) -> float | None:
        found = [
            row for row in stacks if (row["layers"], row["attempts"], row["failure"]) == (layers, attempts, 1)
        ]
        return sampled(found[0], "calls") if found else None

    pairs = [
        ("three layers of 4 attempts", "64", calls(3, 4)),
        ("five of 3", "243", calls(5, 3)),
        ('four owners, where "three" counts attempts', "81", calls(4, 3)),
        ("and where it counts retries", "256", calls(4, 4)),
    ]
    return (
        f"{must_match(*pairs)} Where a call fails with probability f, (1 - f^n) / (1 - f) with n = attempts "
        "to the power of layers. The picture takes calls to fail independently of one another; under load "
        "they do not, and what it cannot show is that the calls themselves make the failures."
    )


# --- adaptive throttling -------------------------------------------------------------------------------


def throttling(rows: Iterable[Row]) -> Shown:
    """Show what adaptive throttling lets through to a backend, for each K.

    Args: rows: of `lessons.amplification.throttling_measured`.
    Raises: RefusedValueError (definite) for no row, and for rows without their fields.
    """
    seen = sorted(listed(rows, "k", "demand", "accepts", "load"), key=lambda row: float(row["k"]))
    with house_style():
        fig, (axes,) = panels(1, height=3.2)
        ks = [row["k"] for row in seen]
        known = [theory(row, "load") or math.nan for row in seen]
        line(axes, ks, known, LOOKS[1], "K x what is accepted", marker="")
        axes.errorbar(
            ks, [sampled(row, "load") for row in seen], yerr=[2 * error_of(row, "load") for row in seen],
            linestyle="none", marker="o", color=LOOKS[0].colour, ecolor=INK, capsize=4, markeredgecolor=INK,
            label="measured, two standard errors",
        )  # fmt: skip
        guide(axes, float(seen[0]["accepts"]), "accepted by the backend", across=True)
        axes.set_xlabel(f"K; the clients' demand is {said(seen[0]['demand'])} a second")
        axes.set_ylabel("calls a second at the backend")
        axes.legend(frameon=False, fontsize=8.5)
        by_k = {float(row["k"]): sampled(row, "load") for row in seen}
        pairs = [
            (f"load at K = {k:g}", known, by_k.get(k))
            for k, known in ((2.0, "200"), (1.5, "150"), (1.1, "110"))
        ]
        return show_figure(
            fig,
            alt="Load at the backend against K. "
            + "; ".join(f"K {row['k']:g}: {said(sampled(row, 'load'))} a second" for row in seen) + ".",
            caption=f"{must_match(*pairs)} The backend sees K times what it accepts, whatever the demand. "
            "Near K = 1 chance leaves it less than it would accept. The picture cannot show the first "
            "minutes, in which the clients do not know yet what is accepted.",
            numbers=_numbers(seen, ("k", "demand", "accepts"), ("load", "accepted")),
            table=ShownTable(
                caption="The numbers behind the picture: calls a second, as measured (closed form)",
                head=("K", "load", "accepted"),
                body=tuple((f"{row['k']:g}", beside(row, "load"), beside(row, "accepted")) for row in seen),
            ),
        )  # fmt: skip


# --- hedging -------------------------------------------------------------------------------------------


def hedging(rows: Iterable[Row]) -> Shown:
    """Show what a second copy costs and what it saves, against the wait before it is sent.

    Args: rows: of `lessons.amplification.hedging_measured`.
    Raises: RefusedValueError (definite) for no row, and for rows without their fields.
    """
    sent = sorted(
        listed(rows, "after", "extra_load", "p999_sampled", "p999_unhedged"),
        key=lambda row: float(row["after"]),
    )
    with house_style():
        fig, (cost, gain) = panels(2, height=3.3)
        waits = [float(row["after"]) for row in sent]
        fine = [place * max(*waits, 1.0) * 1.15 / 60 for place in range(61)]
        line(cost, fine, [hedged_share(wait) for wait in fine], LOOKS[1], "closed form", marker="")
        line(
            cost, waits, [sampled(row, "extra_load") for row in sent], LOOKS[0], "measured", linestyle="none"
        )
        line(gain, fine, [hedged_quantile(wait, RARE) for wait in fine], LOOKS[1], "closed form", marker="")
        line(gain, waits, [row["p999_sampled"] for row in sent], LOOKS[0], "measured", linestyle="none")
        guide(gain, float(sent[0]["p999_unhedged"]), "without a second copy, measured", across=True)
        for axes, words in ((cost, "share that is sent twice"), (gain, "99.9th percentile, mean latencies")):
            axes.set_title(words, loc="left")
            axes.set_xlabel("wait before the second copy, mean latencies")
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False, fontsize=8.5)
        return show_figure(
            fig, alt=_hedging_alt(sent), caption=_hedging_caption(sent),
            numbers=_numbers(sent, ("after", "p999_sampled", "p999_unhedged"), ("extra_load",)),
            table=_hedging_table(sent),
        )  # fmt: skip


def _hedging_alt(sent: list[Row]) -> str:
    each = [
        f"after {row['after']:g}: {said(sampled(row, 'extra_load'))} more calls, 99.9th percentile "
        f"{said(row['p999_sampled'])}"
        for row in sent
    ]
    return f"Cost and gain of a second copy against the wait before it. {'; '.join(each)}."


def _hedging_caption(sent: list[Row]) -> str:
    at = {float(row["after"]): row for row in sent}
    pairs = [
        (f"sent twice after {wait:g}", share, sampled(at[wait], "extra_load") if wait in at else None)
        for wait, share in ((0.5, "0.6065"), (1.0, "0.3679"), (3.0, "0.0498"))
    ]
    pairs += [
        (f"percentile after {wait:g}", known, at[wait]["p999_sampled"] if wait in at else None)
        for wait, known in ((0.5, "3.704"), (1.0, "3.954"), (3.0, "4.954"))
    ]
    return (
        f"{must_match(*pairs)} Latencies are exponential with mean 1. The left panel is also the expected "
        "number of duplicates of a write that nothing protects. The picture cannot show load: here a second "
        "copy slows nobody down."
    )


def _hedging_table(sent: list[Row]) -> ShownTable:
    return ShownTable(
        caption="The numbers behind the picture: as measured (closed form)",
        head=("sent after", "sent twice", "99.9th percentile", "without a second copy"),
        body=tuple(
            (
                f"{row['after']:g}",
                beside(row, "extra_load"),
                f"{said(row['p999_sampled'])} ({said(hedged_quantile(float(row['after']), RARE))})",
                said(row["p999_unhedged"]),
            )
            for row in sent
        ),
    )


def _numbers(rows: list[Row], plain: tuple[str, ...], estimated: tuple[str, ...]) -> pd.DataFrame:
    lines = [
        {name: row.get(name) for name in plain}
        | {f"{name}_sampled": sampled(row, name) for name in estimated if name in row}
        | {f"{name}_theory": theory(row, name) for name in estimated if name in row}
        for row in rows
    ]
    return pd.DataFrame(lines)
