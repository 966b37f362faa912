"""What the process does that is killed in the tests of a trajectory: it runs so many stages, and is dead.

Run as a script. It imports everything, opens nothing, and forks a child for each line `LEDGER POLICY STEPS`;
the child kills itself where it stands, so that nothing is flushed, closed or said good-bye to. A child that
came to the end of the trajectory before its last step ends with 0.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import duckdb  # noqa: F401  # before the fork, so that a child need not

from codeai_lab.lessons.film_play import Play, sound_tools
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.store.ledger import DuckDBLedger


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run(path: Path, policy: str, steps: int) -> None:
    """Take so many steps and die; the choice of the policy, when it is paused, is one of them."""
    play = Play(STORY, policy, DuckDBLedger(path))
    while True:
        walk = play.harness.walk(play.name)
        while not walk.is_over:
            if not steps:
                die()
            walk.step()
            steps -= 1
        if not steps:
            die()
        if walk.facts.end == "completed":
            os._exit(0)
        play.harness.recover(play.name, policy)
        steps -= 1


def main() -> None:
    sound_tools()
    for line in sys.stdin:
        path, policy, steps = line.split()
        child = os.fork()
        if child == 0:
            try:
                run(Path(path), policy, int(steps))
            except BaseException as error:
                print("failed", repr(error), flush=True)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}", flush=True)


if __name__ == "__main__":
    main()
