"""What is done next?

Chapter: 003, "Resume from the last verified checkpoint": loading a checkpoint turns the saved record into a
scheduling decision; "Retry only operations that can be repeated safely".

Idea: one function from the state to the next move. Nodes are taken in the plan's order. An open failure comes
first, and its kind decides:

    may pass        the same call again, then the whole step, then a standby provider, then a person is asked
    input is wrong  a repaired input, so many times, then another route, or the node stays unresolved
    contradiction   the candidate is excluded and discovery is open again

Always true:
  MV1. A verified node is never given a call.
  MV2. Each kind of trying again ends: by its own limit, and by the budget.
  MV3. A failure that may pass and has used its limits pauses the trajectory; it changes no conclusion.
  MV4. A node that nothing can serve is left unresolved, the verified ones as they are.
  MV5. A revision that repeats what was refused spends a repair, as one that fails does.

Not here: the three policies after a pause (`decide.recovery`), the ways around a missing film
(`decide.ways`), carrying a move out (`run.trajectory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from codeai_lab.decide.acceptance import contradiction, recommended, scores
from codeai_lab.decide.plan import PLAN, NodeStatus, PlanNode, Proposal, Role, Route
from codeai_lab.decide.repair import AfterFailure, ErrorKind, Failure, Limits, decide_repair
from codeai_lab.decide.states import Evidence
from codeai_lab.decide.trajectory import Call, TrajectoryState
from codeai_lab.decide.ways import missing_film

PLANNER = "planner"  # who provides the calls that think: plan, quote, compare


class Act(StrEnum):
    """What kind of move it is."""

    CALL = "call"
    RETRY_STEP = "retry_step"
    SWITCH = "switch"
    REPAIR = "repair"
    OTHER_ROUTE = "other_route"
    VALIDATE = "validate"
    COMMIT = "commit"
    GIVE_UP = "give_up"
    PAUSE = "pause"
    COMPLETE = "complete"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The next move: for which node, and for a call which one."""

    act: Act
    node: str = ""
    proposal: Proposal | None = None
    why: str = ""


def next_move(state: TrajectoryState) -> Move:
    """Say what a state calls for."""
    if state.completed is not None:
        return Move(act=Act.OVER)
    if state.failure is not None:
        return after_failure(state, state.failure)
    if (missing := missing_film(state)) is not None:
        return Move(act=Act.PAUSE, node=missing, why="a person chooses what is done about the missing film")
    if state.plan is None:
        given_up = state.working.status.get(PLAN) is NodeStatus.UNRESOLVED
        return Move(act=Act.COMPLETE) if given_up else _plan(state)
    for node in state.plan.nodes:
        if node.node in state.accepted:
            return Move(act=Act.COMMIT, node=node.node)
        if state.working.status[node.node] is NodeStatus.OPEN and _is_ready(state, node):
            return _find(state, node) if node.kind == "film" else _compare(state, node)
    return Move(act=Act.COMPLETE)


def after_failure(state: TrajectoryState, failed: Call) -> Move:
    """Say what is done about a failed call (MV2, MV3)."""
    node, limits = failed.proposal.node, state.limits
    if (failed.error or {}).get("class") == ErrorKind.INPUT:
        return _repair(state, failed)
    if (failed.error or {}).get("class") != ErrorKind.TRANSIENT:
        return Move(act=Act.PAUSE, node=node, why="nobody knows what kind of failure this is")
    if state.tries.get((node, "failures"), 0) <= limits.call_retries:
        return Move(act=Act.CALL, node=node, proposal=failed.proposal, why="the failure may pass")
    if state.tries.get((node, "step.retried"), 0) < limits.step_retries:
        return Move(act=Act.RETRY_STEP, node=node, why="the call did not come through; the whole step again")
    may_switch = state.tries.get((node, "fallback.used"), 0) < limits.switches
    if may_switch and failed.proposal.provider in limits.standby:
        return Move(act=Act.SWITCH, node=node, why="the provider did not answer; the standby is asked")
    return Move(act=Act.PAUSE, node=node, why="a person chooses how to go on")


def films_of(state: TrajectoryState, node: PlanNode) -> tuple[Evidence, ...]:
    """Give the evidence that a comparison is made from, in the order in which the node needs it."""
    found = (state.evidence.of(need) for need in node.needs)
    return tuple(item for item in found if item is not None and item.film_id is not None)


def _repair(state: TrajectoryState, failed: Call) -> Move:
    """Let the bounded loop of repairs decide; each repair so far followed on a call that failed."""
    node, limits = failed.proposal.node, Limits(repairs=state.limits.repairs)
    repairs = state.tries.get((node, "query.repaired"), 0)
    failure = Failure(kind=ErrorKind.INPUT, call=failed.call_id)
    decided = decide_repair([failure] * repairs, failure, limits)
    if decided.move is AfterFailure.REPAIR:
        return Move(act=Act.REPAIR, node=node, why=decided.reason)
    taken = state.tries.get((node, "fallback.used"), 0)
    has_other = failed.proposal.role is Role.SEARCH and taken < state.limits.other_routes
    return Move(act=Act.OTHER_ROUTE if has_other else Act.GIVE_UP, node=node, why=decided.reason)


def _plan(state: TrajectoryState) -> Move:
    if state.call(PLAN, Role.PLAN) is not None:
        return Move(act=Act.VALIDATE, node=PLAN)
    request = state.request.as_json()
    return _ask(state, PLAN, Role.PLAN, "plan", {"request": request})


def _find(state: TrajectoryState, node: PlanNode) -> Move:
    """Search, look the record up, quote it; then it can be validated."""
    name, sought = node.node, state.request.for_node(node.node)
    if state.call(name, Role.SEARCH) is None:
        return _call(state, name, Role.SEARCH, node.route)
    hit = state.candidate(name)
    if hit is None:
        return Move(act=Act.GIVE_UP, node=name, why="no candidate is left")
    record = state.call(name, Role.FETCH)
    if record is None:
        search = state.call(name, Role.SEARCH)
        provider = search.proposal.provider if search else node.route.provider
        route = Route(tool="get_film", provider=provider, arguments={"film_id": hit["film_id"]})
        return _call(state, name, Role.FETCH, route)
    if contradiction(record.result, hit["film_id"], sought):
        return Move(act=Act.VALIDATE, node=name, why="the record contradicts the candidate")
    if state.call(name, Role.QUOTE) is None:
        terms = [*sought.about, *state.request.criterion.terms]
        words = {"film_id": hit["film_id"], "passages": record.result["passages"], "terms": terms}
        return _ask(state, name, Role.QUOTE, "quote", words)
    return Move(act=Act.VALIDATE, node=name)


def _compare(state: TrajectoryState, node: PlanNode) -> Move:
    if state.call(node.node, Role.COMPARE) is not None:
        return Move(act=Act.VALIDATE, node=node.node)
    films = films_of(state, node)
    scored = scores(films, state.request.criterion)
    words = {
        "criterion": state.request.criterion.name,
        "scores": scored,
        "recommended": recommended(scored),
        "films": [
            {"film_id": film.film_id, "title": film.result["title"], "passage": film.passages[0]["text"]}
            for film in films
        ],
    }
    return _ask(state, node.node, Role.COMPARE, "compare", words)


def _is_ready(state: TrajectoryState, node: PlanNode) -> bool:
    return all(state.working.status[need] is NodeStatus.VERIFIED for need in node.needs)


def _ask(state: TrajectoryState, node: str, role: Role, tool: str, arguments: Mapping[str, Any]) -> Move:
    return _call(state, node, role, Route(tool=tool, provider=PLANNER, arguments=arguments))


def _call(state: TrajectoryState, node: str, role: Role, planned: Route) -> Move:
    """Give the move that makes a call, by the route that took the place of the planned one, if any.

    A route that was changed for a search says what is searched for; for the other roles only who is asked.
    """
    changed = state.routes.get((node, str(role)))
    route = planned if changed is None else changed
    arguments = route.arguments if role is Role.SEARCH or _is_repair(state, node) else planned.arguments
    proposal = Proposal(node=node, role=role, tool=route.tool, provider=route.provider, arguments=arguments)
    return Move(act=Act.CALL, node=node, proposal=proposal)


def _is_repair(state: TrajectoryState, node: str) -> bool:
    return (node, "query.repaired") in state.tries
