"""What does a walk know, and what does a stage work with?

Chapter: 004, "What CodeAI does": the order of the steps is the protocol.

Idea: a walk carries frozen `Facts` from stage to stage. Each stage gives new facts or the end, so every
moment of a walk can be kept, compared and gone back to. What a stage may touch is on its `Bench`, and nothing
else.

Always true:
  B1. Facts are frozen; a stage never changes what an earlier one knew.
  B2. Time, ids and policy are on the bench; no stage reaches for the machine's.

Not here: the stages (`run.stages`), moving along them (`run.walk`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from codeai_lab.clock import Clock
from codeai_lab.decide.authority import Authority, PolicyEngine
from codeai_lab.decide.identity import Fingerprint
from codeai_lab.decide.projection import KeyState
from codeai_lab.records import ActionRequest, ActionResult, Event, EventDraft
from codeai_lab.run.outcomes import Observation, Outcome
from codeai_lab.store.protocol import Ledger


class Adapter(Protocol):
    """What carries out an effect: it changes the world, or raises, or both."""

    def execute(self, request: ActionRequest) -> Any:
        """Do it once and give an output that has a JSON form."""
        ...


ReadState = Callable[[], Any]
Wait = Callable[[Ledger, str, int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a stage works with: ledger, clock, ids, policy, and the names under which it records.

    `records_starts` is said in every request, unless it is None: then the name of the rules says it.
    """

    ledger: Ledger
    clock: Clock
    new_id: Callable[[], str]
    policy: PolicyEngine
    rules: str
    run_id: str
    actor_id: str
    records_starts: bool | None = None

    def draft(
        self,
        stream_id: str,
        kind: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        cause: str | None = None,
    ) -> EventDraft:
        """Give an event of this bench's run, with a new id and as of now, that is not recorded yet."""
        return EventDraft(
            event_id=self.new_id(),
            run_id=self.run_id,
            stream_id=stream_id,
            kind=kind,
            actor_id=self.actor_id,
            idempotency_key=key,
            recorded_at_us=self.clock.now_us(),
            causation_id=cause,
            payload=payload,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one walk knows.

    Args:
        requested: the `action.requested` event of this request, recorded or still to be (`is_recorded`).
        history: what look_up found under the key; `recorded` the completion that the rules would replay,
            `holder` the request that the key belongs to.
        guard: seq of the key's newest event when look_up looked; None where the rules do not compare.
        fence: the claim's fencing number; own_seq: seq of this action's newest event; both once it was
            admitted.
        wait: asked when the key is in progress, with the key and the newest seq seen; True: look again.
        outcome, observation: what the adapter did, what the world looked like afterwards.
    """

    request: ActionRequest
    authority: Authority
    adapter: Adapter
    read_state: ReadState | None
    wait: Wait | None = None
    fingerprint: Fingerprint
    requested: EventDraft
    is_recorded: bool = False
    history: tuple[Event, ...] = ()
    seen: KeyState | None = None
    recorded: Event | None = None
    holder: Event | None = None
    guard: int | None = None
    fence: int | None = None
    own_seq: int | None = None
    findings: tuple[str, ...] = ()
    outcome: Outcome | None = None
    observation: Observation | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The walk is over and the caller is told this."""

    result: ActionResult


@dataclass(frozen=True, slots=True)
class Raised:
    """The walk is over and the caller gets this exception."""

    error: Exception


class LookAgain:
    """The key has moved since it was looked up; judge again from there."""


LOOK_AGAIN = LookAgain()
Next = Facts | Ended | Raised | LookAgain
Stage = Callable[[Bench, Facts], Next]
