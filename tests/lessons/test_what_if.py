"""Questions whose values can be changed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import total_law
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.overload import trace_rows
from codeai_lab.lessons.what_if import PREVIEWED_S, QUESTIONS, RUN_S, traces


def begin(name: str) -> dict[str, float]:
    return {value: span[3] for value, span in QUESTIONS[name].values.items()}


@cache
def full(name: str) -> list[dict[str, Any]]:
    """Ask a question in full with the values that it begins with, one time for all tests that look at it."""
    return QUESTIONS[name].full(begin(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_values_give_the_same_rows(name: str) -> None:
    """In preview as in full, and both come to the same named numbers (WI1)."""
    question, values = QUESTIONS[name], begin(name)
    preview, whole = question.preview(values), full(name)
    assert preview == question.preview(dict(values))
    assert preview != whole
    assert list(question.numbers(preview)) == list(question.numbers(whole))
    assert set(preview[0]) == set(whole[0])


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_ends_of_every_span_can_be_asked_for(name: str) -> None:
    """No value that a slider reaches is refused, alone or with the others at their ends."""
    for end in (0, 1):
        values = {value: span[end] for value, span in QUESTIONS[name].values.items()}
        assert QUESTIONS[name].numbers(QUESTIONS[name].preview(values))


def test_waits_have_their_law_beside_them() -> None:
    """The full run has the closed form of every rule; the preview leaves the decorrelated one out (WI2)."""
    values = begin("waits") | {"clients": 2_000}
    whole, preview = QUESTIONS["waits"].full(values), QUESTIONS["waits"].preview(values)
    totals = {row["strategy"]: row["total_mean"] for row in whole}
    for name in ("full", "decorrelated"):
        law = total_law(Backoff(strategy=Strategy(name)), 8)
        assert totals[name]["closed_form"] == law.mean
        assert abs(totals[name]["sampled"] - law.mean) < 4 * law.variance**0.5 / 2_000**0.5
    assert {row["strategy"] for row in preview if row["mean"]["closed_form"] is None} == {"decorrelated"}
    assert QUESTIONS["waits"].numbers(whole)["exponential, busiest second"] == 1


def test_duplicates_are_those_of_the_lesson() -> None:
    """P(duplicate) is the loss of responses, whatever the attempts."""
    numbers = QUESTIONS["duplicates"].numbers(full("duplicates"))
    assert numbers["probability of a duplicate"] == pytest.approx(0.3, abs=4 * (0.21 / 20_000) ** 0.5)
    assert numbers["expected effects"] == pytest.approx(1.417, abs=0.02)


def test_an_overload_is_previewed_by_a_shorter_run() -> None:
    """Both say what is left at the end: 560 attempts a second, and nothing of use (WI2)."""
    question, values = QUESTIONS["overload"], begin("overload")
    preview, whole = question.preview(values), full("overload")
    assert (len(preview), len(whole)) == (PREVIEWED_S, RUN_S)
    assert abs(question.numbers(preview)["load at the end"] - 560) < 4 * (2 * 280 * 2 / 15) ** 0.5
    assert abs(question.numbers(whole)["load at the end"] - 560) < 18
    assert question.numbers(whole)["goodput at the end"] == 0
    assert [row["second"] for row in whole if row["stands_still"]] == list(range(20, 30))


def test_traces_are_those_of_the_lesson() -> None:
    """Second by second the same run, with when the server stood still; an unknown case is one sentence."""
    lesson = trace_rows("280-one-retry-no-trigger")
    rows = traces(["280-one-retry-no-trigger"])
    assert [{name: row[name] for name in lesson[0]} for row in rows] == lesson
    assert not any(row["stands_still"] for row in rows)
    with pytest.raises(RefusedRequestError, match="no case called x"):
        traces(["x"])
