"""When are two values the same bytes?

Chapter: 004, "What CodeAI does" (the fingerprint must reproduce after the ledger is reopened).

Idea: a digest is only as honest as the bytes under it. Every value is brought to one plain form
(`plain`), and every plain form has one sequence of bytes: the JSON Canonicalization Scheme of RFC 8785.
What has no such form is refused by the place where it stands, never turned into text in silence.

Always true:
  C1. Accepted are None, bool, int, float, str, list, tuple (as a list) and dict with text keys: nothing else,
      no subclasses. Sets, bytes, dates, enums and objects are refused.
  C2. A number's magnitude is at most 2^53 - 1; beyond it JSON readers disagree. NaN and infinities are
      refused. `1.0` is the number `1`, `-0.0` is `0`; `True` is not a number.
  C3. Text and keys are Unicode without lone surrogates. Nesting ends at 100 levels; a value that holds itself
      is refused.
  C4. `plain(json.loads(canonical_bytes(v))) == plain(v)`: live, reopened and exported forms agree, types too.

Not here: which parts of a request make its identity (`decide.identity`); how long a line may be
(`store.lines`).
Sources: RFC 8785 (JCS), RFC 7493 (I-JSON).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from codeai_lab.errors import RefusedValueError

LARGEST_INTEGER = 2**53 - 1
DEEPEST = 100


def canonical_bytes(value: Any) -> bytes:
    """Give the one byte form of a value.

    Raises: RefusedValueError (definite), naming the place as `$.list[3].key`.
    """
    return encoded(plain(value))


def digest(value: Any) -> str:
    """Give the SHA-256 of a value's canonical bytes, 64 lower-case hex digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def plain(value: Any, where: str = "$") -> Any:
    """Copy a value into its plain form, sharing nothing mutable with the original; refuse what has none."""
    return _plain(value, where, 0)


def encoded(value: Any) -> bytes:
    """Encode a value that is already plain."""
    # The standard library's encoder is written in C and gives the same bytes as long as no float has to be
    # spelled and no key sorts differently by UTF-16 than by code point; a property test holds the two equal.
    if _standard_encoder_agrees(value):
        return _ENCODE(value).encode()
    return rfc8785.dumps(value)


_ENCODE = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False, allow_nan=False
).encode


# A place is a text, or a place and one step from there: most are never named, and spelling them would cost
# more than the checks do.
_Place = str | tuple[Any, str | int]


def _plain(value: Any, where: _Place, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value, where)
    if kind is int:
        if not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
            raise _refused(where, "a number beyond 2^53 - 1 is not portable; write it as text")
        return value
    if value is None or kind is bool:
        return value
    if kind is float:
        return _number(value, where)
    if depth >= DEEPEST:
        raise _refused(where, f"nested deeper than {DEEPEST} levels, or holds itself")
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise _refused(where, f"a key is not text but {type(key).__name__}")
            if not key.isascii():
                _text(key, f"{_spelled(where)} (a key)")
        return {key: _plain(item, (where, key), depth + 1) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_plain(item, (where, place), depth + 1) for place, item in enumerate(value)]
    raise _refused(where, f"{kind.__name__} is not a JSON value")


def _text(value: str, where: _Place) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refused(where, "a lone surrogate is not text") from None
    return value


def _number(value: float, where: _Place) -> int | float:
    if value != value or value in (float("inf"), float("-inf")):
        raise _refused(where, "NaN and infinities are not JSON numbers")
    if abs(value) > LARGEST_INTEGER:
        raise _refused(where, "a number beyond 2^53 - 1 is not portable; write it as text")
    return int(value) if value.is_integer() else value


def _standard_encoder_agrees(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(map(str.isascii, value)) and all(map(_standard_encoder_agrees, value.values()))
    if kind is list:
        return all(map(_standard_encoder_agrees, value))
    return kind is not float


def _refused(where: _Place, why: str) -> RefusedValueError:
    place = _spelled(where)
    return RefusedValueError(place if len(place) <= 60 else f"{place[:57]}...", why)


def _spelled(where: _Place) -> str:
    if isinstance(where, str):
        return where
    outer, step = where
    return f"{_spelled(outer)}[{step}]" if isinstance(step, int) else f"{_spelled(outer)}.{step}"
