"""Does the frozen protocol, played again here and now, give what was frozen?

Chapter: 004, "Checking it without trusting it": the pinned rerun.

Idea: a bundle's protocol says which lesson was played under which rules, and this program has both. So it is
frozen a second time, in a scratch folder, and the two are compared. It finds what no look at the bundle can:
a story that fits in every way and is not what these rules give.

Always true:
  RE1. What is no valid bundle is not played: findings about names, digests, chain, events and world stop a
       rerun. Findings about rows do not (`row-…`, `expected-…`: the summary contradicts the bundle's own
       ledger, or the plan): what differs is then said by field, the findings are said beside it, and the
       bundle is not the same.
  RE2. What would be played has to be what was planned: the same cases, requests, marks, seed and ledger, or
       nothing is played. Questions and expectations are words about them and may differ.
  RE3. The ledger's lines are compared too, byte for byte, for the cases that are not marked. The verdict does
       not depend on it. Lines behind a marked case may differ with it, by their place in the chain.

Not here: the rule of comparison (`prove.compare`), playing and freezing (`lessons.freezable`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codeai_lab.errors import BundleError, RefusedRequestError
from codeai_lab.lessons.freezable import freezable
from codeai_lab.prove.compare import Compared, Run, Verdict, allowed_statuses, compare
from codeai_lab.prove.verify import CannotVerify, Finding, verify

ABOUT_ROWS = ("row-", "expected-")
PLAYED = ("ledger_id", "seed")
PLAYED_OF_A_CASE = ("requests", "marked")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """What came of a rerun.

    Args:
        ledger: case -> True when its lines are the same bytes, False when not, None when nobody promises it.
        findings: what the verifier says of the frozen rows; empty for a valid bundle.
    """

    lesson: str
    revision: str
    cases: tuple[Compared, ...]
    ledger: Mapping[str, bool | None]
    findings: tuple[Finding, ...]

    @property
    def same(self) -> bool:
        """Every case is the same, and the bundle contradicts itself nowhere."""
        return not self.findings and all(case.verdict is Verdict.SAME for case in self.cases)

    def as_json(self) -> dict[str, Any]:
        return {
            "lesson": self.lesson,
            "revision": self.revision,
            "same": self.same,
            "cases": [
                case.as_json() | {"same_ledger_bytes": self.ledger.get(case.case)} for case in self.cases
            ],
            "findings": [asdict(finding) for finding in self.findings],
        }


def rerun(bundle: Path, progress: Progress | None = None) -> Rerun:
    """Play a bundle's frozen protocol again and compare; the bundle is only read.

    Args:
        progress: is told what is done now, how many cases are done and how many there are.

    Raises: BundleError (definite) when there is no valid bundle, or its protocol is none of this program's.
    """
    bundle = bundle.resolve()  # `.` has no name to speak of
    findings = _findings_about_rows(bundle)
    protocol = _document(bundle, "protocol")
    planned = _planned_here(bundle, protocol)
    cases = planned["cases"]
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        again = Path(scratch) / "again"
        freezable(protocol["lesson"]).freeze(protocol["revision"], again, None, progress)
        before, now = _Ledger(bundle), _Ledger(again)
        compared = compare(
            _run(bundle, before),
            _run(again, now),
            marked={case["case"]: allowed_statuses(case) for case in cases if case["marked"]},
        )
    return Rerun(
        lesson=protocol["lesson"],
        revision=protocol["revision"],
        cases=compared,
        ledger=_same_bytes(cases, before, now),
        findings=findings,
    )


def _findings_about_rows(bundle: Path) -> tuple[Finding, ...]:
    """Verify a bundle; give what is wrong with its rows alone, and refuse it for anything else."""
    try:
        findings = verify(bundle).findings
    except CannotVerify as error:
        raise BundleError(str(error)) from None
    for finding in findings:
        if not finding.code.startswith(ABOUT_ROWS):
            raise BundleError(
                f"{bundle.name} is not valid and is not played again: "
                f"{finding.code}, {finding.where}: {finding.message}."
            )
    return findings


def _planned_here(bundle: Path, protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Give the protocol that this program would freeze, and refuse a bundle that planned something else."""
    lesson, revision = protocol["lesson"], protocol["revision"]
    try:
        here = freezable(lesson)
        planned: dict[str, Any] = json.loads(json.dumps(here.protocol(here.rules_named(revision))))
    except RefusedRequestError:
        raise BundleError(
            f"{bundle.name} cannot be played again: its lesson or rules are not known here."
        ) from None
    if why := _other_plan(planned, protocol):
        raise BundleError(
            f"{bundle.name} cannot be played again: {why} in its protocol and in the lesson {lesson} here."
        )
    return planned


def _other_plan(planned: Mapping[str, Any], protocol: Mapping[str, Any]) -> str:
    """Say in which of the things that are played two protocols differ; empty when in none."""
    if [case["case"] for case in planned["cases"]] != [case["case"] for case in protocol["cases"]]:
        return "the cases differ"
    for name in PLAYED:
        if planned[name] != protocol[name]:
            return f"the {name} differs"
    for here, there in zip(planned["cases"], protocol["cases"], strict=True):
        for name in PLAYED_OF_A_CASE:
            if here[name] != there[name]:
                return f"the {name} of the case {here['case']} differ"
    return ""


class _Ledger:
    """What the lines of a bundle's ledger say of its cases: their digest, and whose key was asked for."""

    def __init__(self, bundle: Path) -> None:
        self.keys: dict[str, list[str]] = {}
        self._digests: dict[str, Any] = {}
        with (bundle / "data" / "ledger.jsonl").open("rb") as lines:
            next(lines)  # the line of creation belongs to no case
            for raw in lines:
                event = json.loads(raw)
                case = event["run_id"].partition("/")[2]
                self._digests.setdefault(case, hashlib.sha256()).update(raw)
                keys = self.keys.setdefault(case, [])
                if event["kind"] in ("action.requested", "call.requested"):
                    keys.append(event["idempotency_key"])

    def digest(self, case: str) -> str | None:
        return self._digests[case].hexdigest() if case in self._digests else None


def _same_bytes(cases: list[dict[str, Any]], before: _Ledger, now: _Ledger) -> dict[str, bool | None]:
    same: dict[str, bool | None] = {}
    promised = True
    for case in cases:
        name = case["case"]
        equal = before.digest(name) == now.digest(name)
        promised = promised and not case["marked"]
        same[name] = None if case["marked"] else equal or (False if promised else None)
    return same


def _run(bundle: Path, ledger: _Ledger) -> Run:
    return Run(
        rows=_document(bundle, "results")["rows"],
        environment=_document(bundle, "environment"),
        keys=ledger.keys,
    )


def _document(bundle: Path, name: str) -> Any:
    return json.loads((bundle / "data" / f"{name}.json").read_bytes())
