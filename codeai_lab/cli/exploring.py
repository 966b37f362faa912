"""How are the lessons shown whose rows are not cases of requests: kills, schedules, recoveries, figures?

Chapter: 004, "Two threads, one key, two effects" and "Where the cache stops"; 003; 000, section 15.7.

Idea: `replay` is one command for every lesson. A lesson with rows of its own is an entry of one table: the
columns that people see, the options that it takes, the function that gives its rows, and where what must
come of it is known, the one that names what did not. `--json` prints the rows as they are.

Always true:
  EX1. What is printed for people is a selection of the same rows.
  EX2. An option that a lesson does not take is refused, and never ignored; so is a number beyond its range.

Not here: the rows (`lessons`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from codeai_lab.cli.printing import print_table
from codeai_lab.errors import RefusedRequestError

Progress = Callable[[str, int, int], None]
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """A lesson with rows of its own.

    Args:
        columns: what people see of a row.
        takes: options that it takes, apart from --json: the name of the option -> of the argument.
        rows: `module:function` below `lessons`, called with the arguments and `progress`.
        measured: the function gives `Measured` cases, whose rows are wanted.
        expected: `module:name` of the rows that were written by hand, or of the function that gives them.
        picks: the column that --case picks rows by, where `rows` does not take it.
        clients: the least and the most clients that it takes.
    """

    columns: tuple[str, ...]
    rows: str
    takes: Mapping[str, str] = field(default_factory=dict)
    measured: bool = False
    expected: str | None = None
    picks: str | None = None
    clients: tuple[int, int] = (1, 5_000)


SEEDED = {"seed": "seed"}
LESSONS: dict[str, Explored] = {
    "working-state": Explored(
        columns=("case", "stage", "next_operation", "then", "outcome", "receipts", "events"),
        rows="working_state:rows",
        expected="working_state:EXPECTED",
        picks="case",
    ),
    "schedules": Explored(
        columns=("rule_set", "submissions", "schedules", "effects", "fair_coin", "shortest_bad"),
        rows="schedules:schedule_rows",
        takes={"submissions": "submissions", "case": "only", "revision": "only"},
    ),
    "crash-points": Explored(
        columns=("rule_set", "after_stage", "follow_up", "effects", "outcome"),
        rows="crash_points:crash_point_rows",
        takes={"case": "only", "revision": "only"},
    ),
    "film-recovery": Explored(
        columns=(
            "policy", "verified_kept", "repeated_calls", "additional_calls", "skipped_calls",
            "provenance_changed", "source_of_second_film", "recommendation", "timeout_in_record",
        ),
        rows="film_recovery:rows",
        expected="film_recovery:EXPECTED",
        picks="policy",
    ),
    "durable-memory": Explored(
        columns=("case", "situation", "answer", "reason"),
        rows="durable_memory:rows",
        expected="durable_memory:expected",
        picks="case",
    ),
    "watchlist": Explored(
        columns=("case", "rule", "with_key", "retries", "attempts", "entries", "answers"),
        rows="watchlist:rows",
        expected="watchlist:EXPECTED",
        picks="case",
    ),
    "backoff": Explored(
        columns=("strategy", "attempt", "mean", "variance", "atom_at_cap", "total_mean", "total_sd"),
        rows="backoff:backoff_measured",
        takes={**SEEDED, "clients": "clients"},
        measured=True,
        picks="strategy",
        clients=(1, 50_000),
    ),
    "contention": Explored(
        columns=("strategy", "clients", "runs", "calls_mean", "calls_sd", "time_ms_mean", "time_ms_sd"),
        rows="contention:contention_measured",
        takes={**SEEDED, "clients": "clients", "runs": "runs", "case": "strategies"},
        measured=True,
    ),
    "overload": Explored(
        columns=("case", "load", "goodput", "recovered_after_s"),
        rows="overload:overload_measured",
        takes={**SEEDED, "case": "cases"},
        measured=True,
    ),
    "layers": Explored(
        columns=("case", "layers", "attempts", "failure", "calls", "failed"),
        rows="overload:layers_measured",
        takes=SEEDED,
        measured=True,
        picks="case",
    ),
    "throttling": Explored(
        columns=("case", "k", "demand", "accepts", "load", "accepted"),
        rows="overload:throttling_measured",
        takes=SEEDED,
        measured=True,
        picks="case",
    ),
    "hedging": Explored(
        columns=("case", "after", "extra_load", "p999_closed_form", "p999_sampled", "p999_unhedged"),
        rows="overload:hedging_measured",
        takes=SEEDED,
        measured=True,
        picks="case",
    ),
    "duplicates": Explored(
        columns=(
            "model", "protection", "attempts", "response_loss", "request_loss", "effects_mean",
            "duplicates_mean", "p_duplicate",
        ),
        rows="duplicates:duplicates_measured",
        takes={**SEEDED, "trials": "trials"},
        measured=True,
        picks="model",
    ),
    "libraries": Explored(
        columns=(
            "library", "version", "rule", "counts_first_attempt", "cap_order", "total_mean", "busiest_second",
            "loops", "note",
        ),
        rows="libraries:rows",
        takes={**SEEDED, "clients": "loops", "case": "libraries"},
        clients=(2, 5_000),
    ),
}  # fmt: skip
SEVERAL = {"only", "strategies", "libraries"}  # arguments that take a list even where one was given


def explored_rows(lesson: str, asked: Mapping[str, Any], progress: Progress) -> Rows:
    """Give the rows of such a lesson.

    Args:
        asked: the options that were given: case and clients as tuples, others as single values.

    Raises: click.UsageError for an option that the lesson does not take; RefusedRequestError for a case that
        it does not have.
    """
    known = LESSONS[lesson]
    given = {name: value for name, value in asked.items() if value not in (None, ())}
    picked = given.pop("case", ()) if known.picks else ()
    for name in given:
        if name not in known.takes:
            raise click.UsageError(f"{lesson} takes no --{name}.")
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        argument = known.takes[name]
        if argument in SEVERAL:
            arguments[argument] = [
                *arguments.get(argument, ()), *(value if isinstance(value, tuple) else (value,))
            ]  # fmt: skip
        else:
            arguments[argument] = _clients(lesson, value) if name == "clients" else value
    if picked and known.expected:  # what it will not have is said before it is played
        _picked(lesson, picked, _written(known.expected))
    found = _named(known.rows)(**arguments, progress=progress)
    rows = [dict(one.row) for one in found] if known.measured else found
    return _picked(lesson, picked, rows) if picked else rows


def unexpected_of(lesson: str, rows: Rows) -> list[str]:
    """Name every value that is not as it was written by hand; nothing where nobody wrote it."""
    known = LESSONS[lesson]
    if known.expected is None:
        return []
    expected, said = _written(known.expected), []
    for row in rows:
        nearest = max(expected, key=lambda one: sum(row.get(name) == value for name, value in one.items()))
        where = row[known.picks] if known.picks else lesson
        said += [
            f"{where}: {name} is {row.get(name)} and {value} was expected."
            for name, value in nearest.items()
            if row.get(name) != value
        ]
    return said


def print_explored(lesson: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print such rows as a table."""
    head = LESSONS[lesson].columns
    shown = [_before_and_after(row) for row in rows]
    print_table(
        lesson, [name.replace("_", " ") for name in head], [[row[name] for name in head] for row in shown]
    )


def _clients(lesson: str, numbers: Sequence[int]) -> object:
    """Give several numbers of clients to contention, which compares them, and one to any other."""
    least, most = LESSONS[lesson].clients
    if not all(least <= number <= most for number in numbers):
        raise click.UsageError(f"{lesson} takes --clients from {least:,} to {most:,}.")
    each = tuple(dict.fromkeys(numbers))
    if lesson == "contention":
        return each
    if len(each) > 1:
        raise click.UsageError(f"{lesson} takes one number of --clients.")
    return each[0]


def _written(expected: str) -> Rows:
    written = _named(expected)
    rows: Rows = written() if callable(written) else written
    return rows


def _picked(lesson: str, picked: Sequence[str], rows: Rows) -> Rows:
    column = LESSONS[lesson].picks or "case"
    there = list(dict.fromkeys(row[column] for row in rows))
    for name in picked:
        if name not in there:
            raise RefusedRequestError(f"{lesson} has no {column} called {name}; it has {', '.join(there)}.")
    return [row for row in rows if row[column] in picked]


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"codeai_lab.lessons.{module}"), name)


def _before_and_after(row: dict[str, Any]) -> dict[str, object]:
    """Put a number and what became of it into one cell."""
    said = {name: _said(value) for name, value in row.items()}
    for name in ("receipts", "events"):
        if row.get(f"{name}_after") not in (None, row.get(name)):
            said[name] = f"{row[name]} to {row[f'{name}_after']}"
    return said


def _said(value: Any) -> object:
    if isinstance(value, dict):
        if value.keys() >= {"closed_form", "sampled"}:
            theory = "" if value["closed_form"] is None else f"{_number(value['closed_form'])}; "
            return f"{theory}sampled {_number(value['sampled'])}"
        return ", ".join(f"{name}: {_number(number)}" for name, number in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if isinstance(value, float) else value


def _number(number: object) -> str:
    if number is None:
        return "-"
    return f"{number:.4g}" if isinstance(number, float) else f"{number:,}"
