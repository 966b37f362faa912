"""Is every corruption found, named by its own code, and told from every other?"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.errors import BundleError, CorruptionDoesNotApplyError
from codeai_lab.prove import bundle, verify
from codeai_lab.prove.copies import Copy
from codeai_lab.prove.corrupt import KINDS, corrupt
from codeai_lab.prove.forged_calls import FORGED_CALLS
from codeai_lab.prove.forged_records import FORGED_RECORDS

Good = Callable[..., Path]
INSIDE = [kind for kind in KINDS if not kind.outside]
OUTSIDE = [kind for kind in KINDS if kind.outside]
ELSEWHERE = (*FORGED_CALLS, *FORGED_RECORDS)  # test_verify_work, _film and _samples
OF_ACTIONS = [kind for kind in KINDS if kind not in ELSEWHERE]


def codes(folder: Path, expect: str | None = None) -> frozenset[str]:
    return frozenset(finding.code for finding in verify.verify(folder, expect).findings)


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("rarer", [False, True])
def test_every_kind_is_named_and_told_from_every_other(
    kept: Good, damaged: Good, revision: str, rarer: bool
) -> None:
    """CO1, CO2: the source keeps every byte; each inside kind is refused by its code, no two alike."""
    source = kept(revision, rarer=rarer)
    before, found = bytes_of(source), defaultdict(list)
    for kind in INSIDE:
        try:
            said = codes(damaged(kind.name, revision, rarer=rarer))
        except CorruptionDoesNotApplyError:
            continue
        assert kind.code in said, kind.name
        found[said].append(kind.name)

    assert [names for names in found.values() if len(names) > 1] == []
    assert bytes_of(source) == before


@pytest.mark.parametrize("kind", OUTSIDE, ids=lambda kind: kind.name)
def test_an_outside_kind_is_caught_by_the_outside_digest_alone(
    kept: Good, damaged: Good, revision: str, kind: object
) -> None:
    """What is consistent in every way is valid by itself, and its completeness is said to be open."""
    source = kept(revision)
    forged = damaged(kind.name, revision)  # type: ignore[attr-defined]
    alone = verify.verify(forged)

    assert (alone.valid, alone.complete, alone.findings) == (True, "not checked", ())
    assert codes(forged, bundle.digest_of(source)) == {"outside-digest-differs"}
    assert bytes_of(forged)["data/results.json"] != bytes_of(source)["data/results.json"]


@pytest.mark.parametrize("kind", OF_ACTIONS, ids=lambda kind: kind.name)
def test_every_kind_applies_to_a_bundle_of_the_lab(damaged: Good, kind: object) -> None:
    """The seven cases under the lab's rules hold all that is damaged, but for what works of calls leave."""
    assert damaged(kind.name, "lab").is_dir()  # type: ignore[attr-defined]


def test_the_chapters_corruptions_are_there() -> None:
    """The five of the pinned rerun, the claim of two effects and the traps of frozen evidence are named."""
    names = {kind.name for kind in INSIDE}

    assert names >= {
        "alter-provenance", "inflate-receipt", "drop-refusal", "drop-request", "rewrite-failed",
        "claim-two-effects", "cut-tail-old-digests", "cut-tail-new-digests", "extra-file", "missing-file",
        "edit-payload-new-digests", "reorder-events", "add-receipt", "duplicate-json-key", "leave-bundle",
        "absolute-path", "link", "crlf", "unicode-collision", "case-collision",
    }  # fmt: skip
    assert {kind.name for kind in OUTSIDE} == {"forge-completion", "truncate-consistently"}


def test_names_are_unique_and_summaries_are_one_line() -> None:
    """A list of the kinds can be printed one a line."""
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all(kind.summary and "\n" not in kind.summary for kind in KINDS)


def test_writing_a_ledger_back_changes_no_byte(good: Good, revision: str) -> None:
    """CP1: parsing and encoding events again gives the lines that were there."""
    copy = Copy(good(revision, rarer=True))
    before = copy.ledger.read_bytes()
    copy.write_events(copy.events())

    assert copy.ledger.read_bytes() == before


def test_what_does_not_apply_leaves_nothing_behind(kept: Good, tmp_path: Path) -> None:
    """CO3: the oldest rules never refuse, so there is no refusal to drop; one sentence says so."""
    with pytest.raises(CorruptionDoesNotApplyError, match="drop-refusal does not apply") as refused:
        corrupt(kept("7a0d43b"), "drop-refusal", tmp_path / "damaged")

    assert str(tmp_path.parent) not in str(refused.value)
    assert not (tmp_path / "damaged").exists()


@pytest.mark.parametrize("what", ["unknown kind", "no bundle", "taken"])
def test_what_cannot_be_damaged_is_refused(kept: Good, tmp_path: Path, what: str) -> None:
    """An unknown kind, a folder that is no bundle and a taken name are one sentence each."""
    source, kind, to = kept("lab"), "extra-file", tmp_path / "damaged"
    if what == "unknown kind":
        kind = "magic"
    elif what == "no bundle":
        source = tmp_path / "nothing"
        source.mkdir()
    else:
        to.mkdir()
        (to / "mine.txt").write_bytes(b"mine")
    with pytest.raises(BundleError) as refused:
        corrupt(source, kind, to)

    assert str(tmp_path.parent) not in str(refused.value)
    assert what == "taken" or not to.exists()
    assert what != "taken" or [path.name for path in to.iterdir()] == ["mine.txt"]


def test_a_stranger_finds_the_same(kept: Good, damaged: Good, tmp_path: Path) -> None:
    """The copy of the verifier inside the good bundle, run isolated, reports each damage word for word."""
    script = kept("lab", rarer=True) / "data" / "verify.py"
    for kind in OF_ACTIONS[:: len(KINDS) // 6]:
        folder = damaged(kind.name, "lab", rarer=True)
        run = subprocess.run(
            [sys.executable, "-I", "-S", str(script), str(folder), "--json"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        report = verify.verify(folder)

        assert (run.returncode, run.stderr) == (0 if report.valid else 1, "")
        assert json.loads(run.stdout) == report.as_json()
