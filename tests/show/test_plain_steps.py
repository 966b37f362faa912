"""The plain view: built-in controls on the same model."""

from __future__ import annotations

import pytest
from traces import Fork, Long

from codeai_lab.show.plain_steps import PlainStepper
from codeai_lab.show.steppers import stepper


@pytest.fixture
def fork() -> Fork:
    return Fork()


@pytest.fixture
def shown(fork: Fork) -> PlainStepper:
    return stepper(fork, script=[["left"], ["right"]], view="plain")


def test_it_shows_what_the_model_says(shown: PlainStepper) -> None:
    """Line, headline, facts, choices and comparison follow each press, escaped (PS1)."""
    assert shown.status.value == "<p>State 1 &amp; start.</p>"
    shown.step_button.click()
    assert "Mark 2 of 2: start &rarr; <strong>s1 (here)</strong>" in shown.line.value
    assert shown.choices.layout.display == "none"
    shown.step_button.click()
    assert shown.choices.options == (
        ("LEFT: the left way", "left"),
        ("RIGHT: the right way", "right"),
        ("BAD: the bad way", "bad"),
    )
    assert (shown.choices.value, shown.choices.layout.display) == (None, "")
    shown.choices.value = "right"
    shown.play_button.click()
    assert shown.model.frame.is_over
    assert "1 right" in shown.comparison.value
    shown.back_button.click()
    assert "Mark 5 of 6" in shown.line.value
    assert "length" in shown.facts.value


def test_back_at_a_choice_shows_what_was_chosen(shown: PlainStepper) -> None:
    """The choice that was taken is shown as chosen, and showing it chooses nothing anew."""
    shown.play_button.click()
    shown.choices.value = "left"
    shown.step_button.click()
    shown.back_button.click()
    assert shown.choices.value == "left"
    assert shown.model.place == 2


@pytest.mark.parametrize(
    ("presses", "said"),
    [
        (["back"], "This is the beginning; there is nothing before it."),
        (["play", "play"], "Choose first; there are: LEFT, RIGHT, BAD."),
        (["play", "step"], "Choose first; there are: LEFT, RIGHT, BAD."),
    ],
)
def test_what_cannot_be_done_is_said(shown: PlainStepper, presses: list[str], said: str) -> None:
    """A press too much is one sentence (PS2)."""
    for press in presses:
        getattr(shown, f"{press}_button").click()
    assert shown.status.value == f"<p>{said}</p>"


def test_a_step_that_breaks_is_said_and_the_next_one_works(shown: PlainStepper) -> None:
    """Of the error the type is said; everything is as it was, and goes on (PS2)."""
    shown.play_button.click()
    shown.choices.value = "bad"
    shown.step_button.click()
    assert shown.status.value == "<p>The step ended in OSError; everything is as it was before it.</p>"
    shown.choices.value = "left"
    shown.step_button.click()
    assert shown.status.value == "<p>State 4 &amp; left.</p>"


def test_a_long_line_is_shown_around_the_place() -> None:
    """Of many marks a few are shown, with dots where there are more."""
    shown = stepper(Long(100), view="plain", script=())
    shown.play_button.click()
    for _ in range(50):
        shown.back_button.click()
    assert "Mark 50 of 100: ... &rarr; m43" in shown.line.value
    assert shown.line.value.endswith("m54 &rarr; ...</p>")
    assert shown.line.value.count("m4") + shown.line.value.count("m5") == 12


def test_text_and_page_are_those_of_the_script(shown: PlainStepper) -> None:
    """A stored notebook holds page and text of the script, beside the widget."""
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == repr(shown)
    assert bundle["text/html"] == shown.page._repr_html_()
