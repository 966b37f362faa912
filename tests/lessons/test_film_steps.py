"""Stepping the trajectory: the pause, the choices, the branches, and going back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.stepping import Frame, MarkKind
from codeai_lab.lessons.film_play import Fails
from codeai_lab.lessons.film_recovery import EXPECTED, STORY
from codeai_lab.lessons.film_steps import FilmSteps, Standing, long_trajectory

STEPS = FilmSteps()


def to_the_choice() -> list[Standing]:
    states = [STEPS.start()]
    while not STEPS.frame(states[-1]).choices:
        states.append(STEPS.advance(states[-1]))
    return states


PATH = to_the_choice()
FAILED = PATH[-1]


def to_the_end(state: Standing) -> list[Standing]:
    states = [state]
    while not STEPS.frame(states[-1]).is_over:
        states.append(STEPS.advance(states[-1]))
    return states


def marks(states: list[Standing]) -> list[tuple[str, MarkKind]]:
    return [(frame.mark, frame.kind) for frame in map(STEPS.frame, states)]


def test_it_pauses_at_the_timeout_with_three_choices() -> None:
    """Five calls, two checkpoints, and then the choice."""
    assert marks(PATH) == [
        ("v1", MarkKind.START),
        ("plan", MarkKind.STEP),
        ("vector_search", MarkKind.STEP),
        ("get_film", MarkKind.STEP),
        ("v2", MarkKind.CHECKPOINT),
        ("vector_search", MarkKind.FAILURE),
    ]
    frame = STEPS.frame(FAILED)
    assert [choice.name for choice in frame.choices] == ["restart", "resume", "fallback"]
    assert all(choice.meaning for choice in frame.choices)
    assert frame.headline.endswith("It is paused: choose how to go on.")
    assert dict(frame.facts) == {
        "checkpoint": "v2",
        "ai-film": "verified: Ex Machina by vector_search",
        "memory-film": "open",
        "compare": "open",
        "calls": "5 of 24",
        "failures on record": "call-5: timeout",
        "policy": "not chosen",
    }


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["policy"])
def test_each_choice_is_a_branch_whose_outcome_is_its_row(row: dict[str, object]) -> None:
    """From the kept state of the failure every policy can be chosen, and the end has the comparison's row."""
    end = to_the_end(STEPS.advance(FAILED, str(row["policy"])))
    outcome = dict(STEPS.frame(end[-1]).outcome)
    kept = row["verified_kept"]
    assert isinstance(kept, list)
    assert outcome == {**row, "verified_kept": ", ".join(kept) or "none"}
    assert marks(end)[0] == (row["policy"], MarkKind.CHOICE)
    assert marks(end)[-1] == ("completed", MarkKind.END)


def test_states_are_kept_and_never_changed() -> None:
    """Going on from a state, in three ways, leaves it and its frame as they were."""
    before = (FAILED, STEPS.frame(FAILED))
    for policy in ("fallback", "restart", "resume"):
        to_the_end(STEPS.advance(FAILED, policy))
    assert (FAILED, STEPS.frame(FAILED)) == before


def test_the_same_choices_give_the_same_events() -> None:
    """A branch that is taken twice is the same branch."""
    one, two = (to_the_end(STEPS.advance(FAILED, "fallback"))[-1] for _ in range(2))
    assert one.events == two.events


def test_every_frame_is_plain_text_and_numbers() -> None:
    """A frame can be shown without a kernel: texts, and an outcome of text, numbers and truth values."""
    for state in (*PATH, *to_the_end(STEPS.advance(FAILED, "restart"))):
        frame = STEPS.frame(state)
        assert isinstance(frame, Frame)
        assert all(type(name) is type(said) is str for name, said in frame.facts)
        assert all(type(value) in (str, int, bool) for value in frame.outcome.values())
        assert frame.headline.strip()
        assert frame.mark.strip()


def test_only_what_is_offered_can_be_chosen() -> None:
    """A paused state goes on with a policy only, another one without, and one that is over not at all."""
    over = to_the_end(STEPS.advance(FAILED, "resume"))[-1]
    for state, choice in ((FAILED, None), (FAILED, "give-up"), (PATH[0], "resume"), (over, None)):
        with pytest.raises(ValueError, match=r"offered|completed"):
            STEPS.advance(state, choice)


def test_another_story_can_be_stepped() -> None:
    """A failure at another call pauses there; without a failure there is no choice at all."""
    early = FilmSteps(replace(STORY, fails=(Fails(tool="quote", nth=1),)))
    state = early.start()
    while not early.frame(state).choices:
        state = early.advance(state)
    assert early.frame(state).mark == "quote"
    clean = FilmSteps(replace(STORY, fails=()))
    state = clean.start()
    while not clean.frame(state).is_over:
        assert clean.frame(state).choices == ()
        state = clean.advance(state)
    assert clean.frame(state).outcome["policy"] == "none"


def test_a_contradiction_is_seen_as_a_refusal() -> None:
    """The step in which discovery is reopened says so."""
    steps = FilmSteps(replace(STORY, fails=(Fails(tool="get_film", nth=2, kind="contradiction"),)))
    state, seen = steps.start(), []
    while not steps.frame(state).is_over:
        state = steps.advance(state)
        seen.append(steps.frame(state))
    [refusal] = [frame for frame in seen if frame.kind is MarkKind.REFUSAL]
    assert "is searched for again: contradiction" in refusal.headline


def missing_film(answers: dict[str, str]) -> FilmSteps:
    """A story whose memory search is asked wrongly, cannot be repaired, and asks a person then."""
    limits = replace(STORY.limits, repairs=0, asks=True)
    return FilmSteps(
        replace(STORY, fails=(), limits=limits, answers=answers).seeking("memory-film", query="")
    )


@pytest.mark.parametrize(
    ("way", "answers", "recommendation"),
    [
        ("other_route", {}, "Eternal Sunshine of the Spotless Mind"),
        ("ask", {"memory-film": STORY.request.sought[1].query}, "Eternal Sunshine of the Spotless Mind"),
        ("report_missing", {}, "none; unresolved: memory-film, compare"),
    ],
)
def test_the_ways_around_a_missing_film_are_choices(
    way: str, answers: dict[str, str], recommendation: str
) -> None:
    """Where the story says so, the trajectory pauses at the missing film and a person chooses."""
    steps = missing_film(answers)
    state = steps.start()
    while not steps.frame(state).choices:
        state = steps.advance(state)
    frame = steps.frame(state)
    assert (frame.mark, frame.kind) == ("unresolved", MarkKind.REFUSAL)
    assert [choice.name for choice in frame.choices] == ["other_route", "ask", "report_missing"]
    assert all(choice.meaning for choice in frame.choices)
    state = steps.advance(state, way)
    assert (steps.frame(state).mark, steps.frame(state).kind) == (way, MarkKind.CHOICE)
    assert "policy', 'not chosen'" in str(steps.frame(state).facts)
    while not steps.frame(state).is_over:
        state = steps.advance(state)
    outcome = dict(steps.frame(state).outcome)
    assert outcome["recommendation"] == recommendation
    assert outcome["status"] == ("partial" if way == "report_missing" else "complete")
    assert outcome["provenance_changed"] == (way == "other_route")
    assert "policy" not in outcome


def test_a_question_that_nobody_answers_leaves_the_other_ways() -> None:
    """The pause goes on, with one choice fewer."""
    steps = missing_film({})
    state = steps.start()
    while not steps.frame(state).choices:
        state = steps.advance(state)
    state = steps.advance(state, "ask")
    assert [choice.name for choice in steps.frame(state).choices] == ["other_route", "report_missing"]


def test_the_long_trajectory_has_as_many_states_as_asked_for() -> None:
    """Five hundred states, in order, with a last one."""
    steps = long_trajectory(500)
    state, frames = steps.start(), []
    while True:
        frames.append(steps.frame(state))
        if frames[-1].is_over:
            break
        state = steps.advance(state)
    assert len(frames) == 500
    assert frames[-1].outcome == {"states": 500}
    assert {frame.kind for frame in frames} == {
        MarkKind.START, MarkKind.STEP, MarkKind.CHECKPOINT, MarkKind.FAILURE, MarkKind.END,
    }  # fmt: skip
    for choice in (None, "resume"):
        with pytest.raises(ValueError, match=r"over|no choice"):
            steps.advance(state, choice)
