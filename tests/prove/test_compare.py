"""Does a comparison say no more than two runs and their versions allow?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeai_lab.prove.compare import (
    Difference,
    Run,
    Verdict,
    allowed_statuses,
    compare,
    differing_versions,
)

HERE: dict[str, Any] = {
    "format": "codeai-lab-environment-v1", "python": "3.11.7", "implementation": "CPython",
    "platform": "Linux", "machine": "x86_64", "packages": {"duckdb": "2.0.1", "rfc8785": "0.1.4"},
}  # fmt: skip
OTHER_DUCKDB = HERE | {"packages": {"duckdb": "1.4.0", "rfc8785": "0.1.4"}}
ROW: dict[str, Any] = {
    "case": "A", "revision": "lab", "requests": 2, "statuses": ["succeeded", "succeeded"],
    "reused_from": [None, "a1"], "effects_ledger": [1, 1], "effects_world": 1, "effects_summary": 1,
    "labels": [None, "replay"], "notes": [],
}  # fmt: skip
PLAN: dict[str, Any] = {
    "requests": [{"id": "p1", "key": "k1"}, {"id": "p2", "key": "k1"}, {"id": "q1", "key": "k2"}],
    "expected": {"statuses": ["succeeded", "in_progress", "denied"]},
}
RACE: dict[str, Any] = ROW | {
    "case": "P", "requests": 3, "statuses": ["succeeded", "in_progress", "denied"], "effects_world": 1,
}  # fmt: skip


def verdicts(frozen: Any, again: Any, environment: Any = HERE) -> list[tuple[str, str, list[str]]]:
    """Compare rows that were frozen in `environment` with rows of here."""
    compared = compare(
        Run(rows=frozen, environment=environment), Run(rows=again, environment=HERE), marked={}
    )
    return [(one.case, str(one.verdict), [field.name for field in one.fields]) for one in compared]


@pytest.mark.parametrize("environment", [HERE, OTHER_DUCKDB], ids=["here", "another duckdb"])
def test_equal_fields_are_the_same_whatever_the_versions(environment: Any) -> None:
    """CM1: where nothing differs, other versions are no reason for doubt."""
    assert verdicts([ROW], [dict(ROW)], environment) == [("A", "same", [])]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, "another") for name in ROW if name != "case"]
    + [("effects_world", 2), ("effects_world", True), ("statuses", ["succeeded"]), ("notes", ["a"])],
)
def test_any_field_that_differs_is_named_with_both_values(name: str, value: Any) -> None:
    """CM1, CM3: no field of a row is left out, and nothing passes for another type's value."""
    frozen, again = Run(rows=[ROW | {name: value}], environment=HERE), Run(rows=[ROW], environment=HERE)

    (compared,) = compare(frozen, again, marked={})

    assert compared.verdict is Verdict.DIFFERS
    assert compared.fields == (Difference(name=name, frozen=value, again=ROW[name]),)


def test_other_versions_make_a_difference_inconclusive_and_are_named() -> None:
    """CM1: the versions that differ stand on the verdict, each with both values, and the field as well."""
    frozen = Run(rows=[ROW | {"effects_world": 2}, ROW | {"case": "B"}], environment=OTHER_DUCKDB)
    again = Run(rows=[ROW, ROW | {"case": "B"}], environment=HERE)

    inconclusive, same = compare(frozen, again, marked={})

    assert (inconclusive.verdict, same.verdict) == (Verdict.NOT_COMPARABLE, Verdict.SAME)
    assert inconclusive.versions == (Difference(name="duckdb", frozen="1.4.0", again="2.0.1"),)
    assert [field.name for field in inconclusive.fields] == ["effects_world"]
    assert same.versions == inconclusive.versions


@pytest.mark.parametrize("name", ["python", "implementation", "platform", "machine"])
def test_the_place_counts_as_a_version(name: str) -> None:
    """CM1: another Python or another platform is named as itself."""
    assert verdicts([ROW | {"labels": []}], [ROW], HERE | {name: "x"}) == [
        ("A", "not comparable", ["labels"])
    ]
    assert differing_versions(HERE | {name: "x"}, HERE) == (
        Difference(name=name, frozen="x", again=HERE[name]),
    )


def test_a_package_that_one_side_lacks_is_a_difference_and_hides_none() -> None:
    """A package called python does not stand in for Python."""
    frozen = HERE | {"python": "3.10.0", "packages": {"python": "3.11.7", "duckdb": "2.0.1"}}

    assert [(one.name, one.frozen, one.again) for one in differing_versions(frozen, HERE)] == [
        ("python", "3.10.0", "3.11.7"),
        ("rfc8785", "(missing)", "0.1.4"),
    ]


def test_a_case_or_a_field_of_one_side_only_differs() -> None:
    """CM3: nothing is the same as what is not there, null included."""
    without = {name: value for name, value in ROW.items() if name != "notes"}

    assert verdicts([ROW], []) == [("A", "differs", ["case"])]
    assert verdicts([], [ROW]) == [("A", "differs", ["case"])]
    assert verdicts([ROW | {"notes": None}], [without]) == [("A", "differs", ["notes"])]


def race(frozen: dict[str, Any], keys: list[str]) -> list[str]:
    """Compare a frozen race with the same one of now, which came in another order; name what differs."""
    again = RACE | {"statuses": ["denied", "in_progress", "succeeded"]}
    (compared,) = compare(
        Run(rows=[RACE | frozen], environment=HERE, keys={"P": keys}),
        Run(rows=[again], environment=HERE, keys={"P": ["k2", "k1", "k1"]}),
        marked={"P": allowed_statuses(PLAN)},
    )
    assert (compared.verdict is Verdict.SAME) == (not compared.fields)
    return [field.name for field in compared.fields]


@pytest.mark.parametrize(
    ("frozen", "keys", "differs"),
    [
        ({}, ["k1", "k1", "k2"], []),
        ({"labels": ["x"], "reused_from": [], "event_kinds": [], "notes": ["n"]}, ["k1", "k1", "k2"], []),
        ({"statuses": ["succeeded", "succeeded", "denied"]}, ["k1", "k1", "k2"], []),
        ({"statuses": ["succeeded", "denied", "denied"]}, ["k1", "k1", "k2"], ["statuses"]),
        ({"statuses": ["succeeded", "in_progress", "denied"]}, ["k2", "k1", "k1"], ["statuses"]),
        ({"statuses": ["succeeded", "in_progress", "denied"]}, ["k1", "k2", "k2"], ["statuses"]),
        ({"statuses": ["succeeded", "in_progress"]}, ["k1", "k1", "k2"], ["statuses"]),
        ({"statuses": ["succeeded", "in_progress", "denied", "denied"]}, ["k1", "k1", "k2"], ["statuses"]),
        ({"statuses": ["succeeded", ["in_progress"], "denied"]}, ["k1", "k1", "k2"], ["statuses"]),
        ({"statuses": ["succeeded", "in_progress", "denied"]}, ["k1", "k1", "k3"], ["statuses"]),
        ({"requests": 4}, ["k1", "k1", "k2"], ["requests"]),
        ({"effects_world": 2}, ["k1", "k1", "k2"], ["effects_world"]),
        ({"effects_summary": 2}, ["k1", "k1", "k2"], ["effects_summary"]),
    ],
)
def test_a_marked_case_is_compared_by_requests_effects_and_allowed_statuses(
    frozen: dict[str, Any], keys: list[str], differs: list[str]
) -> None:
    """CM2: the order is free, and so is what follows from it; what a key may not have is found."""
    assert race(frozen, keys) == differs


def test_the_allowed_statuses_belong_to_each_key() -> None:
    """A status that is expected of one key is not thereby allowed for another."""
    assert allowed_statuses(PLAN) == {"k1": ["succeeded", "in_progress"], "k2": ["denied"]}


def test_a_verdict_is_json() -> None:
    """What programs read holds the verdict's word, the fields and the versions with both values."""
    (compared,) = compare(
        Run(rows=[ROW | {"requests": 3}], environment=OTHER_DUCKDB),
        Run(rows=[ROW], environment=HERE),
        marked={},
    )

    assert json.loads(json.dumps(compared.as_json())) == {
        "case": "A",
        "verdict": "not comparable",
        "fields": [{"name": "requests", "frozen": 3, "again": 2}],
        "versions": [{"name": "duckdb", "frozen": "1.4.0", "again": "2.0.1"}],
    }
