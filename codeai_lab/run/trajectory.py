"""How does a trajectory move, so that it may be killed between any two steps?

Chapter: 003, "Checkpoint only verified progress": read the current state, attempt an action, validate its
result, then commit the next state.

Idea: a turn is a tuple of small stages, and each records in one append or not at all. The walk holds nothing
that the record does not: every turn begins by reading the state, so a walk in another process goes on where
this one was killed.

    ask_authority | read_state  attempt  ask  observe  validate  commit | read_state ...

Always true:
  TR1. One step takes one stage that has something to do, and a stage makes at most one append.
  TR2. A stage appends only if the stream is as this walk last read it; a walk that was overtaken stops.
  TR3. A walk ends when the trajectory is completed, or paused for a person to choose.

Not here: the stages (`run.turns`, `run.validating`, `run.sources`), the front door (`run.harness`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.moves import PLANNER, Move
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import Event
from codeai_lab.run.facts import Bench
from codeai_lab.run.planner import Caller, Planner
from codeai_lab.store.protocol import Unchanged

T = TypeVar("T")
Part = tuple[str, Mapping[str, Any]]
COMPLETED, PAUSED = "completed", "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Who is there to be asked, and on whose behalf: providers by name, the planner, performer, authority."""

    providers: Mapping[str, Caller]
    planner: Planner
    performer: str
    authority: Authority

    def caller(self, provider: str) -> Caller:
        """Give whoever goes by this name; raises KeyError for nobody."""
        return self.planner if provider == PLANNER else self.providers[provider]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryFacts:
    """What a walk knows within one turn.

    Args:
        state: as last read.
        started: the `call.started` that awaits its answer; `answer` what the tool said, not recorded yet.
        end: how the walk ended.
    """

    trajectory_id: str
    desk: Desk
    state: TrajectoryState
    move: Move | None = None
    started: Event | None = None
    answer: Part | None = None
    end: str | None = None


# A stage gives None where it has nothing to do.
Stage = Callable[[Bench, TrajectoryFacts], TrajectoryFacts | None]


class TrajectoryWalk:
    """One trajectory under way: run, moved by hand, or dropped where a process would have died.

    Args:
        first: what is done once, before the first turn.
        turn: the stages of a turn, again and again.
    """

    def __init__(
        self,
        bench: Bench,
        trajectory_id: str,
        desk: Desk,
        *,
        first: tuple[Stage, ...],
        turn: tuple[Stage, ...],
    ) -> None:
        self._bench = bench
        self._turn = turn
        self._left = [*first, *turn]
        self.facts = TrajectoryFacts(
            trajectory_id=trajectory_id, desk=desk, state=state_of(bench, trajectory_id)
        )

    @property
    def is_over(self) -> bool:
        return self.facts.end is not None

    @property
    def next_stage(self) -> str:
        """The name of the stage that is tried next."""
        return self._left[0].__name__

    def turn(self) -> None:
        """Take the stages up to the end of this turn, whether they have something to do or not."""
        while self._left[0] is not self._turn[0]:
            self._take()
        self._take()
        while not self.is_over and self._left != list(self._turn):
            self._take()

    def run(self) -> str:
        """Take every stage until the trajectory is completed or paused, and say which."""
        while not self.is_over:
            self.step()
        return needed(self.facts.end)

    def step(self) -> str:
        """Take the next stage that has something to do, and give its name.

        Raises: RefusedRequestError (definite) when somebody else went on with the trajectory;
            NotPermittedError (definite); LedgerError; ValueError for a walk that is over.
        """
        while (took := self._take()) is None:
            pass
        return took

    def _take(self) -> str | None:
        """Take one stage; give its name, or None where it had nothing to do."""
        if self.is_over:
            raise ValueError("the walk is over")
        stage = self._left.pop(0)
        self._left = self._left or list(self._turn)
        after = stage(self._bench, self.facts)
        self.facts = after or self.facts
        return None if after is None else stage.__name__


def state_of(bench: Bench, trajectory_id: str) -> TrajectoryState:
    """Read the state of a trajectory.

    Raises: RefusedRequestError (definite) for one that is not recorded.
    """
    events = bench.ledger.read(trajectory_id)
    if not events:
        raise RefusedRequestError("There is no such trajectory in this ledger; start it first.")
    return project_trajectory(events)


def record(bench: Bench, state: TrajectoryState, *parts: Part, cause: str | None = None) -> tuple[Event, ...]:
    """Append what a stage found, in one append (TR1); its cause is the trajectory's first event by default.

    Raises: RefusedRequestError (definite) when the stream is not as the state says (TR2).
    """
    drafts = [
        bench.draft(state.trajectory_id, kind, said, cause=cause or state.started_id) for kind, said in parts
    ]
    unchanged = Unchanged(stream=state.trajectory_id, last_seq=state.last_seq)
    if recorded := bench.ledger.append(*drafts, unless_changed=[unchanged]):
        return recorded
    raise RefusedRequestError("Somebody else went on with this trajectory; read its state again.")


def needed(fact: T | None) -> T:
    """Give a fact that an earlier stage found out; raises ValueError when there is none."""
    if fact is None:
        raise ValueError("the stage needs one before it that finds out what it works with")
    return fact
