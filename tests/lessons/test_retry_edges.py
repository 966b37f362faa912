"""Where do the rule sets really differ, and are the old defects kept as found beside what `lab` gives?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codeai_lab.lessons import RETRY_EDGES
from codeai_lab.lessons.playing import Played
from codeai_lab.run.revisions import REVISIONS

Give = Callable[[str, str], Played]
Row = tuple[list[Any], list[Any], list[Any], list[int], int, list[Any], list[str]]

R, K, S = "action.requested", "action.claimed", "action.execution_started"
C, X = "action.completed", "action.replay_refused"
LAB = [R, K, S, C]

# statuses, reused from, raised, allowed by the ledger, effects in the world, labels, whole history
ESCAPED: Row = (
    [None, None], [None, None], ["ConnectionError"] * 2, [0, 2], 2, ["unknown", "duplicate"], [R, R],
)  # fmt: skip
LOST: Row = (
    [None, "succeeded"], [None, None], ["TimeoutError", None], [1, 2], 2, ["unknown", "duplicate"], [R, R, C],
)  # fmt: skip


def replayed(
    status: str, first: str, allowed: list[int], effects: int, label: str | None, *kinds: str
) -> Row:
    return (
        [status, status], [None, first], [None, None], allowed, effects, [label, "replay"], [*kinds, R, C],
    )  # fmt: skip


def thrice(*kinds: str) -> Row:
    return (
        ["succeeded"] * 3, [None, "m1", "m1"], [None] * 3, [1, 1], 1, [None, "replay", "replay"],
        [*kinds, R, C, R, C],
    )  # fmt: skip


def interrupted(*kinds: str) -> Row:
    return (
        [None, "succeeded"], [None, None], ["KeyboardInterrupt", None], [1, 2], 2, ["unknown", "duplicate"],
        [*kinds],
    )  # fmt: skip


GOLDEN: dict[str, dict[str, Row]] = {
    "escaping-exception": {
        "7a0d43b": ESCAPED,
        "a1b562a": ESCAPED,
        "1b3c7a2": replayed("failed", "x1", [0, 1], 1, "unknown", R, C),
        "88d1291": replayed("failed", "x1", [0, 1], 1, "unknown", R, S, C),
        "lab": replayed("failed", "x1", [0, 1], 1, "unknown", *LAB),
    },
    "lost-acknowledgement": {
        "7a0d43b": LOST,
        "a1b562a": LOST,
        "1b3c7a2": replayed("failed", "l1", [0, 1], 1, "unknown", R, C),
        "88d1291": replayed("failed", "l1", [0, 1], 1, "unknown", R, S, C),
        "lab": replayed("failed", "l1", [0, 1], 1, "unknown", *LAB),
    },
    "interrupt-inside": {
        "7a0d43b": interrupted(R, R, C),
        "a1b562a": interrupted(R, R, C),
        "1b3c7a2": interrupted(R, R, C),
        "88d1291": interrupted(R, S, R, S, C),
        "lab": (
            [None, "refused"], [None, None], ["KeyboardInterrupt", None], [0, 1], 1, ["unknown", "unknown"],
            [R, K, S, R, X],
        ),
    },
    "denied-then-permitted": {
        "otherwise": replayed("denied", "p1", [0, 0], 0, "denied", R, C),
        "lab": (
            ["denied", "succeeded"], [None, None], [None, None], [1, 1], 1, ["denied", "retry"], [R, C, *LAB],
        ),
    },
    "drift-then-back": {
        "otherwise": replayed("failed", "w1", [0, 0], 0, None, R, C),
        "lab": (
            ["failed", "succeeded"], [None, None], [None, None], [1, 1], 1, [None, "retry"], [R, C, *LAB],
        ),
    },
    "moved-by-its-own-success": {
        "otherwise": thrice(R, C),
        "88d1291": thrice(R, S, C),
        "lab": thrice(*LAB),
    },
    "precondition-unreadable": {
        "otherwise": (["succeeded"], [None], [None], [1, 1], 1, [None], [R, C]),
        "88d1291": (["succeeded"], [None], [None], [1, 1], 1, [None], [R, S, C]),
        "lab": (["failed"], [None], [None], [0, 0], 0, [None], [R, C]),
    },
}  # fmt: skip

EVERY = [pytest.param(case, rules, id=f"{case}-{rules}") for case in GOLDEN for rules in REVISIONS]


def test_every_case_has_its_row() -> None:
    """No case is played that nobody judges."""
    assert [case.name for case in RETRY_EDGES.cases] == list(GOLDEN)


@pytest.mark.parametrize(("case", "rules"), EVERY)
def test_the_rows_of_the_edges(played: Give, case: str, rules: str) -> None:
    """Each value from ledger and world, and the whole history."""
    row = next(row for row in played("retry-edges", rules).rows if row["case"] == case)
    golden = GOLDEN[case].get(rules, GOLDEN[case].get("otherwise"))
    assert golden is not None
    statuses, reused, raised, allowed, effects, labels, kinds = golden
    assert row["statuses"] == statuses
    assert row["reused_from"] == reused
    assert row["raised"] == raised
    assert row["effects_ledger"] == allowed
    assert row["effects_world"] == row["effects_summary"] == effects
    assert row["labels"] == labels
    assert row["event_kinds"] == kinds
    assert row["notes"] == []


@pytest.mark.parametrize(("case", "rules"), EVERY)
def test_the_edges_are_expected_as_written_here(case: str, rules: str) -> None:
    """What the protocol writes down before a run is this table too."""
    lesson = next(one for one in RETRY_EDGES.cases if one.name == case)
    golden = GOLDEN[case].get(rules, GOLDEN[case].get("otherwise"))
    assert golden is not None
    statuses, reused, raised, _, effects, _, _ = golden
    assert lesson.expected_under(rules).as_json() == {
        "requests": len(statuses),
        "statuses": statuses,
        "reused_from": reused,
        "raised": raised,
        "effects_world": effects,
    }
