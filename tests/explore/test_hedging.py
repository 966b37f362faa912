"""A second copy, sent before the first answer is late."""

from __future__ import annotations

import pytest

from codeai_lab.decide.overload_laws import hedged_quantile, hedged_share
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.hedging import hedge

REQUESTS = 400_000


@pytest.mark.parametrize("after", [0.5, 1.0, 3.0])
def test_extra_load_and_tail_are_those_of_the_formulas(after: float) -> None:
    """The share sent twice is e^-d, and one in a thousand is slower than (ln 1000 + d) / 2."""
    found = hedge(after=after, requests=REQUESTS, seed=11)
    share, rare = hedged_share(after), 0.001
    assert found.twice.mean() == pytest.approx(share, abs=4 * (share * (1 - share) / REQUESTS) ** 0.5)
    slower = (found.latency > hedged_quantile(after, rare)).mean()
    assert slower == pytest.approx(rare, abs=4 * (rare / REQUESTS) ** 0.5)
    assert found.exceeded_by(rare) == pytest.approx(hedged_quantile(after, rare), abs=4 * 0.026)
    assert found.exceeded_by(rare, hedged=False) == pytest.approx(6.908, abs=4 * 0.05)


def test_a_hedge_makes_nothing_slower() -> None:
    """Whoever was answered before the wait ended is as fast as alone; nobody is slower."""
    found = hedge(after=1.0, requests=1_000, seed=1)
    assert (found.latency <= found.alone).all()
    assert (found.latency[~found.twice] == found.alone[~found.twice]).all()
    assert (found.twice == (found.alone > 1.0)).all()
    assert (found.latency[found.twice] > 1.0).all()


def test_the_same_seed_gives_the_same_latencies() -> None:
    """Seed and wait decide, and nothing else."""
    first = hedge(after=1.0, requests=50, seed=1).latency
    hedge(after=2.0, requests=50, seed=1)
    assert first.tobytes() == hedge(after=1.0, requests=50, seed=1).latency.tobytes()
    assert first.tobytes() != hedge(after=1.0, requests=50, seed=2).latency.tobytes()


@pytest.mark.parametrize(
    "wrong", [{"requests": 0}, {"requests": True}, {"after": -1.0}, {"after": float("nan")}]
)
def test_no_requests_and_no_wait_are_refused(wrong: dict[str, object]) -> None:
    """Requests from 1 and a wait from 0."""
    with pytest.raises(RefusedRequestError):
        hedge(**{"after": 1.0, "requests": 5, "seed": 1, **wrong})  # type: ignore[arg-type]
