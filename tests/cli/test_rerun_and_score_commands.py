"""Do `rerun` and `score` say what they found, to people and to programs, and leave with the right status?"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codeai_lab import cli as command_line
from codeai_lab.cli import rerunning
from codeai_lab.lessons import RETRY_EFFECTS
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.prove import hash_only, scoring
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.copies import Copy
from codeai_lab.prove.corrupt import KINDS
from codeai_lab.prove.strangers import Answer
from codeai_lab.run.revisions import LAB, REVISIONS


class _Main(command_line.click.Command):
    """`main` itself, so that its handling of errors is tested too."""

    def __init__(self) -> None:
        super().__init__("main", callback=command_line.main)


def run(*arguments: object) -> Result:
    """Run a command in this process, as a shell would see it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["codeai-lab", *map(str, arguments)])
        for command in (rerunning.rerun, rerunning.score):
            patched.setitem(command_line.cli.commands, str(command.name), command)
        return CliRunner().invoke(_Main(), [])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("evidence") / "bundle"
    freeze_lesson(RETRY_EFFECTS, LAB, to)
    return to


@pytest.fixture
def changed(bundle: Path, tmp_path: Path) -> Copy:
    """Give a copy whose summary claims two effects of the first case, with good digests."""
    shutil.copytree(bundle, tmp_path / "changed")
    copy = Copy(tmp_path / "changed")
    results = copy.document("results")
    results["rows"][0]["effects_summary"] = 2
    copy.write_document("results", results)
    copy.seal()
    return copy


def test_a_rerun_that_is_the_same_exits_0(bundle: Path) -> None:
    """RC1: for people a line a case and a word about the ledger's bytes; for programs one object."""
    people, programs = run("rerun", bundle), run("rerun", bundle, "--json")

    assert (people.exit_code, programs.exit_code) == (0, 0)
    assert [line.split() for line in people.stdout.splitlines()[3:-1]] == [
        [case.name, "same"] for case in RETRY_EFFECTS.cases
    ]
    assert "The ledger's lines are the same bytes" in people.stdout
    assert json.loads(programs.stdout)["same"] is True


def test_a_rerun_that_differs_exits_1_and_names_the_field(changed: Copy) -> None:
    """RC1: the field with both values, and on standard error what the verifier says of the row."""
    people, programs = run("rerun", changed.folder), run("rerun", changed.folder, "--json")

    assert (people.exit_code, programs.exit_code) == (1, 1)
    (line,) = [line for line in people.stdout.splitlines() if "differs" in line and "A-exact" in line]
    assert line.split() == ["A-exact-duplicate", "differs", "effects_summary", "2", "1"]
    assert "row-effects-summary" in people.stderr
    assert json.loads(programs.stdout)["cases"][0]["fields"][0]["name"] == "effects_summary"


def test_a_rerun_that_is_not_comparable_exits_1_and_names_the_version(changed: Copy) -> None:
    """RC1, RC3: with both versions, and what a forged name holds cannot move a cursor."""
    environment = changed.document("environment")
    environment["packages"] |= {"duckdb": "1.4.0", "rfc8785": "\x1b[2J\u202e1"}
    changed.write_document("environment", environment)
    changed.seal()

    result = run("rerun", changed.folder)

    assert result.exit_code == 1
    assert "not comparable" in result.stdout
    assert "duckdb: 1.4.0 then, " in result.stdout
    assert "rfc8785: \\x1b[2J\\u202e1 then, " in result.stdout
    assert "\x1b" not in result.stdout


def test_what_cannot_be_played_again_exits_2_with_one_sentence(bundle: Path, tmp_path: Path) -> None:
    """No bundle, a damaged one, a script that is not there."""
    shutil.copytree(bundle, tmp_path / "damaged")
    (tmp_path / "damaged" / "data" / "environment.json").unlink()

    for arguments in (
        ("rerun", tmp_path / "no"),
        ("rerun", tmp_path / "damaged"),
        ("score", tmp_path / "no.py"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert (result.stdout, "Traceback" in result.output) == ("", False)
        assert [line[:12] for line in result.stderr.splitlines() if line] == ["codeai-lab: "]
        assert str(tmp_path.parent) not in result.output


def two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = tuple(kind for kind in KINDS if kind.name in ("claim-two-effects", "extra-file"))
    monkeypatch.setattr(scoring, "KINDS", kinds)


def test_a_score_is_printed_by_kind_and_in_sums(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RC2: a verifier that misses exits 1; the pinned bundles are what it is put to, where there are some."""
    two_kinds(monkeypatch)
    pinned = {"retry-effects/x": (bundle, digest_of(bundle))}
    monkeypatch.setattr(rerunning, "pinned_bundles", lambda: pinned)

    people = run("score", hash_only.__file__)
    programs = run("score", hash_only.__file__, "--json")

    assert (people.exit_code, programs.exit_code) == (1, 1)
    assert [line.split() for line in people.stdout.splitlines() if "claim-two-effects" in line] == [
        ["claim-two-effects", "1"]
    ]
    assert (
        "Of 2 corruptions: 1 named; 0 refused, not named; 1 missed; 0 failed; 0 timed out." in people.stdout
    )
    assert "Of 2 trials with good bundles: 2 accepted, 0 not." in people.stdout
    said = json.loads(programs.stdout)
    assert (said["verifier"], said["named"], said["missed"], said["wrongly_refused"]) == (
        "hash_only.py", 1, 1, 0,
    )  # fmt: skip


def test_without_pinned_bundles_fresh_ones_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry-effects under every rule set; one that accepts the good and names the rest exits 0."""
    two_kinds(monkeypatch)
    monkeypatch.setattr(rerunning, "pinned_bundles", dict)
    named = b'{"findings": [{"code": "row-effects-summary"}, {"code": "unlisted-file"}]}'

    def knowing(command: list[str], **_: object) -> Answer:
        folder = Path(command[4]) / "data"
        bad = (folder / "extra.txt").exists() or '"effects_summary": 2' in _first_row(folder)
        return Answer(status=int(bad), said=named)

    monkeypatch.setattr(scoring, "ask", knowing)
    result = run("score", hash_only.__file__, "--json")

    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert {trial["bundle"] for trial in said["trials"]} == {f"retry-effects/{name}" for name in REVISIONS}
    assert (said["good"], said["accepted"], said["corrupted"], said["named"]) == (10, 10, 10, 10)


def _first_row(folder: Path) -> str:
    return json.dumps(json.loads((folder / "results.json").read_bytes())["rows"][0])


def test_a_verifier_that_refuses_the_good_is_told_which(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC2: whoever refuses everything misses nothing, and scores badly all the same."""
    two_kinds(monkeypatch)
    monkeypatch.setattr(rerunning, "pinned_bundles", lambda: {"retry-effects/x": (bundle, "a" * 64)})
    monkeypatch.setattr(scoring, "ask", lambda *_, **__: Answer(status=1))

    result = run("score", hash_only.__file__)

    assert result.exit_code == 1
    assert "Of 2 trials with good bundles: 0 accepted, 2 not." in result.stdout
    assert result.stdout.count(": wrongly refused") == 2
