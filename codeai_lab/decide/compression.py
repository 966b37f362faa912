"""What must be carried from one trajectory into the next, and is it all there?

Chapter: 003, "Resume from the last verified checkpoint": Re-TRAC turns a finished trajectory into a state of
evidence, uncertainties, failures and plans; "compression remains useful only when it preserves what the next
decision needs".

Idea: most of a transcript is talk and whole records. What decides the next step is little: what was asked,
what is verified and by which passage, what is open, what failed how often, what is planned, what is left to
spend. `compress` keeps that; `missing` reads the transcript itself and names whatever the next decision needs
and a state lacks, whoever made that state, a model's summary included.

    request   constraints   evidence        uncertainties   failures        plans          budget
    verbatim  verbatim      source,passage  question,node   node,error,call node,waits for spent, left

Always true:
  CM1. A state made by `compress` lacks nothing, for any open node.
  CM2. Each item that the next decision needs is named when it is left out, and when it was changed.
  CM3. Evidence keeps its source, its passage and the decision that accepted it; what was not accepted is no
       evidence.
  CM4. The text of a record becomes a passage and never a plan; plans come from the plan alone.
  CM5. A question that was answered and a failure of a node that is done are not carried on.

Not here: reading the facts from events (`decide.transcribing`); asking a model for such a state; checkpoints,
which are for going on with the same trajectory (`decide.checkpoints`).
Source: Re-TRAC (Microsoft Research), as the chapter reports it; its gains are research benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from codeai_lab.canonical import canonical_bytes, plain


class FactKind(StrEnum):
    """What a trajectory records; a state is made of all but talk and calls."""

    REQUEST = "request"
    CONSTRAINT = "constraint"
    PLAN = "plan"
    CALL = "call"
    RESULT = "result"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILURE = "failure"
    QUESTION = "question"
    ANSWER = "answer"
    BUDGET = "budget"
    TALK = "talk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that was recorded, in the order of recording.

    `said` is a JSON object; what it holds depends on the kind:

        request, constraint   text
        plan                  waits_for (node names); the fact's node is what is planned
        result                source, record (the whole of what the tool gave back)
        accepted              source, passage, decision; the node is done
        rejected              source, reason
        failure               error, call, transient
        question, answer      question
        budget                spent, limit
    """

    kind: FactKind
    said: Mapping[str, Any] = field(default_factory=dict)
    node: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", plain(dict(self.said), "said"))

    def as_json(self) -> dict[str, Any]:
        return {"kind": str(self.kind), "node": self.node, "said": dict(self.said)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The state that the next trajectory begins with; every item is a JSON object of a few members."""

    request: str | None = None
    constraints: tuple[str, ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = ()
    uncertainties: tuple[Mapping[str, Any], ...] = ()
    failures: tuple[Mapping[str, Any], ...] = ()
    plans: tuple[Mapping[str, Any], ...] = ()
    budget: Mapping[str, int] | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name), name) for name in self.__slots__}

    def without(self, part: str) -> Carried:
        """Give the state with one of its parts left out, to see what that costs."""
        nothing: dict[str, Any] = {part: None if part in ("request", "budget") else ()}
        return replace(self, **nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of canonical JSON: the transcript, and the state made of it."""

    transcript: int
    state: int

    @property
    def share(self) -> float:
        """Give the state as a share of the transcript, to three places."""
        return round(self.state / self.transcript, 3)


def compress(facts: Sequence[Fact]) -> Carried:
    """Make the state of a trajectory from what it recorded."""
    budgets = _of(facts, FactKind.BUDGET)
    requests = _of(facts, FactKind.REQUEST)
    return Carried(
        request=requests[-1].said["text"] if requests else None,
        constraints=tuple(fact.said["text"] for fact in _of(facts, FactKind.CONSTRAINT)),
        evidence=tuple(map(_evidence, _accepted(facts))),
        uncertainties=tuple(
            {"node": fact.node, "question": fact.said["question"]} for fact in _open_questions(facts)
        ),
        failures=_counted(map(_failure, _failures_that_matter(facts))),
        plans=tuple(_plan(fact) for fact in _of(facts, FactKind.PLAN) if fact.node not in _done(facts)),
        budget=_left(budgets[-1]) if budgets else None,
    )


def missing(state: Carried, facts: Sequence[Fact], *, deciding: str) -> tuple[str, ...]:
    """Name what the decision about a node needs and the state lacks or tells otherwise; () where nothing.

    What is needed is read from the facts, not from the state:
        the request, every constraint and the budget; the node's plan and the plans that wait for it;
        the evidence of everything that the node, or what waits for it, stands on; the failures and the
        rejected candidates of the node; its open questions.
    Raises: ValueError when the node is not planned, or is done: then there is nothing to decide (definite).
    """
    if deciding not in [fact.node for fact in _of(facts, FactKind.PLAN)] or deciding in _done(facts):
        raise ValueError("a decision is about a node that is planned and not done")
    return tuple(_lacking(state, compress(facts), _concerns(facts, deciding)))


def sizes(state: Carried, facts: Iterable[Fact]) -> Sizes:
    """Measure a state against the whole transcript."""
    return Sizes(
        transcript=len(canonical_bytes([fact.as_json() for fact in facts])),
        state=len(canonical_bytes(state.as_json())),
    )


def _lacking(state: Carried, full: Carried, nodes: frozenset[str]) -> Iterator[str]:
    if state.request != full.request:
        yield "request"
    for text in full.constraints:
        if text not in state.constraints:
            yield f"constraint: {text}"
    for part in ("evidence", "uncertainties", "failures", "plans"):
        there = getattr(state, part)
        for item in getattr(full, part):
            if item["node"] in {None, *nodes} and item not in there:
                yield f"{_NAMES[part]} of {item['node'] or 'everything'}{_detail(item)}"
    if state.budget != full.budget:
        yield "budget"


_NAMES = {"evidence": "evidence", "uncertainties": "open question", "failures": "failure", "plans": "plan"}


def _detail(item: Mapping[str, Any]) -> str:
    detail = next(
        (item[name] for name in ("source", "question", "error", "candidate") if item.get(name)), None
    )
    return "" if detail is None else f": {detail}"


def _concerns(facts: Sequence[Fact], node: str) -> frozenset[str]:
    """Name the nodes that a decision is about: the node, what waits for it, and what all those stand on."""
    waits, nodes = _waits(facts), {node}
    while further := {name for name, on in waits.items() if nodes & on} - nodes:
        nodes |= further
    while further := {name for one in nodes for name in waits.get(one, ())} - nodes:
        nodes |= further
    return frozenset(nodes)


def _failures_that_matter(facts: Sequence[Fact]) -> list[Fact]:
    """Give the failures and rejected candidates of nodes that are not done."""
    kinds = (FactKind.FAILURE, FactKind.REJECTED)
    return [fact for fact in facts if fact.kind in kinds and fact.node not in _done(facts)]


def _open_questions(facts: Sequence[Fact]) -> list[Fact]:
    answered = [fact.said["question"] for fact in _of(facts, FactKind.ANSWER)]
    return [fact for fact in _of(facts, FactKind.QUESTION) if fact.said["question"] not in answered]


def _done(facts: Sequence[Fact]) -> frozenset[str | None]:
    return frozenset(fact.node for fact in _accepted(facts))


def _accepted(facts: Sequence[Fact]) -> list[Fact]:
    """Give what was accepted and stands (CM3).

    A later rejection of the same source reopens its node, and with it every node that waits for that one.
    """
    standing: dict[tuple[str | None, str], Fact] = {}
    for fact in facts:
        if fact.kind is FactKind.ACCEPTED:
            standing[fact.node, fact.said["source"]] = fact
        elif fact.kind is FactKind.REJECTED:
            standing.pop((fact.node, fact.said["source"]), None)
    waits = _waits(facts)
    while open_again := [
        key for key in standing if waits.get(str(key[0]), set()) - {node for node, _ in standing}
    ]:
        for key in open_again:
            del standing[key]
    return list(standing.values())


def _waits(facts: Sequence[Fact]) -> dict[str, set[str]]:
    return {fact.node: set(fact.said["waits_for"]) for fact in _of(facts, FactKind.PLAN) if fact.node}


def _evidence(fact: Fact) -> dict[str, Any]:
    return {"node": fact.node, **{name: fact.said[name] for name in ("source", "passage", "decision")}}


def _failure(fact: Fact) -> dict[str, Any]:
    if fact.kind is FactKind.REJECTED:
        return {"node": fact.node, "candidate": fact.said["source"], "reason": fact.said["reason"]}
    return {"node": fact.node, **{name: fact.said[name] for name in ("error", "call", "transient")}}


def _counted(items: Iterable[dict[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Put equal failures into one, with how often: that number decides whether another attempt is left."""
    times: list[dict[str, Any]] = []
    for item in items:
        same = next((one for one in times if {**one, "times": None} == {**item, "times": None}), None)
        if same is None:
            times.append({**item, "times": 1})
        else:
            same["times"] += 1
    return tuple(times)


def _plan(fact: Fact) -> dict[str, Any]:
    return {"node": fact.node, "waits_for": fact.said["waits_for"]}


def _left(fact: Fact) -> dict[str, int]:
    spent, limit = fact.said["spent"], fact.said["limit"]
    return {"spent": spent, "left": limit - spent}


def _of(facts: Sequence[Fact], kind: FactKind) -> list[Fact]:
    return [fact for fact in facts if fact.kind is kind]
