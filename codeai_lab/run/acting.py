"""What does a fresh attempt go through, from its start to its record?

Chapter: 004, "Where the cache stops": between the effect and the completion anything may happen.

Idea: the stages around the effect. Under the later rule sets the start is on record before the adapter
runs, so that an attempt which never came back is seen; under `lab` the same append wins the key.

    mark_started, or admit  ->  perform  ->  observe  ->  complete

Always true:
  T1. An attempt that was admitted was so by a key that had not moved since its look_up.
  T2. A reader of the world that fails is recorded apart and never hides what the adapter did.
  T3. An interrupt is raised again, never recorded as a failure and never tried again.

Not here: everything that is decided before (`run.stages`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from codeai_lab.records import ActionRequest, ActionResult, ActionStatus, EffectState, NextOperation
from codeai_lab.run.facts import Bench, Ended, Facts, Next, Stage
from codeai_lab.run.outcomes import attempt, look
from codeai_lab.run.recording import moved, record, record_outcome
from codeai_lab.run.stages import require_authority


def mark_started(bench: Bench, facts: Facts) -> Next:
    """Record the start before the adapter runs: from here on the effect is unknown until completed."""
    if not record(bench, facts, ("action.execution_started", {"action_id": facts.request.action_id})):
        return moved(bench, facts)
    return replace(facts, is_recorded=True)


def admit(bench: Bench, facts: Facts) -> Next:
    """Win the key: request, claim and start in one append, only if nobody came since look_up (T1).

    Authority is judged once more: a walk may have been held until its grant expired. The claim's fencing
    number is the seq of its event. The loser looks again and is judged again.
    """
    judged = require_authority(bench, facts)
    if judged is not facts:
        return judged
    own = {"action_id": facts.request.action_id}
    # Alive before it is recorded: nobody may see the start of a walk that seems dead. The walk takes it back.
    bench.ledger.live_actions.add(facts.requested.event_id)
    admitted = record(bench, facts, ("action.claimed", own), ("action.execution_started", own))
    if not admitted:
        return moved(bench, facts)
    return replace(facts, is_recorded=True, fence=admitted[1].seq, own_seq=admitted[-1].seq)


def perform(*caught: type[Exception]) -> Stage:
    """Give the stage that runs the adapter once; of what it raises, `caught` becomes a FAILED.

    The rest escapes and leaves a request without an outcome (chapter 004, "Where the cache stops"); an
    interrupt always does.
    """

    def stage(_: Bench, facts: Facts) -> Next:
        return replace(facts, outcome=attempt(_execution(facts), facts.request, caught=caught))

    stage.__name__ = f"perform({', '.join(kind.__name__ for kind in caught)})"
    stage.__doc__ = perform.__doc__
    return stage


def observe(_: Bench, facts: Facts) -> Next:
    """Read the world again after the adapter, also when it raised: afterwards, not during (T2)."""
    return replace(facts, observation=look(facts.read_state))


def complete(bench: Bench, facts: Facts) -> Next:
    """Record the outcome. Effect and record are two steps, and nothing makes them one.

    A walk that was judged an orphan meanwhile is late: its completion is recorded beside the verdict, as a
    contradiction where it is one, and overwrites nothing.

    Raises: OutcomeNotRecordedError (indefinite) when the ledger cannot take it.
    """
    if facts.outcome is None:
        raise ValueError("complete needs a stage that performs before it")
    payload = {
        "action_id": facts.request.action_id,
        **facts.outcome.as_json(),
        "effect_possible": True,
        "observed": None if facts.observation is None else facts.observation.as_json(),
        "reused_from_action_id": None,
    }
    payload, late = record_outcome(bench, facts, payload)
    failed = facts.outcome.status is ActionStatus.FAILED
    return Ended(
        ActionResult(
            action_id=facts.request.action_id,
            status=facts.outcome.status,
            effect_state=EffectState.UNKNOWN if failed or late else EffectState.OBSERVED,
            next_operation=NextOperation.RECONCILE_EFFECT if failed or late else NextOperation.NONE,
            findings=("completed-after-a-verdict",) if late else (),
            output=payload["output"],
            error=payload["error"],
            observed=payload["observed"],
        )
    )


def _execution(facts: Facts) -> Callable[[ActionRequest], Any]:
    """Give the adapter's execution, with the claim's fencing number where the adapter asks for it."""
    fenced = getattr(facts.adapter, "execute_fenced", None)
    if fenced is None or facts.fence is None:
        return facts.adapter.execute
    return partial(fenced, fence=facts.fence)
