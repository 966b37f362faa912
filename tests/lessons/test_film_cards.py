"""The cards of state that is mishandled: the figures of their runs."""

from __future__ import annotations

import pytest

from codeai_lab.decide.states import Criterion
from codeai_lab.lessons import film_cards
from codeai_lab.lessons.film_cards import mishandled_states
from codeai_lab.show.cards import cards

SECOND = "Eternal Sunshine of the Spotless Mind"
MODES = mishandled_states()
REQUEST, WORKING, EVIDENCE, MEMORY = (mode.run for mode in MODES)


def test_each_kind_of_state_has_its_card() -> None:
    """Four failures, in the order of the chapter's table, each shown by plain rows of runs."""
    assert [mode.name.split(":")[0] for mode in MODES] == [
        "Request state mishandled",
        "Working state mishandled",
        "Evidence state mishandled",
        "Durable memory mishandled",
    ]
    shown = cards(MODES).shown
    assert [len(card.runs.body) for card in shown] == [2, 3, 2, 3]
    assert shown[2].counts == "source revoked: answer partial; source still permitted: answer complete"


def test_a_request_that_is_guessed_anew_drifts() -> None:
    """Under another criterion the same evidence recommends another film, and the scores say why."""
    guessed, read = REQUEST
    assert (guessed["criterion"], guessed["recommends"]) == ("action", "Ex Machina")
    assert (read["criterion"], read["recommends"]) == ("ambiguity", SECOND)
    first, second = (f"score of {title}" for title in ("Ex Machina", SECOND))
    assert guessed[first] > guessed[second]
    assert read[first] < read[second]


def test_only_a_checkpoint_saves_work() -> None:
    """An answer and a transcript lack every link, and the four calls are made again."""
    assert [
        (row["saved"], row["links_that_are_missing"], row["films_kept"], row["calls_repeated"])
        for row in WORKING
    ] == [("answer", 8, [], 4), ("checkpoint", 0, ["ex-machina"], 0), ("transcript", 8, [], 4)]


def test_a_revoked_source_supports_nothing() -> None:
    """The answer is partial and says which branches are unresolved."""
    revoked, permitted = EVIDENCE
    assert (revoked["withheld"], revoked["answer"]) == (["film:ex-machina"], "partial")
    assert revoked["unresolved"] == ["ai-film", "compare"]
    assert "ex-machina" not in revoked["films_supported"]
    assert (permitted["withheld"], permitted["answer"], permitted["unresolved"]) == ([], "complete", [])


def test_the_request_outranks_a_memory_and_a_poisoned_one_is_withheld() -> None:
    """A memory that is trusted decides the recommendation; judged by recall, neither of the two does."""
    assert [(row["recall_answers"], row["criterion"], row["recommends"]) for row in MEMORY] == [
        ("not asked", "action", "Ex Machina"),
        ("outranked: the request says it", "ambiguity", SECOND),
        ("withheld: the gate: retrieved-text-is-evidence", "ambiguity", SECOND),
    ]
    assert {row["it_says"] for row in MEMORY} == {"action"}


def test_the_figures_are_those_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a criterion that no film meets there is no difference, and the card says so."""
    nothing = Criterion(name="action", terms=("spaceship*",))
    monkeypatch.setattr(film_cards, "ACTION", nothing)
    guessed, _ = mishandled_states()[0].run
    assert [value for name, value in guessed.items() if name.startswith("score")] == [0, 0]
