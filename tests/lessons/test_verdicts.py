"""Do the verdicts and the late walk give the effects that they should?"""

from __future__ import annotations

from pathlib import Path

from codeai_lab.lessons.verdicts import late_walks, three_verdicts


def test_each_verdict_and_what_the_same_key_gives(tmp_path: Path) -> None:
    """Confirmed is answered, absent is tried afresh, unknown stays: one effect in the world each time."""
    rows = three_verdicts(tmp_path)

    assert [(row["verdict"], row["the same key"], row["effects"]) for row in rows] == [
        ("effect_confirmed", "reconciled", 1),
        ("no_effect_confirmed", "succeeded", 1),
        ("still_unknown", "refused", 1),
    ]


def test_only_the_effects_own_side_turns_a_late_walk_away(tmp_path: Path) -> None:
    """Without a fence two effects; with it one; recorded beside the verdict both times."""
    rows = late_walks(tmp_path)

    assert [(row["the late walk"], row["recorded as"], row["effects"]) for row in rows] == [
        ("succeeded", "action.completed_late", 2),
        ("failed", "action.completed_late", 1),
    ]
