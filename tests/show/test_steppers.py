"""The live view without a browser: what it is told, what it tells, what it leaves in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from traces import Fork, Long

import codeai_lab.show.steppers as steppers_module
from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.show.plain_steps import PlainStepper
from codeai_lab.show.static_steps import StaticSteps
from codeai_lab.show.steppers import Stepper, stepper

WIDGET = "application/vnd.jupyter.widget-view+json"
SCRIPT = [["left"], ["right"]]


class Browser:
    """The other side: it presses, and keeps what it is sent, as a browser would get it."""

    def __init__(self, shown: Stepper, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown = shown
        self.line: list[Any] = json.loads(json.dumps(shown.line))
        self.sent: list[dict[str, Any]] = []
        shown.observe(lambda change: self._hear(change["new"]), names="now")
        monkeypatch.setattr(shown, "send_state", self._hear_state)

    def press(self, do: str, **more: str) -> dict[str, Any]:
        self.shown._handle_custom_msg({"do": do, **more}, [])
        return dict(self.shown.now)

    def _hear_state(self, key: str) -> None:
        if key == "line":
            self.sent.append({key: list(self.shown.line)})

    def _hear(self, now: dict[str, Any]) -> None:
        self.sent.append(json.loads(json.dumps(now)))
        self.line[now["since"] :] = now["marks"]
        assert len(self.line) == now["length"]


@pytest.fixture
def fork() -> Fork:
    return Fork()


@pytest.fixture
def shown(fork: Fork) -> Iterator[Stepper]:
    widget = stepper(fork, script=SCRIPT)
    yield widget
    widget.close()


@pytest.fixture
def browser(shown: Stepper, monkeypatch: pytest.MonkeyPatch) -> Browser:
    return Browser(shown, monkeypatch)


def test_it_begins_at_the_beginning(shown: Stepper) -> None:
    """The script is in the page; the widget itself gives nothing of it away (ST3)."""
    assert shown.title == "A <fork>"
    assert shown.line == [["start", "start"]]
    assert shown.compared == {}
    assert "Run 2: right" in repr(shown)


def test_what_is_pressed_is_done(browser: Browser) -> None:
    """Step, choose and back move the model; what is shown comes whole, the line as far as it is new."""
    assert browser.press("step")["headline"] == "State 2 & s1."
    now = browser.press("step")
    assert (now["at"], now["since"], now["marks"]) == (2, 2, [["s2", "failure"]])
    assert now["choices"][0] == {"name": "left", "label": "LEFT", "meaning": "the left way"}
    assert (now["selected"], now["can_go_on"]) == (None, False)
    assert browser.press("choose", name="right")["can_go_on"] is True
    assert browser.press("step")["facts"] == [["length", "4"]]
    now = browser.press("back")
    assert (now["at"], now["since"], now["marks"], now["selected"]) == (2, 4, [], "right")


def test_the_browsers_line_is_the_models(browser: Browser) -> None:
    """Along several branches and back, the line put together from what was sent is the whole one."""
    for way in ("left", "right", "left"):
        for press in ("step", "step"):
            browser.press(press)
        browser.press("choose", name=way)
        for press in ("step", "step", "step", "back", "back", "back", "back", "back"):
            browser.press(press)
        assert browser.line == browser.shown.line == browser.shown.get_state()["line"]
        assert browser.line[3] == [way, "step"]


def test_a_finished_branch_is_compared_one_time(browser: Browser) -> None:
    """The comparison is sent when there is a new row, and then only."""
    changes: list[Any] = []
    browser.shown.observe(changes.append, names="compared")
    for do in ("step", "step"):
        browser.press(do)
    browser.press("choose", name="left")
    for do in ("step", "step", "step", "back", "step"):
        browser.press(do)
    assert browser.shown.compared == {
        "caption": "Finished runs, side by side",
        "head": ["run", "way", "steps"],
        "body": [["1 left", "left", "5"]],
    }
    assert len(changes) == 1


def test_what_goes_wrong_is_one_sentence(browser: Browser, fork: Fork) -> None:
    """An error in a step is said without its text, nothing moves, and the next step takes it away (ST2)."""
    for do in ("step", "step"):
        browser.press(do)
    browser.press("choose", name="bad")
    now = browser.press("step")
    assert now["trouble"] == "The step ended in OSError; everything is as it was before it."
    assert (now["at"], now["length"], now["marks"]) == (2, 3, [])
    browser.press("choose", name="left")
    now = browser.press("step")
    assert (now["at"], now["trouble"]) == (3, "")


def test_the_same_sentence_again_is_sent_again(browser: Browser) -> None:
    """Two presses that do nothing are two answers, so that nobody waits for one."""
    first, second = browser.press("back"), browser.press("back")
    assert first["trouble"] == second["trouble"] != ""
    assert len(browser.sent) == 2


def test_stepped_from_python_it_raises_and_the_browser_follows(browser: Browser) -> None:
    """The model is the way in for a program: errors come through, and the widget shows where it is (ST2)."""
    model = browser.shown.model
    model.play()
    assert browser.line == [["start", "start"], ["s1", "step"], ["s2", "failure"]]
    with pytest.raises(OSError, match="secret"):
        model.step("bad")
    with pytest.raises(RefusedRequestError, match="Choose first"):
        browser.shown.model.step()
    model.step("left")
    assert browser.shown.now["headline"] == "State 4 & left."


def test_what_nobody_can_press_does_nothing(browser: Browser) -> None:
    """A message that is none of the four is left alone."""
    browser.shown._handle_custom_msg({"do": "format"}, [])
    browser.shown._handle_custom_msg({}, [])
    assert browser.sent == []


def test_the_whole_line_is_sent_on_request(browser: Browser) -> None:
    """A browser that has lost count is given all marks."""
    browser.press("step")
    browser.press("whole")
    assert browser.sent[-1] == {"line": [["start", "start"], ["s1", "step"]]}


def test_a_step_in_a_long_run_sends_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step sends is as long after 300 steps as after three (ST1)."""
    shown = stepper(Long(400), view="live", script=())
    browser = Browser(shown, monkeypatch)
    sizes = [len(json.dumps(browser.press("step"))) for _ in range(300)]
    assert max(sizes) - min(sizes) < 40
    assert len(shown.get_state()["line"]) == 301
    shown.close()


def test_text_and_page_are_those_of_the_script(shown: Stepper, fork: Fork) -> None:
    """A stored notebook holds the page and the text; both are the same in every run, wherever one stands."""
    bundle, _ = shown._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "text/html", "text/plain"}
    static = stepper(Fork(), script=SCRIPT, view="static")
    assert isinstance(static, StaticSteps)
    assert bundle["text/plain"] == repr(shown) == repr(static)
    assert bundle["text/html"] == static._repr_html_()
    shown.model.step()
    assert repr(shown) == repr(static)


def test_the_other_views_show_the_same(fork: Fork) -> None:
    """Plain and static have the same text; another view is refused by one sentence."""
    plain = stepper(fork, script=SCRIPT, view="plain")
    assert isinstance(plain, PlainStepper)
    assert repr(plain) == repr(stepper(fork, script=SCRIPT, view="static"))
    with pytest.raises(RefusedValueError, match='"live", "plain" or "static"'):
        stepper(fork, view="fancy")  # type: ignore[call-overload]


def test_a_script_that_breaks_is_raised(fork: Fork) -> None:
    """An error in the script belongs to whoever wrote it, and is not hidden in a page."""
    with pytest.raises(OSError, match="secret"):
        stepper(fork, script=[["bad"]])


def test_the_browsers_part_needs_nothing_from_elsewhere() -> None:
    """One module, beside its Python: no import, no address, and no attribute that takes focus away."""
    script = Path(steppers_module.__file__).with_name("stepper.js").read_text(encoding="utf-8")
    assert "import " not in script
    assert "://" not in script
    assert "innerHTML" not in script
    assert "disabled:" not in script
    assert ".disabled" not in script
