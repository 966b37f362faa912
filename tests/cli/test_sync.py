"""The laws of cli.sync, with a stand-in for the kernel; kernels themselves are in tests/real."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, v4

from codeai_lab.cli import sync as sync_module
from codeai_lab.cli.kernel import NotebookFailedError, one_line
from codeai_lab.cli.sync import Outcome, State, default_files, normalised, rendered, sync

Run = Callable[[NotebookNode], None]


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


def notebook(*outputs: NotebookNode, source: str = "show()") -> NotebookNode:
    cell = v4.new_code_cell(source, id="the-cell", outputs=list(outputs))
    return v4.new_notebook(cells=[v4.new_markdown_cell("# Title", id="title"), cell])


def stored_in(folder: Path, nb: NotebookNode, name: str = "one.ipynb") -> Path:
    path = folder / name
    path.write_bytes(rendered(nb))
    return path


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Let the test say what a run does to the notebook."""

    def becomes(work: Run) -> None:
        async def run(nb: NotebookNode, *, name: str, folder: Path, timeout_s: int) -> None:
            assert name
            assert folder.is_dir()
            assert timeout_s == 120
            await asyncio.sleep(0)
            work(nb)

        monkeypatch.setattr(sync_module, "run", run)

    return becomes


def prints(text: str) -> Run:
    def work(nb: NotebookNode) -> None:
        nb.cells[1].outputs = [stream(text)]

    return work


# --- normalised ----------------------------------------------------------------------------------------


def test_streams_become_one_each_in_a_fixed_order() -> None:
    """S1: neither the cutting of a stream nor its interleaving is kept; displays stay between."""
    shown = v4.new_output("display_data", {"text/plain": "x"})
    nb = notebook(stream("a"), stream("!", "stderr"), stream("b"), shown, stream("?", "stderr"), stream("c"))
    outputs = normalised(nb).cells[1].outputs
    assert [(o.get("name"), o.get("text")) for o in outputs] == [
        ("stdout", "ab"),
        ("stderr", "!"),
        (None, None),
        ("stdout", "c"),
        ("stderr", "?"),
    ]


def test_counts_run_from_one_and_skipped_cells_have_none() -> None:
    """S1: counts number the cells that run, whatever the kernel counted; a skipped cell keeps no output."""
    nb = notebook(v4.new_output("execute_result", {"text/plain": "1"}, execution_count=17))
    nb.cells[1].execution_count = 17
    skipped = v4.new_code_cell("wait()", id="skipped", execution_count=18, outputs=[stream("old")])
    skipped.metadata = NotebookNode({"tags": ["nbval-skip"]})
    nb.cells += [skipped, v4.new_code_cell("2", id="the-last", execution_count=3)]
    cells = normalised(nb).cells
    assert [cell.execution_count for cell in cells[1:]] == [1, None, 2]
    assert cells[1].outputs[0].execution_count == 1
    assert cells[2].outputs == []


def test_only_metadata_that_a_person_wrote_is_kept() -> None:
    """S1: times, trust and widget state go; tags, slides and grading marks stay."""
    nb = notebook()
    nb.metadata = NotebookNode(
        {"widgets": {"state": {}}, "kernelspec": {"name": "other", "display_name": "x"}}
    )
    nb.cells[1].metadata = NotebookNode(
        {
            "tags": ["predict"],
            "execution": {"iopub.status.busy": "…"},
            "trusted": True,
            "nbgrader": {"grade": True},
        }
    )
    nb.cells[0].metadata = NotebookNode({"slideshow": {"slide_type": "slide"}, "scrolled": False})
    plain = normalised(nb)
    assert plain.cells[1].metadata == {"tags": ["predict"], "nbgrader": {"grade": True}}
    assert plain.cells[0].metadata == {"slideshow": {"slide_type": "slide"}}
    assert plain.metadata.kernelspec.name == "python3"
    assert set(plain.metadata) == {"kernelspec", "language_info"}


def test_a_widget_leaves_its_text_and_not_its_view() -> None:
    """S1: a view's random id goes; the fallback that every reader can see stays."""
    view = {"model_id": "9a"}
    data = {
        "application/vnd.jupyter.widget-view+json": view,
        "text/html": "<b>3</b>",
        "text/plain": "slider at 3",
    }
    nb = notebook(v4.new_output("display_data", data, metadata={"isolated": True}))
    (output,) = normalised(nb).cells[1].outputs
    assert output.data == {"text/html": "<b>3</b>", "text/plain": "slider at 3"}
    assert output.metadata == {}


def test_a_traceback_is_cut_to_its_last_line() -> None:
    """S1: frames hold paths of the machine; the name and the message of an error do not."""
    error = v4.new_output(
        "error", ename="ValueError", evalue="no", traceback=["\x1b[31mframe\x1b[0m", "line"]
    )
    (output,) = normalised(notebook(error)).cells[1].outputs
    assert output.traceback == ["ValueError: no"]


def test_normalising_leaves_its_argument_alone_and_is_done_once() -> None:
    """S1: what is normalised is a copy, and normalising it again changes nothing."""
    nb = notebook(stream("a"), stream("b"))
    once = normalised(nb)
    assert len(nb.cells[1].outputs) == 2
    assert rendered(normalised(once)) == rendered(once)


def test_the_bytes_are_utf8_with_one_newline_at_the_end() -> None:
    """S1: one notebook is one sequence of bytes on every system."""
    content = rendered(normalised(notebook(source="print('é')\r\nprint(2)")))
    assert content.endswith(b"}\n")
    assert not content.endswith(b"\n\n")
    assert b"\r" not in content
    assert "é".encode() in content
    assert json.loads(content)["cells"][1]["source"] == ["print('é')\n", "print(2)"]


def test_what_is_no_notebook_is_not_written() -> None:
    """S2: a notebook that breaks the format is refused in one sentence."""
    nb = notebook()
    nb.cells[1].cell_type = "poem"
    with pytest.raises(NotebookFailedError, match=r"^This is no valid notebook: .*\.$"):
        rendered(nb)


# --- sync ----------------------------------------------------------------------------------------------


def test_the_first_sync_writes_and_the_second_changes_no_byte(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S1, S3: a file is written when its bytes differ, and only then."""
    path = stored_in(tmp_path, notebook())
    kernel(prints("hello\n"))
    assert sync([path]) == [Outcome(path=path, state=State.CHANGED)]
    first, at = path.read_bytes(), path.stat().st_mtime_ns
    assert b"hello" in first
    assert sync([path]) == [Outcome(path=path, state=State.SAME)]
    assert sync([path], check=True) == [Outcome(path=path, state=State.SAME)]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (first, at)


def test_a_check_names_the_first_cell_that_differs_and_writes_nothing(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S3: a check says where, and leaves the file as it was."""
    path = stored_in(tmp_path, normalised(notebook(stream("old\n"))))
    before = path.read_bytes()
    kernel(prints("new\n"))
    (outcome,) = sync([path], check=True)
    assert outcome.state is State.DIFFERS
    assert outcome.why == "one.ipynb: cell 'the-cell' is not stored as a run leaves it."
    assert path.read_bytes() == before


def test_a_check_also_sees_the_layout(tmp_path: Path, kernel: Callable[[Run], None]) -> None:
    """S1: the same cells in other bytes are not the same file."""
    path = stored_in(tmp_path, normalised(notebook(stream("same\n"))))
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=4), encoding="utf-8")
    kernel(prints("same\n"))
    (outcome,) = sync([path], check=True)
    assert outcome.why == "one.ipynb: its metadata or its layout is not stored as sync writes it."


def test_frozen_evidence_is_compared_and_never_rewritten(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S4: inside a bag even a plain sync only compares."""
    (tmp_path / "data").mkdir()
    (tmp_path / "bagit.txt").touch()
    path = stored_in(tmp_path / "data", normalised(notebook(stream("old\n"))), "notebook.ipynb")
    before = path.read_bytes()
    kernel(prints("new\n"))
    assert [outcome.state for outcome in sync([path])] == [State.DIFFERS]
    assert path.read_bytes() == before


def test_a_run_that_fails_leaves_the_file_and_the_others_go_on(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S2: one notebook's failure is one outcome; the order of the outcomes is that of the files."""
    bad, good = stored_in(tmp_path, notebook(source="bad"), "bad.ipynb"), stored_in(tmp_path, notebook())
    before = bad.read_bytes()

    def work(nb: NotebookNode) -> None:
        if nb.cells[1].source == "bad":
            raise NotebookFailedError("bad.ipynb: cell 'the-cell' raised ValueError: no.")

    kernel(work)
    told: list[Outcome] = []
    outcomes = sync([bad, good], progress=told.append)
    assert [(o.path, o.state) for o in outcomes] == [(bad, State.FAILED), (good, State.CHANGED)]
    assert outcomes[0].why == "bad.ipynb: cell 'the-cell' raised ValueError: no."
    assert sorted(told, key=str) == sorted(outcomes, key=str)
    assert bad.read_bytes() == before


def test_an_interrupt_leaves_every_file_as_it_was(tmp_path: Path, kernel: Callable[[Run], None]) -> None:
    """S2: an interrupt in the middle of a run writes nothing and goes on to the caller."""
    path = stored_in(tmp_path, notebook())
    before = path.read_bytes()

    def work(nb: NotebookNode) -> None:
        raise KeyboardInterrupt

    kernel(work)
    with pytest.raises(KeyboardInterrupt):
        sync([path])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["one.ipynb"]


@pytest.mark.parametrize("surprise", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_unfinished_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path,
    kernel: Callable[[Run], None],
    monkeypatch: pytest.MonkeyPatch,
    surprise: type[BaseException] | BaseException,
) -> None:
    """S3: the new bytes appear in one step or not at all."""
    path = stored_in(tmp_path, notebook())
    before = path.read_bytes()
    kernel(prints("new\n"))

    def fsync(handle: int) -> None:
        raise surprise

    monkeypatch.setattr(os, "fsync", fsync)
    if surprise is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            sync([path])
    else:
        assert [o.why for o in sync([path])] == ["one.ipynb cannot be written: No space left on device."]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["one.ipynb"]


def test_an_interrupt_is_the_callers_and_nothing_else_is_said_of_it(
    tmp_path: Path, kernel: Callable[[Run], None], caplog: pytest.LogCaptureFixture
) -> None:
    """S2: wherever it falls, asyncio does not complain of the tasks that it went through."""

    def work(nb: NotebookNode) -> None:
        raise KeyboardInterrupt

    kernel(work)
    try:
        sync([stored_in(tmp_path, notebook())])
    except KeyboardInterrupt as interrupt:
        told = interrupt
    told.__traceback__ = None  # it holds the tasks
    del told
    gc.collect()
    assert caplog.records == []


def test_a_file_saved_while_it_ran_is_not_overwritten(tmp_path: Path, kernel: Callable[[Run], None]) -> None:
    """S3: a reader's change made during the run is worth more than the outputs."""
    path = stored_in(tmp_path, notebook())
    edited = rendered(notebook(source="edited"))

    def work(nb: NotebookNode) -> None:
        path.write_bytes(edited)
        nb.cells[1].outputs = [stream("new\n")]

    kernel(work)
    (outcome,) = sync([path])
    assert (outcome.state, outcome.why) == (
        State.FAILED,
        "one.ipynb was saved by somebody else while it ran; sync it again.",
    )
    assert path.read_bytes() == edited


def test_a_notebook_that_breaks_a_rule_is_not_even_run(tmp_path: Path, kernel: Callable[[Run], None]) -> None:
    """S2: what is wrong with the source is said before a kernel is started."""
    nb = notebook(source="clear_output()\nprint(_)")
    path = stored_in(tmp_path, nb)
    before = path.read_bytes()
    kernel(lambda nb: pytest.fail("it ran"))
    (outcome,) = sync([path])
    assert outcome.state is State.FAILED
    assert outcome.why == (
        "one.ipynb: cell 'the-cell' uses clear_output, "
        "whose result changes after the cell has ended. (1 more.)"
    )
    assert path.read_bytes() == before


def test_an_output_that_cannot_be_compared_is_not_written(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S2: what a run left is judged before it is stored."""
    path = stored_in(tmp_path, notebook())
    before = path.read_bytes()
    kernel(prints("<object object at 0x7f12345678>\n"))
    assert [o.state for o in sync([path])] == [State.FAILED]
    assert path.read_bytes() == before


def test_a_check_finds_a_cell_that_was_never_run_without_running_it(
    tmp_path: Path, kernel: Callable[[Run], None]
) -> None:
    """S2: a stored notebook is judged as it is stored."""
    path = stored_in(tmp_path, notebook())
    kernel(lambda nb: pytest.fail("it ran"))
    assert [o.why for o in sync([path], check=True)] == ["one.ipynb: cell 'the-cell' was never run."]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "one.ipynb cannot be read: No such file or directory."),
        (b"not json", "one.ipynb is not a notebook of format 4."),
        (b"\xff\xfe", "one.ipynb is not a notebook of format 4."),
        (b'{"nbformat": 3, "worksheets": []}', "one.ipynb is not a notebook of format 4."),
        (b'{"nbformat": 4, "cells": [{}]}', "one.ipynb is not a notebook of format 4."),
        (b"[]", "one.ipynb is not a notebook of format 4."),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: Path, content: bytes | None, why: str) -> None:
    """S2: a missing or a strange file is an outcome, without a path of the machine."""
    path = tmp_path / "one.ipynb"
    if content is not None:
        path.write_bytes(content)
    assert sync([path]) == [Outcome(path=path, state=State.FAILED, why=why)]


# --- which files, which words --------------------------------------------------------------------------


def test_the_default_files_are_those_of_the_checkout_around_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notebooks come first, frozen ones after, whatever folder of the checkout one is in."""
    for name in (
        "notebooks/02-b.ipynb",
        "notebooks/01-a.ipynb",
        "evidence/l/x/data/notebook.ipynb",
        "pyproject.toml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / "evidence" / "l")
    assert [path.relative_to(tmp_path).as_posix() for path in default_files()] == [
        "notebooks/01-a.ipynb",
        "notebooks/02-b.ipynb",
        "evidence/l/x/data/notebook.ipynb",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no such file: '/tmp/a b/x/ledger.duckdb'", "no such file: 'ledger.duckdb'"),
        ("no such file: '/var/lib/x/ledger.duckdb'", "no such file: 'ledger.duckdb'"),
        ("C:\\Users\\me\\x.txt is locked", "x.txt is locked"),
        ("half/of 3/4 is 3/8", "half/of 3/4 is 3/8"),
        ("first line\nsecond line", "first line"),
        ("", "no message"),
    ],
)
def test_a_message_is_one_line_without_paths(text: str, said: str) -> None:
    """S2: a sentence for a person names files by their last part."""
    assert one_line(text) == said


def test_the_format_library_still_reads_what_is_written() -> None:
    """S1: the bytes are a valid notebook for everybody else."""
    nb = nbformat.reads(rendered(normalised(notebook(stream("a")))).decode(), as_version=4)
    nbformat.validate(nb)
