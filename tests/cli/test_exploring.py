"""The lessons with rows of their own, from the command line."""

from __future__ import annotations

import json

import pytest
from test_commands import run

from codeai_lab.cli.exploring import LESSONS, unexpected_of
from codeai_lab.lessons import ROWS_OF_THEIR_OWN


def test_every_lesson_with_rows_of_its_own_is_offered() -> None:
    """The command knows exactly the lessons that the package names."""
    assert tuple(LESSONS) == ROWS_OF_THEIR_OWN


def test_contention_takes_several_numbers_of_clients() -> None:
    """`--clients 4 6` and `--clients 4 --clients 6` are the same question."""
    asked = [
        run("replay", "contention", "--clients", "4", "6", "--runs", "3", "--seed", "5", "--json"),
        run(
            "replay", "contention", "--clients", "4", "--clients", "6", "--runs", "3", "--seed", "5", "--json"
        ),
    ]
    assert asked[0].exit_code == 0
    assert asked[0].stdout == asked[1].stdout
    said = json.loads(asked[0].stdout)
    assert said["lesson"] == "contention"
    assert [(row["strategy"], row["clients"]) for row in said["rows"]] == [
        (strategy, clients)
        for clients in (4, 6)
        for strategy in ("no-backoff", "exponential", "equal", "full", "decorrelated")
    ]
    fields = {"strategy", "clients", "runs", "calls_mean", "calls_sd", "time_ms_mean", "time_ms_sd"}
    assert all(set(row) == fields for row in said["rows"])


def test_backoff_gives_closed_form_and_sample() -> None:
    """Each statistic of a row is an object with both, and --case picks a strategy."""
    said = json.loads(run("replay", "backoff", "--case", "full", "--clients", "50", "--json").stdout)
    assert [row["attempt"] for row in said["rows"]] == list(range(1, 9))
    for name in ("mean", "variance", "atom_at_cap", "total_mean", "total_sd"):
        assert set(said["rows"][0][name]) == {"closed_form", "sampled", "se"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("overload", "--runs", "3"), "overload takes no --runs"),
        (("backoff", "--clients", "3", "4"), "one number of --clients"),
        (("backoff", "3"), "Numbers stand after --clients only"),
        (("retry-effects", "--seed", "3"), "retry-effects takes no --seed"),
        (("contention", "--clients", "0"), "Invalid value for '--clients'"),
        (("contention", "--case", "None"), "strategies contended with are no-backoff"),
        (("durable-memory", "--case", "x"), "durable-memory has no case called x"),
        (("nonesuch",), "no lesson called nonesuch; there are: retry-effects"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments: tuple[str, ...], says: str) -> None:
    """A wrong option, number or name is refused in a sentence, with status 2 and no traceback."""
    result = run("replay", *arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


def test_a_row_that_was_not_expected_is_a_finding() -> None:
    """Each wrong value is named with the one that was written by hand."""
    rows = [{"policy": "resume", "verified_kept": ["ex-machina"], "repeated_calls": 9}]
    said = unexpected_of("film-recovery", rows)
    assert "resume: repeated_calls is 9 and 0 was expected." in said
