"""Does a reviser change what the error names, and nothing when it names nothing?"""

from __future__ import annotations

import pytest

from codeai_lab.decide.repair import Problem
from codeai_lab.run.revisers import change_nothing_that_matters, mend_spelling, say_it_again

HINT = "films(film_id VARCHAR, title VARCHAR); themes(film_id VARCHAR, theme VARCHAR)"


@pytest.mark.parametrize(
    ("query", "problem", "mended"),
    [
        ("SELECT titel FROM films", Problem(kind="schema", message='column "titel" not found', hint=HINT),
         "SELECT title FROM films"),
        ("SELECT * FROM filmz", Problem(kind="schema", message="Table with name filmz is none", hint=HINT),
         "SELECT * FROM films"),
        ("SELCT 1", Problem(kind="syntax", message='syntax error at or near "SELCT"'), "select 1"),
        ("SELECT qqq FROM films", Problem(kind="schema", message='column "qqq" not found', hint=HINT),
         "SELECT qqq FROM films"),
        ("SELECT 1/0", Problem(kind="value", message="no JSON form"), "SELECT 1/0"),
    ],
)  # fmt: skip
def test_one_word_is_mended_to_the_nearest_that_there_is(query: str, problem: Problem, mended: str) -> None:
    """RV2: the word that the error names is replaced; where nothing is near, the call stays as it was."""
    assert mend_spelling({"query": query, "limit": 3}, problem) == {"query": mended, "limit": 3}


def test_the_two_that_never_get_there() -> None:
    """RV1: one makes another call of the same mistake, the other the very same; the old one is unchanged."""
    asked = {"query": "q"}
    problem = Problem(kind="schema", message="m")
    assert change_nothing_that_matters(asked, problem) != asked
    assert say_it_again(asked, problem) == asked
    assert say_it_again(asked, problem) is not asked
    assert asked == {"query": "q"}
