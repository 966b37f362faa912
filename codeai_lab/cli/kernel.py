"""How is a notebook run so that only the notebook decides what comes out?

Chapter: 004, "Do this now": a reader who runs it again must see the same.

Idea: a fresh kernel of this very interpreter, an environment without anything personal or random, one
scratch folder for whatever the cells leave behind; and when it ends, in whatever way, both are gone.

Always true:
  N1. The kernel is the running interpreter, whatever kernels are registered on this machine.
  N2. Configuration, history and temporary files of the kernel lie in a folder that is removed afterwards.
  N3. A failing cell, a time-out, a dying kernel and an interrupt all end the kernel and what it started, and
      say the cell's id in one sentence.

Not here: which outputs are stored, and when a file is written (`cli.sync`).
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from codeai_lab.cli.guard import SKIP_TAG
from codeai_lab.errors import LabError

FIXED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0", "COLUMNS": "80", "PYTHONUTF8": "1"}
DROPPED = frozenset({"MPLBACKEND", "PYTHONWARNINGS", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE"})
JUPYTER_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
# The folders of an absolute path, in quotes (where it may hold spaces) or out of them.
FOLDERS = re.compile(
    r"""(?<=['"])([A-Za-z]:)?[\\/][^'"]*[\\/] | (?<!\w)([A-Za-z]:)?[\\/]([^\s\\/:'"]+[\\/])+""", re.VERBOSE
)


class NotebookFailedError(LabError):
    """A notebook cannot be read, breaks a rule, or did not run to its end; the stored file is as it was."""


async def run(nb: NotebookNode, *, name: str, folder: Path, timeout_s: int) -> None:
    """Run every cell of `nb` in place, in a kernel that is gone when this returns or raises.

    Args:
        nb: the notebook; its cells get the outputs.
        name: what to call it in a sentence.
        folder: where its cells run.
        timeout_s: how long one cell may take, in seconds.
    Raises: NotebookFailedError, naming the cell.
    Touches: one kernel, one temporary folder, and whatever the cells touch.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-", ignore_cleanup_errors=True) as scratch:
        kernel = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=_ThisInterpreter(),
            connection_file=str(Path(scratch) / "kernel.json"),
        )
        client = NotebookClient(
            nb, km=kernel, timeout=timeout_s, record_timing=False, skip_cells_with_tag=SKIP_TAG
        )
        try:
            await _start(client, name, folder, _environment(Path(scratch)))
            for index, cell in enumerate(nb.cells):
                await _run_cell(client, index, cell, f"{name}: cell {cell.get('id', index)!r}")
        finally:
            await _stop(client, kernel)


def one_line(text: str) -> str:
    """Give the first line of a message, short, with every path cut down to its last part."""
    first = (text.strip().splitlines() or ["no message"])[0]
    return FOLDERS.sub("", first)[:200].rstrip(".")


async def _start(client: NotebookClient, name: str, folder: Path, env: dict[str, str]) -> None:
    quiet = subprocess.DEVNULL
    try:
        await client.async_start_new_kernel(cwd=str(folder), env=env, stdout=quiet, stderr=quiet)
        await client.async_start_new_kernel_client()
    except RuntimeError:
        raise NotebookFailedError(f"{name}: its kernel did not start; is ipykernel installed?") from None


async def _run_cell(client: NotebookClient, index: int, cell: NotebookNode, where: str) -> None:
    try:
        await client.async_execute_cell(cell, index)
    except CellExecutionError as error:
        said = f"{error.ename}: {error.evalue}".removesuffix(": ")
        raise NotebookFailedError(f"{where} raised {one_line(said)}.") from None
    except CellTimeoutError:
        raise NotebookFailedError(f"{where} took longer than {client.timeout} s.") from None
    except DeadKernelError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # nbclient takes our being cancelled for a dead kernel
            raise asyncio.CancelledError from None
        raise NotebookFailedError(f"{where} ended its kernel.") from None


async def _stop(client: NotebookClient, kernel: AsyncKernelManager) -> None:
    if client.kc is not None:
        client.kc.stop_channels()
    if kernel.has_kernel:
        await kernel.shutdown_kernel(now=True)  # the whole process group: nothing that a cell started stays
    await kernel.cleanup_resources()


class _ThisInterpreter(KernelSpecManager):
    """Knows one kernel, the running interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, name=kernel_name, display_name="Python 3 (ipykernel)", language="python")


def _environment(scratch: Path) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in DROPPED} | FIXED
    for variable in JUPYTER_FOLDERS:
        env[variable] = str(scratch / variable.lower())
    own_style = scratch / "matplotlibrc"  # empty: a reader's own settings do not colour a stored figure
    own_style.touch()
    env["MATPLOTLIBRC"] = str(own_style)
    temporary = scratch / "tmp"
    temporary.mkdir()
    env |= dict.fromkeys(TEMPORARY, str(temporary))
    # A relative entry would mean another folder in the kernel; a checkout that is not installed is added.
    search = [str(Path(entry).resolve()) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    home = Path(__file__).resolve().parents[2]
    if (home / "pyproject.toml").is_file():
        search.insert(0, str(home))
    return env | {"PYTHONPATH": os.pathsep.join(search)}
