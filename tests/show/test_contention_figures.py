"""The picture of contention: points of rows, theory beside them."""

from __future__ import annotations

import pytest
from measured import cells

from codeai_lab.decide import contention_laws
from codeai_lab.show.contention_figures import calls_and_time, contention_drawn, without_backoff
from codeai_lab.show.shown import house_style


def test_points_are_the_means_of_the_rows() -> None:
    """Calls as they are, time in seconds, each strategy from few clients to many (CF1)."""
    with house_style():
        calls, time = contention_drawn(reversed(cells())).axes
    by_label = {line.get_label(): [float(y) for y in line.get_ydata()] for line in calls.lines}
    assert by_label["full"] == [796.0, 1_210.0, 1_656.0]
    assert {line.get_label(): [float(y) for y in line.get_ydata()] for line in time.lines}["equal"] == [
        6.631, 7.965, 9.145,
    ]  # fmt: skip


@pytest.mark.parametrize("clients", [1, 2, 30])
def test_theory_is_the_theory(clients: int) -> None:
    """It is reckoned once for each number of clients, and comes to the same (CF1)."""
    assert without_backoff(clients) == contention_laws.without_backoff(clients)


def test_theory_is_drawn_only_beside_what_it_is_of() -> None:
    """No line without backoff where nobody ran without."""
    with house_style():
        calls = contention_drawn(cells()).axes[0]
    assert "theory: no backoff" not in {line.get_label() for line in calls.lines}


def test_the_caption_names_the_reference_at_a_hundred_clients(drawing) -> None:
    """796 calls are found among the rows, 1,859 are not."""
    caption = drawing(calls_and_time, cells()).caption
    assert "full jitter: 796, here 796" in caption
    assert "exponential: 1,859, here not among these rows" in caption
