"""What do the events of a trajectory come to?

Chapter: 003, "Resume from the last verified checkpoint": recorded state decides, not recollection.

Idea: the newest valid checkpoint is loaded, and what was recorded after it is folded over it: answers that
are there, films that were excluded, routes that were changed, failures. Nobody's memory is asked, so a
process that was started a moment ago knows as much as the one that was killed.

    events ──> newest valid checkpoint ──> + what came after it ──> TrajectoryState ──> next move

Always true:
  FO1. The state is a function of the events and their order; reading it records nothing.
  FO2. A failed call counts against the budget and makes no node verified.
  FO3. An answer that is on record is never asked for again, unless something recorded set it aside.
  FO4. Evidence that was withheld supports nothing: its node is open again, and each node that needed it.

Not here: what a state holds (`decide.trajectory`), what is done next (`decide.moves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codeai_lab.decide.checkpoints import COMMITTED, Loaded, newest_valid_checkpoint
from codeai_lab.decide.plan import PLAN, Budget, NodeStatus, Plan, Proposal, Rejection, Role, Route
from codeai_lab.decide.repair import ErrorKind, WayOn
from codeai_lab.decide.states import EvidenceState, FailedCall, RequestState, WorkingState
from codeai_lab.decide.trajectory import Call, TrajectoryLimits, TrajectoryState
from codeai_lab.records import Event

STARTED = "trajectory.started"
COMPLETED = "trajectory.completed"


def project_trajectory(events: Sequence[Event]) -> TrajectoryState:
    """Fold the events of one trajectory, in order of seq, into its state.

    Raises: ValueError when they do not begin with `trajectory.started`.
    """
    if not events or events[0].kind != STARTED:
        raise ValueError("the history of a trajectory begins with trajectory.started")
    loaded = newest_valid_checkpoint(events)
    restarts = [event.seq for event in events if event.payload.get("policy") == "restart"]
    fold = _Fold(events, loaded)
    for event in events:
        if event.seq > max([loaded.seq, *restarts]):
            fold.take(event)
    return fold.state()


class _Fold:
    """What is known so far while the events after a checkpoint are read in order."""

    def __init__(self, events: Sequence[Event], loaded: Loaded) -> None:
        first, point = events[0], loaded.checkpoint
        self.events, self.loaded = events, loaded
        self.request = RequestState.from_json(first.payload["request"]) if point is None else point.request
        self.limits = TrajectoryLimits(**first.payload["limits"])
        self.plan = None if point is None else point.working.plan
        self.status = {} if point is None else dict(point.working.status)
        self.evidence = EvidenceState() if point is None else point.evidence
        self.calls: dict[tuple[str, str], Call] = {}
        self.excluded: dict[str, tuple[str, ...]] = {}
        self.routes: dict[tuple[str, str], Route] = {}
        self.fallbacks: dict[tuple[str, str], Event] = {}
        self.accepted: dict[str, Event] = {}
        self.tries: dict[tuple[str, str], int] = {}
        self.awaiting: dict[str, tuple[WayOn, ...]] = {}
        self.failure: Call | None = None
        self.started = {event.payload["call_id"]: _call(event) for event in events if _starts(event)}

    def take(self, event: Event) -> None:
        said = event.payload
        if event.kind == "call.started":
            self.failure = None
        elif event.kind == "call.succeeded":
            call = self.started[said["call_id"]]
            self.calls[call.proposal.node, str(call.proposal.role)] = replace(call, result=said["result"])
            self.tries.pop((call.proposal.node, "failures"), None)
        elif event.kind == "call.failed":
            self.failure = replace(self.started[said["call_id"]], error=said["error"])
            self._count(self.failure.proposal.node, "failures")
        elif event.kind == "validation.decided":
            self._decided(event)
        elif event.kind == "discovery.reopened":
            self._exclude(said["node"], said["film_id"])
        elif event.kind == "evidence.withheld":
            self._withhold(said["node"], said["film_id"])
        elif event.kind == "proposal.rejected" and said["reason"] == Rejection.REPEATS_REFUSED_INPUT:
            self._still_failed(said["proposal"])
        elif event.kind == "node.unresolved":
            self.status[said["node"]] = NodeStatus.UNRESOLVED
            self.awaiting[said["node"]] = tuple(map(WayOn, said["choices"]))
            self.failure = None
        elif event.kind == "way.chosen":
            self._chosen(said["node"], WayOn(said["way"]), said["query"])
        elif event.kind in _ANSWERS:
            self._answered(event)

    def state(self) -> TrajectoryState:
        spent = sum(map(_starts, self.events))
        failures = [event.payload for event in self.events if event.kind == "call.failed"]
        return TrajectoryState(
            trajectory_id=self.events[0].stream_id,
            request=self.request,
            limits=self.limits,
            loaded=self.loaded,
            working=WorkingState(
                plan=self.plan,
                status=self.status,
                budget=Budget(calls=self.limits.calls, spent=spent),
                failures=tuple(
                    FailedCall(
                        call_id=said["call_id"],
                        node=self.started[said["call_id"]].proposal.node,
                        error=said["error"],
                    )
                    for said in failures
                ),
            ),
            evidence=self.evidence,
            last_seq=self.events[-1].seq,
            version=sum(event.kind == COMMITTED for event in self.events),
            started_id=self.events[0].event_id,
            calls=self.calls,
            excluded=self.excluded,
            routes=self.routes,
            fallbacks=self.fallbacks,
            accepted=self.accepted,
            rejected=tuple(
                event.payload["proposal"] for event in self.events if event.kind == "proposal.rejected"
            ),
            tries=self.tries,
            awaiting=self.awaiting,
            failure=self.failure,
            refused=frozenset(
                self.started[said["call_id"]].proposal.key
                for said in failures
                if said["error"]["class"] == ErrorKind.INPUT
            ),
            completed=next((event for event in self.events if event.kind == COMPLETED), None),
        )

    def _decided(self, event: Event) -> None:
        """Take a decision: the plan opens its nodes, an accepted node waits for its checkpoint."""
        node = event.payload["node"]
        if not event.payload["accepted"]:
            self.accepted.pop(node, None)
        elif node == PLAN:
            self.plan = Plan.from_json(self.calls[PLAN, Role.PLAN].result)
            self.status = dict.fromkeys(self.plan.names, NodeStatus.OPEN)
        else:
            self.accepted[node] = event

    def _answered(self, event: Event) -> None:
        """Take what was decided about a failure: what is tried again, and by which route."""
        node, kind = event.payload.get("node"), event.kind
        failed, self.failure = self.failure, None
        if kind == "recovery.started":
            self.tries.clear()
            return
        node = str(node)
        self._count(node, kind)
        self.tries.pop((node, "failures"), None)
        if kind == "step.retried":
            self._set_aside(node, *Role)
        elif kind == "query.repaired" and failed is not None:
            self.routes[node, str(failed.proposal.role)] = replace(
                failed.route, arguments=event.payload["new"]
            )
        elif kind == "fallback.used":
            self.fallbacks[node, event.payload["role"]] = event
            self.routes[node, event.payload["role"]] = Route(**event.payload["new"])

    def _still_failed(self, proposal: Mapping[str, Any]) -> None:
        """A revision that repeats what was refused leaves the failure as it was, and has spent a repair."""
        key = Proposal(**{**proposal, "role": Role(proposal["role"])}).key
        failed = [event.payload for event in self.events if event.kind == "call.failed"]
        same = [one for one in failed if self.started[one["call_id"]].proposal.key == key]
        if same:
            self.failure = replace(self.started[same[-1]["call_id"]], error=same[-1]["error"])

    def _chosen(self, node: str, way: WayOn, query: str | None) -> None:
        """Take what a person chose for a film that stayed missing; only a question may leave it waiting."""
        ways = self.awaiting.pop(node, ())
        if way is WayOn.ASK and query is None:
            self.awaiting[node] = tuple(other for other in ways if other is not WayOn.ASK)
        elif way is not WayOn.REPORT_MISSING:
            self.status[node] = NodeStatus.OPEN
            self.tries = {at: times for at, times in self.tries.items() if at[0] != node}
            self._set_aside(node, *Role)
        if query is not None and self.plan is not None:
            at = node, str(Role.SEARCH)
            in_force = self.routes.get(at, self.plan.node(node).route)
            self.routes[at] = replace(in_force, arguments={"query": query})

    def _exclude(self, node: str, film_id: str) -> None:
        self.excluded[node] = (*self.excluded.get(node, ()), film_id)
        self._set_aside(node, Role.FETCH, Role.QUOTE)

    def _withhold(self, node: str, film_id: str | None) -> None:
        reopened = (node, *(self.plan.dependents(node) if self.plan else ()))
        self.evidence = self.evidence.without(reopened)
        for name in reopened:
            self.awaiting.pop(name, None)
            self.status[name] = NodeStatus.OPEN
            self._set_aside(name, *Role)
        if film_id is not None:
            self._exclude(node, film_id)

    def _set_aside(self, node: str, *roles: Role) -> None:
        self.accepted.pop(node, None)
        for role in roles:
            self.calls.pop((node, str(role)), None)

    def _count(self, node: str, what: str) -> None:
        self.tries[node, what] = self.tries.get((node, what), 0) + 1


_ANSWERS = ("recovery.started", "step.retried", "query.repaired", "fallback.used")


def _starts(event: Event) -> bool:
    return event.kind == "call.started"


def _call(event: Event) -> Call:
    said = event.payload
    proposal = Proposal(
        node=said["node"],
        role=Role(said["role"]),
        tool=said["tool"],
        provider=said["provider"],
        arguments=said["arguments"],
    )
    return Call(
        call_id=said["call_id"],
        proposal=proposal,
        seq=event.seq,
        recorded_at_us=event.recorded_at_us,
        event_id=event.event_id,
    )
