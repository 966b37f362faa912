"""Is what cannot become evidence, or a copy of it, refused in one sentence before anything is written?"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codeai_lab.cli import evidence
from codeai_lab.cli.evidence import corrupt, freeze
from codeai_lab.errors import BundleError
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.verify import verify

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A title"},
        {
            "cell_type": "code", "id": "one", "metadata": {}, "source": "1", "outputs": [],
            "execution_count": 1,
        },
    ],
}  # fmt: skip
NO_NOTEBOOKS = {
    "text": b"a text\n",
    "noise": b"\xff\xfe",
    "a list": b"[]",
    "an object": b"{}",
    "nested": b"[" * 100_000,
    "format 3": json.dumps(GOOD | {"nbformat": 3}).encode(),
    "no cells": json.dumps(GOOD | {"cells": None}).encode(),
    "cells by name": json.dumps(GOOD | {"cells": {}}).encode(),
    "other cells": json.dumps(GOOD | {"cells": [{"cell_type": "heading"}]}).encode(),
    "code without outputs": json.dumps(
        GOOD | {"cells": [{"cell_type": "code", "execution_count": 1}]}
    ).encode(),
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of a small bundle that is pinned."""
    return Path(shutil.copytree(next((ROOT / "evidence" / "backoff").iterdir()), tmp_path / "B"))


def refused(command: Any, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert isinstance(result.exception, BundleError), result.exception
    assert result.output == ""
    return str(result.exception)


@pytest.mark.parametrize("name", NO_NOTEBOOKS)
def test_what_is_no_notebook_is_not_frozen(tmp_path: Path, name: str) -> None:
    """EV3: a file that is not a notebook of format 4 is refused, and nothing is played or written."""
    (tmp_path / "some.txt").write_bytes(NO_NOTEBOOKS[name])
    said = refused(freeze, "backoff", "--to", tmp_path / "new", "--notebook", tmp_path / "some.txt")
    assert said == "some.txt is not a notebook of format 4; name one that Jupyter stored."
    assert [path.name for path in tmp_path.iterdir()] == ["some.txt"]


@pytest.mark.parametrize("change", [{"execution_count": None}, {"execution_count": True}])
def test_a_notebook_that_was_not_run_is_not_frozen(tmp_path: Path, change: dict[str, Any]) -> None:
    """EV3: the first code cell without a count of its run is named by its number."""
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps(GOOD | {"cells": [*GOOD["cells"], GOOD["cells"][1] | change]}))
    said = refused(freeze, "backoff", "--to", tmp_path / "new", "--notebook", path)
    assert said == "Cell number 3 of mine.ipynb was never run; run them all and store it first."
    assert not (tmp_path / "new").exists()


def test_a_notebook_that_was_run_may_be_frozen(tmp_path: Path) -> None:
    """EV3: what Jupyter stored after running everything is accepted, the pinned one too."""
    (tmp_path / "mine.ipynb").write_text(json.dumps(GOOD))
    evidence.require_executed(tmp_path / "mine.ipynb")
    for stored in (ROOT / "evidence").glob("*/*/data/notebook.ipynb"):
        evidence.require_executed(stored)


@pytest.mark.parametrize("place", ["sub", "data/x", "data/deep/er"])
def test_no_copy_is_written_into_a_bundle(bundle: Path, place: str) -> None:
    """EV2: into its own source or another bundle, by `corrupt` or `freeze`: refused, and nothing is there."""
    before, to = digest_of(bundle), bundle / place
    for arguments in ((corrupt, bundle, "link", "--to", to), (freeze, "backoff", "--to", to)):
        said = refused(*arguments)
        assert said == f"{to.name} would lie inside the bundle B; choose a place outside it."
    assert verify(bundle, before).complete == "yes"
    assert not to.exists()
    assert not (bundle / "data" / "deep").exists()


def test_no_copy_is_written_into_a_bundle_by_a_link(bundle: Path, tmp_path: Path) -> None:
    """EV2: a link that leads into the bundle is followed before it is judged."""
    (tmp_path / "elsewhere").symlink_to(bundle / "data")
    said = refused(corrupt, bundle, "link", "--to", tmp_path / "elsewhere" / "x")
    assert "would lie inside the bundle B" in said
    assert not (bundle / "data" / "x").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_bundle_with_a_pipe_is_not_copied(bundle: Path, tmp_path: Path) -> None:
    """CP3: one sentence, and no part of a copy."""
    os.mkfifo(bundle / "data" / "pipe")
    said = refused(corrupt, bundle, "extra-file", "--to", tmp_path / "copy")
    assert said == "B cannot be copied: pipe in it is no file, no folder and no link."
    assert not (tmp_path / "copy").exists()


def test_a_bundle_that_cannot_be_read_is_not_copied(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP3: a file that the system keeps to itself is one sentence, and no part of a copy."""
    ordinary = Path.open

    def kept(path: Path, *rest: Any) -> Any:
        if path.name == "results.json":
            raise PermissionError(13, "Permission denied")
        return ordinary(path, *rest)

    monkeypatch.setattr(Path, "open", kept)
    said = refused(corrupt, bundle, "extra-file", "--to", tmp_path / "copy")
    assert said == "B cannot be copied: Permission denied."
    assert not (tmp_path / "copy").exists()
