"""Are the rows of the lesson `schedules` what was counted, in the names that are promised?"""

from __future__ import annotations

import json

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.protocols import LEASES, RACES, rules_named
from codeai_lab.explore.schedules import play_schedule
from codeai_lab.lessons.schedules import schedule_rows
from codeai_lab.run.revisions import REVISIONS
from codeai_lab.store.memory import MemoryLedger

NAMES = ["rule_set", "submissions", "schedules", "effects", "fair_coin", "shortest_bad", "after_crash"]


def test_there_is_a_row_for_every_rule_set_and_protocol() -> None:
    """Rule sets first, then the protocols; every row has the promised names and survives JSON as it is."""
    rows = schedule_rows()
    assert [row["rule_set"] for row in rows] == [*REVISIONS, *(rules.name for rules in (*RACES, *LEASES))]
    assert all(list(row) == NAMES for row in rows)
    assert json.loads(json.dumps(rows)) == rows


def test_the_row_of_the_unguarded_protocol() -> None:
    """70 schedules, 10 and 60, five eighths under a fair coin, and a shortest bad one that can be played."""
    (row,) = schedule_rows(only=["unguarded"])
    bad = row.pop("shortest_bad")
    assert row == {
        "rule_set": "unguarded",
        "submissions": 2,
        "schedules": 70,
        "effects": {"1": 10, "2": 60},
        "fair_coin": {"1": 0.375, "2": 0.625},
        "after_crash": {"1": 61, "2": 150, "3": 20},
    }
    rules = rules_named("unguarded")
    assert play_schedule(rules, bad, MemoryLedger(), rules.new_world()).effects == 2


def test_rows_of_three_submissions() -> None:
    """Three walks; where no schedule is bad there is none to show."""
    rows = schedule_rows(3, only=["atomic-unchecked", "lock"])
    assert [row["effects"] for row in rows] == [{"1": 144, "2": 468, "3": 540}, {"1": 324}]
    assert rows[1]["shortest_bad"] is None
    assert set(rows[0]["shortest_bad"]) == {0, 1, 2}


def test_a_lease_that_runs_out_under_a_living_holder() -> None:
    """Asking before taking over mends what a crash leaves of one request, and not the gap between two."""
    (two,) = schedule_rows(only=["takeover-alive-reconcile"])
    assert two["effects"] == {"1": 192, "2": 120}
    assert two["after_crash"] == {"1": 807, "2": 280}


def test_what_takes_minutes_is_not_counted() -> None:
    """Three submissions under long rules: None, and not a number that was cut short (SL3)."""
    (row,) = schedule_rows(3, only=["lab"])
    assert row["after_crash"] is None


def test_progress_is_told_before_each_row() -> None:
    """Name, how many are done, of how many."""
    heard: list[tuple[str, int, int]] = []
    schedule_rows(only=["lock", "atomic"], progress=lambda *said: heard.append(said))
    assert heard == [("lock", 0, 2), ("atomic", 1, 2)]


@pytest.mark.parametrize("submissions", [0, 1, 4])
def test_other_numbers_of_submissions_are_refused(submissions: int) -> None:
    """One sentence says which numbers there are."""
    with pytest.raises(RefusedRequestError, match="2 or of 3"):
        schedule_rows(submissions)


def test_unknown_rules_are_refused() -> None:
    """One sentence names those that there are."""
    with pytest.raises(RefusedRequestError, match="no rules called nonsense"):
        schedule_rows(only=["nonsense"])
