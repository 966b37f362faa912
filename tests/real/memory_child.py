"""A process that forks children which do something to memories and are killed before one step of it.

memory_child.py ACT PREPARED ROOT      prints one line a child: how many steps it was let take, how it ended
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codeai_lab.lessons.memory_offered import READER
from codeai_lab.lessons.memory_on_disk import CORRECTED, OWNER, open_memories
from codeai_lab.run.remembering import Remembering
from codeai_lab.store import journal

ACTS: dict[str, Callable[[Remembering], object]] = {
    "remember": lambda memories: memories.remember("m2", CORRECTED, authority=OWNER),
    "correct": lambda memories: memories.correct("m1", CORRECTED, as_memory_id="m2", authority=OWNER),
    "delete": lambda memories: memories.delete("m1", owner=READER, authority=OWNER),
}


def main() -> None:
    act, prepared, root = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    for steps in range(1_000):
        folder = root / str(steps)
        shutil.copytree(prepared, folder)
        child = os.fork()
        if child == 0:
            be_killed(act, folder, steps)
        _, status = os.waitpid(child, 0)
        print(steps, "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status), flush=True)
        if not os.WIFSIGNALED(status):
            break


def be_killed(act: str, folder: Path, steps: int) -> None:
    left = [steps]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    with open_memories(folder, session="killed") as memories:
        for name in ("open", "write", "fsync", "replace", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        journal._flush = counted(journal._flush)
        ACTS[act](memories)
        os._exit(0)


if __name__ == "__main__":
    main()
