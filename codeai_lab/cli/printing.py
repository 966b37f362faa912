"""How does a command say what it found?

Idea: people get tables and one-line verdicts, programs get one JSON object. A table is as wide as it needs to
be; on a terminal it is narrowed between words, and where its longest words do not fit, each row becomes a
block of lines. Progress goes to standard error and only to a terminal, so that output can be piped.

Always true:
  PR1. What is printed for a pipe has no colours and does not depend on the terminal.
  PR2. No value is left out and no word is broken, however narrow the terminal.
  PR3. A whole number in JSON is printed whole, whatever its size: counts of schedules go beyond 2^53, and a
       reader that keeps numbers as doubles has to take care.

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

BETWEEN = 3  # columns of a terminal that a column of a table takes beside its words
EDGE = 1  # and that the whole table takes less of them


class Advance(Protocol):
    """Tells how far something is: what is being done now, steps done and steps in all."""

    def __call__(self, what: str, done: int, total: int) -> None: ...


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; where the terminal is too narrow for its words, print a block for each row."""
    console = _console()
    cells = [[_cell(value) for value in row] for row in rows]
    widths = _widths(console, [head, *cells], console.width if console.is_terminal else None)
    if widths is None:
        _print_blocks(title, head, cells)
        return
    if title:
        console.print(title, style="italic", soft_wrap=not console.is_terminal)
    table = _table(head, widths)
    for row in cells:
        table.add_row(*row)
    if console.is_terminal:
        console.print(table)
        return
    console.width = sum(widths) + BETWEEN * len(widths)
    with console.capture() as printed:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


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


def _widths(console: Console, lines: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Give each column's width, narrowed until all fit into the room; None where their words do not.

    The first column names the row and is not narrowed.
    """
    from rich.measure import Measurement
    from rich.text import Text

    measured = [
        [Measurement.get(console, console.options.update(width=10_000), Text(cell)) for cell in column]
        for column in zip(*lines, strict=True)
    ]
    widths = [max(one.maximum for one in column) for column in measured]
    least = [widths[0], *(max(one.minimum for one in column) for column in measured[1:])]
    if room is None:
        return widths
    room -= BETWEEN * len(widths) - EDGE
    if sum(least) > room:
        return None
    while sum(widths) > room:
        place = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
        widths[place] -= 1
    return widths


def _print_blocks(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if title:
        click.echo(title)
    for row in rows:
        click.echo()
        for name, value in zip(head, row, strict=True):
            click.echo(f"{name}: {value}".rstrip() if name else value)


def _table(head: Sequence[str], widths: Sequence[int]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name, width in zip(head, widths, strict=True):
        table.add_column(name, overflow="fold", width=width)
    return table


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, markup=False, emoji=False, color_system=None)
