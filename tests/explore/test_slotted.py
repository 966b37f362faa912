"""The map of loads and stops, and many replicas of one system."""

from __future__ import annotations

import numpy as np
import pytest

from codeai_lab.decide.overload_laws import harmless_trigger_s, smallest_trigger_s
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.overload import simulate
from codeai_lab.explore.slotted import PhaseDiagram, phase_diagram, replicas
from codeai_lab.explore.systems import Open, System

TRIGGERS = tuple(hundredths / 100 for hundredths in range(0, 331, 5))


def first_failing(found: PhaseDiagram, load: float) -> float | None:
    row = found.failing[found.loads.index(load)]
    return found.triggers_s[int(np.argmax(row))] if row.any() else None


def test_the_smallest_stop_of_each_load() -> None:
    """In steps of 50 ms: 1.05 at 280, 1.10 at 240, 1.25 at 200, 1.50 at 160 and 155, none from 145 down."""
    found = phase_diagram((105, 140, 145, 155, 160, 200, 240, 280), TRIGGERS)
    expected = (None, None, None, 1.5, 1.5, 1.25, 1.1, 1.05)
    assert tuple(first_failing(found, load) for load in found.loads) == expected


@pytest.mark.parametrize("load", [155, 180, 200, 240, 280])
def test_the_border_lies_between_the_formulas(load: float) -> None:
    """Found in steps of 10 ms it is within 60 ms of (mu T / lambda + T) / 2, and never a harmless stop."""
    found = first_failing(phase_diagram((load,), [hundredths / 100 for hundredths in range(100, 161)]), load)
    known = {"capacity": 300.0, "timeout_s": 1.0}
    assert found == pytest.approx(smallest_trigger_s(load, **known), abs=0.065)
    assert found is not None
    assert found > harmless_trigger_s(load, **known)


def test_a_longer_stop_never_helps() -> None:
    """Along each load there is one border: below it all recover, above it none does."""
    found = phase_diagram((150, 170, 190, 220, 260, 300), TRIGGERS)
    assert (np.diff(found.failing.astype(int), axis=1) >= 0).all()
    assert not found.failing[:, found.triggers_s.index(0.0)].any()


def test_what_has_not_recovered_yet_is_failing_at_a_short_horizon_only() -> None:
    """After ten seconds of stop 140 needs 118 s: it looks lost when watched for 100, and is not."""
    short = phase_diagram((140,), (10.0,), horizon_s=100)
    assert short.failing.item() is True
    assert short.horizon_s == 100
    assert phase_diagram((140,), (10.0,), horizon_s=140).failing.item() is False


@pytest.mark.parametrize(("retries", "hidden"), [(1, 150), (2, 100), (3, 75)])
def test_the_hidden_capacity_divides_the_map(retries: int, hidden: float) -> None:
    """With R retries and a stop of many timeouts, loads above mu / (1 + R) fail, and those below recover."""
    found = phase_diagram((0.8 * hidden, 1.2 * hidden), (5.0,), retries=retries)
    assert found.failing[:, 0].tolist() == [False, True]


def test_without_retries_no_stop_lasts() -> None:
    """With no retry every load that can be served comes back."""
    assert not phase_diagram((100, 200, 280), (3.0,), retries=0).failing.any()


@pytest.mark.parametrize(("load", "trigger_s"), [(280, 1.5), (200, 1.0), (120, 3.0)])
def test_single_runs_agree_with_the_map(load: float, trigger_s: float) -> None:
    """Away from the border a run of the heap ends as the fluid does."""
    system = System(demand=Open(first_tries=load), trigger_s=trigger_s, horizon_s=80)
    run = simulate(system, seed=3, name=f"{load}")
    assert (run.recovered_after_s is None) == bool(phase_diagram((load,), (trigger_s,)).failing.item())


def test_replicas_scatter_around_twice_the_load() -> None:
    """Over many runs the mean load of the last minute is 560, its standard deviation 2 sqrt(280 / 60)."""
    found = replicas(280.0, runs=200, seed=5, horizon_s=100)
    assert found.load.mean() == pytest.approx(560, abs=4 * 4.32 / 200**0.5)
    assert found.load.std() == pytest.approx(4.32, rel=0.25)
    assert (found.goodput == 0).all()


def test_replicas_without_a_stop_are_healthy_and_the_same_for_a_seed() -> None:
    """280 a second, all of them answered; the same seed gives the same bytes, another one does not."""
    asked = {"runs": 20, "trigger_s": 0.0, "horizon_s": 40.0, "measured_s": 20.0}
    found = replicas(280.0, seed=5, **asked)  # type: ignore[arg-type]
    assert found.load.mean() == pytest.approx(280, abs=4 * (280 / 400) ** 0.5)
    assert (found.load == found.goodput).all()
    again = replicas(280.0, seed=5, **asked)  # type: ignore[arg-type]
    assert found.load.tobytes() == again.load.tobytes()
    assert found.load.tobytes() != replicas(280.0, seed=6, **asked).load.tobytes()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"loads": ()},
        {"triggers_s": ()},
        {"loads": (-1.0,)},
        {"triggers_s": (-1.0,)},
        {"triggers_s": (0.005,)},
        {"retries": -1},
        {"retries": True},
        {"timeout_s": 0.123_4},
    ],
)
def test_a_map_of_nothing_is_refused(wrong: dict[str, object]) -> None:
    """Loads, stops and retries from 0, and times in whole slots."""
    asked: dict[str, object] = {"loads": (280,), "triggers_s": (1.0,), **wrong}
    with pytest.raises(RefusedRequestError):
        phase_diagram(asked.pop("loads"), asked.pop("triggers_s"), **asked)  # type: ignore[arg-type]
