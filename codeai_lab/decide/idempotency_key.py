"""What does a service owe a request that comes with an idempotency key?

Chapter: 003, "Make repeated writes idempotent": the receiving service stores the first successful result and
returns it for later attempts with the same key.

Idea: the key names the logical action, the fingerprint is what is asked for under it. What arrives and what
is kept under its key give one answer of five.

    no key where one is required         key_missing   400   nothing is done
    kept under another fingerprint       key_reused    422   nothing is done
    under way                            outstanding   409   nothing is done now; come back
    kept with its result                 replay        that result again
    nothing kept                         run           do it

Two rules are told apart by what they keep, and by nothing else: `draft` keeps every result, success and error
alike; `chapter` keeps the first successful one, so that a retry after an error runs anew. Of the first three
lines the chapter does not speak, and both rules answer them as the draft does.

Always true:
  IK1. The answers are looked for in this order, and asking changes nothing.
  IK2. Under one key nothing runs while something is under way, or after a result was kept.
  IK3. What is not kept binds nobody: after an error the chapter's rule lets a key come with another payload.
  IK4. A key is an sf-string of 1 to 255 characters, and the field that `key_field` writes is the one that
       `read_key` reads.

Not here: keeping it (`run.watchlist_log`), the answer's form on the wire (`run.watchlist_service`). How long
a key is kept, for which the draft wants a published policy: here, for as long as its log (`decide.retention`
is about forgetting).
Sources: draft-ietf-httpapi-idempotency-key-header-07, sections 2.1 to 2.7; RFC 8941, section 3.3.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from codeai_lab.errors import RefusedRequestError

FIELD = "Idempotency-Key"
LONGEST_KEY = 255


class Rule(StrEnum):
    """Which results a service keeps under their key."""

    DRAFT = "draft"
    CHAPTER = "chapter"


class Answer(StrEnum):
    """What a request is, on arrival."""

    RUN = "run"
    REPLAY = "replay"
    KEY_MISSING = "key_missing"
    KEY_REUSED = "key_reused"
    OUTSTANDING = "outstanding"


REFUSALS: Mapping[Answer, int] = MappingProxyType(
    {Answer.KEY_MISSING: 400, Answer.KEY_REUSED: 422, Answer.OUTSTANDING: 409}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a request was answered: an HTTP status and a JSON body."""

    status: int
    body: Any

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known under a key; `result` is None while the first request is under way."""

    fingerprint: str
    result: Result | None = None


def judge(kept: Kept | None, *, key: str | None, fingerprint: str, key_required: bool = True) -> Answer:
    """Say what a request is.

    Args:
        kept: what is known under its key; None where nothing is, or where it has no key.
        fingerprint: the digest of the payload that came with it.
        key_required: whether this operation asks for a key; where it does not, a request without one runs.
    """
    if key is None:
        return Answer.KEY_MISSING if key_required else Answer.RUN
    if kept is None:
        return Answer.RUN
    if kept.fingerprint != fingerprint:
        return Answer.KEY_REUSED
    return Answer.OUTSTANDING if kept.result is None else Answer.REPLAY


def keeps(rule: Rule, result: Result) -> bool:
    """Say whether a rule keeps a result that came of running; this is all that the rules differ in."""
    return rule is Rule.DRAFT or result.is_success


# --- the field on the wire ------------------------------------------------------------------------------

_SF_STRING = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')


def read_key(lines: Sequence[str]) -> str | None:
    """Read the key from the header field's lines, as they came; None where there is none.

    Raises: RefusedRequestError (definite) for more than one line and for what is no sf-string.
    """
    if not lines:
        return None
    if len(lines) > 1:
        raise RefusedRequestError(f"Send one {FIELD} header field, not several.")
    quoted = _SF_STRING.fullmatch(lines[0].strip(" "))
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    if not 1 <= len(key) <= LONGEST_KEY:
        raise RefusedRequestError(
            f"The {FIELD} must be a text in double quotes, 1 to {LONGEST_KEY} printable ASCII characters."
        )
    return key


def key_field(key: str) -> str:
    """Give the header field's value for a key.

    Raises: RefusedRequestError (definite) for a key that no field can carry.
    """
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    field = f'"{escaped}"'
    read_key([field])
    return field
