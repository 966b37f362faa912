"""Which films can be found?

Chapter: 003, "Play the trace below": Ex Machina is compared with a film about memory loss.

Idea: a small corpus of real films, kept as data beside this module: title, year, director, what happens, and
what it is about, in words of our own. A search is worth looking at only where it can be wrong, so the corpus
has many films that are near to each other, and many that are about something else.

    FILMS[0].film_id     the first in order of film_id

Always true:
  FC1. Every film has an id of its own, which is the slug of its title; the films are in order of their ids.
  FC2. A summary is one paragraph; its sentences are the passages that evidence names.

Not here: searching (`run.film_index`, `run.film_vectors`), the tools (`run.film_tools`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """One film: who made it when, what happens in it, and what it is about."""

    film_id: str
    title: str
    year: int
    director: str
    summary: str
    themes: tuple[str, ...]

    @property
    def source_id(self) -> str:
        """The name under which evidence refers to this record."""
        return f"film:{self.film_id}"

    @property
    def passages(self) -> tuple[str, ...]:
        """The sentences of the summary, in order."""
        return tuple(re.split(r"(?<=[.!?]) +", self.summary))


def _read(text: str) -> tuple[Film, ...]:
    """Read the corpus; JSON has no tuples, so the themes become one."""
    return tuple(Film(**{**entry, "themes": tuple(entry["themes"])}) for entry in json.loads(text))


FILMS = _read(Path(__file__).with_name("films.json").read_text(encoding="utf-8"))
