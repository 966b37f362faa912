"""Does every error say whether the thing may have happened, and nothing that it should not say?"""

from __future__ import annotations

import inspect

import pytest

from codeai_lab import errors
from codeai_lab.errors import (
    IdempotencyConflictError,
    IndexAheadError,
    LabError,
    LedgerDamagedError,
    LedgerFullError,
    NotPermittedError,
    OutcomeNotRecordedError,
    RefusedValueError,
)

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LabError)]

CONFLICT = IdempotencyConflictError(
    idempotency_key="order-17",
    original_id="somebody-elses-action",
    fingerprint_version="action-fingerprint-v1",
    dimensions=["instruction", "payload"],
)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_has_one_root_and_says_whether_it_is_definite(kind: type[LabError]) -> None:
    """E1: an error is definite except the two after which nobody knows whether it happened."""
    indefinite = {"OutcomeNotRecordedError", "LedgerFailedError"}
    assert kind.definite is (kind.__name__ not in indefinite)


def test_the_module_holds_no_other_exception() -> None:
    """E1: every exception class of the vocabulary is a LabError."""
    classes = {
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BaseException)
    }
    assert classes == set(ALL)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            CONFLICT,
            "The idempotency key already belongs to another operation; it differs in: instruction, payload. "
            "Use a new key for a new operation.",
        ),
        (
            NotPermittedError("no grant names this capability"),
            "The current authority does not permit this: no grant names this capability.",
        ),
        (
            OutcomeNotRecordedError(),
            "The effect may have happened, its outcome could not be recorded; reconcile before asking again.",
        ),
        (RefusedValueError("$.a[0]", "set is not a JSON value"), "$.a[0]: set is not a JSON value"),
        (LedgerFullError("No space is left."), "No space is left."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_is_the_sentence_that_a_person_reads(error: LabError, sentence: str) -> None:
    """E2: the text of an error may be shown as it is."""
    assert str(error) == sentence


def test_a_conflict_names_dimensions_and_no_other_callers_id() -> None:
    """E2: the message of a conflict shows neither the key nor the action that holds it."""
    assert "order-17" not in str(CONFLICT)
    assert "somebody" not in str(CONFLICT)


def test_what_a_program_needs_stands_in_attributes() -> None:
    """E3: nobody has to read a message to go on."""
    assert CONFLICT.idempotency_key == "order-17"
    assert CONFLICT.original_id == "somebody-elses-action"
    assert CONFLICT.fingerprint_version == "action-fingerprint-v1"
    assert CONFLICT.dimensions == ("instruction", "payload")
    refused = RefusedValueError("$.a", "why")
    assert (refused.where, refused.why) == ("$.a", "why")
    assert NotPermittedError("expired").reason == "expired"
    assert LedgerDamagedError("Line 3.", line=3).line == 3
    assert IndexAheadError("Ahead.", missing=(4, 9)).missing == (4, 9)
