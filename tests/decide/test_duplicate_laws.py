"""How many effects retries have: closed forms against published values, and against every possible course."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from codeai_lab.decide.duplicate_laws import DuplicateLaw, law, unprotected, unprotected_at_least
from codeai_lab.decide.duplicates import Case, Model, Protection, late

PUBLISHED = [  # attempts, response loss, request loss: effects, duplicates, P(duplicate), P(no answer)
    (2, 0.1, 0.0, 1.10000, 0.10000, 0.10000, 0.01000),
    (3, 0.3, 0.0, 1.39000, 0.39000, 0.30000, 0.02700),
    (4, 0.5, 0.0, 1.87500, 0.87500, 0.50000, 0.06250),
    (6, 0.5, 0.0, 1.96875, 0.96875, 0.50000, 0.01563),
    (3, 0.1, 0.1, 1.10349, 0.10449, 0.09720, 0.00686),
    (3, 0.3, 0.2, 1.30688, 0.31488, 0.26880, 0.08518),
    (4, 0.3, 0.2, 1.37503, 0.37663, 0.29184, 0.03748),
    (4, 0.5, 0.5, 1.36719, 0.42969, 0.34375, 0.31641),
    (6, 0.5, 0.5, 1.64404, 0.65967, 0.44531, 0.17798),
]


def of(model: str, protection: str, attempts: int, p: float, q: float = 0.0, **more: Any) -> DuplicateLaw:
    case = Case(
        model=Model(model), protection=Protection(protection), attempts=attempts, response_loss=p,
        request_loss=q, **more,
    )  # fmt: skip
    return law(case)


@pytest.mark.parametrize("row", PUBLISHED)
def test_where_nothing_protects_the_published_counts_come_out(row: tuple[float, ...]) -> None:
    """The nine rows of the reference table, by the recursion and by the short formulas (DL2)."""
    attempts, p, q, *expected = row
    found = of("loss", "none", int(attempts), p, q)
    names = ("effects_mean", "duplicates_mean", "p_duplicate", "p_no_answer")
    assert [getattr(found, name) for name in names] == pytest.approx(expected, abs=6e-6)
    short = unprotected(attempts=int(attempts), response_loss=p, request_loss=q)
    assert [short[name] for name in names] == pytest.approx([getattr(found, name) for name in names])


@pytest.mark.parametrize(
    ("service", "timeout", "attempts", "effects"), [(1, 1, 3, 1.5032), (1, 2, 3, 1.1537), (2, 1, 5, 2.3329)]
)
@pytest.mark.parametrize("protection", ["none", "key-only", "key+fingerprint"])
def test_a_key_does_nothing_against_a_slow_service(
    protection: str, service: float, timeout: float, attempts: int, effects: float
) -> None:
    """Slow rather than lost: the published effects, the same without a key and with one; P(duplicate) = r."""
    r = late(service=service, timeout=timeout)
    found = of("slow", protection, attempts, r)
    assert found.effects_mean == pytest.approx(effects, abs=5e-5)
    assert found.p_duplicate == pytest.approx(r, abs=1e-12)


def test_a_crash_between_effect_and_record_defeats_a_key() -> None:
    """Key only under crashes: the published probabilities and means."""
    found = of("crash", "key-only", 3, 0.1)
    assert found.duplicates_mean == pytest.approx(0.11)
    assert found.p_duplicate == pytest.approx(0.1)
    found = of("crash", "key-only", 4, 0.05, 0.2)
    assert found.duplicates_mean == pytest.approx(0.050739, abs=5e-7)
    assert found.p_duplicate == pytest.approx(0.04864, abs=5e-6)
    tail = [unprotected_at_least(m, attempts=4, response_loss=0.05, request_loss=0.2) for m in range(5)]
    assert tail[:4] == pytest.approx([1, 0.9984, 0.04864, 0.00205], abs=5e-6)
    assert sum(tail[1:]) == pytest.approx(found.effects_mean)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.37, 1.0])
def test_the_probability_of_a_duplicate_does_not_depend_on_the_attempts(p: float) -> None:
    """DL4: with no request lost it is p from two attempts on, while the expected number still grows."""
    found = [of("loss", "none", attempts, p) for attempts in (1, 2, 3, 10, 1_000)]
    assert [one.p_duplicate for one in found] == pytest.approx([0, p, p, p, p], abs=1e-12)
    means = [one.duplicates_mean for one in found]
    assert all(more >= fewer for fewer, more in pairwise(means))
    if p < 1:
        assert means[-1] == pytest.approx(p / (1 - p))


@pytest.mark.parametrize(
    ("model", "protections"),
    [
        ("loss", "key-only key+fingerprint claim claim+lease claim+reconcile effect-side atomic"),
        ("crash", "claim claim+reconcile effect-side atomic"),
        ("slow", "claim effect-side atomic"),
    ],
)
def test_what_protects_leaves_no_duplicate_at_all(model: str, protections: str) -> None:
    """DL3: each cause has its protections, and these give 0; whatever is not named gives more."""
    q = 0.0 if model == "slow" else 0.2
    found = {protection: of(model, protection, 5, 0.3, q) for protection in Protection}
    assert {str(name) for name, one in found.items() if one.duplicates_mean == 0} == set(protections.split())
    assert all(found[name].p_duplicate == 0 for name in map(Protection, protections.split()))


def test_what_the_protections_leave() -> None:
    """A claim sticks with the probability of a death; a colliding key loses effects, or is refused."""
    assert of("crash", "claim", 4, 0.3).p_stuck == pytest.approx(0.3)
    assert of("crash", "claim", 4, 0.3, crash_before=0.1).p_stuck == pytest.approx(0.1 + 0.9 * 0.3)
    assert of("crash", "claim", 4, 0.3, crash_before=0.1).effects_mean == pytest.approx(0.9)
    keyed, told = (of("loss", name, 4, 0.3, collision=0.05) for name in ("key-only", "key+fingerprint"))
    assert (keyed.effects_lost, keyed.p_refused) == (0.05, 0.0)
    assert (told.effects_lost, told.p_refused) == (0.0, 0.05)


def test_a_lease_shorter_than_the_service_makes_duplicates() -> None:
    """A live but slow holder: P(S > L), with reconciliation as without; a crash gives P(crash) without it."""
    r = late(service=2, timeout=1)
    for protection in ("claim+lease", "claim+reconcile"):
        found = of("slow", protection, 9, r, lease=3)
        assert found.p_duplicate == pytest.approx(late(service=2, timeout=3))
    assert of("crash", "claim+lease", 9, 0.25, lease=3).p_duplicate == pytest.approx(0.25)


def test_retention_decides_what_the_effect_side_is_worth() -> None:
    """While the key is remembered nothing is done twice; where it is forgotten at once it is as without."""
    kept = [of("loss", "effect-side", 4, 0.3, 0.2, retention=n) for n in range(5)]
    assert kept[0] == of("loss", "none", 4, 0.3, 0.2)
    assert kept[0].p_duplicate > kept[1].p_duplicate > kept[2].p_duplicate > 0
    assert kept[3] == kept[4] == of("loss", "effect-side", 4, 0.3, 0.2)
    assert kept[3].p_duplicate == 0


# --- every possible course, followed one by one --------------------------------------------------------

Course = tuple[float, int, bool, bool]  # probability, effects, answered, stuck


def courses(case: Case, attempt: int = 0, effects: int = 0, done: bool = False, free: int = 0,
            known: int = 0) -> Iterator[Course]:  # fmt: skip
    """Follow one request through everything that may become of it under `loss` or `crash`."""
    name, end = case.protection, 10**9
    if attempt == case.attempts:
        yield 1.0, effects, False, free == end and not done
        return

    def later(chance: float, effects: int, done: bool, free: int, known: int) -> Iterator[Course]:
        for rest, *what in courses(case, attempt + 1, effects, done, free, known) if chance else ():
            yield (chance * rest, *what)

    def answered(chance: float, effects: int, done: bool, free: int, known: int) -> Iterator[Course]:
        unheard = 0.0 if case.model == "crash" else case.response_loss
        yield chance * (1 - unheard), effects, True, False
        yield from later(chance * unheard, effects, done, free, known)

    arrives = 1 - case.request_loss
    yield from later(case.request_loss, effects, done, free, known)
    if done:
        yield from answered(arrives, effects, done, free, known)
        return
    if name.startswith("claim"):
        if attempt < free:
            yield from later(arrives, effects, done, free, known)  # busy
            return
        free = end if name == "claim" else attempt + case.lease
    if name == "claim+reconcile" and effects:
        yield from answered(arrives, effects, True, free, known)
        return
    yield from later(arrives * case.crash_before, effects, done, free, known)
    acts = arrives * (1 - case.crash_before)
    if name != "effect-side" or attempt >= known:
        effects += 1
        known = end if case.retention is None else attempt + 1 + case.retention
    dies = case.response_loss if case.model == "crash" else 0.0
    yield from later(acts * dies, effects, name == "atomic", free, known)
    yield from answered(acts * (1 - dies), effects, name not in ("none", "effect-side"), free, known)


def slow_courses(case: Case) -> Iterator[Course]:
    """Follow one request whose service outlasts so many timeouts, all its attempts being served alike."""
    r, name = case.response_loss, case.protection
    for outlasted in range(case.attempts + 1):
        chance = r**outlasted * (1 if outlasted == case.attempts else 1 - r)
        sent = range(min(case.attempts, outlasted + 1))
        if name in ("none", "key-only", "key+fingerprint"):
            effects = len(sent)
        elif name in ("claim+lease", "claim+reconcile"):
            effects = len(sent[:: case.lease])
        elif name == "effect-side" and case.retention is not None:
            effects = len(sent[:: case.retention + 1])
        else:
            effects = 1
        yield chance, effects, outlasted < case.attempts, False


ODD = [  # attempts, response loss, request loss, and what else
    (4, 0.3, 0.2, {}),
    (5, 0.45, 0.3, {"lease": 2, "retention": 1, "crash_before": 0.15}),
    (6, 0.6, 0.1, {"lease": 3, "retention": 2, "crash_before": 0.4}),
    (5, 1.0, 0.25, {"lease": 2, "retention": 0}),
    (3, 0.0, 0.5, {"retention": 9, "lease": 9}),
    (1, 0.5, 0.5, {}),
]


@pytest.mark.parametrize("protection", Protection)
@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize("numbers", ODD)
def test_the_closed_forms_are_what_all_courses_together_give(
    model: Model, protection: Protection, numbers: tuple[int, float, float, dict[str, Any]]
) -> None:
    """DL1: every model and protection, with leases and memories of several lengths, without any sampling."""
    attempts, p, q, more = numbers
    if model is not Model.CRASH:
        more = {name: value for name, value in more.items() if name != "crash_before"}
    case = Case(
        model=model, protection=protection, attempts=attempts, response_loss=p,
        request_loss=0.0 if model is Model.SLOW else q, **more,
    )  # fmt: skip
    every = list(slow_courses(case) if model is Model.SLOW else courses(case))
    assert sum(chance for chance, *_ in every) == pytest.approx(1)
    found = law(case)
    assert found.effects_mean == pytest.approx(sum(c * effects for c, effects, *_ in every))
    beyond = sum(c * (effects - 1) for c, effects, *_ in every if effects)
    assert found.duplicates_mean == pytest.approx(beyond, abs=1e-12)
    assert found.p_duplicate == pytest.approx(sum(c for c, effects, *_ in every if effects > 1), abs=1e-12)
    assert found.p_no_answer == pytest.approx(sum(c for c, _, heard, _ in every if not heard), abs=1e-12)
    assert found.p_stuck == pytest.approx(sum(c for c, *_, stuck in every if stuck), abs=1e-12)
