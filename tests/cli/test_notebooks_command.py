"""The laws of cli.notebooks: a reader's copy is the reader's own."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import pytest

from codeai_lab.cli import notebooks
from codeai_lab.cli.notebooks import NotebooksError, copy_to, lab_command, open_lab, shipped
from codeai_lab.errors import BundleError


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for the shipped folder: two notebooks, and what a Jupyter leaves beside them."""
    folder = tmp_path / "shipped"
    (folder / ".ipynb_checkpoints").mkdir(parents=True)
    (folder / "00-start.ipynb").write_bytes(b"start\n")
    (folder / "01-retry.ipynb").write_bytes(b"retry\n")
    (folder / ".hidden").touch()
    monkeypatch.setattr(notebooks, "shipped", lambda: folder)
    return folder


def test_the_shipped_folder_holds_what_the_checkout_holds() -> None:
    """Installed or not, one folder of notebooks is found."""
    checkout = Path(__file__).resolve().parents[2] / "notebooks"
    names = {entry.name for entry in shipped().iterdir() if entry.name.endswith(".ipynb")}
    assert names == {path.name for path in checkout.glob("*.ipynb")}


def test_a_copy_brings_every_notebook_and_nothing_hidden(source: Path, tmp_path: Path) -> None:
    """The folder is made, with its parents, and holds the same bytes."""
    dest = tmp_path / "deep" / "mine"
    assert copy_to(dest) == (["00-start.ipynb", "01-retry.ipynb"], [])
    assert {path.name: path.read_bytes() for path in dest.iterdir()} == {
        "00-start.ipynb": b"start\n",
        "01-retry.ipynb": b"retry\n",
    }


def test_a_second_copy_keeps_what_is_there_and_brings_what_is_missing(source: Path, tmp_path: Path) -> None:
    """C1: a reader's change survives, whatever was shipped since."""
    copy_to(tmp_path / "mine")
    (tmp_path / "mine" / "00-start.ipynb").write_bytes(b"my own notes")
    (tmp_path / "mine" / "01-retry.ipynb").unlink()
    assert copy_to(tmp_path / "mine") == (["01-retry.ipynb"], ["00-start.ipynb"])
    assert (tmp_path / "mine" / "00-start.ipynb").read_bytes() == b"my own notes"


def test_a_link_or_a_folder_in_the_way_is_kept(source: Path, tmp_path: Path) -> None:
    """C1: nothing is written through a dangling link, and a folder of that name stays."""
    (tmp_path / "mine" / "01-retry.ipynb").mkdir(parents=True)
    (tmp_path / "mine" / "00-start.ipynb").symlink_to(tmp_path / "elsewhere")
    assert copy_to(tmp_path / "mine") == ([], ["00-start.ipynb", "01-retry.ipynb"])
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("dest", ["taken", "taken/below"])
def test_a_file_in_the_place_of_the_folder_is_refused(source: Path, tmp_path: Path, dest: str) -> None:
    """C2: one sentence, without a path of the machine, and the file is untouched."""
    (tmp_path / "taken").write_bytes(b"text")
    with pytest.raises(NotebooksError) as refusal:
        copy_to(tmp_path / dest)
    assert str(refusal.value) == f"{Path(dest).name} is no folder; name one for the notebooks."
    assert (tmp_path / "taken").read_bytes() == b"text"


@pytest.mark.parametrize("dest", ["B", "B/data", "B/new/deep", "link"])
def test_nothing_is_copied_into_a_bundle(source: Path, tmp_path: Path, dest: str) -> None:
    """C3: a bundle, a folder in it, one that is not there yet, or a link to it: refused, nothing is made."""
    (tmp_path / "B" / "data").mkdir(parents=True)
    (tmp_path / "B" / "bagit.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "B")
    with pytest.raises(BundleError) as refusal:
        copy_to(tmp_path / dest)
    assert str(refusal.value) == "00-start.ipynb would lie inside the bundle B; choose a place outside it."
    assert sorted(path.name for path in (tmp_path / "B").rglob("*")) == ["bagit.txt", "data"]


def test_a_copy_that_breaks_off_leaves_no_half_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: what was not copied whole is not there."""

    class Full(io.FileIO):
        def write(self, content: object) -> int:
            raise OSError(28, "No space left on device")

    ordinary = Path.open
    monkeypatch.setattr(
        Path,
        "open",
        lambda path, mode="r", *rest: Full(path, mode) if mode == "xb" else ordinary(path, mode, *rest),
    )
    with pytest.raises(
        NotebooksError, match=r"^The notebooks cannot be copied to mine: No space left on device\.$"
    ):
        copy_to(tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == []


def test_lab_opens_the_first_notebook_of_a_folder(source: Path, tmp_path: Path) -> None:
    """A folder of ours opens on its tour, anything else as it is; always by this interpreter."""
    copy_to(tmp_path / "mine")
    (tmp_path / "other").mkdir()
    for dest, target in (("mine", "mine/00-start.ipynb"), ("other", "other"), ("mine/01-retry.ipynb",) * 2):
        command = lab_command(tmp_path / dest)
        target_path = str((tmp_path / target).resolve())
        assert command[:5] == [sys.executable, "-P", "-m", "jupyterlab", target_path]


def test_lab_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder and no JupyterLab are one sentence each, and nothing is started."""
    monkeypatch.setattr(notebooks.os, "execv", lambda *_: pytest.fail("it was started"))
    with pytest.raises(
        NotebooksError, match=r"^There is no gone; make it first with: codeai-lab notebooks gone$"
    ):
        open_lab(tmp_path / "gone")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotebooksError, match=r"^JupyterLab is not installed; "):
        open_lab(tmp_path)


def test_lab_starts_exactly_the_command(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown by lab_command is what is run, and its status is given back."""
    started: list[list[str]] = []
    monkeypatch.setattr(notebooks.os, "execv", lambda program, command: started.append(command))
    monkeypatch.setattr(subprocess, "call", lambda command: 3)
    assert open_lab(source) == 3
    assert started in ([lab_command(source)], [])
