"""Do two requests mean the same operation?

Chapter: 004, "What CodeAI does", identity second; "The precondition rule, stated plainly".

Idea: the idempotency key is a handle for looking something up; it is not what was asked. What was asked
is the *fingerprint*: one digest for each dimension of the request's meaning and one over them all. It is
narrower than the request (its id is no part of its meaning) and wider than the key.

Always true:
  I1. Equal meaning, equal fingerprint, in every process: canonical bytes, no `hash()`, no memory address.
  I2. A mismatch names dimensions and never shows a value.
  I3. A fingerprint is rebuilt from what was recorded; a digest stored beside it is compared, never believed.

Not here: who looks the recorded request up and when (`run.stages`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeai_lab.canonical import encoded
from codeai_lab.records import ActionRequest, CallRequest

ACTION_FINGERPRINT_V1 = "action-fingerprint-v1"
CALL_FINGERPRINT_V1 = "call-fingerprint-v1"

ACTION_DIMENSIONS = ("capability", "instruction", "payload", "precondition", "performer")
CALL_DIMENSIONS = ("prompt_hash", "chamber", "requested_model", "rendered_context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The digest of a request's meaning; `dimensions` maps each dimension's name to its own digest."""

    version: str
    digest: str
    dimensions: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Give the form in which a fingerprint is recorded."""
        return {"version": self.version, "digest": self.digest, "dimensions": dict(self.dimensions)}


def action_fingerprint(request: ActionRequest) -> Fingerprint:
    """Give the fingerprint of an action request."""
    return _fingerprint(ACTION_FINGERPRINT_V1, {name: getattr(request, name) for name in ACTION_DIMENSIONS})


def recorded_action_fingerprint(requested: Mapping[str, Any]) -> Fingerprint:
    """Rebuild the fingerprint of a recorded request from the payload of its `action.requested` event."""
    return _fingerprint(ACTION_FINGERPRINT_V1, {name: requested.get(name) for name in ACTION_DIMENSIONS})


def call_fingerprint(request: CallRequest) -> Fingerprint:
    """Give the fingerprint of a model call: prompt hash, chamber, requested model, rendered context."""
    return _fingerprint(CALL_FINGERPRINT_V1, _call_meaning(vars_of_call(request)))


def recorded_call_fingerprint(requested: Mapping[str, Any]) -> Fingerprint:
    """Rebuild the fingerprint of a recorded call from the payload of its `call.requested` event."""
    return _fingerprint(CALL_FINGERPRINT_V1, _call_meaning(requested))


def differing_dimensions(one: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """Name the dimensions in which two fingerprints differ, in their fixed order; empty when they are the
    same.

    Fingerprints of different versions cannot be compared and differ in `version`.
    """
    if one.version != other.version:
        return ("version",)
    return tuple(name for name, value in one.dimensions.items() if other.dimensions.get(name) != value)


def stored_digest_disagrees(recorded: Mapping[str, Any], rebuilt: Fingerprint) -> bool:
    """Say whether a request's record carries a fingerprint digest that its own words do not give."""
    stored = recorded.get("fingerprint")
    return isinstance(stored, Mapping) and stored.get("digest") != rebuilt.digest


def vars_of_call(request: CallRequest) -> dict[str, Any]:
    """Give the parts of a call request that are recorded, in the names of `call.requested`."""
    return {
        "prompt": request.prompt,
        "chamber": request.chamber,
        "requested_model": request.requested_model,
        "context": dict(request.context),
    }


def _call_meaning(requested: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt_hash": requested.get("prompt"),
        "chamber": requested.get("chamber"),
        "requested_model": requested.get("requested_model"),
        "rendered_context": requested.get("context"),
    }


def _fingerprint(version: str, meaning: Mapping[str, Any]) -> Fingerprint:
    # The parts are plain already: requests copy them in, events are read from canonical lines.
    dimensions = {name: _digest(value) for name, value in meaning.items()}
    return Fingerprint(
        version=version,
        digest=_digest({"version": version, "dimensions": dimensions}),
        dimensions=dimensions,
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(encoded(value)).hexdigest()
