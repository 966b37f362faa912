"""A film stays missing: what may a person choose, and what follows from it?

Chapter: 003, "Retry only operations that can be repeated safely": where revisions do not repair a search, the
harness tries another route, reports the missing film, or asks for help.

Idea: three ways around a branch that stays unresolved. A story may leave the choice to a person; then the
trajectory pauses until it is made, and the choice is on record before anything follows from it.

    other_route      the other search serves the branch, recorded as a fallback
    ask              with an answer the branch is open again, under the reader's words; without, it waits
    report_missing   the answer names the branch as missing

Always true:
  WY1. Only where the limits say so does a missing film pause a trajectory, and only a film does.
  WY2. Another route is offered once; a question that has no answer yet leaves the other ways open.
  WY3. No way touches what is verified; one that opens the branch begins the bound of repairs anew.

Not here: folding a choice into the state (`decide.folding`), recording it (`run.harness`).
"""

from __future__ import annotations

from typing import Any

from codeai_lab.decide.plan import Role, Route
from codeai_lab.decide.recovery import OTHER_SEARCH, Detour, fallback_words
from codeai_lab.decide.repair import WayOn
from codeai_lab.decide.trajectory import TrajectoryState

RULE = "chosen-for-a-film-that-stayed-missing"


def missing_film(state: TrajectoryState) -> str | None:
    """Give the branch about which a person has to choose; None where nobody is asked (WY1)."""
    if not state.limits.asks or state.plan is None or state.completed is not None:
        return None
    films = [node.node for node in state.plan.nodes if node.kind == "film"]
    return next((node for node in films if node in state.awaiting), None)


def offered_ways(state: TrajectoryState) -> tuple[WayOn, ...]:
    """Give the ways on that are open now (WY2); () where nobody is asked."""
    node = missing_film(state)
    if node is None:
        return ()
    has_other = other_path(state, node) is not None
    return tuple(way for way in state.awaiting[node] if has_other or way is not WayOn.OTHER_ROUTE)


def other_path(state: TrajectoryState, node: str) -> Detour | None:
    """Give the other way of searching for a missing film; None where it was taken before."""
    if state.plan is None or (node, str(Role.SEARCH)) in state.fallbacks:
        return None
    old = path_of(state, node)
    if old.tool not in OTHER_SEARCH:
        return None
    sought, tool = state.request.for_node(node), OTHER_SEARCH[old.tool]
    query = sought.rewritten if tool == "lexical_search" else sought.query
    new = Route(tool=tool, provider=old.provider, arguments={"query": query})
    return Detour(node=node, role=Role.SEARCH, rule=RULE, old=old, new=new)


def path_of(state: TrajectoryState, node: str) -> Route:
    """Give the path by which a film is searched for at present; raises ValueError where there is no plan."""
    if state.plan is None:
        raise ValueError("without a plan nothing is searched for")
    return state.routes.get((node, str(Role.SEARCH)), state.plan.node(node).route)


def words_of_other_path(state: TrajectoryState, detour: Detour) -> dict[str, Any]:
    """Give what is recorded about the other path, with the newest error of the branch."""
    errors = [failed.error for failed in state.working.failures if failed.node == detour.node]
    return {**fallback_words(state, detour), "original_error": dict(errors[-1]) if errors else None}
