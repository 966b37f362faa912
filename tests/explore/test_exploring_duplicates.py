"""Requests retried attempt by attempt: the counts against the closed forms, and what they depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.decide.duplicate_laws import law
from codeai_lab.decide.duplicates import Case, Model, Protection
from codeai_lab.decide.samples import Sample
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore import duplicates
from codeai_lab.explore.duplicates import Counted, retry

TRIALS = 60_000
USUAL = Case(model=Model.LOSS, protection=Protection.NONE, attempts=4, response_loss=0.3, request_loss=0.2)
ODD: list[dict[str, Any]] = [
    {"attempts": 6, "response_loss": 0.5, "request_loss": 0.3, "lease": 2, "retention": 1, "collision": 0.1},
    {"attempts": 5, "response_loss": 0.4, "crash_before": 0.2, "lease": 3, "retention": 2},
]


def agrees(times: int, probability: float) -> bool:
    """Say whether something happened as often as it should, within four standard errors."""
    spread = (probability * (1 - probability) / TRIALS) ** 0.5
    return abs(times / TRIALS - probability) <= 4 * spread + 1e-12


@pytest.mark.parametrize("numbers", ODD)
@pytest.mark.parametrize("protection", Protection)
@pytest.mark.parametrize("model", Model)
def test_trials_come_to_what_theory_says(
    model: Model, protection: Protection, numbers: dict[str, Any]
) -> None:
    """DU1: each model under each protection, with everything that may go wrong at the same time."""
    unknown = {Model.LOSS: {"crash_before"}, Model.SLOW: {"crash_before", "request_loss"}}.get(model, set())
    known = {name: value for name, value in numbers.items() if name not in unknown}
    case = Case(model=model, protection=protection, **known)
    counted, expected = retry(case, trials=TRIALS, seed=20261130), law(case)
    effects = Sample.counted(dict(enumerate(counted.effects)))
    assert counted.trials == TRIALS
    assert abs(effects.mean - expected.effects_mean) <= 4 * effects.se + 1e-12
    assert agrees(sum(counted.effects[2:]), expected.p_duplicate)
    assert agrees(counted.no_answer, expected.p_no_answer)
    assert agrees(counted.stuck, expected.p_stuck)
    assert agrees(counted.met_foreign, expected.effects_lost + expected.p_refused)


@pytest.mark.parametrize("model", Model)
def test_certainties_leave_nothing_to_chance(model: Model) -> None:
    """DU1: answered for sure is one effect, never answered is one for each attempt, never arrived is none."""
    sure = Case(model=model, protection=Protection.NONE, attempts=3, response_loss=0.0)
    assert retry(sure, trials=50, seed=1) == Counted(
        effects=(0, 50, 0, 0), no_answer=0, stuck=0, met_foreign=0
    )
    never = replace(sure, response_loss=1.0)
    assert retry(never, trials=50, seed=1).effects == (0, 0, 0, 50)
    assert retry(never, trials=50, seed=1).no_answer == 50
    if model is not Model.SLOW:
        assert retry(replace(sure, request_loss=1.0), trials=50, seed=1).effects == (50, 0, 0, 0)


def test_many_attempts_fit() -> None:
    """The largest number of attempts, all of them unanswered, is counted to the last one."""
    case = Case(model=Model.LOSS, protection=Protection.NONE, attempts=1_000, response_loss=1.0)
    assert retry(case, trials=3, seed=1).effects[1_000] == 3
    leased = replace(case, model=Model.CRASH, protection=Protection.CLAIM_LEASE, lease=1_000)
    assert retry(leased, trials=3, seed=1).effects[1] == 3


def test_a_part_depends_on_seed_case_and_part() -> None:
    """DU2: whatever ran before, the same names give the same counts; each other name gives others."""
    first = retry(USUAL, trials=3_000, seed=5, part=2)
    others = [
        retry(USUAL, trials=3_000, seed=5, part=3),
        retry(USUAL, trials=3_000, seed=6, part=2),
        retry(replace(USUAL, protection=Protection.ATOMIC), trials=3_000, seed=5, part=2),
    ]
    assert first == retry(USUAL, trials=3_000, seed=5, part=2)
    assert first not in others


def test_only_so_many_trials_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """DU3: a part is taken in portions of `TOGETHER`, the last one smaller."""
    held: list[int] = []
    real = duplicates._together

    def watched(case: Case, trials: int, dice: Any) -> Counted:
        held.append(trials)
        return real(case, trials, dice)

    monkeypatch.setattr(duplicates, "_together", watched)
    trials = 2 * duplicates.TOGETHER + 1
    assert retry(USUAL, trials=trials, seed=1).trials == trials
    assert held == [duplicates.TOGETHER, duplicates.TOGETHER, 1]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"trials": 0}, "number of trials"),
        ({"trials": True}, "number of trials"),
        ({"trials": 1.5}, "number of trials"),
        ({"seed": -1}, "seed is a whole number"),
    ],
)
def test_what_cannot_be_run_is_refused(wrong: dict[str, Any], says: str) -> None:
    """Each wrong argument is refused in one sentence that names it."""
    with pytest.raises(RefusedRequestError, match=says):
        retry(USUAL, **{"trials": 5, "seed": 1, **wrong})
