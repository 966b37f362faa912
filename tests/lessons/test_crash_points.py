"""Are the rows of the lesson `crash-points` what was dropped and followed up, in the promised names?"""

from __future__ import annotations

import json

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.protocols import CRASHES, LEASES
from codeai_lab.lessons.crash_points import crash_point_rows, two_crash_rows
from codeai_lab.run.revisions import REVISIONS


def test_there_is_a_row_for_every_boundary_and_follow_up() -> None:
    """Every rule set under three follow-ups, every protocol under the retry; plain JSON."""
    rows = crash_point_rows()
    assert json.loads(json.dumps(rows)) == rows
    assert all(list(row) == ["rule_set", "after_stage", "follow_up", "effects", "outcome"] for row in rows)
    for name, rules in REVISIONS.items():
        found = [(row["follow_up"], row["after_stage"]) for row in rows if row["rule_set"] == name]
        assert found == [
            (follow_up, stage)
            for follow_up in ("same-key", "new-key", "reconcile-first")
            for stage in ("nothing", *rules.stage_names)
        ]
    for protocol in (*CRASHES, *LEASES):
        found = [(row["follow_up"], row["after_stage"]) for row in rows if row["rule_set"] == protocol.name]
        # Alone, there is nobody to ask about.
        come_to = [stage for stage in protocol.revision.stage_names if stage != "ask_first"]
        assert found == [("same-key", stage) for stage in ("nothing", *come_to)]


def test_lab_is_never_a_duplicate_and_never_lost_but_under_a_fresh_key() -> None:
    """The promise of `lab`, read from the rows (CL2)."""
    rows = crash_point_rows(only=["lab"])
    outcomes = {row["outcome"] for row in rows if row["follow_up"] != "new-key"}
    assert outcomes == {"safe", "unknown"}
    assert {row["outcome"] for row in rows if row["follow_up"] == "new-key"} == {"safe", "duplicate"}


def test_reconciling_first_always_ends_with_one_effect() -> None:
    """Every row, under every rule set."""
    rows = [row for row in crash_point_rows(only=list(REVISIONS)) if row["follow_up"] == "reconcile-first"]
    assert {row["effects"] for row in rows} == {1}


def test_two_crashes_are_counted_by_pairs() -> None:
    """Pairs of boundaries, the effects that they end with, and what is true then."""
    assert two_crash_rows(only=["unguarded", "claim-busy"]) == [
        {
            "rule_set": "unguarded",
            "follow_up": "same-key",
            "pairs": 23,
            "effects": {"1": 15, "2": 7, "3": 1},
            "outcomes": {"duplicate": 8, "safe": 15},
        },
        {
            "rule_set": "claim-busy",
            "follow_up": "same-key",
            "pairs": 29,
            "effects": {"0": 7, "1": 22},
            "outcomes": {"safe": 15, "stuck": 14},
        },
    ]


def test_progress_is_told_before_each_rule_set() -> None:
    """Name, how many are done, of how many."""
    heard: list[tuple[str, int, int]] = []
    crash_point_rows(only=["lock", "atomic"], progress=lambda *said: heard.append(said))
    assert heard == [("lock", 0, 2), ("atomic", 1, 2)]


def test_unknown_rules_are_refused() -> None:
    """One sentence names those that there are."""
    with pytest.raises(RefusedRequestError, match="no rules called nonsense"):
        crash_point_rows(only=["nonsense"])
