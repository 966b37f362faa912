"""How many duplicates does a retry make where nothing protects?

Chapter: 004, retry, replay and duplicate; 000, section 15.7.

Idea: two panels against the number of attempts. The expected number of duplicates grows to a limit, and the
probability of one does not move at all as long as requests arrive.

Always true:
  DF1. A marker is sampled; a line is the closed form, for every number of attempts.

Not here: the rows (`lessons.duplicates`), protections (`show.protection_figure`).
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from codeai_lab.decide.duplicate_laws import unprotected
from codeai_lab.show.drawing import (
    LOOKS,
    Look,
    Row,
    beside,
    key,
    line,
    listed,
    must_match,
    panels,
    said,
    sampled,
    theory,
)
from codeai_lab.show.shown import Shown, house_style, show_figure
from codeai_lab.show.tables import ShownTable

DUPLICATE_FIELDS = (
    "model", "protection", "attempts", "response_loss", "request_loss", "effects_mean", "duplicates_mean",
    "p_duplicate",
)  # fmt: skip
_PANELS = (("duplicates_mean", "expected duplicates"), ("p_duplicate", "probability of a duplicate"))


def duplicates_by_attempts(rows: Iterable[Row]) -> Shown:
    """Show duplicates against the number of attempts, for each loss of responses, where nothing protects.

    Args: rows: of `lessons.duplicates`; those of the model `loss` without protection are drawn.
    Raises: RefusedValueError (definite) where there is none of them, and for rows without their fields.
    """
    given = listed(rows, *DUPLICATE_FIELDS)
    bare = listed(row for row in given if (row["model"], row["protection"]) == ("loss", "none"))
    with house_style():
        return show_figure(
            attempts_drawn(bare), alt=_attempts_alt(bare), caption=_attempts_caption(bare),
            numbers=duplicate_numbers(bare), table=_attempts_table(bare),
        )  # fmt: skip


def attempts_drawn(rows: Iterable[Row]) -> Figure:
    """Draw the same, for who makes another frame around it."""
    bare = listed(rows, *DUPLICATE_FIELDS)
    losses, most = _losses(bare), max(int(row["attempts"]) for row in bare)
    fig, axes = panels(2, height=3.6)
    for panel, (field, words) in zip(axes, _PANELS, strict=True):
        for loss in losses:
            of_loss = sorted(
                (row for row in bare if _loss(row) == loss), key=lambda row: int(row["attempts"])
            )
            _draw_loss(panel, of_loss, field, LOOKS[losses.index(loss) % len(LOOKS)], most)
        panel.set_title(words, loc="left")
        panel.set_xlabel("attempts")
        panel.set_ylim(bottom=0)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles = [key(LOOKS[place % len(LOOKS)], _loss_words(loss)) for place, loss in enumerate(losses)]
    fig.legend(
        handles=handles, loc="outside upper left", ncols=3, frameon=False, fontsize=9, handlelength=3.2
    )
    return fig


def _draw_loss(axes: Axes, of_loss: list[Row], field: str, as_: Look, most: int) -> None:
    attempts = [int(row["attempts"]) for row in of_loss]
    every = range(1, most + 1)
    line(axes, every, [_law(_loss(of_loss[0]), tries, field) for tries in every], as_, marker="")
    line(axes, attempts, [sampled(row, field) for row in of_loss], as_, linestyle="none")


def _law(loss: tuple[float, float], attempts: int, field: str) -> float:
    return unprotected(attempts=attempts, response_loss=loss[0], request_loss=loss[1])[field]


def _loss(row: Row) -> tuple[float, float]:
    return float(row["response_loss"]), float(row["request_loss"])


def _losses(rows: list[Row]) -> list[tuple[float, float]]:
    """Give the losses, those in which every request arrives first."""
    return sorted({_loss(row) for row in rows}, key=lambda loss: (loss[1] > 0, loss))


def _loss_words(loss: tuple[float, float]) -> str:
    response, request = loss
    return f"responses lost {response:g}" + (f", requests {request:g}" if request else "")


def _attempts_alt(bare: list[Row]) -> str:
    each = [
        f"{_loss_words(_loss(row))}, {row['attempts']} attempts: "
        f"{said(round(sampled(row, 'duplicates_mean'), 4))} expected, probability "
        f"{said(round(sampled(row, 'p_duplicate'), 4))}"
        for row in _ordered(bare)
    ]
    return f"Duplicates against the number of attempts, where nothing protects. {'; '.join(each)}."


def _attempts_caption(bare: list[Row]) -> str:
    def of(attempts: int, response: float, field: str) -> float | None:
        found = [row for row in bare if row["attempts"] == attempts and _loss(row) == (response, 0.0)]
        return sampled(found[0], field) if found else None

    pairs = [
        ("half the responses lost, 4 attempts: expected", "0.875", of(4, 0.5, "duplicates_mean")),
        ("8 attempts: expected, with 1 as the limit", "0.9922", of(8, 0.5, "duplicates_mean")),
        ("probability at 2 attempts", "0.5", of(2, 0.5, "p_duplicate")),
        ("at 8 attempts", "0.5", of(8, 0.5, "p_duplicate")),
        ("0.3 lost, 3 attempts: expected", "0.39", of(3, 0.3, "duplicates_mean")),
    ]
    return (
        "Markers: sampled; lines: the closed form. Where every request arrives, the probability of a "
        f"duplicate is that of a lost response, however often one tries. {must_match(*pairs)} Losses are "
        "independent here; the picture cannot show an outage, in which they come together."
    )


def _attempts_table(bare: list[Row]) -> ShownTable:
    return ShownTable(
        caption="The numbers behind the picture: as sampled (closed form)",
        head=("responses lost", "requests lost", "attempts", "effects", "duplicates", "P(duplicate)"),
        body=tuple(
            (
                f"{row['response_loss']:g}",
                f"{row['request_loss']:g}",
                str(row["attempts"]),
                *(beside(row, field) for field in ("effects_mean", "duplicates_mean", "p_duplicate")),
            )
            for row in _ordered(bare)
        ),
        row_heads=3,
    )


def _ordered(bare: list[Row]) -> list[Row]:
    losses = _losses(bare)
    return sorted(bare, key=lambda row: (losses.index(_loss(row)), int(row["attempts"])))


def duplicate_numbers(rows: list[Row]) -> pd.DataFrame:
    """Give what was drawn, an observation a line: sample and closed form of each quantity."""
    lines = []
    for row in rows:
        plain = {name: row[name] for name in DUPLICATE_FIELDS[:5]}
        for field in DUPLICATE_FIELDS[5:]:
            plain |= {f"{field}_sampled": sampled(row, field), f"{field}_theory": theory(row, field)}
        lines.append(plain)
    return pd.DataFrame(lines)
