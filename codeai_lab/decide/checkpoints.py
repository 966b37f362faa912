"""From which recorded state may execution safely continue?

Chapter: 003, "Checkpoint only verified progress", "Resume from the last verified checkpoint".

Idea: a checkpoint is a versioned record that connects eight things. Take one away and it can no longer be
checked, so it is refused by the name of what it lacks, and the next older one is tried. "Ex Machina is a good
choice" is no checkpoint: it does not say which request it answers, which source supports it, or whether
anybody checked.

    request  plan  node_status  tool_results  sources  validations  budget  failures

Always true:
  CK1. The newest checkpoint that is complete and valid is loaded; each newer one that was refused is named.
  CK2. A verified node has a result of recorded calls, a source and an accepting decision that is recorded.
  CK3. A newer schema and a type of another name are refused unread; what was refused is kept as it was.
  CK4. A checkpoint that a restart discarded is not loaded again.

Not here: what came after the checkpoint (`decide.trajectory`), committing one (`run.trajectory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.plan import Budget, NodeStatus, Plan
from codeai_lab.decide.states import (
    NO_EVIDENCE,
    Evidence,
    EvidenceState,
    FailedCall,
    RequestState,
    WorkingState,
)
from codeai_lab.records import Event

TYPE = "checkpoint"
SCHEMA = 1
COMMITTED = "checkpoint.committed"
LINKS = (
    "request", "plan", "node_status", "tool_results", "sources", "validations", "budget", "failures",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A snapshot from which execution may go on; `memory_refs` are ids and nothing more."""

    version: int
    request: RequestState
    working: WorkingState
    evidence: EvidenceState = NO_EVIDENCE
    memory_refs: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        plan, items = self.working.plan, self.evidence.items
        return {
            "type": TYPE,
            "schema": SCHEMA,
            "version": self.version,
            "request": self.request.as_json(),
            "plan": None if plan is None else plan.as_json(),
            "node_status": {node: str(status) for node, status in self.working.status.items()},
            "tool_results": {
                item.node: {"call_ids": list(item.call_ids), "result": dict(item.result)} for item in items
            },
            "sources": {item.node: _source(item) for item in items},
            "validations": {item.node: {"accepted": True, "seq": item.validated_at} for item in items},
            "budget": {"calls": self.working.budget.calls, "spent": self.working.budget.spent},
            "failures": [
                {"call_id": failed.call_id, "node": failed.node, "error": dict(failed.error)}
                for failed in self.working.failures
            ],
            "memory_refs": list(self.memory_refs),
        }


_SAID = {
    "newer-schema": "has a newer schema",
    "unknown-type": "is of a type that is not known here",
    "unreadable": "cannot be read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCheckpoint:
    """Why a checkpoint was not loaded.

    Args:
        code: missing-link, newer-schema, unknown-type, or unreadable where a link holds nonsense.
        links: the links that it lacks, by name.
        original: the payload as it was recorded, unchanged (CK3).
    """

    seq: int
    code: str
    links: tuple[str, ...]
    original: Mapping[str, Any]

    def __str__(self) -> str:
        what = _SAID.get(self.code, f"lacks {', '.join(self.links)}")
        return f"The checkpoint at seq {self.seq} {what}; an older one is used."


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was loaded: the checkpoint and its seq, None and 0 where there is none; and what was refused."""

    checkpoint: Checkpoint | None
    seq: int
    refused: tuple[RefusedCheckpoint, ...]


def newest_valid_checkpoint(events: Sequence[Event]) -> Loaded:
    """Load the newest checkpoint of a trajectory that is complete and valid (CK1).

    Args:
        events: the events of one trajectory in order of seq.
    """
    discarded = {
        version
        for event in events
        if event.kind == "recovery.started"
        for version in event.payload["discards"]
    }
    refused: list[RefusedCheckpoint] = []
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if event.kind != COMMITTED or event.payload.get("version") in discarded:
            continue
        read = read_checkpoint(event, events[:place])
        if isinstance(read, Checkpoint):
            return Loaded(checkpoint=read, seq=event.seq, refused=tuple(refused))
        refused.append(read)
    return Loaded(checkpoint=None, seq=0, refused=tuple(refused))


def read_checkpoint(event: Event, earlier: Iterable[Event]) -> Checkpoint | RefusedCheckpoint:
    """Read one checkpoint, or say why it is refused.

    Args:
        earlier: what was recorded before it, in which its calls and decisions must be found (CK2).
    """
    words = event.payload
    if words.get("type") != TYPE:
        return _refused(event, "unknown-type")
    if not isinstance(words.get("schema"), int) or words["schema"] > SCHEMA:
        return _refused(event, "newer-schema")
    if links := _missing_links(words, tuple(earlier)):
        return _refused(event, "missing-link", links)
    try:
        return _from_json(words)
    except (KeyError, TypeError, ValueError):
        return _refused(event, "unreadable")


def _missing_links(words: Mapping[str, Any], earlier: tuple[Event, ...]) -> tuple[str, ...]:
    """Name every link that a checkpoint lacks, whole or for one of its nodes, in the order of LINKS."""
    shapes: dict[str, type | tuple[type, ...]] = dict.fromkeys(LINKS, dict)
    shapes |= {"plan": (dict, type(None)), "failures": list}
    missing = {link for link in LINKS if not isinstance(words.get(link, ...), shapes[link])}
    asked = next((event.payload.get("request") for event in earlier if "request" in event.payload), None)
    if asked is not None and words.get("request") != asked:
        missing.add("request")  # a checkpoint of another request is none of this trajectory
    if "budget" not in missing and not {"calls", "spent"} <= words["budget"].keys():
        missing.add("budget")
    status = {} if "node_status" in missing else words["node_status"]
    plan = words.get("plan")
    if status and not (plan and _reads(Plan.from_json, plan)):
        missing.add("plan")
    if plan and "plan" not in missing and list(status) and set(status) != {n["node"] for n in plan["nodes"]}:
        missing.add("node_status")
    if plan and not status:
        missing.add("node_status")
    results = {e.payload["call_id"]: e.payload["result"] for e in earlier if e.kind == "call.succeeded"}
    accepted = {
        (event.payload["node"], event.seq)
        for event in earlier
        if event.kind == "validation.decided" and event.payload["accepted"]
    }
    for node in (node for node, said in status.items() if said == NodeStatus.VERIFIED):
        held = {link: _entry(words, link, node) for link in LINKS[3:6]}
        calls = held["tool_results"].get("call_ids") or [None]
        given = [results.get(call) for call in calls if isinstance(call, str)]
        if None in given or held["tool_results"].get("result") not in given:
            missing.add("tool_results")
        if not held["sources"].keys() >= _SOURCE or not held["sources"]["source_id"]:
            missing.add("sources")
        if (node, held["validations"].get("seq")) not in accepted:
            missing.add("validations")
    return tuple(link for link in LINKS if link in missing)


def _entry(words: Mapping[str, Any], link: str, node: str) -> Mapping[str, Any]:
    held = words.get(link)
    entry = held.get(node) if isinstance(held, Mapping) else None
    return entry if isinstance(entry, Mapping) else {}


def _from_json(words: Mapping[str, Any]) -> Checkpoint:
    # An object of JSON has no order, so the plan's is restored.
    plan = None if words["plan"] is None else Plan.from_json(words["plan"])
    nodes = () if plan is None else plan.names
    return Checkpoint(
        version=words["version"],
        request=RequestState.from_json(words["request"]),
        working=WorkingState(
            plan=plan,
            status={node: NodeStatus(words["node_status"][node]) for node in nodes},
            budget=Budget(calls=words["budget"]["calls"], spent=words["budget"]["spent"]),
            failures=tuple(FailedCall(**failed) for failed in words["failures"]),
        ),
        evidence=EvidenceState(
            items=tuple(_evidence(words, node) for node in nodes if node in words["sources"])
        ),
        memory_refs=tuple(words.get("memory_refs", ())),
    )


_SOURCE = {"source_id", "film_id", "method", "provider", "passages", "confidence", "recorded_at_us"}


def _evidence(words: Mapping[str, Any], node: str) -> Evidence:
    said, source = words["tool_results"][node], words["sources"][node]
    return Evidence(
        node=node,
        source_id=source["source_id"],
        film_id=source["film_id"],
        method=source["method"],
        provider=source["provider"],
        passages=tuple(source["passages"]),
        confidence=source["confidence"],
        recorded_at_us=source["recorded_at_us"],
        call_ids=tuple(said["call_ids"]),
        result=said["result"],
        validated_at=words["validations"][node]["seq"],
    )


def _source(item: Evidence) -> dict[str, Any]:
    return {
        "source_id": item.source_id,
        "film_id": item.film_id,
        "method": item.method,
        "provider": item.provider,
        "passages": [dict(passage) for passage in item.passages],
        "confidence": item.confidence,
        "recorded_at_us": item.recorded_at_us,
    }


def _reads(read: Any, words: Any) -> bool:
    try:
        read(words)
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _refused(event: Event, code: str, links: tuple[str, ...] = ()) -> RefusedCheckpoint:
    return RefusedCheckpoint(seq=event.seq, code=code, links=links, original=event.payload)
