"""Which candidate becomes evidence, and what is recommended."""

from __future__ import annotations

from typing import Any

import pytest

from codeai_lab.decide.acceptance import (
    Acceptance,
    contradiction,
    judge_candidate,
    judge_comparison,
    judge_quotes,
    mentions,
    recommended,
    scores,
)
from codeai_lab.decide.plan import Route
from codeai_lab.decide.states import Criterion, Evidence, Sought

VECTOR = Route(tool="vector_search", provider="primary")
LEXICAL = Route(tool="lexical_search", provider="primary")
MIRROR = Route(tool="vector_search", provider="mirror")
OLD = Acceptance(method="vector_search", provider="primary", minimum=0.5)
NEW = Acceptance(method="lexical_search", provider="primary", minimum=0.1)
FALLBACK = {"new": {"tool": "lexical_search", "provider": "primary"}}


def judge(**changes: Any) -> tuple[bool, str | None]:
    """Judge a candidate that lexical search found in the place of vector search."""
    usual = {"score": 0.2, "found_by": LEXICAL, "planned": VECTOR, "acceptance": NEW, "fallback": FALLBACK}
    judged = judge_candidate(**{**usual, **changes})
    return judged.accepted, judged.field


def test_a_fallback_is_accepted_under_its_own_threshold() -> None:
    """Another path is accepted where it is recorded and judged by the threshold of that path."""
    assert judge() == (True, None)


def test_a_fallback_under_the_old_threshold_is_refused_by_the_field() -> None:
    """A score of one search says nothing by the threshold of another, however high it is."""
    assert judge(acceptance=OLD, score=0.99) == (False, "acceptance_threshold")


def test_a_provider_switch_under_the_old_threshold_is_refused_by_the_field() -> None:
    """Another provider of the same search is another path."""
    switched = {"new": {"tool": "vector_search", "provider": "mirror"}}
    assert judge(found_by=MIRROR, fallback=switched, acceptance=OLD) == (False, "acceptance_threshold")


@pytest.mark.parametrize("fallback", [None, {"new": {"tool": "vector_search", "provider": "mirror"}}])
def test_another_path_without_its_fallback_on_record_is_refused(fallback: dict[str, Any] | None) -> None:
    """Nobody takes another path in silence, and the record of another one does not do."""
    assert judge(fallback=fallback) == (False, "fallback")


def test_a_score_below_the_threshold_is_refused() -> None:
    """The threshold counts."""
    assert judge(score=0.05) == (False, "score")
    assert judge(found_by=VECTOR, acceptance=OLD, fallback=None, score=0.5) == (True, None)


RECORD = {
    "film_id": "moon",
    "title": "Moon",
    "summary": "He finds his own memories in another man.",
    "themes": ["identity"],
    "passages": [{"passage_id": "film:moon#1", "text": "He finds his own memories in another man."}],
}


@pytest.mark.parametrize(
    ("changes", "about", "title", "field"),
    [
        ({}, ("memor*",), None, None),
        ({}, ("identity",), "Moon", None),
        ({"film_id": "heat"}, ("memor*",), None, "film_id"),
        ({}, ("memor*",), "Ex Machina", "title"),
        ({}, ("robot", "machine*"), None, "summary"),
        ({"summary": "A bank is robbed.", "themes": []}, ("memor*",), None, "summary"),
    ],
)
def test_a_record_about_something_else_contradicts_its_candidate(
    changes: dict[str, Any], about: tuple[str, ...], title: str | None, field: str | None
) -> None:
    """Id, title and plot are compared with what was sought, and the field is named."""
    sought = Sought(node="n", query="q", rewritten="r", about=about, title=title)
    assert contradiction({**RECORD, **changes}, "moon", sought) == field


def test_quotes_come_from_the_record() -> None:
    """At least one passage is quoted, and none that the record does not have."""
    assert judge_quotes(RECORD, ["film:moon#1"]).accepted
    assert judge_quotes(RECORD, []).field == "passages"
    assert judge_quotes(RECORD, ["film:moon#1", "film:moon#9"]).field == "passages"


def test_a_comparison_says_what_the_evidence_says_of_every_film() -> None:
    """A comparison that recommends another film, or leaves one out, is refused."""
    said = {"text": "Moon and Heat are compared.", "recommended": "moon"}
    assert judge_comparison(said, ["Moon", "Heat"], "moon").accepted
    assert judge_comparison(said, ["Moon", "Heat"], "heat").field == "recommended"
    assert judge_comparison(said, ["Moon", "Alien"], "moon").field == "text"


@pytest.mark.parametrize(
    ("term", "expected"),
    [("unclear", True), ("clear", False), ("unc*", True), ("clea*", False), ("whether", True)],
)
def test_a_term_is_a_word_or_a_beginning(term: str, expected: bool) -> None:
    """A term is found as a whole word, or as a beginning where it says so."""
    assert mentions("It stays unclear, Whether he knows.", term) is expected


def test_the_recommendation_follows_from_the_quotes() -> None:
    """Scores count terms in what was quoted and in the themes; a tie is the first film's."""
    criterion = Criterion(name="ambiguity", terms=("unclear", "identity", "whether"))
    films = [evidence("heat", "It is a robbery."), evidence("moon", "It stays unclear whether he is one.")]
    scored = scores(films, criterion)
    assert scored == {"heat": 0, "moon": 2}
    assert recommended(scored) == "moon"
    assert recommended({"heat": 1, "moon": 1}) == "heat"
    assert recommended({}) is None


def evidence(film_id: str, quoted: str) -> Evidence:
    return Evidence(
        node=film_id,
        source_id=f"film:{film_id}",
        film_id=film_id,
        method="vector_search",
        provider="primary",
        passages=({"passage_id": "1", "text": quoted},),
        confidence=0.5,
        recorded_at_us=1,
        call_ids=("call-1",),
        result={"themes": ["love"]},
        validated_at=1,
    )
