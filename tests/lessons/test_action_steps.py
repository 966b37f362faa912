"""One action stage by stage, with deaths and comings-back that a person chooses."""

from __future__ import annotations

import pytest

from codeai_lab.decide.stepping import Frame, MarkKind
from codeai_lab.explore.crash_points import FollowUp, crash_points
from codeai_lab.lessons.action_steps import AGAIN, ASK, DIE, GO_ON, STOP, ActionSteps, Standing, death_after
from codeai_lab.run.revisions import LAB, R_1B3C7A2, R_88D1291, REVISIONS, Revision


def along(steps: ActionSteps, *choices: str) -> Standing:
    """Take choices, and go on from there to the end where that is one of the ways."""
    state = steps.start()
    for choice in choices:
        state = steps.advance(state, choice)
    while GO_ON in {choice.name for choice in steps.frame(state).choices}:
        state = steps.advance(state, GO_ON)
    return state


def outcome(rules: Revision, *choices: str) -> dict[str, object]:
    steps = ActionSteps(rules)
    frame = steps.frame(along(steps, *choices))
    assert frame.is_over
    return dict(frame.outcome)


def fact(frame: Frame, name: str) -> str:
    return dict(frame.facts)[name]


@pytest.mark.parametrize("rules", REVISIONS.values(), ids=lambda rules: rules.name)
def test_a_death_at_every_boundary_ends_as_the_sweep_says(rules: Revision) -> None:
    """Entered on foot, each boundary gives the effects, the answer and the verdict of the sweep."""
    points = crash_points(rules, follow_ups=(FollowUp.SAME_KEY,))
    for died, point in enumerate(points[: len(rules.stages)]):
        found = outcome(rules, *[GO_ON] * died, DIE, AGAIN)
        assert found == {
            "rules": rules.name,
            "died after": point.after[0],
            "effects": point.effects,
            "the last caller was told": point.answer,
            "verdict": point.verdict,
        }


def test_the_gap_between_effect_and_record() -> None:
    """Dead after the effect: the old rules double it, `lab` refuses, and asking the world settles it."""
    for rules, then, effects, told in (
        (R_1B3C7A2, AGAIN, 2, "succeeded"),
        (LAB, AGAIN, 1, "refused"),
        (LAB, ASK, 1, "replayed"),
        (R_88D1291, ASK, 2, "succeeded"),
    ):
        after = (AGAIN,) if then == ASK else ()
        found = outcome(rules, *death_after(rules, "perform", then=then), *after)
        assert (found["effects"], found["the last caller was told"]) == (effects, told)


def test_what_a_frame_says_at_the_gap() -> None:
    """The world shows the effect, and the record alone leaves it unknown: both are there to be read."""
    steps = ActionSteps(LAB)
    state = steps.start()
    for choice in death_after(LAB, "perform")[:-2]:
        state = steps.advance(state, choice)
    frame = steps.frame(state)
    assert frame.kind is MarkKind.FAILURE
    assert fact(frame, "the ledger holds") == "action.requested, action.claimed, action.execution_started"
    assert fact(frame, "the world shows") == "1 effect"
    assert fact(frame, "the record alone says") == "request 1: effect unknown, next reconcile_effect"
    assert [choice.name for choice in frame.choices] == [AGAIN, ASK, STOP]


def test_the_second_effect_is_marked_as_the_failure_that_it_is() -> None:
    """The mark at which the effect doubles stands out on the time line."""
    steps = ActionSteps(R_1B3C7A2)
    state = along(steps, *death_after(R_1B3C7A2, "perform"))
    assert steps.frame(state).kind is MarkKind.END
    state = steps.start()
    for choice in (*death_after(R_1B3C7A2, "perform"), *[GO_ON] * 6):
        state = steps.advance(state, choice)
    assert (steps.frame(state).kind, state.moment.effects) == (MarkKind.FAILURE, 2)


def test_going_on_leaves_the_state_as_it_was() -> None:
    """From one state every way can be taken, in any order and again, with the same result."""
    steps = ActionSteps(LAB)
    gap = steps.start()
    for choice in death_after(LAB, "perform")[:-2]:
        gap = steps.advance(gap, choice)
    before = steps.frame(gap)
    first = [steps.frame(steps.advance(gap, way)) for way in (ASK, AGAIN, STOP)]
    again = [steps.frame(steps.advance(gap, way)) for way in (STOP, AGAIN, ASK)]
    assert first == again[::-1]
    assert steps.frame(gap) == before


def test_nobody_comes_back() -> None:
    """A story can end with the gap: one effect, nobody told, verdict unknown."""
    found = outcome(LAB, *death_after(LAB, "perform")[:-2], STOP)
    assert (found["effects"], found["the last caller was told"], found["verdict"]) == (
        1,
        "nothing",
        "unknown",
    )


def test_the_next_process_may_die_too() -> None:
    """With three requests two may die; both deaths stand in the outcome."""
    steps = ActionSteps(R_1B3C7A2, requests=3)
    dies = death_after(R_1B3C7A2, "perform")[:-2]
    frame = steps.frame(along(steps, *dies, AGAIN, *dies, AGAIN))
    assert frame.outcome["died after"] == "perform(Exception), perform(Exception)"
    assert frame.outcome["effects"] == 3


@pytest.mark.parametrize("choice", [None, AGAIN, "fly"])
def test_only_what_is_offered_goes_on(choice: str | None) -> None:
    """A choice that is missing, elsewhere or unknown is refused, and so is any at the end."""
    steps = ActionSteps(LAB)
    with pytest.raises(ValueError, match="not offered"):
        steps.advance(steps.start(), choice)
    with pytest.raises(ValueError, match="over"):
        steps.advance(along(steps, DIE, STOP), choice)
