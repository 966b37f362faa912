"""How long must an effect system remember what it did, and what does it answer once it has forgotten?

Chapter: 004, "Retry, replay, duplicate" (RIFL's identification and garbage collection) and "Where it is still
weak" 5: completion records are never reclaimed.

Idea: the client numbers its requests and says with each of them up to where it has its answers. What it has
its answer to may be forgotten, but for the number itself: at or below that mark the answer is *stale*, an
error and never a new effect. A client that is gone acknowledges nothing; its lease runs out instead.

    at or below the mark             stale             forgotten on purpose; nothing is done
    known, with its result           duplicate         the saved result again
    known, without one               in_progress       come back later; neither run nor queued
    unknown, and the lease is over   lease_expired     nothing is done
    unknown, and the lease is good   new               act, and keep the result with the effect

Always true:
  RT1. The answers are looked for in this order; the lease is asked about for unknown numbers only.
  RT2. The mark only rises. What is at or below it answers stale for ever, whatever any clock says.
  RT3. A result for an acknowledged number is not kept, and nothing comes of it.
  RT4. Once a client was collected, none of its numbers is ever new.

Not here: keeping record and effect in one transaction (`store.effect_service`); whether two requests under
one number mean the same, which is taken on trust here (`decide.identity` does not).
Sources: RIFL (SOSP 2015); its check order as in RAMCloud's UnackedRpcResults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from codeai_lab.clock import Deadline
from codeai_lab.errors import RefusedRequestError


class Answer(StrEnum):
    """What a request is, on arrival."""

    NEW = "new"
    IN_PROGRESS = "in_progress"
    DUPLICATE = "duplicate"
    STALE = "stale"
    LEASE_EXPIRED = "lease_expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer, and the saved result where the answer is `duplicate`."""

    answer: Answer
    result: Any = None

    @property
    def started_before(self) -> bool:
        """Say whether this number is known and not acknowledged, with a result or without one."""
        return self.answer in (Answer.DUPLICATE, Answer.IN_PROGRESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestId:
    """Who asks, and which of its requests this is, counted from 1; a retry has the same two.

    Example:
        >>> RequestId.from_key("c1/7").sequence
        7
    """

    client_id: str
    sequence: int

    @property
    def key(self) -> str:
        """The idempotency key that carries this id through the ledger."""
        return f"{self.client_id}/{self.sequence}"

    @classmethod
    def from_key(cls, key: str) -> RequestId:
        """Read an id from an idempotency key.

        Raises: RefusedRequestError (definite) for a key that is no client and number.
        """
        client_id, _, number = key.rpartition("/")
        sequence = int(number) if number.isascii() and number.isdecimal() and len(number) < 16 else 0
        if not client_id or sequence < 1 or number != str(sequence):
            raise RefusedRequestError("The key must be a client and a number from 1 on, as c1/7.")
        return cls(client_id=client_id, sequence=sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What is remembered of one client; of an unknown one nothing, and its lease is over.

    Args:
        lease_until_us: the instant from which on its lease is over.
        acknowledged: the mark; every number up to it is acknowledged.
        results: the saved results above the mark, by number; `in_progress` the numbers under way.
        collected: its lease ran out and its records were dropped.
    """

    lease_until_us: int = 0
    acknowledged: int = 0
    results: Mapping[int, Any] = field(default_factory=lambda: MappingProxyType({}))
    in_progress: frozenset[int] = frozenset()
    collected: bool = False

    def lease_is_over(self, *, now_us: int) -> bool:
        return self.collected or Deadline(at_us=self.lease_until_us).has_passed(now_us=now_us)


def judge(retained: Retained, sequence: int, *, now_us: int) -> Verdict:
    """Say what a request is; nothing changes by asking."""
    if sequence <= retained.acknowledged:
        return Verdict(answer=Answer.STALE)
    if sequence in retained.results:
        return Verdict(answer=Answer.DUPLICATE, result=retained.results[sequence])
    if sequence in retained.in_progress:
        return Verdict(answer=Answer.IN_PROGRESS)
    if retained.lease_is_over(now_us=now_us):
        return Verdict(answer=Answer.LEASE_EXPIRED)
    return Verdict(answer=Answer.NEW)


def arrive(
    retained: Retained, sequence: int, *, first_incomplete: int, now_us: int
) -> tuple[Verdict, Retained]:
    """Judge a request as it arrives, and give what is remembered afterwards.

    A new one is in progress from here on. What the request acknowledges counts unless it is turned away.

    Args:
        first_incomplete: the first number that the client still waits for; those below are acknowledged.

    Raises: RefusedRequestError (definite) for a request that acknowledges itself.
    """
    require_sound(sequence, first_incomplete=first_incomplete)
    verdict = judge(retained, sequence, now_us=now_us)
    if verdict.answer in (Answer.STALE, Answer.LEASE_EXPIRED):
        return verdict, retained
    if verdict.answer is Answer.NEW:
        retained = replace(retained, in_progress=retained.in_progress | {sequence})
    return verdict, acknowledge(retained, up_to=first_incomplete - 1)


def require_sound(sequence: int, *, first_incomplete: int) -> None:
    """Return if a client can honestly say both numbers at once.

    Raises: RefusedRequestError (definite).
    """
    if not 1 <= first_incomplete <= sequence:
        raise RefusedRequestError(
            "The first incomplete number must be from 1 to the request's own; none acknowledges itself."
        )


def complete(retained: Retained, sequence: int, result: Any) -> Retained:
    """Keep the result of a request, unless it was acknowledged meanwhile (RT3)."""
    if sequence <= retained.acknowledged:
        return retained
    results = MappingProxyType({**retained.results, sequence: result})
    return replace(retained, results=results, in_progress=retained.in_progress - {sequence})


def give_up(retained: Retained, sequence: int) -> Retained:
    """Forget that a request was under way: it changed nothing, and a retry of it is new."""
    return replace(retained, in_progress=retained.in_progress - {sequence})


def acknowledge(retained: Retained, *, up_to: int) -> Retained:
    """Raise the mark and drop the records up to it; a lower number than the mark changes nothing."""
    if up_to <= retained.acknowledged:
        return retained
    return replace(
        retained,
        acknowledged=up_to,
        results=MappingProxyType({n: result for n, result in retained.results.items() if n > up_to}),
        in_progress=frozenset(n for n in retained.in_progress if n > up_to),
    )


def collect(retained: Retained, *, now_us: int) -> Retained:
    """Drop the records of a client whose lease is over; leave one alone that has work under way."""
    if retained.collected or retained.in_progress or not retained.lease_is_over(now_us=now_us):
        return retained
    return replace(acknowledge(retained, up_to=max(retained.results, default=0)), collected=True)
