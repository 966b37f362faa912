"""What happened to an effect that the record leaves open?

Chapter: 004, "Where it is still weak" 2 and 3, and "If you are building with an assistant": crash-gap
reconciliation is an explicit decision of an operator.

Idea: reconciling asks the effect system and never repeats the effect. The answer is a verdict, appended
beside what is
recorded: the effect is confirmed, it is confirmed absent, or it stays unknown, which is a valid final answer.

    effect_confirmed      the key answers `reconciled`; nothing is run again
    no_effect_confirmed   the key may be tried afresh, under the authority of that moment
    still_unknown         nothing changes; ask again, or live with it

Always true:
  RC1. It needs authority of its own (`effect.reconcile`); who may act may not therefore judge.
  RC2. The look-up only reads. A look-up that fails gives still_unknown, and says so.
  RC3. A verdict rests on references, and every one of them must resolve at the effect system.
  RC4. Verdicts and refusals are events; none is written over. A walk that is alive is not judged.

Not here: what a verdict means for the key (`decide.projection`); a completion that comes in afterwards
(`run.recording`); calls (`run.reconciling_calls`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from codeai_lab.canonical import plain
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.projection import ActionState, project_action_state
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import EffectState, Event, NextOperation
from codeai_lab.run.facts import Bench
from codeai_lab.run.recording import caused_by
from codeai_lab.store.protocol import Unchanged

RECONCILE = "effect.reconcile"


class EffectLookup(Protocol):
    """The reading side of an effect system."""

    def find(self, request: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
        """Give references to the effects of a recorded request; () when there are none for certain, None when
        it
        cannot tell."""
        ...

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether a reference leads to an effect that is there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What came of reconciling: a verdict, or the reason of a refusal, and the action's state afterwards."""

    action_id: str
    verdict: str | None
    refused: str | None
    effect_state: EffectState
    next_operation: NextOperation
    evidence: tuple[Mapping[str, Any], ...] = ()


def reconcile_action(
    bench: Bench, action_id: str, *, authority: Authority, effect_lookup: EffectLookup, performer: str
) -> Reconciliation:
    """Ask the effect system about one action and record its verdict.

    Raises: RefusedRequestError for an action that is not recorded (definite).
    """
    while True:
        history = bench.ledger.read(action_id)
        if not history or history[0].kind != "action.requested":
            raise RefusedRequestError("There is no such action in the ledger; nothing can be reconciled.")
        state = project_action_state(history)
        is_open = state.effect_state in (EffectState.UNKNOWN, EffectState.REPORTED)
        refused = why_not(bench, history[0], authority, performer, is_open=is_open)
        if refused is not None:
            return _refuse(bench, history, refused)
        verdict, evidence = ask(effect_lookup, history[0].payload)
        said = {"action_id": action_id, "verdict": verdict, "evidence": evidence}
        if _append(bench, history, "action.reconciled", said):
            return _outcome(bench, action_id, verdict=verdict, evidence=tuple(evidence))


def why_not(
    bench: Bench, requested: Event, authority: Authority, performer: str, *, is_open: bool
) -> str | None:
    """Say why what began with this request is not to be judged now; None where it is."""
    permission = bench.policy.judge(RECONCILE, authority, performer=performer, now_us=bench.clock.now_us())
    if not permission.allowed:
        return "not-authorised"
    if requested.event_id in bench.ledger.live_actions:
        return "in-progress"
    return None if is_open else "nothing-to-reconcile"


def ask(effect_lookup: EffectLookup, request: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Turn the effect system's answer into a verdict and what it rests on (RC2, RC3)."""
    try:
        found = effect_lookup.find(request)
        evidence = [plain(dict(reference), "evidence") for reference in found or ()]
        if not all(effect_lookup.resolve(reference) for reference in evidence):
            return "still_unknown", [{"unresolved": reference} for reference in evidence]
    except Exception as error:
        return "still_unknown", [{"lookup_failed": type(error).__name__}]
    if found is None:
        return "still_unknown", []
    return ("effect_confirmed" if evidence else "no_effect_confirmed"), evidence


def _refuse(bench: Bench, history: Sequence[Event], reason: str) -> Reconciliation:
    action_id = history[0].stream_id
    while not _append(bench, history, "action.reconcile_refused", {"action_id": action_id, "reason": reason}):
        history = bench.ledger.read(action_id)
    return _outcome(bench, action_id, refused=reason)


def _append(bench: Bench, history: Sequence[Event], kind: str, payload: dict[str, Any]) -> bool:
    """Append to an action's history only if nothing was added to it meanwhile."""
    requested = history[0]
    unchanged = Unchanged(stream=requested.stream_id, last_seq=history[-1].seq)
    draft = caused_by(bench, requested, kind, payload)
    return bool(bench.ledger.append(draft, unless_changed=[unchanged]))


def _outcome(
    bench: Bench,
    action_id: str,
    *,
    verdict: str | None = None,
    refused: str | None = None,
    evidence: tuple[Mapping[str, Any], ...] = (),
) -> Reconciliation:
    state: ActionState = project_action_state(bench.ledger.read(action_id))
    # Who may not judge learns nothing of what there is to judge.
    hidden = refused == "not-authorised"
    return Reconciliation(
        action_id=action_id,
        verdict=verdict,
        refused=refused,
        effect_state=EffectState.UNKNOWN if hidden else state.effect_state,
        next_operation=NextOperation.NONE if hidden else state.next_operation,
        evidence=evidence,
    )
