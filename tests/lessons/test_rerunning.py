"""Does playing a frozen protocol again say what differs, and refuse what it cannot judge?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.errors import BundleError
from codeai_lab.lessons import LESSONS, RETRY_EFFECTS, freezable
from codeai_lab.lessons.cases import Ask, Case, Expected, Lesson
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.lessons.playing import Table
from codeai_lab.lessons.rerunning import rerun
from codeai_lab.prove.compare import Verdict
from codeai_lab.prove.copies import Copy
from codeai_lab.prove.corrupt import corrupt
from codeai_lab.prove.verify import verify
from codeai_lab.run.revisions import LAB, REVISIONS, Revision

Edit = Callable[[dict[str, Any]], None]
CASES = [case.name for case in RETRY_EFFECTS.cases]


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Freeze retry-effects under `lab`, once."""
    to = tmp_path_factory.mktemp("evidence") / "bundle"
    freeze_lesson(RETRY_EFFECTS, LAB, to)
    return to


@pytest.fixture
def copy(frozen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """Give a copy of the frozen bundle that may be changed.

    Played again it gives the frozen bytes, which a test of its own holds; so here it is not played again.
    """

    def as_before(lesson: Lesson, rules: Revision, to: Path, **_: object) -> None:
        assert (lesson, rules) == (RETRY_EFFECTS, LAB)
        shutil.copytree(frozen, to)

    monkeypatch.setattr(freezable, "freeze_lesson", as_before)
    shutil.copytree(frozen, tmp_path / "copy")
    return Copy(tmp_path / "copy")


def edited(copy: Copy, **edits: Edit) -> Path:
    """Change documents of a copy and make every digest in it good again."""
    for name, edit in edits.items():
        document = copy.document(name)
        edit(document)
        copy.write_document(name, document)
    copy.seal()
    return copy.folder


def two_effects(results: dict[str, Any]) -> None:
    results["rows"][0]["effects_summary"] = 2


@pytest.mark.parametrize("rules", REVISIONS)
def test_a_fresh_bundle_is_the_same_and_so_are_its_bytes(rules: str, tmp_path: Path) -> None:
    """Same protocol, same program: every field, and every line of the ledger."""
    freeze_lesson(RETRY_EFFECTS, REVISIONS[rules], tmp_path / "bundle")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    outcome = rerun(tmp_path / "bundle")

    assert outcome.same
    assert [(one.case, str(one.verdict)) for one in outcome.cases] == [(name, "same") for name in CASES]
    assert outcome.ledger == dict.fromkeys(CASES, True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_one_changed_value_differs_by_field(copy: Copy) -> None:
    """RE1: the bundle contradicts its own ledger; that is said beside, and does not hide what differs."""
    outcome = rerun(edited(copy, results=two_effects))

    assert not outcome.same
    changed, *others = outcome.cases
    assert changed.verdict is Verdict.DIFFERS
    assert [(one.name, one.frozen, one.again) for one in changed.fields] == [("effects_summary", 2, 1)]
    assert {one.verdict for one in others} == {Verdict.SAME}
    assert [finding.code for finding in outcome.findings] == ["row-effects-summary"]


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("duckdb", lambda environment: environment["packages"].update(duckdb="1.4.0")),
        ("python", lambda environment: environment.update(python="3.10.1")),
        ("platform", lambda environment: environment.update(platform="Plan 9")),
    ],
)
def test_with_another_version_it_is_not_comparable(copy: Copy, name: str, edit: Edit) -> None:
    """By name, and only the case whose fields differ; the others are the same all the same."""
    outcome = rerun(edited(copy, results=two_effects, environment=edit))

    assert not outcome.same
    changed, *others = outcome.cases
    assert changed.verdict is Verdict.NOT_COMPARABLE
    assert [version.name for version in changed.versions] == [name]
    assert {one.verdict for one in others} == {Verdict.SAME}


def test_another_version_alone_is_noted_and_changes_no_verdict(copy: Copy) -> None:
    """Fields equal: same, whatever wrote them."""
    outcome = rerun(edited(copy, environment=lambda one: one["packages"].update(duckdb="1.4.0")))

    assert outcome.same
    assert {one.versions[0].name for one in outcome.cases} == {"duckdb"}


def test_a_forgery_that_the_verifier_accepts_is_found(frozen: Path, tmp_path: Path) -> None:
    """A story that fits in every way, and not what these rules give."""
    corrupt(frozen, "forge-completion", tmp_path / "forged")

    outcome = rerun(tmp_path / "forged")

    assert outcome.findings == ()
    (forged,) = [one for one in outcome.cases if one.verdict is not Verdict.SAME]
    assert forged.verdict is Verdict.DIFFERS
    assert [one.name for one in forged.fields] == ["effects_ledger", "labels", "statuses"]
    assert outcome.ledger["A-exact-duplicate"] is True
    assert outcome.ledger[forged.case] is False


def test_an_edited_expectation_is_not_the_same(copy: Copy) -> None:
    """RE1: every field agrees with the run of now, and the bundle contradicts itself all the same."""

    def expect_two(protocol: dict[str, Any]) -> None:
        protocol["cases"][0]["expected"]["effects_world"] = 2

    outcome = rerun(edited(copy, protocol=expect_two))

    assert {one.verdict for one in outcome.cases} == {Verdict.SAME}
    assert [finding.code for finding in outcome.findings] == ["expected-effects-world"]
    assert not outcome.same


@pytest.mark.parametrize(
    "kind",
    ["missing-file", "cut-tail-old-digests", "cut-tail-new-digests", "edit-clock-new-digests", "swap-marker"],
)
def test_what_is_wrong_elsewhere_stops_a_rerun(
    frozen: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RE1: files, digests, chain, events and world; one sentence with the finding, and nothing is played."""
    corrupt(frozen, kind, tmp_path / "damaged")
    monkeypatch.setattr(freezable, "freeze_lesson", None)

    with pytest.raises(BundleError) as refused:
        rerun(tmp_path / "damaged")

    said = str(refused.value).removeprefix("damaged is not valid and is not played again: ")
    codes = [finding.code for finding in verify(tmp_path / "damaged").findings]
    assert said.split(",")[0] == next(code for code in codes if not code.startswith(("row-", "expected-")))


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    """One sentence for a folder that is none, and for none at all."""
    with pytest.raises(BundleError, match="is not a bundle"):
        rerun(tmp_path)
    with pytest.raises(BundleError, match="no such folder"):
        rerun(tmp_path / "missing")


def test_cases_that_are_not_the_lessons_are_not_played(frozen: Path, tmp_path: Path) -> None:
    """RE2: a bundle that lost a case everywhere at once is valid, and is not what this lesson plans."""
    corrupt(frozen, "truncate-consistently", tmp_path / "short")

    with pytest.raises(BundleError) as refused:
        rerun(tmp_path / "short")

    assert str(refused.value) == (
        "short cannot be played again: the cases differ in its protocol and in the lesson retry-effects here."
    )


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda protocol: protocol.update(seed=7), "the seed differs in"),
        (lambda protocol: protocol["cases"][0].update(marked=["threads"]), "the marked of the case A-exact"),
    ],
)
def test_another_plan_is_not_played(copy: Copy, edit: Edit, why: str) -> None:
    """RE2: one sentence that names the first thing that differs."""
    with pytest.raises(BundleError, match=f"^copy cannot be played again: {why}"):
        rerun(edited(copy, protocol=edit))


def test_a_lesson_that_is_not_here_is_not_played(frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence."""
    monkeypatch.delitem(LESSONS, RETRY_EFFECTS.name)

    with pytest.raises(
        BundleError, match=r"^bundle cannot be played again: its lesson or rules are not known"
    ):
        rerun(frozen)


def test_other_words_in_the_protocol_are_no_other_plan(copy: Copy) -> None:
    """RE2: a question may be put in another way."""
    assert rerun(edited(copy, protocol=lambda one: one["cases"][0].update(question="And twice?"))).same


def backwards(table: Table, case: Case) -> None:
    """Ask the last first, as a thread might that was quicker."""
    for ask in reversed(case.asks):
        table.ask(ask)


def test_a_marked_case_may_come_in_another_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RE3: it is the same; nothing is promised of its bytes, nor of those behind it in the chain."""

    def racing(script: Any) -> Lesson:
        first, second = Ask(id="p1", key="kp"), Ask(id="q1", key="kq", permitted=False)
        gives = Expected(statuses=("succeeded", "denied"), effects_world=1)
        race = Case(
            name="race",
            question="?",
            asks=(first, second),
            otherwise=gives,
            marked=("threads",),
            script=script,
        )
        once = Expected(statuses=("succeeded",), effects_world=1)
        plain = [
            Case(name=name, question="?", asks=(Ask(id=name, key=name),), otherwise=once) for name in "ab"
        ]
        return Lesson(name="racing", chapter="", question="?", cases=(plain[0], race, plain[1]))

    monkeypatch.setitem(LESSONS, "racing", racing(backwards))
    freeze_lesson(racing(None), LAB, tmp_path / "bundle")

    outcome = rerun(tmp_path / "bundle")

    assert outcome.same
    assert outcome.ledger == {"a": True, "race": None, "b": None}


def test_progress_counts_the_cases(frozen: Path) -> None:
    """Each case is told of before it is played."""
    told: list[tuple[str, int, int]] = []
    rerun(frozen, lambda *each: told.append(each))

    assert told == [(name, place, len(CASES)) for place, name in enumerate(CASES)]


def test_an_outcome_is_json(copy: Copy) -> None:
    """What programs read: the verdicts, whether the ledger's bytes are the same, the findings."""
    said = json.loads(json.dumps(rerun(edited(copy, results=two_effects)).as_json()))

    assert (said["lesson"], said["revision"], said["same"]) == ("retry-effects", "lab", False)
    assert said["cases"][0] == {
        "case": "A-exact-duplicate",
        "verdict": "differs",
        "fields": [{"name": "effects_summary", "frozen": 2, "again": 1}],
        "versions": [],
        "same_ledger_bytes": True,
    }
    assert [finding["code"] for finding in said["findings"]] == ["row-effects-summary"]
