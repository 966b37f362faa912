"""Does a process that is really killed at a boundary leave what the sweep says that it leaves?

A warm process opens nothing and forks a child for each kill, so that a kill costs no new interpreter. The
child opens a ledger file and a world of marker files, takes so many steps and kills itself with SIGKILL.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codeai_lab.explore.crash_points import FollowUp, Scene
from codeai_lab.explore.protocols import rules_named
from codeai_lab.explore.worlds import FolderWorld
from codeai_lab.store.ledger import DuckDBLedger

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system knows no SIGKILL")

WARM = """
import json, os, signal, sys
from pathlib import Path
import duckdb
from codeai_lab.explore.crash_points import Scene
from codeai_lab.explore.protocols import rules_named
from codeai_lab.explore.worlds import FolderWorld
from codeai_lab.store.ledger import DuckDBLedger

def die(name, steps, folder):
    rules, folder = rules_named(name), Path(folder)
    scene = Scene(rules, ledger=DuckDBLedger(folder / "lab.duckdb"), world=FolderWorld(folder / "world"))
    walk = scene.go(steps)
    os.kill(os.getpid(), signal.SIGKILL)

print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            die(*json.loads(line))
        finally:
            os._exit(1)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
"""
KILLS = (
    FollowUp.SAME_KEY,
    FollowUp.SAME_KEY,
    FollowUp.NEW_KEY,
    FollowUp.RECONCILE_FIRST,
    FollowUp.RECONCILE_FIRST,
)
Kill = Callable[[str, int, Path], int]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Let a child take so many steps under a rule set and kill itself; give the signal that it died of."""
    command = [sys.executable, "-c", WARM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as warm:
        assert warm.stdin is not None
        assert warm.stdout is not None
        told, heard = warm.stdin, warm.stdout
        assert heard.readline() == "ready\n"

        def give(name: str, steps: int, folder: Path) -> int:
            told.write(json.dumps([name, steps, str(folder)]) + "\n")
            told.flush()
            return int(heard.readline())

        yield give
        told.close()


BOUNDARIES = [
    pytest.param(name, steps, id=f"{name}-{steps}")
    for name in ("lab", "1b3c7a2")
    for steps in range(len(rules_named(name).revision.stages) + 1)
]


@pytest.mark.parametrize(("name", "steps"), BOUNDARIES)
def test_a_killed_process_leaves_what_a_dropped_walk_leaves(
    kill: Kill, tmp_path: Path, name: str, steps: int
) -> None:
    """Killed five times at each boundary: the ledger opens, the history, the answer and the effects are those
    of the sweep, under each follow-up.
    """
    rules = rules_named(name)
    for number, follow_up in enumerate(KILLS):
        swept = Scene(rules)
        swept.crash(steps)
        left = [event.kind for event in swept.ledger.read_all()]
        expected = swept.follow_up(follow_up)

        folder = tmp_path / str(number)
        folder.mkdir()
        assert kill(name, steps, folder) == signal.SIGKILL
        world = FolderWorld(folder / "world")
        with DuckDBLedger(folder / "lab.duckdb") as ledger:
            assert [event.kind for event in ledger.read_all()] == left
            point = Scene(rules, ledger=ledger, world=world, name="after").follow_up(follow_up)
        assert (point.effects, point.answer) == (expected.effects, expected.answer)
        assert len(list((folder / "world").glob("markers/*"))) == expected.effects
