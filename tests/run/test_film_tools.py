"""Do the tools answer the same way each time, and fail only where they are told to?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.repair import ErrorKind
from codeai_lab.run.film_tools import (
    TOOLS,
    Fault,
    FilmTools,
    ToolAnswerError,
    ToolError,
    ToolInputError,
    ToolTimeoutError,
    ToolUnavailableError,
)
from codeai_lab.run.films import FILMS, Film

SUNSHINE = "eternal-sunshine-of-the-spotless-mind"
MIND = "an artificial mind and what it is to be a person"

# fmt: off
QUERIES = [
    # query                                                  lexical                 vector
    (MIND,                                                   "perfect-blue",         "ex-machina"),
    ("erased memories former relationship",                  SUNSHINE,               SUNSHINE),
    ("losing the memory of a love, and who one is without it", "before-i-go-to-sleep", SUNSHINE),
    ("forgetting a love on purpose",                         "finding-dory",         SUNSHINE),
    ("a film about memory loss",                             "before-i-go-to-sleep", "finding-dory"),
    ("an old man with dementia",                             "the-father",           "the-father"),
    ("criminals plan a robbery",                             "moon",                 "rififi"),
    ("stealing from a bank or casino",                       "the-bourne-identity",  "oceans-eleven"),
    ("umbrella plaster ceiling",                             "rififi",               "being-john-malkovich"),
    ("dreams inside dreams",                                 "shutter-island",       "inception"),
    ("a slave uprising",                                     "spartacus",            "spartacus"),
    ("clones raised for their organs",                       "never-let-me-go",      "moon"),
    ("can a copy of a dead wife suffer?",                    "vertigo",              "solaris"),
    ("a true story told by witnesses",                       "rashomon",             "rashomon"),
    ("robots",                                               None,                   "wall-e"),
    ("a funny film about mistaken identity",                 "the-bourne-identity",  "the-big-lebowski"),
]
# fmt: on


@pytest.fixture(scope="module")
def tools() -> FilmTools:
    """The tools over the shipped corpus, without faults."""
    return FilmTools()


@pytest.mark.parametrize(("query", "lexical", "vector"), QUERIES)
def test_the_best_hit_of_either_search(
    tools: FilmTools, query: str, lexical: str | None, vector: str
) -> None:
    """Each search has a best film of its own, right or wrong; without a shared word there is none."""
    by_word, by_meaning = tools.lexical_search(query), tools.vector_search(query)
    assert (by_word[0].film_id if by_word else None) == lexical
    assert by_meaning[0].film_id == vector


def test_the_two_searches_differ_more_often_than_they_agree() -> None:
    """A fallback to the other search is another path to the evidence, not the same one."""
    differing = [query for query, lexical, vector in QUERIES if lexical != vector]
    assert len(QUERIES) >= 12
    assert len(differing) > len(QUERIES) / 2


def test_the_rewritten_query_finds_its_film_by_its_own_words(tools: FilmTools) -> None:
    """Every term of the rewritten query stands in the summary, and no other film has them all."""
    terms = {"erased", "memories", "former", "relationship"}
    having = [film.film_id for film in FILMS if terms <= set(film.summary.lower().replace(",", "").split())]
    assert having == [SUNSHINE]


def test_a_film_of_memory_loss_comes_up_for_memory_loss(tools: FilmTools) -> None:
    """Vector search gives films whose theme is the loss of memory, and no other first."""
    losing = {film.film_id for film in FILMS if {"memory loss", "amnesia"} & set(film.themes)}
    assert {hit.film_id for hit in tools.vector_search("memory loss", limit=5)} <= losing


@pytest.mark.parametrize("search", ["lexical_search", "vector_search"])
def test_hits_are_ranked_rounded_and_limited(tools: FilmTools, search: str) -> None:
    """FT1: best first, six decimals, from 0 to 1; a longer list begins with the shorter one."""
    hits = tools.call(search, {"query": MIND, "limit": 60})
    assert [(-hit.score, hit.film_id) for hit in hits] == sorted((-hit.score, hit.film_id) for hit in hits)
    assert all(0 < hit.score <= 1 and round(hit.score, 6) == hit.score for hit in hits)
    assert len({hit.film_id for hit in hits}) == len(hits)
    assert tools.call(search, {"query": MIND}) == hits[:3]
    assert tools.call(search, {"query": MIND, "limit": 1}) == hits[:1]


@pytest.mark.parametrize("search", ["lexical_search", "vector_search"])
def test_a_tie_is_broken_by_the_id(search: str) -> None:
    """FT1: films with the same words come in the order of their ids, however they were given."""
    twins = tuple(
        Film(
            film_id=name, title="Twin", year=2000, director="D", summary="A robot sings.", themes=("robots",)
        )
        for name in ("b", "a", "c")
    )
    assert [hit.film_id for hit in FilmTools(twins).call(search, {"query": "robot"})] == ["a", "b", "c"]


def test_a_record_is_plain_and_names_its_source(tools: FilmTools) -> None:
    """A record is plain JSON with its source, and its passages are the sentences of its summary."""
    record = tools.get_film("ex-machina")
    assert json.loads(canonical_bytes(record)) == record
    assert record["source_id"] == "film:ex-machina"
    assert (record["title"], record["year"], record["director"]) == ("Ex Machina", 2014, "Alex Garland")
    assert " ".join(passage["text"] for passage in record["passages"]) == record["summary"]
    assert [p["passage_id"] for p in record["passages"]][:2] == ["film:ex-machina#1", "film:ex-machina#2"]


# --- what cannot be answered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("vector_search", {"query": ""}, "needs a query that is text and not empty"),
        ("vector_search", {"query": "  \n"}, "needs a query"),
        ("lexical_search", {}, "needs a query"),
        ("lexical_search", {"query": 5}, "needs a query"),
        ("lexical_search", {"query": "a", "limit": 0}, "whole number, 1 or more"),
        ("lexical_search", {"query": "a", "limit": -1}, "whole number, 1 or more"),
        ("lexical_search", {"query": "a", "limit": True}, "whole number, 1 or more"),
        ("vector_search", {"query": "a", "limit": 2.0}, "whole number, 1 or more"),
        ("vector_search", {"query": "a", "limt": 2}, "has no field 'limt'; it takes query and limit"),
        ("get_film", {"film_id": "ex-machina", "limit": 1}, "has no field 'limit'; it takes film_id"),
        ("get_film", {"film_id": "no-such-film"}, "no film with this id"),
        ("get_film", {"film_id": None}, "needs a film_id"),
        ("web_search", {"query": "a"}, "no such tool"),
    ],
)
def test_a_call_that_cannot_be_answered_is_an_input_error(
    tools: FilmTools, tool: str, arguments: Mapping[str, Any], says: str
) -> None:
    """FT3: one sentence says what is wrong and what to do; the error is definite and of the kind input."""
    with pytest.raises(ToolInputError, match=says) as caught:
        tools.call(tool, arguments)
    message = str(caught.value)
    assert message.endswith(".")
    assert message.count("\n") == 0
    assert caught.value.definite
    assert caught.value.kind is ErrorKind.INPUT
    assert caught.value.tool == tool


# --- faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error", "definite"),
    [
        ("timeout", ToolTimeoutError, False),
        ("unavailable", ToolUnavailableError, True),
        ("malformed", ToolAnswerError, True),
    ],
)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_nth_call_fails_and_no_other(
    tool: str, kind: str, error: type[ToolError], definite: bool
) -> None:
    """FT2, FT4: only the second call of that tool fails, in the way its fault says, and it may pass."""
    tools = FilmTools(faults=(Fault(tool=tool, nth=2, kind=kind),))
    usual: dict[str, Mapping[str, Any]] = {
        "lexical_search": {"query": "robot"},
        "vector_search": {"query": "robot"},
        "get_film": {"film_id": "moon"},
    }
    first = {name: tools.call(name, usual[name]) for name in TOOLS}
    for name in TOOLS:
        if name != tool:
            assert tools.call(name, usual[name]) == first[name]
    with pytest.raises(error, match=tool) as caught:
        tools.call(tool, usual[tool])
    assert caught.value.definite is definite
    assert caught.value.kind is ErrorKind.TRANSIENT
    assert tools.call(tool, usual[tool]) == first[tool]
    assert tools.calls == {name: 3 if name == tool else 2 for name in TOOLS}


def test_a_contradiction_is_another_plot_under_the_same_name() -> None:
    """The record keeps id, title and source, its plot is that of a film about something else, and passes."""
    tools = FilmTools(faults=(Fault(tool="get_film", nth=1, kind="contradiction"),))
    false, true = tools.get_film(SUNSHINE), tools.get_film(SUNSHINE)
    for name in ("source_id", "film_id", "title", "year", "director"):
        assert false[name] == true[name]
    assert false["summary"] != true["summary"]
    assert not {"memory loss", "love", "identity"} & set(false["themes"])
    assert false["passages"][0]["passage_id"] == f"film:{SUNSHINE}#1"
    assert false["summary"] in {film.summary for film in FILMS}


def test_every_film_can_be_contradicted() -> None:
    """For no film is the contradicting plot its own."""
    nths = range(1, len(FILMS) + 1)
    tools = FilmTools(faults=tuple(Fault(tool="get_film", nth=n, kind="contradiction") for n in nths))
    for film in FILMS:
        assert tools.get_film(film.film_id)["summary"] != film.summary


def test_a_refused_call_counts() -> None:
    """FT2: the nth call is the nth that was made, whatever became of the ones before it."""
    tools = FilmTools(faults=(Fault(tool="vector_search", nth=2, kind="timeout"),))
    with pytest.raises(ToolInputError):
        tools.vector_search("")
    with pytest.raises(ToolTimeoutError):
        tools.vector_search("robot")


@pytest.mark.parametrize(
    ("tool", "nth", "kind"),
    [
        ("web_search", 1, "timeout"),
        ("get_film", 0, "timeout"),
        ("get_film", 1, "gremlin"),
        ("vector_search", 1, "contradiction"),
    ],
)
def test_a_fault_that_could_not_happen_is_not_taken(tool: str, nth: int, kind: str) -> None:
    """A misspelt fault would make a test that cannot fail, so it is refused when it is made."""
    with pytest.raises(ValueError, match=r"a fault|contradict|valid"):
        Fault(tool=tool, nth=nth, kind=kind)
