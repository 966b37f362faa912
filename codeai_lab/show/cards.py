"""Which run shows this failure mode, and which rule stops it?

Chapter: 004, "Failure modes"; 003, the last column of its table of state.

Idea: a failure mode is a name, one sentence on what the chapter says of it, a run that shows it, and the rule
that stops it. The numbers on a card are the run's own, so a card cannot claim what no run shows. A run is a
row of three witnesses, or a plain row: its first field names the run, its last one says what came of it.

Always true:
  C1. A card shows at least one run: of witnesses with counts, answers, labels and agreement, else as it is.
  C2. A card says on what kind of evidence it rests.
  C3. Page and plain text say the same; a folded card shows its name and its counts.

Not here: the failure modes themselves and their runs (`lessons`), the words for a row (`show.words`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.tables import ShownTable, shown_table, witness_table
from codeai_lab.show.words import effects, read, say

_PAGE_WIDTH = 100
_FRAME = "border:1px solid #999;padding:6px 10px;margin:0 0 6px 0"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShownCard:
    """One failure mode, for a notebook page and for a terminal."""

    name: str
    chapter_says: str
    counts: str
    runs: ShownTable
    notes: tuple[str, ...]
    rule: str
    evidence_label: str

    def __repr__(self) -> str:
        """Give every sentence of the card and the run's numbers as text."""
        said = [f"The chapter: {self.chapter_says}", f"The run: {self.counts}", *self.notes]
        stops = [f"What stops it: {self.rule}", f"Evidence: {self.evidence_label}"]
        table = textwrap.indent(repr(self.runs), "  ")
        return "\n".join([self.name, *map(_paragraph, said), "", table, "", *map(_paragraph, stops)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f'<details class="codeai-lab-card" style="{_FRAME}">\n'
            f"<summary><strong>{escape(self.name)}</strong> ({escape(self.counts)})</summary>\n"
            f"<p><strong>The chapter:</strong> {escape(self.chapter_says)}</p>\n"
            f"{self.runs._repr_html_()}\n" + (f"<ul>{notes}</ul>\n" if notes else "") +
            f"<p><strong>What stops it:</strong> {escape(self.rule)}</p>\n"
            f"<p><strong>Evidence:</strong> {escape(self.evidence_label)}</p>\n"
            "</details>"
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShownCards:
    """Several cards below one another, in the order given."""

    shown: tuple[ShownCard, ...]

    def __repr__(self) -> str:
        """Give the cards as text, with a rule between them."""
        return f"\n\n{'-' * 40}\n\n".join(map(repr, self.shown))

    def _repr_html_(self) -> str:
        return "\n".join(one._repr_html_() for one in self.shown)


def card(data: object) -> ShownCard:
    """Show one failure mode with the numbers of its run.

    Args:
        data: a mapping or an object with name, chapter_says, rule, evidence_label, and run: one row or
            several, all of three witnesses or all plain; the `notes` of a row stand below the table.
    Raises: RefusedValueError when one of these is missing or empty, there is no run, or its rows are of both
        kinds (definite).
    """
    texts = {field: _text(data, field) for field in ("name", "chapter_says", "rule", "evidence_label")}
    given = read(data, "run")
    rows = [given] if isinstance(given, Mapping) else list(given or ())
    if not rows:
        raise RefusedValueError(texts["name"], "a card needs a run that shows it; hand in at least one row.")
    kinds = {read(row, "effects_ledger") is not None for row in rows}
    if len(kinds) > 1:
        raise RefusedValueError(texts["name"], "rows of witnesses and plain rows need a card each.")
    return ShownCard(
        counts="; ".join(map(_counts if True in kinds else _in_short, rows)),
        runs=_witnessed(rows) if True in kinds else _plain(rows),
        notes=tuple(dict.fromkeys(say(note) for row in rows for note in read(row, "notes") or ())),
        **texts,
    )


def cards(several: Iterable[object]) -> ShownCards:
    """Show several failure modes, in the order given; each is as `card` takes it."""
    return ShownCards(shown=tuple(card(data) for data in several))


def _witnessed(rows: Sequence[Mapping[str, Any]]) -> ShownTable:
    return witness_table(rows, caption="What the run shows: effects, as three witnesses count them")


def _plain(rows: Sequence[Mapping[str, Any]]) -> ShownTable:
    figures = [{name.replace("_", " "): value for name, value in _figures(row).items()} for row in rows]
    return shown_table(figures, "What the runs show")


def _in_short(row: Mapping[str, Any]) -> str:
    figures = list(_figures(row).items())
    (_, run), (name, came) = figures[0], figures[-1]
    return f"{say(run)}: {say(name).replace('_', ' ')} {say(came)}"


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "notes"}


def _counts(row: Mapping[str, Any]) -> str:
    asked = read(row, "requests")
    requests = "1 request" if asked == 1 else f"{say(asked)} requests"
    case, rules = say(read(row, "case")), say(read(row, "revision"))
    return f"{case} under {rules}: {requests}, {effects(read(row, 'effects_world'))}"


def _text(data: object, field: str) -> str:
    text = read(data, field)
    if not isinstance(text, str) or not text.strip():
        raise RefusedValueError(field, "a card needs this text; hand in one sentence.")
    return say(text)


def _paragraph(text: str) -> str:
    return textwrap.fill(
        text, _PAGE_WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
