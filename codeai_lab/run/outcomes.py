"""What did the adapter do, and what did the world look like afterwards?

Chapter: 004, "Failure is cached, and that is a decision": operation reported failed is not effect did not
happen.

Idea: two readings that must not hide each other. The outcome is what the adapter reported, by returning or by
raising. The observation is what a reader of the world says afterwards; a reader that fails is itself a fact.

Always true:
  U1. Neither function lets the other's failure vanish.
  U2. An output without a JSON form does not undo the report: the status stands and the output is named as
      refused.
  U3. A coroutine or generator is no report: nothing drove it, so it is recorded as failed, its effect
      unknown.
  U4. What is kept of an exception is its type and its words, never a path that the system put in.

Not here: recording them (`run.acting`, `run.recording`).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codeai_lab.canonical import plain
from codeai_lab.errors import RefusedValueError
from codeai_lab.records import ActionRequest, ActionStatus

LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the adapter reported; `output` is plain."""

    status: ActionStatus
    output: Any = None
    error: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {"status": str(self.status), "output": self.output, "error": self.error}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A reading of the world, or the fact that it could not be read and why."""

    readable: bool
    state: Any = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        said = {"state": self.state} if self.readable else {"error": self.error}
        return {"readable": self.readable, **said}


def attempt(
    execute: Callable[[ActionRequest], Any], request: ActionRequest, *, caught: tuple[type[Exception], ...]
) -> Outcome:
    """Run the adapter once and give what it reported; what is not `caught` escapes.

    Touches: whatever the adapter touches.
    """
    try:
        output = execute(request)
    except caught as error:
        return Outcome(status=ActionStatus.FAILED, error={"code": "adapter-raised", **_told(error)})
    if _is_undriven(output):
        _close(output)
        message = (
            f"The adapter returned a {type(output).__name__} that nothing drives; give it a plain function."
        )
        return Outcome(status=ActionStatus.FAILED, error={"code": "adapter-not-driven", "message": message})
    try:
        return Outcome(status=ActionStatus.SUCCEEDED, output=plain(output, "output"))
    except RefusedValueError as refused:
        told = {"code": "output-not-recordable", "message": str(refused)}
        return Outcome(status=ActionStatus.SUCCEEDED, error=told)


def look(read_state: Callable[[], Any] | None) -> Observation | None:
    """Read the world; None where there is no reader."""
    if read_state is None:
        return None
    try:
        state = read_state()
        if _is_undriven(state):
            _close(state)
            return Observation(readable=False, error=f"a {type(state).__name__} that nothing drives")
        return Observation(readable=True, state=plain(state, "state"))
    except Exception as error:
        return Observation(readable=False, error=type(error).__name__)


def _told(error: Exception) -> dict[str, str]:
    try:
        words = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
    except Exception:  # the report must not be lost because its words cannot be read
        words = "an exception that cannot be put into words"
    # An exception's words may hold what UTF-8 does not; they are for people, so a replacement will do.
    message = words.encode("utf-8", "replace").decode()[:LONGEST_MESSAGE]
    return {"type": type(error).__name__, "message": message}


def _is_undriven(output: Any) -> bool:
    return inspect.isawaitable(output) or inspect.isgenerator(output) or inspect.isasyncgen(output)


def _close(undriven: Any) -> None:
    """Close it, so that no "never awaited" warning follows."""
    if inspect.iscoroutine(undriven) or inspect.isgenerator(undriven):
        with contextlib.suppress(Exception):
            undriven.close()
