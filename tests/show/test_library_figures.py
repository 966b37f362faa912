"""What retry libraries do, with their versions."""

from __future__ import annotations

import pytest
from measured import libraries

from codeai_lab.errors import RefusedValueError
from codeai_lab.show import library_figures
from codeai_lab.show.library_figures import busiest_second, name_of


def test_the_most_crowded_stand_above_and_the_absent_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars fall, their hatch says where the cap is, and a library without a share has no bar (LF1)."""
    kept = []
    monkeypatch.setattr(library_figures, "show_figure", lambda fig, **given: kept.append((fig, given)))
    busiest_second(libraries())
    fig, given = kept[0]
    bars = fig.axes[0].patches
    assert [(bar.get_width(), bar.get_hatch() or None) for bar in bars] == [(0.5507, "////"), (0.0351, None)]
    assert [line[0] for line in given["table"].body] == [
        "tenacity 9.2.1", "backoff 2.2.1", "gone (not installed)",
    ]  # fmt: skip
    assert given["table"].body[2][-1] == "Not installed."


def test_the_caption_has_versions_and_what_must_match(drawing) -> None:
    """Versions are those of the rows; a formula has none (LF2)."""
    shown = drawing(busiest_second, libraries())
    assert "Versions: backoff 2.2.1, tenacity 9.2.1;" in shown.caption
    assert "tenacity, wait_exponential_jitter: 0.551, here 0.5507" in shown.caption
    assert "urllib3, =1: 0.599, here not among these rows" in shown.caption
    assert name_of({"library": "gRPC", "version": "formula"}) == "gRPC (formula)"


def test_nothing_that_could_be_driven_is_no_picture() -> None:
    """One sentence."""
    with pytest.raises(RefusedValueError, match="nothing to draw"):
        busiest_second([libraries()[2]])
