"""What is known where a trajectory stands?

Chapter: 003, "Checkpoint only verified progress": a failed call is recorded and changes no conclusion.

Idea: one frozen value says everything that the next move depends on: what was verified and on what it rests,
which answers are there, which films and routes are out, what failed last, what is left to spend.

Always true:
  TS1. A state is frozen and refers to the seq up to which it was read.
  TS2. A candidate is the best hit that is not excluded and not below the threshold of its search.

Not here: reading a state from events (`decide.folding`), what is done next (`decide.moves`), the three
policies (`decide.recovery`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codeai_lab.decide.acceptance import Acceptance
from codeai_lab.decide.checkpoints import Loaded
from codeai_lab.decide.plan import Plan, Proposal, Role, Route
from codeai_lab.decide.repair import WayOn
from codeai_lab.decide.states import EvidenceState, RequestState, WorkingState
from codeai_lab.records import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryLimits:
    """What a trajectory may spend by itself before it asks a person.

    Args:
        calls: the budget, failed calls included.
        call_retries, step_retries: how often one call, and a whole step, is tried again after a failure that
            may pass.
        switches: how often it may go over to a standby provider by itself after that.
        repairs: how often an input may be revised after an error that will not pass; other_routes: how often
            another search may be tried by itself after that.
        standby: provider -> who stands in for it.
        acceptance: tool -> the least score of a candidate that it finds.
        asks: where a film stays missing, a person chooses how to go on.
    """

    calls: int = 20
    call_retries: int = 0
    step_retries: int = 0
    switches: int = 0
    repairs: int = 3
    other_routes: int = 0
    standby: Mapping[str, str] = field(default_factory=dict)
    acceptance: Mapping[str, float] = field(default_factory=dict)
    asks: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "call_retries": self.call_retries,
            "step_retries": self.step_retries,
            "switches": self.switches,
            "repairs": self.repairs,
            "other_routes": self.other_routes,
            "standby": dict(self.standby),
            "acceptance": dict(self.acceptance),
            "asks": self.asks,
        }

    def acceptance_of(self, route: Route) -> Acceptance:
        """Give the threshold of a path."""
        minimum = self.acceptance.get(route.tool, 0.0)
        return Acceptance(method=route.tool, provider=route.provider, minimum=minimum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that was started; with a result, an error, or neither: then nobody knows."""

    call_id: str
    proposal: Proposal
    seq: int
    recorded_at_us: int
    event_id: str
    result: Any = None
    error: Mapping[str, Any] | None = None

    @property
    def route(self) -> Route:
        return Route(
            tool=self.proposal.tool, provider=self.proposal.provider, arguments=self.proposal.arguments
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryState:
    """What the record says about one trajectory.

    Args:
        loaded: the checkpoint that it rests on, and those that were refused.
        calls: every call since then that was answered and not set aside, by node and role.
        excluded: node -> films that are no candidates there any more.
        routes: (node, role) -> the path that took the place of the plan's.
        fallbacks: (node, role) -> the newest `fallback.used`.
        accepted: node -> the decision that awaits its checkpoint.
        failure: the failed call that nothing has answered yet.
        tries: what was failed and tried again since the last decision, by node: (what, how often).
        awaiting: node that was left unresolved -> the ways on that nobody has chosen from yet.
        refused: keys of the calls that failed by their input; none of them may be made again.
        version: of the newest checkpoint that was committed, loaded or not.
    """

    trajectory_id: str
    request: RequestState
    limits: TrajectoryLimits
    loaded: Loaded
    working: WorkingState
    evidence: EvidenceState
    last_seq: int
    version: int
    started_id: str
    calls: Mapping[tuple[str, str], Call]
    excluded: Mapping[str, tuple[str, ...]]
    routes: Mapping[tuple[str, str], Route]
    fallbacks: Mapping[tuple[str, str], Event]
    accepted: Mapping[str, Event]
    rejected: tuple[Mapping[str, Any], ...]
    tries: Mapping[tuple[str, str], int]
    awaiting: Mapping[str, tuple[WayOn, ...]]
    failure: Call | None
    refused: frozenset[tuple[str, str, str, str]]
    completed: Event | None

    @property
    def plan(self) -> Plan | None:
        return self.working.plan

    def call(self, node: str, role: Role) -> Call | None:
        """Give the answered call of a node for a role, if there is one."""
        return self.calls.get((node, str(role)))

    def candidate(self, node: str) -> Mapping[str, Any] | None:
        """Give the best hit of a node that is not excluded and not below its threshold; None without one."""
        search = self.call(node, Role.SEARCH)
        if search is None:
            return None
        least = self.limits.acceptance_of(search.route).minimum
        left = (hit for hit in search.result if hit["film_id"] not in self.excluded.get(node, ()))
        return next((hit for hit in left if hit["score"] >= least), None)
