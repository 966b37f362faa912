"""The laws of lessons.carried_state: a trajectory that ran, and what leaving out a part of it costs."""

from __future__ import annotations

from codeai_lab.decide.compression import Carried
from codeai_lab.lessons.carried_state import QUESTION, film_events, film_facts, rows
from codeai_lab.run.films import FILMS


def test_the_facts_are_those_of_a_trajectory_that_ran() -> None:
    """CS1: records and passages stand in the corpus word for word, and only the question was added."""
    summaries = {film.source_id: film.summary for film in FILMS}
    facts = film_facts()
    passages = [fact.said for fact in facts if "passage" in fact.said]
    assert [said["source"] for said in passages] == ["film:ex-machina"]
    assert all(part in summaries["film:ex-machina"] for part in passages[0]["passage"].split(". "))
    assert [event.kind for event in film_events()].count("call.failed") == 2
    assert facts[-1] is QUESTION
    assert QUESTION.said["question"] not in repr(film_events())


def test_every_part_that_is_left_out_is_missed() -> None:
    """CS2: the whole state misses nothing, and without any one part something is named."""
    said = {row["left out"]: row["missed"] for row in rows()}
    assert said.pop("nothing") == []
    assert list(said) == list(Carried.__slots__)
    assert all(said.values())
