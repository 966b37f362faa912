"""What does one state of a trajectory look like to who steps through it?

Chapter: 003, "Play the trace below": the checkpoint, the status of each branch, the calls that were spent.

Idea: what the last step recorded is said in sentences; what is true now is read from the state. Nothing else
is known here, so a frame that was shown before comes out the same.

Always true:
  FF1. A frame is a function of the events, the state that they come to, and what was chosen.
  FF2. A branch that is over has a row of the comparison as its outcome, counted from its own events: of the
       policy that was chosen, or of the way around a missing film.

Not here: moving from one state to the next (`lessons.film_steps`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeai_lab.decide.moves import Act, next_move
from codeai_lab.decide.plan import NodeStatus
from codeai_lab.decide.recovery import Policy
from codeai_lab.decide.stepping import Choice, Frame, MarkKind
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.lessons.film_rows import row_of_recovery
from codeai_lab.records import Event
from codeai_lab.run.films import FILMS

TITLES = {film.film_id: film.title for film in FILMS}


def frame_of(
    events: Sequence[Event],
    now: TrajectoryState,
    *,
    new: int,
    policy: Policy | None,
    choices: tuple[Choice, ...],
) -> Frame:
    """Show a state.

    Args:
        new: how many of the events the last step recorded.
    """
    latest = events[len(events) - new :]
    is_over = now.completed is not None
    return Frame(
        mark=_mark(latest),
        kind=_kind(latest),
        headline=_headline(now, latest),
        facts=_facts(now, policy),
        choices=choices,
        is_over=is_over,
        outcome=_outcome(events) if is_over else {},
    )


def _mark(latest: Sequence[Event]) -> str:
    if not latest:
        return "read"
    last = latest[-1]
    if last.kind == "checkpoint.committed":
        return f"v{last.payload['version']}"
    if last.kind == "recovery.started" or latest[0].kind == "recovery.started":
        return str(latest[0].payload["policy"])
    if latest[0].kind == "way.chosen":
        return str(latest[0].payload["way"])
    if last.kind == "trajectory.completed":
        return "completed"
    started = [event for event in latest if event.kind == "call.started"]
    return str(started[-1].payload["tool"]) if started else last.kind.split(".")[1]


def _kind(latest: Sequence[Event]) -> MarkKind:
    kinds = [event.kind for event in latest]
    for kind, mark in _MARKS.items():
        if kind in kinds:
            return mark
    return MarkKind.STEP


def _headline(now: TrajectoryState, latest: Sequence[Event]) -> str:
    said = [words for event in latest if (words := _words(event, now))]
    if next_move(now).act is Act.PAUSE:
        said.append("It is paused: choose how to go on.")
    return " ".join(said) or "Nothing was recorded."


def _words(event: Event, now: TrajectoryState) -> str:
    say = _SENTENCES.get(event.kind, "")
    said: dict[str, object] = dict(event.payload)
    if event.kind == "validation.decided":
        say = "{node} is accepted." if said["accepted"] else "{node} is refused: {reason}."
    if event.kind == "query.repaired" and said["old"] == said["new"]:
        say = "For {node} the same query is proposed again, repair {repair}."
    if event.kind == "call.failed":
        failed = {one.call_id: one for one in now.working.failures}[event.payload["call_id"]]
        said |= {"node": failed.node, "message": failed.error["message"]}
    return say.format_map(said)


def _facts(now: TrajectoryState, policy: Policy | None) -> tuple[tuple[str, str], ...]:
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
        ("policy", str(policy or "not chosen")),
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


def _outcome(events: Sequence[Event]) -> Mapping[str, str | int | bool]:
    row, said = row_of_recovery(events), events[-1].payload
    if row["policy"] == "none" and any(event.kind == "way.chosen" for event in events):
        return {
            "calls": sum(event.kind == "call.started" for event in events),
            "path": row["source_of_second_film"] or "none",
            "provenance_changed": row["provenance_changed"],
            **{name: said[name] for name in ("status", "completion", "recommendation")},
        }
    return {**row, "verified_kept": ", ".join(row["verified_kept"]) or "none"}


# The first of these that a step recorded says what kind of moment it was.
_MARKS = {
    "trajectory.completed": MarkKind.END,
    "recovery.started": MarkKind.CHOICE,
    "way.chosen": MarkKind.CHOICE,
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
    "way.chosen": "For {node} this way on is chosen: {way}.",
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
