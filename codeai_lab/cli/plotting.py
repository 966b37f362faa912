"""How does a lesson become a picture in a file?

Chapter: 000, section 15.7; 004, "Two threads, one key, two effects".

Idea: `plot` asks the same question as `replay`, with the same options, and draws the rows instead of printing
them. A figure is an entry of one table: the function that gives its rows, the options it takes, and the
function that draws them. The ending of the file says whether it is a picture or its numbers.

Always true:
  PT1. Nothing is drawn where the file could not be written: the ending, the folder and what is there already
       are looked at first.
  PT2. An option that a figure does not take is refused, and never ignored.
  PT3. The same question gives the same bytes.

Not here: the rows (`lessons`), the figures (`show`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.asking import LARGEST_SEED, MOST_RUNS, MOST_TRIALS, AsksForNumbers, Whole
from codeai_lab.cli.exploring import Progress, explored_rows
from codeai_lab.cli.printing import progress
from codeai_lab.errors import RefusedRequestError

if TYPE_CHECKING:
    from codeai_lab.show.shown import Shown

ENDINGS = (".svg", ".png", ".csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A figure of a lesson.

    Args:
        draw: `module:function` below `show`, called with the rows.
        rows: `module:function` below `lessons`, called with the options; left out, the rows of `replay`.
        takes: options of such a function: the name of the option -> of the argument.
        shapes: `module:function` below `lessons` that makes rows of `Measured` cases.
        tells: such a function takes `progress`.
        usual: options that stand in for those that were not given.
        how: further arguments of `draw`.
    """

    draw: str
    rows: str | None = None
    takes: Mapping[str, str] = field(default_factory=dict)
    shapes: str | None = None
    tells: bool = True
    usual: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)


SEEDED = {"seed": "seed"}
FIGURES: dict[str, dict[str, Plot]] = {
    "backoff": {
        "means": Plot(draw="waiting_figures:mean_waits"),
        "distributions": Plot(
            draw="waiting_figures:wait_distributions", rows="backoff:backoff_measured",
            takes={**SEEDED, "clients": "clients", "case": "strategies"}, shapes="wait_shapes:wait_shapes",
        ),
    },
    "contention": {
        "calls-and-time": Plot(draw="contention_figures:calls_and_time"),
        "ranking": Plot(
            draw="ranking_figure:ranking_flips",
            usual={
                "clients": (50, 100, 130, 140, 150, 160, 170, 190),
                "case": ("decorrelated", "equal", "full"),
            },
        ),
    },
    "overload": {
        "rescues": Plot(draw="rescue_figure:rescues"),
        "trace": Plot(
            draw="overload_figures:overload_trace", rows="what_if:traces", takes={**SEEDED, "case": "cases"},
            tells=False,
        ),
        "phase": Plot(draw="phase_figure:phase_map", rows="overload:phase_diagram", tells=False),
        "layers": Plot(
            draw="layer_figures:layers", rows="amplification:layers_measured", takes=SEEDED,
            shapes="measured:rows_of",
        ),
        "throttling": Plot(
            draw="layer_figures:throttling", rows="amplification:throttling_measured", takes=SEEDED,
            shapes="measured:rows_of",
        ),
        "hedging": Plot(
            draw="layer_figures:hedging", rows="amplification:hedging_measured", takes=SEEDED,
            shapes="measured:rows_of",
        ),
    },
    "duplicates": {
        "attempts": Plot(draw="duplicate_figures:duplicates_by_attempts"),
        "protections": Plot(draw="protection_figure:duplicates_by_protection"),
    },
    "libraries": {"busiest-second": Plot(draw="library_figures:busiest_second")},
    "schedules": {
        "mosaic": Plot(
            draw="mosaic:mosaic", rows="schedule_squares:square_rows", takes={"revision": "revision"},
            how={"ringed": "both look-ups before both effects"},
        ),
    },
    "crash-points": {"strips": Plot(draw="crash_figures:crash_strips")},
}  # fmt: skip


@click.command(cls=AsksForNumbers)
@click.argument("lesson")
@click.option(
    "--to",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="FILE.svg, FILE.png or FILE.csv.",
)
@click.option("--figure", metavar="NAME", help="Which figure, where a lesson has several.")
@click.option("--case", "cases", multiple=True, metavar="C", help="Draw only this case; may be given again.")
@click.option("--revision", metavar="R", help="For schedules and crash-points: this rule set only.")
@click.option(
    "--clients",
    multiple=True,
    type=Whole(1),
    metavar="N…",
    help="For contention: how many clients, one number or more; for backoff: how many are sampled.",
)
@click.option("--runs", type=Whole(1, MOST_RUNS), metavar="R", help="For contention: runs of each cell.")
@click.option(
    "--trials", type=Whole(1, MOST_TRIALS), metavar="T", help="For duplicates: requests of each row."
)
@click.option("--seed", type=Whole(0, LARGEST_SEED), metavar="S", help="For what is sampled: the seed.")
def plot(
    lesson: str,
    to: Path,
    figure: str | None,
    cases: tuple[str, ...],
    revision: str | None,
    clients: tuple[int, ...],
    **sizes: int | None,
) -> None:
    """Draw LESSON into a file, or write the numbers of its figure.

    The lessons: backoff, contention, overload, duplicates, libraries, schedules, crash-points.
    """
    name, chosen = _figure(lesson, figure)
    require_free(to)
    asked = {"case": cases, "revision": revision, "clients": tuple(dict.fromkeys(clients)), **sizes}
    with progress(f"{lesson}: {name}") as advance:
        shown = draw(
            lesson, chosen, {key: value for key, value in asked.items() if value not in (None, ())}, advance
        )
    shown.save(to)
    click.echo(f"{to.name} has the {'numbers' if to.suffix == '.csv' else 'picture'} of {lesson}: {name}.")
    click.echo(shown.alt)


def draw(lesson: str, chosen: Plot, given: Mapping[str, Any], advance: Progress) -> Shown:
    """Make the rows of a figure and draw them."""
    asked = {**chosen.usual, **given}
    make = _rows if chosen.rows else _replayed
    shown: Shown = _named("show", chosen.draw)(make(lesson, chosen, asked, advance), **chosen.how)
    return shown


def require_free(to: Path) -> None:
    """Refuse a file that could not be written, before anything is worked out for it (PT1)."""
    if to.suffix not in ENDINGS:
        raise RefusedRequestError(f"A figure ends in .svg, .png or .csv; {to.name} does not.")
    if not to.parent.is_dir():
        raise RefusedRequestError(f"There is no folder for {to.name}; make it first.")
    if to.exists() or to.is_symlink():
        raise RefusedRequestError(
            f"{to.name} is there already, and is not written over; choose another name."
        )


def _figure(lesson: str, figure: str | None) -> tuple[str, Plot]:
    if lesson not in FIGURES:
        raise RefusedRequestError(f"There is no figure of {lesson}; there are some of {', '.join(FIGURES)}.")
    there = FIGURES[lesson]
    if figure is None and len(there) == 1:
        return next(iter(there.items()))
    if figure is None:
        raise RefusedRequestError(
            f"{lesson} has several figures; name one with --figure: {', '.join(there)}."
        )
    if figure not in there:
        raise RefusedRequestError(f"{lesson} has no figure called {figure}; it has {', '.join(there)}.")
    return figure, there[figure]


def _replayed(lesson: str, chosen: Plot, given: Mapping[str, Any], advance: Progress) -> Any:  # noqa: ARG001
    return explored_rows(lesson, given, advance)


def _rows(lesson: str, chosen: Plot, given: Mapping[str, Any], advance: Progress) -> Any:
    """Call a figure's own function with the options that it takes."""
    arguments: dict[str, Any] = {"progress": advance} if chosen.tells else {}
    for name, value in given.items():
        if name not in chosen.takes:
            raise click.UsageError(f"This figure of {lesson} takes no --{name}.")
        arguments[chosen.takes[name]] = _one_number(lesson, value) if name == "clients" else value
    rows = _named("lessons", str(chosen.rows))(**arguments)
    return _named("lessons", chosen.shapes)(rows) if chosen.shapes else rows


def _one_number(lesson: str, numbers: tuple[int, ...]) -> int:
    if len(numbers) > 1:
        raise click.UsageError(f"{lesson} takes one number of --clients.")
    return numbers[0]


def _named(room: str, path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"codeai_lab.{room}.{module}"), name)
