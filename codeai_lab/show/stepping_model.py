"""Where is a reader in what is stepped, and where have they been?

Chapter: 003, "Play the trace below": step to the failure, choose a policy, compare the runs.

Idea: a list of states that were reached, each with the one before it and the choice that led on. Going back
is looking at an earlier one; stepping on is looking at the next one, or asking for it where nobody has been;
another choice begins another branch. What is shown of it, and by what, is somebody else's business.

    kept      0 -- 1 -- 2 -- 3            the line: 0 1 4 5
                   `--- 4 -- 5            here: any of these

Always true:
  SM1. A state that was reached is kept and never asked for again: back and forth show the very same frames.
  SM2. A step that raises leaves everything as it was, and the next one works.
  SM3. Branches that are over are listed in the order in which they were finished, each one time.
  SM4. A step takes the same time whatever was kept before; only another branch is as long as it is.

Not here: comparing (`show.finished_runs`); controls and pages (`show.steppers`, `show.plain_steps`,
`show.static_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.stepping import Frame, Steppable
from codeai_lab.errors import LabError, RefusedRequestError
from codeai_lab.show.words import say

MOST_STEPS = 10_000
Script = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A state that was reached: its number, the one before it, what was chosen there, what it looks like."""

    number: int
    before: int | None
    choice: str | None
    state: Any
    frame: Frame


class SteppingModel:
    """What a person has stepped through, and where they stand.

    `watchers` are called, with nothing, after every change.
    """

    def __init__(self, steppable: Steppable) -> None:
        self.title = steppable.title
        self.watchers: list[Callable[[], None]] = []
        self._steppable = steppable
        self._kept: list[Kept] = []
        self._after: dict[tuple[int, str | None], int] = {}
        self._latest: dict[int, int] = {}
        self._selected: dict[int, str] = {}
        self._finished: list[int] = []
        self._line: list[int] = []
        self._place = 0
        self._unchanged = 0
        first = steppable.start()
        self._line.append(self._keep(None, None, first, steppable.frame(first)))

    @property
    def here(self) -> Kept:
        """The state that is shown."""
        return self._kept[self._line[self._place]]

    @property
    def frame(self) -> Frame:
        """What the state that is shown looks like."""
        return self.here.frame

    @property
    def place(self) -> int:
        """Where on the line the shown state is, from 0."""
        return self._place

    @property
    def length(self) -> int:
        """How many states the line has: those up to here, and those that were seen after it."""
        return len(self._line)

    @property
    def selected(self) -> str | None:
        """The choice that the next step takes; None where one must be made first, or none is needed."""
        return self._selected.get(self.here.number)

    @property
    def can_go_on(self) -> bool:
        """Whether a step is possible without choosing first."""
        return not self.frame.is_over and (not self.frame.choices or self.selected is not None)

    @property
    def unchanged(self) -> int:
        """How much of the line, from its beginning, is what it was before the last change."""
        return self._unchanged

    def line(self, since: int = 0, until: int | None = None) -> tuple[Kept, ...]:
        """Give the states of the branch that is shown, or those between two places."""
        return tuple(self._kept[number] for number in self._line[since:until])

    def finished(self) -> tuple[Kept, ...]:
        """Give the last states of the branches that are over, in the order in which they were finished."""
        return tuple(self._kept[number] for number in self._finished)

    def ends(self) -> tuple[Kept, ...]:
        """Give the states that nobody has gone on from, in the order in which they were reached."""
        gone_on_from = {before for before, _ in self._after}
        return tuple(state for state in self._kept if state.number not in gone_on_from)

    def branch(self, last: Kept) -> tuple[Kept, ...]:
        """Give the states from the first one to this one."""
        states = [last]
        while states[-1].before is not None:
            states.append(self._kept[states[-1].before])
        return tuple(reversed(states))

    # --- moving ------------------------------------------------------------------------------------------

    def choose(self, name: str) -> None:
        """Say how the next step goes on.

        Raises: RefusedRequestError for a choice that is not offered here.
        """
        self._selected[self.here.number] = self._offered(name)
        self._tell(len(self._line))

    def step(self, choice: str | None = None) -> Frame:
        """Go to the next state, along the choice given or else selected.

        Raises: RefusedRequestError where the run is over or a choice is missing; whatever the step raises.
        """
        here, frame = self.here, self.frame
        if frame.is_over:
            raise RefusedRequestError("This run is over; go back to take another way.")
        taken = self.selected if choice is None else self._offered(choice)
        if frame.choices and taken is None:
            raise RefusedRequestError(f"Choose first; {self._offer()}")
        number = self._after.get((here.number, taken))
        if number is None:
            state = self._steppable.advance(here.state, taken)
            number = self._keep(here.number, taken, state, self._steppable.frame(state))
        if taken is not None:
            self._selected[here.number] = taken
        self._go_on_to(number)
        return self.frame

    def back(self) -> Frame:
        """Go to the state before this one, exactly as it was.

        Raises: RefusedRequestError at the first one.
        """
        if self._place == 0:
            raise RefusedRequestError("This is the beginning; there is nothing before it.")
        self._place -= 1
        self._tell(len(self._line))
        return self.frame

    def to_start(self) -> Frame:
        """Go to the first state."""
        self._place = 0
        self._tell(len(self._line))
        return self.frame

    def play(self) -> Frame:
        """Step until a choice must be made or the run is over.

        Raises: RefusedRequestError when there is no end to it; whatever a step raises.
        """
        return self._step_while(lambda: self.can_go_on)

    def play_script(self, script: Script) -> None:
        """Play branches, each from the start: its choices in order, the last one again while it is offered.

        Raises: RefusedRequestError for a choice that is not offered where it comes; whatever a step raises.
        """
        for choices in script:
            self.to_start()
            for name in choices:
                self.play_until_asked()
                self.step(name)
            self.play()

    def play_until_asked(self) -> Frame:
        """Step until a choice is offered, or the run is over."""
        return self._step_while(lambda: not self.frame.choices and not self.frame.is_over)

    # --- keeping -----------------------------------------------------------------------------------------

    def _step_while(self, it_goes_on: Callable[[], bool]) -> Frame:
        for _ in range(MOST_STEPS):
            if not it_goes_on():
                return self.frame
            self.step()
        raise RefusedRequestError(f"This run was not over after {MOST_STEPS:,} steps; step on by hand.")

    def _keep(self, before: int | None, choice: str | None, state: Any, frame: Frame) -> int:
        number = len(self._kept)
        self._kept.append(Kept(number=number, before=before, choice=choice, state=state, frame=frame))
        if before is not None:
            self._after[before, choice] = number
        # A way that was taken and is offered again stays selected; a new offer has to be answered.
        if choice is not None and choice in {one.name for one in frame.choices}:
            self._selected[number] = choice
        if frame.is_over:
            self._finished.append(number)
        return number

    def _go_on_to(self, number: int) -> None:
        """Move one place; another branch comes with what was seen of it before."""
        self._latest[self.here.number] = number
        self._place += 1
        unchanged = len(self._line)
        if self._line[self._place : self._place + 1] != [number]:
            unchanged = self._place
            del self._line[self._place :]
            ahead: int | None = number
            while ahead is not None:
                self._line.append(ahead)
                ahead = self._latest.get(ahead)
        self._tell(unchanged)

    def _offered(self, name: str) -> str:
        if name not in {choice.name for choice in self.frame.choices}:
            raise RefusedRequestError(f"That is not offered here; {self._offer()}")
        return name

    def _offer(self) -> str:
        ways = ", ".join(say(choice.label) for choice in self.frame.choices)
        return f"there are: {ways}." if ways else "there is nothing to choose."

    def _tell(self, unchanged: int) -> None:
        self._unchanged = unchanged
        for watcher in self.watchers:
            watcher()


def trouble_of(do: Callable[[], object]) -> str:
    """Do it and give what went wrong as one sentence, "" where nothing did; an interrupt is not held back."""
    try:
        do()
    except LabError as error:
        return say(str(error))
    except Exception as error:
        # Its own text is not for a reader: it may hold a path or a payload.
        return f"The step ended in {type(error).__name__}; everything is as it was before it."
    return ""
