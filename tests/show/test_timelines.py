"""The drawing of time lines."""

from __future__ import annotations

import pytest
from matplotlib.text import Annotation

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.timelines import arrows, timeline, timelines_side_by_side


@pytest.fixture
def recorded(record):
    """One effect, recorded, and replayed."""
    story = record("88d1291")
    story.request("a1")
    story.start("a1")
    story.effect("a1")
    story.complete("a1")
    story.request("a2")
    story.replay("a2", "a1")
    return story.events, story.receipts


@pytest.fixture
def orphaned(record):
    """One effect whose completion is missing, and the same key again."""
    story = record("88d1291")
    story.request("a1")
    story.start("a1")
    story.effect("a1")
    story.request("a2")
    story.start("a2")
    story.effect("a2")
    story.complete("a2")
    return story.events, story.receipts


def test_draws_every_arrow_and_nothing_else(drawing, orphaned) -> None:
    """Each arrow of the list is one arrow of the picture, with its number and its words (L1)."""
    (axes,) = drawing.figure(timeline, *orphaned, title="orphaned").axes
    steps = arrows(*orphaned)
    annotations = [text for text in axes.texts if isinstance(text, Annotation)]
    assert len(annotations) == len(steps)
    words = [" ".join(text.get_text().split()) for text in axes.texts if not isinstance(text, Annotation)]
    assert words[0] == "orphaned"
    assert words[1:6] == ["Caller", "Runtime", "Adapter", "World", "Ledger"]
    assert words[6:] == [f"{number}. {arrow.says}" for number, arrow in enumerate(steps, start=1)]


def test_inferred_lost_and_effect_read_in_grey(drawing, orphaned) -> None:
    """An inferred arrow is dashed, a lost one ends in a cross, an effect is thick (L2)."""
    (axes,) = drawing.figure(timeline, *orphaned, title="orphaned").axes
    patches = [text.arrow_patch for text in axes.texts if isinstance(text, Annotation)]
    steps = arrows(*orphaned)
    assert [patch.get_linestyle() != "solid" for patch in patches] == [
        one.evidence == "inferred" for one in steps
    ]
    assert [patch.get_linewidth() > 2 for patch in patches] == [one.target == "World" for one in steps]
    crosses = [line for line in axes.lines if line.get_marker() == "X"]
    assert len(crosses) == sum(one.lost for one in steps) == 1


def test_texts_stay_inside_and_apart(drawing, recorded, orphaned) -> None:
    """No word leaves the picture, and no two words touch."""
    titles = ("recorded completion replays", "orphaned request repeats")
    figure = drawing.figure(timelines_side_by_side, recorded, orphaned, titles)
    renderer = figure._get_renderer()
    page = figure.bbox
    for axes in figure.axes:
        boxes = [text.get_window_extent(renderer) for text in axes.texts if text.get_text()]
        assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)
        assert all(page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
        assert all(axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 for box in boxes)
        assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])


def test_long_names_are_wrapped_and_stay_inside(drawing, record) -> None:
    """A long key is broken over lines and still fits its half of the page."""
    story = record("1b3c7a2")
    story.request(
        "a-very-long-action-name-of-a-student", key="retry-effects/A-exact-duplicate/key-of-the-student-0042"
    )
    story.effect("a-very-long-action-name-of-a-student")
    figure = drawing.figure(timeline, story.events, story.receipts, title="long")
    (axes,) = figure.axes
    renderer = figure._get_renderer()
    assert all(
        axes.bbox.x0 <= text.get_window_extent(renderer).x0
        and text.get_window_extent(renderer).x1 <= axes.bbox.x1
        for text in axes.texts
        if text.get_text()
    )


def test_alt_is_counted_from_the_arrows(drawing, recorded, orphaned) -> None:
    """The sentence says how often the effect happens, what was replayed and where a record stops (L3)."""
    shown = drawing(timelines_side_by_side, recorded, orphaned, ("recorded", "orphaned"))
    assert shown.alt == (
        "Time line of 13 steps, recorded: the effect happens once; a request is answered from the record "
        "(succeeded, recorded by a1). Time line of 15 steps, orphaned: the effect happens twice; of these, "
        "once as a repetition; a record stops without a completion (STOPS: no completion of a1)."
    )


def test_text_twin_numbers_the_steps(drawing, recorded, orphaned) -> None:
    """The list beside the picture has each step with its number, its words and its evidence."""
    shown = drawing(timelines_side_by_side, recorded, orphaned, ("recorded", "orphaned"))
    assert shown.table.head == ("step", "recorded", "evidence", "orphaned", "evidence")
    assert len(shown.table.body) == 15
    assert shown.table.body[4] == (
        "5", "Adapter to World: effect happens (0001.txt)", "receipt 1",
        "Adapter to World: effect happens (0001.txt)", "receipt 1",
    )  # fmt: skip
    assert shown.table.body[14] == ("15", "", "", "Runtime to Caller: succeeded", "line 5")
    assert len(shown.numbers) == 13 + 15
    assert "Adapter to Runtime: STOPS: no" in repr(shown)


def test_caption_says_what_the_record_cannot_tell(drawing, recorded) -> None:
    """The caption names the limit: a death and an escaped exception look alike."""
    shown = drawing(timeline, *recorded, title="recorded")
    assert "cannot tell a process death from an exception that escaped" in shown.caption
    assert drawing(timeline, *recorded, title="recorded", caption="own words").caption == "own words"


def test_same_record_same_bytes(drawing, recorded) -> None:
    """Drawing twice gives the same bytes (F1)."""
    again = drawing.again(timeline, *recorded, title="recorded")
    assert again.svg == drawing(timeline, *recorded, title="recorded").svg


def test_nothing_to_draw_is_refused() -> None:
    """An empty case gives one sentence and no empty picture."""
    with pytest.raises(RefusedValueError):
        timeline([], [], title="empty")
