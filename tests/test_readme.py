"""Does the README tell the truth?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import codeai_lab
from codeai_lab import cli
from codeai_lab.errors import RefusedRequestError
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


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program of the README, as it stands."""
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert program is not None

    monkeypatch.chdir(tmp_path)
    exec(program.group(1), {"__name__": "__main__"})

    assert capsys.readouterr().out == "succeeded observed none\n"


def test_a_second_run_of_the_example_needs_another_action_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same action id is refused; another one, with the same key, is a replay and appends nothing."""
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert program is not None
    source = program.group(1)
    monkeypatch.chdir(tmp_path)
    exec(source, {})

    again: dict[str, Any] = {}
    with pytest.raises(RefusedRequestError, match="an id of its own"):
        exec(source, again)
    again["ledger"].close()
    another: dict[str, Any] = {}
    exec(source.replace('action_id="a1"', 'action_id="a2"'), another)

    assert another["result"].reused_from_action_id == "a1"
    assert len(list(Path("world/markers").iterdir())) == 1


def test_the_replay_that_is_shown_is_what_the_command_prints() -> None:
    """Letter by letter, as a pipe gets it."""
    shown = re.search(r"    \$ codeai-lab (replay .*)\n\n((?:    .*\n)+)", README)
    assert shown is not None
    printed = CliRunner().invoke(cli.cli, shown.group(1).split()).stdout

    assert printed.splitlines() == [line[4:] for line in shown.group(2).splitlines()]


def test_the_front_door_gives_every_name_that_it_lists() -> None:
    """Each public name can be reached from `codeai_lab`."""
    assert all(getattr(codeai_lab, name) is not None for name in codeai_lab.__all__)
