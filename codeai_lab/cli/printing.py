"""How does a command say what it found?

Idea: people get tables and one-line verdicts, programs get one JSON object. Progress goes to standard error
and only to a terminal, so that output can be piped.

Always true:
  PR1. What is printed for a pipe has no colours and does not depend on the terminal.

Not here: what there is to say (the commands).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 120


class Advance(Protocol):
    """Tells how far something is: what is being done now, steps done and steps in all."""

    def __call__(self, what: str, done: int, total: int) -> None: ...


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table that wraps its cells instead of cutting them."""
    table = _table(title, head)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    _console().print(table)


def print_witnesses(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows of three witnesses, as `replay --json` has them."""
    print_table(
        title,
        ("case", "rules", "answers", "ledger", "world", "summary", "labels"),
        [
            (
                row["case"],
                row["revision"],
                ", ".join(_answers(row)),
                _bounds(row["effects_ledger"]),
                row["effects_world"],
                row["effects_summary"],
                ", ".join(label or "-" for label in row["labels"]),
            )
            for row in rows
        ],
    )
    for row in rows:
        for note in row["notes"]:
            click.echo(f"  {row['case']} under {row['revision']}: {note}.")


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """Show a bar on a terminal's standard error while something takes its time."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(task, description=f"{title}: {what}" if what else title, completed=done, total=total)

        yield advance


def _answers(row: Mapping[str, Any]) -> Iterator[str]:
    for status, reused, raised in zip(row["statuses"], row["reused_from"], row["raised"], strict=True):
        if status is None:
            yield f"raised {raised}" if raised else "no answer"
        else:
            yield f"{status} (as {reused})" if reused else str(status)


def _bounds(bounds: Sequence[int]) -> str:
    low, high = bounds
    return str(low) if low == high else f"{low} to {high}"


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _table(title: str, head: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, overflow="fold", no_wrap=place == 0)
    return table


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    return (
        console
        if console.is_terminal
        else Console(width=PIPE_WIDTH, highlight=False, markup=False, emoji=False, color_system=None)
    )
