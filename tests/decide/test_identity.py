"""Is the fingerprint the meaning of a request, the same everywhere, and nothing else?"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.identity import (
    ACTION_DIMENSIONS,
    ACTION_FINGERPRINT_V1,
    CALL_DIMENSIONS,
    Fingerprint,
    action_fingerprint,
    call_fingerprint,
    differing_dimensions,
    recorded_action_fingerprint,
    recorded_call_fingerprint,
    stored_digest_disagrees,
    vars_of_call,
)
from codeai_lab.records import ActionRequest, CallRequest

USUAL: dict[str, Any] = {
    "action_id": "a1",
    "idempotency_key": "k",
    "capability": "file.append",
    "instruction": "append one line",
    "payload": {"line": "é", "n": 1},
    "precondition": "state-A",
    "performer": "agent",
}
USUAL_CALL: dict[str, Any] = {
    "call_id": "c1",
    "idempotency_key": "k",
    "prompt": "Say hello.",
    "chamber": "small",
    "requested_model": "m1",
    "context": {"chapter": 22},
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)


def action(**changes: Any) -> ActionRequest:
    return ActionRequest(**USUAL | changes)


def call(**changes: Any) -> CallRequest:
    return CallRequest(**USUAL_CALL | changes)


def sha256(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def recorded(request: ActionRequest) -> dict[str, Any]:
    """Give the payload of `action.requested` as it comes back from a line of JSON."""
    said = {name: getattr(request, name) for name in ("action_id", *ACTION_DIMENSIONS)}
    said["fingerprint"] = action_fingerprint(request).as_json()
    back = json.loads(rfc8785.dumps(said))
    assert isinstance(back, dict)
    return back


# --- what it is made of --------------------------------------------------------------------------------


def test_the_digest_is_made_as_written_down() -> None:
    """One SHA-256 a dimension over its canonical JSON, and one over version and dimensions."""
    made = action_fingerprint(action())
    dimensions = {name: sha256(USUAL[name]) for name in ACTION_DIMENSIONS}
    assert made.as_json() == {
        "version": "action-fingerprint-v1",
        "digest": sha256({"version": "action-fingerprint-v1", "dimensions": dimensions}),
        "dimensions": dimensions,
    }


def test_a_digest_known_by_heart() -> None:
    """The bytes under a digest never change between versions of this package."""
    assert action_fingerprint(action(precondition=None)).dimensions["precondition"] == (
        hashlib.sha256(b"null").hexdigest()
    )
    assert action_fingerprint(action()).digest == (
        "d0e17535da98592ecf78a7e4db244d84c2a37e56adb7474210586def0d4b0d40"
    )
    assert (
        call_fingerprint(call()).digest == "b6185c5c92d851a912ad0e9f169b3df4950517d9b0a4cb2bfe4f2d89b89591b4"
    )


def test_the_dimensions_are_the_meaning_and_nothing_else() -> None:
    """The request's own id and its key are no part of what it means."""
    meaning = {field.name for field in fields(ActionRequest)} - {"action_id", "idempotency_key"}
    assert set(ACTION_DIMENSIONS) == meaning
    assert differing_dimensions(
        action_fingerprint(action()), action_fingerprint(action(action_id="a2", idempotency_key="other"))
    ) == ()  # fmt: skip
    assert CALL_DIMENSIONS == ("prompt_hash", "chamber", "requested_model", "rendered_context")
    assert tuple(call_fingerprint(call()).dimensions) == CALL_DIMENSIONS


@pytest.mark.parametrize(
    ("dimension", "other"),
    [
        ("capability", "file.remove"),
        ("instruction", "append one line "),
        ("payload", {"line": "é", "n": 2}),
        ("payload", {"line": "e\u0301", "n": 1}),
        ("payload", {}),
        ("precondition", "state-B"),
        ("precondition", None),
        ("performer", "Agent"),
    ],
)
def test_each_dimension_alone_changes_it_and_is_the_only_one_named(dimension: str, other: Any) -> None:
    """A changed dimension changes the digest, and a mismatch names that dimension and no other."""
    before, after = action_fingerprint(action()), action_fingerprint(action(**{dimension: other}))
    assert before.digest != after.digest
    assert differing_dimensions(before, after) == (dimension,)
    assert differing_dimensions(after, before) == (dimension,)


@pytest.mark.parametrize(
    ("field", "dimension", "other"),
    [
        ("prompt", "prompt_hash", "Say goodbye."),
        ("chamber", "chamber", "large"),
        ("requested_model", "requested_model", "m2"),
        ("context", "rendered_context", {"chapter": 21}),
        ("context", "rendered_context", {}),
    ],
)
def test_each_dimension_of_a_call_alone_is_named(field: str, dimension: str, other: Any) -> None:
    """The same for the four dimensions of a call."""
    before, after = call_fingerprint(call()), call_fingerprint(call(**{field: other}))
    assert before.digest != after.digest
    assert differing_dimensions(before, after) == (dimension,)


def test_several_dimensions_are_named_in_their_fixed_order() -> None:
    """The order is the fingerprint's, not the order of the changes."""
    other = action(performer="x", payload={}, capability="y")
    assert differing_dimensions(action_fingerprint(action()), action_fingerprint(other)) == (
        "capability",
        "payload",
        "performer",
    )


def test_a_mismatch_never_shows_a_value() -> None:
    """I2: what is kept of a dimension is a digest, nothing that can be read back."""
    told = json.dumps(action_fingerprint(action(payload={"line": "a-secret-line"})).as_json())
    assert "a-secret-line" not in told
    assert "file.append" not in told


# --- the same everywhere -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (None, "None", False),
        (0.1 + 0.2, 0.3, False),
        ([1, 2], (1, 2), True),
        ({}, [], False),
        ({"a": None}, {}, False),
    ],
)
def test_what_counts_as_the_same_value(one: Any, other: Any, equal: bool) -> None:
    """One rule for numbers in every form; True is no number, null is not absence of a key."""
    for name, before, after in (
        ("payload", {"v": one}, {"v": other}),
        ("precondition", [one], [other]),
    ):
        first, second = (
            action_fingerprint(action(**{name: before})),
            action_fingerprint(action(**{name: after})),
        )
        assert (first == second) is equal
        assert differing_dimensions(first, second) == (() if equal else (name,))


@pytest.mark.parametrize("supplied", [{}, [], "", 0, False])
def test_an_absent_precondition_is_another_operation_than_an_empty_one(supplied: Any) -> None:
    """Absent is not empty."""
    absent, empty = action(precondition=None), action(precondition=supplied)
    assert differing_dimensions(action_fingerprint(absent), action_fingerprint(empty)) == ("precondition",)


# --- rebuilt from the record ---------------------------------------------------------------------------


@given(payload=st.dictionaries(TEXT, JSON, max_size=4), precondition=JSON, instruction=TEXT)
def test_rebuilt_from_its_record_it_is_the_live_one(
    payload: dict[str, Any], precondition: Any, instruction: str
) -> None:
    """I3: through a line of JSON and back, whatever the values."""
    request = action(payload=payload, precondition=precondition, instruction=instruction)
    assert recorded_action_fingerprint(recorded(request)) == action_fingerprint(request)


@given(context=st.dictionaries(TEXT, JSON, max_size=4), prompt=TEXT)
def test_a_call_rebuilt_from_its_record_is_the_live_one(context: dict[str, Any], prompt: str) -> None:
    """I3: the same for calls."""
    asked = call(context=context, prompt=prompt)
    back = json.loads(rfc8785.dumps(vars_of_call(asked)))
    assert recorded_call_fingerprint(back) == call_fingerprint(asked)


def test_a_stored_digest_is_compared_and_never_believed() -> None:
    """I3: another digest beside a request is a finding; what is rebuilt stays the request's own."""
    honest = recorded(action())
    assert not stored_digest_disagrees(honest, recorded_action_fingerprint(honest))
    forged = honest | {"fingerprint": action_fingerprint(action(instruction="something else")).as_json()}
    rebuilt = recorded_action_fingerprint(forged)
    assert rebuilt == action_fingerprint(action())
    assert stored_digest_disagrees(forged, rebuilt)
    altered = honest | {"instruction": "something else"}
    assert stored_digest_disagrees(altered, recorded_action_fingerprint(altered))
    assert not stored_digest_disagrees({}, rebuilt)


def test_fingerprints_of_different_versions_are_not_compared() -> None:
    """Another version means another way of asking: it differs in `version` and nothing else."""
    ours = action_fingerprint(action())
    newer = Fingerprint(version="action-fingerprint-v2", digest=ours.digest, dimensions=ours.dimensions)
    assert ours.version == ACTION_FINGERPRINT_V1
    assert differing_dimensions(ours, newer) == ("version",)
