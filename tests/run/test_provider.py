"""Does the provider count what it was asked, and are an answer's bytes kept and read without a doubt?"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeai_lab.records import ActionStatus, CallRequest
from codeai_lab.run.provider import (
    SyntheticProvider,
    body_hash,
    interpret,
    kept,
    kept_bytes,
    receipts,
    request_body,
)


def call(**changes: str) -> CallRequest:
    usual = {"call_id": "c", "idempotency_key": "k", "prompt": "Say.", "chamber": "a", "requested_model": "m"}
    return CallRequest(**usual | changes, context={"n": 22})


def test_a_receipt_is_there_for_every_request_and_a_key_is_not_kept_from_being_asked_twice(
    tmp_path: Path,
) -> None:
    """PV1, PV3: two requests with one key are two receipts and two equal answers."""
    log = tmp_path / "receipts.jsonl"
    provider = SyntheticProvider(log)
    assert receipts(log) == []
    answers = {provider.send(b"ask", key="k") for _ in range(2)}
    assert answers == {b'{"finish":"stop","text":"a response to 3 bytes"}'}
    assert receipts(log) == [
        {"n": 1, "key": "k", "request_body_hash": body_hash(b"ask")},
        {"n": 2, "key": "k", "request_body_hash": body_hash(b"ask")},
    ]


def test_a_held_request_leaves_a_receipt_and_no_answer(tmp_path: Path) -> None:
    """PV1: only the first ones are held, and a provider that starts again goes on counting."""
    log = tmp_path / "receipts.jsonl"
    with pytest.raises(ConnectionError):
        SyntheticProvider(log, hold=1).send(b"ask", key="k")
    assert len(receipts(log)) == 1
    assert SyntheticProvider(log, hold=1).send(b"ask", key="k")
    assert [receipt["n"] for receipt in receipts(log)] == [1, 2]


def test_the_request_body_is_what_is_asked_and_not_who_asks() -> None:
    """Ids and keys are no part of the bytes; prompt, chamber, model and context are."""
    own = request_body(call())
    assert own == b'{"chamber":"a","context":{"n":22},"model":"m","prompt":"Say."}'
    assert request_body(call(call_id="d", idempotency_key="other")) == own
    others = {request_body(call(**{name: "x"})) for name in ("prompt", "chamber", "requested_model")}
    assert len({*others, own}) == 4


@pytest.mark.parametrize(
    "reply", [b"", b'{"finish":"stop"}', "gr\u00fc\u00df".encode(), b"\xff\x00\xfe", bytes(range(256))]
)
def test_bytes_are_kept_whole(reply: bytes) -> None:
    """Text as text, the rest in base64; what comes back is what was sent."""
    assert kept_bytes(kept(reply)) == reply


def test_text_is_kept_readable() -> None:
    """A reader of the ledger sees the words."""
    assert kept(b"words") == {"encoding": "utf-8", "body": "words"}
    assert kept(b"\xff") == {"encoding": "base64", "body": "/w=="}


def test_a_finished_answer_is_a_response() -> None:
    """Its text, and nothing else of it."""
    read = interpret(b'{"finish":"stop","text":"yes","more":1}')
    assert (read.status, read.response, read.error) == (ActionStatus.SUCCEEDED, {"text": "yes"}, None)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", "the answer is not JSON"),
        (b"\xff", "the answer is not JSON"),
        (b'{"finish":"stop","text":NaN}', "the answer is not JSON"),
        (b"[" * 100_000, "the answer is not JSON"),
        (b"[]", "the answer is not finished"),
        (b'{"finish":"length","text":"cut"}', "the answer is not finished"),
        (b'{"finish":"stop","text":1}', "the answer is not finished"),
    ],
)
def test_any_other_answer_is_a_failure_with_a_reason(reply: bytes, error: str) -> None:
    """Bytes that say nothing are a fact about the answer, not an exception."""
    read = interpret(reply)
    assert (read.status, read.response, read.error) == (ActionStatus.FAILED, None, error)
