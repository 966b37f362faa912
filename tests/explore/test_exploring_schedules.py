"""Are the schedules counted exactly, by a search that a slower and a simpler count agree with?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.protocols import PROTOCOLS, RACES, Composed, rules_named, together
from codeai_lab.explore.schedules import Explored, every_schedule, explore, play_schedule, some_schedules
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.run.acting import admit, complete, perform
from codeai_lab.run.facts import LOOK_AGAIN, Bench, Facts, Next
from codeai_lab.run.revisions import LAB, R_1B3C7A2, REVISIONS, Revision
from codeai_lab.run.stages import append_request, look_up, receive
from codeai_lab.store.memory import MemoryLedger

explored: Callable[[str, int], Explored] = cache(lambda name, n: explore(rules_named(name), n))
SHORT = [rules.name for rules in RACES if len(rules.revision.stages) <= 5]

TWO = {
    "unguarded": {1: 10, 2: 60},
    "claim-busy": {1: 92},
    "claim-wait": {1: 42},
    "lock": {1: 12},
    "lock-after-look-up": {1: 12, 2: 30},
    "atomic": {1: 20},
    "atomic-unchecked": {1: 8, 2: 12},
    "effect-side": {1: 70},
    "seven-step": {1: 16, 2: 3_416},
}
THREE = {
    "unguarded": {1: 210, 2: 3_480, 3: 23_940},
    "claim-busy": {1: 18_168},
    "claim-wait": {1: 4_338},
    "lock": {1: 324},
    "lock-after-look-up": {1: 288, 2: 3_420, 3: 2_520},
    "atomic": {1: 1_152},
    "atomic-unchecked": {1: 144, 2: 468, 3: 540},
    "effect-side": {1: 27_630},
}


def test_every_composed_race_has_its_numbers() -> None:
    """No protocol is counted that nobody judges."""
    assert [rules.name for rules in RACES] == list(TWO)
    assert list(THREE) == SHORT


@pytest.mark.parametrize("name", TWO)
def test_two_submissions_are_counted_exactly(name: str) -> None:
    """For each protocol the known number of schedules with one effect and with two."""
    assert explored(name, 2).effects == TWO[name]
    assert explored(name, 2).schedules == sum(TWO[name].values())


@pytest.mark.parametrize("name", THREE)
def test_three_submissions_are_counted_exactly(name: str) -> None:
    """For each protocol of up to five stages the known number of schedules with one, two, three effects."""
    assert explored(name, 3).effects == THREE[name]


@pytest.mark.parametrize("name", SHORT)
def test_a_slower_count_agrees(name: str) -> None:
    """Playing every schedule, with no two moments taken for alike, gives the same endings."""
    rules = rules_named(name)
    counted: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for _, moment in every_schedule(rules):
        counted[moment.effects, tuple(sorted(answer or "stuck" for answer in moment.answers))] += 1
    found = {(one.effects, one.answers): share.schedules for one, share in explored(name, 2).endings.items()}
    assert counted == found


def test_the_loser_of_a_claim_is_busy_or_handed_the_outcome() -> None:
    """What the callers are told under a claim, counted."""
    assert explored("claim-busy", 2).answers == {
        ("in_progress", "succeeded"): 50,
        ("replayed", "succeeded"): 42,
    }
    assert explored("claim-busy", 3).answers == {
        ("in_progress", "in_progress", "succeeded"): 7_080,
        ("in_progress", "replayed", "succeeded"): 6_750,
        ("replayed", "replayed", "succeeded"): 4_338,
    }


@pytest.mark.parametrize(
    ("name", "submissions", "chances"),
    [
        ("unguarded", 2, {1: Fraction(3, 8), 2: Fraction(5, 8)}),
        ("lock-after-look-up", 2, {1: Fraction(7, 32), 2: Fraction(25, 32)}),
        ("atomic-unchecked", 2, {1: Fraction(5, 8), 2: Fraction(3, 8)}),
        ("unguarded", 3, {1: Fraction(53, 243), 2: Fraction(940, 2187), 3: Fraction(770, 2187)}),
    ],
)
def test_a_fair_coin_weighs_schedules_otherwise(
    name: str, submissions: int, chances: dict[int, Fraction]
) -> None:
    """The probabilities under a fair coin at every step are exact fractions, far from shares of schedules."""
    assert explored(name, submissions).fair_coin == chances


@pytest.mark.parametrize("name", [*TWO, *REVISIONS])
def test_probabilities_add_up(name: str) -> None:
    """Every schedule ends in exactly one way (SC1)."""
    assert sum(explored(name, 2).fair_coin.values()) == 1


UNGUARDED = ["unguarded", "seven-step", "7a0d43b", "a1b562a", "1b3c7a2", "88d1291"]


@pytest.mark.parametrize("name", UNGUARDED)
def test_unguarded_rules_have_a_closed_form(name: str) -> None:
    """Two submissions of m stages, p before the look-up: C(2m, m) schedules, 2 C(m+p, p) with one effect."""
    names = rules_named(name).revision.stage_names
    m, p = len(names), next(place for place, one in enumerate(names) if one.startswith("look_up"))
    found = explored(name, 2)
    assert found.schedules == comb(2 * m, m)
    assert found.effects == {1: 2 * comb(m + p, p), 2: comb(2 * m, m) - 2 * comb(m + p, p)}


def drawn_by_hand(m: int, look: int, leave: int, submissions: int) -> dict[int, int]:
    """Count the schedules of an unguarded protocol on paper: places and what was seen, no stage of ours."""

    @cache
    def count(walks: tuple[tuple[int, bool], ...]) -> tuple[int, ...]:
        """Give the schedules from here on, in the place of their number of effects."""
        counts: list[tuple[int, ...]] = []
        done = (m, False) in walks
        for number, (place, saw) in enumerate(walks):
            if place == (leave + 1 if saw else m):
                continue
            moved = (place + 1, done if place == look else saw)
            counts.append(count(tuple(sorted((*walks[:number], moved, *walks[number + 1 :])))))
        if counts:
            return tuple(map(sum, zip(*counts, strict=True)))
        effects = sum(not saw for _, saw in walks)
        return tuple(int(number == effects) for number in range(submissions + 1))

    counted = enumerate(count(((0, False),) * submissions))
    return {effects: schedules for effects, schedules in counted if schedules}


@pytest.mark.parametrize(("name", "submissions"), [*((name, 2) for name in UNGUARDED), ("unguarded", 3)])
def test_a_count_on_paper_agrees(name: str, submissions: int) -> None:
    """Positions on paper, without events, walks or stages, give the numbers that the real stages give."""
    names = rules_named(name).revision.stage_names
    look = next(place for place, one in enumerate(names) if one.startswith("look_up"))
    leave = next(place for place, one in enumerate(names) if one.endswith("replay"))
    assert explored(name, submissions).effects == drawn_by_hand(len(names), look, leave, submissions)


def test_the_count_on_paper_of_three_under_the_first_rules() -> None:
    """Eight stages, look-up second: the number that the real stages give, which takes them a second."""
    assert drawn_by_hand(8, 1, 2, 3) == {1: 1_836, 2: 3_400_596, 3: 9_427_541_508}


def lab_on_paper(submissions: int) -> int:
    """Count the schedules of `lab` on paper: places, the length of the log and what it says of the key."""

    @cache
    def count(log: int, key: str, walks: tuple[tuple[int, int, str], ...]) -> int:
        total, over = 0, True
        for number, (place, guard, seen) in enumerate(walks):
            if place == 11:
                continue
            over = False
            others = (*walks[:number], *walks[number + 1 :])
            length, state = log, key
            if place == 1:
                moved = (2, log, key)
            elif (place == 4 and seen == "open") or (place == 5 and seen == "decided"):
                moved = (11, 0, "") if guard == log else (1, 0, "")
                length += guard == log
            elif place == 7:
                moved = (8, 0, "") if guard == log else (1, 0, "")
                length, state = (log + 1, "open") if guard == log else (log, key)
            elif place == 10:
                moved, length, state = (11, 0, ""), log + 1, "decided"
            else:
                moved = (place + 1, guard, seen)
            total += count(length, state, tuple(sorted((*others, moved))))
        return 1 if over else total

    return count(0, "free", ((0, 0, ""),) * submissions)


@pytest.mark.parametrize("submissions", [2, 3])
def test_lab_has_one_effect_under_every_schedule(submissions: int) -> None:
    """All of them, in the number that a count on paper gives."""
    assert explored("lab", submissions).effects == {1: lab_on_paper(submissions)}
    assert explored("lab", submissions).shortest_bad is None


def test_the_number_of_schedules_depends_on_what_is_one_step() -> None:
    """The chapter's rules with look-up to replay as one step have fewer schedules than with four."""
    joined = Revision(
        name="joined", stages=(R_1B3C7A2.stages[0], together(*R_1B3C7A2.stages[1:5]), *R_1B3C7A2.stages[5:])
    )
    assert explore(joined).schedules == comb(12, 6)
    assert explored("1b3c7a2", 2).schedules == comb(18, 9)


@pytest.mark.parametrize("name", ["unguarded", "lock-after-look-up", "atomic-unchecked", "1b3c7a2"])
def test_the_shortest_bad_schedule_is_bad_and_none_is_shorter(name: str) -> None:
    """Played for real it has more than one effect; with one step less somebody is still under way."""
    rules, bad = rules_named(name), explored(name, 2).shortest_bad
    assert bad is not None
    played = play_schedule(rules, bad, MemoryLedger(), CountedWorld())
    assert played.effects == 2
    assert None not in played.answers
    if name in SHORT:
        assert len(bad) == min(len(one) for one, moment in every_schedule(rules) if moment.effects > 1)


def test_the_probes_window_is_36_of_the_70() -> None:
    """Held at a barrier between look-up and effect, both look before both act: 36 schedules, all with two."""
    probes = []
    for schedule, moment in every_schedule(PROTOCOLS["unguarded"]):
        played = play_schedule(PROTOCOLS["unguarded"], schedule, MemoryLedger(), CountedWorld())
        assert played.effects == moment.effects
        assert played.answers == moment.answers
        if played.looked_before_acting:
            probes.append(played.effects)
    assert probes == [2] * 36


def test_every_share_shows_a_schedule_that_ends_so() -> None:
    """The shortest schedule of each ending, numbered in this race's own way, ends as it says (SC3)."""
    for name, submissions in [("claim-busy", 3), ("lock-after-look-up", 3), ("unguarded", 3), ("lab", 3)]:
        rules = rules_named(name)
        for ending, share in explored(name, submissions).endings.items():
            played = play_schedule(
                rules, share.shortest, MemoryLedger(), rules.new_world(), submissions=submissions
            )
            assert played.effects == ending.effects
            assert tuple(sorted(answer or "stuck" for answer in played.answers)) == ending.answers


def test_a_played_step_says_who_moved_and_what_was_recorded() -> None:
    """Each step names the walk, its stage, the kinds that it recorded and the effects so far."""
    steps = play_schedule(LAB, (0,) * 11, MemoryLedger(), CountedWorld()).steps
    assert [step.stage for step in steps] == list(LAB.stage_names)
    assert [step.recorded for step in steps if step.recorded] == [
        ("action.requested", "action.claimed", "action.execution_started"),
        ("action.completed",),
    ]
    assert [step.effects for step in steps] == [0] * 8 + [1] * 3


def test_a_prefix_leaves_nobody_alive() -> None:
    """A schedule may stop early: its walks are dropped, and who could have moved is said."""
    ledger = MemoryLedger()
    played = play_schedule(PROTOCOLS["claim-wait"], (0, 0, 0, 1, 1), ledger, CountedWorld())
    assert played.answers == (None, None)
    assert played.could_move == (0,)
    assert ledger.live_actions == set()


@pytest.mark.parametrize("schedule", [(0, 0, 0, 1, 1, 1), (0,) * 6, (2,)], ids=["waits", "over", "nobody"])
def test_a_walk_that_cannot_move_is_not_moved(schedule: tuple[int, ...]) -> None:
    """A schedule that moves a walk which must wait, is over or is not there is refused, by its step."""
    with pytest.raises(RefusedRequestError, match=f"Step {len(schedule)} moves walk {schedule[-1]}"):
        play_schedule(PROTOCOLS["claim-wait"], schedule, MemoryLedger(), CountedWorld())


def test_drawn_schedules_are_the_same_for_the_same_seed() -> None:
    """A seed gives its schedules again, and each of them ends as it does when it is played."""
    drawn = [schedule for schedule, _ in some_schedules(LAB, 20, seed=7)]
    assert drawn == [schedule for schedule, _ in some_schedules(LAB, 20, seed=7)]
    assert len(set(drawn)) == 20
    for schedule, moment in some_schedules(LAB, 20, seed=7):
        assert play_schedule(LAB, schedule, MemoryLedger(), CountedWorld()).answers == moment.answers


def test_who_waits_for_ever_is_stuck() -> None:
    """Where nobody can move and not all are over the schedule ends, and says so (SC2)."""
    rules = Composed(
        revision=Revision(name="all wait", stages=(append_request, look_up, perform(Exception), complete)),
        waits={"look_up": lambda ledger, facts: True},
    )
    assert explore(rules).answers == {("stuck", "stuck"): 2}


def test_a_rule_set_without_an_end_is_refused() -> None:
    """A stage that always looks again would make the search endless; it is named instead."""

    def restless(_: Bench, facts: Facts) -> Next:
        return LOOK_AGAIN

    with pytest.raises(RefusedRequestError, match="Under restless walks can go round for ever"):
        explore(Revision(name="restless", stages=(receive, look_up, restless)))


@pytest.mark.parametrize("submissions", [0, 5])
def test_a_race_has_few_submissions(submissions: int) -> None:
    """Nobody and a crowd are refused."""
    with pytest.raises(RefusedRequestError):
        explore(LAB, submissions)


def test_a_rule_set_of_a_reader_is_explored_like_any_other() -> None:
    """`lab` without its condition on the key, composed here, doubles; the stages alone decide."""

    def admit_blindly(bench: Bench, facts: Facts) -> Next:
        return admit(bench, replace(facts, guard=None))

    hasty = Revision(
        name="hasty",
        stages=tuple(admit_blindly if stage is admit else stage for stage in LAB.stages),
    )
    found = explore(hasty)
    assert set(found.effects) == {1, 2}
    assert found.shortest_bad is not None


def test_one_submission_has_one_schedule() -> None:
    """Alone, every rule set gives one effect in one way."""
    for name in (*REVISIONS, *PROTOCOLS):
        assert explore(rules_named(name), 1).effects == {1: 1}
