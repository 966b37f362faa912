"""Each lesson, played for real and frozen by the command: one time for everybody in this run who looks at it.

Whoever changes something in a bundle takes a copy. The folder is gone when the run ends.
"""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from click.testing import CliRunner

from codeai_lab.cli import cli
from codeai_lab.lessons.freezable import freezable


@cache
def frozen_again(lesson: str, rules: str) -> tuple[Path, str]:
    """Give the bundle that the command freezes, and what it printed."""
    to = _home() / f"{lesson}-{rules}"
    asked = () if rules == freezable(lesson).rules[-1] else ("--revision", rules)
    run = CliRunner().invoke(cli, ["freeze", lesson, *asked, "--to", str(to)])
    assert run.exit_code == 0, run.output
    return to, run.output


@cache
def _home() -> Path:
    folder = Path(mkdtemp(prefix="codeai-lab-again-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
