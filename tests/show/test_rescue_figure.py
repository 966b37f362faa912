"""Which systems come back."""

from __future__ import annotations

import pytest
from measured import systems

from codeai_lab.show import rescue_figure
from codeai_lab.show.rescue_figure import rescues


def test_open_and_closed_stand_apart_and_the_failing_are_hatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel each; what fails says so in hatch and in words (RE1, RE2)."""
    kept = []
    monkeypatch.setattr(rescue_figure, "show_figure", lambda fig, **_: kept.append(fig))
    rescues(systems())
    opened, closed = kept[0].axes
    assert [(bar.get_width(), bar.get_hatch() or None) for bar in opened.patches] == [
        (556.4, "////"),
        (281.5, None),
    ]
    assert [text.get_text() for text in opened.texts] == ["fails to the end", "back after 127 s"]
    assert [(bar.get_width(), bar.get_hatch() or None) for bar in closed.patches] == [(400.0, "////")]


def test_loads_are_said_beside_theory(drawing) -> None:
    """The table has both, and the horizon of what never came back."""
    shown = drawing(rescues, systems())
    assert shown.table.body[0][2:] == ("556.4 (560)", "0.0", "fails to the end (400 s)")
    assert "open: 1 of 2 fail to the end (280-one-retry); closed: 1 of 1" in shown.alt
    assert "open, one retry: load: 560, within 18, here 556.4" in shown.caption
