"""How does a process of ours live beside us, and die with whoever started it?

Chapter: 004, "Checking it without trusting it": effects are counted where they happen.

Idea: a child process, from `with` to the end of it. It says on its output what its parent waits for, a word
and a value in a line: `port 4711` when it listens, `refused WHY` when it cannot. Its input is never written
to; the child ends when that input closes, and a process that dies closes everything.

    parent  started ... let_go, or dead
                |              | input closes
    child    attached ------> ends

Always true:
  CH1. After `with`, the child is gone, whatever happened inside.
  CH2. A child that ends before its time is an error that says which, and never a wait without end.
  CH3. Ctrl-C means the parent: a child does not hear it, from its very first moment on.
  CH4. A child whose parent is gone ends, and has nothing to say about that.
  CH5. A child imports what its parent imports, and nothing from the folder that it happens to start in.

Not here: what a child does (`run.provider`, `run.watchlist_service`); a stranger's
script (`prove.strangers`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from codeai_lab.errors import RefusedRequestError

ALONE = 1  # the exit status of a child that nobody waits for
LAST_WORDS_S = 0.5  # what fails because the parent dies may be noticed this long before the death itself
ENDS = ("SIGINT", "SIGTERM", "SIGHUP")
SAFE = "-P"  # do not import from the folder that the process starts in
# What a killed parent leaves is cleaned up by a helper of Python's, which would complain about it.
QUIET_TRACKER = "ignore:resource_tracker:UserWarning"
if sys.platform == "win32":
    OUT_OF_REACH = subprocess.CREATE_NEW_PROCESS_GROUP
else:
    OUT_OF_REACH = 0  # there it is the blocked signal that is inherited
_environment = threading.RLock()


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
        self._arguments = ("-m", module, *arguments)

    def __enter__(self) -> Self:
        self._child = started(*self._arguments)
        try:
            self.port = int(self.told("port"))
        except BaseException:  # nobody leaves a `with` that was never entered
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:  # the folder that it works in may be removed next
            self._child.kill()
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


# --- on the parent's side -------------------------------------------------------------------------------


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start a Python with these arguments; it hangs on its input, and is `attached`."""
    with unheard_interrupts():
        return subprocess.Popen(
            [sys.executable, SAFE, *arguments],
            env=surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            creationflags=OUT_OF_REACH,
        )


def surroundings() -> dict[str, str]:
    """Give the environment in which a child imports what this process imports (CH5)."""
    home = Path(__file__).resolve().parents[2]  # last: a checkout that was found through the current folder
    search = [str(entry) for entry in (*sys.path, home) if entry]
    return os.environ | {"PYTHONPATH": os.pathsep.join(search)}


@contextmanager
def unheard_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from what this thread starts meanwhile; here it arrives afterwards, and none is lost (CH3).

    A blocked signal stays blocked in whatever is started; an ignored one would be lost to this process too.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def workers_start() -> Iterator[None]:
    """Start worker processes meanwhile, whose command line is not ours; each is to run `work_with_parent`.

    Touches: two variables of the environment, until the end; they are how Python itself is told.
    """
    warnings = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), QUIET_TRACKER)))
    with _environment, _ends_come_later(), unheard_interrupts():
        before = {name: os.environ.get(name) for name in ("PYTHONSAFEPATH", "PYTHONWARNINGS")}
        os.environ |= {"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": warnings}
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def _ends_come_later() -> Iterator[None]:
    """Let no signal end this process between a worker's start and its first orders, which follow at once.

    By handlers, for a blocked signal still ends a process with other threads; only the main one may set them.
    """
    came: set[int] = set()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in ENDS if hasattr(signal, name)]
        for number in numbers:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda which, _: came.add(which))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


# --- on the child's side --------------------------------------------------------------------------------


@contextmanager
def attached() -> Iterator[threading.Event]:
    """Be a child: give the event that whoever started this process let go of it, or is gone.

    What fails after that is nobody's business, and ends the process without a word (CH4).
    """
    _outlive_interrupts()
    let_go = threading.Event()
    threading.Thread(target=_watch_input, args=(let_go,), daemon=True).start()
    try:
        yield let_go
    except Exception:
        end_if(let_go)
        raise


def say(line: str) -> None:
    """Tell the parent a line; where nobody listens any more, this process ends (CH4)."""
    try:
        print(line, flush=True)
    except OSError:
        os._exit(ALONE)


def end_if(let_go: threading.Event) -> None:
    """End this process without a word, if what went wrong came of its parent's end (CH4)."""
    if let_go.wait(LAST_WORDS_S):
        os._exit(ALONE)


def work_with_parent(thread_of_life: Connection) -> None:
    """Be a worker of a pool: hear no interrupt, and end, whatever it does, when the other end closes."""
    _outlive_interrupts()

    def watch() -> None:
        with suppress(OSError, EOFError):
            thread_of_life.recv_bytes()
        os._exit(ALONE)

    threading.Thread(target=watch, daemon=True).start()


def _watch_input(let_go: threading.Event) -> None:
    # Below sys.stdin, whose lock a thread that waits there would hold while the interpreter ends.
    with suppress(OSError):
        while os.read(0, 1):
            pass
    let_go.set()


def _outlive_interrupts() -> None:
    """Let Ctrl-C pass by also where it could not be kept away: one sent to the child alone."""
    if not sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
