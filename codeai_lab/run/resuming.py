"""How does another process go on with a call, without asking the provider twice?

Chapter: 004, "Where the cache stops": resume is refused except where the record proves that no effect could
have happened.

Idea: what may be done is read from the record (`decide.workstate`) and never guessed. A call of which no
attempt was started is *resumed*: the same bytes are sent by a new call, which takes the old one's place. A
call whose answer is on record is *reinterpreted*: its chain is gone on with, and nobody is asked. Everything
else is refused, by name, and a refusal records nothing.

    manifest recorded   resume        call.resumed, then nine events of a new call with the same key
    found absent        resume        the same: a verdict says that nobody was asked
    effect unknown      refused       reconcile_effect
    observed            reinterpret   the events that are missing, from the stored bytes

Always true:
  RS1. A call is resumed only as it was intended: the request body hash of what would be sent now is that of
      the record, or the resume is refused and names it.
  RS2. The link and the new call's request are one append, conditional on the old call: of two that resume it
      one does, and no death leaves a call superseded by nothing.
  RS3. Reinterpreting asks nobody, and what it finds is a function of the stored bytes.
  RS4. A call that is alive in this process is left alone.
  RS5. Resuming asks for the authority of now, before the record is judged; who lacks it learns nothing of it.

Not here: finding out what an unknown effect was (`run.reconciling_calls`); a call that was never requested
(open the work again).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.workstate import CallOperation, WorkState, events_of_work, project_work_state
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionStatus, CallRequest, Event
from codeai_lab.run.calls import MAY_CALL, denied
from codeai_lab.run.callwalk import CallAnswer, CallFacts, CallWalk, Settings, draft, needed
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import Transport, body_hash, kept_bytes, request_body
from codeai_lab.run.working import FROM_THE_ANSWER, UP_TO_THE_ANSWER, requested_draft
from codeai_lab.store.protocol import Unchanged


def resume_call(
    bench: Bench,
    call_id: str,
    *,
    as_call_id: str,
    transport: Transport,
    settings: Settings,
    authority: Authority = MAY_CALL,
    performer: str = "agent",
) -> CallAnswer:
    """Make a call that was recorded as intended and of which no attempt was started.

    Args:
        as_call_id: the name of the new call, which takes the old one's place.
        settings: how calls are made at present; other ones than the record's are a reason to refuse.
        authority: must grant `model.call` to the performer now.

    Returns: the answer; or `refused`, with the operation that is in order instead (RECONCILE_EFFECT where the
        provider may have been asked) and the reason; or `in_progress`, or `denied`. Nothing was recorded
        then.

    Raises: RefusedRequestError (definite) for an unknown call and for a new name that is taken;
        OutcomeNotRecordedError (indefinite); and what the transport raises.
    """
    walk = resuming(
        bench, call_id, as_call_id=as_call_id, transport=transport, settings=settings,
        authority=authority, performer=performer,
    )  # fmt: skip
    return walk.run()


def resuming(
    bench: Bench,
    call_id: str,
    *,
    as_call_id: str,
    transport: Transport,
    settings: Settings,
    authority: Authority = MAY_CALL,
    performer: str = "agent",
) -> CallWalk:
    """Give the walk of `resume_call`, standing before its judgement; nothing has happened yet."""
    old = _state(bench, call_id)[1][0]
    facts = CallFacts(
        requested_id=bench.new_id(),
        stream=call_id,
        key=str(old.idempotency_key),
        cause=old.event_id,
        authority=authority,
        performer=performer,
        transport=transport,
        call=recorded_call(old, call_id=as_call_id, settings=settings),
    )
    return CallWalk(bench, facts, (supersede, *UP_TO_THE_ANSWER, *FROM_THE_ANSWER.values()))


def supersede(bench: Bench, facts: CallFacts) -> CallFacts | CallAnswer:
    """Judge the caller, then the old call by its record; put the new one in its place or refuse (RS1, RS2,
    RS5).
    """
    old, new = facts.stream, needed(facts.call)
    while True:
        now_us = bench.clock.now_us()
        if error := denied(bench, facts.authority, facts.performer, at_us=now_us):
            return CallAnswer(call_id=old, status=ActionStatus.DENIED, reason=error["message"])
        state, events = _state(bench, old)
        if refused := _not_in_order(bench, events[0], state, wanted=CallOperation.START_CALL):
            return refused
        present = body_hash(request_body(new))
        if _intended_hashes(events) != {present}:
            return CallAnswer(
                call_id=old,
                status=ActionStatus.REFUSED,
                next_operation=CallOperation.START_CALL,
                reason="what would be sent now is not what was recorded as intended",
                differs=("request_body_hash",),
            )
        link = draft(
            bench, facts, "call.resumed",
            {
                "call_id": old, "new_call_id": new.call_id,
                "stage": str(state.stage), "request_body_hash": present,
            },
            at_us=now_us,
        )  # fmt: skip
        facts_of_new = replace(facts, stream=new.call_id, cause=link.event_id)
        recorded = bench.ledger.append(
            link,
            requested_draft(bench, facts_of_new, new),
            unless_changed=[
                Unchanged(stream=old, last_seq=events[-1].seq),
                Unchanged(stream=new.call_id, last_seq=0),
            ],
        )
        if recorded:
            return replace(facts_of_new, last_seq=recorded[-1].seq, cause=facts.requested_id)
        if bench.ledger.read(new.call_id):
            raise RefusedRequestError("This call id belongs to an earlier call; give every call its own.")


def reinterpret_call(bench: Bench, call_id: str) -> CallAnswer:
    """Go on with a call whose answer is on record, from the stored bytes and without a request.

    Returns: the answer; or `refused`, with the operation that is in order instead, or `in_progress`.

    Raises: RefusedRequestError (definite) for an unknown call, and when somebody else went on with it.
    """
    state, events = _state(bench, call_id)
    requested = events[0]
    if refused := _not_in_order(bench, requested, state, wanted=CallOperation.REINTERPRET):
        return refused
    recorded = {event.kind: event for event in events}
    facts = CallFacts(
        requested_id=requested.event_id,
        stream=call_id,
        key=str(requested.idempotency_key),
        last_seq=events[-1].seq,
        cause=requested.event_id,
        reply=kept_bytes(recorded["attempt.observed"].payload["response"]),
    )
    left = [step for kind, step in FROM_THE_ANSWER.items() if kind not in recorded]
    return CallWalk(bench, facts, left).run()


def work_state_of(bench: Bench, name: str) -> WorkState:
    """Read the state of the work that has this id, or this call; nothing is recorded.

    Raises: RefusedRequestError (definite) when the ledger has no such work.
    """
    return project_work_state(_work(bench, name))


def _work(bench: Bench, name: str) -> tuple[Event, ...]:
    own = bench.ledger.read(name)
    key = own[0].idempotency_key if own else None
    events = events_of_work(bench.ledger.find(key), name) if key is not None else ()
    if not events or events[0].kind != "directive.opened":
        raise RefusedRequestError("The ledger has no work, and no call of a work, with this name.")
    return events


def _state(bench: Bench, call_id: str) -> tuple[WorkState, tuple[Event, ...]]:
    """Give the state of a call's work and the events of the call, both from one reading of the ledger."""
    work = _work(bench, call_id)
    events = tuple(event for event in work if event.stream_id == call_id)
    if events[0].kind != "call.requested":
        raise RefusedRequestError("This is the name of a work; give that of its call.")
    return project_work_state(work), events


def _not_in_order(
    bench: Bench, requested: Event, state: WorkState, *, wanted: CallOperation
) -> CallAnswer | None:
    """Say why something else than what is wanted is in order; None where it is in order."""
    call_id = requested.stream_id
    status, then, reason = ActionStatus.REFUSED, state.next_operation, state.reason
    if call_id in state.superseded_by:
        then, reason = CallOperation.NONE, f"superseded by {state.superseded_by[call_id]}"
    elif requested.event_id in bench.ledger.live_actions:
        status, then, reason = ActionStatus.IN_PROGRESS, CallOperation.NONE, "it is alive in this process"
    elif then is wanted:
        return None
    return CallAnswer(call_id=call_id, status=status, next_operation=then, reason=reason)


def _intended_hashes(events: tuple[Event, ...]) -> set[str]:
    """Give the hash of what the request's own words come to, and the one that the manifest names, if any."""
    own = body_hash(request_body(recorded_call(events[0], call_id=events[0].stream_id)))
    named = [event.payload["request_body_hash"] for event in events if event.kind == "call.manifest"]
    return {own, *named}


def recorded_call(requested: Event, *, call_id: str, settings: Settings | None = None) -> CallRequest:
    """Rebuild a recorded call, as it was recorded or as it would be made with the settings of now."""
    said: dict[str, Any] = dict(requested.payload)
    if settings is not None:
        said |= {"chamber": settings.chamber, "requested_model": settings.requested_model}
    return CallRequest(
        call_id=call_id,
        idempotency_key=str(requested.idempotency_key),
        **{name: said[name] for name in ("prompt", "chamber", "requested_model", "context")},
    )
