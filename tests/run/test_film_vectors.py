"""Are texts near that mean the same, and does nearness come from the text alone?"""

from __future__ import annotations

import math

import pytest

from codeai_lab.run.film_vectors import BUCKETS, MEANINGS, closeness, embed, meanings_of


@pytest.mark.parametrize(
    ("near", "text", "far"),
    [
        ("android", "an artificial mind", "a bank robbery"),
        ("they burgle a jeweller's safe: thieves", "criminals plan a robbery", "a wedding"),
        ("amnesia", "memory loss", "space travel"),
        ("remembering her", "she remembered", "gunfight"),
    ],
)
def test_what_means_the_same_is_nearer(near: str, text: str, far: str) -> None:
    """Texts without a word in common are near when their words point to the same meaning."""
    assert closeness(embed(text), embed(near)) > closeness(embed(text), embed(far))


def test_a_point_has_one_coordinate_a_meaning_and_the_buckets() -> None:
    """VX1: every text gets a point of the same shape, and the same text the same point."""
    assert {len(embed(text)) for text in ("", "a", "robots in love")} == {len(MEANINGS) + BUCKETS}
    assert embed("robots in love") == embed("robots in love")


def test_closeness_is_a_cosine() -> None:
    """VX2: a text is at 1 from itself, the measure is the same both ways, and no text is near nothing."""
    one, two = embed("robots in love"), embed("an army at war")
    assert closeness(one, one) == pytest.approx(1)
    assert closeness(one, two) == closeness(two, one)
    assert -1 <= closeness(one, two) <= 1
    assert closeness(embed(""), one) == 0


def test_a_word_of_no_meaning_still_has_letters() -> None:
    """A word that the table does not know is near itself by its letters alone."""
    assert meanings_of("zebra") == {}
    assert closeness(embed("zebra"), embed("zebras")) > 0.7
    assert math.hypot(*embed("zebra")) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("amnesia", {"forgetting": 1}),
        ("remembers nothing", {"remembering": 1, "forgetting": 1}),
        ("memory loss", {"remembering": 1, "forgetting": 1}),
        ("loss", {}),
        ("robots robots", {"artificial mind": 2}),
    ],
)
def test_every_nearness_can_be_explained(text: str, meanings: dict[str, int]) -> None:
    """The meanings of a text can be counted, beginnings of words and pairs of words included."""
    assert meanings_of(text) == meanings


def test_word_order_and_negation_are_not_seen() -> None:
    """The limit that the module names is really there."""
    assert embed("man hunts robot") == embed("robot hunts man")
    assert meanings_of("not a robot") == meanings_of("a robot")
