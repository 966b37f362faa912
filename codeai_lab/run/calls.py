"""When may a recorded model response be given instead of asking again?

Chapter: 004, "What CodeAI does": the call path is the architectural precedent.

Idea: a call carries a manifest, a record of what was really sent, built by the runtime and not by the caller.
Only a completed call with a manifest that fits is replayed; a completion without one is a miss. The
fingerprint has four
dimensions: prompt hash, chamber, requested model, rendered context.

Always true:
  Q1. A conflict is raised before the provider is asked.
  Q2. A replay says so and names the original call.
  Q3. Under the historical rules a conflict leaves only `call.requested` behind; under `lab` a refusal too.
  Q4. Authority is judged before anything recorded is looked at. A denial completes the request, is worded
      from the authority alone and decides nothing for the key. Who says nothing of authority holds MAY_CALL.
  Q5. A call is registered as alive while its provider is asked.

Not here: working state, resuming and reinterpreting calls; a race between two callers (nothing here claims
the key).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from codeai_lab.canonical import plain
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.identity import (
    CALL_FINGERPRINT_V1,
    Fingerprint,
    call_fingerprint,
    differing_dimensions,
    recorded_call_fingerprint,
    vars_of_call,
)
from codeai_lab.decide.workstate import answered_call
from codeai_lab.errors import (
    IdempotencyConflictError,
    LedgerError,
    OutcomeNotRecordedError,
    RefusedRequestError,
    RefusedValueError,
)
from codeai_lab.records import ActionStatus, CallRequest, CallResult, Event, EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.run.recording import denial
from codeai_lab.store.protocol import Unchanged


class Provider(Protocol):
    """What answers a model call."""

    def respond(self, call: CallRequest) -> Any:
        """Give a response that has a JSON form."""
        ...


CALL = "model.call"
MAY_CALL = Authority.of(CALL)  # the default: the chapter's calls are made without a word about authority


def invoke_recorded_call(
    bench: Bench,
    call: CallRequest,
    provider: Provider,
    *,
    record_conflict: bool,
    authority: Authority = MAY_CALL,
    performer: str = "agent",
) -> CallResult:
    """Record the request, judge it, look for a completed call with its key, and replay it or ask the
    provider.
    """
    fingerprint = call_fingerprint(call)
    requested = _draft(bench, call, "call.requested", None, _requested(bench, call, fingerprint))
    if not bench.ledger.append(requested, unless_changed=[Unchanged(stream=call.call_id, last_seq=0)]):
        raise RefusedRequestError(
            "This call id belongs to an earlier call; give every call an id of its own."
        )
    if error := denied(bench, authority, performer, at_us=requested.recorded_at_us):
        payload = {"call_id": call.call_id, **denied_completion(error)}
        bench.ledger.append(_draft(bench, call, "call.completed", requested.event_id, payload))
        return CallResult(
            call_id=call.call_id, response=None, replayed=False, original_call_id=call.call_id,
            status=ActionStatus.DENIED, error=error,
        )  # fmt: skip
    original = answered_call(bench.ledger.find(call.idempotency_key))
    if original is None:
        bench.ledger.live_actions.add(requested.event_id)
        try:
            return _ask(bench, call, provider, fingerprint, cause=requested.event_id)
        finally:
            bench.ledger.live_actions.discard(requested.event_id)
    dimensions = differing_dimensions(recorded_call_fingerprint(original[0].payload), fingerprint)
    if dimensions:
        if record_conflict:
            refusal = _refusal(call, original[0], dimensions)
            bench.ledger.append(_draft(bench, call, "call.replay_refused", requested.event_id, refusal))
        raise IdempotencyConflictError(
            idempotency_key=call.idempotency_key,
            original_id=original[0].stream_id,
            fingerprint_version=CALL_FINGERPRINT_V1,
            dimensions=dimensions,
        )
    return _replay(bench, call, original, cause=requested.event_id)


def denied(bench: Bench, authority: Authority, performer: str, *, at_us: int) -> dict[str, Any] | None:
    """Say why the authority does not permit a call at that instant; None where it does."""
    permission = bench.policy.judge(CALL, authority, performer=performer, now_us=at_us)
    return None if permission.allowed else denial(permission)


def denied_completion(error: Mapping[str, Any]) -> dict[str, Any]:
    """Give what is recorded of a call that was denied."""
    return {
        "status": str(ActionStatus.DENIED),
        "replayed": False,
        "original_call_id": None,
        "response": None,
        "error": dict(error),
    }


def _ask(
    bench: Bench, call: CallRequest, provider: Provider, fingerprint: Fingerprint, *, cause: str
) -> CallResult:
    def record(kind: str, **payload: Any) -> None:
        bench.ledger.append(_draft(bench, call, kind, cause, {"call_id": call.call_id, **payload}))

    record("call.manifest", fingerprint=fingerprint.as_json())
    record("attempt.started", attempt=1)
    response = provider.respond(call)
    try:
        response = plain(response, "response")
        record("attempt.observed", attempt=1, response=response)
        record("call.completed", status="succeeded", replayed=False, original_call_id=None, response=response)
    except (RefusedValueError, LedgerError) as error:
        raise OutcomeNotRecordedError() from error  # the provider was asked: that much is done
    return CallResult(call_id=call.call_id, response=response, replayed=False, original_call_id=call.call_id)


def _replay(bench: Bench, call: CallRequest, original: tuple[Event, Event], *, cause: str) -> CallResult:
    first, completed = original
    payload = {
        **completed.payload,
        "call_id": call.call_id,
        "replayed": True,
        "original_call_id": first.stream_id,
    }
    bench.ledger.append(_draft(bench, call, "call.completed", cause, payload))
    return CallResult(
        call_id=call.call_id,
        response=completed.payload["response"],
        replayed=True,
        original_call_id=first.stream_id,
    )


def _requested(bench: Bench, call: CallRequest, fingerprint: Fingerprint) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        **vars_of_call(call),
        "rules": bench.rules,
        "fingerprint": fingerprint.as_json(),
    }


def _refusal(call: CallRequest, original: Event, dimensions: tuple[str, ...]) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "reason": "identity-conflict",
        "idempotency_key": call.idempotency_key,
        "original_call_id": original.stream_id,
        "fingerprint_version": CALL_FINGERPRINT_V1,
        "dimensions": list(dimensions),
    }


def _draft(
    bench: Bench, call: CallRequest, kind: str, cause: str | None, payload: Mapping[str, Any]
) -> EventDraft:
    return bench.draft(call.call_id, kind, payload, key=call.idempotency_key, cause=cause)
