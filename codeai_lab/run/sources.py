"""May what was saved still be used?

Chapter: 003, "Keep recovery in the execution record": a later resume must also reauthorize saved evidence
under current identity and policy.

Idea: that a source was read yesterday is no permission to use it today. Before a walk uses anything that was
saved, performer and sources are judged by the grants of now. A source that is not permitted is withheld, its
branch is open again, and its film is no candidate any more.

Always true:
  SC1. A walk for another performer than the request's ends before anything is recorded or asked.
  SC2. Each saved source is judged anew by every walk, and the judgement is recorded.
  SC3. A source that is withheld supports nothing, and is not looked up again.

Not here: what a withheld source does to the state (`decide.trajectory`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.plan import Role
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.errors import NotPermittedError
from codeai_lab.run.facts import Bench
from codeai_lab.run.trajectory import Desk, Part, TrajectoryFacts, record


def ask_authority(bench: Bench, facts: TrajectoryFacts) -> TrajectoryFacts | None:
    """Judge performer and sources anew before saved evidence is used.

    Raises: NotPermittedError (definite) for another performer than the request's (SC1).
    """
    state, desk = facts.state, facts.desk
    require_performer(state, desk)
    saved = () if state.completed is not None else saved_sources(state)
    if not saved:
        return None
    asked = [
        {"node": node, "source_id": source, "film_id": film, **may_use(bench, desk, source)}
        for node, source, film in saved
    ]
    withheld: list[Part] = [
        ("evidence.withheld", {name: said[name] for name in ("node", "source_id", "film_id", "reason")})
        for said in asked
        if not said["allowed"]
    ]
    record(bench, state, ("authority.asked", {"performer": desk.performer, "sources": asked}), *withheld)
    return facts


def require_performer(state: TrajectoryState, desk: Desk) -> None:
    """Return if the desk works for the performer of the request; raises NotPermittedError (definite)."""
    if desk.performer != state.request.performer:
        raise NotPermittedError("the trajectory belongs to another performer")


def saved_sources(state: TrajectoryState) -> tuple[tuple[str, str, str], ...]:
    """Give (node, source, film) of all that was saved: evidence of checkpoints, and records read since."""
    evidence = [(item.node, item.source_id, item.film_id) for item in state.evidence.items if item.film_id]
    records = [
        (node, call.result["source_id"], call.result["film_id"])
        for (node, role), call in state.calls.items()
        if role == Role.FETCH and state.evidence.of(node) is None
    ]
    return (*evidence, *records)


def may_use(bench: Bench, desk: Desk, source_id: str) -> dict[str, Any]:
    """Judge one source by the grants of now: allowed or not, and why."""
    judged = bench.policy.judge(
        capability_of(source_id), desk.authority, performer=desk.performer, now_us=bench.clock.now_us()
    )
    return {"allowed": judged.allowed, "reason": judged.reason}


def may_read(film_ids: Iterable[str]) -> Authority:
    """Give an authority that permits the records of these films."""
    return Authority.of(*(capability_of(f"film:{film_id}") for film_id in film_ids))


def capability_of(source_id: str) -> str:
    """Name the capability that a source needs; each source has its own, so that one can be revoked."""
    return f"source.read/{source_id}"
