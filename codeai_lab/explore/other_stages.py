"""Which steps does `lab` not have, and what would each of them do?

Chapter: 004, "Two threads, one key, two effects" and "Where the cache stops".

Idea: stages like those of `run`, for rules that one would not want or cannot have: a claim in memory, a claim
that blocks for ever, a takeover that asks nobody, a takeover from one who is alive, a success that is
recorded first. Composed in the wrong way or the right one, they are the protocols of `explore.protocols`.

Always true:
  OS1. They record as the stages of `run` do: at most one append each, and a verdict apart.
  OS2. Who asks about one who may be alive only reads: a verdict is for the dead (`run.reconciling`, RC4). So
       what was asked is known to nobody else, and nothing keeps it true.

Not here: the stages that `lab` has (`run.stages`, `run.acting`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from codeai_lab.records import ActionResult, ActionStatus, EffectState, NextOperation
from codeai_lab.run.acting import complete, perform
from codeai_lab.run.facts import LOOK_AGAIN, Bench, Ended, Facts, Next
from codeai_lab.run.outcomes import Outcome
from codeai_lab.run.reconciling import EffectLookup, reconcile_action
from codeai_lab.run.recording import moved, record, refusal
from codeai_lab.run.stages import refuse_unknown
from codeai_lab.store.protocol import Ledger

ACT = perform(Exception)

# --- who may have the key --------------------------------------------------------------------------------


def hold_in_memory(bench: Bench, facts: Facts) -> Next:
    """Hold the key among the walks of this process until this one ends; a crash forgets it."""
    if somebody_else_is_alive(bench.ledger, facts):
        return _answer_busy(bench, facts)
    bench.ledger.live_actions.add(facts.requested.event_id)
    return facts


def refuse_claimed(bench: Bench, facts: Facts) -> Next:
    """Answer "busy" where the key is claimed and not completed, whether the claimant lives or not."""
    claimed = facts.seen is not None and facts.seen.open_start is not None
    return _answer_busy(bench, facts) if claimed else facts


def refuse_alive(bench: Bench, facts: Facts) -> Next:
    """Answer "busy" where a claimant lives, and take a dead one's claim over without asking anybody."""
    return _answer_busy(bench, facts) if somebody_else_is_alive(bench.ledger, facts) else facts


def reconcile_orphan(bench: Bench, facts: Facts) -> Next:
    """Before a dead one's claim is taken over, ask the effect system, record its verdict and look again."""
    if facts.holder is None or facts.seen is None or facts.seen.open_start is None:
        return facts
    judged = reconcile_action(
        bench,
        facts.holder.stream_id,
        authority=facts.authority,
        effect_lookup=cast(EffectLookup, facts.adapter),
        performer=facts.request.performer,
    )
    settled = judged.verdict in ("effect_confirmed", "no_effect_confirmed")
    # The verdict itself has moved the key.
    return LOOK_AGAIN if settled else refuse_unknown(bench, replace(facts, guard=None))


# --- taking over from one who may be alive ----------------------------------------------------------------


def ask_first(bench: Bench, facts: Facts) -> Next:
    """Where the key was somebody's before, ask the effect system whether the effect is there; record nothing
    (OS2).
    """
    if took_nothing_over(facts):
        return facts
    system = cast(EffectLookup, facts.adapter)
    for event in bench.ledger.find(facts.request.idempotency_key):
        if event.kind == "action.requested" and system.find(event.payload):
            return replace(facts, holder=event, outcome=Outcome(status=ActionStatus.RECONCILED))
    return facts


def act_unless_found(bench: Bench, facts: Facts) -> Next:
    """Act, unless asking has found the effect there."""
    return facts if effect_is_known(facts) else ACT(bench, facts)


act_unless_found.__name__ = ACT.__name__


def complete_or_reuse(bench: Bench, facts: Facts) -> Next:
    """Record the own outcome, or that the effect is another's, found by asking."""
    outcome, holder = facts.outcome, facts.holder
    if outcome is None or holder is None or outcome.status is not ActionStatus.RECONCILED:
        return complete(bench, facts)
    found = {
        "action_id": facts.request.action_id,
        **outcome.as_json(),
        "effect_possible": False,
        "observed": None,
        "reused_from_action_id": holder.stream_id,
    }
    if not record(bench, replace(facts, guard=None), ("action.completed", found)):
        return moved(bench, facts)
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=outcome.status,
            effect_state=EffectState.OBSERVED,
            next_operation=NextOperation.NONE,
            reused_from_action_id=holder.stream_id,
        )
    )


complete_or_reuse.__name__ = complete.__name__


def took_nothing_over(facts: Facts) -> bool:
    """Say whether the key was nobody's when this walk claimed it."""
    return facts.holder is None


def effect_is_known(facts: Facts) -> bool:
    """Say whether there is an outcome already."""
    return facts.outcome is not None


# --- in another order ---------------------------------------------------------------------------------


def complete_first(bench: Bench, facts: Facts) -> Next:
    """Record a success that has not happened yet."""
    done = Outcome(status=ActionStatus.SUCCEEDED, output={"done": True})
    ended = complete(bench, replace(facts, outcome=done))
    return replace(facts, outcome=done) if isinstance(ended, Ended) else ended


def answer(_: Bench, facts: Facts) -> Next:
    """Tell the caller what the adapter reported, recording nothing."""
    if facts.outcome is None:
        raise ValueError("answer needs a stage that performs before it")
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=facts.outcome.status,
            effect_state=EffectState.OBSERVED,
            next_operation=NextOperation.NONE,
            output=facts.outcome.output,
            error=facts.outcome.error,
        )
    )


# --- what they share ------------------------------------------------------------------------------------


def somebody_else_is_alive(ledger: Ledger, facts: Facts) -> bool:
    """Say whether another walk with this key is registered as alive."""
    return any(
        event.event_id in ledger.live_actions and event.stream_id != facts.request.action_id
        for event in ledger.find(facts.request.idempotency_key)
    )


def _answer_busy(bench: Bench, facts: Facts) -> Next:
    if not record(bench, facts, refusal(facts, "in-progress", ())):
        return moved(bench, facts)
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=ActionStatus.IN_PROGRESS,
            effect_state=EffectState.UNKNOWN,
            next_operation=NextOperation.WAIT,
        )
    )
