"""The tables, as HTML and as text."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace

import pandas as pd
import pytest

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.tables import (
    ShownTable,
    events_table,
    shown_table,
    side_by_side,
    witness_frame,
    witness_table,
)


class Page(HTMLParser):
    """Reads a page into its tags, its attributes and the texts of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and data.strip():
            self.cells[-1] += data.strip()


def test_frame_has_a_line_a_case_and_rule_set(rows) -> None:
    """The frame keeps the order of the rows and gives numbers as numbers."""
    frame = witness_frame(rows)
    assert list(frame.columns) == [
        "case", "revision", "requests", "answers", "ledger_low", "ledger_high", "world", "summary", "labels",
        "agreement",
    ]  # fmt: skip
    assert frame["case"].tolist() == [row["case"] for row in rows]
    assert frame["world"].sum() == frame["summary"].sum() == 8
    assert frame.loc[1, ["ledger_low", "ledger_high"]].tolist() == [0, 1]
    assert frame.loc[2, "labels"] == "unknown, duplicate"


def test_frame_of_nothing_has_the_columns() -> None:
    """No rows give an empty frame with the same columns."""
    assert witness_frame([]).shape == (0, 10)


def test_witness_table_as_text(rows) -> None:
    """The text form is aligned, wraps long cells inside their column, and says the three witnesses."""
    assert repr(witness_table(rows[1:4], caption="Three rows")) == "\n".join(
        [
            "Three rows",
            "",
            "case            rules    answers                          ledger says  world shows  summary says"
            "  labels              agreement",
            "--------------  -------  -------------------------------  -----------  -----------  ------------"
            "  ------------------  ---------------------------------",
            "D-crash-gap     7a0d43b  failed, failed (recorded by d1)       0 to 1            1             1"
            "  unknown, replay     agree; the ledger alone leaves it",
            "                                                                                                "
            "                      open",
            "D-fresh-key     7a0d43b  failed, failed                        0 to 2            2             2"
            "  unknown, duplicate  agree; the ledger alone leaves it",
            "                                                                                                "
            "                      open",
            "B-no-authority  lab      succeeded, denied                          1            1             1"
            "  -, denied           agree",
        ]
    )


def test_page_and_text_hold_the_same_cells(rows) -> None:
    """Every cell of the page is in the text, and the page has one cell for each (T1)."""
    table = witness_table(rows)
    cells = Page(table._repr_html_()).cells
    assert cells == [table.caption, *table.head, *(cell for row in table.body for cell in row)]
    text = " ".join(repr(table).split())
    assert all(word in text for cell in cells for word in cell.split())


def test_heads_have_a_scope_and_the_table_a_caption(rows) -> None:
    """Column heads and the two names of a row are heads with a scope (T3)."""
    tags = Page(witness_table(rows)._repr_html_()).tags
    scopes = [attributes["scope"] for tag, attributes in tags if tag == "th"]
    assert scopes == ["col"] * 8 + ["row"] * 12
    assert sum(tag == "caption" for tag, _ in tags) == 1


def test_page_needs_no_trust(rows) -> None:
    """Nothing is used that an untrusted notebook drops: no style block, script, id, role or aria (T3)."""
    for tag, attributes in Page(witness_table(rows)._repr_html_()).tags:
        assert tag in {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "strong"}
        assert set(attributes) <= {"class", "style", "scope"}
        assert "color" not in (attributes.get("style") or "")


def test_disagreement_is_a_word_and_then_weight(make_row) -> None:
    """A forged summary is named in words, and the words are strong (T2)."""
    table = witness_table([make_row("D-fresh-key", "lab", ["succeeded"], effects_summary=2)])
    assert "disagree: the summary says 2, the world shows 0" in " ".join(repr(table).split())
    assert "<strong>disagree: the summary says 2, the world shows 0</strong>" in table._repr_html_()


def test_side_by_side_marks_what_changed(rows) -> None:
    """A cell that differs from the rule set to its left begins with "changed"; an equal one does not (T2)."""
    table = side_by_side(rows)
    assert table.head == ("case", "7a0d43b", "lab")
    assert table.body == (
        ("B-no-authority", "1 effect; -, replay", "changed: 1 effect; -, denied"),
        ("D-crash-gap", *["1 effect (ledger 0 to 1); unknown, replay"] * 2),
        ("D-fresh-key", *["2 effects (ledger 0 to 2); unknown, duplicate"] * 2),
    )
    assert table._repr_html_().count("<strong>") == 1


def test_side_by_side_can_be_turned_round(rows) -> None:
    """By case, the rule sets stand below one another."""
    table = side_by_side(rows, by="case")
    assert table.head == ("revision", "B-no-authority", "D-crash-gap", "D-fresh-key")
    assert [line[0] for line in table.body] == ["7a0d43b", "lab"]


def test_side_by_side_compares_across_a_gap(make_row) -> None:
    """A case that a rule set did not run says so, and the next is compared with the last that ran."""
    one = {"effects_ledger": [1, 1], "effects_world": 1}
    table = side_by_side(
        [
            make_row("A", "7a0d43b", ["failed"]), make_row("B", "a1b562a", ["failed"]),
            make_row("A", "lab", ["succeeded"], **one),
        ]
    )  # fmt: skip
    assert table.body[0] == ("A", "no effect; -", "not run", "changed: 1 effect; -")
    assert table.body[1] == ("B", "not run", "no effect; -", "not run")


def test_side_by_side_refuses_two_rows_for_one_cell(rows) -> None:
    """Two rows of one case and rule set cannot share a cell, and the sentence names the cell."""
    with pytest.raises(RefusedValueError, match="B-no-authority, 7a0d43b: two rows for one cell"):
        side_by_side([*rows, rows[0]])
    with pytest.raises(RefusedValueError, match="rules: the row of B-no-authority has no such field"):
        side_by_side(rows, by="rules")


def test_events_table_takes_objects_and_lines(record) -> None:
    """A ledger line reads the same from an object and from parsed JSON."""
    story = record("88d1291")
    story.request("a1")
    story.start("a1")
    story.complete("a1")
    table = events_table(story.events)
    assert table == events_table([SimpleNamespace(**line) for line in story.events])
    assert table.body[0] == ("1", "action.requested", "a1", "K", 'asks for file.append: "append a line"')
    assert [row[1] for row in table.body] == [
        "action.requested",
        "action.execution_started",
        "action.completed",
    ]


def test_any_text_is_escaped() -> None:
    """Markup in a value, a head or a caption is shown and never takes effect (T3)."""
    nasty = "<script>alert(1)</script>\"'&"
    html = shown_table([{nasty: nasty}], nasty)._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;") == 3


def test_a_payload_cannot_break_the_lines_of_the_text() -> None:
    """A newline or a terminal escape in a value stays inside its cell."""
    assert repr(shown_table([{"a": "x\ny\x1b[2J"}], "Caption")).splitlines() == [
        "Caption", "", "a", "-----------", r"x\ny\x1b[2J",
    ]  # fmt: skip


def test_frames_and_rows_give_the_same_table() -> None:
    """A frame without its index and the same rows as mappings are one table; a missing value is a dash."""
    rows = [{"name": "x", "n": 1}, {"name": "y", "n": 20, "more": "z"}]
    assert shown_table(pd.DataFrame(rows), "C") == shown_table(rows, "C")
    assert shown_table(rows, "C").body == (("x", "1", "-"), ("y", "20", "z"))


def test_numbers_stand_under_one_another() -> None:
    """A column of numbers is aligned to the right in text and on the page; a column of words is not."""
    table = shown_table([{"name": "x", "n": 1}, {"name": "long name", "n": 20}], "C")
    assert repr(table).splitlines()[2:] == [
        "name        n",
        "---------  --",
        "x           1",
        "long name  20",
    ]
    assert table._repr_html_().count("text-align:right") == 3


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["1", "20", "-"], True), (["1,087", "5,021,668"], True), (["-3.5", "1e+06", "2.5e-07"], True),
        (["0 to 1", "12 to 1,000"], True), (["12 ms", "3.5 s", "800 us"], True), (["57 %", "5%"], True),
        (["0.73 x", "2x"], True), (["300/s", "280 /s"], True), (["1 MB", "2 GB"], True),
        (["1", "one"], False), (["1 effect"], False), (["88d1291", "1"], False), (["1,08"], False),
        (["1,0872"], False), (["1.2.3"], False), (["12 monkeys"], False), ([""], False),
    ],
)  # fmt: skip
def test_what_counts_as_a_number(cells: list[str], numeric: bool) -> None:
    """Separators, ranges and units of measure leave a number one; a name or a counted noun is none."""
    table = ShownTable(caption="C", head=("name", "n"), body=tuple(("x", cell) for cell in cells))
    assert (table._repr_html_().count("text-align:right") == len(cells) + 1) is numeric
    assert table._repr_html_().count("text-align:right") in (0, len(cells) + 1)


def test_an_empty_table_has_its_head() -> None:
    """A table without rows still says what its columns are."""
    assert repr(ShownTable(caption="C", head=("a", "b"), body=())).splitlines() == ["C", "", "a  b", "-  -"]
