"""Is every request that comes with a key, or without one, given the one answer that it is owed?"""

from __future__ import annotations

import string
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.idempotency_key import (
    REFUSALS,
    Answer,
    Kept,
    Result,
    Rule,
    judge,
    keeps,
    key_field,
    read_key,
)
from codeai_lab.errors import RefusedRequestError

ADDED, NOT_ADDED = Result(status=201, body={"entry": 1}), Result(status=500, body=None)
UNDER_WAY, DONE, FAILED = (
    Kept(fingerprint="f"), Kept(fingerprint="f", result=ADDED), Kept(fingerprint="f", result=NOT_ADDED),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kept", "key", "fingerprint", "required", "answer"),
    [
        (None, None, "f", True, Answer.KEY_MISSING),
        (None, None, "f", False, Answer.RUN),
        (None, "k", "f", True, Answer.RUN),
        (None, "k", "f", False, Answer.RUN),
        (UNDER_WAY, "k", "f", True, Answer.OUTSTANDING),
        (UNDER_WAY, "k", "g", True, Answer.KEY_REUSED),
        (DONE, "k", "f", True, Answer.REPLAY),
        (DONE, "k", "f", False, Answer.REPLAY),
        (DONE, "k", "g", True, Answer.KEY_REUSED),
        (FAILED, "k", "f", True, Answer.REPLAY),
        (FAILED, "k", "g", True, Answer.KEY_REUSED),
    ],
)
def test_each_request_has_one_answer(
    kept: Kept | None, key: str | None, fingerprint: str, required: bool, answer: Answer
) -> None:
    """IK1: the table, line by line."""
    assert judge(kept, key=key, fingerprint=fingerprint, key_required=required) is answer


def test_nothing_runs_beside_or_after_what_is_kept() -> None:
    """IK2: whatever is kept under a key, no request with it runs."""
    for kept, fingerprint, required in product((UNDER_WAY, DONE, FAILED), "fg", (True, False)):
        assert judge(kept, key="k", fingerprint=fingerprint, key_required=required) is not Answer.RUN


def test_the_draft_has_a_status_for_each_refusal() -> None:
    """Missing, another payload, concurrent: 400, 422, 409, and no others."""
    assert dict(REFUSALS) == {Answer.KEY_MISSING: 400, Answer.KEY_REUSED: 422, Answer.OUTSTANDING: 409}


@pytest.mark.parametrize("status", [200, 201, 204, 299, 300, 400, 404, 500, 503])
def test_the_rules_differ_in_errors_alone(status: int) -> None:
    """The draft keeps success and error alike; the chapter's rule keeps the successful result."""
    result = Result(status=status, body=None)
    assert keeps(Rule.DRAFT, result)
    assert keeps(Rule.CHAPTER, result) is (200 <= status < 300)


def test_an_error_that_is_not_kept_binds_nobody() -> None:
    """IK3: under the chapter's rule the key is free after an error, for another payload too."""
    kept = FAILED if keeps(Rule.CHAPTER, NOT_ADDED) else None
    assert judge(kept, key="k", fingerprint="g") is Answer.RUN


@given(st.text(st.sampled_from([chr(code) for code in range(0x20, 0x7F)]), min_size=1, max_size=255))
def test_a_key_that_is_written_is_read_again(key: str) -> None:
    """IK4: quotes and backslashes too."""
    assert read_key([key_field(key)]) == key


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('"request-42/add-eternal-sunshine"', "request-42/add-eternal-sunshine"),
        ('  "k"  ', "k"),
        ('" k "', " k "),
        (r'"a\"b\\c"', 'a"b\\c'),
        ('"' + "k" * 255 + '"', "k" * 255),
    ],
)
def test_a_field_is_read_as_an_sf_string(line: str, key: str) -> None:
    """IK4: what stands between the quotes is the key."""
    assert read_key([line]) == key


@pytest.mark.parametrize(
    "line",
    [
        "", "k", '"', '""', '"k', 'k"', r'"\k"', '"k\\"', '"k";a=1', '"k", "l"', '"\t"', '"\x7f"', '"\xe9"',
        "'k'", ":aw==:", '"' + "k" * 256 + '"',
    ],
)  # fmt: skip
def test_what_is_no_sf_string_is_refused(line: str) -> None:
    """IK4: no quotes, an unknown escape, parameters, a list, a control character, too long, empty."""
    with pytest.raises(RefusedRequestError, match="double quotes"):
        read_key([line])


def test_no_field_is_no_key_and_two_are_refused() -> None:
    """IK4: several header fields are not one."""
    assert read_key([]) is None
    with pytest.raises(RefusedRequestError, match="not several"):
        read_key(['"k"', '"k"'])


@pytest.mark.parametrize("key", ["", "k\n", "k\r\nX: y", "é", "\0", "k" * 256])
def test_a_key_that_no_field_can_carry_is_refused_before_it_is_sent(key: str) -> None:
    """IK4: nothing is slipped into a header."""
    with pytest.raises(RefusedRequestError):
        key_field(key)


def test_every_printable_character_but_two_stands_for_itself() -> None:
    """RFC 8941: only the quote and the backslash are escaped."""
    plain = "".join(character for character in string.printable[:95] if character not in '"\\')
    assert key_field(plain) == f'"{plain}"'
