"""Is a case data that is written down before anything runs?"""

from __future__ import annotations

import json

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons import LESSONS, lesson_named
from codeai_lab.lessons.cases import Expected, Lesson, under
from codeai_lab.run.revisions import REVISIONS

EVERY = pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)


@EVERY
def test_ids_are_unique_within_a_lesson(lesson: Lesson) -> None:
    """Z2: no request of a lesson can be taken for another, and no key reaches into another case."""
    ids = [ask.id for case in lesson.cases for ask in case.asks]
    assert len(set(ids)) == len(ids)
    keys = [{ask.key for ask in case.asks} for case in lesson.cases]
    assert len(set().union(*keys)) == sum(map(len, keys))


@EVERY
@pytest.mark.parametrize("rules", REVISIONS)
def test_an_expectation_has_one_entry_a_request(lesson: Lesson, rules: str) -> None:
    """Z1: as many statuses, links and exceptions as requests."""
    for case in lesson.cases:
        expected = case.expected_under(rules).as_json()
        counts = {len(expected[name]) for name in ("statuses", "reused_from", "raised")}
        assert counts == {expected["requests"]} == {len(case.asks)}


def test_a_protocol_is_written_down_as_agreed() -> None:
    """The form that a bundle holds: cases in order, requests with kind and key, expectations."""
    protocol = lesson_named("retry-effects").protocol("lab")
    assert {name: value for name, value in protocol.items() if name != "cases"} == {
        "format": "codeai-lab-protocol-v1",
        "lesson": "retry-effects",
        "revision": "lab",
        "seed": 0,
        "ledger_id": "retry-effects/lab",
    }
    assert [case["case"] for case in protocol["cases"]] == [
        "A-exact-duplicate", "B-other-operation", "B-no-authority", "C-call-conflict", "D-crash-gap",
        "D-fresh-key", "E-drift",
    ]  # fmt: skip
    assert protocol["cases"][3] == {
        "case": "C-call-conflict",
        "question": "A model call's key comes again with another prompt.",
        "requests": [{"id": "c1", "kind": "call", "key": "kc"}, {"id": "c2", "kind": "call", "key": "kc"}],
        "marked": [],
        "expected": {
            "requests": 2,
            "statuses": ["succeeded", None],
            "reused_from": [None, None],
            "raised": [None, "IdempotencyConflictError"],
            "effects_world": 0,
        },
    }


@EVERY
@pytest.mark.parametrize("rules", REVISIONS)
def test_a_protocol_is_json_and_the_same_each_time(lesson: Lesson, rules: str) -> None:
    """It can be written before the run and compared after it."""
    assert json.loads(json.dumps(lesson.protocol(rules))) == lesson.protocol(rules)
    assert lesson.protocol(rules)["ledger_id"] == f"{lesson.name}/{rules}"


def test_a_misspelt_rule_set_in_an_expectation_fails_at_once() -> None:
    """An expectation for rules that there are not would never be looked at."""
    expected = Expected(statuses=("succeeded",), effects_world=1)
    with pytest.raises(KeyError):
        under("lba", gives=expected)
    assert under("lab", "88d1291", gives=expected) == {"lab": expected, "88d1291": expected}


def test_an_unknown_lesson_is_answered_with_those_that_there_are() -> None:
    """One sentence, with the names."""
    with pytest.raises(RefusedRequestError) as refused:
        lesson_named("retry-efects")
    assert str(refused.value).startswith("There is no lesson called retry-efects; there are: retry-effects, ")
