"""Which nouns travel through the program?

Chapter: 004, "Retry, replay, duplicate"; design of the ledger line: `store.lines`.

Idea: a request is what is asked, before any decision. An event is a fact that was recorded about it. A result
is what the caller is told. Status (what was reported) and effect state (what the record establishes about the
world) are two axes: a FAILED action may have changed the world, and an UNKNOWN effect may have failed.

Always true:
  R1. Everything here is frozen; the JSON inside is plain (`canonical.plain`) and copied, so what the caller
      does to its own objects later changes nothing.
  R2. A missing precondition (None) is not an empty one.
  R3. The public answer to a denied request is the same bytes whatever is recorded about the key.

Not here: what makes two requests the same (`decide.identity`), what a history means (`decide.projection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from codeai_lab.canonical import canonical_bytes, plain
from codeai_lab.errors import RefusedRequestError


class ActionStatus(StrEnum):
    """What was reported. It says nothing about the world by itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    REFUSED = "refused"
    IN_PROGRESS = "in_progress"
    RECONCILED = "reconciled"


class EffectState(StrEnum):
    """What the record establishes about the world."""

    NONE = "none"
    UNKNOWN = "unknown"
    REPORTED = "reported"
    OBSERVED = "observed"


class NextOperation(StrEnum):
    """What may be done next about an action."""

    NONE = "none"
    START = "start"
    WAIT = "wait"
    FIX_INPUTS = "fix_inputs"
    RECONCILE_EFFECT = "reconcile_effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """What someone asks for.

    Args:
        action_id: this request's own name; one id, one request.
        idempotency_key: the caller's handle for one intended effect; another request with it asks for the
            same one.
        capability: what the effect needs permission for, as `file.append`.
        instruction: the operation in words.
        payload: the operation's parameters, a JSON object.
        precondition: the state of the world that the operation was planned against, any JSON value;
            None means that none was supplied.
        performer: who acts.

    Raises: RefusedRequestError for an empty name; RefusedValueError for a value without a JSON form (both
        definite).
    """

    action_id: str
    idempotency_key: str
    capability: str
    instruction: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    precondition: Any = None
    performer: str = "agent"

    def __post_init__(self) -> None:
        for name in ("action_id", "idempotency_key", "capability", "instruction", "performer"):
            _require_text(name, getattr(self, name))
        if not isinstance(self.payload, Mapping):
            raise RefusedRequestError("The payload must be a JSON object; wrap a single value in one.")
        object.__setattr__(self, "payload", plain(dict(self.payload), "payload"))
        object.__setattr__(self, "precondition", plain(self.precondition, "precondition"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A model call that someone asks for; `context` is the rendered context, a JSON object."""

    call_id: str
    idempotency_key: str
    prompt: str
    chamber: str
    requested_model: str
    context: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("call_id", "idempotency_key", "prompt", "chamber", "requested_model"):
            _require_text(name, getattr(self, name))
        if not isinstance(self.context, Mapping):
            raise RefusedRequestError("The context must be a JSON object.")
        object.__setattr__(self, "context", plain(dict(self.context), "context"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event that is not recorded yet; the ledger gives it its place. `recorded_at_us` is UTC."""

    event_id: str
    run_id: str
    stream_id: str
    kind: str
    actor_id: str
    idempotency_key: str | None
    recorded_at_us: int
    causation_id: str | None
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(EventDraft):
    """A recorded fact; `seq` is its place in the ledger, counted from 1 without gaps."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What the caller of an action is told.

    `reused_from_action_id` names the action whose recorded outcome this is; None when nothing was replayed.
    `findings` names what is wrong in the record that the answer rests on.
    """

    action_id: str
    status: ActionStatus
    effect_state: EffectState
    next_operation: NextOperation
    output: Any = None
    error: Mapping[str, Any] | None = None
    observed: Mapping[str, Any] | None = None
    reused_from_action_id: str | None = None
    findings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("output", "error", "observed"):
            object.__setattr__(self, name, plain(getattr(self, name), name))

    def public(self) -> bytes:
        """Give the answer as it may leave the program: canonical JSON without any id."""
        return canonical_bytes(
            {
                "status": str(self.status),
                "effect_state": str(self.effect_state),
                "next_operation": str(self.next_operation),
                "output": self.output,
                "error": None if self.error is None else dict(self.error),
                "observed": None if self.observed is None else dict(self.observed),
                "replayed": self.reused_from_action_id is not None,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What the caller of a model call is told; a replay names the call whose response this is.

    A denied call has no response and an error; nobody was asked.
    """

    call_id: str
    response: Any
    replayed: bool
    original_call_id: str
    status: ActionStatus = ActionStatus.SUCCEEDED
    error: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("response", "error"):
            object.__setattr__(self, name, plain(getattr(self, name), name))

    def public(self) -> bytes:
        """Give the answer as it may leave the program: canonical JSON without any id."""
        return canonical_bytes(
            {
                "status": str(self.status),
                "response": self.response,
                "error": None if self.error is None else dict(self.error),
                "replayed": self.replayed,
            }
        )


def _require_text(name: str, value: object) -> None:
    if type(value) is not str or not value:
        raise RefusedRequestError(f"The {name} must be text and not empty.")
    plain(value, name)
