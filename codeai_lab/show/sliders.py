"""What does a figure look like when one of its values is moved?

Chapter: 000, section 15.7.

Idea: sliders, the figure below them, and a line of text that says what the move did to each number. While a
slider moves, the figure is the preview's; a moment after it has stopped, or on the button, it is the full
run's. The functions that give rows, and the one that draws them, are handed in.

    base   [---o------]  1 s      full run: full, total 45.5; ...
    cap    [------o---] 20 s      (the figure)

Always true:
  SD1. Sliders, figure and line show the same values; the line says whether it is a preview.
  SD2. Each move is drawn at once; the full run waits until nothing has moved for PAUSE_S, and one move is
       followed by one full run at most.
  SD3. The text and the page are those of what is shown; a stored notebook shows the page.
  SD4. Everything is reached with the keyboard: the sliders by arrow keys, their numbers by typing, the full
       run by its button.

Not here: what a change comes to (`show.slider_model`), the rows (`lessons.what_if`).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Protocol

import ipywidgets
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from codeai_lab.show.drawing import picture_of, said
from codeai_lab.show.shown import house_style
from codeai_lab.show.slider_model import Rows, Seen, Slider, SliderModel, Stage, Values
from codeai_lab.show.tables import ShownTable

PAUSE_S = 0.4


class Waiting(Protocol):
    """Something that will happen, and can be called off."""

    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Waiting | None]


class Sliders:
    """Sliders with their figure; `box` is the widget, for use in a layout.

    `fields` are the sliders by name, `button` asks for the full run, `status` has the line of text and
    `picture` the figure.
    """

    def __init__(
        self, model: SliderModel, draw: Callable[[Rows], Figure], *, title: str, later: Later | None = None
    ) -> None:
        self.model = model
        self._draw, self._title = draw, title
        self._later = later or on_running_loop
        self._waiting: Waiting | None = None
        self._svg = b""
        self._places: tuple[Bbox, ...] = ()
        self.fields = {name: _field(slider, model.values[name]) for name, slider in model.sliders.items()}
        self.button = ipywidgets.Button(description="Full run")
        self.status, self.picture = ipywidgets.HTML(), ipywidgets.HTML()
        self.box = ipywidgets.VBox([*self.fields.values(), self.button, self.status, self.picture])
        self._show(model.seen)
        for name, one in self.fields.items():
            one.observe(lambda change, name=name: self._moved(name, change["new"]), names="value")
        self.button.on_click(lambda _: self.settle())

    def settle(self) -> None:
        """Show the full run of the values as they are, now."""
        self._call_off()
        if not self.model.is_settled:
            self._show(self.model.settle())

    def __repr__(self) -> str:
        """Give what is shown as text: what a rerun compares."""
        return f"{self._title}\n\n{self._table()!r}\n\n{self.model.seen.words}"

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        live: dict[str, Any] = self.box._repr_mimebundle_(**given) or {}
        return {**live, "text/plain": repr(self), "text/html": self._page()}

    def _moved(self, name: str, value: float) -> None:
        self._call_off()
        self._show(self.model.drag(name, value))
        self._waiting = self._later(PAUSE_S, self.settle)

    def _call_off(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _show(self, seen: Seen) -> None:
        if not seen.failed:
            with house_style():
                fig = self._draw(seen.rows)
                self._svg = picture_of(fig, self._places if seen.stage is Stage.PREVIEW else ())
            # Where a full run laid the axes out, previews put them too: that is quicker, and nothing jumps.
            self._places = tuple(axes.get_position() for axes in fig.axes)
        self.status.value = f'<p role="status" aria-live="polite">{escape(seen.words)}</p>'
        self.picture.value = self._image()

    def _image(self) -> str:
        source = "data:image/svg+xml;base64," + base64.b64encode(self._svg).decode()
        alt = escape(f"{self._title} {self.model.seen.words}")
        return f'<img alt="{alt}" src="{source}" style="max-width:100%;height:auto">'

    def _page(self) -> str:
        return (
            f'<figure style="margin:0 0 12px 0">{self._image()}'
            f"<figcaption>{escape(self._title)} {escape(self.model.seen.words)} Without a kernel the sliders "
            f"do not move.</figcaption></figure>\n{self._table()._repr_html_()}"
        )

    def _table(self) -> ShownTable:
        seen = self.model.seen
        values = [(name, slider.words(seen.values[name])) for name, slider in self.model.sliders.items()]
        numbers = [(name, said(number)) for name, number in seen.numbers.items()]
        return ShownTable(
            caption=f"The values of the sliders, and what they come to ({seen.stage})",
            head=("what", "value"),
            body=(*values, *numbers),
        )


def with_sliders(
    values: Mapping[str, tuple[float, float, float, float]],
    *,
    preview: Callable[[Values], Rows],
    full: Callable[[Values], Rows],
    numbers: Callable[[Rows], Mapping[str, float]],
    draw: Callable[[Rows], Figure],
    title: str,
    units: Mapping[str, str] | None = None,
    later: Later | None = None,
) -> Sliders:
    """Let a person move the values of a question, and see what comes of it.

    Args:
        values: name -> lowest, highest, step, and the value to begin with.
        preview: gives rows quickly, while a value is moving; full: gives them when it has stopped.
        numbers: names what rows come to; each is said in the line of text.
        draw: makes a figure of rows, such as `show.waiting_figures.waits_drawn`.
        title: one sentence that says what is shown.
        units: name -> unit.
        later: calls a function after so many seconds; left out, the running event loop does.
    Raises: RefusedValueError for no slider, or one that cannot move (definite).
    """
    given = units or {}
    each = [
        Slider(name=name, low=low, high=high, step=step, value=value, unit=given.get(name, ""))
        for name, (low, high, step, value) in values.items()
    ]
    model = SliderModel(each, preview=preview, full=full, numbers=numbers)
    return Sliders(model, draw, title=title, later=later)


def on_running_loop(seconds: float, function: Callable[[], None]) -> Waiting | None:
    """Call a function later on the event loop that runs here; where none does, the button is left."""
    try:
        return asyncio.get_running_loop().call_later(seconds, function)
    except RuntimeError:
        return None


def _field(slider: Slider, value: float) -> ipywidgets.Widget:
    make = ipywidgets.IntSlider if slider.is_whole else ipywidgets.FloatSlider
    ends = (slider.low, slider.high, slider.step)
    low, high, step = map(int, ends) if slider.is_whole else ends
    return make(
        value=value, min=low, max=high, step=step, description=slider.name, continuous_update=True,
        style={"description_width": "110px"}, layout={"width": "420px"},
    )  # fmt: skip
