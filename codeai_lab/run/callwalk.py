"""What does a walk of a call know, where does it stand, and how does it record?

Chapter: 004, "Where the cache stops": between two steps anything may happen, a death too.

Idea: a walk stands before a step. Run to its end it is an ordinary call; moved by a person it is a stepper;
dropped, or its process killed, it leaves what the steps before it recorded and nothing else.

Always true:
  CW1. One `step` takes one step; an exception from it ends the walk and is raised.
  CW2. A walk's call is registered as alive until the walk ends, is closed or is dropped.
  CW3. An event is appended only if its stream is as the walk left it; otherwise nothing is recorded.

Not here: the steps (`run.working`), what a dropped walk's record means (`decide.workstate`), going on from it
(`run.resuming`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from codeai_lab.canonical import plain
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.decide.workstate import CallOperation
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionStatus, CallRequest, Event, EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import Transport
from codeai_lab.store.protocol import Unchanged

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How calls are made at present; not part of what is asked, yet part of what is sent."""

    chamber: str = "reading-room"
    requested_model: str = "model-small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What someone wants to have answered.

    Args:
        work_id, call_id: names of their own; the call gets its name before it is requested.
        offered: the one context item that is offered, by its name; required: the names that must be there.

    Raises: RefusedRequestError, RefusedValueError (definite) for what no request could be made of.
    """

    work_id: str
    call_id: str
    idempotency_key: str
    directive: str
    prompt: str
    offered: Mapping[str, Any]
    required: tuple[str, ...] = ()
    settings: Settings = Settings()

    def __post_init__(self) -> None:
        if len(self.offered) != 1:
            raise RefusedRequestError("A work offers one context item.")
        object.__setattr__(self, "offered", plain(dict(self.offered), "offered"))
        self.call(self.offered)
        if not self.work_id or self.work_id == self.call_id:
            raise RefusedRequestError("The work and its call need names of their own.")

    def call(self, context: Mapping[str, Any]) -> CallRequest:
        """Give the call that this work comes to with a compiled context."""
        return CallRequest(
            call_id=self.call_id,
            idempotency_key=self.idempotency_key,
            prompt=self.prompt,
            chamber=self.settings.chamber,
            requested_model=self.settings.requested_model,
            context=context,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What the caller is told.

    `next_operation` is none where the call is answered; where it was refused it says what is in order
    instead, `reason` why, and `differs` by which name the intention that was recorded is not the present one.
    """

    call_id: str
    status: ActionStatus
    next_operation: CallOperation = CallOperation.NONE
    response: Any = None
    reason: str | None = None
    replayed_from: str | None = None
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What a walk knows: where it records (`stream`, `last_seq`, `cause`, `key`), what its caller may do
    (`authority`, `performer`), and what it found out (`asked_at_us`: when the call was requested).
    """

    requested_id: str
    stream: str
    key: str
    authority: Authority = NO_AUTHORITY
    performer: str = "agent"
    last_seq: int = 0
    cause: str | None = None
    asked_at_us: int = 0
    transport: Transport | None = None
    work: Work | None = None
    call: CallRequest | None = None
    reply: bytes | None = None


Step = Callable[[Bench, CallFacts], CallFacts | CallAnswer]


def needed(fact: T | None) -> T:
    """Give a fact that an earlier step found out.

    Raises: ValueError when there is no such step before this one.
    """
    if fact is None:
        raise ValueError("the step needs one before it that finds out what it works with")
    return fact


class CallWalk:
    """One work under way along its steps: run, moved by hand, or dropped where a process would have died."""

    def __init__(self, bench: Bench, facts: CallFacts, steps: Sequence[Step]) -> None:
        self.facts = facts
        self._bench = bench
        self._left = list(steps)
        self._end: CallAnswer | BaseException | None = None
        self._alive = bench.ledger.live_actions
        weakref.finalize(self, self._alive.discard, facts.requested_id)  # whatever becomes of the walk (CW2)

    @property
    def next_step(self) -> str | None:
        """The name of the step that `step` would take; None when the walk is over."""
        return None if self.is_over else self._left[0].__name__

    @property
    def is_over(self) -> bool:
        return self._end is not None

    def run(self) -> CallAnswer:
        """Take every step that is left and give the answer, or raise what ended the walk."""
        while not self.is_over:
            self.step()
        if isinstance(self._end, CallAnswer):
            return self._end
        raise self._end or ValueError("the walk is not over")

    def step(self) -> str:
        """Take the next step and give its name.

        Raises: whatever the step lets escape, KeyboardInterrupt included; the walk is over then.
        """
        if self.is_over:
            raise ValueError("the walk is over")
        step = self._left[0]
        try:
            self._alive.add(self.facts.requested_id)
            after = step(self._bench, self.facts)
        except BaseException as error:
            self._finish(error)
            raise
        if isinstance(after, CallAnswer):
            self._finish(after)
        else:
            self.facts = after
            del self._left[0]
        return step.__name__

    def close(self) -> None:
        """Give the walk up where it stands, as a crash would; harmless on one that is over."""
        if not self.is_over:
            self._finish(ValueError("the walk was closed before its end"))

    def _finish(self, end: CallAnswer | BaseException) -> None:
        self._end = end
        self._alive.discard(self.facts.requested_id)


def draft(
    bench: Bench,
    facts: CallFacts,
    kind: str,
    payload: Mapping[str, Any],
    *,
    event_id: str | None = None,
    at_us: int | None = None,
) -> EventDraft:
    """Give an event of the stream in which the walk records, caused by what the walk answers, as of now or
    of the instant given.
    """
    return EventDraft(
        event_id=event_id or bench.new_id(),
        run_id=bench.run_id,
        stream_id=facts.stream,
        kind=kind,
        actor_id=bench.actor_id,
        idempotency_key=facts.key,
        recorded_at_us=bench.clock.now_us() if at_us is None else at_us,
        causation_id=facts.cause,
        payload=payload,
    )


def record(bench: Bench, facts: CallFacts, event: EventDraft) -> Event:
    """Append one event alone (CW3).

    Raises: RefusedRequestError (definite) when somebody else was in the stream.
    """
    recorded = bench.ledger.append(
        event, unless_changed=[Unchanged(stream=facts.stream, last_seq=facts.last_seq)]
    )
    if recorded:
        return recorded[0]
    if facts.last_seq == 0:
        raise RefusedRequestError("This id belongs to an earlier work or call; give every one its own.")
    raise RefusedRequestError("Somebody else went on with this call; read its working state.")
