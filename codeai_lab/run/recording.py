"""How does a stage put on record what it decided?

Chapter: 004, "What CodeAI does": a conflict leaves durable evidence, not only an in-memory exception.

Idea: one append for one decision. Where the request was not recorded yet it goes first, in the same batch;
where the decision rests on what look_up saw, the append is conditional on the key being unchanged.

Always true:
  N1. A request is recorded once, and every later event of its action names it as its cause.
  N2. A decision whose key has moved records nothing.
  N3. An output or a reading that no line takes is left out and named; status and adapter's error stand.
  N4. A completion that comes after a verdict is recorded apart, as `action.completed_late`.

Not here: what is decided (`run.stages`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codeai_lab.decide.authority import Permission
from codeai_lab.decide.identity import Fingerprint
from codeai_lab.errors import (
    LedgerError,
    OutcomeNotRecordedError,
    RefusedRequestError,
    RefusedValueError,
)
from codeai_lab.records import (
    ActionRequest,
    ActionResult,
    ActionStatus,
    EffectState,
    Event,
    EventDraft,
    NextOperation,
)
from codeai_lab.run.facts import LOOK_AGAIN, Bench, Ended, Facts, Next, Raised
from codeai_lab.store.protocol import Unchanged

TOO_LONG = (
    "Too long or too deeply nested for a line of the ledger; keep the bulk in a file and record its digest."
)


def request_draft(bench: Bench, request: ActionRequest, fingerprint: Fingerprint) -> EventDraft:
    """Give the `action.requested` event of a request."""
    of_starts = {} if bench.records_starts is None else {"records_starts": bench.records_starts}
    payload = {
        "action_id": request.action_id,
        "capability": request.capability,
        "instruction": request.instruction,
        "payload": request.payload,
        "precondition": request.precondition,
        "performer": request.performer,
        "rules": bench.rules,
        "fingerprint": fingerprint.as_json(),
        **of_starts,
    }
    return bench.draft(request.action_id, "action.requested", payload, key=request.idempotency_key)


def record(bench: Bench, facts: Facts, *parts: tuple[str, dict[str, Any]]) -> tuple[Event, ...]:
    """Append what is decided, the request first where it is not recorded yet; () when the key moved."""
    conditions = []
    drafts = []
    if not facts.is_recorded:
        drafts.append(facts.requested)
        conditions.append(Unchanged(stream=facts.request.action_id, last_seq=0))
    if facts.own_seq is not None:
        conditions.append(Unchanged(stream=facts.request.action_id, last_seq=facts.own_seq))
    if facts.guard is not None:
        conditions.append(Unchanged(key=facts.request.idempotency_key, last_seq=facts.guard))
    drafts += [caused_by(bench, facts.requested, kind, payload) for kind, payload in parts]
    return bench.ledger.append(*drafts, unless_changed=conditions)


def caused_by(bench: Bench, requested: EventDraft, kind: str, payload: dict[str, Any]) -> EventDraft:
    """Give a later event of the action that a request began (N1)."""
    return EventDraft(
        event_id=bench.new_id(),
        run_id=requested.run_id,
        stream_id=requested.stream_id,
        kind=kind,
        actor_id=bench.actor_id,
        idempotency_key=requested.idempotency_key,
        recorded_at_us=bench.clock.now_us(),
        causation_id=requested.event_id,
        payload=payload,
    )


def record_outcome(bench: Bench, facts: Facts, payload: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Append the completion of an attempt; give it as recorded, and whether it came after a verdict (N4).

    What no line takes is left out (N3).

    Raises: OutcomeNotRecordedError (indefinite) when the ledger takes none of it; the effect may be there.
    """
    facts, kind = replace(facts, guard=None), "action.completed"
    while True:
        recorded = _record_what_fits(bench, facts, kind, payload)
        if recorded is not None:
            return recorded, kind == "action.completed_late"
        history = bench.ledger.read(facts.request.action_id)
        if facts.own_seq is None or not history:
            raise OutcomeNotRecordedError()
        if any(event.kind == "action.reconciled" for event in history):
            kind = "action.completed_late"
        facts = replace(facts, own_seq=history[-1].seq)


def _record_what_fits(
    bench: Bench, facts: Facts, kind: str, payload: dict[str, Any]
) -> dict[str, Any] | None:
    """Append the longest form that a line takes; None when the action's own history has moved."""
    for words in (payload, *_ever_shorter(payload)):
        try:
            return words if record(bench, facts, (kind, words)) else None
        except RefusedValueError:
            continue
        except LedgerError as error:
            raise OutcomeNotRecordedError() from error
    raise OutcomeNotRecordedError()


def moved(bench: Bench, facts: Facts) -> Next:
    """Tell why a conditional append recorded nothing: the action id was taken meanwhile, or the key moved."""
    taken = not facts.is_recorded and bench.ledger.read(facts.request.action_id)
    return id_is_taken() if taken else LOOK_AGAIN


def id_is_taken() -> Raised:
    return Raised(
        RefusedRequestError(
            "This action id belongs to an earlier request; give every request an id of its own."
        )
    )


def refusal(facts: Facts, reason: str, dimensions: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return "action.replay_refused", {
        "action_id": facts.request.action_id,
        "reason": reason,
        "idempotency_key": facts.request.idempotency_key,
        "original_action_id": facts.holder.stream_id if facts.holder else None,
        "fingerprint_version": facts.fingerprint.version,
        "dimensions": list(dimensions),
    }


def denial(permission: Permission) -> dict[str, Any]:
    """Give the error of a denied request: a function of request and authority, of nothing recorded."""
    return {
        "code": "not-authorised",
        "message": f"The current authority does not permit this: {permission.reason}.",
    }


def complete_early(
    bench: Bench, facts: Facts, status: ActionStatus, error: dict[str, Any], then: NextOperation
) -> Next:
    """Complete a request that never reached the adapter."""
    payload = {
        "action_id": facts.request.action_id,
        "status": str(status),
        "effect_possible": False,
        "output": None,
        "error": error,
        "observed": None,
        "reused_from_action_id": None,
    }
    if not record(bench, facts, ("action.completed", payload)):
        return moved(bench, facts)
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=status,
            effect_state=EffectState.NONE,
            next_operation=then,
            error=error,
        )
    )


def _ever_shorter(payload: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    no_output = {
        "output": None,
        "error": payload["error"] or {"code": "output-not-recordable", "message": TOO_LONG},
    }
    no_reading = {"observed": payload["observed"] and {"readable": False, "error": TOO_LONG}}
    return {**payload, **no_output}, {**payload, **no_reading}, {**payload, **no_output, **no_reading}
