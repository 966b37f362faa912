"""Are films found by the words they have, and by nothing else?"""

from __future__ import annotations

import math

import pytest

from codeai_lab.run.film_index import WordIndex, words_of

INDEX = WordIndex({"a": "red fish blue fish", "b": "red bird", "c": "grey stone"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Father's flat", ("father", "flat")),
        ("Véronique\u2019s double", ("veronique", "double")),
        ("2001: A Space Odyssey", ("2001", "space", "odyssey")),
        ("ERASED memories", ("erased", "memories")),
        ("who is she?", ()),
        ("", ()),
    ],
)
def test_a_text_is_its_words(text: str, words: tuple[str, ...]) -> None:
    """LX2: case, accents, possessives and stop words fall away, and nothing else does."""
    assert words_of(text) == words


def test_the_score_is_the_cosine_of_weighted_words() -> None:
    """The score is what the formula of the module gives when it is worked out by hand."""
    fish = (1 + math.log(2)) * (1 + math.log(4 / 2))
    blue, red, bird = (1 + math.log(4 / n) for n in (2, 3, 2))
    a_length = math.sqrt(fish**2 + blue**2 + red**2)
    scores = INDEX.scores("red")
    assert scores["a"] == pytest.approx(red / a_length)
    assert scores["b"] == pytest.approx(red / math.hypot(red, bird))
    assert scores["c"] == 0


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    """Of two shared words the one that fewer texts have decides."""
    scores = INDEX.scores("red fish")
    assert scores["a"] > scores["b"]
    assert INDEX.scores("red bird")["b"] > INDEX.scores("red bird")["a"]


def test_a_word_that_no_text_has_changes_nothing() -> None:
    """LX1: the score is 0 without a shared word, and an unknown word in the query does not lower it."""
    assert set(INDEX.scores("zebra").values()) == {0.0}
    assert INDEX.scores("red zebra") == INDEX.scores("red")
    assert set(INDEX.scores("").values()) == {0.0}


def test_a_text_is_nearest_to_itself() -> None:
    """The score of a text for its own words is 1, and never more."""
    assert INDEX.scores("red fish blue fish")["a"] == pytest.approx(1)


def test_the_shared_words_are_the_reason() -> None:
    """What a query and a text have in common can be named."""
    assert INDEX.shared("blue red bird", "a") == ("blue", "red")
