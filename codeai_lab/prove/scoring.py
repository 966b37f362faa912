"""How good is a verifier, anybody's?

Chapter: 004, "Checking it without trusting it": the verifier too has to be tried.

Idea: a verifier is a script that is given a bundle and answers with its exit status and findings. It is run
on bundles that are good and on every corruption of each, and what counts is what it named, what it missed
and what it refused wrongly. It is a stranger: it gets a copy, and limits on its time and on what it says.

Always true:
  SC1. The script is run as `python -I -S VERIFIER.py BUNDLE --json`, on a copy of its own each time; outside
       kinds, and each good bundle a second time, with --expect and the digest of the good one.
  SC2. Named: exit 1 and a finding whose code or message holds the code of the kind, or its name. Exit 1
       without that is a refusal that names nothing, exit 0 a miss.
  SC3. However long it runs, however much it writes and whatever it writes, the score is given.

It runs with the rights of whoever asks: limits are no sandbox, so score only what you would run.

Not here: the corruptions (`prove.corrupt`), a verifier (`prove.verify`), an example of a weak one
(`prove.hash_only`).
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from codeai_lab.errors import CorruptionDoesNotApplyError, RefusedRequestError
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.copies import Corruption
from codeai_lab.prove.corrupt import KINDS, corrupt
from codeai_lab.prove.strangers import Answer, ask

Progress = Callable[[str, int, int], None]

TIMEOUT_S = 20.0
PATIENCE = 3  # as many time-outs, and the rest is not tried
TRACEBACK = b"Traceback (most recent call last)"


class Outcome(StrEnum):
    """What a verifier made of one bundle."""

    ACCEPTED = "accepted"  # a good one
    WRONGLY_REFUSED = "wrongly refused"
    NAMED = "named"
    REFUSED_NOT_NAMED = "refused, not named"
    MISSED = "missed"
    FAILED = "failed"  # crashed, or said that it could not run
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One bundle that was put to the verifier.

    Args:
        bundle: its name, as LESSON/NAME.
        kind: the corruption, or None for the good bundle itself.
        outside: True when the digest of the good bundle was given.
        why: one sentence where the outcome needs it.
    """

    bundle: str
    kind: str | None
    outside: bool
    outcome: Outcome
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "bundle": self.bundle,
            "kind": self.kind,
            "outside": self.outside,
            "outcome": str(self.outcome),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """All trials of a verifier, and the corruptions that do not apply, as (bundle, kind)."""

    verifier: str
    trials: tuple[Trial, ...]
    not_applicable: tuple[tuple[str, str], ...]

    def __getitem__(self, outcome: Outcome) -> tuple[Trial, ...]:
        """Give the trials that came out so."""
        return tuple(trial for trial in self.trials if trial.outcome is outcome)

    @property
    def perfect(self) -> bool:
        """Every good bundle accepted, every corruption named."""
        return all(trial.outcome in (Outcome.ACCEPTED, Outcome.NAMED) for trial in self.trials)

    def as_json(self) -> dict[str, Any]:
        count = Counter(trial.outcome for trial in self.trials)
        return {
            "verifier": self.verifier,
            "good": sum(trial.kind is None for trial in self.trials),
            "corrupted": sum(trial.kind is not None for trial in self.trials),
            **{re.sub(r"\W+", "_", outcome): count[outcome] for outcome in Outcome},
            "not_applicable": len(self.not_applicable),
            "trials": [trial.as_json() for trial in self.trials],
        }


def score(
    verifier: Path,
    bundles: Sequence[Path],
    *,
    expect: Mapping[str, str],
    timeout_s: float = TIMEOUT_S,
    progress: Progress | None = None,
) -> Score:
    """Put good bundles and all their corruptions to a verifier script.

    Args:
        bundles: good bundles, each in a folder LESSON/NAME.
        expect: LESSON/NAME -> the digest kept outside; a bundle that it lacks is asked for its own.
        timeout_s: how long the script may take for one bundle, in seconds.
        progress: is told what is tried, how many trials are done and how many there are.

    Raises: RefusedRequestError when there is no such script, BundleError when a bundle is none (definite).
    """
    if not verifier.is_file():
        raise RefusedRequestError(f"There is no script called {verifier.name}; name a verifier to score.")
    digests = {bundle: expect.get(name_of(bundle), digest_of(bundle)) for bundle in bundles}
    trials: list[Trial] = []
    not_applicable: list[tuple[str, str]] = []
    planned = [
        (bundle, kind, outside)
        for bundle in bundles
        for kind, outside in ((None, False), (None, True), *((kind, kind.outside) for kind in KINDS))
    ]
    for done, (bundle, kind, outside) in enumerate(planned):
        name, damage = name_of(bundle), kind.name if kind else None
        if progress is not None:
            progress(f"{name} {damage or ''}".rstrip(), done, len(planned))
        outcome, why = Outcome.TIMED_OUT, f"not tried: it timed out {PATIENCE} times before"
        if sum(trial.outcome is Outcome.TIMED_OUT for trial in trials) < PATIENCE:
            try:
                answer = _answer(verifier, bundle, damage, digests[bundle] if outside else None, timeout_s)
            except CorruptionDoesNotApplyError:
                not_applicable.append((name, str(damage)))
                continue
            outcome, why = judged(answer, kind)
        trials.append(Trial(bundle=name, kind=damage, outside=outside, outcome=outcome, why=why))
    return Score(verifier=verifier.name, trials=tuple(trials), not_applicable=tuple(not_applicable))


def judged(answer: Answer, kind: Corruption | None) -> tuple[Outcome, str]:
    """Say what an answer is worth for a corruption, or for a good bundle, and why where it needs saying."""
    findings = _findings(answer.said)
    if answer.timed_out:
        return Outcome.TIMED_OUT, "it was still running at the time limit"
    if answer.said_too_much:
        return Outcome.FAILED, "it wrote too much"
    if answer.status not in (0, 1):
        return Outcome.FAILED, f"its exit status was {answer.status}"
    if answer.status == 1 and findings is None and TRACEBACK in answer.complained:
        return Outcome.FAILED, "it ended in a traceback"  # to which Python gives the exit status 1, too
    if kind is None:
        return (Outcome.WRONGLY_REFUSED if answer.status else Outcome.ACCEPTED), ""
    if answer.status == 0:
        return Outcome.MISSED, ""
    named = any(_names(kind, text) for text in findings or ())
    return (Outcome.NAMED if named else Outcome.REFUSED_NOT_NAMED), ""


def name_of(bundle: Path) -> str:
    """Give a bundle's name as an index has it: LESSON/NAME."""
    return "/".join(bundle.resolve().parts[-2:])


def _answer(verifier: Path, bundle: Path, kind: str | None, expect: str | None, timeout_s: float) -> Answer:
    # What a stranger leaves in a scratch folder may be hard to remove; that is no reason to stop.
    with tempfile.TemporaryDirectory(prefix="codeai-lab-", ignore_cleanup_errors=True) as scratch:
        copy = Path(scratch) / "bundle"
        if kind is None:
            shutil.copytree(bundle, copy, symlinks=True)
        else:
            corrupt(bundle, kind, copy)
        command = [sys.executable, "-I", "-S", str(verifier.resolve()), str(copy), "--json"]
        expected = [] if expect is None else ["--expect", expect]
        return ask([*command, *expected], within=Path(scratch), timeout_s=timeout_s)


def _findings(said: bytes) -> list[str] | None:
    """Give codes and messages, one text each; None when what was said is no JSON object."""
    try:
        report = json.loads(said.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict):
        return None
    findings = report.get("findings")
    return [
        text
        for finding in (findings if isinstance(findings, list) else ())
        if isinstance(finding, dict)
        for text in (finding.get("code"), finding.get("message"))
        if isinstance(text, str)
    ]


def _names(kind: Corruption, text: str) -> bool:
    words = f"-{re.sub('[^a-z0-9]+', '-', text.lower())}-"
    return f"-{kind.code}-" in words or f"-{kind.name}-" in words
