"""Layers, throttling, hedging: bars and markers are measured, lines and diamonds are theory."""

from __future__ import annotations

import pytest
from measured import hedged, stacks, throttled

from codeai_lab.show import layer_figures
from codeai_lab.show.layer_figures import hedging, layers, throttling


def test_layers_are_said_with_the_published_totals(drawing) -> None:
    """64 is among the rows, 243 is not, and every stack stands in the sentence."""
    shown = drawing(layers, stacks())
    assert "three layers of 4 attempts: 64, here 64" in shown.caption
    assert "five of 3: 243, here not among these rows" in shown.caption
    assert "3 layers x 4 attempts, every call fails: 64; 1 layer x 3 attempts, 50% fail: 1.743" in shown.alt
    assert shown.table.body[1] == ("1 layer x 3 attempts, 50% fail", "1.743 (1.75)")


def test_a_bar_is_measured_and_a_diamond_is_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each from its own part of the row (YF1)."""
    kept = []
    monkeypatch.setattr(layer_figures, "show_figure", lambda fig, **_: kept.append(fig))
    layers(stacks())
    axes = kept[0].axes[0]
    assert [bar.get_width() for bar in axes.patches] == [64.0, 1.743]
    assert [float(x) for x in axes.lines[0].get_xdata()] == [64.0, 1.75]


def test_throttling_names_the_load_for_each_k(drawing) -> None:
    """K times what is accepted, beside what was measured."""
    shown = drawing(throttling, throttled())
    assert "load at K = 2: 200, here 199.9; load at K = 1.5: 150, here 149.7" in shown.caption
    assert shown.table.body == (("1.5", "149.7 (150)", "100 (100)"), ("2", "199.9 (200)", "100 (100)"))


def test_hedging_names_cost_and_gain(drawing) -> None:
    """The share that is sent twice, and the percentile, each with its closed form."""
    shown = drawing(hedging, hedged())
    assert "sent twice after 1: 0.3679, here 0.3681" in shown.caption
    assert "percentile after 0.5: 3.704, here not among these rows" in shown.caption
    assert shown.table.body[0] == ("1", "0.3681 (0.3679)", "3.961 (3.954)", "6.91")
