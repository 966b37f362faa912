"""Sliders, their figure and their line of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure
from test_slider_model import Asked, numbers

from codeai_lab.show.sliders import PAUSE_S, Sliders, on_running_loop, with_sliders

VALUES = {"cap": (1, 100, 1, 20), "base": (0.1, 5, 0.1, 1)}


class Loop:
    """What is to happen later, by hand."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, function: Callable[[], None]) -> Loop:
        self.waiting.append((seconds, function))
        return self

    def cancel(self) -> None:
        self.waiting.clear()

    def pause(self) -> None:
        for _, function in list(self.waiting):
            function()


def draw(rows: Any) -> Figure:
    fig = Figure(figsize=(3, 2), layout="constrained")
    fig.subplots().plot([0, rows[0]["total"]])
    return fig


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def shown(asked: Asked, loop: Loop) -> Sliders:
    return with_sliders(
        VALUES, preview=asked.preview, full=asked.full, numbers=numbers, draw=draw, title="A total.",
        units={"cap": "s"}, later=loop,
    )  # fmt: skip


def test_while_dragging_previews_then_one_full_run(shown: Sliders, asked: Asked, loop: Loop) -> None:
    """Every move is a preview, and only the last one is followed by the full run (SD2)."""
    for cap in (30, 40, 50):
        shown.fields["cap"].value = cap
    assert [stage for stage, _ in asked.calls] == ["full", "preview", "preview", "preview"]
    assert [seconds for seconds, _ in loop.waiting] == [PAUSE_S]
    loop.pause()
    assert asked.calls[-1] == ("full", {"cap": 50, "base": 1.0})
    assert "full run: cap 20 s to 50 s. total 20 to 50; same still 7." in shown.status.value


def test_the_button_asks_for_the_full_run_once(shown: Sliders, asked: Asked, loop: Loop) -> None:
    """It calls the waiting one off, and where all is settled it does nothing (SD2, SD4)."""
    shown.button.click()
    assert len(asked.calls) == 1
    shown.fields["cap"].value = 30
    shown.button.click()
    shown.button.click()
    assert [stage for stage, _ in asked.calls] == ["full", "preview", "full"]
    assert not loop.waiting


def test_line_and_picture_show_the_same_values(shown: Sliders) -> None:
    """The line is a status, says preview, and the picture's text has it too (SD1)."""
    before = shown.picture.value
    shown.fields["cap"].value = 40
    assert shown.status.value.startswith('<p role="status"')
    assert "preview: cap 20 s to 40 s. total 20 to 40.5; same still 7." in shown.status.value
    assert "preview: cap 20 s to 40 s. total 20 to 40.5" in shown.picture.value
    assert shown.picture.value != before


def test_what_goes_wrong_keeps_the_picture(shown: Sliders) -> None:
    """A sentence stands in the line, and the last picture below it."""
    source = re.compile(r'src="([^"]+)"')
    before = source.findall(shown.picture.value)
    shown.fields["cap"].value = 13
    assert "Thirteen is refused here." in shown.status.value
    assert source.findall(shown.picture.value) == before


def test_text_and_page_are_what_is_shown(shown: Sliders, asked: Asked, loop: Loop) -> None:
    """A stored notebook has the page, the same for the same values; the widget is there beside it (SD3)."""
    other = with_sliders(
        VALUES, preview=asked.preview, full=asked.full, numbers=numbers, draw=draw, title="A total.",
        units={"cap": "s"}, later=loop,
    )  # fmt: skip
    one, two = shown._repr_mimebundle_(), other._repr_mimebundle_()
    assert one["text/html"] == two["text/html"]
    assert one["text/plain"] == two["text/plain"] == repr(shown)
    assert "application/vnd.jupyter.widget-view+json" in one
    assert "full run: total 20; same 7." in one["text/plain"]
    assert "full run: total 20; same 7." in one["text/html"]
    assert not re.search("role=|aria-|<style|<svg", one["text/html"])


def test_without_a_loop_the_button_is_left() -> None:
    """Nothing waits where no event loop runs."""
    assert on_running_loop(1.0, lambda: None) is None


def test_on_a_loop_the_full_run_comes_by_itself() -> None:
    """The running loop calls the function, and can be told not to."""
    import asyncio

    async def waited() -> list[str]:
        told: list[str] = []
        on_running_loop(0, lambda: told.append("called"))
        called_off = on_running_loop(0, lambda: told.append("called off"))
        assert called_off is not None
        called_off.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return told

    assert asyncio.run(waited()) == ["called"]
