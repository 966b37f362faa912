"""How is a value or a row said in words?

Chapter: 004, "Retry, replay, duplicate".

Idea: every table, figure and time line says the same thing in the same words, so they are chosen once, here.
A row is the mapping of three witnesses for one case under one rule set. It may come as a mapping or as an
object with attributes, from a live run or from a frozen bundle.

Always true:
  S1. A word depends on the value alone: no clock, no address, no order of a set.
  S2. What is shown has no control character: a newline or an escape in a payload is shown as its escape.
  S3. Witnesses that cannot all be true are said with "disagree" first, and named.

Not here: events (`show.event_words`), what labels and range are computed from (`decide.witnesses`), how
tables are laid out (`show.tables`).
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
