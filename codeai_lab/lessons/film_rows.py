"""What did a recovery keep, repeat, spend and change?

Chapter: 003, "Play the trace below": compare the verified work retained, the additional calls, and any change
in provenance.

Idea: a row is counted from the events of one trajectory and from nothing else: what the run itself believes
is not asked. Two calls are the same when node, role, tool and arguments are.

    repeated      calls after the recovery that had succeeded before the failure
    additional    calls after the recovery until the failed step has its answer
    skipped       calls that had succeeded before the failure and were not made again

Always true:
  FR1. A row is a function of the events; counts are of `call.started`, answers of `call.succeeded`.
  FR2. The failure is looked for in the record, not remembered: a row says whether it is there.
  FR3. A trajectory without a recovery has the policy `none` and no counts.

Not here: playing the policies (`lessons.film_recovery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeai_lab.decide.checkpoints import COMMITTED
from codeai_lab.decide.folding import COMPLETED
from codeai_lab.decide.plan import NodeStatus, Plan, Proposal, Role
from codeai_lab.records import Event

COLUMNS = (
    "policy", "verified_kept", "repeated_calls", "additional_calls", "skipped_calls", "provenance_changed",
    "source_of_second_film", "recommendation", "timeout_in_record",
)  # fmt: skip


def row_of_recovery(events: Sequence[Event]) -> dict[str, Any]:
    """Count one trajectory.

    Args:
        events: its events in order of seq, from `trajectory.started`.
    """
    started = [event for event in events if event.kind == "call.started"]
    recovery = next((event for event in events if event.kind == "recovery.started"), None)
    said = recovery.payload if recovery else {"policy": "none"}
    failure = _outcome(events, said.get("failed_call_id"), "call.failed")
    at, failed_at = (recovery.seq if recovery else events[-1].seq), (failure.seq if failure else 0)
    before = succeeded_calls([event for event in events if event.seq < failed_at])
    after = [call for call in started if call.seq > at]
    known = {call_key(call) for call in before}
    repeated = sum(call_key(call) in known for call in after)
    paths = _paths_of_second_film(events, _call(started, said.get("failed_call_id")))
    return {
        "policy": said["policy"],
        "verified_kept": films_kept(events, said.get("from_version")),
        "repeated_calls": repeated,
        "additional_calls": _additional(events, after, _call(started, said.get("failed_call_id"))),
        "skipped_calls": len(before) - repeated,
        "provenance_changed": any(_path(first) != _path(last) for first, last in paths.values()),
        "source_of_second_film": paths["search"][1].payload["tool"] if paths else "",
        "recommendation": _recommendation(events),
        "timeout_in_record": any(
            event.kind == "call.failed" and event.payload["error"]["code"] == "timeout" for event in events
        ),
    }


def succeeded_calls(events: Sequence[Event]) -> list[Event]:
    """Give the starts of the calls that were answered well."""
    return [event for event in events if event.kind == "call.started" and _success(events, event)]


def calls_before_failure(events: Sequence[Event]) -> list[dict[str, str]]:
    """Name the calls up to the first failure, in order: what each was for, and what came of it."""
    named = []
    for event in events:
        if event.kind == "call.started":
            said = event.payload
            failed = _outcome(events, said["call_id"], "call.failed")
            answer = "succeeded" if _success(events, event) else "no answer"
            if failed is not None:
                answer = failed.payload["error"]["code"]
            named.append(
                {"call": said["call_id"], "node": said["node"], "tool": said["tool"], "answer": answer}
            )
            if failed is not None:
                break
    return named


def films_kept(events: Sequence[Event], version: Any) -> list[str]:
    """Give the films of the verified nodes in a checkpoint, without those whose source was withheld since."""
    base = next((e.payload for e in events if e.kind == COMMITTED and e.payload["version"] == version), None)
    if base is None or base["plan"] is None:
        return []
    verified = [
        node
        for node in Plan.from_json(base["plan"]).names
        if base["node_status"][node] == NodeStatus.VERIFIED
    ]
    withheld = {event.payload["film_id"] for event in events if event.kind == "evidence.withheld"}
    films = (base["sources"][node]["film_id"] for node in verified)
    return [film for film in films if film is not None and film not in withheld]


def _additional(events: Sequence[Event], after: Sequence[Event], failed: Event | None) -> int:
    """Count the calls after the recovery up to the one that answers what had failed."""
    if failed is None:
        return 0
    for number, call in enumerate(after, start=1):
        same = all(call.payload[name] == failed.payload[name] for name in ("node", "role"))
        if same and _success(events, call):
            return number
    return len(after)


def _paths_of_second_film(events: Sequence[Event], failed: Event | None) -> dict[str, tuple[Event, Event]]:
    """Give, for its search and its record, the first call and the last that led to what was accepted.

    The second film is that of the node that failed, or else the last one that was searched for.
    """
    nodes = [event.payload["node"] for event in events if _is(event, Role.SEARCH)]
    if not nodes:
        return {}
    node = failed.payload["node"] if failed is not None and failed.payload["node"] in nodes else nodes[-1]
    accepted = [
        event.seq
        for event in events
        if event.kind == "validation.decided" and event.payload["node"] == node and event.payload["accepted"]
    ]
    paths = {}
    for role in (Role.SEARCH, Role.FETCH):
        own = [event for event in events if _is(event, role) and event.payload["node"] == node]
        found = [call for call in own if _success(events, call) and call.seq < max(accepted, default=0)]
        if not found:
            return {}
        paths[str(role)] = own[0], found[-1]
    return paths


def _recommendation(events: Sequence[Event]) -> str:
    completed = next((event for event in events if event.kind == COMPLETED), None)
    return "none; the trajectory is paused" if completed is None else completed.payload["recommendation"]


def _call(started: Sequence[Event], call_id: str | None) -> Event | None:
    return next((call for call in started if call.payload["call_id"] == call_id), None)


def _success(events: Sequence[Event], call: Event) -> Event | None:
    return _outcome(events, call.payload["call_id"], "call.succeeded")


def _outcome(events: Sequence[Event], call_id: str | None, kind: str) -> Event | None:
    return next((e for e in events if e.kind == kind and e.payload["call_id"] == call_id), None)


def call_key(call: Event) -> tuple[str, str, str, str]:
    names = ("node", "tool", "provider", "arguments")
    said = call.payload
    return Proposal(role=Role(said["role"]), **{name: said[name] for name in names}).key


def _is(event: Event, role: Role) -> bool:
    return event.kind == "call.started" and event.payload["role"] == role


def _path(call: Event) -> tuple[str, str]:
    return call.payload["tool"], call.payload["provider"]
