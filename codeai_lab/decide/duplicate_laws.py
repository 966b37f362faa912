"""How many effects does one request have when it is retried, exactly, and what does a protection leave?

Chapter: 004, retry, replay and duplicate; 000, section 15.7: a timeout does not say that nothing happened.

Idea: an attempt that had its effect and was not answered is followed by another attempt. Three things make
an answer stay away, with one probability p: it was lost, the server died before it recorded the effect, or
the service took longer than the timeout. Seen from the next attempt each protection comes to two numbers:
with which probability it may act again, and for how many attempts it is kept from acting. What is expected of
n attempts then follows from what is expected of fewer.

Always true:
  DL1. Nothing is sampled here.
  DL2. Where nothing protects, the recursion is the short formula (`unprotected`).
  DL3. Where a protection allows no duplicate, the closed form is 0 to the last bit.
  DL4. With no request lost and 2 attempts or more, P(duplicate) is p, whatever the number of attempts.

Not here: what can go wrong (`decide.duplicates`), the trials that this is held against
(`explore.duplicates`).

Source: derived; held against published values and against samples in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codeai_lab.decide.duplicates import Case, Model, Protection

LEASED = {Protection.CLAIM_LEASE, Protection.CLAIM_RECONCILE}
_UNGUARDED = {Protection.NONE, Protection.EFFECT_SIDE}
_LOOKING_UP = {*_UNGUARDED, Protection.KEY_ONLY, Protection.KEY_FINGERPRINT}
ACTS_AGAIN = {  # under which protections a later attempt may have another effect
    Model.LOSS: _UNGUARDED,  # whoever records has recorded before the next attempt comes
    Model.CRASH: {*_LOOKING_UP, Protection.CLAIM_LEASE},
    Model.SLOW: {*_LOOKING_UP, *LEASED},  # the holder lives and has not acted: nothing to reconcile with
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateLaw:
    """What is expected of one request.

    Args:
        effects_mean, duplicates_mean: how many effects, and how many beyond the first.
        p_duplicate: the probability of two effects or more.
        p_no_answer: that the attempts are used up and the client knows nothing.
        p_stuck: that the key is claimed for ever by a process that died.
        effects_lost: effects that a colliding key suppressed, the client being told that all is well.
        p_refused: that a colliding key was found out and refused.
    """

    effects_mean: float
    duplicates_mean: float
    p_duplicate: float
    p_no_answer: float
    p_stuck: float
    effects_lost: float
    p_refused: float


def law(case: Case) -> DuplicateLaw:
    """Give what is expected of a case."""
    course, attempts = _course(case), case.attempts
    effects = _renewed(course, attempts, first=1.0, then=None)
    any_effect = _renewed(course, attempts, first=1.0, then=[0.0] * attempts)
    arrives = 1 - case.request_loss**attempts
    foreign = 0.0 if case.protection is Protection.NONE else case.collision
    silently = case.protection is Protection.KEY_ONLY
    stuck = arrives * _dead_or_unheard(case) if _is(case, Model.CRASH, Protection.CLAIM) else 0.0
    return DuplicateLaw(
        effects_mean=(1 - foreign) * effects[attempts],
        duplicates_mean=(1 - foreign) * _renewed(course, attempts, first=0.0, then=effects)[attempts],
        p_duplicate=(1 - foreign) * _renewed(course, attempts, first=0.0, then=any_effect)[attempts],
        p_no_answer=(1 - foreign) * _no_answer(case, course) + foreign * _no_foreign_answer(case),
        p_stuck=(1 - foreign) * stuck,
        effects_lost=foreign * arrives if silently else 0.0,
        p_refused=0.0 if silently else foreign * arrives,
    )


def unprotected_at_least(effects: int, *, attempts: int, response_loss: float, request_loss: float) -> float:
    """Give P(at least so many effects) where nothing protects: p^(m-1) * P(Binomial(N, 1 - q) >= m)."""
    q = request_loss
    if effects < 1:
        return 1.0
    arrive = (
        math.comb(attempts, n) * (1 - q) ** n * q ** (attempts - n) for n in range(effects, attempts + 1)
    )
    return float(response_loss ** (effects - 1) * math.fsum(arrive))


def unprotected(*, attempts: int, response_loss: float, request_loss: float) -> dict[str, float]:
    """Give the short formulas for where nothing protects, with p the response loss, below 1, and q."""
    p, q, most = response_loss, request_loss, attempts
    unheard = q + (1 - q) * p
    effects = (1 - unheard**most) / (1 - p)
    return {
        "effects_mean": effects,
        "duplicates_mean": effects - (1 - q**most),
        "p_duplicate": p * (1 - q**most - most * (1 - q) * q ** (most - 1)),
        "p_no_answer": unheard**most,
    }


# --- how a protection looks from the next attempt ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """What one attempt may come to.

    Args:
        lost, dies: it never arrives; it arrives, and the server dies before the effect.
        again: after an effect, the probability that the client is there when the next effect is possible.
        pause, held: how many attempts are kept from acting after an effect, and after a death before it.
    """

    lost: float
    dies: float
    again: float
    pause: int
    held: int


def _course(case: Case) -> _Course:
    """Give the numbers of a protection under its model."""
    p, window = case.response_loss, _window(case)
    silent = case.request_loss + (1 - case.request_loss) * _dead_or_unheard(case)
    again = p * silent**window
    if case.protection not in ACTS_AGAIN[case.model]:
        again = 0.0
    elif case.protection in LEASED and case.model is Model.CRASH:
        again = p  # until the lease of the dead holder ends all are told "busy", which answers nothing
    held = (
        case.attempts if case.protection is Protection.CLAIM else window if case.protection in LEASED else 0
    )
    return _Course(lost=case.request_loss, dies=case.crash_before, again=again, pause=window, held=held)


def _dead_or_unheard(case: Case) -> float:
    """Give the probability that an attempt that arrived and acts is not answered."""
    return case.crash_before + (1 - case.crash_before) * case.response_loss


def _window(case: Case) -> int:
    """Give how many attempts after an effect find the key claimed or remembered."""
    if case.protection is Protection.EFFECT_SIDE:
        return case.attempts if case.retention is None else min(case.retention, case.attempts)
    if case.protection in LEASED:
        return min(case.lease - 1, case.attempts)
    return 0


def _renewed(course: _Course, attempts: int, *, first: float, then: Sequence[float] | None) -> list[float]:
    """Give x(0), ..., x(attempts): `first` for the next effect, and then `then` (or x itself) for the rest.

    x(n) = lost * x(n-1) + arrives * (dies * x(n-1-held) + acts * (first + again * then(n-1-pause)))
    """
    found = [0.0]
    for n in range(1, attempts + 1):
        rest = found if then is None else then
        after_effect = rest[n - 1 - course.pause] if n - 1 >= course.pause else 0.0
        after_death = found[n - 1 - course.held] if n - 1 >= course.held else 0.0
        acts = (1 - course.dies) * (first + course.again * after_effect)
        found.append(course.lost * found[n - 1] + (1 - course.lost) * (course.dies * after_death + acts))
    return found


def _no_answer(case: Case, course: _Course) -> float:
    """Give the probability that no attempt of a request with a key of its own is answered."""
    p, q, attempts = case.response_loss, case.request_loss, case.attempts
    if case.model is not Model.CRASH:
        return float((q + (1 - q) * p) ** attempts)
    settled = case.protection in (Protection.CLAIM_RECONCILE, Protection.ATOMIC)
    silent = [1.0]
    for n in range(1, attempts + 1):
        left = max(0, n - 1 - course.held)
        after_effect = q**left if settled else silent[left]  # settled: the next that arrives is answered
        unheard = course.dies * silent[left] + (1 - course.dies) * p * after_effect
        silent.append(q * silent[n - 1] + (1 - q) * unheard)
    return silent[attempts]


def _no_foreign_answer(case: Case) -> float:
    """Give the same for a key that belongs to another operation: nothing acts, so no one dies or is slow."""
    q = case.request_loss
    unheard = case.response_loss if case.model is Model.LOSS else 0.0
    return float((q + (1 - q) * unheard) ** case.attempts)


def _is(case: Case, model: Model, protection: Protection) -> bool:
    return case.model is model and case.protection is protection
