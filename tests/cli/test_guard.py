"""The laws of cli.guard, each on the smallest notebook that breaks it."""

from __future__ import annotations

import pytest
from nbformat import NotebookNode, v4

from codeai_lab.cli.guard import guard, output_complaints, source_complaints


def code(
    source: str, *outputs: NotebookNode, cell_id: str = "one-cell", tags: tuple[str, ...] = ()
) -> NotebookNode:
    cell = v4.new_code_cell(source, outputs=list(outputs), execution_count=1, metadata={"tags": list(tags)})
    cell.id = cell_id  # afterwards, since nbformat itself refuses some of the ids below
    return cell


def notebook(*cells: NotebookNode) -> NotebookNode:
    nb = v4.new_notebook()
    nb.cells = [v4.new_markdown_cell("# Title", id="title"), *cells]
    return nb


def shown(**data: str) -> NotebookNode:
    return v4.new_output("display_data", {name.replace("__", "/"): text for name, text in data.items()})


def test_a_clean_notebook_has_no_complaint() -> None:
    """A titled, executed notebook with text in every output passes."""
    figure = shown(text__html="<figure>…</figure>", text__plain="one bar")
    assert guard(notebook(code("x = 1\nx", figure), code("for _ in range(3): pass", cell_id="a-loop"))) == []


@pytest.mark.parametrize("name", ["run", "fig-retries", "step_2", "01-predict", "facade", "cell-8f0a"])
def test_a_slug_with_a_word_is_an_id(name: str) -> None:
    """G1: small letters, digits and hyphens with one word of letters make an id."""
    assert source_complaints(notebook(code("1", cell_id=name))) == []


@pytest.mark.parametrize(
    "name",
    [
        "deadbeef",
        "3f9a01bc",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "0d9c2e64-beef-4a3b-8d1e-0123456789ab",
        "aBcDeFgH",
        "12",
        "a-1",
        "x" * 65,
        "two--hyphens",
        "with space",
    ],
)
def test_a_random_looking_id_is_refused(name: str) -> None:
    """G1: what a program would make up is no id."""
    (complaint,) = source_complaints(notebook(code("1", cell_id=name)))
    assert name in complaint


def test_a_missing_and_a_repeated_id_are_refused() -> None:
    """G1: every cell has an id, and no two have the same."""
    nameless = code("1")
    del nameless["id"]
    complaints = source_complaints(notebook(nameless, code("2", cell_id="twin"), code("3", cell_id="twin")))
    assert complaints == [
        "cell number 2 has no id; give it a slug that says what it does.",
        "the id 'twin' is used 2 times; ids are unique.",
    ]


@pytest.mark.parametrize(
    "first", [v4.new_markdown_cell("## Two", id="two"), v4.new_code_cell("1", id="code")]
)
def test_the_first_cell_is_a_title(first: NotebookNode) -> None:
    """G2: a notebook begins with a heading of the first level."""
    assert source_complaints(v4.new_notebook(cells=[first])) == [
        "the first cell must be text that begins with a title, '# …'."
    ]
    assert len(source_complaints(v4.new_notebook(cells=[]))) == 1


def test_a_cell_that_was_never_run_is_refused_unless_it_is_tagged() -> None:
    """G2: every code cell has a count, but those that say they are skipped."""
    unrun, skipped = code("1", cell_id="unrun"), code("2", cell_id="skipped", tags=("nbval-skip",))
    unrun.execution_count = skipped.execution_count = None
    assert output_complaints(notebook(unrun, skipped)) == ["cell 'unrun' was never run."]


def test_an_empty_cell_is_refused() -> None:
    """G2: a code cell has something to run."""
    assert output_complaints(notebook(code(" \n"))) == ["cell 'one-cell' is empty."]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import ipywidgets\nipywidgets.Output()", "Output"),
        ("from ipywidgets import interact as play", "interact"),
        ("%matplotlib inline\nclear_output(wait=True)", "clear_output"),
        ("h = display(1, display_id=True)", "display_id"),
        ("IPython.display.update_display(2, display_id='x')", "update_display"),
        ("_ + 1", "_"),
        ("Out[3]", "Out"),
        ("print(_4)", "_4"),
        ("print(In)", "In"),
    ],
)
def test_names_that_a_second_validator_cannot_follow_are_refused(source: str, name: str) -> None:
    """G3: what changes after the cell, or hangs on what ran before, is named with its cell."""
    complaints = source_complaints(notebook(code(source)))
    assert any(
        f"cell 'one-cell' uses {name}," in c or f"cell 'one-cell' reads {name}," in c for c in complaints
    )


@pytest.mark.parametrize(
    "source", ["for _ in range(2): pass", "[_ for _ in 'ab']", "f = lambda _: _", "%pwd\n!ls"]
)
def test_a_name_of_its_own_is_no_history(source: str) -> None:
    """G3: an underscore that the cell itself binds, and magics, are allowed."""
    assert source_complaints(notebook(code(source))) == []


def test_a_cell_that_is_not_python_is_refused_unless_tagged() -> None:
    """G3: a cell that cannot be read cannot be judged, but a syntax error on purpose is one."""
    assert source_complaints(notebook(code("a b"))) == ["cell 'one-cell' is not Python."]
    assert source_complaints(notebook(code("a b", tags=("raises-exception",)))) == []


def test_an_error_and_its_tag_come_together() -> None:
    """G4: an untagged error and a tag without an error are both refused."""
    error = v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    assert output_complaints(notebook(code("raise", error, tags=("raises-exception",)))) == []
    assert output_complaints(notebook(code("raise", error))) == [
        "cell 'one-cell' raised ValueError without the tag raises-exception."
    ]
    assert output_complaints(notebook(code("1", tags=("raises-exception",)))) == [
        "cell 'one-cell' has the tag raises-exception and raised nothing."
    ]


@pytest.mark.parametrize(
    "output",
    [
        shown(image__png="AAAA"),
        shown(image__png="AAAA", text__plain="<Figure size 640x480 with 1 Axes>"),
        v4.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}),
        v4.new_output("display_data", {}),
    ],
)
def test_an_output_without_text_is_refused(output: NotebookNode) -> None:
    """G5: a picture or a widget that comes alone proves nothing."""
    assert output_complaints(notebook(code("show()", output))) == [
        "cell 'one-cell' shows something that has no text to compare two runs by."
    ]


def test_an_address_in_memory_is_refused() -> None:
    """G5: a text that differs in every run is no text to compare by."""
    stream = v4.new_output("stream", name="stdout", text="<object object at 0x7f1200aa>\n")
    value = shown(text__plain="<object object at 0x7f1200aa>")
    for output in (stream, value):
        assert output_complaints(notebook(code("show()", output))) == [
            "cell 'one-cell' shows an address in memory, which is another one in every run."
        ]
