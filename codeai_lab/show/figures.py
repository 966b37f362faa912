"""How many effects did each case have under each rule set?

Chapter: 004, "The executed demo, read exactly" and "Failure is cached, and that is a decision".

Idea: one panel a rule set, one line a case. The bar is what the world's receipts show; the bracket under it
is what the ledger allows. Where the bracket is one stroke, the ledger knows the number; where it is wide,
only the world does.

Always true:
  G1. The bar is the world's count and the bracket the ledger's range; the summary is not drawn.
  G2. A duplicate has a hatch and a star, a world outside the ledger's range a cross: never colour alone.
  G3. A case that a rule set did not run says so; it is not drawn as zero.

Not here: how a figure becomes a page (`show.shown`), time lines (`show.timelines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerLine2D
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.shown import GREY, INK, ORANGE, SKY, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import agreement, count, labels, ledger_range, read, say

__all__ = ["Shown", "effects_by_case", "show_figure"]

_Places = dict[tuple[str, str], Mapping[str, Any]]


def effects_by_case(rows: Iterable[Mapping[str, Any]]) -> Shown:
    """Show how many effects each case had under each rule set, as the world and the ledger count them.

    Args: rows: rows of three witnesses, at most one a case and rule set.
    Raises: RefusedValueError when there is no row, or two for one case and rule set (definite).
    """
    by_place = _by_place(rows)
    cases = list(dict.fromkeys(case for case, _ in by_place))
    revisions = list(dict.fromkeys(revision for _, revision in by_place))
    most = max(max(read(row, "effects_world"), ledger_range(row)[1]) for row in by_place.values())
    with house_style():
        fig = _panels(cases, revisions, by_place, most)
        caption = (
            "Bars: effects that the world's own receipts show. Brackets: the fewest and the most that the "
            "ledger allows. Counted from one run of each case; the picture cannot show an effect that leaves "
            "no receipt, nor whether an effect was the right one."
        )
        return show_figure(
            fig, alt=_effects_alt(cases, revisions, by_place), caption=caption,
            numbers=_effect_numbers(by_place), table=_effects_table(cases, revisions, by_place),
        )  # fmt: skip


def _by_place(rows: Iterable[Mapping[str, Any]]) -> _Places:
    places: _Places = {}
    for row in rows:
        place = (say(read(row, "case")), say(read(row, "revision")))
        if place in places:
            raise RefusedValueError(", ".join(place), "there are two rows for this place; draw them apart.")
        places[place] = row
    if not places:
        raise RefusedValueError("rows", "there is nothing to draw; hand in at least one row.")
    return places


def _panels(cases: list[str], revisions: list[str], places: _Places, most: int) -> Figure:
    across = min(5, len(revisions))
    down = -(-len(revisions) // across)
    height = down * (0.4 * len(cases) + 0.65) + 0.8
    fig = Figure(figsize=(9.2, height), layout="constrained")
    panels = list(fig.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for axes, revision in zip(panels, revisions, strict=False):
        axes.set_title(as_drawn(f"rules {revision}"), loc="left")
        for place, case in enumerate(cases):
            _draw_place(axes, place, places.get((case, revision)))
        axes.set_yticks(range(len(cases)), list(map(as_drawn, cases)))
        axes.set_ylim(len(cases) - 0.5, -0.5)
        axes.set_xlim(0, 1.3 * most + 0.7)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.tick_params(left=False)
        axes.grid(axis="x", color="#D0D0D0", linewidth=0.6)
        axes.set_axisbelow(True)
    for axes in panels[len(revisions) :]:
        axes.set_visible(False)
    fig.supxlabel("effects in the world", fontsize=9.5)
    _add_legend(fig)
    return fig


def _draw_place(axes: Axes, place: int, row: Mapping[str, Any] | None) -> None:
    if row is None:
        axes.annotate("not run", (0, place), (6, 0), textcoords="offset points", va="center", color=GREY)
        return
    world, (low, high) = read(row, "effects_world"), ledger_range(row)
    duplicate, outside = "duplicate" in labels(row), not low <= world <= high
    colour, hatch = (ORANGE, "////") if duplicate else (SKY, None)
    axes.barh(place - 0.1, world, height=0.42, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.8)
    axes.plot([low, high], [place + 0.25] * 2, clip_on=False, zorder=3, **_BRACKET)
    said = str(world) + (" \u2605" if duplicate else "") + (" \u2716" if outside else "")
    axes.annotate(said, (world, place - 0.1), (5, 0), textcoords="offset points", va="center", zorder=4)


_BRACKET: dict[str, Any] = {"color": INK, "lw": 1.4, "marker": "|", "markersize": 7, "markeredgewidth": 1.8}


def _add_legend(fig: Figure) -> None:
    bracket = Line2D([], [], label="ledger: fewest to most", **_BRACKET)
    handles = [
        Patch(facecolor=SKY, edgecolor=INK, label="world: receipts"),
        bracket,
        Patch(facecolor=ORANGE, edgecolor=INK, hatch="////", label="\u2605 a request is a duplicate"),
        Line2D([], [], linestyle="none", label="\u2716 world outside the ledger's range"),
    ]
    fig.legend(
        handles=handles, handler_map={bracket: HandlerLine2D(numpoints=2)}, loc="outside upper left",
        ncols=4, frameon=False, fontsize=9, handlelength=2, columnspacing=1.6,
    )  # fmt: skip


def _effect_numbers(places: _Places) -> pd.DataFrame:
    lines = [
        (*place, read(row, "effects_world"), *ledger_range(row), ", ".join(labels(row)), agreement(row))
        for place, row in places.items()
    ]
    columns = ["case", "revision", "world", "ledger_low", "ledger_high", "labels", "agreement"]
    return pd.DataFrame(lines, columns=columns)


def _effects_table(cases: list[str], revisions: list[str], places: _Places) -> ShownTable:
    return ShownTable(
        caption="The numbers behind the picture: effects in the world, and what the ledger allows",
        head=("case", *revisions),
        body=tuple(
            (case, *(_place_words(places.get((case, rules))) for rules in revisions)) for case in cases
        ),
    )


def _place_words(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "not run"
    said = f"{read(row, 'effects_world')}; ledger {count(*ledger_range(row))}"
    quarrel = agreement(row)
    if quarrel.startswith("disagree"):
        return quarrel
    return f"{said}; duplicate" if "duplicate" in labels(row) else said


def _effects_alt(cases: list[str], revisions: list[str], places: _Places) -> str:
    doubled = {place for place, row in places.items() if "duplicate" in labels(row)}
    outside = {place for place, row in places.items() if agreement(row).startswith("disagree: the ledger")}
    drawn = f"{_counted(len(cases), 'case')} under {_counted(len(revisions), 'rule set')}"
    return (
        f"Bar chart of effects per case: {drawn}. "
        f"Duplicated effects: {_named(doubled, cases, revisions)}. "
        f"World outside the ledger's range: {_named(outside, cases, revisions)}."
    )


def _named(found: set[tuple[str, str]], cases: list[str], revisions: list[str]) -> str:
    """Name places case by case, in the order of the picture."""
    said = []
    for case in cases:
        under = [revision for revision in revisions if (case, revision) in found]
        if under:
            rules = "every rule set" if len(under) == len(revisions) > 1 else ", ".join(under)
            said.append(f"{case} under {rules}")
    return "; ".join(said) or "none"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
