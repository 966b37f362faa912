"""What holds for every picture of waiting, overload and duplicates: it is its rows, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from measured import FIGURES

from codeai_lab.errors import RefusedValueError

every_figure = pytest.mark.parametrize("name", FIGURES)


@every_figure
def test_the_same_rows_give_the_same_bytes(drawing: Any, name: str) -> None:
    """Picture, sentence, caption, table and numbers depend on the rows alone."""
    drawn = FIGURES[name]
    one, other = drawing(drawn.draw, drawn.rows()), drawing.again(drawn.draw, drawn.rows())
    assert one.svg == other.svg
    assert (one.alt, one.caption, repr(one)) == (other.alt, other.caption, repr(other))
    assert one.numbers.equals(other.numbers)


@every_figure
def test_another_value_in_a_row_is_seen_everywhere(drawing: Any, name: str) -> None:
    """Where a row changes, so do the picture, the sentence, the table and the numbers."""
    drawn = FIGURES[name]
    before, after = drawing(drawn.draw, drawn.rows()), drawing(drawn.draw, drawn.changed())
    assert before.svg != after.svg
    assert before.alt != after.alt
    assert before.table != after.table
    # The numbers of the distributions are their quantiles, from which the atoms follow.
    assert name == "distributions" or not before.numbers.equals(after.numbers)


@every_figure
def test_a_caption_says_what_must_match_and_what_is_not_shown(drawing: Any, name: str) -> None:
    """Both stand in the caption, and an alternative text is one line."""
    shown = drawing(FIGURES[name].draw, FIGURES[name].rows())
    assert "To match: " in shown.caption
    assert any(words in shown.caption for words in ("cannot show", "Nothing says"))
    assert "\n" not in shown.alt
    assert shown.alt.endswith(".")


@every_figure
def test_what_cannot_be_drawn_is_refused_by_name(name: str) -> None:
    """No row, and a row without its fields, are one sentence."""
    drawn = FIGURES[name]
    empty: Any = {} if isinstance(drawn.rows(), dict) else []
    with pytest.raises(RefusedValueError):
        drawn.draw(empty)
    with pytest.raises(RefusedValueError, match="has no such field"):
        drawn.draw({"x": 1} if empty == {} else [{"x": 1}])


def test_another_process_draws_the_same_bytes() -> None:
    """Whatever its hash seed; one figure stands for all, since all go the same way."""
    script = (
        "import sys; sys.path.insert(0, 'tests/show'); import hashlib, measured\n"
        "one = measured.FIGURES['contention']; print(hashlib.sha256(one.draw(one.rows()).svg).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""}, cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
