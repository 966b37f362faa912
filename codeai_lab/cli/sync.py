"""How does a notebook keep its outputs and still change only when what it says changes?

Chapter: 004, "Do this now": what a reader sees in a notebook must be what the program does.

Idea: run the notebook in a fresh kernel, strip everything that two runs do not share (times, widget ids, the
way a stream was cut into pieces), and write the bytes. Then `sync` twice changes nothing, and `sync --check`
is a comparison of bytes, pictures included.

Always true:
  S1. The same notebook gives the same bytes on every run; a second `sync` changes no byte.
  S2. A cell that fails, a kernel that dies, a time-out or an interrupt leaves the stored file as it was.
  S3. A file is replaced in one step, only when its bytes differ, and not when somebody saved it meanwhile.
  S4. Frozen evidence (anything inside a bag) is compared and never rewritten.

Not here: the kernel (`cli.kernel`); what a notebook may not contain (`cli.guard`); the second, independent
validator (nbval).
"""

from __future__ import annotations

import asyncio
import copy
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar, cast

import nbformat
from nbformat import NotebookNode

from codeai_lab.cli.guard import SKIP_TAG, WIDGET_VIEW, guard, source_complaints
from codeai_lab.cli.kernel import NotebookFailedError, one_line, run

KEPT_CELL_METADATA = frozenset({"tags", "nbgrader", "slideshow", "jupyter", "editable", "deletable"})
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MOST_KERNELS_AT_ONCE = 4
T = TypeVar("T")


class State(StrEnum):
    """What a sync found out about one notebook."""

    SAME = "same"
    CHANGED = "changed"
    DIFFERS = "differs"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One notebook's result; `why` is one sentence, empty where nothing needs saying."""

    path: Path
    state: State
    why: str = ""


def sync(
    files: Sequence[Path],
    check: bool = False,
    progress: Callable[[Outcome], None] | None = None,
    *,
    timeout_s: int = 120,
) -> list[Outcome]:
    """Run every notebook and bring its stored bytes up to date; with `check`, only compare.

    Args:
        files: the notebooks; the outcomes come in this order.
        check: write nothing.
        progress: called with each outcome as soon as it is known, in the order in which they end.
        timeout_s: how long one cell may take, in seconds.
    Returns:
        same: the stored bytes are what a run gives. changed: they were not, and now are. differs: they are
        not, and were left. failed: nothing to compare with, the notebook breaks a rule or did not run.
    Raises: KeyboardInterrupt, with every kernel stopped and every file whole.
    Touches: kernels, temporary folders and, without `check`, the files.
    """
    turns = min(MOST_KERNELS_AT_ONCE, os.cpu_count() or 1)

    async def all_of_them() -> list[Outcome]:
        turn = asyncio.Semaphore(turns)

        async def in_turn(path: Path) -> Outcome:
            async with turn:
                outcome = await _sync_one(path, check=check, timeout_s=timeout_s)
            if progress is not None:
                progress(outcome)
            return outcome

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(path)) for path in files]
        return [task.result() for task in tasks]

    return _to_its_end(all_of_them())


def execute(path: Path, *, timeout_s: int = 120) -> bytes:
    """Give the bytes that a run in a fresh kernel leaves; the file itself is only read.

    Raises: NotebookFailedError, one sentence that names the notebook and the cell.
    Touches: one kernel, one temporary folder.
    """
    nb = _parsed(path, _bytes(path))
    return rendered(_to_its_end(_fresh(path, nb, timeout_s)))


def default_files() -> list[Path]:
    """List the notebooks of the checkout around the current folder, those in evidence last."""
    root = _checkout()
    return [*sorted(root.glob("notebooks/*.ipynb")), *sorted(root.glob("evidence/**/notebook.ipynb"))]


# --- what two runs share -------------------------------------------------------------------------------


def normalised(nb: NotebookNode) -> NotebookNode:
    """Give a copy without what two runs of the same notebook do not share; ids and sources are kept."""
    nb = copy.deepcopy(nb)
    nb.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    nb.nbformat, nb.nbformat_minor = 4, 5
    count = 0
    for cell in nb.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k in KEPT_CELL_METADATA})
        cell.source = cell.source.replace("\r\n", "\n")
        if cell.cell_type != "code":
            continue
        if SKIP_TAG in cell.metadata.get("tags", []):
            cell.outputs, cell.execution_count = [], None
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = [_plain(output, count) for output in _merged_streams(cell.outputs)]
    return nb


def rendered(nb: NotebookNode) -> bytes:
    """Write a notebook as its one sequence of bytes: UTF-8, sorted keys, one newline at the end.

    Raises: NotebookFailedError where it is no valid notebook of format 4.5.
    """
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        raise NotebookFailedError(f"This is no valid notebook: {one_line(str(error))}.") from None
    text: str = nbformat.v4.writes(nb)
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _plain(output: NotebookNode, count: int) -> NotebookNode:
    if "execution_count" in output:
        output.execution_count = count
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
        output.metadata = NotebookNode()
    return output


def _merged_streams(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring streams, stdout first: how they are cut and interleaved is a race."""
    merged: list[NotebookNode] = []
    for is_stream, group in groupby(outputs, key=lambda output: output.output_type == "stream"):
        if not is_stream:
            merged += group
            continue
        texts = {"stdout": "", "stderr": ""}
        for output in group:
            texts[output.name] += output.text
        merged += [
            nbformat.from_dict({"output_type": "stream", "name": name, "text": text})
            for name, text in texts.items()
            if text
        ]
    return merged


# --- one notebook --------------------------------------------------------------------------------------


async def _sync_one(path: Path, *, check: bool, timeout_s: int) -> Outcome:
    only_compare = check or _is_frozen(path)
    try:
        stored = _bytes(path)
        before = _parsed(path, stored)
        _refuse(path, guard(before) if only_compare else source_complaints(before))
        after = await _fresh(path, copy.deepcopy(before), timeout_s)
        _refuse(path, guard(after))
        fresh = rendered(after)
        if fresh == stored:
            return Outcome(path=path, state=State.SAME)
        if only_compare:
            return Outcome(path=path, state=State.DIFFERS, why=_difference(path, before, after))
        _replace(path, stored, fresh)
    except NotebookFailedError as error:
        return Outcome(path=path, state=State.FAILED, why=str(error))
    return Outcome(path=path, state=State.CHANGED)


async def _fresh(path: Path, nb: NotebookNode, timeout_s: int) -> NotebookNode:
    await run(nb, name=path.name, folder=path.resolve().parent, timeout_s=timeout_s)
    return normalised(nb)


def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    # Selector, since the messages of a kernel come over sockets that Windows' default loop cannot watch.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.get_loop().set_exception_handler(_unless_interrupted)
        return runner.run(work)


def _unless_interrupted(loop: asyncio.AbstractEventLoop, said: dict[str, Any]) -> None:
    # An interrupt reaches the caller; that the tasks it went through were not asked about it is no news.
    if not isinstance(said.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(said)


def _difference(path: Path, before: NotebookNode, after: NotebookNode) -> str:
    for stored, fresh in zip(before.cells, after.cells, strict=True):
        if stored != fresh:
            return f"{path.name}: cell {fresh.id!r} is not stored as a run leaves it."
    return f"{path.name}: its metadata or its layout is not stored as sync writes it."


def _refuse(path: Path, complaints: Sequence[str]) -> None:
    if complaints:
        more = f" ({len(complaints) - 1} more.)" if len(complaints) > 1 else ""
        raise NotebookFailedError(f"{path.name}: {complaints[0]}{more}")


# --- files ---------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotebookFailedError(f"{path.name} cannot be read: {error.strerror}.") from None


def _parsed(path: Path, content: bytes) -> NotebookNode:
    try:
        nb = nbformat.v4.reads(content.decode("utf-8"))
        if nb.nbformat == 4 and all({"cell_type", "source", "metadata"} <= cell.keys() for cell in nb.cells):
            return cast(NotebookNode, nb)
    except (ValueError, AttributeError, TypeError, KeyError):
        pass
    raise NotebookFailedError(f"{path.name} is not a notebook of format 4.")


def _checkout() -> Path:
    package_home = Path(__file__).resolve().parents[2]
    for folder in (Path.cwd(), *Path.cwd().parents, package_home):
        if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise NotebookFailedError("There is no checkout of codeai_lab here; go to one, or name the notebooks.")


def _is_frozen(path: Path) -> bool:
    return any((folder / "bagit.txt").is_file() for folder in path.resolve().parents)


def _replace(path: Path, stored: bytes, fresh: bytes) -> None:
    """Put the new bytes in place in one step: a reader, or an interrupt, sees the old file or the new one."""
    if _bytes(path) != stored:
        raise NotebookFailedError(f"{path.name} was saved by somebody else while it ran; sync it again.")
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(fresh)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(target.stat().st_mode)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise NotebookFailedError(f"{path.name} cannot be written: {error.strerror}.") from None
