"""How can a person see what happened?

Chapter: 004, all of it; the room that comes last.

Idea: values in, pictures out. Rows, events and receipts arrive as plain values, from a live run or from a
frozen bundle, and leave as tables, figures, time lines and cards. Each has a page form and a plain text that
says the same.

Always true:
  V1. Nothing here opens a ledger, runs an action or reads a clock.
  V2. The same values give the same page and the same text.
  V3. Importing this loads no widgets; they come with the first chooser or slider that is asked for.

Not here: computing the rows (`decide.witnesses`), running the cases (`lessons`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeai_lab.show.cards import ShownCard, ShownCards, card, cards
from codeai_lab.show.contention_figures import calls_and_time
from codeai_lab.show.crash_figures import crash_strips
from codeai_lab.show.duplicate_figures import duplicates_by_attempts
from codeai_lab.show.figures import effects_by_case
from codeai_lab.show.layer_figures import hedging, layers, throttling
from codeai_lab.show.library_figures import busiest_second
from codeai_lab.show.mosaic import mosaic, schedules_table, step_rows
from codeai_lab.show.overload_figures import overload_trace
from codeai_lab.show.phase_figure import phase_map
from codeai_lab.show.protection_figure import duplicates_by_protection
from codeai_lab.show.ranking_figure import ranking_flips
from codeai_lab.show.rescue_figure import rescues
from codeai_lab.show.sequence import Arrow, Lane, arrows
from codeai_lab.show.shown import Shown, show_figure
from codeai_lab.show.tables import (
    ShownTable,
    events_table,
    shown_table,
    side_by_side,
    witness_frame,
    witness_table,
)
from codeai_lab.show.timelines import timeline, timelines_side_by_side
from codeai_lab.show.waiting_figures import mean_waits, wait_distributions

if TYPE_CHECKING:
    from codeai_lab.show.choosers import chooser
    from codeai_lab.show.sliders import with_sliders

__all__ = [
    "Arrow",
    "Lane",
    "Shown",
    "ShownCard",
    "ShownCards",
    "ShownTable",
    "arrows",
    "busiest_second",
    "calls_and_time",
    "card",
    "cards",
    "chooser",
    "crash_strips",
    "duplicates_by_attempts",
    "duplicates_by_protection",
    "effects_by_case",
    "events_table",
    "hedging",
    "layers",
    "mean_waits",
    "mosaic",
    "overload_trace",
    "phase_map",
    "ranking_flips",
    "rescues",
    "schedules_table",
    "show_figure",
    "shown_table",
    "side_by_side",
    "step_rows",
    "throttling",
    "timeline",
    "timelines_side_by_side",
    "wait_distributions",
    "with_sliders",
    "witness_frame",
    "witness_table",
]


def __getattr__(name: str) -> Any:
    if name == "chooser":
        from codeai_lab.show.choosers import chooser

        return chooser
    if name == "with_sliders":
        from codeai_lab.show.sliders import with_sliders

        return with_sliders
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
