"""What does a DBOS workflow of one step cost, on SQLite, as DBOS comes?

Idea: run by `peer` in a process of its own. For every line on its input it carries out one new workflow and
prints the seconds that it took. It imports DBOS and the standard library and nothing of this project.

Not here: comparing (`acting`).
"""

# mypy: ignore-errors
# DBOS lives in an environment of its own, so there is nothing to check this against.

from __future__ import annotations

import importlib.metadata
import sys
import time

from dbos import DBOS, SetWorkflowID


@DBOS.step()
def append_line(line: str) -> dict[str, str]:
    """Do nothing to the world, as the adapter on the other side does."""
    return {"marker": line}


@DBOS.workflow()
def one_step(line: str) -> dict[str, str]:
    """Carry out one step durably."""
    return append_line(line)


def main() -> None:
    database = f"sqlite:///{sys.argv[1]}"
    DBOS(config={"name": "one-step", "system_database_url": database, "run_admin_server": False})
    DBOS.launch()
    sys.stdout.write(f"{importlib.metadata.version('dbos')}\n")
    sys.stdout.flush()
    for number, _ in enumerate(sys.stdin):
        begun = time.perf_counter()
        with SetWorkflowID(f"workflow-{number}"):
            one_step(f"line {number} that may already be there")
        sys.stdout.write(f"{time.perf_counter() - begun:.9f}\n")
        sys.stdout.flush()
    DBOS.destroy()


if __name__ == "__main__":
    main()
