"""What happens in one turn up to the answer of a tool?

Chapter: 003, "Resume from the last verified checkpoint": the model proposes, and the harness runs a proposal
only if it serves the open node, fits the budget and keeps what is completed.

Idea: read the state, record what is begun, ask, record what was said. The planner's own proposals come before
the plan's next call; each is judged the same way, and those that are rejected are on record with the reason.

Always true:
  TN1. The start of a call is on record before the tool is asked, its answer before anything follows from it.
  TN2. Between those two records nothing is appended: a walk that is killed there repeats this one call.
  TN3. A rejected proposal is recorded with its reason and asks nobody. One that was rejected before, or whose
       answer is on record, is passed over.
  TN4. Another path than the plan's for a search is recorded as a fallback in the append that starts it.

Not here: what is made of an answer (`run.validating`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from codeai_lab.decide.moves import Act, next_move
from codeai_lab.decide.plan import Proposal, Rejection, Role, Route, judge_proposal
from codeai_lab.decide.recovery import OTHER_SEARCH, Detour, fallback_words, other_search, standby
from codeai_lab.decide.repair import ways_on
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.run.facts import Bench
from codeai_lab.run.film_tools import (
    ToolAnswerError,
    ToolError,
    ToolInputError,
    ToolTimeoutError,
    ToolUnavailableError,
)
from codeai_lab.run.sources import may_use
from codeai_lab.run.trajectory import COMPLETED, PAUSED, Part, TrajectoryFacts, needed, record, state_of

CODES: Mapping[type[ToolError], str] = {
    ToolTimeoutError: "timeout",
    ToolUnavailableError: "unavailable",
    ToolAnswerError: "unreadable-answer",
    ToolInputError: "input",
}


def read_state(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts:
    """Read where the trajectory stands and what that calls for; the walk ends where that is nothing."""
    state = state_of(bench, facts.trajectory_id)
    move = next_move(state)
    end = {Act.OVER: COMPLETED, Act.PAUSE: PAUSED}.get(move.act)
    return replace(facts, state=state, move=move, started=None, answer=None, end=end)


def attempt(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
    """Record what is begun: a call that was judged, another try, a repair, another path, or giving up."""
    state, move = facts.state, needed(facts.move)
    if move.act is Act.CALL:
        return _start(bench, facts, needed(move.proposal))
    if move.act is Act.GIVE_UP:
        record(bench, state, unresolved(move.node, move.why))
    elif move.act is Act.RETRY_STEP:
        failed = needed(state.failure)
        record(bench, state, ("step.retried", {"node": move.node, "failed_call_id": failed.call_id}))
    elif move.act in (Act.SWITCH, Act.OTHER_ROUTE):
        detour = standby(state) if move.act is Act.SWITCH else other_search(state)
        record(bench, state, ("fallback.used", fallback_words(state, needed(detour))))
    elif move.act is Act.REPAIR:
        record(bench, state, ("query.repaired", _repair(facts)))
    else:
        return None
    return facts


def ask(_: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
    """Ask the tool. Nothing is recorded: a walk that is killed here makes this call again."""
    if facts.started is None:
        return None
    said = facts.started.payload
    try:
        result = facts.desk.caller(said["provider"]).call(said["tool"], said["arguments"])
    except Exception as error:  # whatever a tool raises is its answer
        return replace(facts, answer=("call.failed", {"call_id": said["call_id"], "error": _error(error)}))
    return replace(facts, answer=("call.succeeded", {"call_id": said["call_id"], "result": _as_json(result)}))


def observe(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
    """Record what the tool said."""
    if facts.started is None:
        return None
    as_started = replace(facts.state, last_seq=facts.started.seq)
    record(bench, as_started, needed(facts.answer), cause=facts.started.event_id)
    return replace(facts, started=None, answer=None)


def unresolved(node: str, reason: str) -> Part:
    """Give the event that leaves a node unresolved; how to go on is for a person to choose."""
    choices = [str(way) for way in ways_on(other_routes=tuple(OTHER_SEARCH), may_ask=True)]
    return "node.unresolved", {"node": node, "reason": reason, "choices": choices}


def _start(bench: Bench, facts: TrajectoryFacts, due: Proposal) -> TrajectoryFacts:
    """Record the start of the first proposal that may run, and each rejection before it (TN3)."""
    state = facts.state
    proposed = facts.desk.planner.propose(state)
    fresh = (one for one in proposed if one.as_json() not in state.rejected and not _answered(state, one))
    parts: list[Part] = []
    for proposal in (*fresh, due):
        reason = _reject(bench, facts, proposal)
        if reason is None:
            parts += [*_detour(state, proposal), ("call.started", _words(bench, state, proposal))]
            return replace(facts, started=record(bench, state, *parts)[-1])
        parts.append(("proposal.rejected", {"proposal": proposal.as_json(), "reason": str(reason)}))
    # What is due was rejected too, so this way leads no further; a repeat leaves the failure to be repaired.
    if reason is Rejection.NOT_PERMITTED:
        said = {"node": due.node, "film_id": due.arguments["film_id"], "reason": str(reason)}
        parts.append(("discovery.reopened", said))
    elif reason is not Rejection.REPEATS_REFUSED_INPUT:
        parts.append(unresolved(due.node, str(reason)))
    record(bench, state, *parts)
    return facts


def _answered(state: TrajectoryState, proposal: Proposal) -> bool:
    call = state.call(proposal.node, proposal.role)
    return call is not None and call.proposal.key == proposal.key


def _reject(bench: Bench, facts: TrajectoryFacts, proposal: Proposal) -> Rejection | None:
    """Judge a proposal by the recorded state, and the look-up of a record by the grants of now."""
    state = facts.state
    rejected = judge_proposal(
        proposal,
        plan=state.plan,
        status=state.working.status,
        budget=state.working.budget,
        refused=state.refused,
    )
    if rejected is None and proposal.role is Role.FETCH:
        source = f"film:{proposal.arguments.get('film_id')}"
        allowed = may_use(bench, facts.desk, source)["allowed"]
        return None if allowed else Rejection.NOT_PERMITTED
    return rejected


def _detour(state: TrajectoryState, proposal: Proposal) -> list[Part]:
    """Say that a search takes another path than the one that is in force, if it does (TN4)."""
    if proposal.role is not Role.SEARCH or state.plan is None:
        return []
    in_force = state.routes.get((proposal.node, str(Role.SEARCH)), state.plan.node(proposal.node).route)
    new = Route(tool=proposal.tool, provider=proposal.provider, arguments=proposal.arguments)
    if (in_force.tool, in_force.provider) == (new.tool, new.provider):
        return []
    detour = Detour(
        node=proposal.node, role=proposal.role, rule="proposed-by-the-planner", old=in_force, new=new
    )
    return [("fallback.used", fallback_words(state, detour))]


def _words(bench: Bench, state: TrajectoryState, proposal: Proposal) -> dict[str, Any]:
    same = (proposal.key, proposal.provider)
    earlier = [
        event.payload
        for event in bench.ledger.read(state.trajectory_id)
        if event.kind == "call.started" and event.payload["node"] == proposal.node
    ]
    attempts = sum(_identity(said) == same for said in earlier)
    return {
        "call_id": f"call-{state.working.budget.spent + 1}",
        **proposal.as_json(),
        "attempt": attempts + 1,
    }


def _identity(said: Mapping[str, Any]) -> tuple[tuple[str, str, str, str], str]:
    names = ("node", "tool", "provider", "arguments")
    proposal = Proposal(role=Role(said["role"]), **{name: said[name] for name in names})
    return proposal.key, proposal.provider


def _repair(facts: TrajectoryFacts) -> dict[str, Any]:
    failed = needed(facts.state.failure)
    repair = facts.state.tries.get((failed.proposal.node, "query.repaired"), 0) + 1
    return {
        "node": failed.proposal.node,
        "failed_call_id": failed.call_id,
        "repair": repair,
        "old": dict(failed.proposal.arguments),
        "new": dict(facts.desk.planner.revise(facts.state, failed, repair)),
    }


def _error(error: Exception) -> dict[str, Any]:
    if isinstance(error, ToolError):
        code, said = CODES.get(type(error), "tool-error"), str(error)
        return {"code": code, "class": str(error.kind), "definite": error.definite, "message": said}
    # What a stranger's exception says may hold anything, so only its type is kept.
    message = f"The tool raised {type(error).__name__}."
    return {"code": "raised", "class": "unknown", "definite": False, "message": message}


def _as_json(result: Any) -> Any:
    if is_dataclass(result) and not isinstance(result, type):
        return asdict(result)
    return [_as_json(one) for one in result] if isinstance(result, list | tuple) else result
