"""In how many orders can submissions of one key move, and which of these orders are bad?

Chapter: 004, "Two threads, one key, two effects"; its probe is some of the squares.

Idea: one square a schedule, all of them. A square's ground says how many effects the schedule has, a ring
that it belongs to a set of its own, the letters under its number who moves: a is walk 0, b is walk 1.

      1 aaaabb      1 effect        19 abababab   2 effects, hatched

Always true:
  MS1. Each schedule is one square; squares are numbered from 1, row by row, in the order given.
  MS2. Each number of effects has a ground of its own, in hatch as well as in colour; a ring is a shape.
  MS3. Sentence and table are counted from the squares, never written by hand.
  MS4. A share is shown as 0 or as 1 only where it is; bad means more than one effect.

Not here: which schedules there are (`explore.schedules`), executing a chosen one (`show.choosers`).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.shown import INK, ORANGE, SKY, VERMILION, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable, shown_table
from codeai_lab.show.words import NOTHING, effects, read

LETTERS = "abcdefgh"
MOST_SQUARES = 400
MOST_EFFECTS = 4
_SIDE = 0.88
_LETTERS_A_LINE = 8
# Ground and hatch for 0, 1, 2, ... effects: told apart without colour (MS2).
_GROUNDS = (
    ("white", None), (SKY, None), (ORANGE, "////"), (VERMILION, "xxxx"), ("white", "oo"),
)  # fmt: skip
_CAPTION = (
    "Every square is one schedule and weighs the same; a machine does not choose between them like that. The "
    "letters say which walk moves at each step. The picture cannot show how long a step takes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Square:
    number: int
    letters: str
    effects: int
    marked: bool


def mosaic(
    squares: Iterable[object], columns: int = 10, *, ringed: str = "", caption: str = _CAPTION
) -> Shown:
    """Show schedules as squares, the bad ones hatched, the marked ones with a ring around their number.

    Args:
        squares: mappings or objects with `schedule` (the numbers of the walks that move, from 0), `effects`
            (0 to 4) and `marked` (left out: no); at most 400.
        columns: squares in a row, 1 to 20.
        ringed: what a ring says, a few words; needed where a square is marked.
    Raises: RefusedValueError for no square, too many, more than can be told apart, or a ring without words
        (definite).
    """
    listed = _listed(squares)
    if not 1 <= columns <= 20:
        raise RefusedValueError("columns", "a row has 1 to 20 squares.")
    if any(square.marked for square in listed) and not ringed.strip():
        raise RefusedValueError("ringed", "some squares are marked; say in a few words what a ring means.")
    with house_style():
        fig = _drawn(listed, columns, ringed)
        return show_figure(
            fig, alt=_alt(listed, ringed), caption=caption, numbers=_numbers(listed), table=_table(listed)
        )


def letters(schedule: Sequence[int]) -> str:
    """Write a schedule as one letter a step: (0, 0, 1) is "aab".

    Raises: RefusedValueError for a walk that has no letter.
    """
    if not all(0 <= number < len(LETTERS) for number in schedule):
        raise RefusedValueError("schedule", f"walks are numbered from 0 to {len(LETTERS) - 1}.")
    return "".join(LETTERS[number] for number in schedule)


def schedules_table(rows: Iterable[Mapping[str, Any]], caption: str) -> ShownTable:
    """Show how many schedules rule sets have, and how likely more than one effect is, by two measures (MS4).

    Args:
        rows: each with `rule_set`, `schedules`, `effects` and `fair_coin` (by number of effects, a text) and
            `shortest_bad` (the numbers of the walks that move, or None).
    """
    listed = list(rows)
    numbers = sorted({number for row in listed for number in row["effects"]}, key=int)
    lines = []
    for row in listed:
        bad = sum(count for number, count in row["effects"].items() if int(number) > 1)
        coin = sum(chance for number, chance in row["fair_coin"].items() if int(number) > 1)
        lines.append(
            {"rule set": row["rule_set"], "schedules": row["schedules"]}
            | {f"with {effects(int(number))}": row["effects"].get(number, 0) for number in numbers}
            | {"bad, each alike": _share(bad / row["schedules"]), "bad, a fair coin": _share(coin)}
            | {"a shortest bad one": letters(row["shortest_bad"] or ()) or None}
        )
    return shown_table(lines, caption)


def step_rows(played: object) -> list[dict[str, Any]]:
    """Give a schedule as it was played as lines for a table: one a step, the answer at a walk's last one.

    Args:
        played: has `steps`, each with `walk`, `stage`, `recorded` and `effects`, and `answers`, one a walk.
    """
    steps, answers = list(read(played, "steps")), read(played, "answers")
    last = {read(step, "walk"): number for number, step in enumerate(steps, start=1)}
    return [
        {
            "step": number,
            "walk": letters([walk]),
            "stage": read(step, "stage"),
            "what it recorded": ", ".join(read(step, "recorded")) or None,
            "effects so far": read(step, "effects"),
            "its caller is told": answers[walk] if last[walk] == number else None,
        }
        for number, step in enumerate(steps, start=1)
        for walk in [read(step, "walk")]
    ]


def _listed(squares: Iterable[object]) -> list[_Square]:
    listed = [
        _Square(
            number=number,
            letters=letters(read(square, "schedule") or ()),
            effects=int(read(square, "effects")),
            marked=bool(read(square, "marked")),
        )
        for number, square in enumerate(squares, start=1)
    ]
    if not listed:
        raise RefusedValueError("squares", "there is nothing to draw; hand in at least one schedule.")
    if len(listed) > MOST_SQUARES:
        raise RefusedValueError(
            "squares", f"more than {MOST_SQUARES} cannot be read; show the counts as a table instead."
        )
    if any(not 0 <= square.effects <= MOST_EFFECTS for square in listed):
        raise RefusedValueError("effects", f"from 0 to {MOST_EFFECTS} can be told apart in a picture.")
    return listed


# --- the picture -----------------------------------------------------------------------------------------


def _drawn(listed: list[_Square], columns: int, ringed: str) -> Figure:
    rows = -(-len(listed) // columns)
    side = min(0.82, 8.6 / columns)
    fig = Figure(figsize=(max(columns * side, 5.2) + 0.2, rows * side + 0.55), layout="constrained")
    axes = fig.subplots()
    for square in listed:
        row, column = divmod(square.number - 1, columns)
        _draw_square(axes, square, column, row)
    axes.set_xlim(-0.02, columns + 0.02)
    axes.set_ylim(rows + 0.02, -0.02)
    axes.set_aspect("equal")
    axes.set_axis_off()
    _add_legend(fig, listed, ringed)
    return fig


def _draw_square(axes: Axes, square: _Square, column: int, row: int) -> None:
    ground, hatch = _GROUNDS[square.effects]
    gap = (1 - _SIDE) / 2
    axes.add_patch(
        Rectangle(
            (column + gap, row + gap), _SIDE, _SIDE,
            facecolor=ground, hatch=hatch, edgecolor=INK, linewidth=0.8,
        )
    )  # fmt: skip
    middle = column + 0.5
    if square.marked:
        axes.plot([middle], [row + 0.37], **_RING)
    axes.text(
        middle, row + 0.37, str(square.number), ha="center", va="center", fontsize=9, zorder=5,
        bbox=None if square.marked else {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"},
    )  # fmt: skip
    axes.text(
        middle, row + 0.77, "\n".join(textwrap.wrap(square.letters, _LETTERS_A_LINE)),
        ha="center", va="center", fontsize=6.5, linespacing=1, zorder=4, family="DejaVu Sans Mono",
        bbox={"boxstyle": "square,pad=0.12", "fc": "white", "ec": "none"},
    )  # fmt: skip


_RING: dict[str, Any] = {
    "marker": "o", "markersize": 21, "markerfacecolor": "white", "markeredgecolor": INK,
    "markeredgewidth": 2.4, "linestyle": "none", "zorder": 3,
}  # fmt: skip


def _add_legend(fig: Figure, listed: list[_Square], ringed: str) -> None:
    handles: list[Any] = [
        Patch(facecolor=_GROUNDS[number][0], hatch=_GROUNDS[number][1], edgecolor=INK, label=effects(number))
        for number in _counts(listed)
    ]
    if any(square.marked for square in listed):
        handles.append(Line2D([], [], label=as_drawn(ringed), **{**_RING, "markersize": 9}))
    fig.legend(
        handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, fontsize=9,
        handlelength=2, columnspacing=1.6,
    )  # fmt: skip


# --- the same in words and numbers -----------------------------------------------------------------------


def _counts(listed: Iterable[_Square]) -> Mapping[int, int]:
    return dict(sorted(Counter(square.effects for square in listed).items()))


def _alt(listed: list[_Square], ringed: str) -> str:
    marked = [square for square in listed if square.marked]
    total = "1 schedule" if len(listed) == 1 else f"{len(listed)} schedules"
    sentence = f"Mosaic of {total}: {_said(_counts(listed))}."
    if marked:
        sentence += f" Ringed ({ringed.strip()}): {len(marked)}, of these {_said(_counts(marked))}."
    return sentence


def _said(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{count} with {effects(number)}" for number, count in counts.items())


def _numbers(listed: list[_Square]) -> pd.DataFrame:
    lines = [(square.number, square.letters, square.effects, square.marked) for square in listed]
    return pd.DataFrame(lines, columns=["number", "schedule", "effects", "ringed"])


def _table(listed: list[_Square]) -> ShownTable:
    groups = [
        (effects(number), [square for square in listed if square.effects == number])
        for number in _counts(listed)
    ]
    return ShownTable(
        caption="The numbers behind the picture: schedules by effects",
        head=("effects", "schedules", "ringed", "which squares", "which of them ringed"),
        body=tuple(
            (
                name,
                str(len(group)),
                str(sum(square.marked for square in group)),
                _ranges([square.number for square in group]),
                _ranges([square.number for square in group if square.marked]),
            )
            for name, group in [*groups, ("all", listed)]
        ),
    )


def _share(share: float) -> str:
    return f"{min(max(share, 0.0001), 0.9999):.4f}" if 0 < share < 1 else f"{share:.0f}"


def _ranges(numbers: Sequence[int]) -> str:
    """Say rising numbers, three neighbours or more joined: 1, 2, 4 to 6; none is a dash."""
    starts = [new for old, new in pairwise([-1, *numbers]) if new != old + 1]
    ends = [old for old, new in pairwise([*numbers, -1]) if new != old + 1]
    said: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        said += [f"{start} to {end}"] if end > start + 1 else map(str, range(start, end + 1))
    return ", ".join(said) or NOTHING
