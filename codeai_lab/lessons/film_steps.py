"""How does the trajectory look from one checkpoint to the next, and what follows from each choice?

Chapter: 003, "Play the trace below": it pauses when the memory search fails; choose a recovery policy.

Idea: a step is one turn: a call with its answer, and what is validated and committed because of it. At the
failure the policies are the choices. A state is the events themselves, so going back is exact, and another
policy chosen at the failure starts another branch.

    steps = FilmSteps()
    state = steps.start()
    while not steps.frame(state).choices: state = steps.advance(state)
    state = steps.advance(state, "fallback")

Always true:
  FS1. A state holds the events up to it and is never changed; the same choices give the same events.
  FS2. A branch that is over has the row of the comparison as its outcome, counted from its own events.

Not here: the controls (`show.steppers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.moves import Act, next_move
from codeai_lab.decide.plan import NodeStatus
from codeai_lab.decide.recovery import POLICIES, Policy
from codeai_lab.decide.stepping import Choice, Frame, MarkKind
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_rows import row_of_recovery
from codeai_lab.records import Event
from codeai_lab.run.films import FILMS
from codeai_lab.store.memory import MemoryLedger

TITLES = {film.film_id: film.title for film in FILMS}
MEANINGS = {
    Policy.RESTART: ("Restart", "begin again from the request alone; what was verified is discarded"),
    Policy.RESUME: ("Resume", "go on from the newest checkpoint with the open branch, by the same path"),
    Policy.FALLBACK: ("Fall back", "go on from the newest checkpoint, by another path that is recorded"),
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
        if choice is not None:
            run.harness.recover(run.name, choice)
        else:
            run.harness.walk(run.name, asks_anew=state.asks_anew).turn()
        events = run.events
        return Standing(
            events=events,
            state=project_trajectory(events),
            policy=Policy(choice) if choice else state.policy,
            new=len(events) - len(state.events),
            asks_anew=choice is not None,
        )

    def frame(self, state: Standing) -> Frame:
        """Say what the checkpoint holds, where each node stands, and what was spent and has failed."""
        latest = state.events[len(state.events) - state.new :]
        is_over = state.state.completed is not None
        return Frame(
            mark=_mark(latest),
            kind=_kind(latest),
            headline=_headline(state, latest),
            facts=_facts(state),
            choices=self._choices(state),
            is_over=is_over,
            outcome=_outcome(state.events) if is_over else {},
        )

    def _choices(self, state: Standing) -> tuple[Choice, ...]:
        if next_move(state.state).act is not Act.PAUSE:
            return ()
        offered = [policy for policy, choose in POLICIES.items() if choose(state.state) is not None]
        return tuple(
            Choice(name=str(policy), label=MEANINGS[policy][0], meaning=MEANINGS[policy][1])
            for policy in offered
        )


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


# --- what a state looks like ----------------------------------------------------------------------------


def _mark(latest: tuple[Event, ...]) -> str:
    if not latest:
        return "read"
    last = latest[-1]
    if last.kind == "checkpoint.committed":
        return f"v{last.payload['version']}"
    if last.kind == "recovery.started" or latest[0].kind == "recovery.started":
        return str(latest[0].payload["policy"])
    if last.kind == "trajectory.completed":
        return "completed"
    started = [event for event in latest if event.kind == "call.started"]
    return str(started[-1].payload["tool"]) if started else last.kind.split(".")[1]


def _kind(latest: tuple[Event, ...]) -> MarkKind:
    kinds = [event.kind for event in latest]
    for kind, mark in _MARKS.items():
        if kind in kinds:
            return mark
    return MarkKind.STEP


def _headline(state: Standing, latest: tuple[Event, ...]) -> str:
    said = [words for event in latest if (words := _words(event, state.state))]
    if next_move(state.state).act is Act.PAUSE:
        said.append("It is paused: choose how to go on.")
    return " ".join(said) or "Nothing was recorded."


def _words(event: Event, state: TrajectoryState) -> str:
    say = _SENTENCES.get(event.kind, "")
    said: dict[str, object] = dict(event.payload)
    if event.kind == "validation.decided":
        say = "{node} is accepted." if said["accepted"] else "{node} is refused: {reason}."
    if event.kind == "call.failed":
        failed = {one.call_id: one for one in state.working.failures}[event.payload["call_id"]]
        said |= {"node": failed.node, "message": failed.error["message"]}
    return say.format_map(said)


def _facts(state: Standing) -> tuple[tuple[str, str], ...]:
    now = state.state
    loaded = now.loaded.checkpoint
    sought = [one.node for one in now.request.sought]
    nodes = now.plan.names if now.plan else (*sought, "compare")
    budget = now.working.budget
    failed = [f"{one.call_id}: {one.error['code']}" for one in now.working.failures]
    return (
        ("checkpoint", f"v{loaded.version}" if loaded else "none"),
        *((node, _node(now, node)) for node in nodes),
        ("calls", f"{budget.spent} of {budget.calls}"),
        ("failures on record", ", ".join(failed) or "none"),
        ("policy", str(state.policy or "not chosen")),
    )


def _node(now: TrajectoryState, node: str) -> str:
    status = now.working.status.get(node)
    item = now.evidence.of(node)
    if status is NodeStatus.VERIFIED and item is not None:
        return f"verified: {TITLES.get(item.film_id or '', item.source_id)} by {item.method}"
    hit = now.candidate(node)
    if status is NodeStatus.OPEN and hit is not None:
        return f"open; candidate {hit['title']}"
    return "waiting" if status is None else str(status)


def _outcome(events: tuple[Event, ...]) -> Mapping[str, str | int | bool]:
    row = row_of_recovery(events)
    return {**row, "verified_kept": ", ".join(row["verified_kept"]) or "none"}


# The first of these that a step recorded says what kind of moment it was.
_MARKS = {
    "trajectory.completed": MarkKind.END,
    "recovery.started": MarkKind.CHOICE,
    "call.failed": MarkKind.FAILURE,
    "trajectory.started": MarkKind.START,
    "checkpoint.committed": MarkKind.CHECKPOINT,
    "evidence.withheld": MarkKind.REFUSAL,
    "proposal.rejected": MarkKind.REFUSAL,
    "discovery.reopened": MarkKind.REFUSAL,
    "node.unresolved": MarkKind.REFUSAL,
}
_SENTENCES = {
    "trajectory.started": "The request is recorded.",
    "checkpoint.committed": "Checkpoint v{version} is committed.",
    "call.started": "{call_id} asks {tool} for {node}.",
    "call.failed": "{message} No conclusion about {node} changes.",
    "recovery.started": "The policy {policy} goes on from checkpoint v{from_version}.",
    "fallback.used": "Another path serves {node}, by the rule {rule}.",
    "authority.asked": "The saved sources are judged anew for {performer}.",
    "evidence.withheld": "{source_id} is withheld: {reason}.",
    "discovery.reopened": "{film_id} is out, and {node} is searched for again: {reason}.",
    "proposal.rejected": "A proposal is rejected: {reason}.",
    "query.repaired": "The query for {node} is changed, repair {repair}.",
    "step.retried": "The whole step {node} is done again.",
    "node.unresolved": "{node} stays unresolved: {reason}.",
    "trajectory.completed": "Completed ({completion}); recommended: {recommendation}.",
}
