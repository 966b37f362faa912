"""What did a process leave of a model call, and what may be done next about it?

Chapter: 004, "Where the cache stops": resuming is refused except where the record proves that no effect could
have happened; "What CodeAI does" for the call path.

Idea: restart is opening the ledger again; resume is knowing what is safe. Each step of a call is recorded
before the next one is taken, so the newest event of the call says how far it can have got. One moment is
dark: from the start of an attempt to its observation the provider may have been asked, or not.

    newest event of the call       provider effect   next operation
    none: context not compiled     -                 recompile, or fix_inputs where compiling failed
    call.requested, call.manifest  none              start_call
    attempt.started                unknown           reconcile_effect; anything else may ask twice
    attempt.observed               observed          reinterpret: the bytes are there, nobody is asked
    call.completed                 observed          none
    call.reconciled                as the verdict    none; start_call where the provider was not asked

Always true:
  WS1. The state is a function of the events and their order; reading it records nothing.
  WS2. `start_call` is named only where no attempt was started, or the last verdict says that none arrived.
  WS3. A work speaks for the newest of its calls; a superseded call names the one that took its place.
  WS4. The works of one key are told apart by their causes, and none hides what another left unknown.

Not here: walking the chain (`run.working`), acting on the answer (`run.resuming`), actions
(`decide.projection`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from codeai_lab.decide.identity import recorded_call_fingerprint
from codeai_lab.records import EffectState, Event


class CallStage(StrEnum):
    """How far the record of a call goes."""

    REQUESTED = "requested"
    MANIFEST_RECORDED = "manifest_recorded"
    EFFECT_UNKNOWN = "effect_unknown"
    OBSERVED = "observed"
    COMPLETED = "completed"
    REFUSED = "refused"
    DENIED = "denied"
    RECONCILED = "reconciled"


class CallOperation(StrEnum):
    """What may be done next about a call."""

    NONE = "none"
    FIX_INPUTS = "fix_inputs"
    RECOMPILE = "recompile"
    START_CALL = "start_call"
    RECONCILE_EFFECT = "reconcile_effect"
    REINTERPRET = "reinterpret"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """What the record says about one call."""

    stage: CallStage
    provider_effect: EffectState
    next_operation: CallOperation
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """What the record says about one work: a directive, its context and its calls.

    Args:
        call_id, stage, provider_effect, duplicate_risk: of the newest call; None while none was requested.
        duplicate_risk: True where asking the provider now could be asking it twice, or would be.
        superseded_by: call id -> the call that took its place.
    """

    work_id: str
    next_operation: CallOperation
    reason: str
    call_id: str | None = None
    stage: CallStage | None = None
    provider_effect: EffectState | None = None
    duplicate_risk: bool | None = None
    superseded_by: Mapping[str, str] = field(default_factory=dict)


def project_work_state(events: Sequence[Event]) -> WorkState:
    """Fold the events of one work, in order of seq, into its state.

    Raises: ValueError when they do not begin with the work's `directive.opened`, or hold a second one; then
        `events_of_work` has not been asked.
    """
    directives = [event for event in events if event.kind == "directive.opened"]
    if len(directives) != 1 or directives[0] is not events[0]:
        raise ValueError("the history of a work begins with directive.opened, and it has one")
    work_id = events[0].stream_id
    calls = [event.stream_id for event in events if event.kind == "call.requested"]
    if not calls:
        return _before_a_call(work_id, events)
    call = project_call_state([event for event in events if event.stream_id == calls[-1]])
    return WorkState(
        work_id=work_id,
        call_id=calls[-1],
        stage=call.stage,
        provider_effect=call.provider_effect,
        next_operation=call.next_operation,
        duplicate_risk=call.provider_effect is EffectState.UNKNOWN or _is_lost(call),
        reason=call.reason,
        superseded_by={
            event.stream_id: event.payload["new_call_id"] for event in events if event.kind == "call.resumed"
        },
    )


def project_call_state(events: Sequence[Event]) -> CallState:
    """Fold the events of one call, in order of seq, into its state.

    Raises: ValueError when they do not begin with `call.requested`.
    """
    if not events or events[0].kind != "call.requested":
        raise ValueError("the history of a call begins with call.requested")
    newest = next(event for event in reversed(events) if event.kind in (*_SAID_BY, "call.reconciled"))
    if newest.kind == "call.reconciled":
        said = _VERDICTS[newest.payload["verdict"]]
    elif newest.payload.get("status") == "denied":
        said = _DENIED
    else:
        said = _SAID_BY[newest.kind]
    stage, effect, then, reason = said
    if newest.payload.get("replayed"):
        effect, reason = EffectState.NONE, f"it was answered from {newest.payload['original_call_id']}"
    return CallState(stage=stage, provider_effect=effect, next_operation=then, reason=reason)


def events_of_work(events: Iterable[Event], name: str) -> tuple[Event, ...]:
    """Give the events of the work that has this id, or this call, in order of seq; () when there is none.

    What belongs to a work is whatever it caused: a second work with the same key is another one (WS4).
    """
    events = tuple(events)
    first_of: dict[str, str] = {}  # event id -> the first event of its chain of causes
    named = None
    for event in events:
        first_of[event.event_id] = first_of.get(event.causation_id or "", event.event_id)
        if named is None and event.stream_id == name:
            named = first_of[event.event_id]
    return tuple(event for event in events if first_of[event.event_id] == named)


def answered_call(events: Iterable[Event]) -> tuple[Event, Event] | None:
    """Give the oldest call that was answered under a manifest that fits its request: (request, completion).

    Args:
        events: what carries one idempotency key.
    """
    by_stream: dict[str, dict[str, Event]] = {}
    for event in events:
        by_stream.setdefault(event.stream_id, {})[event.kind] = event
    for kinds in by_stream.values():
        request, manifest, completed = (
            kinds.get(kind) for kind in ("call.requested", "call.manifest", "call.completed")
        )
        if request is None or manifest is None or completed is None:
            continue
        if manifest.payload["fingerprint"]["digest"] == recorded_call_fingerprint(request.payload).digest:
            return request, completed
    return None


def _is_lost(call: CallState) -> bool:
    """Say whether the provider was asked for certain and its answer is on no record."""
    return call.stage is CallStage.RECONCILED and call.provider_effect is EffectState.OBSERVED


def _before_a_call(work_id: str, events: Sequence[Event]) -> WorkState:
    kinds = [event.kind for event in events]
    if "context.compilation_failed" in kinds:
        missing = ", ".join(events[kinds.index("context.compilation_failed")].payload["missing"])
        then, reason = CallOperation.FIX_INPUTS, f"required context missing: {missing}"
    elif "context.compiled" in kinds:
        then, reason = CallOperation.START_CALL, "the context is compiled and no call was requested"
    else:
        then, reason = CallOperation.RECOMPILE, "the context is not compiled; compiling asks nobody"
    return WorkState(work_id=work_id, next_operation=then, reason=reason)


_NOT_STARTED = "no attempt was started, so the provider was not asked"
_DENIED = (
    CallStage.DENIED,
    EffectState.NONE,
    CallOperation.NONE,
    "it was denied, so the provider was not asked",
)
_STORED = "what the provider answered is on record; the rest follows from it"

# The newest of these events in a call's history decides.
_SAID_BY: Mapping[str, tuple[CallStage, EffectState, CallOperation, str]] = {
    "call.requested": (CallStage.REQUESTED, EffectState.NONE, CallOperation.START_CALL, _NOT_STARTED),
    "call.manifest": (CallStage.MANIFEST_RECORDED, EffectState.NONE, CallOperation.START_CALL, _NOT_STARTED),
    "attempt.started": (
        CallStage.EFFECT_UNKNOWN,
        EffectState.UNKNOWN,
        CallOperation.RECONCILE_EFFECT,
        "an attempt was started and has no observation; the provider may have been asked",
    ),
    **dict.fromkeys(
        (
            "attempt.observed", "attempt.interpreted", "attempt.retry_decided",
            "attempt.completed", "call.status_decided",
        ),
        (CallStage.OBSERVED, EffectState.OBSERVED, CallOperation.REINTERPRET, _STORED),
    ),
    "call.completed": (
        CallStage.COMPLETED,
        EffectState.OBSERVED,
        CallOperation.NONE,
        "the call is answered and recorded",
    ),
    "call.replay_refused": (
        CallStage.REFUSED,
        EffectState.NONE,
        CallOperation.NONE,
        "the key belongs to another call",
    ),
}  # fmt: skip

# The last verdict of a reconciliation speaks for the effect; none brings an answer back that is lost.
_VERDICTS: Mapping[str, tuple[CallStage, EffectState, CallOperation, str]] = {
    "effect_confirmed": (
        CallStage.RECONCILED,
        EffectState.OBSERVED,
        CallOperation.NONE,
        "the provider was asked and its answer is not on record; asking again is asking twice",
    ),
    "no_effect_confirmed": (
        CallStage.RECONCILED,
        EffectState.NONE,
        CallOperation.START_CALL,
        "the provider has no receipt of it, so it was not asked",
    ),
    "still_unknown": (
        CallStage.EFFECT_UNKNOWN,
        EffectState.UNKNOWN,
        CallOperation.NONE,
        "the provider could not tell; it may have been asked",
    ),
}
