"""The page of a stepper: every branch and the comparison, readable where nothing runs."""

from __future__ import annotations

import re

from traces import Fork, Turns

from codeai_lab.show.static_steps import StaticSteps, static_steps
from codeai_lab.show.stepping_model import Script, SteppingModel

BOTH = [["left"], ["right"]]


def page(script: Script) -> StaticSteps:
    model = SteppingModel(Fork())
    model.play_script(script)
    return static_steps(model)


def test_the_text_says_all_that_was_seen() -> None:
    """The first branch in full, each other from where it parted, new offers, and the comparison (SS1)."""
    assert repr(page(BOTH)).splitlines() == [
        "A <fork>",
        "",
        "Run 1: left",
        "  1  start: State 1 & start.",
        "  2  s1: State 2 & s1.",
        "  3  s2 (failure): State 3 & s2. To choose from: LEFT, RIGHT, BAD.",
        "  4  left: State 4 & left.",
        "  5  s4: State 5 & s4.",
        "  6  s5 (end): State 6 & s5.",
        "",
        "Run 2: right (as run 1 up to mark 3, then)",
        "  4  right: State 4 & right.",
        "  5  s4: State 5 & s4.",
        "  6  s5 (end): State 6 & s5.",
        "",
        "Finished runs, side by side",
        "",
        "run      way    steps",
        "-------  -----  -----",
        "1 left   left       5",
        "2 right  right      5",
    ]


def test_the_page_says_the_same() -> None:
    """What the text says stands in the page, escaped; each list counts on from where it parted (SS1)."""
    shown = page(BOTH)
    html = shown._repr_html_()
    words = re.sub(r"<[^>]*>", " ", html)
    for line in repr(shown).splitlines()[:13]:
        said = (
            re.sub(r"^ *\d+  [^:]*: ", "", line)
            .replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
        )
        assert said in words
    assert re.findall(r'start="(\d+)"', html) == ["1", "4"]
    assert html.count("<li") == 9
    assert shown.comparison is not None
    assert shown.comparison._repr_html_() in html


def test_the_page_has_nothing_that_is_thrown_away() -> None:
    """An untrusted notebook loses scripts, style blocks, ids, roles and aria; the page has none (SS2)."""
    assert not re.search(
        r"<(script|style|svg|button|input)|\b(id|role|tabindex|on\w+)=|aria-", page(BOTH)._repr_html_()
    )


def test_what_is_not_over_is_shown_as_far_as_it_went() -> None:
    """A page can be made at the first choice, without a comparison."""
    text = repr(page([[]]))
    assert text.splitlines()[2] == "Not over"
    assert "To choose from" in text
    assert "Finished" not in text


def test_an_offer_that_stays_is_said_one_time() -> None:
    """Where the same choices come at every mark, the first one names them."""
    model = SteppingModel(Turns())
    model.play_script([["a"]])
    assert repr(static_steps(model)).count("To choose from: a, b.") == 1


def test_the_same_play_gives_the_same_bytes() -> None:
    """Text and page depend on what was played alone (SS1)."""
    assert repr(page(BOTH)) == repr(page(BOTH))
    assert page(BOTH)._repr_html_() == page(BOTH)._repr_html_()
