"""What is left of a stepper when nothing runs?

Chapter: 003, "Play the trace below"; read on paper, in a stored notebook, without a kernel.

Idea: every branch as a numbered list that says what was seen at each mark, the first in full and each other
one from where it left the ones before it; below them the comparison. It is made of text: a notebook that is
not trusted keeps text and tables and throws away the rest.

Always true:
  SS1. Text and page say the same, and depend on what was played alone.
  SS2. No script, style block, id or aria, since none of these is kept; what they would say is said in words.

Not here: the live controls (`show.steppers`, `show.plain_steps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from codeai_lab.decide.stepping import MarkKind
from codeai_lab.show.finished_runs import comparison, run_name
from codeai_lab.show.stepping_model import Kept, SteppingModel
from codeai_lab.show.tables import ShownTable
from codeai_lab.show.words import say

_ITEM = "margin:0 0 2px 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A piece of a branch that no earlier one had.

    `first` is the number of its first mark; each mark has a name and says what was seen there.
    """

    heading: str
    first: int
    marks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StaticSteps:
    """All that was played, as a page and as text."""

    title: str
    stretches: tuple[Stretch, ...]
    comparison: ShownTable | None

    def __repr__(self) -> str:
        """Give the branches line by line, and the comparison."""
        lines = [self.title]
        for stretch in self.stretches:
            lines += ["", stretch.heading]
            numbered = enumerate(stretch.marks, stretch.first)
            lines += [f"{number:>3}  {name}: {words}" for number, (name, words) in numbered]
        if self.comparison is not None:
            lines += ["", repr(self.comparison)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.title)}</strong></p>"]
        for stretch in self.stretches:
            items = "\n".join(
                f'<li style="{_ITEM}"><strong>{escape(name)}</strong>: {escape(words)}</li>'
                for name, words in stretch.marks
            )
            parts.append(
                f"<p>{escape(stretch.heading)}</p>\n"
                f'<ol class="codeai-lab-steps" start="{stretch.first}">\n{items}\n</ol>'
            )
        if self.comparison is not None:
            parts.append(self.comparison._repr_html_())
        return "\n".join(parts)


def static_steps(model: SteppingModel) -> StaticSteps:
    """Give what was played so far; a branch that is not over is shown as far as it was gone."""
    return StaticSteps(
        title=say(model.title), stretches=tuple(_stretches(model)), comparison=comparison(model)
    )


def _stretches(model: SteppingModel) -> Iterator[Stretch]:
    seen: dict[int, str] = {}
    for end in model.ends():
        name, _, ways = (run_name(model, end) if end.frame.is_over else "").partition(" ")
        run = f"Run {name}" if name else "Not over"
        branch = model.branch(end)
        parted = sum(state.number in seen for state in branch)
        heading = f"{run}: {ways}" if ways else run
        if parted:
            heading += f" (as {seen[branch[parted - 1].number].lower()} up to mark {parted}, then)"
        marks = tuple(_mark(before, state) for before, state in pairwise((None, *branch)) if state)
        yield Stretch(heading=heading, first=parted + 1, marks=marks[parted:])
        seen |= {state.number: run for state in branch[parted:]}


def _mark(before: Kept | None, state: Kept) -> tuple[str, str]:
    """Name a mark, with its kind where there is more to it, and say it, with what is newly offered there."""
    frame = state.frame
    plain = frame.kind in (MarkKind.STEP, MarkKind.START)
    name = say(frame.mark) if plain else f"{say(frame.mark)} ({frame.kind})"
    offered = [choice.name for choice in frame.choices]
    if not offered or (before is not None and offered == [choice.name for choice in before.frame.choices]):
        return name, say(frame.headline)
    labels = ", ".join(say(choice.label) for choice in frame.choices)
    return name, f"{say(frame.headline)} To choose from: {labels}."
