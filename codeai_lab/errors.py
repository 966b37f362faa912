"""What can go wrong, and does the program know whether the effect happened?

Chapter: 004, "Failure is cached, and that is a decision"; 000, sections on definite and indefinite errors.

Idea: an error is *definite* when the thing asked for did not happen and will not, and *indefinite* when it
may have. What a caller may do next follows from that one bit, so every error of ours carries it. Expected
situations (denied, replayed, in progress) are values and are not here.

Always true:
  E1. Every error of ours is a `LabError` and says `definite` as an attribute.
  E2. A message is one sentence for a person: no payload, no other caller's key, no path beyond a file's name.
  E3. What a program needs next stands in attributes, never only in the message.

Not here: the status of an action (`records`), the refusals that are recorded as events (`run.stages`).
"""

from __future__ import annotations

from collections.abc import Sequence


class LabError(Exception):
    """The root of our errors; its text is one sentence that may be shown to a user as it is."""

    definite: bool = True


# --- a value or a call that we refuse ------------------------------------------------------------------


class RefusedValueError(LabError):
    """A value has no single JSON form; `where` names the place in it, `why` the rule it breaks."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class RefusedRequestError(LabError):
    """A request cannot be taken as it is: fix it and ask again. Nothing was recorded, nothing was done."""


class IdempotencyConflictError(LabError):
    """A key was used again for another operation; refused before any effect.

    `dimensions` names what differs and never a value. The key is the caller's own.
    """

    def __init__(
        self, *, idempotency_key: str, original_id: str, fingerprint_version: str, dimensions: Sequence[str]
    ) -> None:
        named = ", ".join(dimensions)
        super().__init__(
            f"The idempotency key already belongs to another operation; it differs in: {named}. "
            "Use a new key for a new operation."
        )
        self.idempotency_key = idempotency_key
        self.original_id = original_id
        self.fingerprint_version = fingerprint_version
        self.dimensions = tuple(dimensions)


class NotPermittedError(LabError):
    """No current grant permits the capability; `reason` says which rule refused."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The current authority does not permit this: {reason}.")
        self.reason = reason


class OutcomeNotRecordedError(LabError):
    """The adapter ran and its outcome could not be recorded; the cause says why. The effect is unknown."""

    definite = False

    def __init__(self) -> None:
        super().__init__(
            "The effect may have happened, its outcome could not be recorded; reconcile before asking again."
        )


# --- the ledger ----------------------------------------------------------------------------------------


class LedgerError(LabError):
    """Something about a ledger file; its root."""


class LedgerNotFoundError(LedgerError):
    """There is no ledger where one was asked for."""


class NotALedgerError(LedgerError):
    """The file is there and is not a ledger of ours."""


class LedgerTooNewError(LedgerError):
    """The ledger was written by a newer version; it is left unread."""


class LedgerInUseError(LedgerError):
    """Another process writes to this ledger."""


class LedgerReadOnlyError(LedgerError):
    """The place cannot be written to."""


class LedgerDamagedError(LedgerError):
    """A line of the journal is not what was acknowledged; `line` counts from 0, the line of creation."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


class IndexAheadError(LedgerError):
    """The index holds acknowledged events that the journal lacks; `missing` is their first and last seq."""

    def __init__(self, message: str, *, missing: tuple[int, int]) -> None:
        super().__init__(message)
        self.missing = missing


class LedgerFullError(LedgerError):
    """No space left, for an append, an opening or the index; nothing of it was kept. Free some space."""


class LedgerFailedError(LedgerError):
    """A flush to disk failed, so what is durable is not known; the ledger takes no appends until reopened."""

    definite = False


class LedgerClosedError(LedgerError):
    """The ledger was closed, or belongs to the parent of a forked process."""


class QueryRefusedError(LedgerError):
    """Only one SELECT is answered, and this is not one, or it fails."""


# --- evidence ------------------------------------------------------------------------------------------


class BundleError(LabError):
    """A bundle cannot be written or read at all; what is wrong *inside* one is a finding, not an error."""


class CorruptionDoesNotApplyError(BundleError):
    """The bundle lacks what this corruption would damage."""
