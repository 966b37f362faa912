"""Who told whom what, in which order?

Chapter: 004, "Where the cache stops": the two time lines, side by side.

Idea: a time line is a list of arrows between five lanes, and every arrow names what it rests on: a line of
the ledger, a receipt of the world, or an inference from both. An append of several lines is one arrow. A
receipt stands after its action's start and before its completion; where a record stops without a completion,
an arrow is lost.

    Caller   Runtime   Adapter   World   Ledger

Always true:
  A1. The arrows are a function of the events and the receipts; the drawing adds nothing.
  A2. Every line and every receipt that is handed in is the evidence of at least one arrow, each in its order.
  A3. A lost arrow stands after the last receipt of its action. The record cannot tell a process death from an
      exception that escaped, so the words claim neither.

Not here: drawing (`show.timelines`), what the history means (`decide.projection`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from codeai_lab.show.words import read, say

INFERRED = "inferred"


class Lane(StrEnum):
    """Who takes part, from left to right."""

    CALLER = "Caller"
    RUNTIME = "Runtime"
    ADAPTER = "Adapter"
    WORLD = "World"
    LEDGER = "Ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """One step; `evidence` is "line 3", "receipt 1" or "inferred"; a lost one never arrives."""

    source: Lane
    target: Lane
    says: str
    evidence: str
    lost: bool = False


def arrows(events: Iterable[object], receipts: Iterable[object]) -> tuple[Arrow, ...]:
    """Give the arrows of one case in order.

    Args:
        events: the case's ledger lines in order of seq, as events or as parsed lines.
        receipts: the world's receipts of the same case, in order of n.
    """
    return tuple(_Story(list(events), list(receipts)).tell())


class _Story:
    """The record of one case, and how far it has been told."""

    def __init__(self, events: Sequence[object], receipts: Sequence[object]) -> None:
        self.lines = [event for event in events if read(event, "kind") != "ledger.created"]
        walks = [line for line in self.lines if not read(line, "kind").startswith("action.reconcile")]
        self.ends = {read(line, "stream_id"): line for line in walks if read(line, "kind") in _ENDS}
        self.records_start = {read(line, "stream_id") for line in walks if read(line, "kind") in _STARTS}
        self.last_of_walk = {read(line, "stream_id"): line for line in walks}
        self.waiting = deque(one for one in receipts if read(one, "action_id") in self.last_of_walk)
        self.strays = [one for one in receipts if read(one, "action_id") not in self.last_of_walk]
        self.receipt_of = {read(one, "action_id"): _receipt(one) for one in reversed(self.waiting)}
        self.keys: set[str] = set()
        self.answered_calls: dict[str, str] = {}
        self.started: set[str] = set()
        self.walked: dict[str, bool] = {}
        self.effects: set[str] = set()

    def tell(self) -> Iterator[Arrow]:
        """Tell the appends one by one; what the world shows comes as early as the record allows (A2, A3)."""
        for append in _appends(self.lines):
            yield from self.tell_append(append)
            for line in append:
                if self.last_of_walk.get(read(line, "stream_id")) is line:
                    self.walked[read(line, "stream_id")] = read(line, "stream_id") in self.ends
            yield from self.tell_world()
        for receipt in self.strays:
            yield self.effect(receipt)

    def tell_append(self, append: Sequence[object]) -> Iterator[Arrow]:
        first, key = append[0], read(append[0], "idempotency_key")
        asked = read(first, "kind") in _REQUESTS
        seen = asked and key in self.keys
        if asked:
            yield self.ask(first, seen)
            self.keys |= {key} if key is not None else set()
        if seen and len(append) > 1:
            yield from self.look_up(first)
        for line in append:
            yield from self.leave_adapter(line)
        yield _arrow(Lane.RUNTIME, Lane.LEDGER, _append_words(append), _lines(append))
        if seen and len(append) == 1:
            yield from self.look_up(first)
        for line in append:
            yield from self.enter_adapter(line)
            yield from self.answer(line)

    def tell_world(self) -> Iterator[Arrow]:
        while self.waiting and read(self.waiting[0], "action_id") in self.started:
            yield self.effect(self.waiting.popleft())
        owing = {read(receipt, "action_id") for receipt in self.waiting}
        for stream, accounted_for in self.walked.items():
            if not accounted_for and stream not in owing:
                self.walked[stream] = True
                yield self.stop(stream)

    def ask(self, line: object, seen: bool) -> Arrow:
        key, name = say(read(line, "idempotency_key")), say(read(line, "stream_id"))
        verb = "execute_action" if read(line, "kind") == "action.requested" else "invoke_recorded_call"
        says = f"{name}: same key {key} again" if seen else f"{verb} {name}, key {key}"
        return _arrow(Lane.CALLER, Lane.RUNTIME, says, _lines([line]))

    def look_up(self, line: object) -> Iterator[Arrow]:
        end, key = self.ends.get(read(line, "stream_id")), read(line, "idempotency_key")
        payload = read(end, "payload") or {}
        if payload.get("status") == "denied":
            return
        original, evidence = _original(payload), INFERRED if end is None else _lines([end])
        if end is None and read(line, "kind") == "call.requested":
            # The historical rules keep a call conflict in memory: only the earlier completion speaks of it.
            original = self.answered_calls.get(key)
        if original is None:
            evidence = INFERRED
        found = "nothing to replay" if original is None else f"the record of {say(original)}"
        yield _arrow(Lane.RUNTIME, Lane.LEDGER, f"look up {say(key)}: {found}", evidence)

    def enter_adapter(self, line: object) -> Iterator[Arrow]:
        stream, kind = read(line, "stream_id"), read(line, "kind")
        number = (read(line, "payload") or {}).get("attempt")
        if kind in _STARTS:
            evidence = _lines([line])
        elif kind == "action.requested" and stream not in self.records_start and self.entered(stream):
            evidence = self.receipt_of.get(stream) or INFERRED
        else:
            return
        self.started.add(stream)
        says = "execute" if number is None else f"attempt {say(number)}"
        yield _arrow(Lane.RUNTIME, Lane.ADAPTER, says, evidence)

    def entered(self, stream: str) -> bool:
        payload = read(self.ends.get(stream), "payload") or {}
        return stream in self.receipt_of or bool(payload.get("effect_possible"))

    def leave_adapter(self, line: object) -> Iterator[Arrow]:
        if read(line, "stream_id") not in self.started:
            return
        if read(line, "kind") == "attempt.observed":
            says = "responds"
        elif read(line, "kind") == "action.completed":
            error = (read(line, "payload") or {}).get("error") or {}
            says = f"raises {say(error.get('type'))}" if error.get("type") else "returns"
        else:
            return
        yield _arrow(Lane.ADAPTER, Lane.RUNTIME, says, _lines([line]))

    def answer(self, line: object) -> Iterator[Arrow]:
        if read(line, "kind") not in _ENDS:
            return
        payload = read(line, "payload") or {}
        if read(line, "kind") == "call.completed" and _original(payload) is None:
            self.answered_calls[read(line, "idempotency_key")] = read(line, "stream_id")
        says = _answer_words(payload)
        yield _arrow(Lane.RUNTIME, Lane.CALLER, says, _lines([line]))

    def effect(self, receipt: object) -> Arrow:
        effect, action = read(receipt, "effect"), read(receipt, "action_id")
        says = "the same effect AGAIN" if effect in self.effects else "effect happens"
        self.effects.add(effect)
        stray = "" if action in self.last_of_walk else f"; {say(action)} is not in the ledger"
        says = f"{says} ({say(read(receipt, 'marker'))}){stray}"
        return _arrow(Lane.ADAPTER, Lane.WORLD, says, _receipt(receipt))

    def stop(self, stream: str) -> Arrow:
        name = say(stream)
        if stream in self.started:
            return _arrow(Lane.ADAPTER, Lane.RUNTIME, f"STOPS: no completion of {name}", INFERRED, lost=True)
        return _arrow(Lane.RUNTIME, Lane.CALLER, f"STOPS: no answer to {name} on record", INFERRED, lost=True)


def _arrow(source: Lane, target: Lane, says: str, evidence: str, lost: bool = False) -> Arrow:
    return Arrow(source=source, target=target, says=says, evidence=evidence, lost=lost)


_REQUESTS = ("action.requested", "call.requested")
_STARTS = ("action.execution_started", "attempt.started")
_ENDS = ("action.completed", "action.replay_refused", "call.completed", "call.replay_refused")


def _appends(lines: Sequence[object]) -> Iterator[list[object]]:
    """Group the lines of one append: by their batch where a line has one, else by the rules that it names."""
    group: list[object] = []
    for line in lines:
        batch = read(line, "batch")
        joins = batch[0] > 1 if batch else _joins_lab(group, line)
        if group and not joins:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _joins_lab(group: Sequence[object], line: object) -> bool:
    if not group or read(group[0], "stream_id") != read(line, "stream_id"):
        return False
    lab = read(group[0], "kind") == "action.requested" and read(group[0], "payload").get("rules") == "lab"
    return lab and not any(read(earlier, "kind") in _STARTS for earlier in group)


def _lines(append: Sequence[object]) -> str:
    first, last = read(append[0], "seq"), read(append[-1], "seq")
    return f"line {first}" if len(append) == 1 else f"lines {first} to {last}"


def _receipt(receipt: object) -> str:
    return f"receipt {read(receipt, 'n')}"


def _append_words(append: Sequence[object]) -> str:
    kinds = [say(read(line, "kind")) for line in append]
    said = " + ".join([kinds[0], *(kind.partition(".")[2] for kind in kinds[1:])])
    payload = read(append[-1], "payload") or {}
    result = payload.get("status", payload.get("verdict"))
    return f"append {said}" if result is None else f"append {said}: {say(result)}"


def _original(payload: dict[str, Any]) -> object:
    if payload.get("replayed") is False:
        return None
    names = ("reused_from_action_id", "original_action_id", "original_call_id")
    return next((payload[name] for name in names if payload.get(name) is not None), None)


def _answer_words(payload: dict[str, Any]) -> str:
    original = _original(payload)
    reason = payload.get("reason")
    if reason == "effect-unknown":
        return f"refused: the effect of {say(original)} is unknown"
    if reason == "in-progress":
        return f"in progress: {say(original)} holds the key"
    if reason is not None:
        return f"raises IdempotencyConflictError: {say(payload.get('dimensions'))}"
    status = say(payload.get("status"))
    return status if original is None else f"{status}, recorded by {say(original)}"
