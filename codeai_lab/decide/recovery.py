"""How does a trajectory go on after a failure that nobody but a person can answer?

Chapter: 003, "Play the trace below": restart, resume, fallback; "Keep recovery in the execution record".

Idea: three policies, each a small function from the recorded state to a schedule. None of them takes the
failure out of the record, and none refunds what was spent.

    restart     from v1, the request alone          what was verified is discarded, its calls are repeated
    resume      from the newest valid checkpoint    the open branch goes on, by the same path
    fallback    from the newest valid checkpoint    the open branch goes on, by another path, and says so

Always true:
  RC1. A schedule is a function of the state; making one asks nobody and records nothing.
  RC2. Restart names the checkpoints that it discards; resume and fallback discard none.
  RC3. A fallback names the error, the rule, the old and the new path, and both thresholds.
  RC4. A completion on the first attempt, after a retry and after a recovery are told apart by the record.

Not here: recording the choice (`run.harness`), what the policies cost (`lessons.film_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from codeai_lab.decide.plan import NodeStatus, Role, Route
from codeai_lab.decide.trajectory import Call, TrajectoryState
from codeai_lab.records import Event

# Which search stands in for which; each is another method, so its score means something else.
OTHER_SEARCH = {"vector_search": "lexical_search", "lexical_search": "vector_search"}


class Policy(StrEnum):
    """What a person can choose."""

    RESTART = "restart"
    RESUME = "resume"
    FALLBACK = "fallback"


class Completion(StrEnum):
    """How a trajectory came to its end."""

    FIRST_ATTEMPT = "first-attempt"
    RETRIED = "retried"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detour:
    """Another path for one role of a node, the rule that led there, and the path that it replaces."""

    node: str
    role: Role
    rule: str
    old: Route
    new: Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How execution goes on: from which checkpoint, keeping and discarding what, by which detour."""

    policy: Policy
    failed: Call
    from_version: int
    keeps: tuple[str, ...]
    discards: tuple[int, ...] = ()
    detour: Detour | None = None


def restart(state: TrajectoryState) -> Schedule | None:
    """Begin again from the request alone; None where nothing has failed."""
    if state.failure is None:
        return None
    discards = tuple(range(2, state.version + 1))
    return Schedule(policy=Policy.RESTART, failed=state.failure, from_version=1, keeps=(), discards=discards)


def resume(state: TrajectoryState) -> Schedule | None:
    """Go on with the open branch, by the same path; None where nothing has failed."""
    if state.failure is None or state.loaded.checkpoint is None:
        return None
    return Schedule(
        policy=Policy.RESUME,
        failed=state.failure,
        from_version=state.loaded.checkpoint.version,
        keeps=verified(state),
    )


def fallback(state: TrajectoryState) -> Schedule | None:
    """Go on with the open branch, by another path; None where there is no other."""
    resumed = resume(state)
    detour = None if resumed is None else other_search(state) or standby(state)
    if resumed is None or detour is None:
        return None
    return replace(resumed, policy=Policy.FALLBACK, detour=detour)


POLICIES: Mapping[Policy, Callable[[TrajectoryState], Schedule | None]] = {
    Policy.RESTART: restart,
    Policy.RESUME: resume,
    Policy.FALLBACK: fallback,
}


def other_search(state: TrajectoryState) -> Detour | None:
    """Give the other way of searching, with the query rewritten for it."""
    failed = state.failure
    if failed is None or failed.proposal.tool not in OTHER_SEARCH:
        return None
    node, tool = failed.proposal.node, OTHER_SEARCH[failed.proposal.tool]
    sought = state.request.for_node(node)
    query = sought.rewritten if tool == "lexical_search" else sought.query
    return Detour(
        node=node,
        role=Role.SEARCH,
        rule=f"{failed.proposal.tool}-failed-use-{tool}",
        old=failed.route,
        new=Route(tool=tool, provider=failed.proposal.provider, arguments={"query": query}),
    )


def standby(state: TrajectoryState) -> Detour | None:
    """Give the same call to the provider that stands in."""
    failed = state.failure
    if failed is None or failed.proposal.provider not in state.limits.standby:
        return None
    return Detour(
        node=failed.proposal.node,
        role=failed.proposal.role,
        rule="provider-failed-use-its-standby",
        old=failed.route,
        new=replace(failed.route, provider=state.limits.standby[failed.proposal.provider]),
    )


def fallback_words(state: TrajectoryState, detour: Detour) -> dict[str, Any]:
    """Give what is recorded about a fallback (RC3).

    Only a search finds candidates, so only its thresholds change; for another role both are null.
    """
    error = None if state.failure is None else state.failure.error
    finds = detour.role is Role.SEARCH
    thresholds = {"old": detour.old, "new": detour.new}
    return {
        "node": detour.node,
        "role": str(detour.role),
        "original_error": None if error is None else dict(error),
        "rule": detour.rule,
        "old": _words(detour.old),
        "new": _words(detour.new),
        "acceptance_threshold": {
            name: state.limits.acceptance_of(route).as_json() if finds else None
            for name, route in thresholds.items()
        },
    }


def verified(state: TrajectoryState) -> tuple[str, ...]:
    """Give the verified nodes in the plan's order."""
    return tuple(node for node, said in state.working.status.items() if said is NodeStatus.VERIFIED)


def completion(events: Sequence[Event]) -> Completion:
    """Say how a trajectory came as far as it is (RC4)."""
    kinds = {event.kind for event in events}
    if kinds & {"recovery.started", "fallback.used"}:
        return Completion.RECOVERED
    answered = sum(event.kind in ("call.succeeded", "call.failed") for event in events)
    unanswered = sum(event.kind == "call.started" for event in events) - answered
    tried_again = {"call.failed", "step.retried", "query.repaired", "discovery.reopened"}
    return Completion.RETRIED if unanswered or kinds & tried_again else Completion.FIRST_ATTEMPT


def _words(route: Route) -> dict[str, Any]:
    return {"tool": route.tool, "provider": route.provider, "arguments": dict(route.arguments)}
