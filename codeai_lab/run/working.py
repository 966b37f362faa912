"""How does one directive become one answered call, with every moment between two steps on record?

Chapter: 004, "What CodeAI does": the call path; "Where the cache stops": what a killed process leaves.

Idea: a chain of small steps, each of which records one event alone, so that wherever the process is killed
the record says how far it came (`decide.workstate`). Three steps record nothing in a clean run:
`require_authority` asks the policy, `look_up` the ledger, `ask_provider` the world. Fourteen events, by name:

    directive.opened  task.created  context.item_offered  context.compilation_requested  context.compiled
    call.requested  call.manifest  attempt.started  |the provider is asked|  attempt.observed
    attempt.interpreted  attempt.retry_decided  attempt.completed  call.status_decided  call.completed

Always true:
  WK1. One step, at most one append; every event but the first names its cause, and all carry the work's key.
  WK2. The start of an attempt is on record before the provider is asked, and one step only asks it.
  WK3. A step appends only if its stream is as the walk left it; a walk that was overtaken asks nobody.
  WK4. The answer is recorded as bytes before it is read; reading it again needs no provider.
  WK5. A key that was answered for the same call is answered from the record; for another one it is refused.
  WK6. Authority is judged before the ledger is asked, and again when the attempt is to start; a denial
       completes the call, and the provider is not asked.

Not here: moving along the chain (`run.callwalk`), the provider and the bytes (`run.provider`), going on after
a death (`run.resuming`), calls without a chain of work around them (`run.calls`). Nothing here claims a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.identity import (
    call_fingerprint,
    differing_dimensions,
    recorded_call_fingerprint,
    vars_of_call,
)
from codeai_lab.decide.workstate import CallOperation, answered_call
from codeai_lab.errors import (
    IdempotencyConflictError,
    LedgerError,
    OutcomeNotRecordedError,
    RefusedRequestError,
    RefusedValueError,
)
from codeai_lab.records import ActionStatus, CallRequest, EventDraft
from codeai_lab.run.calls import MAY_CALL, denied, denied_completion
from codeai_lab.run.callwalk import CallAnswer, CallFacts, CallWalk, Step, Work, draft, needed, record
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import Transport, body_hash, interpret, kept, request_body


def open_work(
    bench: Bench,
    work: Work,
    transport: Transport,
    *,
    authority: Authority = MAY_CALL,
    performer: str = "agent",
) -> CallWalk:
    """Give the walk of a work, standing before its first step; nothing has happened yet."""
    facts = CallFacts(
        requested_id=bench.new_id(),
        stream=work.work_id,
        key=work.idempotency_key,
        authority=authority,
        performer=performer,
        transport=transport,
        work=work,
    )
    return CallWalk(bench, facts, CHAIN)


# --- the work and its context ---------------------------------------------------------------------------


def open_directive(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record what somebody wants."""
    work = needed(facts.work)
    return _set_up(bench, facts, "directive.opened", directive=work.directive)


def create_task(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record what is to be asked, and which context it cannot do without."""
    work = needed(facts.work)
    return _set_up(bench, facts, "task.created", prompt=work.prompt, required=list(work.required))


def offer_item(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record the context item that is offered: the set-up event between task and compilation."""
    [(name, content)] = needed(facts.work).offered.items()
    return _set_up(bench, facts, "context.item_offered", name=name, content=content)


def request_compilation(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record that the context is about to be compiled."""
    return _set_up(bench, facts, "context.compilation_requested", offered=list(needed(facts.work).offered))


def compile_context(bench: Bench, facts: CallFacts) -> CallFacts | CallAnswer:
    """Put the context together, or record what is missing and end; neither asks anybody."""
    work = needed(facts.work)
    missing = [name for name in work.required if name not in work.offered]
    if missing:
        _set_up(bench, facts, "context.compilation_failed", missing=missing)
        reason = f"required context missing: {', '.join(missing)}"
        return CallAnswer(
            call_id=work.call_id,
            status=ActionStatus.FAILED,
            next_operation=CallOperation.FIX_INPUTS,
            reason=reason,
        )
    facts = replace(facts, call=work.call(work.offered))
    return _set_up(bench, facts, "context.compiled", context=work.offered)


# --- the call, up to the moment that is dark ------------------------------------------------------------


def request_call(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record the call in a stream of its own; from here on the request is the cause of all that follows."""
    call = needed(facts.call)
    facts = replace(facts, stream=call.call_id, last_seq=0)
    requested = record(bench, facts, requested_draft(bench, facts, call))
    return replace(
        facts, last_seq=requested.seq, cause=requested.event_id, asked_at_us=requested.recorded_at_us
    )


def require_authority(bench: Bench, facts: CallFacts) -> CallFacts | CallAnswer:
    """Judge the call at the instant of its request, before anything recorded is looked at (WK6)."""
    return _denied(bench, facts, at_us=facts.asked_at_us) or facts


def look_up(bench: Bench, facts: CallFacts) -> CallFacts | CallAnswer:
    """Answer from the record where the key was answered for the same call; go on where it was not (WK5).

    Raises: IdempotencyConflictError (definite) for a key of another call, after the refusal was recorded.
    """
    call = needed(facts.call)
    original = answered_call(bench.ledger.find(call.idempotency_key))
    if original is None:
        return facts
    request, completed = original
    held = recorded_call_fingerprint(request.payload)
    if dimensions := differing_dimensions(held, call_fingerprint(call)):
        _call_event(
            bench, facts, "call.replay_refused",
            reason="identity-conflict", original_call_id=request.stream_id, fingerprint_version=held.version,
            dimensions=list(dimensions), idempotency_key=call.idempotency_key,
        )  # fmt: skip
        raise IdempotencyConflictError(
            idempotency_key=call.idempotency_key,
            original_id=request.stream_id,
            fingerprint_version=held.version,
            dimensions=dimensions,
        )
    said = {name: completed.payload[name] for name in ("status", "response")}
    _call_event(bench, facts, "call.completed", **said, replayed=True, original_call_id=request.stream_id)
    return CallAnswer(
        call_id=call.call_id,
        status=ActionStatus(said["status"]),
        response=said["response"],
        replayed_from=request.stream_id,
    )


def record_manifest(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record what will really be sent: the fingerprint of the call and the hash of the request's body."""
    call = needed(facts.call)
    return _call_event(
        bench, facts, "call.manifest",
        fingerprint=call_fingerprint(call).as_json(), request_body_hash=body_hash(request_body(call)),
    )  # fmt: skip


def start_attempt(bench: Bench, facts: CallFacts) -> CallFacts | CallAnswer:
    """Record the start before anybody is asked; from here on the effect is unknown until observed (WK2).

    Authority is judged once more: a walk may have been held until its grant expired.
    """
    start = draft(bench, facts, "attempt.started", {"call_id": facts.stream, "attempt": 1})
    if denial := _denied(bench, facts, at_us=start.recorded_at_us):
        return denial
    return replace(facts, last_seq=record(bench, facts, start).seq)


def ask_provider(_: Bench, facts: CallFacts) -> CallFacts:
    """Send the request. Nothing is recorded: this is the moment in which a death leaves the effect unknown.

    What the transport raises escapes and leaves an attempt without an observation.
    """
    call = needed(facts.call)
    return replace(facts, reply=needed(facts.transport).send(request_body(call), key=call.idempotency_key))


# --- what is made of the answer -------------------------------------------------------------------------


def observe(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record the answer's bytes before anybody reads them (WK4).

    Raises: OutcomeNotRecordedError (indefinite) when the ledger does not take them: the provider was asked.
    """
    try:
        return _call_event(bench, facts, "attempt.observed", attempt=1, response=kept(needed(facts.reply)))
    except (RefusedRequestError, RefusedValueError, LedgerError) as error:
        raise OutcomeNotRecordedError() from error


def interpret_answer(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record what the bytes say."""
    read = interpret(needed(facts.reply))
    return _call_event(
        bench, facts, "attempt.interpreted",
        attempt=1, status=str(read.status), response=read.response, error=read.error,
    )  # fmt: skip


def decide_retry(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record that there is no second attempt: what was answered once is not asked again in this chain."""
    return _call_event(bench, facts, "attempt.retry_decided", attempt=1, retry=False)


def complete_attempt(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record that the attempt is over."""
    status = str(interpret(needed(facts.reply)).status)
    return _call_event(bench, facts, "attempt.completed", attempt=1, status=status)


def decide_status(bench: Bench, facts: CallFacts) -> CallFacts:
    """Record the status of the call, which is that of its one attempt."""
    return _call_event(bench, facts, "call.status_decided", status=str(interpret(needed(facts.reply)).status))


def complete_call(bench: Bench, facts: CallFacts) -> CallAnswer:
    """Record the answer and give it."""
    read = interpret(needed(facts.reply))
    _call_event(
        bench, facts, "call.completed",
        status=str(read.status), replayed=False, original_call_id=None, response=read.response,
    )  # fmt: skip
    return CallAnswer(call_id=facts.stream, status=read.status, response=read.response, reason=read.error)


SET_UP: tuple[Step, ...] = (
    open_directive, create_task, offer_item, request_compilation, compile_context, request_call,
    require_authority,
)  # fmt: skip
UP_TO_THE_ANSWER: tuple[Step, ...] = (look_up, record_manifest, start_attempt, ask_provider, observe)
FROM_THE_ANSWER: Mapping[str, Step] = {
    "attempt.interpreted": interpret_answer,
    "attempt.retry_decided": decide_retry,
    "attempt.completed": complete_attempt,
    "call.status_decided": decide_status,
    "call.completed": complete_call,
}
CHAIN: tuple[Step, ...] = (*SET_UP, *UP_TO_THE_ANSWER, *FROM_THE_ANSWER.values())


def requested_draft(bench: Bench, facts: CallFacts, call: CallRequest) -> EventDraft:
    """Give the `call.requested` event of a call."""
    payload = {
        "call_id": call.call_id,
        **vars_of_call(call),
        "rules": bench.rules,
        "fingerprint": call_fingerprint(call).as_json(),
    }
    return draft(bench, facts, "call.requested", payload, event_id=facts.requested_id)


def _denied(bench: Bench, facts: CallFacts, *, at_us: int) -> CallAnswer | None:
    """Complete a call that the authority does not permit at that instant; None where it does."""
    error = denied(bench, facts.authority, facts.performer, at_us=at_us)
    if error is None:
        return None
    _call_event(bench, facts, "call.completed", **denied_completion(error))
    return CallAnswer(call_id=facts.stream, status=ActionStatus.DENIED, reason=error["message"])


def _set_up(bench: Bench, facts: CallFacts, kind: str, **said: Any) -> CallFacts:
    """Record an event of the work itself; each is the cause of the next."""
    event = record(bench, facts, draft(bench, facts, kind, {"work_id": facts.stream, **said}))
    return replace(facts, last_seq=event.seq, cause=event.event_id)


def _call_event(bench: Bench, facts: CallFacts, kind: str, **said: Any) -> CallFacts:
    """Record an event of the call; its request is the cause of them all."""
    event = record(bench, facts, draft(bench, facts, kind, {"call_id": facts.stream, **said}))
    return replace(facts, last_seq=event.seq)
