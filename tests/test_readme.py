"""Does the README tell the truth?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import codeai_lab
from codeai_lab import cli
from codeai_lab.run.revisions import REVISIONS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_is_named() -> None:
    """The table of commands has each one, and none that is not there."""
    named = set(re.findall(r"codeai-lab ([a-z]+)", README))

    assert named == set(cli.cli.commands)


def test_every_rule_set_and_every_folder_is_named() -> None:
    """The tables have them all."""
    folders = [path.name for path in (ROOT / "codeai_lab").iterdir() if (path / "__init__.py").exists()]

    assert all(f"| `{name}` |" in README for name in REVISIONS)
    assert all(f"`codeai_lab/{name}/`" in README for name in folders)


def test_every_file_that_is_named_is_there() -> None:
    """A reader who follows the reading order finds the files."""
    names = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", README)

    assert names
    assert [
        name for name in names if not (ROOT / "codeai_lab" / name).exists() and not (ROOT / name).exists()
    ] == ["data/verify.py"] * names.count("data/verify.py")


def test_the_example_runs(tmp_path: Path) -> None:
    """The program of the README, as it stands."""
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert program is not None

    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.group(1)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert said.stdout == "succeeded observed none\n"


def test_the_front_door_gives_every_name_that_it_lists() -> None:
    """Each public name can be reached from `codeai_lab`."""
    assert all(getattr(codeai_lab, name) is not None for name in codeai_lab.__all__)
