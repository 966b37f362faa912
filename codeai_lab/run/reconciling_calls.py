"""Was the provider asked, where the record of a call leaves it open?

Chapter: 004, "Where the cache stops": an attempt that started and was not observed is effect-unknown.

Idea: as for actions (`run.reconciling`), with the receipts of the provider for witness. A receipt names a key
and a request body and no call, so those of one key are counted against the calls that may have left them.

    receipts   observed by others   unknown of others   verdict
        1               0                   0           effect_confirmed
        0               0                   0           no_effect_confirmed
        1               1                   0           no_effect_confirmed: that one is theirs
        1               0                   1           still_unknown: whose is it?

Always true:
  RCC1. It needs the authority to reconcile; verdicts and refusals are events, none is written over; a call
        that is alive is not judged.
  RCC2. The provider is never asked to answer. A verdict brings no answer back: where the effect is confirmed
        the answer is lost.
  RCC3. A receipt is one call's. It confirms nothing as long as another call with the key may have left it.
  RCC4. The verdict is appended only if nothing was recorded under the key since the receipts were asked for.

Not here: what a verdict means for the work (`decide.workstate`), asking afresh (`run.resuming`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.identity import recorded_call_fingerprint
from codeai_lab.decide.workstate import CallOperation, CallState, project_call_state
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import EffectState, Event
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import body_hash, request_body
from codeai_lab.run.reconciling import EffectLookup, ask, why_not
from codeai_lab.run.recording import caused_by
from codeai_lab.run.resuming import recorded_call
from codeai_lab.store.protocol import Unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReconciliation:
    """What came of reconciling: a verdict, or the reason of a refusal, and the call's state afterwards."""

    call_id: str
    verdict: str | None
    refused: str | None
    provider_effect: EffectState
    next_operation: CallOperation
    evidence: tuple[Mapping[str, Any], ...] = ()


def reconcile_call(
    bench: Bench, call_id: str, *, authority: Authority, receipt_lookup: EffectLookup, performer: str
) -> CallReconciliation:
    """Look a call up in the provider's receipts and record the verdict.

    Args:
        receipt_lookup: its `find` is given the recorded request with its `idempotency_key` and
            `request_body_hash`, and gives a reference to each receipt of them.

    Raises: RefusedRequestError for a call that is not recorded (definite).
    """
    while True:
        own = bench.ledger.read(call_id)
        if not own or own[0].kind != "call.requested":
            raise RefusedRequestError("There is no such call in the ledger; nothing can be reconciled.")
        of_key = bench.ledger.find(str(own[0].idempotency_key))
        own = tuple(event for event in of_key if event.stream_id == call_id)
        is_open = project_call_state(own).provider_effect is EffectState.UNKNOWN
        refused = why_not(bench, own[0], authority, performer, is_open=is_open)
        if refused is None:
            verdict, evidence = _judge(receipt_lookup, own[0], of_key)
            if _append(bench, own[0], of_key, "call.reconciled", verdict=verdict, evidence=evidence):
                return _outcome(bench, call_id, verdict=verdict, evidence=tuple(evidence))
        elif _append(bench, own[0], of_key, "call.reconcile_refused", reason=refused):
            return _outcome(bench, call_id, refused=refused)


def _judge(
    receipt_lookup: EffectLookup, requested: Event, of_key: Sequence[Event]
) -> tuple[str, list[dict[str, Any]]]:
    """Turn the receipts of a key and a body into a verdict on one of the calls with them (RCC3)."""
    call = recorded_call(requested, call_id=requested.stream_id)
    wanted = {
        **requested.payload,
        "idempotency_key": requested.idempotency_key,
        "request_body_hash": body_hash(request_body(call)),
    }
    verdict, evidence = ask(receipt_lookup, wanted)
    if verdict != "effect_confirmed":
        return verdict, evidence
    others = [state.provider_effect for state in _others(requested, of_key)]
    left = len(evidence) - others.count(EffectState.OBSERVED)
    if left <= 0:
        return "no_effect_confirmed", evidence
    if left <= others.count(EffectState.UNKNOWN):
        return "still_unknown", evidence
    return "effect_confirmed", evidence


def _others(requested: Event, of_key: Sequence[Event]) -> list[CallState]:
    """Give the states of the other calls that would leave the same receipts."""
    asked = recorded_call_fingerprint(requested.payload).digest
    return [
        project_call_state([event for event in of_key if event.stream_id == other.stream_id])
        for other in of_key
        if other.kind == "call.requested"
        and other.stream_id != requested.stream_id
        and recorded_call_fingerprint(other.payload).digest == asked
    ]


def _append(bench: Bench, requested: Event, of_key: Sequence[Event], kind: str, **said: Any) -> bool:
    """Append to a call's history only if nothing was recorded under its key meanwhile (RCC4)."""
    unchanged = Unchanged(key=str(requested.idempotency_key), last_seq=of_key[-1].seq)
    draft = caused_by(bench, requested, kind, {"call_id": requested.stream_id, **said})
    return bool(bench.ledger.append(draft, unless_changed=[unchanged]))


def _outcome(
    bench: Bench,
    call_id: str,
    *,
    verdict: str | None = None,
    refused: str | None = None,
    evidence: tuple[Mapping[str, Any], ...] = (),
) -> CallReconciliation:
    state = project_call_state(bench.ledger.read(call_id))
    # Who may not judge learns nothing of what there is to judge.
    hidden = refused == "not-authorised"
    return CallReconciliation(
        call_id=call_id,
        verdict=verdict,
        refused=refused,
        provider_effect=EffectState.UNKNOWN if hidden else state.provider_effect,
        next_operation=CallOperation.NONE if hidden else state.next_operation,
        evidence=evidence,
    )
