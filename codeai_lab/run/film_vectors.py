"""Which films are about what a query is about?

Chapter: 003, "Record fallback as a different evidence path": vector search finds a film because its embedding
is near, whether or not it has a word of the query.

Idea: a text becomes one point in a space of few dimensions, and near points are alike. Here each dimension of
the first part is a *meaning*, and a small table written by hand says which words point there; the second part
holds the letter triples of the words, hashed into a few buckets, so that "remembering" is near "remembered".

    embed(text) = unit(meanings) * 1.0  beside  unit(hashed triples) * 0.4

Its limit: it knows the meanings that the table names and no others, where a learned embedding has picked up
many thousands; it takes no notice of word order, of "not", or of who does what to whom. In exchange it is
small enough to be read, needs no model, and every nearness can be explained by `meanings_of`.

Always true:
  VX1. The embedding of a text depends on the text alone, and is the same in every process.
  VX2. The closeness of two embeddings is from -1 to 1; a text without a word is near nothing.

Not here: words that must occur (`run.film_index`), ranking and limits (`run.film_tools`).
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from codeai_lab.run.film_index import words_of

# A word that ends in * stands for all that begin so; two words stand for a pair that follows on each other.
MEANINGS = {
    "artificial mind": "artificial android* robot* cyborg* replicant* computer* machine* hologram program "
    "intelligence autopilot hal",
    "personhood": "person personhood human humanity soul* conscious* alive feel* feeling* empathy mind "
    "being born",
    "making": "made maker* creat* invent* manufactured programmed built life",
    "copies": "clone* copy copied replica duplicate*",
    "remembering": "memory memories remember* recall* recollect* remind* past",
    "forgetting": "amnes* forget* forgot* erase* wiped dementia alzheimer* memory+loss losing+memory "
    "lost+memory lose+memory remembers+nothing",
    "false memories": "implant* inject* false+memor* real+memor*",
    "identity": "identit* self selves name names himself herself impostor* imposture",
    "doubles": "double* other+self resembl* likeness twin* alike mask*",
    "love": "love* lover* romance romantic tender* relationship* affair kiss* court* break-up couple* "
    "breakup",
    "marriage": "marri* wife wives husband* divorce wedding spouse",
    "grief": "grief griev* mourn* sorrow bereave* dead death die dies died funeral",
    "family": "family famil* daughter* son sons mother* father* parent* brother* sister*",
    "childhood": "child* boy boys girl girls school kid kids young",
    "old age": "old ageing aging elderly",
    "illness": "illness* ill disease* doctor* patient* hospital* asylum diagnosis nurse carer*",
    "theft": "heist* rob robs robbed robber* steal* stole* burglar* thief thieves theft vault* safe "
    "jewel* casino*",
    "crime": "crime* criminal* murder* police* detective* gang* bandit* prison* thug* kidnap*",
    "violence": "fight* battle* gun* chase* chased hunt* explo* shoot* shot* assassin* action attack* "
    "bullet* weapon*",
    "war": "war wars soldier* officer army nazi* resistance camp camps general military",
    "laughter": "comedy comic funny fun laugh* joke* silly humour",
    "disguise": "disguise* costume* dress* impersonat* pretend* mistaken",
    "documentary": "documentary documentaries footage interview* testimon* witness* true+story",
    "space": "space spaceship* moon planet* star stars astronaut* astronom* mars jupiter orbit outer rocket*",
    "dreams": "dream* dreamt nightmare* asleep sleep* sleepers",
    "time": "time repeat* tomorrow yesterday again morning loop year+ago",
    "truth": "truth true lie lies lying liar* decei* decept* ambig* doubt* unclear version* secret* "
    "contradict* uncertain*",
    "freedom": "free* slave* escape* revolt* revolution* rebel* tyrant* liberat*",
    "the stage": "actress* actor* theatre stage performance* singer* sing sings play plays concert puppet*",
    "solitude": "alone lonel* solitude isolat* silence silent",
    "language": "language* linguist* speech speak* words translat* letters",
    "simulation": "simulat* virtual illusion* hallucinat* delusion*",
}  # fmt: skip
BUCKETS = 96
WEIGHT_OF_LETTERS = 0.4

Vector = tuple[float, ...]


@lru_cache(maxsize=256)  # the same corpus is embedded for every set of tools
def embed(text: str) -> Vector:
    """Give the point of a text: one coordinate a meaning, then the buckets of its letter triples."""
    words = words_of(text)
    found = meanings_of(text)
    meanings = _unit(math.sqrt(found[meaning]) for meaning in MEANINGS)
    buckets = [0] * BUCKETS
    for word in words:
        for triple in _triples(word):
            # crc32 is the same everywhere; the built-in hash of a text is another one in each process.
            buckets[zlib.crc32(triple.encode()) % BUCKETS] += 1
    return (*meanings, *(WEIGHT_OF_LETTERS * part for part in _unit(buckets)))


def closeness(left: Vector, right: Vector) -> float:
    """Give the cosine of the angle between two points."""
    lengths = _length(left) * _length(right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


def meanings_of(text: str) -> Counter[str]:
    """Count how often the words of a text point to each meaning."""
    words = words_of(text)
    terms = (*words, *(f"{first}+{second}" for first, second in pairwise(words)))
    return Counter(meaning for term in terms for meaning in _pointed_to(term))


def _pointed_to(term: str) -> list[str]:
    # A pair must not count for its first word alone, which is counted by itself.
    shortest = term.find("+") + 1 or 1
    pointed = {*_WHOLE.get(term, ())}
    for end in range(shortest, len(term) + 1):
        pointed.update(_BEGINNINGS.get(term[:end], ()))
    return sorted(pointed)


def _table(*, beginnings: bool) -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for meaning, entries in MEANINGS.items():
        for entry in entries.split():
            if entry.endswith("*") is beginnings:
                table[entry.rstrip("*")] = (*table.get(entry.rstrip("*"), ()), meaning)
    return table


_WHOLE = _table(beginnings=False)
_BEGINNINGS = _table(beginnings=True)


def _triples(word: str) -> list[str]:
    framed = f"<{word}>"
    return [framed[start : start + 3] for start in range(len(framed) - 2)]


def _unit(parts: Iterable[float]) -> Vector:
    parts = tuple(parts)
    length = _length(parts)
    return tuple(part / length for part in parts) if length else parts


def _length(parts: Sequence[float]) -> float:
    return math.sqrt(math.fsum(part * part for part in parts))
