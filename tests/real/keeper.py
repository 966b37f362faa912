"""Runs a command, and ends it with all that came of it as soon as whoever started this is gone.

    python keeper.py OUTPUT COMMAND...

Standard input is the thread that it hangs on: when that is closed, by hand or because the process at its
other end was killed, everything below is ended. What was still there is named on standard output, by lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
import time
from pathlib import Path

import psutil

ADOPT_ORPHANS = (
    36  # PR_SET_CHILD_SUBREAPER: a kernel whose server was killed is then still below this process
)
PATIENCE_S = 5.0


def main(output: str, *command: str) -> None:
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    with Path(output).open("wb") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        sys.stdin.buffer.read()
        left = below()
        with contextlib.suppress(BrokenPipeError):
            print("\n".join(left.values()), flush=True)
        end_all()


def below() -> dict[psutil.Process, str]:
    """Give the processes below this one that run, with their names."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found[process] = " ".join(process.cmdline()[:4])
    return found


def end_all() -> None:
    """End them politely, and then the other way, until none is left."""
    deadline = time.monotonic() + PATIENCE_S
    for process in below():
        with contextlib.suppress(psutil.Error):
            process.terminate()
    while left := below():
        if time.monotonic() > deadline:
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
