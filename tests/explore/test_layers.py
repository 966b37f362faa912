"""Layers that each try again, walked request by request."""

from __future__ import annotations

import pytest

from codeai_lab.decide.overload_laws import layered_calls, layered_failure
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.layers import ask_through_layers

REQUESTS = 20_000


@pytest.mark.parametrize(
    ("layers", "attempts", "failure"), [(1, 3, 0.5), (3, 3, 0.9), (3, 4, 0.5), (2, 4, 0.8), (1, 1, 0.3)]
)
def test_measured_calls_are_those_of_the_formula(layers: int, attempts: int, failure: float) -> None:
    """Calls and failures lie within four standard errors of (1 - f^(a^L)) / (1 - f) and f^(a^L)."""
    found = ask_through_layers(layers=layers, attempts=attempts, failure=failure, requests=REQUESTS, seed=7)
    error = max(found.calls.std(), 1e-12) / REQUESTS**0.5
    assert found.calls.mean() == pytest.approx(layered_calls(layers, attempts, failure), abs=4 * error)
    fails = layered_failure(layers, attempts, failure)
    error = (fails * (1 - fails) / REQUESTS) ** 0.5
    assert (~found.answered).mean() == pytest.approx(fails, abs=4 * error + 1e-12)


@pytest.mark.parametrize(("layers", "attempts", "calls"), [(3, 4, 64), (5, 3, 243), (4, 3, 81), (4, 4, 256)])
def test_in_an_outage_every_request_makes_all_its_calls(layers: int, attempts: int, calls: int) -> None:
    """With f = 1 there is no chance in it: attempts to the power of layers, each time."""
    found = ask_through_layers(layers=layers, attempts=attempts, failure=1.0, requests=20, seed=1)
    assert (found.calls == calls).all()
    assert not found.answered.any()


def test_a_request_fails_only_after_all_of_its_calls() -> None:
    """Calls lie between one and attempts^layers, and whoever failed has made them all."""
    found = ask_through_layers(layers=2, attempts=3, failure=0.7, requests=2_000, seed=2)
    assert found.calls.min() == 1
    assert found.calls.max() == 9
    assert (found.calls[~found.answered] == 9).all()
    assert not found.answered.all()


def test_the_same_seed_gives_the_same_calls() -> None:
    """Another stack of layers in between changes nothing, another seed does."""
    asked = {"layers": 2, "attempts": 3, "failure": 0.5, "requests": 100}
    first = ask_through_layers(**asked, seed=1).calls.tolist()  # type: ignore[arg-type]
    ask_through_layers(layers=3, attempts=3, failure=0.5, requests=100, seed=1)
    assert first == ask_through_layers(**asked, seed=1).calls.tolist()  # type: ignore[arg-type]
    assert first != ask_through_layers(**asked, seed=2).calls.tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"layers": 0}, {"attempts": 1.5}, {"failure": 2.0}, {"requests": 0}, {"layers": 30}]
)
def test_too_much_and_too_little_are_refused(wrong: dict[str, object]) -> None:
    """Counts from 1, a probability, and no more calls than can be walked."""
    asked: dict[str, object] = {
        "layers": 2,
        "attempts": 3,
        "failure": 0.5,
        "requests": 10,
        "seed": 1,
        **wrong,
    }
    with pytest.raises(RefusedRequestError):
        ask_through_layers(**asked)  # type: ignore[arg-type]
