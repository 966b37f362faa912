"""How does the trajectory look from one checkpoint to the next, and what follows from each choice?

Chapter: 003, "Play the trace below": it pauses when the memory search fails; choose a recovery policy.

Idea: a step is one turn: a call with its answer, and what is validated and committed because of it. At the
failure the policies are the choices; where a story asks about a missing film, the ways around it are. A state
is the events themselves, so going back is exact, and another choice starts another branch.

    steps = FilmSteps()
    state = steps.start()
    while not steps.frame(state).choices: state = steps.advance(state)
    state = steps.advance(state, "fallback")

Always true:
  FS1. A state holds the events up to it and is never changed; the same choices give the same events.
  FS2. Only what is offered can be chosen: the policies after a failure, the ways around a missing film.

Not here: what a state looks like (`lessons.film_frames`), the controls (`show.steppers`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.moves import Act, next_move
from codeai_lab.decide.recovery import POLICIES, Policy
from codeai_lab.decide.repair import WayOn
from codeai_lab.decide.stepping import Choice, Frame, MarkKind
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.decide.ways import offered_ways
from codeai_lab.lessons.film_frames import frame_of
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger

MEANINGS = {
    Policy.RESTART: ("Restart", "begin again from the request alone; what was verified is discarded"),
    Policy.RESUME: ("Resume", "go on from the newest checkpoint with the open branch, by the same path"),
    Policy.FALLBACK: ("Fall back", "go on from the newest checkpoint, by another path that is recorded"),
}
WAYS = {
    WayOn.OTHER_ROUTE: ("Try another route", "the other search serves the branch, recorded as a fallback"),
    WayOn.ASK: ("Ask the reader", "in other words the branch is searched for again; else it goes on waiting"),
    WayOn.REPORT_MISSING: ("Report it missing", "the answer names the film that was not found"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a branch stands: its events, the state that they come to, the policy that was chosen, if any.

    Args:
        new: how many of the events the last step recorded.
        asks_anew: a recovery was just chosen, so saved sources are judged before anything else.
    """

    events: tuple[Event, ...]
    state: TrajectoryState
    policy: Policy | None = None
    new: int = 0
    asks_anew: bool = False


class FilmSteps:
    """A story of a film comparison, to be moved by a person; the usual one by default."""

    def __init__(self, story: Story = STORY) -> None:
        self._story = story

    @property
    def title(self) -> str:
        """The name of what is stepped."""
        return f"Restart, resume or fall back: {self._story.request.goal}"

    def start(self) -> Standing:
        """Give the state in which the request is recorded as checkpoint v1."""
        events = Play(self._story, Policy.RESUME, MemoryLedger()).events
        return Standing(events=events, state=project_trajectory(events), new=len(events))

    def advance(self, state: Standing, choice: str | None = None) -> Standing:
        """Take one turn, or choose a policy where the trajectory is paused.

        Raises: ValueError when it is over, or for a choice that is not offered (definite).
        """
        offered = [one.name for one in self._choices(state)]
        if state.state.completed is not None:
            raise ValueError("the trajectory is completed")
        if (choice is None) == bool(offered) or (choice is not None and choice not in offered):
            raise ValueError(f"this is offered here: {', '.join(offered) or 'to go on'}")
        ledger = MemoryLedger()
        ledger.restore(state.events)
        run = Play(self._story, Policy.RESUME, ledger, process=str(len(state.events)))
        if choice in list(WayOn):
            run.choose_way(str(choice))
        elif choice is not None:
            run.harness.recover(run.name, choice)
        else:
            run.harness.walk(run.name, asks_anew=state.asks_anew).turn()
        events = run.events
        return Standing(
            events=events,
            state=project_trajectory(events),
            policy=Policy(choice) if choice in list(Policy) else state.policy,
            new=len(events) - len(state.events),
            asks_anew=choice in list(Policy),
        )

    def frame(self, state: Standing) -> Frame:
        """Say what the checkpoint holds, where each node stands, and what was spent and has failed."""
        return frame_of(
            state.events, state.state, new=state.new, policy=state.policy, choices=self._choices(state)
        )

    def _choices(self, state: Standing) -> tuple[Choice, ...]:
        if next_move(state.state).act is not Act.PAUSE:
            return ()
        policies = [policy for policy, choose in POLICIES.items() if choose(state.state) is not None]
        return (
            *(_choice(policy, *MEANINGS[policy]) for policy in policies),
            *(_choice(way, *WAYS[way]) for way in offered_ways(state.state)),
        )


def _choice(name: str, label: str, meaning: str) -> Choice:
    return Choice(name=str(name), label=label, meaning=meaning)


def long_trajectory(states: int = 500) -> NumberedSteps:
    """Give something of that many states to step through, made up to measure a stepper: nothing is run."""
    return NumberedSteps(states)


class NumberedSteps:
    """States that are numbers: every tenth a checkpoint, each one before it a failure that was retried."""

    def __init__(self, states: int) -> None:
        self._states = states

    @property
    def title(self) -> str:
        """The name of what is stepped."""
        return f"A made-up trajectory of {self._states} states"

    def start(self) -> int:
        """Give the first state."""
        return 1

    def advance(self, state: int, choice: str | None = None) -> int:
        """Give the next number.

        Raises: ValueError at the last one, or for any choice (definite).
        """
        if choice is not None or state == self._states:
            raise ValueError("no choice is offered here" if choice else "the trajectory is over")
        return state + 1

    def frame(self, state: int) -> Frame:
        """Say which number it is."""
        kinds = {0: MarkKind.CHECKPOINT, 9: MarkKind.FAILURE}
        kind = MarkKind.START if state == 1 else kinds.get(state % 10, MarkKind.STEP)
        return Frame(
            mark=f"state {state}",
            kind=MarkKind.END if state == self._states else kind,
            headline=f"This is state {state} of {self._states}.",
            facts=(("checkpoint", f"v{1 + state // 10}"), ("calls", str(state))),
            is_over=state == self._states,
            outcome={"states": state} if state == self._states else {},
        )
