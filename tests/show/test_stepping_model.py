"""Where a reader is in what is stepped: kept states, branches, and their comparison."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traces import Fork, Long, Turns

from codeai_lab.errors import RefusedRequestError
from codeai_lab.show.stepping_model import SteppingModel, trouble_of


@pytest.fixture
def fork() -> Fork:
    return Fork()


@pytest.fixture
def model(fork: Fork) -> SteppingModel:
    return SteppingModel(fork)


def marks(model: SteppingModel) -> list[str]:
    return [state.frame.mark for state in model.line()]


def along(model: SteppingModel, way: str) -> None:
    """Go from the start along one way to the end."""
    model.to_start()
    model.play_until_asked()
    model.step(way)
    model.play()


def test_a_model_stands_at_the_first_state(model: SteppingModel, fork: Fork) -> None:
    """Nothing is asked for before the first step."""
    assert (model.frame.mark, model.place, model.length) == ("start", 0, 1)
    assert fork.asked == []


def test_back_and_forth_show_the_very_same_frames(model: SteppingModel, fork: Fork) -> None:
    """A state that was reached is kept: it is the same object, and is never asked for again (SM1)."""
    seen = [model.here]
    for _ in range(2):
        model.step()
        seen.append(model.here)
    asked = list(fork.asked)
    assert model.back() is seen[1].frame
    assert model.back() is seen[0].frame
    assert [model.step(), model.step()] == [seen[1].frame, seen[2].frame]
    assert model.here is seen[2]
    assert model.here.state is seen[2].state
    assert fork.asked == asked
    assert len(model.line()) == 3


def test_another_choice_begins_another_branch(model: SteppingModel) -> None:
    """The states up to the choice are shared, and both branches are kept."""
    along(model, "left")
    left = model.line()
    along(model, "right")
    assert marks(model) == ["start", "s1", "s2", "right", "s4", "s5"]
    assert model.line()[:3] == left[:3]
    assert model.finished() == (left[-1], model.here)


def test_an_old_branch_comes_back_whole(model: SteppingModel, fork: Fork) -> None:
    """Choosing what was chosen before shows what was seen of it, ahead too, and asks for nothing (SM1)."""
    along(model, "left")
    left = model.line()
    along(model, "right")
    asked = len(fork.asked)
    model.to_start()
    model.step()
    model.step()
    model.step("left")
    assert model.line() == left
    assert (model.place, model.length, len(fork.asked)) == (3, 6, asked)


def test_a_choice_must_be_made_where_one_is_offered(model: SteppingModel) -> None:
    """Nothing is chosen for the reader at a new offer; what there is to choose from is said."""
    model.play()
    assert (model.frame.mark, model.selected, model.can_go_on) == ("s2", None, False)
    with pytest.raises(RefusedRequestError, match="Choose first; there are: LEFT, RIGHT, BAD"):
        model.step()
    model.choose("right")
    assert (model.selected, model.can_go_on) == ("right", True)
    assert model.step().mark == "right"


def test_what_is_not_offered_is_refused(model: SteppingModel) -> None:
    """A choice that is not there is refused, where there are others and where there are none."""
    with pytest.raises(RefusedRequestError, match="there is nothing to choose"):
        model.step("left")
    model.play()
    with pytest.raises(RefusedRequestError, match="not offered here; there are: LEFT"):
        model.choose("up")
    assert model.selected is None


def test_the_ends_are_said(model: SteppingModel) -> None:
    """Before the first state and after the last there is a sentence, and nothing moves."""
    with pytest.raises(RefusedRequestError, match="This is the beginning"):
        model.back()
    along(model, "left")
    with pytest.raises(RefusedRequestError, match="This run is over"):
        model.step()
    assert model.frame.is_over


@pytest.mark.parametrize(
    "breaks",
    [lambda model: model.step("bad"), lambda model: model.choose("bad") or model.step()],
    ids=["given", "chosen"],
)
def test_a_step_that_raises_changes_nothing(
    model: SteppingModel, breaks: Callable[[SteppingModel], object]
) -> None:
    """The error comes through, and line, place and the next step are as if it had not been tried (SM2)."""
    model.play()
    before = (model.line(), model.place, model.frame)
    with pytest.raises(OSError, match="secret"):
        breaks(model)
    assert (model.line(), model.place, model.frame) == before
    assert model.step("left").mark == "left"


def test_a_way_that_is_offered_again_stays_chosen() -> None:
    """Where the same choices come again, the last one taken goes on; back shows what was taken there."""
    model = SteppingModel(Turns())
    model.step("a")
    assert model.selected == "a"
    model.step("b")
    model.play()
    assert model.frame.headline == "Moved: abbbb."
    model.to_start()
    assert model.selected == "a"


def test_finished_branches_are_listed_one_time(model: SteppingModel) -> None:
    """They stand in the order of finishing; coming to an end again adds nothing (SM3)."""
    assert model.finished() == ()
    for way in ("right", "left", "right"):
        along(model, way)
    assert [end.frame.outcome["way"] for end in model.finished()] == ["right", "left"]


def test_a_script_plays_branches_from_the_start(model: SteppingModel) -> None:
    """Each branch takes its choices and goes on as far as it can; an empty one stops at the first choice."""
    model.play_script([[]])
    assert marks(model) == ["start", "s1", "s2"]
    model.play_script([["left"], ["right"]])
    assert [end.frame.outcome["way"] for end in model.finished()] == ["left", "right"]
    with pytest.raises(RefusedRequestError, match="not offered"):
        model.play_script([["up"]])


def test_a_run_without_an_end_is_left() -> None:
    """Playing what never ends stops with a sentence."""
    with pytest.raises(RefusedRequestError, match="not over after"):
        SteppingModel(Long(None)).play()


def test_the_ends_of_all_branches_are_known(model: SteppingModel) -> None:
    """A branch that was left half-way has an end too."""
    along(model, "left")
    model.to_start()
    model.play_until_asked()
    model.step("right")
    assert [end.frame.mark for end in model.ends()] == ["s5", "right"]
    assert [state.frame.mark for state in model.branch(model.ends()[1])] == ["start", "s1", "s2", "right"]


def test_whoever_watches_is_told_what_is_new(model: SteppingModel) -> None:
    """After each change, how much of the line is as it was: all for back, the stem for a branch (SM4)."""
    told: list[tuple[int, int]] = []
    model.watchers.append(lambda: told.append((model.unchanged, model.length)))
    model.step()
    model.step()
    model.back()
    model.step()
    model.step("left")
    model.back()
    model.choose("right")
    model.step()
    assert told == [(1, 2), (2, 3), (3, 3), (3, 3), (3, 4), (4, 4), (4, 4), (3, 4)]


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (lambda fork: None, ""),
        (lambda fork: SteppingModel(fork).back(), "This is the beginning; there is nothing before it."),
        (
            lambda fork: fork.advance((), "bad"),
            "The step ended in OSError; everything is as it was before it.",
        ),
    ],
    ids=["none", "ours", "another"],
)
def test_trouble_is_one_sentence(fork: Fork, do: Callable[[Fork], object], said: str) -> None:
    """An error of ours is its own sentence; of another one the type is said, and nothing of its text."""
    assert trouble_of(lambda: do(fork)) == said


def test_an_interrupt_is_not_held_back(fork: Fork) -> None:
    """Who interrupts a step gets out of it."""
    fork.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        trouble_of(lambda: fork.advance((), "bad"))
