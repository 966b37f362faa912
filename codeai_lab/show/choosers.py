"""Which one would you like to see?

Chapter: 004, "Two threads, one key, two effects": pick a schedule, see it executed.

Idea: a number, chosen from a list or typed, and below it the table that a function gives for that number. The
function is handed in and knows nothing of widgets; what it does for a number (execute a schedule, say) it
does each time another number is chosen, and at no other time.

    chooser(rows_of, {1: "aaaabb", ...})        [ 17 ] [ 17  aababb v ]
                                                step  walk  stage ...

Always true:
  CH1. Typing and choosing are one thing: list, field and table always show the same number.
  CH2. What goes wrong for a number is one sentence in place of the table, never a traceback, and the next
       number works. An interrupt is not held back.
  CH3. The text and the page of a chooser are those of the number that is shown; a stored notebook shows the
       page.

Not here: pictures (`show.mosaic`), what is executed (`explore.schedules`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import ipywidgets

from codeai_lab.errors import LabError, RefusedValueError
from codeai_lab.show.tables import ShownTable, shown_table
from codeai_lab.show.words import say

RowsOf = Callable[[int], Iterable[Mapping[str, Any]]]


class Chooser:
    """A number to choose, and the table that belongs to it; `box` is the widget, for use in a layout.

    `number_field`, `list_field` and `area` are its three parts.
    """

    def __init__(self, rows_of: RowsOf, choices: Mapping[int, str], *, what: str, chosen: int) -> None:
        self._rows_of = rows_of
        self._choices = dict(choices)
        self._what = what
        self._chosen = chosen
        self._shown: ShownTable | str = ""
        self.number_field = ipywidgets.IntText(value=chosen, description=what, layout={"width": "200px"})
        self.list_field = ipywidgets.Dropdown(
            options=[(_label(number, name), number) for number, name in choices.items()],
            value=chosen if chosen in choices else None,
            description="or choose",
            layout={"width": "320px"},
        )
        self.area = ipywidgets.HTML()
        self.box = ipywidgets.VBox([ipywidgets.HBox([self.number_field, self.list_field]), self.area])
        self.choose(chosen)
        self.number_field.observe(self._typed, names="value")
        self.list_field.observe(self._picked, names="value")

    @property
    def chosen(self) -> int:
        """The number that is shown."""
        return self._chosen

    def choose(self, number: int) -> None:
        """Show another number, as if it had been typed; an interrupt leaves the one that is shown."""
        try:
            shown = self._table_or_sentence(number)
            self._chosen, self._shown = number, shown
        finally:
            self.number_field.value = self._chosen
            self.list_field.value = self._chosen if self._chosen in self._choices else None
            self.area.value = self._page()

    def __repr__(self) -> str:
        """Give what is shown as text: what a rerun compares."""
        return self._shown if isinstance(self._shown, str) else repr(self._shown)

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        live: dict[str, Any] = self.box._repr_mimebundle_(**given) or {}
        return {**live, "text/plain": repr(self), "text/html": self._page()}

    def _typed(self, change: Mapping[str, Any]) -> None:
        if change["new"] != self._chosen:
            self.choose(change["new"])

    def _picked(self, change: Mapping[str, Any]) -> None:
        # Nothing is picked where a number was typed that is not in the list.
        if change["new"] not in (None, self._chosen):
            self.choose(change["new"])

    def _table_or_sentence(self, number: int) -> ShownTable | str:
        if number not in self._choices:
            return f"There is no {self._what} {number}; there are {_span(self._choices)}."
        name = _label(number, self._choices[number])
        try:
            rows = list(self._rows_of(number))
            if rows:
                return shown_table(rows, f"{self._what} {name}")
            why = "there is nothing to show."
        except LabError as error:
            why = str(error)
        except Exception as error:
            # Its own text is not for a reader: it may hold a path or a payload.
            why = f"it ended in {type(error).__name__}."
        return f"{self._what} {name}: {say(why)}"

    def _page(self) -> str:
        shown = self._shown
        return f"<p>{escape(shown)}</p>" if isinstance(shown, str) else shown._repr_html_()


def chooser(
    rows_of: RowsOf, choices: Mapping[int, str], *, what: str = "number", chosen: int | None = None
) -> Chooser:
    """Let a person choose a number, and show the rows that a function gives for it as a table.

    Args:
        rows_of: called once for each number that is chosen; its mappings become the table's lines.
        choices: the numbers that there are, each with a few words for the list.
        what: what is chosen, one or two words: the field's label and the table's title.
        chosen: the number that is shown first; left out, the first of the choices.
    Raises: RefusedValueError when there is nothing to choose from (definite).
    """
    if not choices:
        raise RefusedValueError("choices", "there is nothing to choose from; hand in at least one.")
    return Chooser(rows_of, choices, what=what, chosen=next(iter(choices)) if chosen is None else chosen)


def _label(number: int, name: str) -> str:
    return f"{number}  {say(name)}"


def _span(choices: Mapping[int, str]) -> str:
    numbers = sorted(choices)
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
