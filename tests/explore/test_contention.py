"""Clients that contend for one row, against the reference runs of the study's model."""

from __future__ import annotations

import numpy as np
import pytest

from codeai_lab.decide.backoff import Strategy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.contention import STUDIED, Contended, contend

REFERENCE_RUNS = 1_000
RUNS = 50
# (mean, sd of one run) of calls and of ms, 1,000 runs each, in the order of STUDIED
REFERENCE = {
    10: (
        ((50.8, 4.1), (50.8, 4.1), (42.5, 2.6), (39.1, 2.2), (37.7, 2.2)),
        ((380, 34), (3444, 1276), (726, 187), (467, 103), (437, 90)),
    ),
    50: (
        ((690.7, 17.7), (623.9, 29.9), (347.3, 6.2), (332.6, 4.9), (374.6, 12.8)),
        ((1141, 43), (36387, 3252), (4243, 568), (2901, 564), (2242, 512)),
    ),
    100: (
        ((2423.2, 32.8), (1859.0, 57.2), (812.6, 7.8), (796.1, 7.1), (1003.2, 28.1)),
        ((2029, 45), (63628, 3686), (6631, 659), (4892, 539), (4598, 712)),
    ),
    190: (
        ((8005.0, 68.0), (5162.2, 117.2), (1761.0, 12.2), (1772.2, 11.9), (2433.8, 59.9)),
        ((3537, 47), (101061, 4142), (9433, 621), (7470, 535), (7951, 855)),
    ),
}


def agrees(found: np.ndarray, reference: tuple[float, float]) -> bool:
    """Say whether a mean is within four standard errors of the difference from the reference mean."""
    mean, sd = reference
    return bool(abs(found.mean() - mean) <= 4 * sd * (1 / len(found) + 1 / REFERENCE_RUNS) ** 0.5)


@pytest.mark.parametrize("clients", REFERENCE)
@pytest.mark.parametrize("place", range(5), ids=STUDIED)
def test_calls_and_time_are_the_reference_ones(clients: int, place: int) -> None:
    """Calls and completion time of each strategy lie within the tolerance rule of the reference table."""
    runs = RUNS if clients < 190 else 20
    found = contend(STUDIED[place], clients=clients, runs=runs, seed=20261130)
    calls, time_ms = REFERENCE[clients]
    assert agrees(found.calls, calls[place])
    assert agrees(found.time_ms, time_ms[place])


def test_every_client_succeeds_once() -> None:
    """No run has fewer calls than clients, and a client alone makes one call of four messages."""
    assert (contend("full", clients=7, runs=300, seed=1).calls >= 7).all()
    alone = contend("exponential", clients=1, runs=300, seed=1)
    assert (alone.calls == 1).all()
    assert alone.time_ms.mean() == pytest.approx(40, abs=4 * 4 / 300**0.5)


def same(one: Contended, other: Contended) -> bool:
    return one.calls.tobytes() == other.calls.tobytes() and one.time_ms.tobytes() == other.time_ms.tobytes()


def test_a_cell_depends_on_nothing_but_its_names() -> None:
    """The same seed gives the same bytes, whatever was asked before; another seed gives others."""
    first = contend("full", clients=20, runs=150, seed=5)
    contend("equal", clients=20, runs=150, seed=5)
    assert same(first, contend(Strategy.FULL, clients=20, runs=150, seed=5))
    assert not same(first, contend("full", clients=20, runs=150, seed=6))


def test_more_runs_leave_the_first_as_they_were() -> None:
    """Runs are taken a hundred at a time, and a hundred that was run is the same when more are asked for."""
    first = contend("full", clients=10, runs=100, seed=5)
    more = contend("full", clients=10, runs=250, seed=5)
    assert more.calls.shape == (250,)
    assert (more.calls[:100] == first.calls).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"clients": 0}, "number of clients"),
        ({"clients": True}, "number of clients"),
        ({"runs": 0}, "number of runs"),
        ({"seed": -1}, "seed is a whole number"),
        ({"seed": 1.0}, "seed is a whole number"),
        ({"strategy": "None"}, "strategies contended with are no-backoff"),
        ({"base_ms": 0}, "base must be"),
    ],
)
def test_what_cannot_be_contended_is_refused(wrong: dict[str, object], says: str) -> None:
    """Each wrong argument is refused in one sentence that names it."""
    asked: dict[str, object] = {"strategy": "full", "clients": 5, "runs": 5, "seed": 1, **wrong}
    with pytest.raises(RefusedRequestError, match=says):
        contend(asked.pop("strategy"), **asked)  # type: ignore[arg-type]
