"""Does a slider answer while it moves?

Chapter: 000, section 15.7.

Idea: each question's sliders are moved one step after another, as a browser would move them: a new value in,
the line of text and the picture out. What is timed is all that the kernel does for one move, the drawing
included; the first move stands apart, since it pays for what later ones find ready.

Always true:
  SB1. A move is timed from the value to the picture's bytes; no full run is among it.
  SB2. The first preview of each question is measured in every round, on sliders that are new.

Not here: what the browser does with the answer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from matplotlib.figure import Figure

from benchmarks.rounds import Row
from codeai_lab.lessons.what_if import QUESTIONS
from codeai_lab.show.duplicate_figures import attempts_drawn
from codeai_lab.show.overload_figures import trace_drawn
from codeai_lab.show.slider_model import Rows
from codeai_lab.show.sliders import Sliders, with_sliders
from codeai_lab.show.waiting_figures import waits_drawn

MOST_MS = 150.0
DRAWN: dict[str, tuple[Callable[[Rows], Figure], str]] = {
    "waits": (waits_drawn, "cap"),
    "duplicates": (attempts_drawn, "loss"),
    "overload": (trace_drawn, "load"),
}
LATER_MOVES = 5


def sliders(*, rounds: int) -> list[Row]:
    """Move a slider of each question; the time of the first preview, and of those after it."""
    rows = []
    for name, (draw, moved) in DRAWN.items():
        first: list[float] = []
        later: list[float] = []
        for number in range(rounds + 1):
            times = _moves(_new(name, draw), moved)
            if number:  # the first round pays for fonts and imports
                first.append(times[0])
                later += times[1:]
        middle_ms = statistics.median(first) * 1e3
        rows.append(
            Row(
                name=f"first preview of the sliders of {name}, median of {rounds}",
                ratio=None,
                bound=f"< {MOST_MS:g} ms",
                held=middle_ms < MOST_MS,
                remark=f"{middle_ms:.0f} ms; later ones {statistics.median(later) * 1e3:.0f} ms",
            )
        )
    return rows


def _new(name: str, draw: Callable[[Rows], Figure]) -> Sliders:
    question = QUESTIONS[name]
    return with_sliders(
        question.values, preview=question.preview, full=question.full, numbers=question.numbers, draw=draw,
        title=name, later=lambda seconds, function: None,  # noqa: ARG005 - nothing settles by itself (SB1)
    )  # fmt: skip


def _moves(shown: Sliders, moved: str) -> list[float]:
    field = shown.fields[moved]
    times = []
    for _ in range(1 + LATER_MOVES):
        before = shown.picture.value
        begun = time.perf_counter()
        field.value = field.value - field.step
        times.append(time.perf_counter() - begun)
        assert shown.picture.value != before
    return times
