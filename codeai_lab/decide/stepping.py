"""What does a person see of something that moves one step at a time?

Chapter: 003, "Play the trace below": it pauses at the failure, a policy is chosen, the runs are compared.

Idea: a film recovery, an action's walk and a schedule of two threads are stepped by the same control. Each is
a `Steppable`: it has a first state, it goes from one state to the next, and it says what a state looks like.
A state is kept, never computed again, so going back shows exactly what was there, and another choice made
there starts another branch.

Always true:
  P1. A frame is frozen, made of plain text and numbers, and enough by itself to be shown without a kernel.
  P2. `advance` leaves the state that it was given as it was.
  P3. A state that offers choices goes on only with one of them; one that is over does not go on.

Not here: the controls (`show.steppers`), what is stepped (`lessons`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class MarkKind(StrEnum):
    """What kind of moment a mark on the time line stands for."""

    START = "start"
    STEP = "step"
    CHECKPOINT = "checkpoint"
    FAILURE = "failure"
    REFUSAL = "refusal"
    CHOICE = "choice"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to go on: the name that `advance` takes, the words on the control, what it will mean."""

    name: str
    label: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What one state looks like.

    Args:
        mark: the short name of the step that led here, for the time line; `kind` says what it was.
        headline: one sentence, read out when the state is entered.
        facts: names and values to show now, in order, as (name, value).
        choices: how a person may go on; empty where there is one way only.
        is_over: nothing follows.
        outcome: where it is over, the row that this run adds to the comparison; else empty.
    """

    mark: str
    kind: MarkKind
    headline: str
    facts: tuple[tuple[str, str], ...] = ()
    choices: tuple[Choice, ...] = ()
    is_over: bool = False
    outcome: Mapping[str, str | int | bool] = field(default_factory=dict)


class Steppable(Protocol):
    """Anything that can be stepped. A state is opaque to the control and never changed."""

    @property
    def title(self) -> str:
        """The name of what is stepped, for a heading and for screen readers."""
        ...

    def start(self) -> Any:
        """Give the first state."""
        ...

    def advance(self, state: Any, choice: str | None = None) -> Any:
        """Give the state after this one, going on as chosen.

        Raises: ValueError for a state that is over, or a choice that it does not offer (definite).
        """
        ...

    def frame(self, state: Any) -> Frame:
        """Say what a state looks like."""
        ...
