"""What does a change of one value do to every number of a question?

Chapter: 000, section 15.7.

Idea: a plain model, which knows nothing of widgets. It holds the values, and asks two functions that are
handed in: a preview while a value is moving, and the full run when it has come to rest. What it says in words
compares each number with the last full run.

    drag("cap", 40)  ->  preview: "cap 20 s to 40 s. full, total 45.5 to 60.2; ..."
    settle()         ->  the full run of these values

Always true:
  SM1. A value lies within its slider's span and on one of its steps.
  SM2. A preview is called one, and never becomes what later changes are compared with.
  SM3. The words name every number, before and after, or that it is as it was.
  SM4. What goes wrong is one sentence; the rows that were there stay, and the next value works.

Not here: the functions (`lessons.what_if`), the widgets (`show.sliders`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from codeai_lab.errors import LabError, RefusedValueError
from codeai_lab.show.drawing import said
from codeai_lab.show.words import say

Values = Mapping[str, float]
Rows = Sequence[Mapping[str, Any]]


class Stage(StrEnum):
    """How much was worked out."""

    PREVIEW = "preview"
    FULL = "full run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A value that can be moved, from `low` to `high` in steps.

    Args:
        unit: what is said behind the value, if anything.
    """

    name: str
    low: float
    high: float
    step: float
    value: float
    unit: str = ""

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.step > 0 and self.low <= self.value <= self.high):
            raise RefusedValueError(self.name, "a slider goes up in steps, and begins somewhere on its way.")

    def nearest(self, value: float) -> float:
        """Give the step that lies nearest to a value, within the span (SM1)."""
        steps = round((min(max(value, self.low), self.high) - self.low) / self.step)
        at = min(self.high, self.low + steps * self.step)
        return int(at) if self.is_whole else round(at, 10)

    @property
    def is_whole(self) -> bool:
        """Say whether it counts something: its ends and its steps are whole numbers."""
        return all(float(number).is_integer() for number in (self.low, self.high, self.step))

    def words(self, value: float) -> str:
        return f"{said(value)} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there is to see: how it came about, the rows, what they come to, and all of it in words."""

    stage: Stage
    values: Values
    rows: Rows
    numbers: Mapping[str, float]
    words: str
    failed: bool = field(default=False)


class SliderModel:
    """The values of a question, and what is to be seen at them."""

    def __init__(
        self,
        sliders: Sequence[Slider],
        *,
        preview: Callable[[Values], Rows],
        full: Callable[[Values], Rows],
        numbers: Callable[[Rows], Mapping[str, float]],
    ) -> None:
        """Begin with the full run of the values that the sliders begin with.

        Raises: RefusedValueError where there is no slider; what `full` raises.
        """
        if not sliders:
            raise RefusedValueError("sliders", "there is nothing to move; hand in at least one.")
        self.sliders = {slider.name: slider for slider in sliders}
        self._run = {Stage.PREVIEW: preview, Stage.FULL: full}
        self._numbers = numbers
        self.values: dict[str, float] = {slider.name: slider.nearest(slider.value) for slider in sliders}
        rows = full(dict(self.values))
        come_to = dict(numbers(rows))
        self.seen = self._settled = Seen(
            stage=Stage.FULL, values=dict(self.values), rows=rows, numbers=come_to, words=_first(come_to)
        )

    def drag(self, name: str, value: float) -> Seen:
        """Move one value, and give the preview of what comes of it.

        Raises: RefusedValueError for a name that no slider has (definite).
        """
        if name not in self.sliders:
            raise RefusedValueError(name, f"there is no such slider; there are {', '.join(self.sliders)}.")
        self.values[name] = self.sliders[name].nearest(value)
        return self._see(Stage.PREVIEW)

    def settle(self) -> Seen:
        """Give the full run of the values as they are; later changes are compared with it."""
        seen = self._see(Stage.FULL)
        if not seen.failed:
            self._settled = seen
        return seen

    @property
    def is_settled(self) -> bool:
        """Say whether what is to be seen is the full run of the values as they are."""
        return self.seen.stage is Stage.FULL and self.seen.values == self.values and not self.seen.failed

    def _see(self, stage: Stage) -> Seen:
        values, before = dict(self.values), self.seen
        try:
            rows = self._run[stage](values)
            numbers: Mapping[str, float] = dict(self._numbers(rows))
        except LabError as error:
            rows, numbers, words, failed = before.rows, before.numbers, say(str(error)), True
        except Exception as error:
            # Its own text is not for a reader: it may hold a path or a payload.
            words = f"{stage}: it ended in {type(error).__name__}."
            rows, numbers, failed = before.rows, before.numbers, True
        else:
            words, failed = (
                f"{stage}: {self._moved(values)}. {_compared(self._settled.numbers, numbers)}",
                False,
            )
        self.seen = Seen(stage=stage, values=values, rows=rows, numbers=numbers, words=words, failed=failed)
        return self.seen

    def _moved(self, values: Values) -> str:
        moved = [
            f"{name} {slider.words(self._settled.values[name])} to {slider.words(values[name])}"
            for name, slider in self.sliders.items()
            if values[name] != self._settled.values[name]
        ]
        return ", ".join(moved) or "the same values"


def _first(numbers: Mapping[str, float]) -> str:
    return f"{Stage.FULL}: " + "; ".join(f"{name} {said(number)}" for name, number in numbers.items()) + "."


def _compared(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Say each number before and after (SM3); a number that is new stands alone."""
    each = []
    for name, number in after.items():
        was, now = (None if name not in before else said(before[name])), said(number)
        if was is None:
            each.append(f"{name} {now}")
        else:
            each.append(f"{name} still {now}" if was == now else f"{name} {was} to {now}")
    return "; ".join(each) + "."
