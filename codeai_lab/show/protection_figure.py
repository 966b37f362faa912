"""How many duplicates does each protection leave, and under which cause of silence?

Chapter: 004, retry, replay and duplicate; 000, section 15.7.

Idea: one panel a cause: the answer is lost, the server dies between effect and record, the service is slower
than the timeout. One bar a protection: how many duplicates are left for one request.

Always true:
  RG1. A bar is sampled; a white diamond is the closed form.
  RG2. A protection that leaves no duplicate says 0, and has no bar; one that was not run says so.

Not here: the rows (`lessons.duplicates`), schedules of two submissions (`show.mosaic`), crashes step by step
(`show.crash_figures`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from codeai_lab.show.drawing import (
    LOOKS,
    Look,
    Row,
    beside,
    guide,
    listed,
    must_match,
    named,
    panels,
    said,
    sampled,
    theory,
)
from codeai_lab.show.duplicate_figures import DUPLICATE_FIELDS, duplicate_numbers
from codeai_lab.show.shown import INK, Shown, as_drawn, house_style, show_figure
from codeai_lab.show.tables import ShownTable

_DRAWN = "duplicates_mean"
_USUAL = {"crash_before": 0.0, "collision": 0.0, "lease": 1, "retention": None}  # of a case without extras


def duplicates_by_protection(
    rows: Iterable[Row], *, attempts: int = 4, response_loss: float = 0.3, request_loss: float = 0.2
) -> Shown:
    """Show what each protection leaves under each cause of silence, for one set of losses.

    Args:
        rows: of `lessons.duplicates`; drawn are those with these losses and without extras.
        request_loss: of the models in which a request can be lost.

    Raises: RefusedValueError (definite) where there is none of them, and for rows without their fields.
    """
    given = listed(rows, *DUPLICATE_FIELDS)
    losses = (attempts, response_loss, request_loss)
    ladder = listed(row for row in given if _on_ladder(row, *losses))
    with house_style():
        return show_figure(
            _ladder_drawn(ladder), alt=_ladder_alt(ladder), caption=_ladder_caption(ladder, *losses),
            numbers=duplicate_numbers(ladder), table=_ladder_table(ladder),
        )  # fmt: skip


def _on_ladder(row: Row, attempts: int, response_loss: float, request_loss: float) -> bool:
    wanted = (attempts, response_loss, 0.0 if row["model"] == "slow" else request_loss)
    extras = all(row.get(name, usual) == usual for name, usual in _USUAL.items())
    return extras and (row["attempts"], row["response_loss"], row["request_loss"]) == wanted


def _ladder_drawn(ladder: list[Row]) -> Figure:
    models, protections = named(ladder, "model"), named(ladder, "protection")
    fig, axes = panels(len(models), height=0.34 * len(protections) + 1.3, sharex=True, sharey=True)
    most = max(sampled(row, _DRAWN) for row in ladder)
    for number, (panel, model) in enumerate(zip(axes, models, strict=True)):
        which = LOOKS[number % len(LOOKS)]
        for place, protection in enumerate(protections):
            _draw_rung(panel, place, _of(ladder, model, protection), which)
        panel.set_title(as_drawn(model), loc="left")
        panel.set_xlabel("duplicates a request")
        panel.set_yticks(range(len(protections)), list(map(as_drawn, protections)))
        panel.set_ylim(len(protections) - 0.4, -0.6)
        panel.set_xlim(0, 1.45 * most or 1.0)
        panel.tick_params(left=False)
        panel.grid(visible=False, axis="y")
        guide(panel, 0.0, "none")
    return fig


def _draw_rung(axes: Axes, place: int, row: Row | None, as_: Look) -> None:
    note: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}
    if row is None:
        axes.annotate("not run", (0, place), (6, 0), **note)
        return
    duplicates, known = sampled(row, _DRAWN), theory(row, _DRAWN)
    if duplicates:
        axes.barh(
            place, duplicates, height=0.62, color=as_.colour, hatch=as_.hatch, edgecolor=INK, linewidth=0.8
        )
    if known:
        axes.plot([known], [place], marker="D", markersize=5, markerfacecolor="white", markeredgecolor=INK)
    axes.annotate(said(round(duplicates, 4)), (max(duplicates, known or 0.0), place), (7, 0), **note)


def _ladder_alt(ladder: list[Row]) -> str:
    models = named(ladder, "model")
    left = []
    for model in models:
        remaining = [
            f"{row['protection']} {said(round(sampled(row, 'duplicates_mean'), 4))}"
            for row in ladder
            if row["model"] == model and sampled(row, _DRAWN) > 0
        ]
        left.append(f"{model}: {', '.join(remaining) or 'none'}")
    return (
        f"Bar charts of duplicates a request, by protection. Protections that leave some: {'; '.join(left)}."
    )


def _ladder_caption(ladder: list[Row], attempts: int, response_loss: float, request_loss: float) -> str:
    def compared(words: str, model: str, protection: str) -> tuple[str, str, float | None]:
        row = _of(ladder, model, protection)
        known, here = (None, None) if row is None else (theory(row, _DRAWN), sampled(row, _DRAWN))
        return words, said(known), here

    def worst(protection: str) -> float | None:
        there = [sampled(row, _DRAWN) for row in ladder if row["protection"] == protection]
        return max(there, default=None)

    pairs = [
        ("atomic, every cause", "0", worst("atomic")),
        ("effect-side, every cause", "0", worst("effect-side")),
        compared("loss without protection", "loss", "none"),
        compared("a slow service with a key alone, as without one", "slow", "key-only"),
    ]
    return (
        f"{attempts} attempts; an answer stays away with probability {response_loss:g}, because it is lost, "
        "because the server dies between effect and record, or because the service is slower than the "
        f"timeout; a request is lost with {request_loss:g}, never in the slow model. White diamonds: the "
        f"closed form. {must_match(*pairs)} The picture cannot show what a protection costs: keys that stay "
        "claimed for ever, refusals, a look-up at the effect's side."
    )


def _ladder_table(ladder: list[Row]) -> ShownTable:
    models = named(ladder, "model")
    body = []
    for protection in named(ladder, "protection"):
        found = [_of(ladder, model, protection) for model in models]
        body.append((protection, *("not run" if row is None else beside(row, _DRAWN) for row in found)))
    return ShownTable(
        caption="The numbers behind the picture: duplicates a request, as sampled (closed form)",
        head=("protection", *models),
        body=tuple(body),
    )


def _of(rows: list[Row], model: str, protection: str) -> Row | None:
    return next((row for row in rows if (row["model"], row["protection"]) == (model, protection)), None)
