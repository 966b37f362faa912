"""The finished runs of a stepper, side by side."""

from __future__ import annotations

from dataclasses import replace

from traces import Fork, Long, State, Turns

from codeai_lab.decide.stepping import Frame
from codeai_lab.show.finished_runs import comparison, run_name
from codeai_lab.show.stepping_model import SteppingModel


def test_nothing_is_compared_before_a_run_is_over() -> None:
    """There is no table without a row."""
    model = SteppingModel(Fork())
    model.play()
    assert comparison(model) is None


def test_each_finished_branch_is_one_row() -> None:
    """Rows are in the order of finishing, named by number and choices; coming there again adds none (FR1)."""
    model = SteppingModel(Fork())
    model.play_script([["right"], ["left"], ["right"]])
    table = comparison(model)
    assert table is not None
    assert table.head == ("run", "way", "steps")
    assert table.body == (("1 right", "right", "5"), ("2 left", "left", "5"))


def test_many_choices_are_named_in_short() -> None:
    """The same choice several times in a row is said one time, with a number; columns are named in words."""
    model = SteppingModel(Turns())
    model.play_script([["a", "a", "b"]])
    table = comparison(model)
    assert table is not None
    assert table.head == ("run", "moves made")
    assert run_name(model, model.here) == "1 a x2, b x3"


def test_a_run_without_choices_has_its_number() -> None:
    """Where nothing was chosen, the number is the name."""
    model = SteppingModel(Long(3))
    model.play()
    assert run_name(model, model.here) == "1"


class Uneven(Fork):
    """A fork whose left way says less at its end."""

    def frame(self, state: State) -> Frame:
        frame = super().frame(state)
        return replace(frame, outcome={"way": "left"}) if frame.is_over and state[3] == "left" else frame


def test_what_a_run_does_not_say_is_a_dash() -> None:
    """A column that one row has is there for all (FR2)."""
    model = SteppingModel(Uneven())
    model.play_script([["left"], ["right"]])
    table = comparison(model)
    assert table is not None
    assert table.body == (("1 left", "left", "-"), ("2 right", "right", "5"))
