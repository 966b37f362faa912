"""A number to choose, by hand or from a list, and the table that belongs to it."""

from __future__ import annotations

from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.show.choosers import Chooser, chooser

CHOICES = {1: "aabb", 2: "abab", 3: "abba", 4: "<b>"}
WIDGET = "application/vnd.jupyter.widget-view+json"


class Model:
    """Gives one row for a number, and keeps what it was asked; 3 is refused, 4 breaks."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.interrupted = False

    def __call__(self, number: int) -> list[dict[str, Any]]:
        self.asked.append(number)
        if self.interrupted:
            raise KeyboardInterrupt
        if number == 3:
            raise RefusedRequestError("Step 2 moves walk 1, which cannot move there.")
        if number == 4:
            raise OSError("disk at some/secret/path <full>")
        return [{"step": n + 1, "walk": "ab"[n % 2]} for n in range(number)]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def shown(model: Model) -> Chooser:
    return chooser(model, CHOICES, what="schedule")


def all_say(shown: Chooser, number: int) -> bool:
    """Say whether number, field, list and table are at one number."""
    return (
        shown.chosen == shown.number_field.value == shown.list_field.value == number
        and f"schedule {number}  {CHOICES[number]}" in shown.area.value
        and repr(shown).startswith(f"schedule {number}  {CHOICES[number]}")
    )


def test_the_first_is_shown_at_once(shown: Chooser, model: Model) -> None:
    """Nothing needs to be pressed: the first choice is asked for one time."""
    assert all_say(shown, 1)
    assert model.asked == [1]


def test_another_one_can_be_the_first(model: Model) -> None:
    """The number to begin with can be given."""
    assert all_say(chooser(model, CHOICES, what="schedule", chosen=2), 2)


def test_typing_and_choosing_are_one_thing(shown: Chooser, model: Model) -> None:
    """Whichever is used, the other follows, and the function is asked once for each (CH1)."""
    shown.number_field.value = 2
    assert all_say(shown, 2)
    shown.list_field.value = 1
    assert all_say(shown, 1)
    shown.choose(2)
    assert all_say(shown, 2)
    assert model.asked == [1, 2, 1, 2]


def test_a_number_that_there_is_not(shown: Chooser, model: Model) -> None:
    """A sentence says which there are, nothing is picked in the list, the function is not asked."""
    shown.number_field.value = 71
    assert shown.area.value == "<p>There is no schedule 71; there are 1 to 4.</p>"
    assert repr(shown) == "There is no schedule 71; there are 1 to 4."
    assert shown.list_field.value is None
    assert model.asked == [1]
    shown.list_field.value = 2
    assert all_say(shown, 2)


def test_numbers_with_gaps_are_listed(model: Model) -> None:
    """Where numbers are missing in between, all that there are are named."""
    assert repr(chooser(model, {2: "x", 7: "y"}, chosen=5)) == "There is no number 5; there are 2, 7."


def test_a_refusal_is_said_and_the_next_number_works(shown: Chooser) -> None:
    """An error of ours is its own sentence, in place of the table (CH2)."""
    shown.number_field.value = 3
    assert shown.area.value == "<p>schedule 3  abba: Step 2 moves walk 1, which cannot move there.</p>"
    shown.number_field.value = 2
    assert all_say(shown, 2)


def test_another_error_is_named_and_nothing_of_it_leaks(shown: Chooser) -> None:
    """Of an error that is not ours the type is said, not the text; what is said is escaped (CH2)."""
    shown.list_field.value = 4
    assert shown.area.value == "<p>schedule 4  &lt;b&gt;: it ended in OSError.</p>"


def test_an_interrupt_comes_through_and_leaves_what_was_shown(shown: Chooser, model: Model) -> None:
    """Field, list and table go back to the number that is shown, and the next one works (CH1, CH2)."""
    model.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        shown.number_field.value = 2
    assert all_say(shown, 1)
    model.interrupted = False
    shown.number_field.value = 2
    assert all_say(shown, 2)


def test_no_rows_are_said(model: Model) -> None:
    """A function that gives nothing leaves a sentence, not an empty table."""
    assert repr(chooser(lambda _: [], {1: "x"})) == "number 1  x: there is nothing to show."


def test_rows_that_are_none_are_an_error_like_any_other() -> None:
    """A function that does not give mappings is named by what it ended in."""
    assert repr(chooser(lambda _: [1], {1: "x"})) == "number 1  x: it ended in TypeError."  # type: ignore[list-item]


def test_page_and_text_are_those_of_what_is_shown(shown: Chooser) -> None:
    """The stored output is the widget, the page for who has no kernel, and the text (CH3)."""
    shown.number_field.value = 2
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "text/html", "text/plain"}
    assert bundle["text/html"] == shown.area.value
    assert "schedule 2  abab" in bundle["text/html"]
    assert bundle["text/plain"] == repr(shown)
    assert repr(shown).splitlines() == [
        "schedule 2  abab", "", "step  walk", "----  ----", "   1  a", "   2  b",
    ]  # fmt: skip


def test_the_same_choice_gives_the_same_text() -> None:
    """Two choosers differ in no byte of text or page: no address, no widget id (CH3)."""
    one, other = (chooser(Model(), CHOICES, what="schedule") for _ in range(2))
    assert repr(one) == repr(other)
    assert one.area.value == other.area.value


def test_the_list_names_every_choice(shown: Chooser) -> None:
    """The list shows each number with its words."""
    assert [label for label, _ in shown.list_field.options] == ["1  aabb", "2  abab", "3  abba", "4  <b>"]


def test_nothing_to_choose_from_is_refused(model: Model) -> None:
    """One sentence where there are no choices."""
    with pytest.raises(RefusedValueError, match="there is nothing to choose from"):
        chooser(model, {})
