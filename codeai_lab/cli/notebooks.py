"""How does a reader get the notebooks, and never lose a change to them?

Chapter: 004, "Do this now": the notebooks are read beside it.

Idea: the notebooks travel inside the package. A reader's copy is the reader's own: copying again brings what
is missing and leaves what is there.

Always true:
  C1. No file that exists is written to, even when it appears while the copying goes on.
  C2. What cannot be copied is said in one sentence; no half-copied file stays.
  C3. Nothing is put into an evidence bundle, which one more file would make invalid.

Not here: running the notebooks (`cli.kernel`).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from codeai_lab.errors import LabError
from codeai_lab.prove.bundle import require_outside

FIRST_TO_OPEN = "00-start.ipynb"


class NotebooksError(LabError):
    """The notebooks cannot be found, copied or opened; nothing that existed was changed."""


def copy_to(dest: Path) -> tuple[list[str], list[str]]:
    """Copy the shipped notebooks into a folder, which is made where it is missing.

    Returns: the names that were copied, and the names that were there already and were kept as they are.
    Raises: NotebooksError where `dest` is a file or cannot be written to; BundleError where it is a bundle or
        lies in one.
    Touches: files of `dest` that did not exist.
    """
    require_outside(dest / FIRST_TO_OPEN)
    copied: list[str] = []
    kept: list[str] = []
    sources = {entry.name: entry for entry in shipped().iterdir() if _travels(entry)}
    try:
        dest.mkdir(parents=True, exist_ok=True)
        for name in sorted(sources):
            is_new = _copy_new(sources[name], dest / name)
            (copied if is_new else kept).append(name)
    except (FileExistsError, NotADirectoryError):
        raise NotebooksError(f"{dest.name} is no folder; name one for the notebooks.") from None
    except OSError as error:
        raise NotebooksError(f"The notebooks cannot be copied to {dest.name}: {error.strerror}.") from None
    return copied, kept


def shipped() -> Traversable:
    """Find the folder of notebooks: inside an installed package, or beside it in a checkout."""
    package = resources.files("codeai_lab")
    for folder in (package / "_notebooks", Path(__file__).resolve().parents[2] / "notebooks"):
        if folder.is_dir():
            return folder
    raise NotebooksError("This installation came without its notebooks; install codeai-lab again.")


def open_lab(dest: Path) -> int:
    """Open JupyterLab on a folder or a notebook and stay until it ends; gives its exit status.

    Raises: NotebooksError where JupyterLab is not installed or there is nothing at `dest`.
    Touches: replaces this process, where the system can do that.
    """
    command = lab_command(dest)
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    return subprocess.call(command)


def lab_command(dest: Path) -> list[str]:
    """Give the command that opens JupyterLab on `dest`: on its first notebook, where there is one."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise NotebooksError("JupyterLab is not installed; install it with: python -m pip install jupyterlab")
    if not dest.exists():
        raise NotebooksError(f"There is no {dest.name}; make it first with: codeai-lab notebooks {dest.name}")
    first = dest / FIRST_TO_OPEN
    target = first if first.is_file() else dest
    command = [sys.executable, "-P", "-m", "jupyterlab", str(target.resolve())]
    # In a container everybody is root; the server still listens on this machine only and asks for its token.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*command, "--allow-root"] if is_root else command


def _travels(entry: Traversable) -> bool:
    return entry.is_file() and not entry.name.startswith(".")


def _copy_new(source: Traversable, target: Path) -> bool:
    """Copy into a file that does not exist yet; say whether it did not."""
    content = source.read_bytes()
    if target.is_dir():
        return False
    try:
        file = target.open("xb")
    except FileExistsError:
        return False
    try:
        with file:
            file.write(content)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return True
