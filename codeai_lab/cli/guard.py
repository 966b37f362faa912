"""What may a stored notebook not contain, so that its outputs stay true?

Chapter: 004, "Do this now": an output that nothing compares can say anything.

Idea: some cells are fine to look at and impossible to check: never run, changed after the fact, drawn from
memory addresses, or shown only as a picture. They are named before a reader trusts them.

Always true:
  G1. Every cell has a unique, hand-written id: a slug with a word in it.
  G2. The first cell is a title; every code cell has something to run and was run.
  G3. No cell uses what a second validator cannot follow: `Output`, `interact`, `clear_output`, displays that
      are updated later, or the history names `_`, `Out`, `In`.
  G4. An error stands only in a cell that is tagged for it, and a cell tagged for one has one.
  G5. Every output holds some text that two runs can be compared by.

Not here: running (`cli.kernel`), and what of an output is stored (`cli.sync`).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

SKIP_TAG = "nbval-skip"
ERROR_TAG = "raises-exception"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

NEVER_COMPARED = frozenset({"image/png", "image/jpeg", WIDGET_VIEW})
INTERACTING = frozenset({"interact", "interactive", "interact_manual", "interactive_output"})
MOVING = INTERACTING | {"Output", "clear_output", "update_display"}
HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[iod]h|Out|In")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
BARE_FIGURE = re.compile(r"<Figure size \S+ with .*>")

SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
MACHINE_MADE = re.compile(r"[0-9a-f]{8}(?:[0-9a-f]{24})?|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WORD = re.compile(r"[a-z]{2,}")


def guard(nb: NotebookNode) -> list[str]:
    """List what is wrong with a notebook as it is stored, a sentence each; empty where nothing is."""
    return source_complaints(nb) + output_complaints(nb)


def source_complaints(nb: NotebookNode) -> list[str]:
    """List what is wrong with what was written: ids, title, and names that must not be used."""
    return [*_ids(nb), *_title(nb), *(line for cell in _code(nb) for line in _names(cell))]


def output_complaints(nb: NotebookNode) -> list[str]:
    """List what is wrong with what a run left, or did not leave."""
    return [line for cell in _code(nb) for line in (*_never_run(cell), *_errors(cell), *_uncompared(cell))]


# --- what was written ----------------------------------------------------------------------------------


def _ids(nb: NotebookNode) -> Iterator[str]:
    times = Counter(cell.get("id") for cell in nb.cells)
    for number, cell in enumerate(nb.cells, start=1):
        name = cell.get("id")
        if not name:
            yield f"cell number {number} has no id; give it a slug that says what it does."
        elif not _is_slug(name):
            yield f"cell {name!r} needs an id written by hand: small letters, digits, hyphens, with a word."
    for name, count in times.items():
        if name and count > 1:
            yield f"the id {name!r} is used {count} times; ids are unique."


def _is_slug(name: str) -> bool:
    if len(name) > 64 or not SLUG.fullmatch(name) or MACHINE_MADE.fullmatch(name):
        return False
    return any(WORD.fullmatch(part) for part in re.split(r"[-_]", name))


def _title(nb: NotebookNode) -> Iterator[str]:
    first = nb.cells[0] if nb.cells else None
    if first is None or first.cell_type != "markdown" or not re.match(r"# \S", first.source):
        yield "the first cell must be text that begins with a title, '# …'."


def _names(cell: NotebookNode) -> Iterator[str]:
    try:
        tree = ast.parse(TransformerManager().transform_cell(cell.source))
    except SyntaxError:
        if ERROR_TAG not in _tags(cell):
            yield f"cell {cell.get('id')!r} is not Python."
        return
    for name in sorted(_moving(tree)):
        yield f"cell {cell.get('id')!r} uses {name}, whose result changes after the cell has ended."
    for name in sorted(_history(tree)):
        yield f"cell {cell.get('id')!r} reads {name}, which depends on what ran before; name the value."


def _moving(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in MOVING:
                found.add(name)
            case ast.keyword(arg="display_id"):
                found.add("display_id")
    return found


def _history(tree: ast.AST) -> set[str]:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in names if HISTORY.fullmatch(node.id)} - stored


# --- what a run left -----------------------------------------------------------------------------------


def _never_run(cell: NotebookNode) -> Iterator[str]:
    if not cell.source.strip():
        yield f"cell {cell.get('id')!r} is empty."
    elif cell.get("execution_count") is None and SKIP_TAG not in _tags(cell):
        yield f"cell {cell.get('id')!r} was never run."


def _errors(cell: NotebookNode) -> Iterator[str]:
    raised = [output for output in cell.outputs if output.output_type == "error"]
    if raised and ERROR_TAG not in _tags(cell):
        yield f"cell {cell.get('id')!r} raised {raised[0].ename} without the tag {ERROR_TAG}."
    if not raised and ERROR_TAG in _tags(cell) and cell.get("execution_count") is not None:
        yield f"cell {cell.get('id')!r} has the tag {ERROR_TAG} and raised nothing."


def _uncompared(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        data = output.get("data")
        if data is not None:
            comparable = {mime for mime in data if mime not in NEVER_COMPARED}
            pictures = data.keys() & NEVER_COMPARED - {WIDGET_VIEW}
            if pictures and comparable == {"text/plain"} and BARE_FIGURE.fullmatch(data["text/plain"]):
                comparable = set()
            if not comparable:
                yield f"cell {cell.get('id')!r} shows something that has no text to compare two runs by."
        if any(ADDRESS.search(text) for text in _texts(output)):
            yield f"cell {cell.get('id')!r} shows an address in memory, which is another one in every run."


# --- the parts of a cell -------------------------------------------------------------------------------


def _texts(output: NotebookNode) -> Iterator[str]:
    for key, value in (*output.items(), *output.get("data", {}).items()):
        if isinstance(value, str) and key not in NEVER_COMPARED:
            yield value


def _code(nb: NotebookNode) -> Iterator[NotebookNode]:
    return (cell for cell in nb.cells if cell.cell_type == "code")


def _tags(cell: NotebookNode) -> list[str]:
    tags: list[str] = cell.metadata.get("tags", [])
    return tags
