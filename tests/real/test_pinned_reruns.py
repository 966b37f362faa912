"""Does `codeai-lab rerun` say of each pinned bundle that it is the same, and of a changed copy what differs?

The cases are played for real, threads included, and the command is the one that a reader types.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from codeai_lab import cli
from codeai_lab.prove import bundle
from codeai_lab.prove.copies import Copy

EVIDENCE = Path(__file__).parents[2] / "evidence"
PINNED = sorted(path.parent.relative_to(EVIDENCE).as_posix() for path in EVIDENCE.glob("*/*/bagit.txt"))
each_pinned = pytest.mark.parametrize("name", PINNED)


class _Main(click.Command):
    """`main` itself, with its handling of errors and its exit status."""

    def __init__(self) -> None:
        super().__init__("main", callback=cli.main)


def rerun(folder: Path, *options: str) -> Result:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["codeai-lab", "rerun", str(folder), *options])
        return CliRunner().invoke(_Main(), [])


@pytest.fixture
def frozen_here(tmp_path: Path) -> Callable[[str], Copy]:
    """Give a copy of a pinned bundle that says it was frozen here and now, so that versions are equal."""

    def give(name: str) -> Copy:
        copy = Copy(Path(shutil.copytree(EVIDENCE / name, tmp_path / "copy")))
        copy.write_document("environment", bundle.environment())
        copy.seal()
        return copy

    return give


def with_one_value_changed(copy: Copy) -> dict[str, Any]:
    """Claim one effect more in the last row, with good digests; give what the row says now."""
    results = copy.document("results")
    results["rows"][-1]["effects_summary"] += 1
    copy.write_document("results", results)
    copy.seal()
    row: dict[str, Any] = results["rows"][-1]
    return row


def test_there_is_something_pinned() -> None:
    """Nothing below is held of an empty folder."""
    assert PINNED


@each_pinned
def test_a_pinned_bundle_is_the_same(name: str) -> None:
    """Exit 0, a line a case and each of them `same`; the bundle keeps every byte."""
    before = {path: path.read_bytes() for path in (EVIDENCE / name).rglob("*") if path.is_file()}

    said = rerun(EVIDENCE / name)

    rows = json.loads((EVIDENCE / name / "data" / "results.json").read_bytes())["rows"]
    verdicts = [line.split()[:2] for line in said.stdout.splitlines()[3:]]
    assert said.exit_code == 0, said.output
    assert verdicts[: len(rows)] == [[row["case"], "same"] for row in rows]
    assert {path: path.read_bytes() for path in (EVIDENCE / name).rglob("*") if path.is_file()} == before


@each_pinned
def test_a_copy_with_one_value_changed_differs(name: str, frozen_here: Callable[[str], Copy]) -> None:
    """Exit 1, naming the field with both values; every other case is still the same."""
    copy = frozen_here(name)
    row = with_one_value_changed(copy)

    said = rerun(copy.folder, "--json")

    *others, changed = json.loads(said.stdout)["cases"]
    claimed = row["effects_summary"]
    assert said.exit_code == 1
    assert (changed["case"], changed["verdict"], changed["versions"]) == (row["case"], "differs", [])
    assert changed["fields"] == [{"name": "effects_summary", "frozen": claimed, "again": claimed - 1}]
    assert {case["verdict"] for case in others} == {"same"}


@pytest.mark.parametrize("version", ["duckdb", "python"])
@each_pinned
def test_under_another_version_a_changed_copy_is_not_comparable(
    name: str, version: str, frozen_here: Callable[[str], Copy]
) -> None:
    """Exit 1, naming the version that is another one; no more is concluded from what differs."""
    copy = frozen_here(name)
    row = with_one_value_changed(copy)
    environment = copy.document("environment")
    place = environment if version in environment else environment["packages"]
    now, place[version] = place[version], "0.1"
    copy.write_document("environment", environment)
    copy.seal()

    said = rerun(copy.folder)

    (line,) = [line for line in said.stdout.splitlines() if "not comparable" in line]
    claimed = str(row["effects_summary"])
    assert said.exit_code == 1
    assert line.split() == [
        row["case"],
        "not",
        "comparable",
        "effects_summary",
        claimed,
        str(row["effects_world"]),
    ]
    assert f"  {version}: 0.1 then, {now} now" in said.stdout.splitlines()
