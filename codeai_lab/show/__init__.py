"""How can a person see what happened?

Chapter: 004, all of it; the room that comes last.

Idea: values in, pictures out. Rows, events and receipts arrive as plain values, from a live run or from a
frozen bundle, and leave as tables, figures, time lines and cards. Each has a page form and a plain text that
says the same.

Always true:
  V1. Nothing here opens a ledger, runs an action or reads a clock.
  V2. The same values give the same page and the same text.
  V3. Importing this loads no widgets; they come with the first chooser that is asked for.

Not here: computing the rows (`decide.witnesses`), running the cases (`lessons`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeai_lab.show.cards import ShownCard, ShownCards, card, cards
from codeai_lab.show.figures import effects_by_case
from codeai_lab.show.mosaic import mosaic, schedules_table, step_rows
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

if TYPE_CHECKING:
    from codeai_lab.show.choosers import chooser

__all__ = [
    "Arrow",
    "Lane",
    "Shown",
    "ShownCard",
    "ShownCards",
    "ShownTable",
    "arrows",
    "card",
    "cards",
    "chooser",
    "effects_by_case",
    "events_table",
    "mosaic",
    "schedules_table",
    "show_figure",
    "shown_table",
    "side_by_side",
    "step_rows",
    "timeline",
    "timelines_side_by_side",
    "witness_frame",
    "witness_table",
]


def __getattr__(name: str) -> Any:
    if name == "chooser":
        from codeai_lab.show.choosers import chooser

        return chooser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
