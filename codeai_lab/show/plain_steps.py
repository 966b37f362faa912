"""How is something stepped where only the built-in widgets run?

Chapter: 003, "Play the trace below".

Idea: the same model behind three buttons, a list of choices and pieces of text. A button of this kind cannot
tell a screen reader what it stands for, and Play goes to the next choice in one go; where the live widget
runs, it is the better one.

Always true:
  PS1. What is shown is what the model says, after every press.
  PS2. What goes wrong in a step is one sentence; everything is as it was, and the next press works.

Not here: the live widget (`show.steppers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import ipywidgets

from codeai_lab.show.finished_runs import comparison
from codeai_lab.show.static_steps import StaticSteps
from codeai_lab.show.stepping_model import SteppingModel, trouble_of
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import say

MARKS_SHOWN = 12


class PlainStepper:
    """The plain view; `box` is the widget, for use in a layout, the others are its parts."""

    def __init__(self, model: SteppingModel, page: StaticSteps) -> None:
        self.model = model
        self.page = page
        self.back_button = self._button("Back", model.back)
        self.step_button = self._button("Step", model.step)
        # Where it cannot play, it is told why, as for a step.
        self.play_button = self._button("Play", lambda: (model.play if model.can_go_on else model.step)())
        self.choices = ipywidgets.RadioButtons(options=[], layout={"width": "max-content"})
        self.status = ipywidgets.HTML()
        self.line, self.facts, self.comparison = (ipywidgets.HTML() for _ in range(3))
        buttons = ipywidgets.HBox([self.back_button, self.step_button, self.play_button])
        title = ipywidgets.HTML(f"<strong>{escape(say(model.title))}</strong>")
        self.box = ipywidgets.VBox(
            [title, self.line, buttons, self.status, self.choices, self.facts, self.comparison]
        )
        self._drawing = False
        self.choices.observe(self._chosen, names="value")
        model.watchers.append(self._redraw)
        self._redraw()

    def __repr__(self) -> str:
        """Give the text of the page: what a rerun compares."""
        return repr(self.page)

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        live: dict[str, Any] = self.box._repr_mimebundle_(**given) or {}
        return {**live, "text/plain": repr(self), "text/html": self.page._repr_html_()}

    def _button(self, label: str, does: Callable[[], object]) -> Any:
        button = ipywidgets.Button(description=label)
        button.on_click(lambda _: self._do(does))
        return button

    def _chosen(self, change: Mapping[str, Any]) -> None:
        if change["new"] is not None and not self._drawing:
            self._do(lambda: self.model.choose(change["new"]))

    def _do(self, do: Callable[[], object]) -> None:
        if trouble := trouble_of(do):
            self._redraw(trouble)

    def _redraw(self, trouble: str = "") -> None:
        model, frame = self.model, self.model.frame
        self._drawing = True
        try:
            self.choices.options = [(_words(one.label, one.meaning), one.name) for one in frame.choices]
            self.choices.value = model.selected
            self.choices.layout.display = "" if frame.choices else "none"
        finally:
            self._drawing = False
        self.line.value = self._marks()
        self.status.value = f"<p>{escape(trouble or say(frame.headline))}</p>"
        now = tuple((say(name), say(value)) for name, value in frame.facts)
        self.facts.value = (
            ShownTable(caption="Now", head=("what", "now"), body=now)._repr_html_() if now else ""
        )
        table = comparison(model)
        self.comparison.value = "" if table is None else table._repr_html_()

    def _marks(self) -> str:
        """Show the marks around this one: a long line would be sent again at every press."""
        place, last = self.model.place, self.model.length
        first = max(0, min(place - MARKS_SHOWN // 2, last - MARKS_SHOWN))
        shown = self.model.line(first, first + MARKS_SHOWN)
        items = [
            f"<strong>{escape(say(state.frame.mark))} (here)</strong>"
            if number == place
            else escape(say(state.frame.mark))
            for number, state in enumerate(shown, first)
        ]
        before = ["..."] if first else []
        after = ["..."] if first + len(shown) < last else []
        return f"<p>Mark {place + 1} of {last}: {' &rarr; '.join([*before, *items, *after])}</p>"


def _words(label: str, meaning: str) -> str:
    return say(f"{label}: {meaning}" if meaning else label)
