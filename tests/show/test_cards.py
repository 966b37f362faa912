"""The cards of failure modes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.cards import card, cards


@pytest.fixture
def data(rows):
    """The first failure mode, with a run that shows it."""
    return {
        "name": "Minting fresh keys for old operations",
        "chapter_says": "A loop that makes a new key for every attempt makes duplicates.",
        "run": rows[5] | {"notes": ["The file holds the line twice."]},
        "rule": "Keep the key for as long as the intended effect is the same.",
        "evidence_label": "pinned run",
    }


def test_text_of_a_card(data) -> None:
    """A card says name, the chapter's point, the run's numbers, what stops it and the evidence (C1, C2)."""
    assert repr(card(data)) == "\n".join(
        [
            "Minting fresh keys for old operations",
            "  The chapter: A loop that makes a new key for every attempt makes duplicates.",
            "  The run: D-fresh-key under lab: 2 requests, 2 effects",
            "  The file holds the line twice.",
            "",
            "  What the run shows: effects, as three witnesses count them",
            "",
            "  case         rules  answers         ledger says  world shows  summary says"
            "  labels              agreement",
            "  -----------  -----  --------------  -----------  -----------  ------------  ------------------"
            "  ---------------------------------",
            "  D-fresh-key  lab    failed, failed       0 to 2            2             2  unknown, duplicate"
            "  agree; the ledger alone leaves it",
            f"{'':96}  open",
            "",
            "  What stops it: Keep the key for as long as the intended effect is the same.",
            "  Evidence: pinned run",
        ]
    )


def test_page_of_a_card_folds_and_needs_no_trust(data) -> None:
    """The folded page shows name and counts; nothing is used that an untrusted notebook drops (C3)."""
    html = card(data)._repr_html_()
    assert "<summary><strong>Minting fresh keys for old operations</strong>" in html
    assert html.index("2 requests, 2 effects") < html.index("</summary>") < html.index("<table")
    assert not any(word in html for word in ("<script", "<style", "aria-", "role=", "tabindex", " id="))


def test_numbers_are_those_of_the_run(data, make_row) -> None:
    """Another run, other numbers: nothing on a card is written by hand (C1)."""
    data["run"] = make_row("D-fresh-key", "lab", ["failed"], effects_world=5, effects_ledger=[0, 1])
    said = " ".join(repr(card(data)).split())
    assert "1 request, 5 effects" in said
    assert "disagree: the ledger allows 0 to 1, the world shows 5" in said


def test_several_runs_on_one_card(data, rows) -> None:
    """A card may show several runs; their counts stand in order."""
    data["run"] = rows[:2]
    assert card(data).counts == (
        "B-no-authority under 7a0d43b: 2 requests, 1 effect; D-crash-gap under 7a0d43b: 2 requests, 1 effect"
    )


def test_objects_are_cards_too(data) -> None:
    """The fields may be attributes."""
    assert repr(card(SimpleNamespace(**data))) == repr(card(data))


@pytest.mark.parametrize("field", ["name", "chapter_says", "rule", "evidence_label", "run"])
def test_a_card_lacks_nothing(data, field: str) -> None:
    """A card without one of its texts, or without a run, is refused by name (C1, C2)."""
    del data[field]
    where = data["name"] if field == "run" else field
    with pytest.raises(RefusedValueError) as refused:
        card(data)
    assert refused.value.where == where


PLAIN = (
    {"run": "source revoked", "films_supported": 1, "answer": "partial", "notes": ["Withheld: film:a."]},
    {"run": "source permitted", "films_supported": 2, "answer": "complete"},
)


def test_a_card_of_plain_rows_shows_the_figures_of_its_runs(data) -> None:
    """Rows without witnesses are shown as they are; the folded card says of each run what came of it."""
    shown = card(data | {"run": PLAIN})
    assert shown.counts == "source revoked: answer partial; source permitted: answer complete"
    assert shown.notes == ("Withheld: film:a.",)
    assert (shown.runs.head, shown.runs.body) == (
        ("run", "films supported", "answer"),
        (("source revoked", "1", "partial"), ("source permitted", "2", "complete")),
    )
    html = shown._repr_html_()
    assert html.index("answer partial") < html.index("</summary>") < html.index("<table")
    assert "Withheld: film:a." in html


def test_a_card_has_rows_of_one_kind(data, rows) -> None:
    """Rows of witnesses and plain rows do not stand in one table."""
    with pytest.raises(RefusedValueError, match="a card each"):
        card(data | {"run": [rows[0], PLAIN[0]]})


def test_texts_are_escaped(data) -> None:
    """Markup in a text is shown and never takes effect."""
    for field in ("name", "chapter_says", "rule", "evidence_label"):
        data[field] = "<b>&"
    data["run"]["notes"] = ["<b>&"]
    assert card(data)._repr_html_().count("&lt;b&gt;&amp;") == 5


def test_cards_stand_below_one_another(data) -> None:
    """Several cards keep their order, as text and as a page."""
    both = cards([data, data | {"name": "Second"}])
    assert repr(both) == repr(both.shown[0]) + "\n\n" + "-" * 40 + "\n\n" + repr(both.shown[1])
    assert both._repr_html_().count("<details") == 2
