"""How are the lessons shown whose rows are not cases of requests: kills, schedules, crash points?

Chapter: 004, "Two threads, one key, two effects" and "Where the cache stops".

Idea: `replay` is one command for every lesson. A lesson with rows of its own is a function that gives them
and the columns that people see; `--json` prints the rows as they are.

Always true:
  EX1. What is printed for people is a selection of the same rows.

Not here: the rows (`lessons.working_state`, `lessons.schedules`, `lessons.crash_points`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codeai_lab.cli.printing import print_table

Progress = Callable[[str, int, int], None]
COLUMNS = {
    "working-state": ("case", "stage", "next_operation", "then", "outcome", "receipts", "events"),
    "schedules": ("rule_set", "submissions", "schedules", "effects", "fair_coin", "shortest_bad"),
    "crash-points": ("rule_set", "after_stage", "follow_up", "effects", "outcome"),
}  # fmt: skip


def explored_rows(
    lesson: str, *, only: Sequence[str], submissions: int, progress: Progress
) -> list[dict[str, Any]]:
    """Give the rows of such a lesson.

    Args:
        only: rule sets for schedules and crash points, case names for the working state; all when empty.
        submissions: 2 or 3, for schedules.
    """
    if lesson == "schedules":
        from codeai_lab.lessons.schedules import schedule_rows

        return schedule_rows(submissions, only=only, progress=progress)
    if lesson == "crash-points":
        from codeai_lab.lessons.crash_points import crash_point_rows

        return crash_point_rows(only=only, progress=progress)
    from codeai_lab.lessons.working_state import rows

    return [row for row in rows(progress) if not only or row["case"] in only]


def print_explored(lesson: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print such rows as a table."""
    head = COLUMNS[lesson]
    shown = [_before_and_after(row) for row in rows]
    print_table(
        lesson, [name.replace("_", " ") for name in head], [[row[name] for name in head] for row in shown]
    )


def _before_and_after(row: dict[str, Any]) -> dict[str, object]:
    """Put a number and what became of it into one cell."""
    said = {name: _said(value) for name, value in row.items()}
    for name in ("receipts", "events"):
        if row.get(f"{name}_after") not in (None, row.get(name)):
            said[name] = f"{row[name]} to {row[f'{name}_after']}"
    return said


def _said(value: Any) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_number(number)}" for name, number in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value


def _number(number: object) -> str:
    return f"{number:.4g}" if isinstance(number, float) else f"{number:,}"
