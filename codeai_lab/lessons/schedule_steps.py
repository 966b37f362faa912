"""Two submissions of one key: who moves next?

Chapter: 004, "Two threads, one key, two effects".

Idea: there are no threads. Wherever both submissions can move, a person says which of them does; where only
one can, it moves by itself. In the end the schedule is a row: the letters, the effects, what each caller was
told.

    steps = ScheduleSteps(UNGUARDED)
    stepper(steps, script=[steps.script((0, 0, 1, 1, 0, 1, 0, 1))])

Always true:
  SS1. Moving along a schedule gives the effects and answers that playing it gives (`play_schedule`).
  SS2. A submission that must wait is not offered; where none can move and not all are over, all are stuck.

Not here: counting schedules (`lessons.schedules`), playing one on a ledger file (`explore.schedules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codeai_lab.decide.stepping import Choice, Frame, MarkKind
from codeai_lab.explore.moments import Moment, Race
from codeai_lab.explore.protocols import Composed, composed
from codeai_lab.run.revisions import Revision

LETTERS = "abcd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A moment of the race, who moved to get there, and what the last move was; no stage at the start."""

    moment: Moment
    schedule: tuple[int, ...] = ()
    stage: str | None = None
    recorded: tuple[str, ...] = ()
    happened: bool = False


class ScheduleSteps:
    """Submissions of one key under one rule set, of which a person says who moves."""

    def __init__(self, rules: Revision | Composed, *, submissions: int = 2) -> None:
        """Take a rule set, and how many submissions there are: 1 to 4."""
        self._race = Race(composed(rules), submissions)

    @property
    def title(self) -> str:
        """The name of what is stepped."""
        return f"One key under the rules {self._race.rules.name}: who moves next?"

    def start(self) -> Turn:
        """Give the moment at which nobody has moved."""
        return Turn(moment=self._race.start())

    def advance(self, state: Turn, choice: str | None = None) -> Turn:
        """Let one submission take one stage: the chosen one, or the only one that can.

        Raises: ValueError when none can move, or the choice is not offered (definite).
        """
        turns = self._race.can_move(state.moment)
        named = len(turns) > 1
        offered: dict[str | None, int] = {LETTERS[one] if named else None: one for one in turns}
        if choice not in offered:
            raise ValueError("this choice is not offered here" if turns else "the schedule is over")
        number = offered[choice]
        stage = str(state.moment.walks[number].next_stage)
        moment = self._race.after(state.moment, number)
        return Turn(
            moment=moment,
            schedule=(*state.schedule, number),
            stage=stage,
            recorded=tuple(event.kind for event in moment.events[len(state.moment.events) :]),
            happened=moment.effects > state.moment.effects,
        )

    def frame(self, state: Turn) -> Frame:
        """Say where each submission stands and how many effects there are."""
        moment = state.moment
        turns = self._race.can_move(moment)
        walks = enumerate(moment.walks)
        return Frame(
            mark="start" if state.stage is None else f"{LETTERS[state.schedule[-1]]} {state.stage}",
            kind=self._kind(state, turns),
            headline=_headline(state, turns),
            facts=(
                *((LETTERS[number], self._stands(moment, number)) for number, _ in walks),
                ("effects so far", str(moment.effects)),
                ("schedule so far", _letters(state.schedule) or "-"),
            ),
            choices=self._choices(moment, turns) if len(turns) > 1 else (),
            is_over=not turns,
            outcome={} if turns else _outcome(state),
        )

    def script(self, schedule: Sequence[int]) -> tuple[str, ...]:
        """Give the choices that lead along a schedule: its letters wherever more than one could move.

        Raises: ValueError where the schedule moves one that cannot.
        """
        state, choices = self.start(), []
        for number in schedule:
            turns = self._race.can_move(state.moment)
            if number not in turns:
                raise ValueError("the schedule moves one that cannot move")
            choice = LETTERS[number] if len(turns) > 1 else None
            choices += [choice] if choice else []
            state = self.advance(state, choice)
        return tuple(choices)

    def _choices(self, moment: Moment, turns: tuple[int, ...]) -> tuple[Choice, ...]:
        return tuple(
            Choice(name=LETTERS[number], label=f"{LETTERS[number]} moves: {moment.walks[number].next_stage}")
            for number in turns
        )

    def _kind(self, state: Turn, turns: tuple[int, ...]) -> MarkKind:
        if state.stage is None:
            return MarkKind.START
        if state.happened and state.moment.effects > 1:
            return MarkKind.FAILURE
        return MarkKind.STEP if turns else MarkKind.END

    def _stands(self, moment: Moment, number: int) -> str:
        walk = moment.walks[number]
        if walk.is_over:
            return f"over; told: {moment.answers[number]}"
        waits = "" if number in self._race.can_move(moment) else ", and must wait"
        return f"before {walk.next_stage}{waits}"


def _headline(state: Turn, turns: tuple[int, ...]) -> str:
    moment = state.moment
    if state.stage is None:
        return "Nobody has moved."
    said = f"{LETTERS[state.schedule[-1]]} took {state.stage}"
    said += f" and recorded {', '.join(state.recorded)}." if state.recorded else "."
    if state.happened:
        said += f" The world now shows {'1 effect' if moment.effects == 1 else f'{moment.effects} effects'}."
    if not turns:
        stuck = any(not walk.is_over for walk in moment.walks)
        said += " Nobody can move any more: they are stuck." if stuck else " All are over."
    return said


def _outcome(state: Turn) -> dict[str, str | int | bool]:
    told = {f"{LETTERS[n]} is told": answer or "stuck" for n, answer in enumerate(state.moment.answers)}
    return {"schedule": _letters(state.schedule), "effects": state.moment.effects, **told}


def _letters(schedule: Sequence[int]) -> str:
    return "".join(LETTERS[number] for number in schedule)
