"""What can go wrong with a request: cases that are taken, and values that are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from codeai_lab.decide.duplicates import Case, Model, Protection, late
from codeai_lab.errors import RefusedRequestError

USUAL = Case(model=Model.CRASH, protection=Protection.CLAIM_LEASE, attempts=3, response_loss=0.3)


def test_a_case_takes_plain_values() -> None:
    """DC1: names may be plain texts and probabilities whole numbers; what comes of them is the same case."""
    plain = Case(model="crash", protection="claim+lease", attempts=3, response_loss=1)  # type: ignore[arg-type]
    assert plain == replace(USUAL, response_loss=1.0)
    assert plain.name == replace(USUAL, response_loss=1.0).name


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": "gone"}, "models of duplicates are loss, crash, slow"),
        ({"protection": "hope"}, "protections of duplicates are none, key-only"),
        ({"attempts": 0}, "number of attempts"),
        ({"attempts": 1_001}, "number of attempts"),
        ({"attempts": True}, "number of attempts"),
        ({"attempts": 2.0}, "number of attempts"),
        ({"response_loss": 1.01}, "response_loss must be a probability"),
        ({"response_loss": math.nan}, "response_loss must be a probability"),
        ({"request_loss": -0.1}, "request_loss must be a probability"),
        ({"collision": True}, "collision must be a probability"),
        ({"crash_before": "0.1"}, "crash_before must be a probability"),
        ({"lease": 0}, "lease must be a whole number from 1"),
        ({"retention": -1}, "retention must be a whole number from 0"),
        ({"model": "slow", "request_loss": 0.1}, "In the model slow nothing is lost"),
        ({"model": "loss", "crash_before": 0.1}, "Only in the model crash"),
    ],
)
def test_what_is_no_case_is_refused(wrong: dict[str, object], says: str) -> None:
    """DC1: each wrong value is refused in one sentence that names it."""
    with pytest.raises(RefusedRequestError, match=says):
        replace(USUAL, **wrong)  # type: ignore[arg-type]


def test_cases_that_differ_have_different_names() -> None:
    """DC2: every field tells in the name, since the stream of chance is named after it."""
    others: list[dict[str, object]] = [
        {}, {"model": "loss"}, {"protection": "claim"}, {"attempts": 4}, {"response_loss": 0.2},
        {"request_loss": 0.2}, {"crash_before": 0.2}, {"collision": 0.2}, {"lease": 2}, {"retention": 2},
        {"retention": 0},
    ]  # fmt: skip
    names = {replace(USUAL, **other).name for other in others}  # type: ignore[arg-type]
    assert len(names) == len(others)


def test_late_is_the_share_of_services_that_outlast_the_timeout() -> None:
    """P(S > T) of an exponential service; without a finite time there is none."""
    assert late(service=2, timeout=0) == 1
    assert late(service=2, timeout=1) == pytest.approx(0.60653066)
    for service, timeout in ((0, 1), (-1, 1), (1, -1), (math.nan, 1), (1, math.inf)):
        with pytest.raises(RefusedRequestError, match="service time must be above 0"):
            late(service=service, timeout=timeout)
