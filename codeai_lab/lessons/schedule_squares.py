"""Which schedules are there of two submissions, and how does each of them end when it is played?

Chapter: 004, "Two threads, one key, two effects".

Idea: a row for every schedule of one rule set, played step by step on a ledger in memory: what a picture of
all of them is drawn from.

Always true:
  SQ1. Every schedule is a row, played, in the order of the search.
  SQ2. More than MOST are refused before the first is played.

Not here: counting without playing (`explore.schedules`), the table of all rule sets (`lessons.schedules`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.protocols import UNGUARDED, rules_named
from codeai_lab.explore.schedules import every_schedule, explore, play_schedule
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.store.memory import MemoryLedger

MOST = 400


def square_rows(
    *, revision: str = UNGUARDED.name, progress: Callable[[str, int, int], None] | None = None
) -> list[dict[str, Any]]:
    """Give a row for each schedule: who moves, the effects, and whether both looked before both acted.

    Raises: RefusedRequestError for unknown rules, and for rules with more than MOST schedules.
    """
    rules = rules_named(revision)
    there = explore(rules).schedules
    if there > MOST:
        raise RefusedRequestError(
            f"{rules.name} has {there:,} schedules; up to {MOST} can be drawn, so choose other rules."
        )
    ledger, numbers = MemoryLedger(ledger_id="schedules"), count(1)
    rows: list[dict[str, Any]] = []
    for schedule, _ in every_schedule(rules):
        if progress is not None:
            progress(rules.name, len(rows), there)
        played = play_schedule(rules, schedule, ledger, CountedWorld(), name=f"play-{next(numbers)}")
        rows.append(
            {
                "schedule": list(schedule),
                "effects": played.effects,
                "marked": played.looked_before_acting,
            }
        )
    return rows
