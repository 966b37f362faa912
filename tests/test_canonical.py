"""Is there one sequence of bytes for every value that we accept, and a refusal for all others?"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import OrderedDict, namedtuple
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.canonical import DEEPEST, LARGEST_INTEGER, canonical_bytes, digest, encoded, plain
from codeai_lab.errors import RefusedValueError

AWKWARD = '\u20ac\U0001f600\ufb33\u0080ö\r\n\t\b\f\x00\x1f\x7f\u2028"\\/é'
TEXT = st.text(st.one_of(st.sampled_from(AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=8)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-LARGEST_INTEGER, LARGEST_INTEGER),
    st.floats(-LARGEST_INTEGER, LARGEST_INTEGER),
    TEXT,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXT, inner, max_size=5),
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Compare by type too: True, 1 and 1.0 are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Ordinary(Enum):
    ONE = 1


class Text(str):
    __slots__ = ()


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("do not ask")


Pair = namedtuple("Pair", "a b")


# --- the bytes -----------------------------------------------------------------------------------------


@given(VALUES)
def test_the_bytes_are_those_of_rfc_8785(value: Any) -> None:
    """Whatever way is taken inside, the bytes of an accepted value are those of the reference encoder."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(VALUES)
def test_what_is_plain_is_encoded_the_same(value: Any) -> None:
    """The fast way and the reference agree byte for byte on plain values."""
    ready = plain(value)
    assert encoded(ready) == rfc8785.dumps(ready)
    assert digest(value) == hashlib.sha256(rfc8785.dumps(ready)).hexdigest()


@given(VALUES)
def test_live_reopened_and_exported_forms_agree(value: Any) -> None:
    """C4: reading the bytes back gives the plain form, types included."""
    assert same(plain(json.loads(canonical_bytes(value))), plain(value))
    assert same(json.loads(canonical_bytes(value)), plain(value))


@given(VALUES)
def test_a_plain_form_is_its_own_plain_form(value: Any) -> None:
    """Bringing a value to its plain form twice changes nothing more."""
    assert same(plain(plain(value)), plain(value))


@pytest.mark.parametrize("character", [*map(chr, range(0x20)), '"', "\\", "/", "\x7f", "\u0080", "\u2028"])
def test_control_characters_are_escaped_as_the_reference_does(character: str) -> None:
    """In a value and in a key, beside ASCII keys and beside others."""
    for value in ({"k": character}, {character: 1, "a": 2}, {character: 1, "é": 2}, [character]):
        assert canonical_bytes(value) == rfc8785.dumps(value)


def test_keys_are_sorted_by_utf_16_and_not_by_code_point() -> None:
    """The published example: U+1F600 is written with surrogates, so it sorts before U+FB33."""
    unsorted = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_bytes(unsorted))) == ordered
    assert sorted(unsorted) != ordered


def test_the_published_example_of_arrays_and_literals() -> None:
    """The example of RFC 8785, section 3.2.2, without its number beyond 2^53."""
    value = {
        "numbers": [333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\x0f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical_bytes(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
        ("433fffffffffffff", "9007199254740991"),
        ("c33fffffffffffff", "-9007199254740991"),
    ],
)
def test_numbers_are_spelled_as_published(bits: str, text: str) -> None:
    """The number examples of RFC 8785, appendix B, that we accept."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_bytes(number) == text.encode()
    assert canonical_bytes({"é": [number]}) == f'{{"é":[{text}]}}'.encode()


@pytest.mark.parametrize(
    "bits",
    [
        "7fefffffffffffff", "ffefffffffffffff", "4340000000000000", "c340000000000000", "4430000000000000",
        "44b52d02c7e14af5", "44b52d02c7e14af6", "44b52d02c7e14af7", "444b1ae4d6e2ef4e", "444b1ae4d6e2ef4f",
        "444b1ae4d6e2ef50", "7fffffffffffffff", "7ff0000000000000", "fff0000000000000",
    ],
)  # fmt: skip
def test_published_numbers_that_not_every_reader_agrees_on_are_refused(bits: str) -> None:
    """C2: the rest of appendix B lies beyond 2^53 - 1, or is no number."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(RefusedValueError):
        canonical_bytes(number)


# --- what is accepted ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        set(), frozenset(), b"", bytearray(b"x"), datetime(2026, 9, 14, tzinfo=UTC), Decimal(1), 1j, object(),
        Colour.RED, Number.ONE, Ordinary.ONE, Text("x"), OrderedDict(a=1), MappingProxyType({"a": 1}),
        Pair(1, 2), range(3), (n for n in ()), len, dict, ...,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_has_no_json_form_is_refused_by_its_place(value: Any) -> None:
    """C1: nothing is turned into text in silence, and a subclass is not what it looks like."""
    with pytest.raises(RefusedValueError) as refused:
        canonical_bytes({"list": [0, 1, 2, {"key": value}]})
    assert refused.value.where == "$.list[3].key"
    assert refused.value.why == f"{type(value).__name__} is not a JSON value"


@pytest.mark.parametrize("key", [1, 1.0, None, True, (1,), b"x", Colour.RED, Text("x"), Unspeakable()])
def test_a_key_that_is_not_text_is_refused_and_not_shown(key: Any) -> None:
    """C1: an integer key does not become a text key; a key is named by its type alone."""
    with pytest.raises(RefusedValueError) as refused:
        plain({"a": {key: 1}}, "payload")
    assert refused.value.where == "payload.a"
    assert refused.value.why == f"a key is not text but {type(key).__name__}"


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53) + 1, 0, float(2**53 - 1), 2**52 + 0.5])
def test_the_largest_numbers_that_every_reader_agrees_on(number: float) -> None:
    """C2: up to 2^53 - 1, either sign, as int and as float."""
    assert json.loads(canonical_bytes(number)) == number


@pytest.mark.parametrize(
    "number",
    [2**53, -(2**53), 2**53 + 1, 10**400, float(2**53), 1e300, float("nan"), float("inf"), -float("inf")],
)
def test_numbers_beyond_are_refused_by_their_place(number: float) -> None:
    """C2: NaN, infinities and what lies beyond 2^53 - 1."""
    with pytest.raises(RefusedValueError, match=r"^payload\.a\[1\]: "):
        plain({"a": [0, number]}, "payload")


def test_one_rule_for_one_and_one_point_zero() -> None:
    """C2: `1.0` is the number `1` in every form, `-0.0` is `0`, and True is neither."""
    assert canonical_bytes(1.0) == canonical_bytes(1) == b"1"
    assert canonical_bytes(-0.0) == canonical_bytes(0.0) == canonical_bytes(0) == b"0"
    assert type(plain(1.0)) is int
    assert canonical_bytes(True) == b"true"
    assert canonical_bytes([False, 0]) == b"[false,0]"
    assert canonical_bytes(0.1 + 0.2) == b"0.30000000000000004"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("\ud800", "$"),
        (["\udfff"], "$[0]"),
        ({"a": "x\ude00\ud83d"}, "$.a"),
        ({"a": {"\ud83d": 1}}, "$.a (a key)"),
    ],
)
def test_a_lone_surrogate_is_not_text(value: Any, where: str) -> None:
    """C3: text without a UTF-8 form is refused, as a value and as a key, by an error that can be printed."""
    with pytest.raises(RefusedValueError) as refused:
        canonical_bytes(value)
    assert refused.value.where == where
    assert str(refused.value).encode()


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_ends_at_a_hundred_levels() -> None:
    """C3: a hundred containers in one another are taken, one more is refused, lists and objects alike."""
    assert canonical_bytes(nested(DEEPEST)) == b"[" * 100 + b"0" + b"]" * 100
    for deeper in (nested(DEEPEST + 1), {"a": nested(DEEPEST)}):
        with pytest.raises(RefusedValueError, match="nested deeper than 100 levels"):
            canonical_bytes(deeper)


def test_a_value_that_holds_itself_is_refused_in_few_words() -> None:
    """C3: no endless descent, and no endless message."""
    ring: dict[str, Any] = {}
    ring["next"] = {"again": [ring]}
    with pytest.raises(RefusedValueError, match="holds itself") as refused:
        plain(ring)
    assert len(refused.value.where) <= 60


def test_the_plain_form_shares_nothing_that_can_change() -> None:
    """A copy is a copy: what is done to the original afterwards changes nothing."""
    inner = [1, 2]
    original = {"a": inner, "b": (inner,), "c": {"d": inner}}
    copy = plain(original)
    inner.append(3)
    original["e"] = 1
    assert copy == {"a": [1, 2], "b": [[1, 2]], "c": {"d": [1, 2]}}


def test_ten_megabytes_of_text_have_a_form() -> None:
    """How long a line may be is the ledger's rule, not this one's."""
    assert len(canonical_bytes("x" * 10_000_000)) == 10_000_002
