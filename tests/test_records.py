"""Do the nouns that travel keep what they were given, and does a result say no more than it should?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.records import (
    ActionRequest,
    ActionResult,
    ActionStatus,
    CallRequest,
    CallResult,
    EffectState,
    NextOperation,
)


class Capability(StrEnum):
    APPEND = "file.append"


def action(**changes: Any) -> ActionRequest:
    usual = {"action_id": "a1", "idempotency_key": "k", "capability": "file.append", "instruction": "append"}
    return ActionRequest(**usual | changes)


def call(**changes: Any) -> CallRequest:
    usual = {
        "call_id": "c1",
        "idempotency_key": "k",
        "prompt": "Say hello.",
        "chamber": "small",
        "requested_model": "m",
    }
    return CallRequest(**usual | changes)


def result(**changes: Any) -> ActionResult:
    usual = {
        "action_id": "a1",
        "status": ActionStatus.SUCCEEDED,
        "effect_state": EffectState.OBSERVED,
        "next_operation": NextOperation.NONE,
    }
    return ActionResult(**usual | changes)


def test_the_closed_sets_are_spelled_as_recorded() -> None:
    """Statuses, effect states and next operations are words of the record."""
    assert [*ActionStatus] == ["succeeded", "failed", "denied", "refused", "in_progress", "reconciled"]
    assert [*EffectState] == ["none", "unknown", "reported", "observed"]
    assert [*NextOperation] == ["none", "start", "wait", "fix_inputs", "reconcile_effect"]


@pytest.mark.parametrize(
    ("noun", "name"),
    [
        (action(), "instruction"),
        (call(), "prompt"),
        (result(), "status"),
        (CallResult(call_id="c", response=1, replayed=False, original_call_id="c"), "response"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_noun_cannot_be_changed(noun: Any, name: str) -> None:
    """R1: everything that travels is frozen, and has no room for more."""
    with pytest.raises(FrozenInstanceError):
        setattr(noun, name, "other")
    assert not hasattr(noun, "__dict__")


def test_a_request_keeps_what_it_was_given() -> None:
    """R1: what the caller does to its own objects later changes nothing, however deep."""
    lines, world = ["one"], {"state": ["A"]}
    request = action(payload={"lines": lines}, precondition=world)
    asked = call(context={"lines": lines})
    lines.append("two")
    world["state"].append("B")
    assert request.payload == {"lines": ["one"]}
    assert request.precondition == {"state": ["A"]}
    assert asked.context == {"lines": ["one"]}


@pytest.mark.parametrize("name", ["output", "error", "observed"])
def test_a_result_keeps_what_it_was_given(name: str) -> None:
    """R1: a result shares nothing with the record that it was taken from."""
    told = {"lines": ["one"]}
    kept = result(**{name: told})
    told["lines"].append("two")
    assert getattr(kept, name) == {"lines": ["one"]}


def test_a_call_result_keeps_what_it_was_given() -> None:
    """R1: the response of a call is a copy too."""
    told = {"lines": ["one"]}
    kept = CallResult(call_id="c2", response=told, replayed=True, original_call_id="c1")
    told["lines"].append("two")
    assert kept.response == {"lines": ["one"]}


def test_numbers_in_a_request_are_plain() -> None:
    """R1: the JSON inside has its plain form, a tuple a list and `1.0` the integer."""
    request = action(payload=MappingProxyType({"n": 1.0, "t": (1, 2)}), precondition=2.0)
    assert request.payload == {"n": 1, "t": [1, 2]}
    assert type(request.payload["n"]) is int
    assert type(request.precondition) is int


@pytest.mark.parametrize("empty", [{}, [], "", 0, False])
def test_a_missing_precondition_is_not_an_empty_one(empty: Any) -> None:
    """R2: None means that none was supplied; every other value was."""
    assert action().precondition is None
    assert action(precondition=empty).precondition is not None
    assert action(precondition=empty) != action()


@pytest.mark.parametrize(
    "name", ["action_id", "idempotency_key", "capability", "instruction", "performer"]
)  # fmt: skip
@pytest.mark.parametrize("value", ["", None, 7, b"x", Capability.APPEND])
def test_an_action_is_named_by_plain_text(name: str, value: Any) -> None:
    """A missing key does not become the word None, and an enum's member is not text that a record takes."""
    with pytest.raises(RefusedRequestError, match=f"^The {name} must be text and not empty"):
        action(**{name: value})


@pytest.mark.parametrize("name", ["call_id", "idempotency_key", "prompt", "chamber", "requested_model"])
@pytest.mark.parametrize("value", ["", None, 7])
def test_a_call_is_named_by_plain_text(name: str, value: Any) -> None:
    """The same holds for calls."""
    with pytest.raises(RefusedRequestError, match=f"^The {name} must be text and not empty"):
        call(**{name: value})


@pytest.mark.parametrize(
    ("ask", "where"),
    [
        (lambda: action(action_id="\ud800"), "action_id"),
        (lambda: action(instruction="append \udfff"), "instruction"),
        (lambda: action(payload={"a": [{1, 2}]}), "payload.a[0]"),
        (lambda: action(payload={"a": float("nan")}), "payload.a"),
        (lambda: action(payload={1: "x"}), "payload"),
        (lambda: action(precondition=b"A"), "precondition"),
        (lambda: call(prompt="\ud800"), "prompt"),
        (lambda: call(context={"a": {"b": 2**53}}), "context.a.b"),
    ],
)
def test_a_value_without_a_form_is_refused_when_the_request_is_made(
    ask: Callable[[], object], where: str
) -> None:
    """A request that could not be recorded cannot be made; the refusal names the place."""
    with pytest.raises(RefusedValueError) as refused:
        ask()
    assert refused.value.where == where
    assert refused.value.definite


@pytest.mark.parametrize("payload", [None, [], "text", 1, [("a", 1)]])
def test_a_payload_is_an_object(payload: Any) -> None:
    """Another shape is refused and not turned into an empty object."""
    with pytest.raises(RefusedRequestError, match="must be a JSON object"):
        action(payload=payload)
    with pytest.raises(RefusedRequestError, match="must be a JSON object"):
        call(context=payload)


def test_the_public_answer_holds_no_id() -> None:
    """R3: what leaves the program is canonical JSON, and names neither action nor original nor finding."""
    answer = result(
        action_id="secret-1",
        reused_from_action_id="secret-2",
        findings=("secret-3",),
        output={"b": 1.0, "a": [True]},
        error={"code": "x"},
        observed={"readable": True, "state": "B"},
    )
    assert answer.public() == (
        b'{"effect_state":"observed","error":{"code":"x"},"next_operation":"none",'
        b'"observed":{"readable":true,"state":"B"},"output":{"a":[true],"b":1},'
        b'"replayed":true,"status":"succeeded"}'
    )


def test_equal_answers_to_different_requests_are_the_same_bytes() -> None:
    """R3: the bytes depend on what is said and not on who asked."""
    assert result(action_id="x").public() == result(action_id="y").public()
    assert result().public() != result(status=ActionStatus.FAILED).public()
