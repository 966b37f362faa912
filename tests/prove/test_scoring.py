"""Is a verifier given what it earned, whatever it is and whatever it does?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.errors import BundleError, RefusedRequestError
from codeai_lab.prove import hash_only, scoring
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.corrupt import KINDS
from codeai_lab.prove.scoring import Outcome, Score, judged, name_of, score
from codeai_lab.prove.strangers import Answer

Good = Callable[..., Path]
KIND = {kind.name: kind for kind in KINDS}
HASH_ONLY = Path(hash_only.__file__)


def saying(code: object, message: object = "") -> bytes:
    return json.dumps({"valid": False, "findings": [{"code": code, "message": message}]}).encode()


TRACEBACK = b"Traceback (most recent call last):\n  File ...\nKeyError: 'x'\n"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(status=0), Outcome.MISSED),
        (Answer(status=0, said=saying("chain-broken")), Outcome.MISSED),
        (Answer(status=1), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=saying("digest-differs", "it is another")), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=saying("chain-broken")), Outcome.NAMED),
        (Answer(status=1, said=saying("E17", "The chain, broken at line 3")), Outcome.NAMED),
        (Answer(status=1, said=saying("E17", "edit_clock_new_digests?")), Outcome.NAMED),
        (Answer(status=1, said=saying("E17", "the chain-brokenness")), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=saying(17, ["chain-broken"])), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b'{"findings": "chain-broken"}'), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b'{"findings": ["chain-broken", null]}'), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b'["chain-broken"]'), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b"chain-broken"), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b"\xff\xfe{"), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b"[" * 100_000), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, said=b'{"n": ' + b"9" * 10_000 + b"}"), Outcome.REFUSED_NOT_NAMED),
        (Answer(status=1, complained=TRACEBACK), Outcome.FAILED),
        (Answer(status=1, said=saying("chain-broken"), complained=TRACEBACK), Outcome.NAMED),
        (Answer(status=2), Outcome.FAILED),
        (Answer(status=-11), Outcome.FAILED),
        (Answer(status=1, said=saying("chain-broken"), said_too_much=True), Outcome.FAILED),
        (Answer(status=1, said=saying("chain-broken"), timed_out=True), Outcome.TIMED_OUT),
    ],
)
def test_an_answer_about_a_corruption_is_judged_by_status_and_findings(
    answer: Answer, outcome: Outcome
) -> None:
    """SC2: only exit 1 with a finding that holds the code or the name of the kind has named it."""
    assert judged(answer, KIND["edit-clock-new-digests"])[0] is outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(status=0), Outcome.ACCEPTED),
        (Answer(status=1), Outcome.WRONGLY_REFUSED),
        (Answer(status=1, complained=TRACEBACK), Outcome.FAILED),
        (Answer(status=3), Outcome.FAILED),
        (Answer(status=0, timed_out=True), Outcome.TIMED_OUT),
    ],
)
def test_an_answer_about_a_good_bundle_is_judged_by_its_status(answer: Answer, outcome: Outcome) -> None:
    """Exit 0 accepts it; a crash is no verdict."""
    assert judged(answer, None)[0] is outcome


def scored(
    monkeypatch: pytest.MonkeyPatch, verifier: Path, bundle: Path, *kinds: str, timeout_s: float = 60.0
) -> Score:
    """Score a script against one bundle and a few kinds, to keep the number of processes low."""
    monkeypatch.setattr(scoring, "KINDS", tuple(KIND[name] for name in kinds))
    return score(verifier, [bundle], expect={}, timeout_s=timeout_s)


def outcomes(found: Score) -> list[tuple[str | None, bool, str]]:
    return [(trial.kind, trial.outside, str(trial.outcome)) for trial in found.trials]


def test_hashes_alone_miss_what_is_consistent_and_name_what_is_not(
    kept: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC1: the script itself, in an interpreter of its own; the digest is given for outside kinds alone."""
    found = scored(
        monkeypatch, HASH_ONLY, kept("lab"), "rewrite-failed", "forge-completion", "missing-file", "link"
    )

    assert outcomes(found) == [
        (None, False, "accepted"),
        (None, True, "accepted"),
        ("rewrite-failed", False, "missed"),
        ("forge-completion", True, "named"),
        ("missing-file", False, "named"),
        ("link", False, "refused, not named"),
    ]
    assert not found.perfect
    assert [trial.kind for trial in found[Outcome.MISSED]] == ["rewrite-failed"]


def test_a_kind_that_does_not_apply_is_no_trial(kept: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under 7a0d43b nothing is refused, so nobody can be asked about a refusal that is gone."""
    bundle = kept("7a0d43b")
    found = scored(monkeypatch, HASH_ONLY, bundle, "drop-refusal")

    assert found.not_applicable == ((name_of(bundle), "drop-refusal"),)
    assert found.perfect
    said = found.as_json()
    assert (said["good"], said["corrupted"], said["accepted"], said["not_applicable"]) == (2, 0, 2, 1)


def test_a_script_that_breaks_everything_breaks_nothing_here(
    good: Good, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC3: it removes its copy and all around it, and floods the output; the bundle keeps each byte."""
    script = tmp_path / "rude.py"
    script.write_text(
        "import shutil, sys, pathlib\nshutil.rmtree(pathlib.Path(sys.argv[1]).parent, True)\n"
        "while True: sys.stdout.write('x' * 65536)\n"
    )
    bundle = good("lab")
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}

    found = scored(monkeypatch, script, bundle, "extra-file")

    assert [trial.why for trial in found[Outcome.FAILED]] == ["it wrote too much"] * 3
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before


def test_after_three_time_outs_nothing_more_is_tried(kept: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """SC3: a script that hangs costs three time limits, not one for each corruption."""
    asked: list[str] = []

    def hanging(*command: object, **_: object) -> Answer:
        asked.append(str(command))
        return Answer(status=-9, timed_out=True)

    monkeypatch.setattr(scoring, "ask", hanging)
    found = scored(monkeypatch, HASH_ONLY, kept("lab"), *KIND)

    assert len(asked) == 3
    assert len(found[Outcome.TIMED_OUT]) == len(found.trials) == 2 + len(KIND)


def test_the_outside_digest_is_the_one_that_was_handed_in(
    kept: Good, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC1: by the bundle's name; the bundle's own only where nobody handed one in."""
    bundle, asked = kept("lab"), []

    def hearing(command: list[str], **_: object) -> Answer:
        asked.append(command[command.index("--json") + 1 :])
        return Answer(status=0)

    monkeypatch.setattr(scoring, "ask", hearing)
    monkeypatch.setattr(scoring, "KINDS", (KIND["forge-completion"], KIND["extra-file"]))
    score(HASH_ONLY, [bundle], expect={name_of(bundle): "a" * 64})
    score(HASH_ONLY, [bundle], expect={})

    given, own = ["--expect", "a" * 64], ["--expect", digest_of(bundle)]
    assert asked == [[], given, given, [], [], own, own, []]


def test_progress_counts_every_trial(kept: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that turn out not to apply."""
    told: list[tuple[str, int, int]] = []
    bundle = kept("7a0d43b")
    monkeypatch.setattr(scoring, "ask", lambda *_, **__: Answer(status=0))
    monkeypatch.setattr(scoring, "KINDS", (KIND["drop-refusal"], KIND["extra-file"]))
    score(HASH_ONLY, [bundle], expect={}, progress=lambda *each: told.append(each))

    name = name_of(bundle)
    assert told == [(name, 0, 4), (name, 1, 4), (f"{name} drop-refusal", 2, 4), (f"{name} extra-file", 3, 4)]


def test_what_is_no_script_or_no_bundle_is_refused(kept: Good, tmp_path: Path) -> None:
    """One sentence with the last part of the path, before anything is run."""
    with pytest.raises(RefusedRequestError, match=r"^There is no script called no\.py; name a verifier"):
        score(tmp_path / "no.py", [kept("lab")], expect={})
    with pytest.raises(BundleError, match="is not a bundle"):
        score(HASH_ONLY, [tmp_path], expect={})
