"""What is made of an answer before it counts as progress?

Chapter: 003, "Checkpoint only verified progress": an uncertain result must not appear complete.

Idea: a decision is recorded first, and what it allows is recorded after it, on its own. A record that
contradicts its candidate reopens discovery. A candidate that came by another path is judged under that path's
threshold. Only what was accepted is committed.

Always true:
  VA1. A checkpoint follows an accepting decision that is on record; nothing else makes one.
  VA2. A contradiction excludes the film and leaves the node open; any other refusal leaves it unresolved.
  VA3. The threshold is that of the path which found the candidate; one of another path is refused by name.
  VA4. The recommendation is computed from the evidence; a comparison that says otherwise is refused.

Not here: the judgements themselves (`decide.acceptance`), the form of a checkpoint (`decide.checkpoints`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from codeai_lab.decide.acceptance import (
    ACCEPTED,
    Acceptance,
    Judged,
    contradiction,
    judge_candidate,
    judge_comparison,
    judge_quotes,
    recommended,
    scores,
)
from codeai_lab.decide.checkpoints import Checkpoint
from codeai_lab.decide.moves import Act, films_of, next_move
from codeai_lab.decide.plan import PLAN, NodeStatus, Plan, PlanNode, Role, Route, fault_of_plan
from codeai_lab.decide.recovery import completion
from codeai_lab.decide.states import Evidence, WorkingState
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.run.facts import Bench
from codeai_lab.run.trajectory import Part, Stage, TrajectoryFacts, needed, record, state_of
from codeai_lab.run.turns import unresolved

AcceptanceRule = Callable[[TrajectoryState, Route, Route], Acceptance]


def threshold_of_the_path(state: TrajectoryState, found_by: Route, _planned: Route) -> Acceptance:
    """Take the threshold of the path that found the candidate (VA3)."""
    return state.limits.acceptance_of(found_by)


def threshold_of_the_plan(state: TrajectoryState, _found_by: Route, planned: Route) -> Acceptance:
    """Keep the plan's threshold whatever happened; a fallback is refused under it, which is its use."""
    return state.limits.acceptance_of(planned)


def validating(threshold: AcceptanceRule = threshold_of_the_path) -> Stage:
    """Give the stage that judges what is there, under thresholds chosen by a rule."""

    def validate(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
        """Judge a plan, a candidate or a comparison, and record the decision."""
        state = state_of(bench, facts.trajectory_id)
        move = next_move(state)
        if move.act is not Act.VALIDATE:
            return None
        if move.node == PLAN:
            parts = _plan(state)
        elif needed(state.plan).node(move.node).kind == "film":
            parts = _film(state, move.node, threshold)
        else:
            parts = _comparison(state, needed(state.plan).node(move.node))
        record(bench, state, *parts)
        return facts

    return validate


def commit(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
    """Commit what was accepted as the next checkpoint, or complete the trajectory (VA1)."""
    state = state_of(bench, facts.trajectory_id)
    move = next_move(state)
    if move.act is Act.COMMIT:
        record(bench, state, ("checkpoint.committed", _checkpoint(state, move.node).as_json()))
    elif move.act is Act.COMPLETE:
        kind = completion(bench.ledger.read(facts.trajectory_id))
        record(bench, state, ("trajectory.completed", {**_answer(state), "completion": str(kind)}))
    else:
        return None
    return facts


# --- decisions ------------------------------------------------------------------------------------------


def _plan(state: TrajectoryState) -> list[Part]:
    call = needed(state.call(PLAN, Role.PLAN))
    try:
        plan = Plan.from_json(call.result)
        fault = fault_of_plan(plan) or _not_sought(state, plan)
    except (KeyError, TypeError):
        fault = "these words are no plan"
    judged = ACCEPTED if fault is None else Judged(accepted=False, reason=fault, field="plan")
    decided = _decided(PLAN, judged, [call.call_id])
    return [decided] if judged.accepted else [decided, unresolved(PLAN, str(fault))]


def _not_sought(state: TrajectoryState, plan: Plan) -> str | None:
    sought = {one.node for one in state.request.sought}
    films = {node.node for node in plan.nodes if node.kind == "film"}
    return None if films == sought else "the plan does not look for the films of the request"


def _film(state: TrajectoryState, node: str, threshold: AcceptanceRule) -> list[Part]:
    hit, sought = needed(state.candidate(node)), state.request.for_node(node)
    search, record_call = needed(state.call(node, Role.SEARCH)), needed(state.call(node, Role.FETCH))
    calls = [search.call_id, record_call.call_id]
    film_id = hit["film_id"]
    if field := contradiction(record_call.result, film_id, sought):
        judged = Judged(accepted=False, reason="contradiction", field=field)
        reopened: Part = (
            "discovery.reopened", {"node": node, "film_id": film_id, "reason": "contradiction"},
        )  # fmt: skip
        return [_decided(node, judged, calls, film_id=film_id), reopened]
    quote = needed(state.call(node, Role.QUOTE))
    planned = needed(state.plan).node(node).route
    acceptance = threshold(state, search.route, planned)
    fallback = state.fallbacks.get((node, str(Role.SEARCH)))
    judged = judge_candidate(
        score=hit["score"],
        found_by=search.route,
        planned=planned,
        acceptance=acceptance,
        fallback=None if fallback is None else fallback.payload,
    )
    if judged.accepted:
        judged = judge_quotes(record_call.result, quote.result["passages"])
    decided = _decided(node, judged, [*calls, quote.call_id], film_id=film_id, acceptance=acceptance)
    return [decided] if judged.accepted else [decided, unresolved(node, str(judged.reason))]


def _comparison(state: TrajectoryState, node: PlanNode) -> list[Part]:
    call, films = needed(state.call(node.node, Role.COMPARE)), films_of(state, node)
    best = recommended(scores(films, state.request.criterion))
    judged = judge_comparison(call.result, [film.result["title"] for film in films], best)
    decided = _decided(node.node, judged, [call.call_id])
    return [decided] if judged.accepted else [decided, unresolved(node.node, str(judged.reason))]


def _decided(
    node: str,
    judged: Judged,
    call_ids: list[str],
    *,
    film_id: str | None = None,
    acceptance: Acceptance | None = None,
) -> Part:
    return "validation.decided", {
        "node": node,
        **asdict(judged),
        "film_id": film_id,
        "call_ids": call_ids,
        "acceptance": None if acceptance is None else acceptance.as_json(),
    }


# --- what is committed ----------------------------------------------------------------------------------


def _checkpoint(state: TrajectoryState, node: str) -> Checkpoint:
    working = WorkingState(
        plan=state.plan,
        status={**state.working.status, node: NodeStatus.VERIFIED},
        budget=state.working.budget,
        failures=state.working.failures,
    )
    loaded = state.loaded.checkpoint
    return Checkpoint(
        version=state.version + 1,
        request=state.request,
        working=working,
        evidence=state.evidence.also(_evidence(state, node)),
        memory_refs=() if loaded is None else loaded.memory_refs,
    )


def _evidence(state: TrajectoryState, node: str) -> Evidence:
    decision = state.accepted[node]
    record_call = state.call(node, Role.FETCH)
    common: dict[str, Any] = {
        "node": node,
        "call_ids": tuple(decision.payload["call_ids"]),
        "validated_at": decision.seq,
    }
    if record_call is None:
        call = needed(state.call(node, Role.COMPARE))
        return Evidence(
            **common, source_id=f"comparison:{state.request.request_id}", film_id=None, passages=(),
            method=call.proposal.tool, provider=call.proposal.provider, confidence=None,
            recorded_at_us=call.recorded_at_us, result=call.result,
        )  # fmt: skip
    search, quote = needed(state.call(node, Role.SEARCH)), needed(state.call(node, Role.QUOTE))
    result, quoted = record_call.result, quote.result["passages"]
    return Evidence(
        **common, source_id=result["source_id"], film_id=result["film_id"],
        passages=tuple(one for one in result["passages"] if one["passage_id"] in quoted),
        method=search.proposal.tool, provider=search.proposal.provider,
        confidence=needed(state.candidate(node))["score"], recorded_at_us=record_call.recorded_at_us,
        result=result,
    )  # fmt: skip


def _answer(state: TrajectoryState) -> dict[str, Any]:
    """Give the answer that the evidence supports, and name what is missing."""
    films = tuple(item for item in state.evidence.items if item.film_id is not None)
    wanted = [one.node for one in state.request.sought]
    films = tuple(sorted(films, key=lambda item: wanted.index(item.node)))
    open_nodes = list(state.working.open_questions) or ([] if state.plan else [PLAN])
    scored = scores(films, state.request.criterion)
    best = None if open_nodes else recommended(scored)
    titles = {str(film.film_id): film.result["title"] for film in films}
    compared = (item for item in state.evidence.items if item.film_id is None)
    comparison = next(compared, None)
    return {
        "status": "partial" if open_nodes else "complete",
        "recommendation": titles[best] if best else f"none; unresolved: {', '.join(open_nodes)}",
        "recommended_film": best,
        "scores": scored,
        "comparison": None if comparison is None else comparison.result["text"],
        "missing": open_nodes,
        "intended_write": None if best is None else _write(state, best),
    }


def _write(state: TrajectoryState, film_id: str) -> dict[str, str]:
    """Name the key of the one write that this answer may lead to; every attempt at it has this key."""
    short = "-".join(film_id.split("-")[:2])
    return {"idempotency_key": f"{state.request.request_id}/add-{short}"}
