"""The lesson: three policies on one failure, other stories, and the bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codeai_lab.decide.states import Criterion, Sought
from codeai_lab.errors import BundleError
from codeai_lab.lessons.film_play import Fails, Play, play
from codeai_lab.lessons.film_recovery import EXPECTED, STORY, freeze_film_recovery, protocol, rows
from codeai_lab.lessons.film_rows import COLUMNS, calls_before_failure, row_of_recovery
from codeai_lab.store.memory import MemoryLedger

GOLDEN = {"restart": (4, 5, 0), "resume": (0, 1, 4), "fallback": (0, 1, 4)}


def test_the_three_policies_give_the_chapters_numbers() -> None:
    """Repeated 4, 0, 0; additional 5, 1, 1; only fallback changes provenance; one recommendation."""
    given = rows()
    assert given == list(EXPECTED)
    assert [tuple(row) for row in given] == [COLUMNS] * 3
    assert {
        row["policy"]: (row["repeated_calls"], row["additional_calls"], row["skipped_calls"]) for row in given
    } == GOLDEN
    assert [row["provenance_changed"] for row in given] == [False, False, True]
    assert {row["recommendation"] for row in given} == {"Eternal Sunshine of the Spotless Mind"}
    assert all(row["timeout_in_record"] for row in given)


def test_rows_have_a_json_form() -> None:
    """What `replay --json` prints is the rows themselves."""
    assert json.loads(json.dumps(rows())) == list(EXPECTED)


def test_progress_is_told_before_each_policy() -> None:
    """Whoever waits hears which policy is played, how many are done and how many there are."""
    told: list[tuple[str, int, int]] = []
    assert rows(progress=lambda *said: told.append(said)) == list(EXPECTED)
    assert told == [("restart", 0, 3), ("resume", 1, 3), ("fallback", 2, 3)]


def test_the_four_calls_and_the_fifth_have_names() -> None:
    """Four calls are set-up and the Ex Machina branch, and the fifth times out."""
    ledger = MemoryLedger()
    events = play(STORY, ledger)[0]
    assert [(call["tool"], call["node"], call["answer"]) for call in calls_before_failure(events)] == [
        ("plan", "plan", "succeeded"),
        ("vector_search", "ai-film", "succeeded"),
        ("get_film", "ai-film", "succeeded"),
        ("quote", "ai-film", "succeeded"),
        ("vector_search", "memory-film", "timeout"),
    ]


@pytest.mark.parametrize(
    ("fails", "restart", "others"),
    [
        (Fails(tool="plan", nth=1), (0, 1, 0), (0, 1, 0)),
        (Fails(tool="vector_search", nth=1), (1, 2, 0), (0, 1, 1)),
        (Fails(tool="get_film", nth=2), (5, 6, 0), (0, 1, 5)),
        (Fails(tool="quote", nth=2), (6, 7, 0), (0, 1, 6)),
        (Fails(tool="compare", nth=1), (7, 8, 0), (0, 1, 7)),
        (Fails(tool="vector_search", nth=2, kind="unavailable"), (4, 5, 0), (0, 1, 4)),
    ],
)
def test_a_failure_at_another_call_has_other_numbers(
    fails: Fails, restart: tuple[int, int, int], others: tuple[int, int, int]
) -> None:
    """What restart repeats is what had succeeded; resume and fallback make one call more."""
    given = {
        row["policy"]: (row["repeated_calls"], row["additional_calls"], row["skipped_calls"])
        for row in rows(replace(STORY, fails=(fails,)))
    }
    assert given == {"restart": restart, "resume": others, "fallback": others}


def test_a_record_from_a_standby_is_a_changed_provenance() -> None:
    """Where the look-up of the second film failed, the fallback reads its record elsewhere."""
    given = rows(replace(STORY, fails=(Fails(tool="get_film", nth=2),)))
    assert [row["provenance_changed"] for row in given] == [False, False, True]
    assert [row["source_of_second_film"] for row in given] == ["vector_search"] * 3


def test_without_a_failure_there_is_one_row_and_no_policy() -> None:
    """A first attempt has nothing to compare."""
    [row] = rows(replace(STORY, fails=()))
    assert (row["policy"], row["repeated_calls"], row["additional_calls"], row["skipped_calls"]) == (
        "none", 0, 0, 0,
    )  # fmt: skip
    assert row["timeout_in_record"] is False


def test_a_policy_without_a_schedule_has_no_row() -> None:
    """A look-up without a standby has no fallback."""
    alone = replace(STORY, fails=(Fails(tool="get_film", nth=1),), limits=replace(STORY.limits, standby={}))
    assert [row["policy"] for row in rows(alone)] == ["restart", "resume"]


def test_another_pair_of_films_needs_no_other_code() -> None:
    """Other films, another criterion, another failure: the same three policies."""
    request = replace(
        STORY.request,
        request_id="request-7",
        goal="Compare a film about a heist with a film about grief.",
        sought=(
            Sought(
                node="heist", query="a band of thieves plans a robbery",
                rewritten="heist robbery jewels thieves", about=("heist", "rob*", "thie*", "crime*"),
            ),
            Sought(
                node="grief", query="a mother or a father mourns a dead child",
                rewritten="grief loss child death", about=("grief", "mourn*", "death", "dead", "loss"),
            ),
        ),
        criterion=Criterion(name="tenderness", terms=("love", "grief", "tender*", "child*", "home")),
    )  # fmt: skip
    other = replace(
        STORY,
        request=request,
        limits=replace(STORY.limits, acceptance={"vector_search": 0.05, "lexical_search": 0.05}),
    )
    given = rows(other)
    assert [row["policy"] for row in given] == ["restart", "resume", "fallback"]
    assert [row["repeated_calls"] for row in given] == [4, 0, 0]
    assert [row["additional_calls"] for row in given] == [5, 1, 1]
    assert [row["provenance_changed"] for row in given] == [False, False, True]
    assert len(given[1]["verified_kept"]) == 1
    assert "ex-machina" not in given[1]["verified_kept"]
    assert all(not row["recommendation"].startswith("none") for row in given)


def test_a_paused_trajectory_has_a_row_too() -> None:
    """A second failure after the recovery leaves it paused, and the row says so."""
    twice = replace(STORY, fails=(Fails(tool="vector_search", nth=2), Fails(tool="vector_search", nth=3)))
    row = rows(twice)[1]
    assert row["policy"] == "resume"
    assert row["recommendation"] == "none; the trajectory is paused"
    assert (row["repeated_calls"], row["additional_calls"]) == (0, 1)


def test_a_row_is_counted_from_events_alone() -> None:
    """Events that were written and read again give the same row."""
    run = Play(STORY, "fallback", MemoryLedger())
    run.to_the_failure()
    run.recover()
    copied = [replace(event, payload=json.loads(json.dumps(event.payload))) for event in run.events]
    assert row_of_recovery(copied) == EXPECTED[2]


def test_a_bundle_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    """Two plays give two bundles with one digest, whose rows are what was expected before the run."""
    assert freeze_film_recovery(tmp_path / "one") == freeze_film_recovery(tmp_path / "two")
    frozen = json.loads((tmp_path / "one" / "data" / "results.json").read_bytes())
    planned = json.loads((tmp_path / "one" / "data" / "protocol.json").read_bytes())
    assert planned == protocol()
    assert frozen["rows"] == [case["expected"] for case in planned["cases"]] == list(EXPECTED)
    with pytest.raises(BundleError, match="not empty"):
        freeze_film_recovery(tmp_path / "one")
