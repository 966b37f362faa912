"""Are the pinned bundles what the index says, and what the program would freeze again?

Not here: playing those again that hold threads and processes, or take long
(`tests/real/test_pinned_reruns.py`, with all the others), and corrupting every bundle there is
(`tests/real/test_pinned_corruptions.py`); here it is those of the newest rules.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.lessons.freezable import freezable
from codeai_lab.prove import corrupt
from codeai_lab.prove.bundle import read_index
from codeai_lab.prove.verify import verify

EVIDENCE = Path(__file__).parents[1] / "evidence"
PINNED = read_index(EVIDENCE / "index.json")
# What may differ between two freezes: where it ran, the verifier of that day, digests over them.
VARIES = {"data/environment.json", "data/verify.py", "manifest-sha256.txt", "tagmanifest-sha256.txt"}


# Played with threads or processes, or for longer than a unit test may take: held in tests/real.
PLAYED_ELSEWHERE = ("retry-rerun/", "working-state/", "overload/", "libraries/", "contention/", "duplicates/")


def test_the_index_names_every_bundle_and_nothing_else() -> None:
    """A bundle that nobody holds a digest of is no pinned evidence."""
    assert sorted(PINNED) == sorted(
        path.parent.relative_to(EVIDENCE).as_posix() for path in EVIDENCE.glob("*/*/bagit.txt")
    )


def test_there_is_a_bundle_of_retry_effects_for_every_rule_set() -> None:
    """The lab's and one for each historical rule set."""
    assert {name.rsplit("-", 1)[1] for name in PINNED if name.startswith("retry-effects/")} == {
        "7a0d43b", "a1b562a", "1b3c7a2", "88d1291", "lab",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(PINNED))
def test_a_pinned_bundle_is_valid_and_complete(name: str) -> None:
    """The verifier accepts it with the digest that is kept outside it."""
    report = verify(EVIDENCE / name, PINNED[name])

    assert (report.valid, report.complete, list(report.findings)) == (True, "yes", [])


@pytest.mark.parametrize("name", sorted(name for name in PINNED if not name.startswith(PLAYED_ELSEWHERE)))
def test_a_pinned_bundle_is_what_would_be_frozen_again(name: str, tmp_path: Path) -> None:
    """Same lesson, same rules: the same bytes, apart from what names the place and the day's verifier."""
    protocol = json.loads((EVIDENCE / name / "data" / "protocol.json").read_bytes())
    notebook = EVIDENCE / name / "data" / "notebook.ipynb"
    freezable(protocol["lesson"]).freeze(
        protocol["revision"], tmp_path / "again", notebook if notebook.exists() else None, None
    )

    assert bytes_of(tmp_path / "again") == bytes_of(EVIDENCE / name)


def test_the_rerun_of_the_chapter_is_pinned_before_and_after_the_repair() -> None:
    """Eight cases each; the probe's effects are the chapter's six, and three under `lab`."""
    effects = {}
    for rules in ("1b3c7a2", "lab"):
        results = EVIDENCE / "retry-rerun" / f"2026-11-30-{rules}" / "data" / "results.json"
        rows = json.loads(results.read_bytes())["rows"]
        effects[rules] = (len(rows), rows[-1]["requests"], rows[-1]["effects_world"])

    assert effects == {"1b3c7a2": (8, 6, 6), "lab": (8, 6, 3)}


@pytest.mark.parametrize(
    "name", sorted(name for name in PINNED if name.startswith("retry-") and name.endswith("-lab"))
)
def test_every_corruption_of_a_pinned_bundle_is_named(name: str, tmp_path: Path) -> None:
    """Inside kinds by their own code, and no two alike; outside kinds by the outside digest alone."""
    seen: dict[frozenset[str], str] = {}
    applied = 0
    for kind in corrupt.KINDS:
        damaged = tmp_path / kind.name
        try:
            corrupt.corrupt(EVIDENCE / name, kind.name, damaged)
        except CorruptionDoesNotApplyError:
            continue
        applied += 1
        alone, expected = verify(damaged), verify(damaged, PINNED[name])
        assert not expected.valid
        assert alone.valid == kind.outside, kind.name
        if not kind.outside:
            codes = frozenset(finding.code for finding in alone.findings)
            assert kind.code in codes, kind.name
            assert codes not in seen, f"{kind.name} and {seen.get(codes)} are found alike"
            seen[codes] = kind.name
    assert applied > 20


def bytes_of(bundle: Path) -> dict[str, bytes]:
    return {
        name: path.read_bytes()
        for path in bundle.rglob("*")
        if path.is_file() and (name := path.relative_to(bundle).as_posix()) not in VARIES
    }
