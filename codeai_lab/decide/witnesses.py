"""What do ledger, world and summary each say, and do they agree?

Chapter: 004, "Checking it without trusting it" and "Retry, replay, duplicate".

Idea: three witnesses, one row. The *ledger* gives bounds on the number of effects, because a FAILED after the
start may or may not have acted. The *world* gives a number: receipts that the effect itself left. The
*summary* is what the producer counted. Labels are computed from the first two; the summary is only ever
compared.

    ledger [0, 1]   world 1   summary 1      agree: the record allows it, the world shows it
    ledger [0, 0]   world 1                  disagree: an effect that the record does not know

Always true:
  W1. The summary changes no label and no bound.
  W2. A disagreement is named in words: which witness, which number.
  W3. An effect is counted a duplicate by what the world keeps of it, not by its key.

Not here: the same computation on a frozen bundle, written a second time on purpose (`prove.verify`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from codeai_lab.decide.projection import starts_are_recorded
from codeai_lab.records import Event

# What a verdict establishes; `still_unknown` establishes nothing more than the record did.
VERDICT_BOUNDS = {"effect_confirmed": (1, 1), "no_effect_confirmed": (0, 0)}


class Label(StrEnum):
    """What one request turned out to be. An ordinary first attempt carries no label."""

    RETRY = "retry"
    REPLAY = "replay"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    DENIED = "denied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the world kept of one effect.

    `n` counts from 1, `marker` names the file that the effect left, `effect` is the SHA-256 of that file's
    bytes: two receipts with the same one are the same effect twice.
    """

    n: int
    action_id: str
    marker: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHistory:
    """The events of one request, by what they say; `earlier_key`: its key was asked before."""

    request: Event
    started: bool
    completion: Event | None
    refusal: Event | None
    verdict: str | None
    earlier_key: bool
    earlier_completed_call: bool

    @property
    def is_call(self) -> bool:
        return self.request.kind == "call.requested"

    @property
    def status(self) -> str | None:
        if self.completion is not None:
            return str(self.completion.payload["status"])
        reason = self.refusal.payload["reason"] if self.refusal is not None else None
        return {"effect-unknown": "refused", "in-progress": "in_progress"}.get(str(reason))

    @property
    def reused_from(self) -> str | None:
        if self.completion is None:
            return None
        name = "original_call_id" if self.is_call else "reused_from_action_id"
        original = self.completion.payload.get(name)
        return None if original is None else str(original)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of effects that the record allows for this request."""
        if self.is_call or self.refusal is not None or self.reused_from is not None:
            return (0, 0)
        if self.verdict in VERDICT_BOUNDS:
            return VERDICT_BOUNDS[self.verdict]
        if self.completion is not None:
            payload = self.completion.payload
            possible = int(bool(payload.get("effect_possible")))
            return (1, 1) if payload["status"] == "succeeded" else (0, possible)
        may_have_started = self.started or not starts_are_recorded(self.request)
        return (0, int(may_have_started))


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses:
    """One row: what the three say about the requests of one case, and where they disagree."""

    requests: int
    statuses: tuple[str | None, ...]
    reused_from: tuple[str | None, ...]
    effects_ledger: tuple[int, int]
    effects_world: int
    effects_summary: int
    labels: tuple[Label | None, ...]
    disagreements: tuple[str, ...]


def hear(events: Sequence[Event], receipts: Sequence[Receipt], *, summary: int) -> Witnesses:
    """Bring the three witnesses of one case into a row.

    Args:
        events: the events of the case, in order of seq.
        receipts: the world's own, in order of n.
        summary: the number of effects that the producer counted.
    """
    histories = request_histories(events)
    bounds = (sum(one.bounds[0] for one in histories), sum(one.bounds[1] for one in histories))
    return Witnesses(
        requests=len(histories),
        statuses=tuple(one.status for one in histories),
        reused_from=tuple(one.reused_from for one in histories),
        effects_ledger=bounds,
        effects_world=len(receipts),
        effects_summary=summary,
        labels=tuple(label(one, receipts) for one in histories),
        disagreements=disagreements(bounds, world=len(receipts), summary=summary),
    )


def label(history: RequestHistory, receipts: Sequence[Receipt]) -> Label | None:
    """Name what a request turned out to be; the first that applies, from the surest to the least sure."""
    if history.reused_from is not None:
        return Label.REPLAY
    if history.status == "denied":
        return Label.DENIED
    if history.refusal is not None:
        return Label.UNKNOWN if history.refusal.payload["reason"] == "effect-unknown" else Label.REFUSED
    if history.is_call and history.completion is None and history.earlier_completed_call:
        return Label.REFUSED
    if _is_duplicate(history.request.stream_id, receipts):
        return Label.DUPLICATE
    if history.earlier_key:
        return Label.RETRY
    return Label.UNKNOWN if history.bounds == (0, 1) else None


def disagreements(ledger: tuple[int, int], *, world: int, summary: int) -> tuple[str, ...]:
    """Name in words where the witnesses disagree; empty when they do not."""
    low, high = ledger
    said = []
    if not low <= world <= high:
        allowed = f"{low}" if low == high else f"{low} to {high}"
        said.append(f"the ledger allows {allowed}, the world shows {world}")
    if summary != world:
        said.append(f"the summary says {summary}, the world shows {world}")
    return tuple(said)


def request_histories(events: Sequence[Event]) -> tuple[RequestHistory, ...]:
    """Group the events of one case by request, in the order in which the requests were recorded."""
    by_stream: dict[str, list[Event]] = {}
    for event in events:
        by_stream.setdefault(event.stream_id, []).append(event)
    keys: set[str | None] = set()
    completed_calls: set[str | None] = set()
    histories = []
    for event in events:
        if event.kind not in ("action.requested", "call.requested"):
            continue
        history = by_stream[event.stream_id]
        completion = _find(history, "action.completed", "call.completed")
        histories.append(
            RequestHistory(
                request=event,
                started=_find(history, "action.execution_started") is not None,
                completion=completion,
                refusal=_find(history, "action.replay_refused", "call.replay_refused"),
                verdict=_last_verdict(history),
                earlier_key=event.idempotency_key in keys,
                earlier_completed_call=event.idempotency_key in completed_calls,
            )
        )
        keys.add(event.idempotency_key)
        answered = completion is not None and completion.payload.get("status") != "denied"
        if answered and event.kind == "call.requested":
            completed_calls.add(event.idempotency_key)
    return tuple(histories)


def receipt_from_json(line: dict[str, Any]) -> Receipt:
    """Read one receipt line of the world."""
    return Receipt(n=line["n"], action_id=line["action_id"], marker=line["marker"], effect=line["effect"])


def _is_duplicate(action_id: str, receipts: Sequence[Receipt]) -> bool:
    seen: set[str] = set()
    for receipt in receipts:
        if receipt.action_id == action_id and receipt.effect in seen:
            return True
        seen.add(receipt.effect)
    return False


def _last_verdict(history: Sequence[Event]) -> str | None:
    """Give the last verdict on an effect; a completion that came after one of absence takes its word away."""
    said = [event for event in history if event.kind in ("action.reconciled", "action.completed_late")]
    if not said:
        return None
    verdicts = [str(event.payload["verdict"]) for event in said if event.kind == "action.reconciled"]
    contradicted = said[-1].kind == "action.completed_late" and verdicts[-1] == "no_effect_confirmed"
    return "still_unknown" if contradicted else verdicts[-1]


def _find(history: Sequence[Event], *kinds: str) -> Event | None:
    return next((event for event in history if event.kind in kinds), None)
