"""Does each of RIFL's four problems have its runs, its numbers and its limit?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.rifl import Problem, problems
from codeai_lab.show.cards import card

Row = tuple[str, list[Any], list[Any], list[int], int, int, list[Any]]

NAMES = ["Identification", "Completion durability", "Retry rendezvous", "Garbage collection"]

# rules, statuses, reused from, allowed by the ledger, effects in the world, effects counted, labels
ROWS: dict[str, dict[str, Row]] = {
    "Identification": {
        "the-same-key": (
            "lab", ["succeeded", "succeeded"], [None, "a1"], [1, 1], 1, 1, [None, "replay"],
        ),
        "a-fresh-key": (
            "lab", ["succeeded", "succeeded"], [None, None], [2, 2], 2, 2, [None, "duplicate"],
        ),
        "another-operation": (
            "lab", ["succeeded", None], [None, None], [1, 1], 1, 1, [None, "refused"],
        ),
    },
    "Completion durability": {
        "died-after-effect": (
            "1b3c7a2", [None, "succeeded"], [None, None], [1, 2], 2, 2, ["unknown", "duplicate"],
        ),
        "died-after-effect, reconciled": (
            "lab", [None, "refused", "reconciled"], [None, None, "d1"], [1, 1], 1, 1,
            [None, "unknown", "replay"],
        ),
        "died-after-effect, effect service": (
            "1b3c7a2", [None, "succeeded"], [None, None], [1, 2], 1, 1, ["unknown", "retry"],
        ),
        "effect-outside-the-transaction": (
            "1b3c7a2", [None, "succeeded"], [None, None], [1, 2], 2, 1, ["unknown", "duplicate"],
        ),
    },
    "Retry rendezvous": {
        "no-wait": (
            "lab", ["succeeded", "in_progress"], [None, None], [1, 1], 1, 1, [None, "refused"],
        ),
        "wait": (
            "lab", ["succeeded", "succeeded"], [None, "w1"], [1, 1], 1, 1, [None, "replay"],
        ),
        "wait, authority ends": (
            "lab", ["succeeded", "denied"], [None, None], [1, 1], 1, 1, [None, "denied"],
        ),
        "late": (
            "lab", [None, "succeeded"], [None, None], [1, 2], 2, 2, ["duplicate", "retry"],
        ),
        "late, fenced": (
            "lab", [None, "succeeded"], [None, None], [1, 2], 1, 1, ["unknown", "retry"],
        ),
        "two-ledgers": (
            "lab", ["succeeded", "succeeded"], [None, None], [2, 2], 2, 2, [None, "duplicate"],
        ),
        "two-ledgers, effect service": (
            "lab", ["succeeded", "succeeded"], [None, None], [2, 2], 1, 1, [None, "retry"],
        ),
    },
    "Garbage collection": {
        "nothing-is-dropped": (
            "lab", ["succeeded"] * 6, [None, "g1", None, "g2", None, "g3"], [3, 3], 3, 3,
            [None, "replay"] * 3,
        ),
        "ledger-lost": (
            "lab", ["succeeded", "succeeded"], [None, None], [2, 2], 2, 2, [None, "duplicate"],
        ),
        "ledger-lost, acknowledged at the service": (
            "lab", ["succeeded", "failed"], [None, None], [1, 2], 1, 1, [None, "retry"],
        ),
    },
}  # fmt: skip
NOTES = {
    "effect-outside-the-transaction": [
        "the summary says 1, the world shows 2", "the service's own log holds 1",
    ],
    "two-ledgers, effect service": ["the ledger allows 2, the world shows 1"],
    "nothing-is-dropped": ["the ledger keeps 6 completion records and drops none"],
}  # fmt: skip


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Problem]:
    """Give the four problems, run one time for all tests."""
    told: list[tuple[str, int, int]] = []
    folder = tmp_path_factory.mktemp("rifl") / "missing"
    found = problems(folder, progress=lambda *words: told.append(words))
    assert told == [(name, done, 4) for done, name in enumerate(map(str.lower, NAMES))]
    return {problem.name: problem for problem in found}


def table(problem: Problem, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(answer[column] for column in columns) for answer in problem.answers]


def test_there_are_four_in_the_papers_order(given: Mapping[str, Problem]) -> None:
    """RIFL's four; each says what both paths do, and then where they end."""
    assert list(given) == NAMES
    for problem in given.values():
        for text in (problem.chapter_says, problem.ledger_path, problem.effect_service, problem.limit):
            assert text.endswith(".")
        said = problem.rule
        assert (
            said.index(problem.ledger_path) < said.index(problem.effect_service) < said.index(problem.limit)
        )


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, rows in ROWS.items() for case in rows])
def test_the_rows_of_each_problem(given: Mapping[str, Problem], name: str, case: str) -> None:
    """Each value from the ledgers, the effect system and the count."""
    row = next(row for row in given[name].run if row["case"] == case)
    assert (
        row["revision"], row["statuses"], row["reused_from"], row["effects_ledger"], row["effects_world"],
        row["effects_summary"], row["labels"],
    ) == ROWS[name][case]  # fmt: skip
    assert row["notes"] == NOTES.get(case, [])
    assert row["evidence_label"] == "demo"


def test_no_row_is_left_unjudged(given: Mapping[str, Problem]) -> None:
    """The table of these tests and the runs are the same cases, in the same order."""
    assert {name: [row["case"] for row in problem.run] for name, problem in given.items()} == {
        name: list(rows) for name, rows in ROWS.items()
    }


def test_a_late_walk_leaves_its_completion_beside_the_verdict(given: Mapping[str, Problem]) -> None:
    """Taken for dead and going on: recorded one time, as late, whether the fence let it act or not."""
    for case in ("late", "late, fenced"):
        row = next(row for row in given["Retry rendezvous"].run if row["case"] == case)
        assert row["event_kinds"] == [
            "action.requested", "action.claimed", "action.execution_started", "action.reconciled",
            "action.requested", "action.claimed", "action.execution_started", "action.completed",
            "action.completed_late",
        ]  # fmt: skip


def test_an_id_is_trusted_at_the_service(given: Mapping[str, Problem]) -> None:
    """The same id is a duplicate whatever comes with it, and a fresh one is a new effect."""
    assert table(given["Identification"], "asked", "line", "answer", "result", "effects") == [
        ("c1/1", "one line", "new", "effects/1", 1),
        ("c1/1", "one line", "duplicate", "effects/1", 1),
        ("c1/1", "another line", "duplicate", "effects/1", 1),
        ("c1/2", "one line", "new", "effects/2", 2),
    ]


def test_a_process_that_really_ends_leaves_both_or_neither(given: Mapping[str, Problem]) -> None:
    """A line a point: what was found, what the same id was told, and how many effects there are then."""
    columns = (
        "the process died at", "effects found", "records found", "the same id again", "effects then",
    )  # fmt: skip
    assert table(given["Completion durability"], *columns) == [
        ("taken", 0, 0, "new", 1),
        ("begun", 0, 0, "new", 1),
        ("effect_written", 0, 0, "new", 1),
        ("record_written", 0, 0, "new", 1),
        ("committed", 1, 1, "duplicate", 1),
    ]


def test_what_is_under_way_at_the_service_is_told_so(given: Mapping[str, Problem]) -> None:
    """Asked in the middle, at its end and afterwards: in progress, the effect, its saved result."""
    assert table(given["Retry rendezvous"], "answer", "result", "effects", "records") == [
        ("in_progress", None, 0, 0),
        ("new", "effects/1", 1, 1),
        ("duplicate", "effects/1", 1, 1),
    ]


def test_what_was_dropped_is_stale_and_its_effect_stays(given: Mapping[str, Problem]) -> None:
    """Acknowledged, out of its lease, collected: never a second effect, and the log keeps all three rows."""
    columns = ("when", "asked", "answer", "effects", "records", "collections")
    assert table(given["Garbage collection"], *columns) == [
        ("", "c1/1", "new", 1, 1, 0),
        ("", "c1/2", "new", 2, 2, 0),
        ("acknowledges 1 and 2", "c1/3", "new", 3, 1, 1),
        ("", "c1/1", "stale", 3, 1, 1),
        ("", "c1/3", "duplicate", 3, 1, 1),
        ("lease over", "c1/3", "duplicate", 3, 1, 1),
        ("lease over", "c1/4", "lease_expired", 3, 1, 1),
        ("collected", "c1/3", "stale", 3, 0, 2),
        ("collected", "c1/4", "lease_expired", 3, 0, 2),
    ]


def test_a_card_shows_each_of_them(given: Mapping[str, Problem]) -> None:
    """A problem is shaped as a failure mode is: counts, rule, limit and evidence are shown."""
    for problem in given.values():
        said = " ".join(repr(card(problem)).split())
        assert f"{problem.run[0]['case']} under {problem.run[0]['revision']}" in said
        assert f"The limit: {problem.limit}" in said
        assert said.endswith("Evidence: demo")


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    """The runs need an empty folder, or their counts would be another run's too."""
    (tmp_path / "something").touch()
    with pytest.raises(RefusedRequestError, match="not empty"):
        problems(tmp_path)
