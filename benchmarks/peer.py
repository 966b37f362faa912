"""How is something measured in the same rounds that does not live in the same environment?

Idea: DBOS runs in a child process, under an interpreter that has it, and carries out one workflow each time
it is told to. What counts is the time that the child took by its own clock, so that the telling is not
counted.

Always true: where there is no DBOS nothing is measured, and one sentence says so.

Not here: what the child does (`dbos_worker`).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType

WORKER = Path(__file__).with_name("dbos_worker.py")


class Peer:
    """A child process that carries out DBOS workflows on a SQLite file in a folder."""

    def __init__(self, python: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._child = subprocess.Popen(
            [python, str(WORKER), str(folder / "dbos.sqlite")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.version = self._answer()

    def run(self) -> float:
        """Have one workflow carried out and give the seconds that it took."""
        assert self._child.stdin is not None
        self._child.stdin.write("run\n")
        self._child.stdin.flush()
        return float(self._answer())

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.communicate()

    def _answer(self) -> str:
        assert self._child.stdout is not None
        answer = self._child.stdout.readline().strip()
        if not answer:
            raise RuntimeError("The DBOS worker ended early; run it by hand to see why.")
        return answer


def has_dbos(python: str = sys.executable) -> bool:
    """Say whether an interpreter has DBOS installed."""
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('dbos') is None)"
    return subprocess.run([python, "-c", script], check=False).returncode == 0
