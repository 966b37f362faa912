"""The laws of store.lines: an event, a line, a row and back again, to the same bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_contract import draft, names, same, values

from codeai_lab.errors import LedgerDamagedError, RefusedValueError
from codeai_lab.store.lines import (
    LONGEST_LINE,
    Line,
    decode_creation,
    decode_line,
    decode_row,
    encode_batch,
    encode_creation,
    encode_line,
    encode_row,
    place,
)

events = st.builds(
    lambda payload, name, key, at: place(
        [draft(name, key=key, stream=name, payload=payload, recorded_at_us=at)], after_seq=6
    )[0],
    st.dictionaries(names, values, max_size=4),
    names,
    st.none() | names,
    st.integers(0, 2**53 - 1),
)


@settings(max_examples=60)
@given(events)
def test_a_line_is_canonical_json_and_comes_back_as_it_was(event: Any) -> None:
    """L2: a line is RFC 8785, decodes to the same event, types too, and encodes to the same bytes again."""
    line = Line(event=event, batch=(1, 1), prev="0" * 64)
    raw = encode_line(line)
    assert raw == rfc8785.dumps(json.loads(raw))
    assert b"\n" not in raw
    decoded = decode_line(raw, number=7)
    assert decoded == line
    assert same(decoded.event.payload, event.payload)
    assert encode_line(decoded) == raw


@settings(max_examples=60)
@given(events)
def test_a_row_of_the_index_gives_the_line_back(event: Any) -> None:
    """L2: what the index keeps of a line is enough to write the line again, to the same bytes."""
    line = Line(event=event, batch=(2, 3), prev="f" * 64)
    assert encode_line(decode_row(encode_row(line))) == encode_line(line)


def test_a_batch_is_numbered_and_chained_over_raw_bytes() -> None:
    """L1: each `prev` is the SHA-256 of the line before, without its newline; batches count from 1."""
    lines, raws, last = encode_batch(place([draft(n) for n in "abc"], after_seq=4), prev="0" * 64)
    assert [line.event.seq for line in lines] == [5, 6, 7]
    assert [line.batch for line in lines] == [(1, 3), (2, 3), (3, 3)]
    digests = [hashlib.sha256(raw).hexdigest() for raw in raws]
    assert [line.prev for line in lines] == ["0" * 64, *digests[:2]]
    assert last == digests[2]


def test_a_line_may_be_as_long_as_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """L3: exactly LONGEST_LINE bytes are taken; one more is refused, saying how many and what to do."""
    short = encode_line(
        Line(event=place([draft("a", payload={"x": ""})], after_seq=0)[0], batch=(1, 1), prev="0" * 64)
    )
    room = LONGEST_LINE - len(short)
    fits = place([draft("a", payload={"x": "y" * room})], after_seq=0)
    _, (raw,), _ = encode_batch(fits, prev="0" * 64)
    assert len(raw) == LONGEST_LINE
    with pytest.raises(
        RefusedValueError, match=r"1,048,577 bytes and at most 1,048,576 are taken; keep the bulk"
    ):
        encode_batch(place([draft("a", payload={"x": "y" * (room + 1)})], after_seq=0), prev="0" * 64)


def test_a_line_is_named_where_its_place_is_known() -> None:
    """L4: what is no event is refused by the number of its line; a line in another's place too."""
    _, (raw,), _ = encode_batch(place([draft("a")], after_seq=4), prev="0" * 64)
    assert decode_line(raw, number=5) == decode_line(raw)
    for number in (4, 6):
        with pytest.raises(LedgerDamagedError, match=f"Line {number} of the journal") as refused:
            decode_line(raw, number=number)
        assert refused.value.line == number


def test_line_0_names_the_ledger() -> None:
    """Line 0 is canonical JSON and gives the name back, any text."""
    for name in ("L1", "", "日本 😀", "\0"):
        raw = encode_creation(ledger_id=name, recorded_at_us=5)
        assert raw == rfc8785.dumps(json.loads(raw))
        assert decode_creation(raw) == name
