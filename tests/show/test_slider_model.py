"""The values of a question, and what is said of a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError, RefusedValueError
from codeai_lab.show.slider_model import Slider, SliderModel, Stage

CAP = Slider(name="cap", low=1, high=100, step=1, value=20, unit="s")
BASE = Slider(name="base", low=0.1, high=5, step=0.1, value=1)


class Asked:
    """Two functions that remember what they were asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, float]]] = []

    def preview(self, values: Mapping[str, float]) -> list[dict[str, Any]]:
        return self._gave("preview", values, 0.5)

    def full(self, values: Mapping[str, float]) -> list[dict[str, Any]]:
        return self._gave("full", values, 0.0)

    def _gave(self, stage: str, values: Mapping[str, float], off: float) -> list[dict[str, Any]]:
        self.calls.append((stage, dict(values)))
        if values["cap"] == 13:
            raise RefusedRequestError("Thirteen is refused here.")
        if values["cap"] == 14:
            raise ZeroDivisionError("a payload")
        return [{"total": values["cap"] + off, "base": values["base"]}]


def numbers(rows: Any) -> dict[str, float]:
    return {"total": rows[0]["total"], "same": 7.0}


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def model(asked: Asked) -> SliderModel:
    return SliderModel([CAP, BASE], preview=asked.preview, full=asked.full, numbers=numbers)


def test_it_begins_with_the_full_run(model: SliderModel, asked: Asked) -> None:
    """The first thing to see is no preview."""
    assert asked.calls == [("full", {"cap": 20, "base": 1.0})]
    assert (model.seen.stage, model.seen.words) == (Stage.FULL, "full run: total 20; same 7.")
    assert model.is_settled


@pytest.mark.parametrize(
    ("slider", "value", "at"),
    [(CAP, 0, 1), (CAP, 1e9, 100), (CAP, 30.4, 30), (BASE, 1.26, 1.3), (BASE, -1, 0.1), (BASE, 0.3, 0.3)],
)
def test_a_value_lies_on_a_step_of_the_span(slider: Slider, value: float, at: float) -> None:
    """What is beyond the span is its end, what is between two steps the nearest one (SM1)."""
    assert slider.nearest(value) == at
    assert isinstance(CAP.nearest(value), int)


def test_a_preview_is_called_one_and_compared_with_the_last_full_run(model: SliderModel) -> None:
    """However far one drags, "before" is what had come to rest (SM2, SM3)."""
    model.drag("cap", 30)
    seen = model.drag("cap", 40)
    assert seen.stage is Stage.PREVIEW
    assert seen.words == "preview: cap 20 s to 40 s. total 20 to 40.5; same still 7."
    assert not model.is_settled
    assert model.settle().words == "full run: cap 20 s to 40 s. total 20 to 40; same still 7."
    assert model.is_settled
    assert model.drag("base", 2).words == "preview: base 1 to 2. total 40 to 40.5; same still 7."


@pytest.mark.parametrize(
    ("cap", "words"), [(13, "Thirteen is refused here."), (14, "ended in ZeroDivisionError.")]
)
def test_what_goes_wrong_is_a_sentence_and_the_next_value_works(
    model: SliderModel, cap: int, words: str
) -> None:
    """The rows stay as they were, nothing of the error's own text is shown, and it is not settled (SM4)."""
    before = model.seen.rows
    assert model.drag("cap", cap).words.endswith(words)
    assert model.settle().failed
    assert model.seen.rows == before
    assert "payload" not in model.seen.words
    assert not model.is_settled
    assert model.drag("cap", 15).words.startswith("preview: cap 20 s to 15 s. total 20 to 15.5")


def test_names_and_spans_that_cannot_be_are_refused(model: SliderModel, asked: Asked) -> None:
    """An unknown slider, one that cannot move, and none at all."""
    with pytest.raises(RefusedValueError, match="there are cap, base"):
        model.drag("cup", 3)
    with pytest.raises(RefusedValueError, match="goes up in steps"):
        Slider(name="x", low=1, high=1, step=1, value=1)
    with pytest.raises(RefusedValueError, match="nothing to move"):
        SliderModel([], preview=asked.preview, full=asked.full, numbers=numbers)
