"""Two submissions of one key, or three: in how many orders do they act twice?

Chapter: 004, "Two threads, one key, two effects".

Idea: one row for each rule set and for each protocol composed beside them, best read downwards: what a claim
is worth, what a lock is worth, what they are worth in the wrong place, or when a lease runs out under one who
lives. Beside the schedules stands what a crash of all at any moment of any of them leaves.

Always true:
  SL1. A row is counted when it is asked for; nothing is stored.
  SL2. Its schedules number walks from 0; `shortest_bad` can be played (`explore.schedules.play_schedule`).
  SL3. `after_crash` counts prefixes of schedules, by the effects after one more submission; it is None for
       three submissions under rules of more stages than LONGEST_CRASHED.
  SL4. Counts are whole numbers of any size, exact.

Not here: the search (`explore.schedules`), the crashes (`explore.crash_points`), the protocols
(`explore.protocols`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.crash_points import crashes_everywhere
from codeai_lab.explore.protocols import LEASES, RACES, Composed, composed, rules_named
from codeai_lab.explore.schedules import Explored, explore
from codeai_lab.run.revisions import REVISIONS

COMPARED = (*(composed(rules) for rules in REVISIONS.values()), *RACES, *LEASES)
LONGEST_CRASHED = 7  # beyond it, three submissions take minutes


def schedule_rows(
    submissions: int = 2,
    *,
    only: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Count the schedules of every rule set and composed protocol, or of `only` some.

    Args:
        submissions: 2, which takes a second, or 3, which takes most of a minute, most of it for 88d1291.
        progress: is told the name of each rule set before it is counted, how many were, and of how many.

    Raises: RefusedRequestError for another number of submissions and for unknown rules.
    """
    if submissions not in (2, 3):
        raise RefusedRequestError("The schedules of 2 or of 3 submissions are counted; give one of these.")
    chosen = [rules_named(name) for name in only] or COMPARED
    rows = []
    for done, rules in enumerate(chosen):
        if progress is not None:
            progress(rules.name, done, len(chosen))
        rows.append(row_of_schedules(explore(rules, submissions)))
    return rows


def row_of_schedules(found: Explored) -> dict[str, Any]:
    """Give what was counted as a row."""
    worst = found.shortest_bad
    return {
        "rule_set": found.rules.name,
        "submissions": found.submissions,
        "schedules": found.schedules,
        "effects": {str(effects): count for effects, count in found.effects.items()},
        "fair_coin": {str(effects): float(chance) for effects, chance in found.fair_coin.items()},
        "shortest_bad": None if worst is None else list(worst),
        "after_crash": _after_crash(found.rules, found.submissions),
    }


def _after_crash(rules: Composed, submissions: int) -> dict[str, int] | None:
    if submissions > 2 and len(rules.revision.stages) > LONGEST_CRASHED:
        return None
    return {str(effects): count for effects, count in crashes_everywhere(rules, submissions).items()}
