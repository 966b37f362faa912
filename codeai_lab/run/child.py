"""How does a service of ours live in a process of its own, and die with whoever started it?

Chapter: 004, "Checking it without trusting it": effects are counted where they happen.

Idea: a child process, from `with` to the end of it. It says on its output what its parent waits for, a word
and a value in a line: `port 4711` when it listens, `refused WHY` when it cannot. Its input is never written
to; the child ends when that input closes, and a process that dies closes everything.

Always true:
  CH1. After `with`, the child is gone, whatever happened inside.
  CH2. A child that ends before its time is an error that says which, and never a wait without end.

Not here: what a child does (`run.provider`, `run.watchlist_service`).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

from codeai_lab.errors import RefusedRequestError


class ChildService:
    """A module of ours that runs as a child process and listens on a port of this machine.

    Args:
        module: run as `python -m`; arguments: its own.
        name: what it is called where it fails.

    Raises: RefusedRequestError (definite) on entering, for what the child refuses; RuntimeError when it ends
        before its time.
    """

    def __init__(self, module: str, *arguments: str, name: str) -> None:
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]

    def __enter__(self) -> Self:
        self._child = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.port = int(self.told("port"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.communicate()  # closes its input, which is how it is told to end

    def told(self, word: str) -> str:
        """Wait for a line of the child that begins with a word, and give the rest of it."""
        said = self._child.stdout.readline().rstrip("\n") if self._child.stdout else ""
        first, _, rest = said.partition(" ")
        if first == word:
            return rest
        self.kill()
        if first == "refused":
            raise RefusedRequestError(rest)
        raise RuntimeError(f"the {self.name} ended before its time")

    def wait_until_held(self) -> None:
        """Return when the service has taken a request that it holds back."""
        self.told("held")

    def kill(self) -> None:
        """Let it die where it stands."""
        self._child.kill()
        self._child.communicate()


def outlive_interrupts() -> None:
    """Let Ctrl-C pass by, in a child: it reaches every process of a terminal, and means the parent."""
    if not sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
