"""Does every crash point have the effects and the outcome that are known for it?"""

from __future__ import annotations

from collections import Counter

import pytest

from codeai_lab.explore.crash_points import (
    CrashPoint,
    FollowUp,
    Verdict,
    crash_points,
    crashes_everywhere,
    judge,
    two_crashes,
)
from codeai_lab.explore.moments import Race, submit
from codeai_lab.explore.protocols import CRASHES, LEASES, Composed, rules_named
from codeai_lab.explore.schedules import every_schedule
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.run.revisions import REVISIONS

# After nothing, then after each stage: effects once a same-key retry is through; then two crashes in a row.
GOLDEN = {
    "unguarded": ([1, 1, 1, 2, 1], {1: 15, 2: 7, 3: 1}),
    "record-first": ([1, 1, 1, 0, 1], {0: 6, 1: 15}),
    "claim-in-memory": ([1, 1, 1, 1, 2, 1], {1: 23, 2: 9, 3: 1}),
    "claim-busy": ([1, 1, 1, 0, 1, 1], {0: 7, 1: 22}),
    "takeover-blind": ([1, 1, 1, 1, 2, 1], {1: 23, 2: 9, 3: 1}),
    "takeover-reconcile": ([1, 1, 1, 1, 1, 1], {1: 34}),
    "takeover-effect-side": ([1, 1, 1, 1, 1, 1], {1: 33}),
    "effect-side": ([1, 1, 1, 1, 1], {1: 23}),
    "atomic": ([1, 1, 1, 1], {1: 15}),
    "takeover-alive": ([1, 1, 1, 1, 2, 1], {1: 23, 2: 9, 3: 1}),
    "takeover-alive-reconcile": ([1, 1, 1, 1, 1, 1], {1: 34}),
    "takeover-alive-effect-side": ([1, 1, 1, 1, 1, 1], {1: 33}),
}
NOT_SAFE = {
    "unguarded": {"perform(Exception)": "duplicate"},
    "record-first": {"complete_first": "lost"},
    "claim-in-memory": {"perform(Exception)": "duplicate"},
    "claim-busy": {"claim": "stuck", "perform(Exception)": "stuck"},
    "takeover-blind": {"perform(Exception)": "duplicate"},
    "takeover-alive": {"perform(Exception)": "duplicate"},
}
EVERYWHERE = {
    "unguarded": [{1: 4, 2: 1}, {1: 61, 2: 150, 3: 20}, {1: 2_374, 2: 19_137, 3: 59_700, 4: 1_680}],
    "claim-in-memory": [{1: 5, 2: 1}, {1: 205, 2: 92}, {1: 37_015, 2: 15_933}],
    "claim-busy": [{0: 1, 1: 5}, {0: 50, 1: 247}, {0: 4_977, 1: 47_971}],
    "takeover-blind": [{1: 5, 2: 1}, {1: 205, 2: 92}, {1: 37_015, 2: 15_933}],
    "takeover-reconcile": [{1: 6}, {1: 297}, {1: 52_948}],
    "takeover-effect-side": [{1: 6}, {1: 297}, {1: 52_948}],
    "takeover-alive": [
        {1: 5, 2: 1},
        {1: 225, 2: 592, 3: 70},
        {1: 47_995, 2: 444_093, 3: 1_629_390, 4: 34_650},
    ],
    "takeover-alive-reconcile": [{1: 6}, {1: 807, 2: 280}],
    "takeover-alive-effect-side": [{1: 6}, {1: 887}],
    "atomic": [{1: 4}, {1: 61}, {1: 3_244}],
}


def same_key(name: str) -> tuple[CrashPoint, ...]:
    return crash_points(rules_named(name), follow_ups=(FollowUp.SAME_KEY,))


def test_every_composed_protocol_is_judged() -> None:
    """No protocol is dropped that nobody judges."""
    assert [rules.name for rules in (*CRASHES, *LEASES)] == list(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_crash_and_a_retry(name: str) -> None:
    """For each boundary the known number of effects, and the known outcome."""
    points = same_key(name)
    assert [point.effects for point in points] == GOLDEN[name][0]
    not_safe = {point.after[0]: str(point.verdict) for point in points if point.verdict is not Verdict.SAFE}
    assert not_safe == NOT_SAFE.get(name, {})


@pytest.mark.parametrize("name", GOLDEN)
def test_two_crashes_in_a_row(name: str) -> None:
    """For each pair of boundaries, of the first and of its retry, the known number of effects."""
    assert (
        dict(sorted(Counter(point.effects for point in two_crashes(rules_named(name))).items()))
        == (GOLDEN[name][1])
    )


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_crash_after_any_prefix_of_any_schedule(name: str) -> None:
    """One, two and three submissions die together anywhere; the effects after one more submission, exact.

    Three under the longer leases are in tests/real/test_slow_counts.py.
    """
    for submissions, effects in enumerate(EVERYWHERE[name], start=1):
        if sum(effects.values()) <= 60_000 or name == "takeover-alive":
            assert crashes_everywhere(rules_named(name), submissions) == effects


@pytest.mark.parametrize("name", ["unguarded", "claim-busy", "atomic"])
def test_a_slower_count_of_the_prefixes_agrees(name: str) -> None:
    """Each prefix of each schedule played by itself, with no two moments taken for alike."""
    rules: Composed = rules_named(name)
    prefixes = {schedule[:n] for schedule, _ in every_schedule(rules) for n in range(len(schedule) + 1)}
    counts: Counter[int] = Counter()
    for prefix in prefixes:
        race = Race(rules, 2)
        moment = race.start()
        for number in prefix:
            moment = race.after(moment, number)
        race.ledger.live_actions.clear()
        submit(race.runtime, "again", race.world).run()
        counts[len(race.world.receipts())] += 1
    assert dict(sorted(counts.items())) == crashes_everywhere(rules, 2)


@pytest.mark.parametrize("name", REVISIONS)
def test_reconciling_first_ends_with_one_effect(name: str) -> None:
    """Under every rule set, after a crash anywhere: ask the effect system, submit what is left."""
    points = crash_points(REVISIONS[name], follow_ups=(FollowUp.RECONCILE_FIRST,))
    assert len(points) == len(REVISIONS[name].stages) + 1
    assert {(point.effects, point.verdict) for point in points} == {(1, Verdict.SAFE)}


def test_lab_never_doubles_and_never_loses_under_the_same_key() -> None:
    """Between admission and completion the answer is unknown, at every other boundary it is safe."""
    assert [(point.after[0], point.effects, str(point.verdict)) for point in same_key("lab")] == [
        *((stage, 1, "safe") for stage in ("nothing", *REVISIONS["lab"].stage_names[:7])),
        ("admit", 0, "unknown"),
        ("perform(Exception)", 1, "unknown"),
        ("observe", 1, "unknown"),
        ("complete", 1, "safe"),
    ]


@pytest.mark.parametrize("name", ["7a0d43b", "a1b562a", "1b3c7a2", "88d1291"])
def test_the_historical_rules_double_between_effect_and_record(name: str) -> None:
    """A same-key retry acts again where the effect is there and its completion is not, and only there."""
    doubled = [point.after[0] for point in same_key(name) if point.effects == 2]
    assert [stage.split("(")[0] for stage in doubled] == ["perform", "observe"]
    assert {point.verdict for point in same_key(name)} == {Verdict.SAFE, Verdict.DUPLICATE}


@pytest.mark.parametrize("name", REVISIONS)
def test_a_fresh_key_doubles_whatever_has_happened(name: str) -> None:
    """No rule set sees through a fresh key: once the effect is there it is doubled, completed or not."""
    points = crash_points(REVISIONS[name], follow_ups=(FollowUp.NEW_KEY,))
    acted = next(place for place, one in enumerate(points) if one.after[0].startswith("perform"))
    assert [point.effects for point in points] == [1] * acted + [2] * (len(points) - acted)


def test_two_crashes_under_lab_and_reconciling_give_one_effect() -> None:
    """Also where the retry died too, at any of its boundaries."""
    points = two_crashes(REVISIONS["lab"], follow_up=FollowUp.RECONCILE_FIRST)
    assert {(point.effects, point.verdict) for point in points} == {(1, Verdict.SAFE)}
    assert len(points) > 100


def test_an_effect_system_that_cannot_tell_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the look-up has no answer nothing is submitted, and the caller is not told a success."""
    monkeypatch.setattr(CountedWorld, "resolve", lambda world, reference: False)
    points = crash_points(REVISIONS["lab"], follow_ups=(FollowUp.RECONCILE_FIRST,))
    unknown = [point.after[0] for point in points if point.verdict is Verdict.UNKNOWN]
    assert unknown == ["perform(Exception)", "observe"]
    assert {point.effects for point in points} == {1}


@pytest.mark.parametrize(
    ("effects", "answer", "verdict"),
    [
        (1, "succeeded", "safe"),
        (1, "replayed", "safe"),
        (1, "reconciled", "safe"),
        (0, "succeeded", "lost"),
        (0, "replayed", "lost"),
        (2, "succeeded", "duplicate"),
        (2, "refused", "duplicate"),
        (0, "refused", "unknown"),
        (1, "refused", "unknown"),
        (0, "in_progress", "stuck"),
        (1, "in_progress", "stuck"),
        (1, "IdempotencyConflictError", "unknown"),
    ],
)
def test_what_is_true_is_judged_from_effects_and_answer(effects: int, answer: str, verdict: str) -> None:
    """The world's number and the caller's answer decide, and nothing else."""
    assert judge(effects, answer) == verdict
