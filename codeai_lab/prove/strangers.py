"""How is somebody else's script asked a question without being trusted?

Idea: it is a process of its own that reads nothing from us, has so long to answer and may say so much. What
it leaves running is ended with it. Whatever it does, there is an answer.

Always true:
  ST1. `ask` returns soon after the time limit at the latest, whatever the script does with its output.
  ST2. No more than `MOST_BYTES` of what it says, and of what it complains, is kept.

It runs with the rights of whoever asks: limits are no sandbox.

Not here: what the answer is worth (`prove.scoring`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MOST_BYTES = 2**20
GRACE_S = 1.0  # how long a pipe may stay open after its process has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a script did.

    Args:
        status: its exit status; negative when a signal ended it.
        said, complained: the beginnings of its standard output and standard error.
        timed_out, said_too_much: True when we ended it for this.
    """

    status: int
    said: bytes = b""
    complained: bytes = b""
    timed_out: bool = False
    said_too_much: bool = False


def ask(command: Sequence[str], *, within: Path, timeout_s: float) -> Answer:
    """Run a command in the folder `within`, for at most `timeout_s` seconds, and give what it did."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=within,
        start_new_session=True,  # a process group of its own, so that its children can be ended with it
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, complaints = _Ear(process, process.stdout), _Ear(process, process.stderr)
    timed_out = False
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _end(process)
    out.join(GRACE_S)
    complaints.join(GRACE_S)
    return Answer(
        status=process.wait(),
        said=bytes(out.heard),
        complained=bytes(complaints.heard),
        timed_out=timed_out,
        said_too_much=out.too_much or complaints.too_much,
    )


class _Ear(threading.Thread):
    """Listens to one pipe; a thread, because a pipe that a stranger's child holds open never ends."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.heard = bytearray()
        self.too_much = False
        self._process = process
        self._pipe = pipe
        self.start()

    def run(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 2**16):
                self.heard += chunk[: MOST_BYTES - len(self.heard)]
                if len(self.heard) == MOST_BYTES:
                    self.too_much = True
                    _end(self._process)
                    break


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and, where there are process groups, whatever it has started and left in its own."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
