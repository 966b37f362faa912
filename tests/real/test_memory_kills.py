"""The laws of run.remembering under real kills: no living memory without its words, no words without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeai_lab.lessons.memory_offered import READER
from codeai_lab.lessons.memory_on_disk import CORRECTED, OWNER, STATED, SUMMARY, files_with, open_memories

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILD = Path(__file__).with_name("memory_child.py")


@pytest.mark.parametrize(
    ("act", "before", "after"),
    [
        ("remember", {"m1": "current", "s1": "current"}, {"m1": "current", "s1": "current", "m2": "current"}),
        (
            "correct",
            {"m1": "current", "s1": "current"},
            {"m1": "corrected by m2", "s1": "current", "m2": "current"},
        ),
        ("delete", {"m1": "current", "s1": "current"}, {"m1": "deleted", "s1": "deleted"}),
    ],
)
def test_a_kill_before_any_step_leaves_all_or_nothing(
    act: str, before: dict[str, str], after: dict[str, str], tmp_path: Path
) -> None:
    """RM1, RM2: killed before each step to the disk, reopened in another process: as before, or as after."""
    prepared, root = tmp_path / "prepared", tmp_path / "killed"
    prepared.mkdir()
    with open_memories(prepared, session="prepared") as memories:
        memories.remember("m1", STATED, authority=OWNER)
        memories.remember("s1", SUMMARY, authority=OWNER)
    done = subprocess.run(
        [sys.executable, CHILD, act, prepared, root], capture_output=True, text=True, timeout=100, check=True
    )
    ends = [line.split()[1] for line in done.stdout.splitlines()]
    assert ends == ["killed"] * (len(ends) - 1) + ["0"]
    assert len(ends) > 4
    outcomes = [_after(root / str(steps)) for steps in range(len(ends))]
    turn = outcomes.index(after)
    assert 0 < turn < len(outcomes)
    assert outcomes == [before] * turn + [after] * (len(outcomes) - turn)


def _after(folder: Path) -> dict[str, str]:
    """Open what a kill left, hold the law, and say what became of each memory."""
    with open_memories(folder, session="after") as memories:
        seen = memories.inspect(READER, authority=OWNER)
        living = {one["text_digest"] for one in seen if one["statement"] is not None}
        assert {one["text_digest"] for one in seen if one["state"] != "deleted"} == living
    kept = {path.name for path in (folder / "lab.duckdb.texts").iterdir()}
    assert kept == {*living, "ledger.json"}
    for claim in (STATED, SUMMARY, CORRECTED):
        told = [one for one in seen if one["statement"] == claim.statement]
        assert len(files_with(folder, claim.statement)) == len(told)
    return {one["memory"]: one["state"] for one in seen}
