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


def _call_completed(payload: Mapping[str, Any]) -> str:
    if payload.get("replayed"):
        return f"replays the response of {say(payload.get('original_call_id'))}; no new attempt"
    return say(payload.get("status"))


_EVENT_WORDS = {
    "ledger.created": lambda _: "the ledger begins; not an event",
    "action.requested": _requested,
    "action.execution_started": lambda _: "the adapter is about to run; from here an effect is possible",
    "action.completed": _completed,
    "action.replay_refused": _refused,
    "call.requested": lambda payload: f"asks the model {say(payload.get('requested_model'))}",
    "call.manifest": lambda _: "keeps what is really sent",
    "attempt.started": lambda payload: f"attempt {say(payload.get('attempt'))} starts",
    "attempt.observed": lambda payload: f"attempt {say(payload.get('attempt'))} got a response",
    "call.completed": _call_completed,
    "call.replay_refused": _refused,
}
