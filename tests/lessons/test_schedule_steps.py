"""Two submissions of one key, moved by hand."""

from __future__ import annotations

import pytest

from codeai_lab.decide.stepping import MarkKind
from codeai_lab.explore.protocols import UNGUARDED, Composed, rules_named
from codeai_lab.explore.schedules import every_schedule, play_schedule
from codeai_lab.lessons.schedule_steps import ScheduleSteps, Turn
from codeai_lab.store.memory import MemoryLedger


def along(steps: ScheduleSteps, choices: tuple[str, ...]) -> Turn:
    """Take the choices where there are any, and go on to the end."""
    state, left = steps.start(), list(choices)
    while not (frame := steps.frame(state)).is_over:
        state = steps.advance(state, left.pop(0) if frame.choices else None)
    assert left == []
    return state


@pytest.mark.parametrize("rules", [UNGUARDED, rules_named("claim-wait")], ids=lambda rules: rules.name)
def test_every_schedule_by_hand_is_what_playing_it_gives(rules: Composed) -> None:
    """Letters, effects and answers at the end are those of the schedule, played step by step (SS1)."""
    steps = ScheduleSteps(rules)
    for schedule, _ in list(every_schedule(rules))[::7]:
        outcome = steps.frame(along(steps, steps.script(schedule))).outcome
        played = play_schedule(rules, schedule, MemoryLedger(), rules.new_world())
        assert outcome == {
            "schedule": "".join("ab"[number] for number in schedule),
            "effects": played.effects,
            "a is told": played.answers[0],
            "b is told": played.answers[1],
        }


def test_where_only_one_can_move_nothing_is_asked() -> None:
    """After one is over, the other goes on by itself."""
    steps = ScheduleSteps(UNGUARDED)
    assert steps.script((0, 0, 0, 0, 1, 1)) == ("a",) * 4
    state = steps.start()
    for _ in range(4):
        state = steps.advance(state, "a")
    frame = steps.frame(state)
    assert (frame.choices, frame.is_over) == ((), False)
    assert dict(frame.facts)["a"] == "over; told: succeeded"
    with pytest.raises(ValueError, match="not offered"):
        steps.advance(state, "b")


def test_one_that_must_wait_is_not_offered() -> None:
    """Under a claim that waits, the loser stands still and the winner is the only way on (SS2)."""
    steps = ScheduleSteps(rules_named("claim-wait"))
    state, waiting = steps.start(), False
    for _ in range(40):
        frame = steps.frame(state)
        waiting = waiting or "must wait" in dict(frame.facts)["b"]
        if frame.is_over:
            break
        state = steps.advance(state, None if not frame.choices else "ab"[len(state.schedule) % 2])
    assert waiting
    assert steps.frame(state).outcome["effects"] == 1


def test_the_mark_at_which_it_doubles_is_a_failure() -> None:
    """The second effect stands out, and its mark names who moved and what was done."""
    steps = ScheduleSteps(UNGUARDED)
    state = steps.start()
    for choice in ("a", "a", "b", "b", "a", "b"):
        state = steps.advance(state, choice)
    frame = steps.frame(state)
    assert (frame.kind, frame.mark) == (MarkKind.FAILURE, "b perform(Exception)")
    assert frame.headline.endswith("The world now shows 2 effects.")
    assert dict(frame.facts)["schedule so far"] == "aabbab"


def test_moving_leaves_the_state_as_it_was() -> None:
    """From one state both ways can be taken, in any order, with the same result."""
    steps = ScheduleSteps(UNGUARDED)
    state = steps.advance(steps.start(), "a")
    before = steps.frame(state)
    ways = [steps.frame(steps.advance(state, way)) for way in "ab"]
    assert [steps.frame(steps.advance(state, way)) for way in "ba"] == ways[::-1]
    assert steps.frame(state) == before


def test_what_cannot_move_is_refused() -> None:
    """No choice where one is due, and any step at the end, are refused; so is an impossible script."""
    steps = ScheduleSteps(UNGUARDED)
    with pytest.raises(ValueError, match="not offered"):
        steps.advance(steps.start())
    with pytest.raises(ValueError, match="over"):
        steps.advance(along(steps, ("a",) * 4))
    with pytest.raises(ValueError, match="cannot move"):
        steps.script((0, 0, 0, 0, 0))
