"""Do a frozen run and the same protocol played again agree?

Chapter: 004, "Checking it without trusting it": the pinned rerun.

Idea: the fields of two rows are compared, and only where some differ does it matter where the two runs took
place. Under the same versions a difference is a finding; under others it may be theirs, so nothing is
concluded and the versions are named.

Always true:
  CM1. Fields equal: same. Fields differ, versions equal: differs, by field with both values. Fields and
       versions differ: not comparable, by version with both values. Other versions are noted on each verdict.
  CM2. A case marked `threads` or `processes` is compared by requests, effects and the statuses that each key
       may have; the order in which its walks came is nobody's promise. A row without statuses is compared
       whole.
  CM3. Values are compared as JSON: true is not 1, and a field that one side lacks differs.

Not here: playing again (`lessons.rerunning`), whether the frozen side holds together (`prove.verify`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any

Status = str | None
Row = Mapping[str, Any]
Allowed = Mapping[str, Sequence[Status]]  # key -> the statuses that its requests may have

# What threads and processes leave fixed, apart from the statuses.
OF_MARKED = ("revision", "requests", "effects_world", "effects_summary")
NOWHERE = "(missing)"


class Verdict(StrEnum):
    """What a comparison says of a case."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field or a version that is not the same in both runs: its name, the frozen value, the one of now."""

    name: str
    frozen: Any
    again: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The verdict on one case, the fields that differ, and the versions that do, whatever the verdict."""

    case: str
    verdict: Verdict
    fields: tuple[Difference, ...] = ()
    versions: tuple[Difference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": str(self.verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of the two runs.

    Args:
        rows: the rows of results.json.
        environment: the content of environment.json.
        keys: case -> the key of each request, in the order of the row; read for marked cases alone.
    """

    rows: Sequence[Row]
    environment: Mapping[str, Any]
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)


def compare(frozen: Run, again: Run, *, marked: Mapping[str, Allowed]) -> tuple[Compared, ...]:
    """Compare two runs of one protocol, case by case, in the order of the frozen rows.

    Args:
        marked: what `allowed_statuses` gives, for each case that threads or processes play.
    """
    versions = differing_versions(frozen.environment, again.environment)
    before, now = ({case_of(row): row for row in run.rows} for run in (frozen, again))
    compared = []
    for case in {**before, **now}:
        if case not in before or case not in now:
            fields = _differing(*({"case": case} if case in rows else {} for rows in (before, now)))
        elif case in marked and "statuses" in before[case] and "statuses" in now[case]:
            fields = _differing_marked(
                marked[case], (before[case], now[case]), [run.keys[case] for run in (frozen, again)]
            )
        else:
            fields = _differing(before[case], now[case])
        verdict = Verdict.SAME if not fields else Verdict.NOT_COMPARABLE if versions else Verdict.DIFFERS
        compared.append(Compared(case=case, verdict=verdict, fields=fields, versions=versions))
    return tuple(compared)


def case_of(row: Row) -> str:
    """Give the name by which a row is compared: its case, or for a trajectory its policy."""
    return str(row.get("case", row.get("policy")))


def differing_versions(frozen: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Name what two environments differ in: Python, the platform, each package by its own name."""
    return _differing(_versions(frozen), _versions(again))


def allowed_statuses(plan: Mapping[str, Any]) -> Allowed:
    """Give for each key of a protocol's case the statuses that are expected of its requests, in any order."""
    allowed: dict[str, list[Status]] = {}
    for asked, status in zip(plan["requests"], plan["expected"]["statuses"], strict=True):
        allowed.setdefault(asked["key"], []).append(status)
    return allowed


def _versions(environment: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in environment.items() if name not in ("format", "packages")}
    return own | {name: value for name, value in environment["packages"].items() if name not in own}


def _differing(frozen: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[Difference, ...]:
    pairs = {name: (frozen.get(name, NOWHERE), again.get(name, NOWHERE)) for name in {**frozen, **again}}
    return tuple(
        Difference(name=name, frozen=before, again=now)
        for name, (before, now) in pairs.items()
        if _as_json(before) != _as_json(now)
    )


def _differing_marked(
    allowed: Allowed, rows: Sequence[Row], keys: Sequence[Sequence[str]]
) -> tuple[Difference, ...]:
    fixed = [{name: value for name, value in row.items() if name in OF_MARKED} for row in rows]
    told = [_told(row["statuses"], each) for row, each in zip(rows, keys, strict=True)]
    fields = _differing(*fixed)
    if not all(_is_allowed(each, allowed) for each in told):
        fields += (Difference(name="statuses", frozen=told[0], again=told[1]),)
    return fields


def _told(statuses: Sequence[Status], keys: Sequence[str]) -> dict[str, list[Status]]:
    """Give each key's statuses, sorted: within one key, too, the order is nobody's promise."""
    told: dict[str, list[Status]] = {}
    for key, status in zip_longest(keys, statuses, fillvalue=NOWHERE):
        told.setdefault(str(key), []).append(status)
    return {key: sorted(each, key=str) for key, each in told.items()}


def _is_allowed(told: Allowed, allowed: Allowed) -> bool:
    """Each key has as many requests as were planned, and each a status that one of them may have."""
    planned = {key: len(statuses) for key, statuses in allowed.items()}
    return planned == {key: len(statuses) for key, statuses in told.items()} and all(
        status in allowed[key] for key, statuses in told.items() for status in statuses
    )


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
