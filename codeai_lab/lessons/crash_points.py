"""A request dies at any boundary: which rules leave what behind for the one who comes next?

Chapter: 004, "Where the cache stops".

Idea: one row for each rule set, boundary and follow-up. The composed protocols stand beside the rule sets
under the same-key retry alone, which is where they differ. One request alone cannot show what a lease that
runs out under a living holder does: that takes two (`after_crash` in `lessons.schedules`).

Always true:
  CL1. Effects are the world's; the outcome compares them with the caller's answer.
  CL2. Under `lab` no row says duplicate or lost, except after a fresh key, which no rule set sees through.

Not here: dropping and following up (`explore.crash_points`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from codeai_lab.explore.crash_points import FollowUp, crash_points, two_crashes
from codeai_lab.explore.protocols import CRASHES, LEASES, Composed, composed, rules_named
from codeai_lab.run.revisions import REVISIONS

Progress = Callable[[str, int, int], None]

COMPARED = (*(composed(rules) for rules in REVISIONS.values()), *CRASHES, *LEASES)


def crash_point_rows(*, only: Sequence[str] = (), progress: Progress | None = None) -> list[dict[str, Any]]:
    """Drop a request at every boundary of every rule set, or of `only` some, and follow up.

    Args:
        progress: is told the name of each rule set before its turn, how many were done, and of how many.

    Raises: RefusedRequestError for unknown rules.
    """
    return [
        {
            "rule_set": rules.name,
            "after_stage": point.after[0],
            "follow_up": str(point.follow_up),
            "effects": point.effects,
            "outcome": str(point.verdict),
        }
        for rules in _told(_chosen(only), progress)
        for point in crash_points(rules, follow_ups=_follow_ups(rules))
    ]


def two_crash_rows(*, only: Sequence[str] = (), progress: Progress | None = None) -> list[dict[str, Any]]:
    """Let a request die at every boundary, and the same-key retry after it too; count how it ends."""
    rows = []
    for rules in _told(_chosen(only), progress):
        for follow_up in _follow_ups(rules):
            points = two_crashes(rules, follow_up=follow_up)
            rows.append(
                {
                    "rule_set": rules.name,
                    "follow_up": str(follow_up),
                    "pairs": len(points),
                    "effects": _counted(str(point.effects) for point in points),
                    "outcomes": _counted(str(point.verdict) for point in points),
                }
            )
    return rows


def _chosen(only: Sequence[str]) -> Sequence[Composed]:
    return [rules_named(name) for name in only] or COMPARED


def _follow_ups(rules: Composed) -> tuple[FollowUp, ...]:
    return tuple(FollowUp) if rules.name in REVISIONS else (FollowUp.SAME_KEY,)


def _told(chosen: Sequence[Composed], progress: Progress | None) -> Iterator[Composed]:
    for done, rules in enumerate(chosen):
        if progress is not None:
            progress(rules.name, done, len(chosen))
        yield rules


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
