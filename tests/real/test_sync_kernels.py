"""The laws of cli.sync and cli.kernel with real kernels: two runs, failures, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbformat import NotebookNode, v4

from codeai_lab.cli.kernel import NotebookFailedError
from codeai_lab.cli.sync import Outcome, State, execute, rendered, sync

WIDGET = """
import ipywidgets

class Slider(ipywidgets.IntSlider):
    def __repr__(self):
        return f"slider at {self.value}"

    def _repr_mimebundle_(self, **kw):
        return {**super()._repr_mimebundle_(**kw), "text/html": f"<b>{self.value}</b>"}

Slider(value=3)
"""
FIGURE = """
import base64, io
import matplotlib.pyplot as plt

class Figure:
    def __repr__(self):
        return "one bar"

    def _repr_html_(self):
        fig, ax = plt.subplots()
        ax.bar([0], [1])
        out = io.BytesIO()
        with plt.rc_context({"svg.hashsalt": "codeai_lab"}):
            fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(fig)
        data = base64.b64encode(out.getvalue()).decode()
        return f'<figure><img alt="one bar" src="data:image/svg+xml;base64,{data}"></figure>'

Figure()
"""
STREAMS = """
import sys
for k in range(200):
    print(k, flush=True)
    print(k, file=sys.stderr, flush=True)
"""
SURROUNDINGS = """
import os, sys, tempfile
from pathlib import Path
print(sys.executable == os.environ["EXPECTED_PYTHON"], os.environ["TZ"], {"a", "b", "c"} == {"c", "b", "a"})
print([x for x in {"one", "two", "three", "four"}])
print(Path.cwd().name, Path(tempfile.gettempdir()).name, os.environ["MPLBACKEND"])
Path(tempfile.gettempdir(), "left-behind").touch()
"""


def notebook(**sources: str) -> NotebookNode:
    cells = [v4.new_markdown_cell("# Title", id="title")]
    for name, source in sources.items():
        cells.append(v4.new_code_cell(source.strip(), id=name.replace("_", "-")))
        if name == "on_purpose":
            cells[-1].metadata = NotebookNode({"tags": ["raises-exception"]})
    return v4.new_notebook(cells=cells)


def stored_in(folder: Path, nb: NotebookNode, name: str) -> Path:
    path = folder / f"{name}.ipynb"
    path.write_bytes(rendered(nb))
    return path


@pytest.fixture(autouse=True)
def nothing_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test its own place for temporary files, without a kernel registered anywhere."""
    place = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("JUPYTER_PATH", str(place / "none"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("EXPECTED_PYTHON", sys.executable)
    return place


def test_two_runs_give_the_same_bytes(tmp_path: Path, nothing_left: Path) -> None:
    """S1, N1, N2: widgets, pictures, streams, errors and sets come out the same; no scratch file stays."""
    path = stored_in(
        tmp_path,
        notebook(
            a_widget=WIDGET,
            two_streams=STREAMS,
            one_figure=FIGURE,
            on_purpose="raise ValueError('on purpose')",
            surroundings=SURROUNDINGS,
        ),
        "one",
    )
    assert sync([path]) == [Outcome(path=path, state=State.CHANGED)]
    stored = path.read_bytes()
    assert sync([path]) == [Outcome(path=path, state=State.SAME)]
    assert execute(path) == stored == path.read_bytes()
    assert list(nothing_left.iterdir()) == []

    cells = {cell["id"]: cell for cell in json.loads(stored)["cells"]}
    assert cells["a-widget"]["outputs"][0]["data"] == {
        "text/html": ["<b>3</b>"],
        "text/plain": ["slider at 3"],
    }
    assert [output["name"] for output in cells["two-streams"]["outputs"]] == ["stdout", "stderr"]
    assert cells["on-purpose"]["outputs"][0]["traceback"] == ["ValueError: on purpose"]
    said = "".join(cells["surroundings"]["outputs"][0]["text"]).splitlines()
    assert said[0] == "True UTC True"
    assert said[2] == f"{tmp_path.name} tmp module://matplotlib_inline.backend_inline"


FAILURES = {
    "an-error": ("raise ValueError('no /var/lib/place/file.txt')", "raised ValueError: no file.txt."),
    "a-bare-error": ("raise KeyError", "raised KeyError."),
    "a-dead-kernel": ("import os\nos._exit(3)", "ended its kernel."),
    "a-time-out": ("import time\ntime.sleep(60)", "took longer than 5 s."),
    "a-question": (
        "input()",
        "raised StdinNotImplementedError: raw_input was called, "
        "but this frontend does not support input requests.",
    ),
}


def test_a_cell_that_fails_is_named_and_nothing_stays(tmp_path: Path, nothing_left: Path) -> None:
    """S2, N3: an error, a dead kernel and a time-out are one sentence each; all else is as before."""
    paths = [
        stored_in(tmp_path, notebook(first_cell="x = 1", the_culprit=source, never_reached="x"), name)
        for name, (source, _) in FAILURES.items()
    ]
    before = [path.read_bytes() for path in paths]
    assert sync(paths, timeout_s=5) == [
        Outcome(path=path, state=State.FAILED, why=f"{path.name}: cell 'the-culprit' {why}")
        for path, (_, why) in zip(paths, FAILURES.values(), strict=True)
    ]
    assert [path.read_bytes() for path in paths] == before
    assert list(nothing_left.iterdir()) == []
    assert processes_of(nothing_left) == []


def test_executing_a_notebook_that_fails_is_an_error_of_ours(tmp_path: Path) -> None:
    """N3: what sync reports as an outcome, execute raises."""
    path = stored_in(tmp_path, notebook(the_culprit="1 / 0"), "one")
    with pytest.raises(
        NotebookFailedError, match=r"^one\.ipynb: cell 'the-culprit' raised ZeroDivisionError: "
    ):
        execute(path)


def test_a_kernel_that_does_not_start_is_one_sentence(
    tmp_path: Path, nothing_left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N3: where the interpreter cannot run a kernel, that is what is said."""
    path = stored_in(tmp_path, notebook(first_cell="1"), "one")
    monkeypatch.setenv("PYTHONHOME", str(nothing_left / "nowhere"))
    (outcome,) = sync([path])
    assert outcome.why == "one.ipynb: its kernel did not start; is ipykernel installed?"
    assert list(nothing_left.iterdir()) == []


def test_an_interrupt_ends_the_kernels_and_what_they_started(tmp_path: Path, nothing_left: Path) -> None:
    """S2, N3: Ctrl-C in the middle of two notebooks leaves the files whole and nothing running."""
    source = (
        "import pathlib, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "pathlib.Path(MARK).touch()\nimport time\ntime.sleep(300)"
    )
    marks = [tmp_path / "one-runs", tmp_path / "two-runs"][: os.cpu_count()]
    paths = [
        stored_in(tmp_path, notebook(a_long_cell=source.replace("MARK", repr(str(mark)))), mark.name)
        for mark in marks
    ]
    before = [path.read_bytes() for path in paths]
    script = (
        "import pathlib, signal, sys\nfrom codeai_lab.cli.sync import sync\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job has it ignored
        "try:\n    sync([pathlib.Path(name) for name in sys.argv[1:]], progress=print)\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    command = [sys.executable, "-c", script, *map(str, paths)]
    child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: all(mark.exists() for mark in marks))
        os.kill(child.pid, signal.SIGINT)
        reported, _ = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, reported) == (130, "")
    assert [path.read_bytes() for path in paths] == before
    wait_for(lambda: processes_of(nothing_left) == [])
    assert list(nothing_left.iterdir()) == []
    assert sorted(tmp_path.iterdir()) == sorted([*paths, *marks])


def wait_for(condition: object, seconds: float = 60) -> None:
    """Wait until something is so, and fail when it does not come."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def processes_of(place: Path) -> list[int]:
    """List the live processes whose environment names `place`; empty where the system cannot say."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(place).encode() in environment and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found
