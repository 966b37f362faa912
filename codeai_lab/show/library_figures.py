"""How well does a retry library spread clients that failed together?

Chapter: 000, section 15.7.

Idea: one bar a rule: of all clients that failed at one moment, the share whose last retry falls into the
busiest second. A bar near 1 is a crowd that comes back as a crowd. The hatch says whether the library clamps
before it draws the jitter or after, which is what makes the jitter vanish at the cap.

Always true:
  LF1. Rules stand in the order of their share, the most crowded above; one without a share is not drawn,
       and is in the table with its reason.
  LF2. Versions are those of the rows; a rule whose library was not driven is called a formula.

Not here: driving the libraries (`lessons.libraries`).
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from codeai_lab.show.drawing import Row, listed, must_match, panels, said
from codeai_lab.show.shown import INK, ORANGE, SKY, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import say

_FIELDS = (
    "library", "version", "rule", "counts_first_attempt", "cap_order", "mean_sleeps", "total_mean",
    "busiest_second", "note",
)  # fmt: skip
# cap order -> colour, hatch, words
_ORDERS = {
    "after": (ORANGE, "////", "cap after the jitter"),
    "before": (SKY, "", "cap before the jitter"),
    "none": ("white", "xx", "no jitter, or no cap"),
}
# library, a word of the rule, what is known of its busiest second
_KNOWN = (
    ("tenacity", "exponential_jitter", "0.551"),
    ("urllib3", "=1", "0.599"),
    ("backoff", "full", "0.035"),
)


def busiest_second(rows: Iterable[Row]) -> Shown:
    """Show, rule by rule, the share of clients whose last retry falls into the busiest second.

    Args: rows: of `lessons.libraries`.
    Raises: RefusedValueError (definite) for rows without their fields, and where no rule has a share.
    """
    rules = listed(rows, *_FIELDS)
    drawn = listed(
        sorted(
            (row for row in rules if row["busiest_second"] is not None),
            key=lambda row: (-float(row["busiest_second"]), name_of(row), str(row["rule"])),
        )
    )
    with house_style():
        return show_figure(
            _bars(drawn), alt=_alt(drawn), caption=_caption(rules), numbers=_numbers(rules),
            table=_table([*drawn, *(row for row in rules if row["busiest_second"] is None)]),
        )  # fmt: skip


def name_of(row: Row) -> str:
    """Name a library with its version, or as a formula."""
    version = str(row["version"])
    return f"{row['library']} {version}" if version[:1].isdigit() else f"{row['library']} ({version})"


def _bars(drawn: list[Row]) -> Figure:
    fig, (axes,) = panels(1, height=0.34 * len(drawn) + 1.3)
    for place, row in enumerate(drawn):
        colour, hatch, _ = _ORDERS[str(row["cap_order"])]
        share = float(row["busiest_second"])
        axes.barh(place, share, height=0.68, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.8)
        axes.annotate(
            f"{share:.3f}", (share, place), (5, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.set_yticks(
        range(len(drawn)), [as_drawn(f"{name_of(row)}: {_short(row)}") for row in drawn], fontsize=8
    )
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.set_xlim(0, 1.12)
    axes.tick_params(left=False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share of the clients in the busiest second")
    fig.legend(
        handles=[
            Patch(facecolor=colour, hatch=hatch, edgecolor=INK, label=words)
            for colour, hatch, words in _ORDERS.values()
        ],
        loc="outside upper left", ncols=3, frameon=False, fontsize=9,
    )  # fmt: skip
    return fig


def _short(row: Row) -> str:
    """Name a rule without its formula, which stands in the table."""
    name, colon, formula = str(row["rule"]).partition(": ")
    words = name if colon else formula or name
    return words if len(words) <= 36 else f"{words[:33]}..."


def _alt(drawn: list[Row]) -> str:
    each = [f"{name_of(row)}, {_short(row)}, {float(row['busiest_second']):.3f}" for row in drawn]
    return f"Bar chart of the share of clients in the busiest second, rule by rule. {'; '.join(each)}."


def _caption(rules: list[Row]) -> str:
    pairs = [(f"{library}, {_rule_words(rules, library, part)}", known, _share(rules, library, part))
             for library, part, known in _KNOWN]  # fmt: skip
    libraries = [row for row in rules if str(row["version"])[:1].isdigit()]
    return (
        "Clients fail together, and retry 8 times with base 1 s, cap 20 s and, where the library lets one, "
        f"1 s of jitter. {must_match(*pairs)} Versions: "
        f"{', '.join(dict.fromkeys(map(name_of, libraries))) or 'none'}; others wait otherwise. The picture "
        "cannot show defaults, which differ more than the rules do, nor what a library does with an "
        "upstream's Retry-After."
    )


def _rule_words(rules: list[Row], library: str, part: str) -> str:
    found = _found(rules, library, part)
    return part if found is None else _short(found)


def _share(rules: list[Row], library: str, part: str) -> float | None:
    found = _found(rules, library, part)
    return None if found is None or found["busiest_second"] is None else float(found["busiest_second"])


def _found(rules: list[Row], library: str, part: str) -> Row | None:
    return next((row for row in rules if row["library"] == library and part in str(row["rule"])), None)


def _numbers(rules: list[Row]) -> pd.DataFrame:
    lines = []
    for row in rules:
        waits = {f"mean_sleep_{n}": wait for n, wait in enumerate(row["mean_sleeps"], start=1)}
        lines.append({name: row.get(name) for name in _FIELDS if name != "mean_sleeps"} | waits)
    return pd.DataFrame(lines)


def _table(rules: list[Row]) -> ShownTable:
    return ShownTable(
        caption="The numbers behind the picture: mean waits and totals in seconds",
        head=(
            "library",
            "rule",
            "limit counts the first attempt",
            "cap and jitter",
            "mean waits",
            "total",
            "busiest second",
            "note",
        ),
        body=tuple(
            (
                name_of(row),
                say(row["rule"]),
                say(row["counts_first_attempt"]),
                _ORDERS[str(row["cap_order"])][2],
                " ".join(f"{wait:.3g}" for wait in row["mean_sleeps"]) or say(None),
                said(row["total_mean"]),
                say(None) if row["busiest_second"] is None else f"{row['busiest_second']:.3f}",
                say(row["note"] or None),
            )
            for row in rules
        ),
    )
