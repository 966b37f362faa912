"""The laws of decide.memory: what a memory is made of, and what hangs on it."""

from __future__ import annotations

from typing import Any

import pytest

from codeai_lab.decide.memory import (
    Basis,
    Candidate,
    Memory,
    MemoryLine,
    Source,
    SourceKind,
    foundations,
    project_memories,
    provenance,
    reached_by_deleting,
    shown,
)
from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.lessons.memory_offered import FETCHED, SPOKEN, THOUGHT, concluded, remembered, said
from codeai_lab.records import Event


def line(name: str, **other: Any) -> MemoryLine:
    on = other.pop("rests_on", ())
    terms = said("x", derived_from=on).terms()
    return MemoryLine(memory_id=name, terms=terms, text_digest=name, recorded_at_us=1, **other)


def event(seq: int, kind: str, **payload: Any) -> Event:
    return Event(
        seq=seq, event_id=f"e{seq}", run_id="r", stream_id="memories/reader-7", kind=kind, actor_id="a",
        idempotency_key=None, recorded_at_us=seq, causation_id=None, payload=payload,
    )  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"statement": " "}, {"topic": ""}, {"value": ""}, {"owner": ""}, {"statement": None},
        {"confidence": 1.1}, {"confidence": -0.1}, {"confidence": True}, {"confidence": float("nan")},
    ],
)  # fmt: skip
def test_a_claim_without_a_name_or_a_sound_confidence_is_refused(changes: dict[str, Any]) -> None:
    """ME1: owner, topic, value and statement are text; a confidence lies between 0 and 1."""
    usual = {"statement": "I prefer quiet films.", "topic": "film.style", "value": "quiet"}
    with pytest.raises(RefusedRequestError):
        said(**{**usual, **changes})


def test_words_without_a_json_form_are_refused() -> None:
    """ME1: a lone surrogate is not text."""
    with pytest.raises(RefusedValueError):
        said("\ud800")


@pytest.mark.parametrize("changes", [{"who": ""}, {"ids": ()}, {"ids": ("",)}, {"needs": ""}])
def test_a_source_says_who_what_and_what_reading_it_takes(changes: dict[str, Any]) -> None:
    """A source without a name, an id or a capability is none."""
    usual: dict[str, Any] = {"kind": SourceKind.READER, "who": "r", "ids": ("s/1",), "needs": "talks.read"}
    with pytest.raises(RefusedRequestError):
        Source(**{**usual, **changes})


def test_the_terms_hold_none_of_the_words() -> None:
    """ME4: topic, value and statement are the words, and stand nowhere among the terms."""
    claim = said("a statement", topic="a topic", value="a value")
    assert claim.words() == {"topic": "a topic", "value": "a value", "statement": "a statement"}
    assert not any(word in repr(claim.terms()) for word in claim.words().values())
    assert claim.words().keys() | claim.terms().keys() == set(Candidate.__slots__)


def test_terms_and_words_make_the_memory_again() -> None:
    """What the ledger and the file hold of a claim is, together, the claim."""
    claim = concluded("Slow ones.", sources=(SPOKEN, THOUGHT), derived_from=("m1",), confidence=0.25)
    payload = {"memory_id": "m2", "terms": claim.terms(), "text_digest": "d", "supersedes": None}
    kept = project_memories([event(7, "memory.recorded", **payload)])["m2"].with_words(claim.words())
    assert {name: getattr(kept, name) for name in Candidate.__slots__} == {
        name: getattr(claim, name) for name in Candidate.__slots__
    }
    assert (kept.memory_id, kept.recorded_at_us) == ("m2", 7)


def test_the_projection_follows_correction_and_deletion() -> None:
    """A corrected memory names its successor, a deleted one says so; refusals and uses change nothing."""
    terms = said("x").terms()
    new = {"memory_id": "m2", "terms": terms, "text_digest": "d2", "supersedes": "m1"}
    lines = project_memories(
        [
            event(1, "memory.recorded", memory_id="m1", terms=terms, text_digest="d1", supersedes=None),
            event(2, "memory.refused", memory_id="p1", gate="kind", reason="permission", sources=[]),
            event(3, "memory.recorded", **new),
            event(4, "memory.corrected", memory_id="m1", superseded_by="m2"),
            event(5, "memory.deleted", memory_id="m2", text_digest="d2", because_of="m2"),
        ]
    )
    assert list(lines) == ["m1", "m2"]
    assert (lines["m1"].superseded_by, lines["m1"].is_deleted) == ("m2", False)
    assert (lines["m2"].supersedes, lines["m2"].is_deleted) == ("m1", True)


def known(*memories: Memory) -> dict[str, Memory]:
    return {memory.memory_id: memory for memory in memories}


def test_provenance_goes_through_every_summary_between() -> None:
    """ME2: the sources of a claim are those of what it was made from, at any distance, in a ring too."""
    fact = remembered("m1", concluded("x", sources=(FETCHED,), derived_from=("m3",)))
    middle = remembered("m2", concluded("y", sources=(THOUGHT,), derived_from=("m1",)))
    ring = remembered("m3", concluded("z", sources=(SPOKEN,), derived_from=("m2", "gone")))
    claim = concluded("top", derived_from=("m3",), sources=(THOUGHT,))
    assert provenance(claim, known(fact, middle, ring)) == (THOUGHT, SPOKEN, FETCHED)
    assert [one.memory_id for one in foundations(claim, known(fact, middle, ring))] == ["m3", "m2", "m1"]


def test_deleting_reaches_all_versions_and_what_cites_any_of_them() -> None:
    """ME3: the chain of corrections goes in both directions, and everything derived goes, at any distance."""
    lines = {
        one.memory_id: one
        for one in (
            line("m1", superseded_by="m2"),
            line("m2", supersedes="m1", superseded_by="m3"),
            line("m3", supersedes="m2"),
            line("s1", rests_on=("m1",)),
            line("s2", rests_on=("s1", "other")),
            line("s3", supersedes="s2x", rests_on=("other",)),
            line("s2x", rests_on=("s2",), superseded_by="s3"),
            line("other"),
            line("gone", rests_on=("m1",), is_deleted=True),
        )
    }
    for version in ("m1", "m2", "m3"):
        reached = reached_by_deleting(version, lines)
        assert reached.versions == ("m1", "m2", "m3")
        assert set(reached.derived) == {"s1", "s2", "s2x", "s3"}
    assert reached_by_deleting("s1", lines).versions == ("s1",)
    assert set(reached_by_deleting("other", lines).all) == {"other", "s2", "s2x", "s3"}


def test_an_owner_sees_what_became_of_each_memory() -> None:
    """Current, corrected, deleted and lost words are told apart, and what is gone shows no statement."""
    claim = remembered("m1", said("I prefer quiet films."))
    assert shown(line("m1"), claim)["statement"] == "I prefer quiet films."
    states = [
        shown(line("m1"), claim)["state"],
        shown(line("m1", superseded_by="m2"), claim)["state"],
        shown(line("m1", is_deleted=True), None)["state"],
        shown(line("m1"), None)["state"],
    ]
    assert states == ["current", "corrected by m2", "deleted", "words lost"]
    assert shown(line("m1"), None)["statement"] is None
    assert shown(line("m1"), claim)["basis"] == Basis.STATED
