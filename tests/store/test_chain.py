"""The laws of store.chain: where a journal ends, cut at any byte, and which line is named as damaged."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ledger_files import Made, flipped

from codeai_lab.errors import LedgerDamagedError, LedgerError, LedgerTooNewError, NotALedgerError
from codeai_lab.store.chain import check_lines, find_tail, read_batches, read_creation, read_lines
from codeai_lab.store.journal import settle_end
from codeai_lab.store.lines import line_digest


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "j"


def check(journal: Path) -> None:
    find_tail(journal)
    list(check_lines(journal))


def rechained(journal: bytes, change: dict[int, dict[str, Any]]) -> bytes:
    """Change members of lines and write the chain anew, as no accident does."""
    lines, prev = [], None
    for number, line in enumerate(journal.splitlines()):
        members = json.loads(line) | change.get(number, {})
        if prev is not None:
            members["prev"] = line_digest(prev)
        prev = json.dumps(members, separators=(",", ":"), sort_keys=True).encode()
        lines.append(prev + b"\n")
    return b"".join(lines)


def test_a_whole_journal_is_read_whole(journal: Path, made: Made) -> None:
    """H1: every line is given, in order, by both ways of reading, and the end is the file's."""
    journal.write_bytes(made.journal)
    raws = [raw for raw, _ in read_lines(journal)]
    assert b"".join(raw + b"\n" for raw in raws) == made.journal[made.line_ends[0] :]
    assert [len(lines) for _, lines in read_batches(journal)] == [1, 2, 1, 2]
    tail = find_tail(journal)
    assert tail.end.size == tail.file_size == len(made.journal)
    assert tail.end == list(check_lines(journal))[-1]
    assert tail.ledger_id == "L1"


def test_reading_may_begin_and_end_at_any_batch(journal: Path, made: Made) -> None:
    """H1: from one end to another, exactly the batches between them are given."""
    journal.write_bytes(made.journal)
    ends = [end for end, _ in read_batches(journal)]
    assert [end.size for end in ends] == made.batch_ends[1:]
    for first in range(len(ends)):
        for last in range(first, len(ends)):
            between = list(read_batches(journal, after=ends[first], until=ends[last]))
            assert [end for end, _ in between] == ends[first + 1 : last + 1]


def test_cut_at_every_byte_it_ends_with_the_last_complete_batch(journal: Path, made: Made) -> None:
    """H2: wherever the file is cut in its last batches, its end is the last complete batch that is left."""
    for cut in range(made.batch_ends[-3], len(made.journal) + 1):
        journal.write_bytes(made.journal[:cut])
        expected = max(end for end in made.batch_ends if end <= cut)
        tail = find_tail(journal)
        assert (tail.end.size, tail.file_size) == (expected, cut)
        assert sum(len(raw) + 1 for raw, _ in read_lines(journal)) == expected - made.line_ends[0]


def test_what_is_torn_off_is_kept_at_every_byte(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J4: settling cuts the file back to its last complete batch and keeps the rest in a file of its own."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for cut in range(made.batch_ends[-2], len(made.journal) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        journal = folder / "j"
        journal.write_bytes(made.journal[:cut])
        aside = settle_end(journal, find_tail(journal))
        kept = journal.read_bytes()
        assert kept in (made.journal, made.journal[: made.batch_ends[-2]])
        assert kept + (b"" if aside is None else aside.read_bytes()) == made.journal[:cut]
        assert len(list(folder.iterdir())) == (1 if aside is None else 2)


@pytest.mark.parametrize(
    "rest", [b"\0" * 4096, b"\xff\xfe", b'{"seq":', b" "], ids=["zeros", "noise", "json", "space"]
)
def test_bytes_that_no_newline_finished_are_a_torn_end(journal: Path, made: Made, rest: bytes) -> None:
    """H2: whatever follows the last newline was never acknowledged."""
    journal.write_bytes(made.journal + rest)
    assert find_tail(journal).end.size == len(made.journal)
    assert len(list(read_lines(journal))) == 6


@pytest.mark.parametrize(("bits", "step"), [(0x01, 1), (0x80, 7)])
def test_a_flipped_byte_is_named_by_its_line(journal: Path, made: Made, bits: int, step: int) -> None:
    """H3: any byte flipped in a line with a successor is found, and named by its line in the file from 1."""
    starts = [0, *made.line_ends]
    for line, (start, end) in enumerate(pairwise(starts[:-1])):
        for place in [*range(start, end, step), end - 1]:
            journal.write_bytes(flipped(made.journal, place, bits))
            with pytest.raises(LedgerError) as refused:
                check(journal)
            error = refused.value
            if isinstance(error, LedgerDamagedError):
                assert error.line == line, (place, str(error))
                of = f"event {line}" if line else "the line of creation"
                assert str(error).startswith(f"Line {line + 1} of the journal file, {of}, ")
            else:
                assert line == 0
                assert isinstance(error, (NotALedgerError, LedgerTooNewError))


def test_a_line_that_was_edited_is_named_and_not_its_neighbour(journal: Path, made: Made) -> None:
    """H3: a line whose text, or whose `prev`, is another one altogether is told from the line before it."""
    lines = made.journal.splitlines(keepends=True)
    text, prev = lines[3].replace(b'"tester"', b'"nobody"'), lines[3].replace(b'"prev":"', b'"prev":"x', 1)
    for edited in (text, prev, prev.replace(b'"tester"', b'"nobody"')):
        journal.write_bytes(b"".join([*lines[:3], edited, *lines[4:]]))
        with pytest.raises(LedgerDamagedError) as refused:
            check(journal)
        assert refused.value.line == 3


def test_a_flipped_byte_in_the_last_line_is_found_where_the_chain_shows_it(journal: Path, made: Made) -> None:
    """H3: in a last line nobody vouches for, a changed `prev` names that line, from both ends."""
    place = made.journal.rindex(b'"prev":"') + len(b'"prev":"')
    for offset in range(64):
        journal.write_bytes(flipped(made.journal, place + offset))
        for reading in (find_tail, lambda path: list(check_lines(path))):
            with pytest.raises(LedgerDamagedError) as refused:
                reading(journal)
            assert refused.value.line == 6


def test_a_line_that_is_gone_or_there_twice_is_named(journal: Path, made: Made) -> None:
    """H3: with a line left out, doubled, or two exchanged, the first place that does not fit is named."""
    lines = made.journal.splitlines(keepends=True)
    for broken, named in (
        ([*lines[:3], *lines[4:]], 3),
        ([*lines[:4], *lines[3:]], 4),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], 2),
        ([lines[0], *lines[2:]], 1),
        ([*lines[:4], b"\n", *lines[4:]], 4),
    ):
        journal.write_bytes(b"".join(broken))
        with pytest.raises(LedgerDamagedError) as refused:
            list(check_lines(journal))
        assert refused.value.line == named


def test_a_batch_must_be_complete_before_the_next_begins(journal: Path, made: Made) -> None:
    """H1: lines whose chain is whole and whose batches are not are refused, by both ways of reading."""
    for change, named in (
        ({2: {"batch": [1, 3]}}, 3),
        ({3: {"batch": [1, 2]}}, 3),
        ({4: {"batch": [2, 2]}}, 4),
        ({1: {"batch": [1, 2]}}, 2),
    ):
        journal.write_bytes(rechained(made.journal, change))
        with pytest.raises(LedgerDamagedError, match="batch") as refused:
            list(check_lines(journal))
        assert refused.value.line == named
    journal.write_bytes(
        rechained(made.journal, {4: {"batch": [1, 2]}, 5: {"batch": [1, 2]}, 6: {"batch": [1, 2]}})
    )
    with pytest.raises(LedgerDamagedError) as refused:
        find_tail(journal)
    assert refused.value.line == 5


def test_half_a_batch_at_the_end_must_be_its_first_half(journal: Path, made: Made) -> None:
    """H2, H3: lines 1 and 2 of a batch of 3 are a torn end; line 2 alone is damage; nothing is cut off."""
    halved = rechained(made.journal, {5: {"batch": [1, 3]}, 6: {"batch": [2, 3]}})
    journal.write_bytes(halved)
    assert find_tail(journal).end.seq == 4
    lines = halved.splitlines(keepends=True)
    for kept in ([*lines[:5], lines[6]], [lines[0], lines[6]]):
        journal.write_bytes(b"".join(kept))
        with pytest.raises(LedgerDamagedError) as refused:
            find_tail(journal)
        assert refused.value.line == len(kept) - 1


@pytest.mark.parametrize(
    "change",
    [
        {"seq": "4"},
        {"seq": True},
        {"event_id": 4},
        {"idempotency_key": 4},
        {"payload": []},
        {"recorded_at_us": 1.5},
        {"batch": [1.0, 1]},
        {"batch": [0, 1]},
        {"batch": [1]},
        {"extra": 1},
    ],
)
def test_a_line_of_other_types_is_no_event(journal: Path, made: Made, change: dict[str, object]) -> None:
    """H3: a line whose chain is whole and whose members are not those of an event is named."""
    journal.write_bytes(rechained(made.journal, {4: change}))
    with pytest.raises(LedgerDamagedError) as refused:
        list(check_lines(journal))
    assert refused.value.line == 4


def test_a_finished_line_of_noise_is_damage_and_not_a_torn_end(journal: Path, made: Made) -> None:
    """H3: a last line that ends in a newline may have been acknowledged; it is refused by its number."""
    for noise in (b"\n", b"\0\0\n", b"[1]\n", b"\xff\n", b"[" * 200_000 + b"\n"):
        journal.write_bytes(made.journal + noise)
        with pytest.raises(LedgerDamagedError) as refused:
            find_tail(journal)
        assert refused.value.line == 7


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"text\n", b'{"kind":"ledger.created"}\n', b"\0" * 3000000]
)
def test_what_does_not_begin_with_line_0_is_not_a_ledger(journal: Path, content: bytes) -> None:
    """H3: a file that begins with something else is not a ledger."""
    journal.write_bytes(content)
    with pytest.raises(NotALedgerError, match="not a ledger of codeai_lab"):
        find_tail(journal)


def test_a_newer_version_is_left_unread(journal: Path, made: Made) -> None:
    """Line 0 of a newer version is refused, whatever follows."""
    journal.write_bytes(made.journal.replace(b'"schema_version":1', b'"schema_version":2', 1) + b"anything\n")
    with pytest.raises(LedgerTooNewError, match="schema version 2 and this codeai_lab knows 1"):
        find_tail(journal)
    assert read_creation(journal).endswith(b'"seq":0}')
