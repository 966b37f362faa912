"""Is the corpus whole, in order, and wide enough for a search to be wrong in it?"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest

from codeai_lab.run.films import FILMS, Film

NAMED = {
    "Ex Machina": (2014, "Alex Garland"),
    "Eternal Sunshine of the Spotless Mind": (2004, "Michel Gondry"),
    "Memento": (2000, "Christopher Nolan"),
    "Before I Go to Sleep": (2014, "Rowan Joffé"),
    "The Father": (2020, "Florian Zeller"),
    "Still Alice": (2014, "Richard Glatzer and Wash Westmoreland"),
    "Dark City": (1998, "Alex Proyas"),
    "Total Recall": (1990, "Paul Verhoeven"),
    "Blade Runner": (1982, "Ridley Scott"),
    "Blade Runner 2049": (2017, "Denis Villeneuve"),
    "Her": (2013, "Spike Jonze"),
    "Moon": (2009, "Duncan Jones"),
    "A.I. Artificial Intelligence": (2001, "Steven Spielberg"),
    "Ghost in the Shell": (1995, "Mamoru Oshii"),
    "Solaris": (1972, "Andrei Tarkovsky"),
    "Mulholland Drive": (2001, "David Lynch"),
    "Persona": (1966, "Ingmar Bergman"),
}


def slug(title: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", title) if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "-", bare.lower().replace("'", "")).strip("-")


def test_the_films_are_many_and_in_order() -> None:
    """FC1: at least 48 films, each once, in order of their ids."""
    ids = [film.film_id for film in FILMS]
    assert len(ids) >= 48
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("film", FILMS, ids=lambda film: film.film_id)
def test_a_film_is_described_in_one_paragraph(film: Film) -> None:
    """FC1, FC2: the id is the slug of the title, and the summary has 60 to 110 words in a few sentences."""
    assert film.film_id == slug(film.title)
    assert 1895 < film.year < 2026
    assert film.director
    assert film.themes
    assert 60 <= len(film.summary.split()) <= 110
    assert "\n" not in film.summary
    assert " ".join(film.passages) == film.summary
    assert len(film.passages) >= 3
    assert film.source_id == f"film:{film.film_id}"


@pytest.mark.parametrize("title", NAMED)
def test_the_films_of_the_comparison_are_there(title: str) -> None:
    """The films that a question about minds, memory and identity is asked of are in the corpus."""
    (film,) = [film for film in FILMS if film.title == title]
    assert (film.year, film.director) == NAMED[title]


def test_the_corpus_is_wide() -> None:
    """Whatever is asked, most of the films are about something else."""
    counted = Counter(theme for film in FILMS for theme in film.themes)
    for theme in ("identity", "memory loss", "action", "heist", "comedy", "documentary", "romance", "war"):
        assert 3 <= counted[theme] <= len(FILMS) // 2, theme
