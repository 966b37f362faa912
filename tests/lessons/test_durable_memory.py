"""The laws of lessons.durable_memory: a table of situations, each with one right answer."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from codeai_lab.decide.recall import Use
from codeai_lab.lessons.durable_memory import (
    COLUMNS,
    SITUATIONS,
    expected,
    play,
    rows,
    unexpected,
)
from codeai_lab.lessons.memory_asked import ASKED
from codeai_lab.lessons.memory_offered import OFFERED, Offered


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the progress of that play was told."""
    return []


@pytest.fixture(scope="module")
def played(told: list[str]) -> list[dict[str, Any]]:
    """The rows of one play."""
    return rows(lambda case, done, of: told.append(f"{case} {done}/{of}"))


@pytest.mark.parametrize("place", range(len(SITUATIONS)), ids=[one.case for one in SITUATIONS])
def test_each_situation_has_the_answer_that_was_written_by_hand(
    place: int, played: list[dict[str, Any]]
) -> None:
    """DM1: answer, reason, gate, value and options."""
    row, right = played[place], expected()[place]
    assert {name: row[name] for name in right} == right


def test_the_table_is_the_same_on_every_play_and_plain(played: list[dict[str, Any]], told: list[str]) -> None:
    """DM2: two plays, the second one situation by situation, give the same bytes, in the promised columns."""
    first = [dict(row) for row in played]
    assert json.dumps(first) == json.dumps([play(one) for one in SITUATIONS])
    assert {tuple(row) for row in first} == {COLUMNS}
    assert told[0] == f"{first[0]['case']} 0/{len(SITUATIONS)}"
    assert len(told) == len(SITUATIONS)
    assert unexpected(first) == []
    first[0]["answer"] = "wrong"
    assert len(unexpected(first)) == 1


def test_the_table_is_large_and_every_answer_occurs() -> None:
    """Each situation has a name of its own, and no answer of the gate or of a recall goes unshown."""
    names = Counter(one.case for one in SITUATIONS)
    assert max(names.values()) == 1
    assert len(names) >= 24
    assert {one.answer for one in ASKED} == {*map(str, Use), "not_mentioned"}
    assert {one.gate for one in OFFERED} == {None, "provenance", "kind", "terms", "wording"}


def test_every_poisoning_is_refused() -> None:
    """Whatever holds a fetched text is refused, except for one fact about one film."""
    fetched = [one for one in SITUATIONS if isinstance(one, Offered) and _is_fetched(one)]
    assert [one.case for one in fetched if one.answer == "kept"] == ["fact-about-a-film"]
    assert len(fetched) >= 10


def _is_fetched(one: Offered) -> bool:
    sources: list[Any] = [*one.candidate.sources, *(source for m in one.known for source in m.sources)]
    return any(source.kind == "retrieved" for source in sources)
