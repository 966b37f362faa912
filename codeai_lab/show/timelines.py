"""What happened between caller, runtime, adapter, world and ledger, drawn as one picture?

Chapter: 004, "Where the cache stops": recorded completion replays, orphaned request repeats.

Idea: the arrows of `show.sequence` are drawn one below the other between five lanes, and written once more as
a numbered list. The numbers on the arrows are the numbers of the list.

Always true:
  L1. The picture draws every arrow of the list, in its order, and nothing else.
  L2. What is inferred is dashed, what is lost ends in a cross, what changes the world is thick.
  L3. The alternative text is counted from the arrows.

Not here: which arrows there are (`show.sequence`), how a figure becomes a page (`show.shown`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codeai_lab.show.sequence import INFERRED, Arrow, Lane, arrows
from codeai_lab.show.shown import BLUE, GREY, INK, VERMILION, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable

__all__ = ["Arrow", "Lane", "arrows", "timeline", "timelines_side_by_side"]

Record = tuple[Iterable[object], Iterable[object]]

CAPTION = (
    "Solid arrows rest on a line of the ledger or on a receipt of the world; dashed arrows are inferred; "
    "thick arrows change the world; a cross is where a record stops. The record cannot tell a process death "
    "from an exception that escaped, and the distance between arrows is order, not time."
)
_LANE_GAP = 0.9
_LINE = 0.155
_GAP = 0.2
_TEXT = 8.5


def timeline(
    events: Iterable[object], receipts: Iterable[object], *, title: str, caption: str = CAPTION
) -> Shown:
    """Draw one case as a time line between the five lanes, with its steps as a numbered list.

    Args:
        events: the case's ledger lines in order of seq, as events or as parsed lines.
        receipts: the world's receipts of the same case.
    Raises: RefusedValueError when there is nothing to draw (definite).
    """
    return _drawn([(title, arrows(events, receipts))], caption)


def timelines_side_by_side(
    left: Record, right: Record, titles: tuple[str, str], *, caption: str = CAPTION
) -> Shown:
    """Draw two cases beside each other, as the chapter does: one was recorded and replays, one is orphaned.

    Args:
        left: the events and the receipts of the first case.
        right: the same of the second.
        titles: what stands above each.
    """
    return _drawn([(titles[0], arrows(*left)), (titles[1], arrows(*right))], caption)


def _drawn(told: Sequence[tuple[str, tuple[Arrow, ...]]], caption: str) -> Shown:
    numbers = pd.DataFrame(
        [
            (title, step, str(arrow.source), str(arrow.target), arrow.says, arrow.evidence)
            for title, steps in told
            for step, arrow in enumerate(steps, start=1)
        ],
        columns=["timeline", "step", "from", "to", "what", "evidence"],
    )
    with house_style():
        return show_figure(
            _figure(told), alt=" ".join(_alt(title, steps) for title, steps in told), caption=caption,
            numbers=numbers, table=_steps_table(told),
        )  # fmt: skip


def _figure(told: Sequence[tuple[str, tuple[Arrow, ...]]]) -> Figure:
    depth = max(_depth(steps) for _, steps in told)
    width = 4 * _LANE_GAP + 0.9
    fig = Figure(figsize=(width * len(told), depth + 0.75))
    for place, (title, steps) in enumerate(told):
        # One unit of the axes is one inch, so that texts and arrows keep their distances whatever is drawn.
        axes = fig.add_axes((place / len(told), 0, 1 / len(told), 1))
        axes.set_xlim(-0.45, width - 0.45)
        axes.set_ylim(depth, -0.75)
        axes.axis("off")
        axes.text(-0.3, -0.6, as_drawn(title), fontsize=10, fontweight="bold", va="center")
        _draw_lanes(axes, depth)
        _draw_steps(axes, steps)
    return fig


def _draw_lanes(axes: Axes, depth: float) -> None:
    for place, lane in enumerate(Lane):
        x = place * _LANE_GAP
        axes.plot([x, x], [-0.1, depth - 0.05], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 0.9}
        axes.text(x, -0.22, lane, ha="center", va="center", fontsize=9, bbox=box)


def _draw_steps(axes: Axes, steps: Sequence[Arrow]) -> None:
    y = 0.0
    for number, arrow in enumerate(steps, start=1):
        lines = _words(number, arrow)
        y += _GAP + _LINE * len(lines)
        _draw_arrow(axes, arrow, y)
        _draw_words(axes, arrow, y, lines)


def _draw_arrow(axes: Axes, arrow: Arrow, y: float) -> None:
    start, end = _x(arrow.source), _x(arrow.target)
    changes_world = arrow.target is Lane.WORLD
    if arrow.lost:
        end -= 0.35 * (end - start)
        axes.plot(end, y, marker="X", markersize=11, color=VERMILION, markeredgecolor=INK, zorder=4)
    look = {
        "arrowstyle": "-" if arrow.lost else "-|>",
        "linestyle": (0, (4, 2)) if arrow.evidence == INFERRED else "solid",
        "linewidth": 2.4 if changes_world else 1.1,
        "color": VERMILION if arrow.lost else BLUE if changes_world else INK,
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": 11,
    }
    axes.annotate("", xy=(end, y), xytext=(start, y), arrowprops=look, zorder=3)


def _draw_words(axes: Axes, arrow: Arrow, y: float, lines: Sequence[str]) -> None:
    """Centre the words over the arrow, moved inwards where they would leave the picture."""
    half = 0.5 * max(map(len, lines)) * _TEXT * 0.6 / 72
    leftmost, rightmost = -0.42 + half, 4 * _LANE_GAP + 0.42 - half
    x = min(max((_x(arrow.source) + _x(arrow.target)) / 2, leftmost), rightmost)
    weight = "bold" if arrow.lost or arrow.target is Lane.WORLD else "normal"
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    lift = 0.09 if arrow.lost else 0.05
    axes.text(
        x, y - lift, as_drawn("\n".join(lines)), ha="center", va="bottom", fontsize=_TEXT, fontweight=weight,
        linespacing=1.15, bbox=paper, zorder=2,
    )  # fmt: skip


def _words(number: int, arrow: Arrow) -> list[str]:
    return textwrap.wrap(f"{number}. {arrow.says}", 46, break_on_hyphens=False)


def _depth(steps: Sequence[Arrow]) -> float:
    return sum(_GAP + _LINE * len(_words(number, arrow)) for number, arrow in enumerate(steps, start=1)) + 0.2


def _x(lane: Lane) -> float:
    return list(Lane).index(lane) * _LANE_GAP


def _steps_table(told: Sequence[tuple[str, tuple[Arrow, ...]]]) -> ShownTable:
    """Write the steps as a numbered list; two time lines share the numbers of their lines."""
    longest = max(len(steps) for _, steps in told)
    body = tuple(
        (str(place + 1), *(cell for _, steps in told for cell in _step_cells(steps, place)))
        for place in range(longest)
    )
    head = ("step", *(cell for title, _ in told for cell in (title, "evidence")))
    return ShownTable(caption="The steps in words", head=head, body=body)


def _step_cells(steps: Sequence[Arrow], place: int) -> tuple[str, str]:
    if place >= len(steps):
        return "", ""
    arrow = steps[place]
    return f"{arrow.source} to {arrow.target}: {arrow.says}", arrow.evidence


def _alt(title: str, steps: Sequence[Arrow]) -> str:
    happened = [arrow for arrow in steps if arrow.target is Lane.WORLD]
    again = sum("AGAIN" in arrow.says for arrow in happened)
    replays = [arrow.says for arrow in steps if arrow.target is Lane.CALLER and "recorded by" in arrow.says]
    lost = [arrow.says for arrow in steps if arrow.lost]
    said = [f"Time line of {len(steps)} steps, {title}: the effect happens {_times(len(happened))}"]
    said += [f"of these, {_times(again)} as a repetition"] if again else []
    said += [f"a request is answered from the record ({'; '.join(replays)})"] if replays else []
    said += [f"a record stops without a completion ({'; '.join(lost)})"] if lost else []
    return "; ".join(said) + "."


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")
