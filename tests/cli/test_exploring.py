"""The lessons with rows of their own, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace

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


def test_each_number_of_clients_is_taken_once() -> None:
    """A number that is named twice is one cell; --clients=3 4 is --clients 3 4."""
    twice = run("replay", "contention", "--clients", "3", "3", "4", "--runs", "2", "--json")
    assert twice.exit_code == 0
    assert twice.stdout == run("replay", "contention", "--clients=3", "4", "--runs", "2", "--json").stdout


def test_one_value_has_no_spread_in_any_form() -> None:
    """One run, one trial, one client: null in JSON, a dash in the table, and the mean all the same."""
    asked = ("replay", "contention", "--clients", "3", "--runs", "1", "--case", "full")
    (row,) = json.loads(run(*asked, "--json").stdout)["rows"]
    assert (row["calls_sd"], row["time_ms_sd"]) == (None, None)
    assert row["calls_mean"] >= 3
    assert run(*asked).stdout.split()[-3::2] == ["-", "-"]
    backoff = ("replay", "backoff", "--clients", "1", "--case", "full")
    first = json.loads(run(*backoff, "--json").stdout)["rows"][0]
    assert (first["mean"]["se"], first["total_sd"]["sampled"], first["total_sd"]["se"]) == (None, None, None)
    assert run(*backoff).stdout.rstrip().endswith("11.33; sampled -")


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
        (
            ("contention", "--clients", "0"),
            "Invalid value for '--clients': give a whole number from 1, not '0'.",
        ),
        (("contention", "--clients", "a"), "give a whole number from 1, not 'a'."),
        (("contention", "--clients", "3", "1.5"), "give a whole number from 1, not '1.5'."),
        (("contention", "--clients", "9" * 20), "contention takes --clients from 1 to 5,000."),
        (("contention", "--clients", "10", "5001"), "contention takes --clients from 1 to 5,000."),
        (("backoff", "--clients", "50001"), "backoff takes --clients from 1 to 50,000."),
        (("libraries", "--clients", "1"), "libraries takes --clients from 2 to 5,000."),
        (("contention", "--clients", "3", "--runs", "2", "5"), "only, and right after it."),
        (("contention", "5", "--clients", "3"), "only, and right after it."),
        (("contention", "--clients", "3", "--runs", "100001"), "give a whole number from 1 to 100,000, not"),
        (("duplicates", "--trials", "1000000001"), "give a whole number from 1 to 1,000,000,000, not"),
        (("overload", "--seed", str(2**53)), "from 0 to 9,007,199,254,740,991, not '9007199254740992'."),
        (("schedules", "--submissions", "4"), "give a whole number from 2 to 3, not '4'."),
        (("retry-effects", "retry-edges"), "replay takes one lesson at a time; leave out retry-edges."),
        (("retry-effects", "--seed", "0"), "retry-effects takes no --seed"),
        (("overload", "--case", "nope"), "There is no case called nope; there are 280-no-retry"),
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


@pytest.mark.parametrize("lesson", [name for name, one in LESSONS.items() if one.picks and one.expected])
def test_a_case_that_it_does_not_have_is_refused_before_it_plays(
    lesson: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the rows were written by hand, their names are known without playing one."""
    known = LESSONS[lesson]
    monkeypatch.setitem(LESSONS, lesson, replace(known, rows="nowhere:nothing"))
    result = run("replay", lesson, "--case", "nope")
    assert result.exit_code == 2
    assert f"{lesson} has no {known.picks} called nope; it has " in result.output


def test_a_row_that_was_not_expected_is_a_finding() -> None:
    """Each wrong value is named with the one that was written by hand."""
    rows = [{"policy": "resume", "verified_kept": ["ex-machina"], "repeated_calls": 9}]
    said = unexpected_of("film-recovery", rows)
    assert "resume: repeated_calls is 9 and 0 was expected." in said
