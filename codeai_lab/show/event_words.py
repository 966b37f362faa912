"""How is an event said in words?

Chapter: 004, "Retry, replay, duplicate".

Idea: a line of the ledger has a kind, and each kind has one sentence, made from its payload. It may come as a
mapping or as an object with attributes, from a live run or from a frozen bundle.

Always true:
  EW1. Every kind that the package records has its sentence; one that is not known shows its plain fields.
  EW2. A sentence depends on the event alone, and shows no control character.

Not here: trajectories, repairs, memories and the watchlist (`show.recovery_words`), rows (`show.words`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codeai_lab.show.recovery_words import RECOVERY_WORDS, Words
from codeai_lab.show.words import read, say


def event_words(event: object) -> str:
    """Say what one line records, for a person who reads it beside the chapter.

    A line of a service's own log has no payload; what it says stands beside its kind.
    """
    kind, payload = read(event, "kind"), read(event, "payload")
    if payload is None:
        payload = event if isinstance(event, Mapping) else {}
    if kind == "action.claimed":
        return f"claims the key; fencing number {say(read(event, 'seq'))}"
    speak = _WORDS.get(str(kind))
    if speak is None:
        return say({name: value for name, value in payload.items() if not isinstance(value, Mapping | list)})
    return speak(payload)


def _requested(payload: Mapping[str, Any]) -> str:
    planned = payload.get("precondition")
    where = "" if planned is None else f", planned against {say(planned)}"
    return f'asks for {say(payload.get("capability"))}: "{say(payload.get("instruction"))}"{where}'


def _completed(payload: Mapping[str, Any]) -> str:
    status, original = say(payload.get("status")), payload.get("reused_from_action_id")
    if original is not None:
        return f"replays what {say(original)} recorded: {status}; the world is not touched"
    if status != "failed":
        return f"{status}: nothing was done" if status == "denied" else status
    error = payload.get("error") or {}
    about = {name: error[name] for name in ("type", "expected", "observed") if name in error}
    reason = say(error.get("code")) + (f": {say(about)}" if about else "")
    possible = "an effect is possible" if payload.get("effect_possible") else "no effect was possible"
    return f"failed ({reason}); {possible}"


def _refused(payload: Mapping[str, Any]) -> str:
    original = say(payload.get("original_action_id", payload.get("original_call_id")))
    if payload.get("reason") == "effect-unknown":
        return f"refused: the effect of {original} is unknown; reconcile, do not repeat"
    if payload.get("reason") == "in-progress":
        return f"not started: {original} holds the key and is still at work"
    return f"refused: the key belongs to {original}; this request differs in {say(payload.get('dimensions'))}"


def _reconciled(payload: Mapping[str, Any]) -> str:
    verdict = say(payload.get("verdict"))
    said = {
        "effect_confirmed": "finds the effect there; it is not repeated",
        "no_effect_confirmed": "finds no effect; the key may be tried afresh",
        "still_unknown": "cannot find out; the effect stays unknown",
    }
    return f"{said.get(verdict, verdict)}{_resting_on(payload)}"


def _call_reconciled(payload: Mapping[str, Any]) -> str:
    verdict = say(payload.get("verdict"))
    said = {
        "effect_confirmed": "finds that the provider was asked; its answer is lost",
        "no_effect_confirmed": "finds that the provider was not asked; the call may be resumed",
        "still_unknown": "cannot find out; the provider may have been asked",
    }
    return f"{said.get(verdict, verdict)}{_resting_on(payload)}"


def _resting_on(payload: Mapping[str, Any]) -> str:
    evidence = payload.get("evidence")
    return f" ({'; '.join(say(reference) for reference in evidence)})" if evidence else ""


def _reconcile_refused(payload: Mapping[str, Any]) -> str:
    reason = say(payload.get("reason"))
    said = {
        "not-authorised": "the authority does not permit it",
        "in-progress": "it is still at work",
        "nothing-to-reconcile": "the record leaves nothing open",
    }
    return f"not reconciled: {said.get(reason, reason)}"


def _completed_late(payload: Mapping[str, Any]) -> str:
    return f"late, after a verdict: {_completed(payload)}; the verdict is not overwritten"


def _call_completed(payload: Mapping[str, Any]) -> str:
    if payload.get("replayed"):
        return f"replays the response of {say(payload.get('original_call_id'))}; no new attempt"
    status = say(payload.get("status"))
    return f"{status}: nobody was asked" if status == "denied" else status


def _interpreted(payload: Mapping[str, Any]) -> str:
    error = payload.get("error")
    return f"reads the response: {say(payload.get('status'))}" + (f" ({say(error)})" if error else "")


def _retry_decided(payload: Mapping[str, Any]) -> str:
    tried = f"attempt {say(payload.get('attempt'))}"
    return f"{tried} is tried again" if payload.get("retry") else f"{tried} is not tried again"


_WORDS: dict[str, Words] = {
    "ledger.created": lambda _: "the ledger begins; not an event",
    "action.requested": _requested,
    "action.execution_started": lambda _: "the adapter is about to run; from here an effect is possible",
    "action.completed": _completed,
    "action.completed_late": _completed_late,
    "action.replay_refused": _refused,
    "action.reconciled": _reconciled,
    "action.reconcile_refused": _reconcile_refused,
    "directive.opened": lambda payload: f'opens the work: "{say(payload.get("directive"))}"',
    "task.created": lambda payload: (
        f'is to ask "{say(payload.get("prompt"))}"; must have {say(payload.get("required"))}'
    ),
    "context.item_offered": lambda payload: f"offers the context {say(payload.get('name'))}",
    "context.compilation_requested": lambda payload: f"compiles the context of {say(payload.get('offered'))}",
    "context.compiled": lambda payload: f"has the context {say(list(payload.get('context') or ()))}",
    "context.compilation_failed": lambda payload: f"lacks the context {say(payload.get('missing'))}",
    "call.requested": lambda payload: f"asks the model {say(payload.get('requested_model'))}",
    "call.manifest": lambda _: "keeps what is really sent",
    "attempt.started": lambda payload: f"attempt {say(payload.get('attempt'))} starts",
    "attempt.observed": lambda payload: f"attempt {say(payload.get('attempt'))} got a response",
    "attempt.interpreted": _interpreted,
    "attempt.retry_decided": _retry_decided,
    "attempt.completed": lambda payload: (
        f"attempt {say(payload.get('attempt'))} is over: {say(payload.get('status'))}"
    ),
    "call.status_decided": lambda payload: f"the call counts as {say(payload.get('status'))}",
    "call.completed": _call_completed,
    "call.replay_refused": _refused,
    "call.resumed": lambda payload: f"goes on as {say(payload.get('new_call_id'))}; nobody was asked yet",
    "call.reconciled": _call_reconciled,
    "call.reconcile_refused": _reconcile_refused,
    **RECOVERY_WORDS,
}
