"""Which films have the words of a query in them?

Chapter: 003, "Record fallback as a different evidence path": lexical search finds a film because its summary
contains the terms of the query, not because it is near in meaning.

Idea: a text is a bag of words. A word that few films have says more than one that many have (its inverse
document frequency), and two texts are alike as far as their bags point the same way (the cosine).

    idf(word) = 1 + ln((1 + films) / (1 + films that have the word))
    weight    = (1 + ln(how often the word occurs)) * idf(word)

Always true:
  LX1. A film without a word of the query has the score 0, and a word that no film has changes nothing.
  LX2. Words are compared as they are written, accents and case apart: "memories" is not "memory".
  LX3. The score is the same in every process.

Not here: nearness without a word in common (`run.film_vectors`), ranking and limits (`run.film_tools`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

# What a sentence is held together by, and no film is about.
_STOP = """
a about after all also an and any are as at be because been before but by can could do does for from had has
have he her hers him his how i if in into is it its itself just may more most must no not of off on one or
other out over she so some such than that the their them then there these they this those through to too up
us very was we were what when where which while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP.split())


def words_of(text: str) -> tuple[str, ...]:
    """Give the words of a text in order, lower case and without accents; stop words are left out."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    found = re.findall(r"[a-z0-9]+", re.sub(r"['\u2019]s\b", "", bare.casefold()))
    return tuple(word for word in found if word not in STOP_WORDS)


class WordIndex:
    """The bags of words of a set of texts, weighed against each other.

    Args:
        texts: name of a text -> the text.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        bags = {name: Counter(words_of(text)) for name, text in texts.items()}
        having = Counter(word for bag in bags.values() for word in bag)
        self._idf = {word: 1 + math.log((1 + len(bags)) / (1 + n)) for word, n in having.items()}
        self._weights = {name: self._weigh(bag) for name, bag in bags.items()}

    def scores(self, query: str) -> dict[str, float]:
        """Give the score of every text for a query, from 0 to 1."""
        asked = self._weigh(Counter(words_of(query)))
        return {name: _cosine(asked, weights) for name, weights in self._weights.items()}

    def shared(self, query: str, name: str) -> tuple[str, ...]:
        """Give the words that a query and a text have in common: the whole reason for the score."""
        return tuple(sorted(set(words_of(query)) & self._weights[name].keys()))

    def _weigh(self, bag: Mapping[str, int]) -> dict[str, float]:
        known = sorted(bag.keys() & self._idf.keys())
        return {word: (1 + math.log(bag[word])) * self._idf[word] for word in known}


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    # fsum does not depend on the order in which it adds, so a score is the same wherever it is computed.
    across = math.fsum(weight * right[word] for word, weight in left.items() if word in right)
    lengths = _length(left.values()) * _length(right.values())
    return across / lengths if lengths else 0.0


def _length(weights: Iterable[float]) -> float:
    return math.sqrt(math.fsum(weight * weight for weight in weights))
