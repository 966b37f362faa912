"""How is a row or an event said in words?

Chapter: 004, "Retry, replay, duplicate".

Idea: every table, figure and time line says the same thing in the same words, so they are chosen once, here.
A row is the mapping of three witnesses for one case under one rule set; an event is a line of the ledger.
Both may come as a mapping or as an object with attributes, from a live run or from a frozen bundle.

Always true:
  S1. A word depends on the value alone: no clock, no address, no order of a set.
  S2. What is shown has no control character: a newline or an escape in a payload is shown as its escape.
  S3. Witnesses that cannot all be true are said with "disagree" first, and named.

Not here: what labels and range are computed from (`decide.witnesses`), how tables are laid out
(`show.tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from codeai_lab.decide.witnesses import disagreements

NOTHING = "-"


def read(thing: object, name: str, default: Any = None) -> Any:
    """Give the field of a mapping or the attribute of an object; `default` where there is none."""
    if isinstance(thing, Mapping):
        return thing.get(name, default)
    return getattr(thing, name, default)


def say(value: object) -> str:
    """Say one value in one line of text; nothing is a dash, a list is joined by commas."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _printable(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return NOTHING if value != value else f"{float(value):.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{say(name)}={say(value[name])}" for name in sorted(value, key=str)) or NOTHING
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return ", ".join(say(item) for item in value) or NOTHING
    if isinstance(value, set | frozenset):
        return ", ".join(sorted(say(item) for item in value)) or NOTHING
    return NOTHING if str(value) in ("<NA>", "NaT") else _printable(str(value))


def effects(low: int, high: int | None = None) -> str:
    """Say a number of effects, or a range of them."""
    if high is not None and high != low:
        return f"{low} to {high} effects"
    return {0: "no effect", 1: "1 effect"}.get(low, f"{low} effects")


def count(low: int, high: int) -> str:
    """Say a range as digits: "1", or "0 to 1"."""
    return str(low) if low == high else f"{low} to {high}"


def ledger_range(row: object) -> tuple[int, int]:
    """Give the lowest and the highest number of effects that the ledger of this row allows."""
    low, high = read(row, "effects_ledger")
    return int(low), int(high)


def answers(row: object) -> tuple[str, ...]:
    """Say what each request of the row got, in the order in which they were made."""
    statuses = list(read(row, "statuses") or ())
    reused = _filled(read(row, "reused_from"), len(statuses))
    raised = _filled(read(row, "raised"), len(statuses))
    return tuple(map(_answer, statuses, reused, raised))


def labels(row: object) -> tuple[str, ...]:
    """Say the label of each request; a request that needs none is a dash."""
    return tuple(say(label) for label in read(row, "labels") or ())


def agreement(row: object) -> str:
    """Say whether ledger, world and summary can all be true, and name the two that cannot (S3)."""
    low, high = ledger_range(row)
    world, summary = read(row, "effects_world"), read(row, "effects_summary")
    quarrels = disagreements((low, high), world=world, summary=world if summary is None else summary)
    if quarrels:
        return "disagree: " + "; ".join(quarrels)
    return "agree" if low == high else "agree; the ledger alone leaves it open"


def event_words(event: object) -> str:
    """Say what one line of the ledger records, for a person who reads it beside the chapter."""
    kind, payload = read(event, "kind"), read(event, "payload") or {}
    if kind == "action.claimed":
        return f"claims the key; fencing number {say(read(event, 'seq'))}"
    speak = _EVENT_WORDS.get(kind)
    if speak is None:
        return say({name: value for name, value in payload.items() if not isinstance(value, Mapping | list)})
    return speak(payload)


def _answer(status: object, reused_from: object, raised: object) -> str:
    if raised is not None:
        return f"raised {say(raised)}"
    if status is None:
        return "no answer"
    said = say(status).replace("_", " ")
    return said if reused_from is None else f"{said} (recorded by {say(reused_from)})"


def _filled(values: Iterable[object] | None, length: int) -> list[object]:
    given = list(values or ())
    return given + [None] * (length - len(given))


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


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


_EVENT_WORDS = {
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
}
