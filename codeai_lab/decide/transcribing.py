"""What did a trajectory record, said as the facts that a state is made of?

Chapter: 003, "Resume from the last verified checkpoint": the transcript tells everything, the next decision
needs little of it.

Idea: the events of a trajectory are read once, in order, each into the facts that it is. Checkpoints, claims
of authority and retries say nothing that is not said elsewhere, so they become no fact.

    trajectory.started                   request, constraints
    call.started, .succeeded, .failed    call; result; failure
    validation.decided                   the plan's nodes; accepted, with the passages quoted; rejected
    discovery.reopened, evidence.withheld    rejected
    node.unresolved                      a question
    recovery.started, by restart         what was planned and accepted before counts no more
    all of them                          budget: calls that were started, of those allowed

Always true:
  TC1. The facts are a function of the events and their order; an event of another kind becomes none.
  TC2. A passage is one that the record holds and the quotation names.
  TC3. A node is planned or accepted only where a validation decided so.

Not here: what of it is carried on (`decide.compression`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codeai_lab.decide.compression import Fact, FactKind
from codeai_lab.decide.plan import PLAN, Role
from codeai_lab.records import Event


def facts_of(events: Sequence[Event]) -> tuple[Fact, ...]:
    """Read the events of one trajectory, in order of seq.

    Raises: ValueError when they do not begin with `trajectory.started`.
    """
    if not events or events[0].kind != "trajectory.started":
        raise ValueError("the history of a trajectory begins with trajectory.started")
    read = _Reading()
    facts: list[Fact] = []
    for event in events:
        if event.payload.get("policy") == "restart":
            facts = [fact for fact in facts if fact.kind not in (FactKind.PLAN, FactKind.ACCEPTED)]
        facts += read.facts(event)
    spent = sum(event.kind == "call.started" for event in events)
    limit = events[0].payload["limits"]["calls"]
    return (*facts, Fact(kind=FactKind.BUDGET, said={"spent": spent, "limit": limit}))


class _Reading:
    """The calls that were started so far, and what each role of a node was answered last."""

    def __init__(self) -> None:
        self._started: dict[str, Mapping[str, Any]] = {}
        self._answers: dict[tuple[str, str], Any] = {}
        self._just_rejected: tuple[str, str] | None = None

    def facts(self, event: Event) -> Iterator[Fact]:
        said = event.payload
        match event.kind:
            case "trajectory.started":
                yield Fact(kind=FactKind.REQUEST, said={"text": said["request"]["goal"]})
                for text in said["request"]["constraints"]:
                    yield Fact(kind=FactKind.CONSTRAINT, said={"text": text})
            case "call.started":
                self._just_rejected = None
                self._started[said["call_id"]] = said
                call = {"call": said["tool"], "arguments": said["arguments"]}
                yield Fact(kind=FactKind.CALL, node=said["node"], said=call)
            case "call.succeeded":
                yield self._result(self._started[said["call_id"]], said["result"])
            case "call.failed":
                yield _failure(self._started[said["call_id"]], said["error"])
            case "validation.decided":
                yield from self._decided(said)
            case "discovery.reopened" | "evidence.withheld":
                # A decision that reopens is two events, in one append, and one fact.
                if (said["node"], said["film_id"]) != self._just_rejected:
                    yield _rejected(said)
            case "node.unresolved":
                question = f"what instead, since it is unresolved: {said['reason']}?"
                yield Fact(kind=FactKind.QUESTION, node=said["node"], said={"question": question})

    def _result(self, call: Mapping[str, Any], result: Any) -> Fact:
        self._answers[call["node"], call["role"]] = result
        source = result.get("source_id") if isinstance(result, Mapping) else None
        return Fact(kind=FactKind.RESULT, node=call["node"], said={"source": source, "record": result})

    def _decided(self, said: Mapping[str, Any]) -> Iterator[Fact]:
        node = said["node"]
        if not said["accepted"]:
            if said["film_id"] is not None:
                self._just_rejected = (node, said["film_id"])
                yield _rejected(said)
        elif node == PLAN:
            for one in self._answers[PLAN, Role.PLAN]["nodes"]:
                yield Fact(kind=FactKind.PLAN, node=one["node"], said={"waits_for": one["needs"]})
        elif (node, Role.QUOTE) in self._answers:
            record, quoted = self._answers[node, Role.FETCH], self._answers[node, Role.QUOTE]["passages"]
            passages = [one["text"] for one in record["passages"] if one["passage_id"] in quoted]
            evidence = {
                "source": record["source_id"],
                "passage": " ".join(passages),
                "decision": _accepted(said),
            }
            yield Fact(kind=FactKind.ACCEPTED, node=node, said=evidence)
        else:
            decided = {"source": ", ".join(said["call_ids"]), "passage": "", "decision": _accepted(said)}
            yield Fact(kind=FactKind.ACCEPTED, node=node, said=decided)


def _accepted(said: Mapping[str, Any]) -> str:
    under = said["acceptance"]
    return "accepted" if under is None else f"accepted: {under['method']}, at least {under['minimum']}"


def _failure(call: Mapping[str, Any], error: Mapping[str, Any]) -> Fact:
    said = {"error": error["code"], "call": call["tool"], "transient": error["class"] == "transient"}
    return Fact(kind=FactKind.FAILURE, node=call["node"], said=said)


def _rejected(said: Mapping[str, Any]) -> Fact:
    rejected = {"source": said.get("source_id", f"film:{said['film_id']}"), "reason": said["reason"]}
    return Fact(kind=FactKind.REJECTED, node=said["node"], said=rejected)
