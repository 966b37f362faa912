"""Does `codeai-lab rerun` say of each pinned bundle that it is the same, and of a changed copy what differs?

Each bundle's protocol is played for real, threads and processes included, one time for all that is asked
here; the command is the one that a reader types.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from frozen_again import frozen_again

from codeai_lab import cli
from codeai_lab.lessons import rerunning
from codeai_lab.lessons.freezable import Freezable, freezable
from codeai_lab.prove.compare import case_of
from codeai_lab.prove.copies import Copy

EVIDENCE = Path(__file__).parents[2] / "evidence"
PINNED = sorted(path.parent.relative_to(EVIDENCE).as_posix() for path in EVIDENCE.glob("*/*/bagit.txt"))
each_pinned = pytest.mark.parametrize("name", PINNED)


class _Main(click.Command):
    """`main` itself, with its handling of errors and its exit status."""

    def __init__(self) -> None:
        super().__init__("main", callback=cli.main)


def rerun(folder: Path, *options: str) -> Result:
    """Run the command on a bundle; what it plays is played once for all."""

    def as_played(lesson: str) -> Freezable:
        def copy(rules: str, to: Path, notebook: Path | None, progress: object) -> str:
            shutil.copytree(frozen_again(lesson, rules)[0], to)
            return ""

        return replace(freezable(lesson), freeze=copy)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rerunning, "freezable", as_played)
        patched.setattr(sys, "argv", ["codeai-lab", "rerun", str(folder), *options])
        return CliRunner().invoke(_Main(), [])


@pytest.fixture
def frozen_here(tmp_path: Path) -> Callable[[str], Copy]:
    """Give a copy of a pinned bundle that says it was frozen here and now, so that versions are equal."""

    def give(name: str) -> Copy:
        copy = Copy(Path(shutil.copytree(EVIDENCE / name, tmp_path / "copy")))
        protocol = copy.document("protocol")
        again, _ = frozen_again(protocol["lesson"], protocol["revision"])
        copy.write_document("environment", json.loads((again / "data" / "environment.json").read_bytes()))
        copy.seal()
        return copy

    return give


def with_one_value_changed(copy: Copy) -> tuple[str, dict[str, Any]]:
    """Claim one more of something in the last row, with good digests; give the case and what differs."""
    results = copy.document("results")
    row: dict[str, Any] = results["rows"][-1]
    name, value = next(
        (name, value)
        for name, value in row.items()
        if name in ("effects_summary", "receipts_after", "repeated_calls")
        or name.endswith("_mean")
        or (isinstance(value, dict) and "sampled" in value)
    )
    row[name] = {**value, "sampled": value["sampled"] + 1} if isinstance(value, dict) else value + 1
    copy.write_document("results", results)
    copy.seal()
    return case_of(row), {"name": name, "frozen": row[name], "again": value}


def test_there_is_something_pinned() -> None:
    """Nothing below is held of an empty folder."""
    assert PINNED


@each_pinned
def test_a_pinned_bundle_is_the_same(name: str) -> None:
    """Exit 0, every case is `same`, in the order of the rows; the bundle keeps every byte."""
    before = {path: path.read_bytes() for path in (EVIDENCE / name).rglob("*") if path.is_file()}

    said, told = rerun(EVIDENCE / name, "--json"), rerun(EVIDENCE / name)

    rows = json.loads((EVIDENCE / name / "data" / "results.json").read_bytes())["rows"]
    cases = json.loads(said.stdout)["cases"]
    assert said.exit_code == told.exit_code == 0, told.output
    assert [(case["case"], case["verdict"]) for case in cases] == [(case_of(row), "same") for row in rows]
    assert all(f" {case['case']} " in told.stdout for case in cases)
    assert {path: path.read_bytes() for path in (EVIDENCE / name).rglob("*") if path.is_file()} == before


@each_pinned
def test_a_copy_with_one_value_changed_differs(name: str, frozen_here: Callable[[str], Copy]) -> None:
    """Exit 1, naming the field with both values; every other case is still the same."""
    copy = frozen_here(name)
    case, difference = with_one_value_changed(copy)

    said = rerun(copy.folder, "--json")

    *others, changed = json.loads(said.stdout)["cases"]
    assert said.exit_code == 1
    assert (changed["case"], changed["verdict"], changed["versions"]) == (case, "differs", [])
    assert changed["fields"] == [difference]
    assert {other["verdict"] for other in others} <= {"same"}


@pytest.mark.parametrize("version", ["duckdb", "python"])
@each_pinned
def test_under_another_version_a_changed_copy_is_not_comparable(
    name: str, version: str, frozen_here: Callable[[str], Copy]
) -> None:
    """Exit 1, naming the version that is another one; no more is concluded from what differs."""
    copy = frozen_here(name)
    case, difference = with_one_value_changed(copy)
    environment = copy.document("environment")
    place = environment if version in environment else environment["packages"]
    now, place[version] = place[version], "0.1"
    copy.write_document("environment", environment)
    copy.seal()

    said, told = rerun(copy.folder, "--json"), rerun(copy.folder)

    changed = json.loads(said.stdout)["cases"][-1]
    assert said.exit_code == told.exit_code == 1
    assert (changed["case"], changed["verdict"]) == (case, "not comparable")
    assert changed["fields"] == [difference]
    assert changed["versions"] == [{"name": version, "frozen": "0.1", "again": now}]
    assert "not comparable" in told.stdout
    assert f"  {version}: 0.1 then, {now} now" in told.stdout.splitlines()
