"""Does each command do its job, and say in one sentence why it cannot?"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codeai_lab import ActionRequest, Authority, DuckDBLedger, LineAdapter, MarkerWorld, Runtime
from codeai_lab import cli as command_line
from codeai_lab.lessons import RETRY_EFFECTS
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.prove import corrupt, verify
from codeai_lab.run.revisions import REVISIONS

CASES = [
    "A-exact-duplicate", "B-other-operation", "B-no-authority", "C-call-conflict", "D-crash-gap",
    "D-fresh-key", "E-drift",
]  # fmt: skip
ROW = {
    "case", "revision", "requests", "statuses", "reused_from", "raised", "effects_ledger", "effects_world",
    "effects_summary", "labels", "event_kinds",
}  # fmt: skip


def run(*arguments: object) -> Result:
    """Run a command in this process, as a shell would see it."""
    runner = CliRunner()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["codeai-lab", *map(str, arguments)])
        return runner.invoke(_Main(), [])


class _Main(command_line.click.Command):
    """`main` itself, so that its handling of errors is tested too."""

    def __init__(self) -> None:
        super().__init__("main", callback=command_line.main)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("evidence") / "bundle"
    freeze_lesson(RETRY_EFFECTS, REVISIONS["lab"], to)
    return to


def test_replay_prints_one_object_with_a_row_for_each_case_and_rule_set() -> None:
    """Without --revision every rule set is played, and `revision` is null."""
    result = run("replay", "retry-effects", "--json")

    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert (said["lesson"], said["revision"]) == ("retry-effects", None)
    assert [(row["revision"], row["case"]) for row in said["rows"]] == [
        (name, case) for name in REVISIONS for case in CASES
    ]
    assert all(row.keys() >= ROW for row in said["rows"])


def test_replay_plays_the_named_cases_in_the_lessons_order() -> None:
    """--case may be given again; the order is the lesson's, not the caller's."""
    result = run(
        "replay", "retry-effects", "--case", "E-drift", "--case", "D-crash-gap", "--revision", "lab", "--json"
    )

    said = json.loads(result.stdout)
    assert said["revision"] == "lab"
    assert [row["case"] for row in said["rows"]] == ["D-crash-gap", "E-drift"]


def test_a_replay_for_people_shows_the_three_witnesses() -> None:
    """The table names case, answers, the ledger's bounds and the labels."""
    result = run("replay", "retry-effects", "--case", "D-fresh-key", "--revision", "lab")

    assert result.exit_code == 0
    assert "0 to 2" in result.stdout
    assert "unknown, duplicate" in result.stdout


def test_freeze_then_verify_then_expect(tmp_path: Path) -> None:
    """What freeze writes, verify accepts; with the digest that freeze printed it is complete."""
    frozen = run("freeze", "retry-effects", "--to", tmp_path / "b", "--revision", "1b3c7a2")
    digest = frozen.stdout.rsplit(": ", 1)[1].strip()

    plain = json.loads(run("verify", tmp_path / "b", "--json").stdout)
    assert plain == {"valid": True, "complete": "not checked", "findings": []}
    assert json.loads(run("verify", tmp_path / "b", "--expect", digest, "--json").stdout)["complete"] == "yes"


def test_another_digest_is_a_finding(bundle: Path) -> None:
    """A wrong outside digest exits 1 and says that the bundle is not complete."""
    result = run("verify", bundle, "--expect", "0" * 64, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["complete"] == "no"


def test_the_kinds_of_corruption_are_listed_one_a_line_name_first() -> None:
    """`corrupt --list` has no heading; `--outside` lists the others."""
    inside = run("corrupt", "--list").stdout.splitlines()
    outside = run("corrupt", "--list", "--outside").stdout.splitlines()

    assert [line.split()[0] for line in inside] == [kind.name for kind in corrupt.KINDS if not kind.outside]
    assert [line.split()[0] for line in outside] == [kind.name for kind in corrupt.KINDS if kind.outside]
    assert outside


def test_a_corruption_makes_a_copy_that_verify_refuses(bundle: Path, tmp_path: Path) -> None:
    """The bundle itself stays valid."""
    made = run("corrupt", bundle, "rewrite-failed", "--to", tmp_path / "damaged")

    assert made.exit_code == 0
    assert run("verify", tmp_path / "damaged").exit_code == 1
    assert verify.verify(bundle).valid


def test_a_kind_that_does_not_apply_cannot_run(tmp_path: Path) -> None:
    """Under 7a0d43b nothing is refused, so there is no refusal to drop: exit 2 and one sentence."""
    freeze_lesson(RETRY_EFFECTS, REVISIONS["7a0d43b"], tmp_path / "old")

    result = run("corrupt", tmp_path / "old", "drop-refusal", "--to", tmp_path / "damaged")

    assert result.exit_code == 2
    assert not (tmp_path / "damaged").exists()
    assert one_sentence(result)


def test_inspect_shows_status_and_effect_state_apart(tmp_path: Path) -> None:
    """A failure after the start is failed and unknown; --unknown keeps only such actions."""
    path = tmp_path / "lab.duckdb"
    with DuckDBLedger(path) as ledger:
        runtime, world = Runtime(ledger), MarkerWorld(tmp_path / "world")
        for name, after in (("a1", None), ("a2", lambda: 1 / 0)):
            request = ActionRequest(action_id=name, idempotency_key=name, capability="c", instruction="i")
            runtime.execute_action(
                request, authority=Authority.of("c"), adapter=LineAdapter(world, after=after)
            )
        found = json.loads(run("inspect", path, "--json").stdout)
        unknown = json.loads(run("inspect", path, "--unknown", "--json").stdout)

    assert [(one["status"], one["effect_state"], one["next_operation"]) for one in found["actions"]] == [
        ("succeeded", "observed", "none"),
        ("failed", "unknown", "reconcile_effect"),
    ]
    assert found["unknown"] == 1
    assert [one["action_id"] for one in unknown["actions"]] == ["a2"]


def test_a_damaged_line_is_a_finding(tmp_path: Path) -> None:
    """`inspect` names the line and exits 1."""
    path = tmp_path / "lab.duckdb"
    with DuckDBLedger(path) as ledger:
        request = ActionRequest(action_id="a", idempotency_key="k", capability="c", instruction="i")
        Runtime(ledger).execute_action(
            request, authority=Authority.of("c"), adapter=LineAdapter(MarkerWorld(tmp_path / "w"))
        )
        journal = ledger.journal
    journal.write_bytes(journal.read_bytes().replace(b'"instruction":"i"', b'"instruction":"j"'))

    result = run("inspect", path)

    assert result.exit_code == 1
    assert "Line 2 of the journal file, event 1, " in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "no-such-lesson"),
        ("replay", "retry-effects", "--case", "no-such-case"),
        ("replay", "retry-effects", "--revision", "no-such-rules"),
        ("replay",),
        ("freeze", "retry-effects"),
        ("freeze", "retry-effects", "--to", "{full}"),
        ("freeze", "retry-effects", "--to", "{file}"),
        ("freeze", "retry-effects", "--to", "{new}", "--notebook", "{missing}"),
        ("verify", "{missing}"),
        ("verify", "{file}"),
        ("verify", "{full}"),
        ("verify", "{bundle}", "--expect", "not-a-digest"),
        ("verify", "{bundle}", "--notebook"),
        ("corrupt",),
        ("corrupt", "{bundle}"),
        ("corrupt", "--outside"),
        ("corrupt", "{bundle}", "extra-file", "--list"),
        ("corrupt", "--list", "--to", "{new}"),
        ("corrupt", "{bundle}", "extra-file", "--to", "{new}", "--outside"),
        ("sync", "{missing}"),
        ("sync", "--check", "{full}"),
        ("corrupt", "{bundle}", "no-such-kind", "--to", "{new}"),
        ("corrupt", "{bundle}", "extra-file", "--to", "{full}"),
        ("corrupt", "{missing}", "extra-file", "--to", "{new}"),
        ("inspect", "{missing}"),
        ("inspect", "{file}"),
        ("inspect", "{full}"),
        ("restore", "{missing}"),
        ("notebooks", "{file}"),
        ("no-such-command",),
        ("--no-such-option",),
    ],
    ids=" ".join,
)
def test_what_cannot_run_exits_2_with_one_sentence(
    bundle: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """No traceback, no path of this machine, and nothing that was there is changed."""
    file, full = tmp_path / "a-file", tmp_path / "full"
    file.write_text("something else")
    full.mkdir()
    (full / "kept.txt").write_text("kept")
    names = {
        "bundle": bundle,
        "missing": tmp_path / "missing",
        "file": file,
        "full": full,
        "new": tmp_path / "new",
    }

    result = run(*(argument.format(**names) for argument in arguments))

    assert result.exit_code == 2
    assert one_sentence(result)
    assert str(tmp_path.parent) not in result.output
    assert file.read_text() == "something else"
    assert [path.name for path in full.iterdir()] == ["kept.txt"]
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "missing").exists()


def test_what_was_not_foreseen_is_still_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours shows no traceback unless it is asked for."""
    monkeypatch.setattr("codeai_lab.lessons.lesson_named", lambda _: 1 / 0)

    result = run("replay", "retry-effects")

    assert result.exit_code == 2
    assert "ZeroDivisionError" in result.stderr
    assert one_sentence(result)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            ModuleNotFoundError("no", name="rfc8785"),
            "rfc8785 is not installed; run make demo, or pip install .",
        ),
        (ModuleNotFoundError("no", name="codeai_lab.lost"), "This was not foreseen (ModuleNotFoundError)."),
        (MemoryError(), "There is not enough memory for this; ask for fewer clients, runs or cases."),
    ],
)
def test_what_the_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    """A missing module and too little memory are foreseen; a module of ours that is missing is a bug."""

    def lacking(_: str) -> None:
        raise error

    monkeypatch.setattr("codeai_lab.lessons.lesson_named", lacking)
    result = run("replay", "retry-effects")

    assert result.exit_code == 2
    assert says in result.stderr
    assert one_sentence(result)


def test_without_click_there_is_still_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first module that a bare interpreter lacks is named, with what to do, and no traceback."""
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(command_line.__file__)))

    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.err == "codeai-lab: click is not installed; run make demo, or pip install .\n"
    assert said.out == ""


def test_ctrl_c_says_so_and_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt is not an error of the program."""

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("codeai_lab.lessons.lesson_named", interrupted)

    result = run("replay", "retry-effects")

    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert "Traceback" not in result.output


def test_the_module_and_the_script_are_the_same_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m codeai_lab --version` answers."""
    monkeypatch.setattr(sys, "argv", ["codeai_lab", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("codeai_lab", run_name="__main__")

    assert not ended.value.code
    assert capsys.readouterr().out.startswith("codeai-lab, version ")


def one_sentence(result: Result) -> bool:
    """Say whether the output holds one complaint and no traceback."""
    complaints = [line for line in result.stderr.splitlines() if line.startswith(("codeai-lab: ", "Error: "))]
    return len(complaints) == 1 and "Traceback" not in result.output and result.stdout == ""
