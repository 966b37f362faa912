"""How does a reader step through a failure, choose, and compare?

Chapter: 003, "Play the trace below": it pauses at the failure, a policy is chosen, the runs are compared.

Idea: one model, three views. The live one is a widget with a time line, Back, Step and Play, the choices
where there are any, what is true now, and the comparison of the runs that are over; the browser's part is one
file beside this one. Where such a widget does not run there are plain controls, and where nothing runs there
is a page.

    stepper(steppable, script=[["restart"], ["resume"], ["fallback"]])
    stepper(steppable, view="plain")          stepper(steppable, view="static", script=...)

Always true:
  ST1. A step sends what is new about it, never the whole time line.
  ST2. What goes wrong in a step is one sentence in the widget, and everything is as it was; stepped from
       Python (`widget.model.step()`) it is raised.
  ST3. The text and the page of a stepper show the script's branches, played when it was made; the widget
       itself stands at the beginning, with nothing given away.

Not here: where a reader stands (`show.stepping_model`), the page (`show.static_steps`), the plain controls
(`show.plain_steps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

import anywidget
import traitlets

from codeai_lab.decide.stepping import Steppable
from codeai_lab.errors import RefusedValueError
from codeai_lab.show.finished_runs import comparison
from codeai_lab.show.plain_steps import PlainStepper
from codeai_lab.show.static_steps import StaticSteps, static_steps
from codeai_lab.show.stepping_model import Kept, Script, SteppingModel, trouble_of
from codeai_lab.show.words import say

UNTIL_ASKED: Script = ((),)


@overload
def stepper(steppable: Steppable, *, script: Script = ..., view: Literal["live"] = "live") -> Stepper: ...
@overload
def stepper(steppable: Steppable, *, script: Script = ..., view: Literal["plain"]) -> PlainStepper: ...
@overload
def stepper(steppable: Steppable, *, script: Script = ..., view: Literal["static"]) -> StaticSteps: ...
def stepper(
    steppable: Steppable, *, script: Script = UNTIL_ASKED, view: str = "live"
) -> Stepper | PlainStepper | StaticSteps:
    """Let a person step through something, at their own pace and along their own choices.

    Args:
        script: the branches that a page without a kernel shows: for each, the choices in order; the last one
            is taken again for as long as it is offered. Left out, it shows what comes before the first
            choice.
        view: "live", "plain" (built-in widgets only) or "static" (the page alone).
    Raises: RefusedValueError for another view; RefusedRequestError for a choice in the script that is not
        offered where it comes; whatever a step of the script raises.
    """
    if view not in ("live", "plain", "static"):
        raise RefusedValueError(
            "view", 'a stepper is shown "live", "plain" or "static"; choose one of these.'
        )
    played = SteppingModel(steppable)
    played.play_script(script)
    page = static_steps(played)
    if view == "static":
        return page
    model = SteppingModel(steppable)
    return Stepper(model, page) if view == "live" else PlainStepper(model, page)


class Stepper(anywidget.AnyWidget):
    """The live view; `model` is what it shows, and can be stepped from Python too."""

    _esm = Path(__file__).with_name("stepper.js")
    _css = Path(__file__).with_name("stepper.css")
    title = traitlets.Unicode().tag(sync=True)
    line: traitlets.List[list[str]] = traitlets.List().tag(sync=True)
    now = traitlets.Dict().tag(sync=True)
    compared = traitlets.Dict().tag(sync=True)

    def __init__(self, model: SteppingModel, page: StaticSteps) -> None:
        self.model = model
        self.page = page
        self._rows = self._turn = 0
        super().__init__(
            title=say(model.title), line=[_mark(state) for state in model.line()], now=self._now(since=0)
        )
        self.on_msg(self._asked)
        model.watchers.append(self._redraw)

    def __repr__(self) -> str:
        """Give the text of the page: what a rerun compares."""
        return repr(self.page)

    def _repr_mimebundle_(self, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live, about = super()._repr_mimebundle_(**given) or ({}, {})
        return {**live, "text/plain": repr(self), "text/html": self.page._repr_html_()}, about

    def _asked(self, _: object, asked: Mapping[str, Any], __: object) -> None:
        """Do what was pressed in the browser."""
        does = {
            "step": self.model.step,
            "back": self.model.back,
            "choose": lambda: self.model.choose(str(asked.get("name"))),
            "whole": lambda: self.send_state("line"),
        }.get(str(asked.get("do")))
        if does is not None and (trouble := trouble_of(does)):
            self._redraw(trouble)

    def _redraw(self, trouble: str = "") -> None:
        since = self.model.length if trouble else self.model.unchanged
        # In place: the line as a whole goes only to a browser that newly opens the widget (ST1).
        self.line[since:] = [_mark(state) for state in self.model.line(since)]
        if len(self.model.finished()) != self._rows:
            self._compare()
        self.now = self._now(since=since, trouble=trouble)

    def _compare(self) -> None:
        self._rows = len(self.model.finished())
        table = comparison(self.model)
        if table is not None:
            self.compared = {
                "caption": table.caption,
                "head": list(table.head),
                "body": [list(row) for row in table.body],
            }

    def _now(self, *, since: int, trouble: str = "") -> dict[str, Any]:
        """Give what is shown now, with the marks from `since` on; it is another value each time."""
        model, frame = self.model, self.model.frame
        self._turn += 1
        return {
            "turn": self._turn,
            "at": model.place,
            "since": since,
            "marks": [_mark(state) for state in model.line(since)],
            "length": model.length,
            "headline": say(frame.headline),
            "facts": [[say(name), say(value)] for name, value in frame.facts],
            "choices": [
                {
                    "name": one.name,
                    "label": say(one.label),
                    "meaning": say(one.meaning) if one.meaning else "",
                }
                for one in frame.choices
            ],
            "selected": model.selected,
            "can_go_on": model.can_go_on,
            "trouble": trouble,
        }


def _mark(state: Kept) -> list[str]:
    return [say(state.frame.mark), str(state.frame.kind)]
