"""Do the cases of the pinned rerun that are asked one after the other give its published values?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.lessons import LESSONS, RETRY_RERUN
from codeai_lab.lessons.playing import Played, Table, play
from codeai_lab.run.revisions import LAB, R_1B3C7A2, REVISIONS, Revision, revision_named
from codeai_lab.store.memory import MemoryLedger

CASES = (
    "exact-duplicate", "reopen-replay", "fingerprint-collision", "authority-change", "precondition-drift",
    "failed-replay", "crash-after-effect", "concurrency-probe",
)  # fmt: skip
SEQUENTIAL = ("exact-duplicate", *CASES[2:7])
CONFLICT = "IdempotencyConflictError"

# Written by hand from the pinned rerun, for 1b3c7a2 and lab; `others` is what older rule sets give where they
# differ: statuses, reused from, raised, effects that the ledger allows, effects in the world, labels.
Row = tuple[list[Any], list[Any], list[Any], list[int], int, list[Any]]
GOLDEN: dict[str, Row] = {
    "exact-duplicate": (["succeeded"] * 2, [None, "e1"], [None, None], [1, 1], 1, [None, "replay"]),
    "fingerprint-collision": (
        ["succeeded", None], [None, None], [None, CONFLICT], [1, 1], 1, [None, "refused"],
    ),
    "authority-change": (["succeeded", "denied"], [None, None], [None, None], [1, 1], 1, [None, "denied"]),
    "precondition-drift": (["failed"], [None], [None], [0, 0], 0, [None]),
    "failed-replay": (["failed"] * 2, [None, "x1"], [None, None], [0, 1], 1, ["unknown", "replay"]),
    "crash-after-effect": (["failed"] * 2, [None, "c1"], [None, None], [0, 1], 1, ["unknown", "replay"]),
}  # fmt: skip
ESCAPED: Row = (
    [None, None], [None, None], ["ConnectionError"] * 2, [0, 2], 2, ["unknown", "duplicate"],
)  # fmt: skip
OTHERS: dict[tuple[str, str], Row] = {
    ("fingerprint-collision", "7a0d43b"): (
        ["succeeded"] * 2, [None, "f1"], [None, None], [1, 1], 1, [None, "replay"],
    ),
    ("authority-change", "7a0d43b"): (
        ["succeeded"] * 2, [None, "a1"], [None, None], [1, 1], 1, [None, "replay"],
    ),
    ("failed-replay", "7a0d43b"): ESCAPED,
    ("failed-replay", "a1b562a"): ESCAPED,
}  # fmt: skip

R, K, S = "action.requested", "action.claimed", "action.execution_started"
C, X = "action.completed", "action.replay_refused"
ACTED = {"1b3c7a2": [R, C], "lab": [R, K, S, C]}

Give = Callable[[str], Played]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Give:
    """Give the sequential cases as played under a rule set."""

    @cache
    def give(rules: str) -> Played:
        folder = tmp_path_factory.mktemp(f"rerun-{rules}")
        return play(RETRY_RERUN, revision_named(rules), folder, only=SEQUENTIAL)

    return give


def row_of(rerun: Give, case: str, rules: str) -> dict[str, Any]:
    return next(row for row in rerun(rules).rows if row["case"] == case)


def golden(case: str, rules: str) -> Row:
    return OTHERS.get((case, rules), GOLDEN[case])


def table(tmp_path: Path, rules: Revision = LAB) -> Table:
    return Table("L", "C", rules, MemoryLedger(), ManualClock(), tmp_path / "world")


def test_the_eight_cases_stand_in_the_protocols_order() -> None:
    """The lesson is there under its name, with the cases of the frozen protocol."""
    assert LESSONS["retry-rerun"] is RETRY_RERUN
    assert tuple(case.name for case in RETRY_RERUN.cases) == CASES


@pytest.mark.parametrize("rules", REVISIONS)
@pytest.mark.parametrize("case", SEQUENTIAL)
def test_the_golden_rows(rerun: Give, case: str, rules: str) -> None:
    """Each value from ledger and world; two of the older rule sets with their defects as found."""
    row = row_of(rerun, case, rules)
    statuses, reused, raised, allowed, effects, labels = golden(case, rules)
    assert (row["case"], row["revision"], row["requests"]) == (case, rules, len(statuses))
    assert row["statuses"] == statuses
    assert row["reused_from"] == reused
    assert row["raised"] == raised
    assert row["effects_ledger"] == allowed
    assert row["effects_world"] == row["effects_summary"] == effects
    assert row["labels"] == labels


@pytest.mark.parametrize("rules", ["1b3c7a2", "lab"])
def test_the_golden_histories(rerun: Give, rules: str) -> None:
    """The whole list of event kinds of each case under the two rule sets that are pinned."""
    acted = ACTED[rules]
    assert {row["case"]: row["event_kinds"] for row in rerun(rules).rows} == {
        "exact-duplicate": [*acted, R, C],
        "fingerprint-collision": [*acted, R, X],
        "authority-change": [*acted, R, C],
        "precondition-drift": [R, C],
        "failed-replay": [*acted, R, C],
        "crash-after-effect": [*acted, R, C],
    }


@pytest.mark.parametrize("rules", REVISIONS)
@pytest.mark.parametrize("case", SEQUENTIAL)
def test_the_lesson_expects_what_the_rerun_gave(case: str, rules: str) -> None:
    """What the protocol writes down before a run is this table too."""
    lesson = next(one for one in RETRY_RERUN.cases if one.name == case)
    statuses, reused, raised, _, effects, _ = golden(case, rules)
    assert lesson.expected_under(rules).as_json() == {
        "requests": len(statuses),
        "statuses": statuses,
        "reused_from": reused,
        "raised": raised,
        "effects_world": effects,
    }


@pytest.mark.parametrize(
    ("rules", "statuses", "effects"),
    [
        *((name, ["succeeded"] * 6, 6) for name in REVISIONS if name != "lab"),
        ("lab", ["succeeded", "in_progress"] * 3, 3),
    ],
)
def test_the_protocol_marks_threads_and_processes(rules: str, statuses: list[str], effects: int) -> None:
    """Six submissions over three keys, one row; the order in the two marked cases is nobody's promise."""
    cases = {case["case"]: case for case in RETRY_RERUN.protocol(rules)["cases"]}
    assert {name: case["marked"] for name, case in cases.items() if case["marked"]} == {
        "reopen-replay": ["processes"],
        "concurrency-probe": ["threads"],
    }
    probe = cases["concurrency-probe"]
    assert [request["key"] for request in probe["requests"]] == ["kp1", "kp1", "kp2", "kp2", "kp3", "kp3"]
    assert probe["expected"] == {
        "requests": 6,
        "statuses": statuses,
        "reused_from": [None] * 6,
        "raised": [None] * 6,
        "effects_world": effects,
    }


@pytest.mark.parametrize("rules", ["a1b562a", "1b3c7a2", "88d1291", "lab"])
def test_the_collision_is_named_on_record(rerun: Give, rules: str) -> None:
    """Key, completed action, fingerprint version and the one dimension; never a value."""
    (refused,) = (event for event in rerun(rules).events if event.kind == "action.replay_refused")
    assert refused.payload == {
        "action_id": "f2",
        "reason": "identity-conflict",
        "idempotency_key": "kf",
        "original_action_id": "f1",
        "fingerprint_version": "action-fingerprint-v1",
        "dimensions": ["instruction"],
    }


@pytest.mark.parametrize("rules", [R_1B3C7A2, LAB], ids=["1b3c7a2", "lab"])
def test_the_collision_is_named_by_the_error(tmp_path: Path, rules: Revision) -> None:
    """The caller's exception says the same as the record."""
    on, case = table(tmp_path, rules), next(c for c in RETRY_RERUN.cases if c.name == "fingerprint-collision")
    on.ask(case.asks[0])
    with pytest.raises(IdempotencyConflictError) as conflict:
        on.walk(case.asks[1]).run()
    error = conflict.value
    assert (error.idempotency_key, error.original_id) == ("kf", "f1")
    assert (error.fingerprint_version, error.dimensions) == ("action-fingerprint-v1", ("instruction",))


@pytest.mark.parametrize("rules", ["a1b562a", "1b3c7a2", "88d1291", "lab"])
def test_the_denial_reveals_nothing_of_the_recorded_one(tmp_path: Path, rerun: Give, rules: str) -> None:
    """It is a completion of the new request, word for word the one on a key that nobody ever used."""
    fresh = table(tmp_path, revision_named(rules))
    fresh.ask(next(case for case in RETRY_RERUN.cases if case.name == "authority-change").asks[1])
    denials = [
        event.payload
        for events in (rerun(rules).events, fresh.events())
        for event in events
        if event.stream_id == "a2" and event.kind == "action.completed"
    ]
    assert denials[0] == denials[1]
    assert (denials[0]["status"], denials[0]["reused_from_action_id"]) == ("denied", None)


@pytest.mark.parametrize("rules", REVISIONS)
def test_the_drift_names_both_states(rerun: Give, rules: str) -> None:
    """Expected state-A, observed state-B, before the effect."""
    completed = next(
        event.payload
        for event in rerun(rules).events
        if event.stream_id == "d1" and event.kind == "action.completed"
    )
    error = completed["error"]
    assert (error["code"], error["expected"], error["observed"]) == (
        "precondition-drift", "state-A", "state-B",
    )  # fmt: skip
    assert completed["effect_possible"] is False


@pytest.mark.parametrize(
    ("case", "error"), [("failed-replay", "ConnectionError"), ("crash-after-effect", "RuntimeError")]
)
@pytest.mark.parametrize("rules", ["1b3c7a2", "88d1291", "lab"])
def test_a_failure_after_the_effect_is_replayed_by_its_name(
    rerun: Give, rules: str, case: str, error: str
) -> None:
    """Both families of exception: the replay returns the recorded error of the one attempt."""
    played = rerun(rules)
    said = [
        event.payload["error"]["type"]
        for event in played.events
        if event.run_id == f"retry-rerun/{case}" and event.kind == "action.completed"
    ]
    assert said == [error, error]


def test_a_ledger_without_a_file_cannot_go_away(tmp_path: Path) -> None:
    """Closing and opening again is for a ledger in a file."""
    with pytest.raises(ValueError, match="in a file"), table(tmp_path).away():
        pytest.fail("there is nothing to give away")
