"""What do the ledger, the world and the summary each say?

Chapter: 004, "The executed demo, read exactly"; the three witnesses.

Idea: one row a case and rule set, with the three witnesses side by side and the agreement named in words. A
table is text first: the same cells become a page's HTML and a terminal's fixed-width lines.

Always true:
  T1. HTML and plain text hold the same cells; both depend on the values alone.
  T2. A change or a disagreement begins with a word; weight follows from the word and colour is never used.
  T3. Every text is escaped; there is a caption, and every head has a scope. No style block, no id, no aria.

Not here: the words themselves (`show.words`), pictures (`show.figures`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.event_words import event_words
from codeai_lab.show.words import (
    agreement,
    answers,
    count,
    effects,
    labels,
    ledger_range,
    read,
    say,
)

_WITNESS_HEAD = (
    "case", "rules", "answers", "ledger says", "world shows", "summary says", "labels", "agreement",
)  # fmt: skip
MARKS = ("changed:", "disagree:")
_WIDEST_CELL = 36
_CELL = "vertical-align:top;padding:3px 8px;border-bottom:1px solid #999"
# What stands under one another by its last digit: numbers, with separators, ranges and units of measure.
_DIGITS = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = r"(?: ?%| ?x|(?: (?:us|ms|s|min|h|B|KB|MB|GB))|(?: ?/s))"
_NUMBER = re.compile(rf"-|{_DIGITS}(?: to {_DIGITS})?{_UNIT}?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """A table for a notebook page and for a terminal.

    `body` holds one tuple of texts a row; the first `row_heads` of each name the row.
    """

    caption: str
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]
    row_heads: int = 1

    def __repr__(self) -> str:
        """Give the caption and the cells in columns of fixed width."""
        rows = [[_wrapped(cell) for cell in row] for row in (self.head, *self.body)]
        widths = [max(len(line) for cell in column for line in cell) for column in zip(*rows, strict=True)]
        right = self._numeric()
        lines = [line for row in rows for line in _text_lines(row, widths, right)]
        under_head = max(len(cell) for cell in rows[0])
        lines.insert(under_head, "  ".join("-" * width for width in widths))
        return "\n".join([self.caption, "", *lines])

    def _repr_html_(self) -> str:
        right = self._numeric()
        head = "".join(_html_cell(text, "col", right[place]) for place, text in enumerate(self.head))
        body = "\n".join(f"<tr>{self._html_row(row, right)}</tr>" for row in self.body)
        caption_style = "caption-side:top;text-align:left;font-weight:bold;padding:4px 0"
        return (
            '<div style="overflow-x:auto">'
            '<table class="codeai-lab-table" style="border-collapse:collapse;margin:0;font-size:13px">\n'
            f'<caption style="{caption_style}">{escape(self.caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
        )

    def _html_row(self, row: tuple[str, ...], right: list[bool]) -> str:
        scopes = ["row" if place < self.row_heads else None for place in range(len(row))]
        return "".join(map(_html_cell, row, scopes, right))

    def _numeric(self) -> list[bool]:
        columns = zip(*self.body, strict=True) if self.body else [("",) for _ in self.head]
        return [all(_NUMBER.fullmatch(cell) for cell in column) for column in columns]


def witness_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Give one line a case and rule set, for further work in pandas.

    Args:
        rows: rows of three witnesses, as in `results.json`; shown in the order given.
    Returns: columns case, revision, requests, answers, ledger_low, ledger_high, world, summary (four
        counts of effects), labels, agreement. No rows give the columns alone.
    Raises: nothing of its own.
    """
    listed = list(rows)
    columns = {
        "case": [read(row, "case") for row in listed],
        "revision": [read(row, "revision") for row in listed],
        "requests": [read(row, "requests") for row in listed],
        "answers": [", ".join(answers(row)) for row in listed],
        "ledger_low": [ledger_range(row)[0] for row in listed],
        "ledger_high": [ledger_range(row)[1] for row in listed],
        "world": [read(row, "effects_world") for row in listed],
        "summary": pd.array([read(row, "effects_summary") for row in listed], dtype="Int64"),
        "labels": [", ".join(labels(row)) for row in listed],
        "agreement": [agreement(row) for row in listed],
    }
    return pd.DataFrame(columns)


def witness_table(
    rows: Iterable[Mapping[str, Any]], caption: str = "Effects, as three witnesses count them"
) -> ShownTable:
    """Show one line a case and rule set: what the ledger, the world's receipts and the summary say."""
    return ShownTable(
        caption=caption,
        head=_WITNESS_HEAD,
        body=tuple(_witness_cells(row) for row in rows),
        row_heads=2,
    )


def side_by_side(
    rows: Iterable[Mapping[str, Any]], by: str = "revision", caption: str = "Effects and labels, side by side"
) -> ShownTable:
    """Show effects and labels, one column for each value of `by`; a cell that differs from its left says so.

    Args:
        rows: rows of three witnesses; columns and lines keep the order of their first appearance.
        by: the field that makes the columns; "revision" puts the cases below one another, "case" the rules.
    Raises: RefusedValueError when two rows would stand in one cell, or a row lacks the field (definite).
    """
    below = "revision" if by == "case" else "case"
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for row in rows:
        line, column = say(read(row, below)), read(row, by)
        if column is None:
            raise RefusedValueError(
                by, f"the row of {line} has no such field; compare by revision or by case"
            )
        column = say(column)
        if column in cells.setdefault(line, {}):
            raise RefusedValueError(f"{line}, {column}", "two rows for one cell; show them in two tables")
        columns[column] = None
        cells[line][column] = _effects_and_labels(row)
    body = tuple((line, *_marked([found.get(column) for column in columns])) for line, found in cells.items())
    return ShownTable(caption=caption, head=(below, *columns), body=body)


def events_table(events: Iterable[object], caption: str = "What the ledger holds") -> ShownTable:
    """Show ledger lines, each with what it says in words; events may be objects or parsed lines."""
    body = tuple(
        (
            say(read(event, "seq")),
            say(read(event, "kind")),
            say(read(event, "stream_id")),
            say(read(event, "idempotency_key")),
            event_words(event),
        )
        for event in events
    )
    return ShownTable(caption=caption, head=("seq", "kind", "action", "key", "what it says"), body=body)


def shown_table(
    frame_or_rows: pd.DataFrame | Iterable[Mapping[str, Any]], caption: str, *, row_heads: int = 1
) -> ShownTable:
    """Show a frame (without its index) or mappings (columns in order of first appearance) as a table."""
    if isinstance(frame_or_rows, pd.DataFrame):
        head = [str(name) for name in frame_or_rows.columns]
        lines = [list(line) for line in frame_or_rows.itertuples(index=False, name=None)]
    else:
        rows = list(frame_or_rows)
        head = list(dict.fromkeys(name for row in rows for name in row))
        lines = [[row.get(name) for name in head] for row in rows]
    body = tuple(tuple(say(value) for value in line) for line in lines)
    return ShownTable(caption=caption, head=tuple(map(say, head)), body=body, row_heads=row_heads)


def _witness_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        say(read(row, "case")),
        say(read(row, "revision")),
        ", ".join(answers(row)),
        count(*ledger_range(row)),
        say(read(row, "effects_world")),
        say(read(row, "effects_summary")),
        ", ".join(labels(row)),
        agreement(row),
    )


def _effects_and_labels(row: Mapping[str, Any]) -> str:
    low, high = ledger_range(row)
    world = read(row, "effects_world")
    doubt = "" if low == high == world else f" (ledger {count(low, high)})"
    return f"{effects(world)}{doubt}; {', '.join(labels(row))}"


def _marked(line: list[str | None]) -> list[str]:
    """Put "changed:" before what differs from the last cell to its left that was run."""
    shown: list[str] = []
    before: str | None = None
    for cell in line:
        if cell is None:
            shown.append("not run")
            continue
        shown.append(cell if before in (None, cell) else f"changed: {cell}")
        before = cell
    return shown


def _wrapped(cell: str) -> list[str]:
    return textwrap.wrap(cell, _WIDEST_CELL, break_on_hyphens=False) or [""]


def _text_lines(row: list[list[str]], widths: list[int], right: list[bool]) -> list[str]:
    lines = []
    for depth in range(max(len(cell) for cell in row)):
        texts = [cell[depth] if depth < len(cell) else "" for cell in row]
        lines.append("  ".join(map(_aligned, texts, widths, right)).rstrip())
    return lines


def _aligned(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _html_cell(text: str, scope: str | None, right: bool) -> str:
    style = f"text-align:{'right' if right else 'left'};{_CELL}"
    inner = f"<strong>{escape(text)}</strong>" if text.startswith(MARKS) else escape(text)
    if scope is None:
        return f'<td style="{style}">{inner}</td>'
    return f'<th scope="{scope}" style="{style}">{inner}</th>'
