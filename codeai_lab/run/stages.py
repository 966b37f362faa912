"""What is decided before anything is done, and what does each step of it promise?

Chapter: 004, "What CodeAI does": authority first, identity second, replay last.

Idea: a stage is a short function from what a walk knows (`Facts`) to what it knows next, or to its end. It
records in at most one append, so that between two stages the ledger is what a crash would leave. A rule set
is a tuple of these functions and nothing else (`run.revisions`); moving one changes the rules.

    facts --stage--> facts            go on
                     Ended(result)    the caller is answered
                     Raised(error)    the caller gets an exception, after it was recorded
                     LOOK_AGAIN       somebody was here since look_up: go back to it

Always true:
  G1. A stage that decides from what `look_up(decisive)` saw appends only if the key has not moved since.
  G2. A denial is decided and worded from the request and the authority alone.
  G3. One action id is one request: an id that is recorded already is refused.

Not here: the stages around the effect (`run.acting`), moving from stage to stage (`run.walk`), the projection
that look_up reads (`decide.projection`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codeai_lab.canonical import encoded
from codeai_lab.decide.identity import (
    differing_dimensions,
    recorded_action_fingerprint,
    stored_digest_disagrees,
)
from codeai_lab.decide.projection import project_action_state, project_key_state
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.records import ActionResult, ActionStatus, EffectState, Event, NextOperation
from codeai_lab.run.facts import LOOK_AGAIN, Bench, Ended, Facts, Next, Raised
from codeai_lab.run.outcomes import look
from codeai_lab.run.recording import (
    complete_early,
    denial,
    id_is_taken,
    moved,
    record,
    refusal,
)
from codeai_lab.store.protocol import Unchanged

# --- the request ---------------------------------------------------------------------------------------


def append_request(bench: Bench, facts: Facts) -> Next:
    """Record the request alone, before anything is decided; the historical rules begin so (chapter 004, "What
    CodeAI does").

    A crash right after it leaves a request without an outcome.
    """
    new = Unchanged(stream=facts.request.action_id, last_seq=0)
    if not bench.ledger.append(facts.requested, unless_changed=[new]):
        return id_is_taken()
    return replace(facts, is_recorded=True)


def receive(bench: Bench, facts: Facts) -> Next:
    """Take the request in without recording it; it is recorded together with what is decided about it."""
    return id_is_taken() if bench.ledger.read(facts.request.action_id) else facts


# --- what is recorded already --------------------------------------------------------------------------


def look_up(bench: Bench, facts: Facts) -> Next:
    """Read completions of the key only: the oldest one is what a replay would return (chapter 004, "Where the
    cache stops").

    An orphaned request has no completion, so this look-up does not see it.
    """
    history = bench.ledger.find(facts.request.idempotency_key)
    seen = project_key_state(history)
    first = seen.first_completion
    return replace(
        facts, history=history, seen=seen, recorded=first, holder=_request_of(first, history), guard=None
    )


def look_up_projection(bench: Bench, facts: Facts) -> Next:
    """Read what the whole history of the key says, and remember how far it reached (G1).

    Denials and failures before the start decide nothing; a start without a completion does. A request that an
    earlier stage recorded does not stand in its own way.
    """
    history = bench.ledger.find(facts.request.idempotency_key)
    others = tuple(event for event in history if event.stream_id != facts.request.action_id)
    seen = project_key_state(others)
    return replace(
        facts, history=others, seen=seen, recorded=seen.decisive, holder=seen.holder,
        guard=history[-1].seq if history else 0, findings=(),
    )  # fmt: skip


def require_authority(bench: Bench, facts: Facts) -> Next:
    """Judge the capability against the grants supplied now; a denial completes the request, not the effect
    (G2).

    Under the historical rules the denial is the key's first completion and is replayed for ever; under `lab`
    it decides nothing for the key, which can be used again with authority.
    """
    permission = bench.policy.judge(
        facts.request.capability,
        facts.authority,
        performer=facts.request.performer,
        now_us=bench.clock.now_us(),
    )
    if permission.allowed:
        return facts
    # Not conditional: whether the key has moved is none of this caller's business.
    return complete_early(
        bench, replace(facts, guard=None), ActionStatus.DENIED, denial(permission), NextOperation.NONE
    )


def compare_identity(bench: Bench, facts: Facts) -> Next:
    """Refuse a key that belongs to another operation, durably, before any effect; name dimensions, never
    values.

    The other operation's fingerprint is rebuilt from its recorded request; a stored digest that disagrees is
    a finding.
    """
    holder = facts.holder
    if holder is None:
        return facts
    original = recorded_action_fingerprint(holder.payload)
    if stored_digest_disagrees(holder.payload, original):
        facts = replace(facts, findings=("stored-fingerprint-disagrees",))
    dimensions = differing_dimensions(original, facts.fingerprint)
    if not dimensions:
        return facts
    if not record(bench, facts, refusal(facts, "identity-conflict", dimensions)):
        return moved(bench, facts)
    return Raised(
        IdempotencyConflictError(
            idempotency_key=facts.request.idempotency_key,
            original_id=holder.stream_id,
            fingerprint_version=original.version,
            dimensions=dimensions,
        )
    )


def refuse_unknown(bench: Bench, facts: Facts) -> Next:
    """Do not act on a key whose effect started and has no outcome: it is in progress, or it must be
    reconciled.

    In progress means that the walk is alive in this process; every other writer is gone, because there is
    only one. A caller that handed in `wait` goes back to look_up when the wait was worth it, and is judged
    again.
    """
    if facts.holder is None or facts.seen is None or facts.seen.open_start is None:
        return facts
    alive = facts.holder.event_id in bench.ledger.live_actions
    if alive and _was_worth_waiting(bench, facts):
        return LOOK_AGAIN
    if not record(bench, facts, refusal(facts, "in-progress" if alive else "effect-unknown", ())):
        return moved(bench, facts)
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=ActionStatus.IN_PROGRESS if alive else ActionStatus.REFUSED,
            effect_state=EffectState.UNKNOWN,
            next_operation=NextOperation.WAIT if alive else NextOperation.RECONCILE_EFFECT,
            findings=facts.findings,
        )
    )


def replay(bench: Bench, facts: Facts) -> Next:
    """Return the recorded outcome as history, whatever it was, and leave the world alone.

    Where no stage compared identities before, this is replay by key only (rules of 7a0d43b). The precondition
    is not looked at again: the original's success may be what changed it.
    """
    if facts.recorded is None:
        return facts
    original = _as_reported(facts.recorded)
    completion = {
        **original,
        "action_id": facts.request.action_id,
        "effect_possible": False,
        "reused_from_action_id": facts.recorded.stream_id,
    }
    if not record(bench, facts, ("action.completed", completion)):
        return moved(bench, facts)
    state = project_action_state(
        [event for event in facts.history if event.stream_id == facts.recorded.stream_id]
    )
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=ActionStatus(original["status"]),
            effect_state=state.effect_state,
            next_operation=state.next_operation,
            output=original["output"],
            error=original["error"],
            observed=original["observed"],
            reused_from_action_id=facts.recorded.stream_id,
            findings=facts.findings,
        )
    )


# --- before a fresh attempt -----------------------------------------------------------------------------


def check_precondition(bench: Bench, facts: Facts) -> Next:
    """Refuse a drifted world before acting; pass over one that cannot be read (the historical gap)."""
    return _check_precondition(bench, facts, refuse_unreadable=False)


def check_precondition_strictly(bench: Bench, facts: Facts) -> Next:
    """Refuse a drifted world before acting, and one that cannot be read though a state was supplied."""
    return _check_precondition(bench, facts, refuse_unreadable=True)


def _check_precondition(bench: Bench, facts: Facts, *, refuse_unreadable: bool) -> Next:
    if facts.request.precondition is None:
        return facts
    reading = look(facts.read_state)
    if reading is None or not reading.readable:
        if not refuse_unreadable:
            return facts
        error = {
            "code": "precondition-unreadable",
            "message": "A precondition was supplied and the current state cannot be read.",
        }
        return complete_early(bench, facts, ActionStatus.FAILED, error, NextOperation.FIX_INPUTS)
    if encoded(reading.state) == encoded(facts.request.precondition):  # as JSON: True is not 1
        return facts
    error = {
        "code": "precondition-drift",
        "message": "The world is not in the state that this was planned against.",
        "expected": facts.request.precondition,
        "observed": reading.state,
    }
    return complete_early(bench, facts, ActionStatus.FAILED, error, NextOperation.FIX_INPUTS)


def _request_of(completion: Event | None, history: tuple[Event, ...]) -> Event | None:
    if completion is None:
        return None
    return next(
        event
        for event in history
        if event.kind == "action.requested" and event.stream_id == completion.stream_id
    )


def _as_reported(recorded: Event) -> dict[str, Any]:
    """Give what a replay returns: the recorded completion, or that the effect was confirmed without one."""
    if recorded.kind == "action.reconciled":
        return {"status": "reconciled", "output": None, "error": None, "observed": None}
    return dict(recorded.payload)


def _was_worth_waiting(bench: Bench, facts: Facts) -> bool:
    if facts.wait is None:
        return False
    return facts.wait(bench.ledger, facts.request.idempotency_key, facts.guard or 0)
