"""How many duplicates does a retry make, and which protection helps against which cause?

Chapter: 004, retry, replay and duplicate; 000, section 15.7.

Idea: one row for each case. Beside what theory says stands what the trials came to, and how sure that is. The
rows hold three things together: the counts where nothing protects, the same probability p for any number of
attempts, and a ladder of eight protections under three causes of silence.

Always true:
  LD1. A row depends on its case, the trials and the seed, and on nothing else: not on the rows beside it, the
       order of the parts, nor on who runs them.
  LD2. Trials come in parts of `TRIALS_A_PART`; more trials leave the whole parts as they were.

Not here: the cases (`decide.duplicates`), the theory (`decide.duplicate_laws`), the trials
(`explore.duplicates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from codeai_lab.decide.duplicate_laws import law
from codeai_lab.decide.duplicates import Case, Model, Protection, late
from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.duplicates import Counted, retry
from codeai_lab.explore.sweeps import Part, sweep
from codeai_lab.lessons.measured import Measured, Progress, are_numbers

TRIALS, SEED = 400_000, 20_261_130
TRIALS_A_PART = 1_000_000


def ladder(*, attempts: int, response_loss: float, request_loss: float) -> list[Case]:
    """Give every protection under every cause of silence; in the model `slow` no request is lost."""
    return [
        Case(
            model=model,
            protection=protection,
            attempts=attempts,
            response_loss=response_loss,
            request_loss=0.0 if model is Model.SLOW else request_loss,
        )
        for model in Model
        for protection in Protection
    ]


def usual_cases() -> list[Case]:
    """Give the cases of the lesson."""
    return [*_where_nothing_protects(), *_what_a_key_does(), *_what_is_left(), *_ladder_of_the_lesson()]


def duplicates_measured(
    *,
    cases: Sequence[Case] | None = None,
    trials: int = TRIALS,
    seed: int = SEED,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each case, from so many trials of each.

    Args:
        cases: those of the lesson where none are named.
        trials: of each case; 100,000,000 take no more memory than 1,000,000.
        executor, keep, progress: as for `explore.sweeps.sweep`.

    Raises: RefusedRequestError (definite) for a number of trials below 1, and for a seed that is none.
    """
    if type(trials) is not int or trials < 1:
        raise RefusedRequestError("The number of trials must be a whole number from 1.")
    chosen = usual_cases() if cases is None else list(cases)
    parts = [part for case in chosen for part in _parts(case, trials, seed)]
    answers = sweep(parts, executor=executor, keep=keep, progress=progress)
    each = len(parts) // len(chosen) if chosen else 0
    return [_measured(case, _added(islice(answers, each))) for case in chosen]


def retried(case: dict[str, Any], trials: int, seed: int, part: int) -> dict[str, Any]:
    """Give one part's counts in plain form: the part of the sweep."""
    return asdict(retry(Case(**case), trials=trials, seed=seed, part=part))


def _parts(case: Case, trials: int, seed: int) -> list[Part]:
    plain = asdict(case) | {"model": str(case.model), "protection": str(case.protection)}
    return [
        Part(
            name=f"{case.name}, from trial {start:,}",
            task=retried,
            arguments={
                "case": plain,
                "trials": min(TRIALS_A_PART, trials - start),
                "seed": seed,
                "part": start // TRIALS_A_PART,
            },
            check=partial(_has_form, case.attempts, min(TRIALS_A_PART, trials - start)),
        )
        for start in range(0, trials, TRIALS_A_PART)
    ]


def _has_form(attempts: int, trials: int, answer: object) -> bool:
    """Say whether a kept answer can be a part's: whole numbers, of no more than its trials."""
    if not isinstance(answer, dict) or answer.keys() != {one.name for one in fields(Counted)}:
        return False
    effects, *others = (answer[one.name] for one in fields(Counted))
    if not are_numbers(effects, attempts + 1) or sum(effects) != trials:
        return False
    return all(type(count) is int and 0 <= count <= trials for count in (*effects, *others))


def _added(answers: Iterator[dict[str, Any]]) -> Counted:
    """Add up the counts of a case's parts."""
    total = _counted(next(answers))
    for answer in answers:
        total += _counted(answer)
    return total


def _counted(answer: dict[str, Any]) -> Counted:
    return Counted(**answer | {"effects": tuple(answer["effects"])})


def _measured(case: Case, counted: Counted) -> Measured:
    expected, samples = asdict(law(case)), _samples(case, counted)
    row: dict[str, Any] = asdict(case) | {
        "model": str(case.model),
        "protection": str(case.protection),
        "trials": counted.trials,
    }
    row |= {name: estimate(expected[name], sample) for name, sample in samples.items()}
    return Measured(case=case.name, row=row, samples=samples)


def _samples(case: Case, counted: Counted) -> dict[str, Sample]:
    effects = Sample.counted(dict(enumerate(counted.effects)))
    beyond = (counted.effects[0] + counted.effects[1], *counted.effects[2:])
    silently = case.protection is Protection.KEY_ONLY

    def happened(times: int) -> Sample:
        return Sample.counted({0: counted.trials - times, 1: times})

    return {
        "effects_mean": effects,
        "duplicates_mean": Sample.counted(dict(enumerate(beyond))),
        "p_duplicate": effects.where(lambda number: number > 1),
        "p_no_answer": happened(counted.no_answer),
        "p_stuck": happened(counted.stuck),
        "effects_lost": happened(counted.met_foreign if silently else 0),
        "p_refused": happened(0 if silently else counted.met_foreign),
    }


# --- the cases of the lesson ---------------------------------------------------------------------------


def _where_nothing_protects() -> list[Case]:
    """The counts for several losses; then P(duplicate), which is p for any number of attempts."""
    published = [
        (2, 0.1, 0.0), (3, 0.3, 0.0), (4, 0.5, 0.0), (6, 0.5, 0.0), (3, 0.1, 0.1),
        (3, 0.3, 0.2), (4, 0.3, 0.2), (4, 0.5, 0.5), (6, 0.5, 0.5),
    ]  # fmt: skip
    more_attempts = [(2, 0.3, 0.0), (4, 0.3, 0.0), (6, 0.3, 0.0), (2, 0.5, 0.0), (8, 0.5, 0.0)]
    return [_case(Model.LOSS, Protection.NONE, *numbers) for numbers in [*published, *more_attempts]]


def _what_a_key_does() -> list[Case]:
    """A key without a claim: nothing against a slow service, and crashes leave duplicates."""
    slow = [(3, late(service=1, timeout=1)), (3, late(service=1, timeout=2)), (5, late(service=2, timeout=1))]
    keyed = (Protection.NONE, Protection.KEY_ONLY)
    crash = [(3, 0.1, 0.0), (4, 0.05, 0.2)]
    return [
        *(_case(Model.SLOW, protection, *numbers) for numbers in slow for protection in keyed),
        *(_case(Model.CRASH, Protection.KEY_ONLY, *numbers) for numbers in crash),
    ]


def _what_is_left() -> list[Case]:
    """What each protection costs: lost effects, refusals, claims that stick, leases and memories that end."""
    numbers = (4, 0.3, 0.2)
    reads = (Protection.KEY_ONLY, Protection.KEY_FINGERPRINT)
    takes_over = (Protection.CLAIM_LEASE, Protection.CLAIM_RECONCILE)
    claims = (Protection.CLAIM, *takes_over)
    return [
        *(_case(Model.LOSS, protection, *numbers, collision=0.05) for protection in reads),
        *(_case(Model.CRASH, protection, *numbers, crash_before=0.1) for protection in claims),
        *(_case(Model.CRASH, protection, *numbers, lease=2) for protection in takes_over),
        *(_case(Model.SLOW, protection, 4, 0.3, lease=2) for protection in takes_over),
        *(_case(Model.LOSS, Protection.EFFECT_SIDE, *numbers, retention=kept) for kept in (0, 1, 3)),
    ]


def _ladder_of_the_lesson() -> list[Case]:
    cases = ladder(attempts=4, response_loss=0.3, request_loss=0.2)
    return [case for case in cases if case not in _where_nothing_protects()]


def _case(
    model: Model, protection: Protection, attempts: int, response_loss: float, request_loss: float = 0.0,
    **more: Any,
) -> Case:  # fmt: skip
    return Case(
        model=model, protection=protection, attempts=attempts, response_loss=response_loss,
        request_loss=request_loss, **more,
    )  # fmt: skip
