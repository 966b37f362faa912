"""Do the cases of the older demo give the chapter's numbers under every rule set, from ledger and world?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codeai_lab.lessons import RETRY_EFFECTS
from codeai_lab.lessons.playing import Played
from codeai_lab.run.revisions import REVISIONS

Give = Callable[[str, str], Played]

CONFLICT = "IdempotencyConflictError"
CASES = (
    "A-exact-duplicate", "B-other-operation", "B-no-authority", "C-call-conflict", "D-crash-gap",
    "D-fresh-key", "E-drift",
)  # fmt: skip

# Written by hand from the chapter: statuses, reused from, raised, effects that the ledger allows, effects in
# the world, labels. `otherwise` is every rule set that is not named.
Row = tuple[list[Any], list[Any], list[Any], list[int], int, list[Any]]
GOLDEN: dict[str, dict[str, Row]] = {
    "A-exact-duplicate": {
        "otherwise": (["succeeded", "succeeded"], [None, "a1"], [None, None], [1, 1], 1, [None, "replay"]),
    },
    "B-other-operation": {
        "7a0d43b": (["succeeded", "succeeded"], [None, "b1"], [None, None], [1, 1], 1, [None, "replay"]),
        "otherwise": (["succeeded", None], [None, None], [None, CONFLICT], [1, 1], 1, [None, "refused"]),
    },
    "B-no-authority": {
        "7a0d43b": (["succeeded", "succeeded"], [None, "n1"], [None, None], [1, 1], 1, [None, "replay"]),
        "otherwise": (["succeeded", "denied"], [None, None], [None, None], [1, 1], 1, [None, "denied"]),
    },
    "C-call-conflict": {
        "otherwise": (["succeeded", None], [None, None], [None, CONFLICT], [0, 0], 0, [None, "refused"]),
    },
    "D-crash-gap": {
        "otherwise": (["failed", "failed"], [None, "d1"], [None, None], [0, 1], 1, ["unknown", "replay"]),
    },
    "D-fresh-key": {
        "otherwise": (["failed", "failed"], [None, None], [None, None], [0, 2], 2, ["unknown", "duplicate"]),
    },
    "E-drift": {"otherwise": (["failed"], [None], [None], [0, 0], 0, [None])},
}

R, K, S = "action.requested", "action.claimed", "action.execution_started"
C, X = "action.completed", "action.replay_refused"
CALL = ["call.requested", "call.manifest", "attempt.started", "attempt.observed", "call.completed"]
OLD, MARKED, LAB = [R, C], [R, S, C], [R, K, S, C]

# The whole history of each case, literally.
HISTORIES: dict[str, dict[str, list[str]]] = {
    "A-exact-duplicate": {"otherwise": [*OLD, R, C], "88d1291": [*MARKED, R, C], "lab": [*LAB, R, C]},
    "B-other-operation": {
        "7a0d43b": [*OLD, R, C], "otherwise": [*OLD, R, X], "88d1291": [*MARKED, R, X], "lab": [*LAB, R, X],
    },
    "B-no-authority": {"otherwise": [*OLD, R, C], "88d1291": [*MARKED, R, C], "lab": [*LAB, R, C]},
    "C-call-conflict": {
        "otherwise": [*CALL, "call.requested"], "lab": [*CALL, "call.requested", "call.replay_refused"],
    },
    "D-crash-gap": {"otherwise": [*OLD, R, C], "88d1291": [*MARKED, R, C], "lab": [*LAB, R, C]},
    "D-fresh-key": {"otherwise": [*OLD, *OLD], "88d1291": [*MARKED, *MARKED], "lab": [*LAB, *LAB]},
    "E-drift": {"otherwise": [R, C]},
}  # fmt: skip

EVERY = [pytest.param(case, rules, id=f"{case}-{rules}") for case in CASES for rules in REVISIONS]


def of(table: dict[str, Any], rules: str) -> Any:
    return table.get(rules, table.get("otherwise"))


def row_of(played: Give, case: str, rules: str) -> dict[str, Any]:
    return next(row for row in played("retry-effects", rules).rows if row["case"] == case)


def test_the_cases_stand_in_the_chapters_order() -> None:
    """Seven rows: B splits in two, and D has its naive half."""
    assert tuple(case.name for case in RETRY_EFFECTS.cases) == CASES == tuple(GOLDEN)


@pytest.mark.parametrize(("case", "rules"), EVERY)
def test_the_golden_rows(played: Give, case: str, rules: str) -> None:
    """Each value from ledger and world; the historical defects as found."""
    row = row_of(played, case, rules)
    statuses, reused, raised, allowed, effects, labels = of(GOLDEN[case], rules)
    assert (row["case"], row["revision"], row["requests"]) == (case, rules, len(statuses))
    assert row["statuses"] == statuses
    assert row["reused_from"] == reused
    assert row["raised"] == raised
    assert row["effects_ledger"] == allowed
    assert row["effects_world"] == row["effects_summary"] == effects
    assert row["labels"] == labels
    assert row["provider_calls"] == (1 if case == "C-call-conflict" else 0)


@pytest.mark.parametrize(("case", "rules"), EVERY)
def test_the_golden_histories(played: Give, case: str, rules: str) -> None:
    """The whole list of event kinds of each case under each rule set."""
    assert row_of(played, case, rules)["event_kinds"] == of(HISTORIES[case], rules)


@pytest.mark.parametrize(("case", "rules"), EVERY)
def test_the_lesson_expects_what_the_chapter_says(case: str, rules: str) -> None:
    """What the protocol writes down before a run is this table too."""
    lesson = next(one for one in RETRY_EFFECTS.cases if one.name == case)
    statuses, reused, raised, _, effects, _ = of(GOLDEN[case], rules)
    assert lesson.expected_under(rules).as_json() == {
        "requests": len(statuses),
        "statuses": statuses,
        "reused_from": reused,
        "raised": raised,
        "effects_world": effects,
    }


@pytest.mark.parametrize("rules", REVISIONS)
def test_only_the_silent_replays_are_remarked_on(played: Give, rules: str) -> None:
    """The defect of case B is asserted as a limitation and not as a success; nothing else is noted."""
    notes = {row["case"]: row["notes"] for row in played("retry-effects", rules).rows if row["notes"]}
    assert notes == (
        {
            "B-other-operation": ["b2 was answered from another operation: instruction"],
            "B-no-authority": ["n2 was answered without authority"],
        }
        if rules == "7a0d43b"
        else {}
    )


@pytest.mark.parametrize("rules", REVISIONS)
def test_the_conflicts_name_their_dimension_on_record(played: Give, rules: str) -> None:
    """Case B names the instruction from a1b562a on; case C names the prompt's hash, durably under `lab`."""
    named = {
        event.stream_id: event.payload["dimensions"]
        for event in played("retry-effects", rules).events
        if event.kind.endswith("replay_refused")
    }
    expected: dict[str, list[str]] = {}
    if rules != "7a0d43b":
        expected["b2"] = ["instruction"]
    if rules == "lab":
        expected["c2"] = ["prompt_hash"]
    assert named == expected


@pytest.mark.parametrize("rules", REVISIONS)
def test_the_drift_names_both_states(played: Give, rules: str) -> None:
    """Expected state-A, observed state-B, before the effect."""
    (completed,) = (
        event
        for event in played("retry-effects", rules).events
        if event.stream_id == "e1" and event.kind == "action.completed"
    )
    error = completed.payload["error"]
    assert (error["code"], error["expected"], error["observed"]) == (
        "precondition-drift", "state-A", "state-B",
    )  # fmt: skip
    assert completed.payload["effect_possible"] is False
