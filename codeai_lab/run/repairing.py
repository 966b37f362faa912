"""How is a call repaired until it is answered, or given up with everything else kept?

Chapter: 003, "Retry only operations that can be repeated safely": the SQL tool returns its error to the
model, the query changes, and after three failures the node remains unresolved.

Idea: a loop around one node of the plan. `decide.repair` says what follows on a failure; this module makes
the call, hands the problem to whoever revises it, and records each step in the node's own stream before the
next one is taken. What was spent is read back from there, so a new process does not begin the count again.

    node.call_failed  then  retry.attempted | repair.attempted | repair.refused | discovery.reopened
    at the end        node.answered (with repair.succeeded where one was needed)  or  node.unresolved

Always true:
  RG1. A call that failed by its input is not made again unchanged: the proposal is refused, the reason
      recorded, and the refusal spends a repair like any that fails.
  RG2. In one process no more calls are made than `Limits.most_calls`, whatever fails; a call that a killed
      process left open is made again, since it only reads. A node that ended is not called again.
  RG3. Only the node's own stream is written; what other nodes verified stays as it is.
  RG4. The answer says how it came about: at the first attempt, retried, repaired, or reopened.

Not here: which move follows (`decide.repair`), revising (`run.revisers`), the stream (`run.node_history`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import StrEnum
from typing import Any

from codeai_lab.canonical import digest, plain
from codeai_lab.decide.repair import (
    LIMITS,
    AfterFailure,
    Decision,
    ErrorKind,
    Failure,
    Limits,
    Problem,
    WayOn,
    decide_repair,
    refusal_of_repeat,
    ways_on,
)
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import Event
from codeai_lab.run.facts import Bench
from codeai_lab.run.film_tools import ToolError
from codeai_lab.run.node_history import ENDS, FAILED, REOPENED, NodeHistory

Arguments = Mapping[str, Any]
Call = Callable[[str, Arguments], Any]
Revise = Callable[[Arguments, Problem], Arguments]
Contradicts = Callable[[Any], str | None]


class RepairEnd(StrEnum):
    """How the loop around a node ended."""

    ANSWERED = "answered"
    REOPENED = "reopened"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a node needs and from whom.

    Args:
        node: the name of the node, and of the stream in which its history is recorded.
        call: makes the call; it gives an answer or a `Problem`, or raises a `ToolError`.
        revise: proposes other arguments, from those that failed and from the problem.
        contradicts: says in which way an answer denies the candidate; None where it does not.
        other_routes, may_ask: what is open besides, should the node stay unresolved.
    """

    node: str
    tool: str
    arguments: Arguments
    call: Call
    revise: Revise
    contradicts: Contradicts = lambda _: None
    limits: Limits = LIMITS
    other_routes: tuple[str, ...] = ()
    may_ask: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How a node ended: `how` it was answered, or why it was not, and the `ways` that are open then."""

    node: str
    status: RepairEnd
    arguments: Arguments
    answer: Any = None
    how: str | None = None
    reason: str | None = None
    ways: tuple[WayOn, ...] = ()


def resolve(bench: Bench, task: Task) -> Resolution:
    """Call, retry and repair until the node is answered, reopened or given up; go on from what is recorded.

    Raises: RefusedRequestError (definite) where a reopened node is begun again with a call that failed by its
        input, or where somebody else writes the node's history; whatever the call raises that is no
        `ToolError`.
    Touches: the ledger, and the tool.
    """
    history = NodeHistory(bench, task.node)
    if history.newest and history.newest.kind in ENDS:
        return _end(history.newest)
    decided = _begun(history, task)
    while True:
        after = _call(history, task) if decided is None else _follow(history, task, decided)
        if isinstance(after, Resolution):
            return after
        decided = after


def call_digest(tool: str, arguments: Arguments) -> str:
    """Give the identity of a call: the same tool with the same arguments is the same call."""
    return digest({"tool": tool, "arguments": dict(arguments)})


def _begun(history: NodeHistory, task: Task) -> Decision | None:
    """Give the decision that was recorded and not followed yet; None when a call is due."""
    newest = history.newest
    if newest is not None and newest.kind in FAILED:
        return Decision(move=AfterFailure(newest.payload["move"]), reason=newest.payload["reason"])
    if newest is not None and newest.kind == REOPENED:
        because = refusal_of_repeat(history.failures, call_digest(task.tool, task.arguments))
        if because:
            raise RefusedRequestError(f"This call is not made: {because}.")
    return None


def _call(history: NodeHistory, task: Task) -> Resolution | Decision:
    """Make the call that is due; give the end, or what is decided about its failure."""
    arguments = history.due(task.arguments)
    try:
        answer = task.call(task.tool, arguments)
    except ToolError as error:
        kind, problem = error.kind, Problem(kind=str(error.kind), message=str(error))
    else:
        if isinstance(answer, Problem):
            kind, problem = ErrorKind.INPUT, answer
        elif denial := task.contradicts(answer):
            kind, problem = ErrorKind.CONTRADICTION, Problem(kind="contradiction", message=denial)
        else:
            return _answered(history, arguments, answer)
    failure = Failure(kind=kind, call=call_digest(task.tool, arguments))
    return _failed(history, task, "node.call_failed", arguments, problem, failure)


def _follow(history: NodeHistory, task: Task, decision: Decision) -> Resolution | Decision | None:
    """Do what was decided; None when a call is due."""
    failed = history.newest_failure
    arguments, problem = failed["arguments"], Problem(**failed["problem"])
    words = {"arguments": arguments, "move": str(decision.move), "reason": decision.reason}
    if decision.move is AfterFailure.REPAIR:
        return _repair(history, task, arguments, problem)
    if decision.move is AfterFailure.RETRY:
        history.record(("retry.attempted", words))
        return None
    if decision.move is AfterFailure.REOPEN:
        return _end(history.record((REOPENED, words)))
    ways = [str(way) for way in ways_on(other_routes=task.other_routes, may_ask=task.may_ask)]
    unresolved = {**words, "problem": failed["problem"], "ways_on": ways}
    return _end(history.record(("node.unresolved", unresolved)))


def _repair(history: NodeHistory, task: Task, arguments: Arguments, problem: Problem) -> Decision | None:
    """Have the arguments revised; None when they may be tried, else what is decided about the refusal."""
    revised = plain(dict(task.revise(arguments, problem)), "arguments")
    call = call_digest(task.tool, revised)
    because = refusal_of_repeat(history.failures, call)
    if because is None:
        history.record(("repair.attempted", {"arguments": revised, "because": problem.kind}))
        return None
    failure = Failure(kind=ErrorKind.INPUT, call=call)
    return _failed(history, task, "repair.refused", revised, problem, failure, refused_because=because)


def _failed(
    history: NodeHistory,
    task: Task,
    kind: str,
    arguments: Arguments,
    problem: Problem,
    failure: Failure,
    **more: str,
) -> Decision:
    decision = decide_repair(history.failures, failure, task.limits)
    payload = {
        "tool": task.tool,
        "arguments": dict(arguments),
        "call": failure.call,
        "error_kind": str(failure.kind),
        "problem": asdict(problem),
        "move": str(decision.move),
        "reason": decision.reason,
        **more,
    }
    history.record((kind, payload))
    return decision


def _answered(history: NodeHistory, arguments: Arguments, answer: Any) -> Resolution:
    how, asked = history.how(), dict(arguments)
    parts = [("repair.succeeded", {"arguments": asked})] if how == "repaired" else []
    answered = {"arguments": asked, "answer": _as_json(answer), "how": how}
    return _end(history.record(*parts, ("node.answered", answered)))


def _end(event: Event) -> Resolution:
    """Give the end of a node as its record has it."""
    said = event.payload
    return Resolution(
        node=event.stream_id,
        status=_STATUS[event.kind],
        arguments=said["arguments"],
        answer=said.get("answer"),
        how=said.get("how"),
        reason=said.get("reason"),
        ways=tuple(map(WayOn, said.get("ways_on", ()))),
    )


def _as_json(answer: Any) -> Any:
    if isinstance(answer, tuple | list):
        return [_as_json(part) for part in answer]
    return asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer


_STATUS = {
    "node.answered": RepairEnd.ANSWERED,
    "node.unresolved": RepairEnd.UNRESOLVED,
    REOPENED: RepairEnd.REOPENED,
}
