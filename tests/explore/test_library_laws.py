"""The formulas of retry libraries against the published table of what the libraries waited."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from codeai_lab.decide.backoff import chapter_delay_ms
from codeai_lab.decide.backoff_laws import full_total_cdf
from codeai_lab.explore import library_laws as laws
from codeai_lab.explore.dice import stream
from codeai_lab.explore.library_laws import Law, busiest_second, crowd, each

CLIENTS, PUBLISHED_LOOPS = 40_000, 200  # the fewest loops that the published means were of, but one
FULL = "0.50 0.99 2.00 3.98 7.95 10.0 9.95 10.0"
AFTER = "1.5 2.5 4.5 8.5 16.5 20 20 20"
SDK = "0.44 0.87 1.74 3.52 7 7 7 7"
PUBLISHED: dict[str, tuple[Law, str]] = {
    "exponential": (each(laws.exponential), "1 2 4 8 16 20 20 20"),
    "full": (each(laws.full_jitter), FULL),
    "jitter, then cap": (each(laws.jitter_then_cap), AFTER),
    "cap, then jitter": (each(laws.cap_then_jitter), "1.5 2.5 4.5 8.5 16.5 20.5 20.5 20.5"),
    "urllib3": (each(laws.urllib3_exponential), "0 2 4 8 16 20 20 20"),
    "urllib3, jitter": (each(laws.urllib3_jitter), "0 2.49 4.48 8.53 16.5 20 20 20"),
    "httpx-retries, 1": (each(laws.httpx_retries(1.0)), "1.00 1.97 3.99 7.82 13.7 16.9 18.4 19.1"),
    "httpx-retries, 0.5": (each(laws.httpx_retries(0.5)), "1.50 2.97 6.06 11.9 19.5 20 20 20"),
    "aiohttp-retry": (each(laws.aiohttp_exponential), "2 4 8 16 20 20 20 20"),
    "aiohttp-retry, jitter": (each(laws.aiohttp_jitter), "2.33 4.33 8.37 16.3 20.4 20.4 20.3 20.3"),
    "botocore, transient": (each(laws.botocore_standard(0.05)), "0.025 0.05 0.1 0.2 0.4 0.8 1.6 3.2"),
    "botocore, legacy": (each(laws.botocore_legacy), "0.5 1 2 4 8 16 32 64"),
    "model SDKs": (each(laws.model_sdk), SDK),
    "gRPC": (each(laws.grpc), "1 2 4 8 16 20 20 20"),
    "Polly": (laws.polly, "0.87 1.16 2.08 4.12 8.24 14.8 18.6 19.7"),
    "the study": (each(laws.study_full_jitter), "1 2 4 8 10 10 10 10"),
    "the chapter": (each(laws.chapter), "0.5 1 2 4 8 10 10 10"),
}
# how well a crowd is spread: mean and sd of the total, share in the busiest second
SPREAD: dict[str, tuple[float, float, float]] = {
    "exponential": (91.0, 0.0, 1.0),
    "jitter, then cap": (93.5, math.sqrt(5 / 12), 0.551),
    "urllib3, jitter": (92.0, math.sqrt(4 / 12), 0.599),
    "cap, then jitter": (95.0, math.sqrt(8 / 12), 0.452),
    "aiohttp-retry, jitter": (112.7, 0.84, 0.442),
    "model SDKs": (34.6, 1.20, 0.314),
    "botocore, transient": (6.4, 2.13, 0.157),
    "gRPC": (91.0, 4.53, 0.086),
    "Polly": (69.6, 5.06, 0.085),
    "full": (45.5, 11.33, 0.035),
    "httpx-retries, 1": (83.3, 11.5, 0.035),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_law_gives_the_published_means(name: str) -> None:
    """Each retry's mean is the published one, within the sampling error of both."""
    law, published = PUBLISHED[name]
    chance = stream(1, name)
    waits = [np.broadcast_to(wait, CLIENTS) for wait in law(lambda: chance.random(CLIENTS))]
    for n, (wait, said) in enumerate(zip(waits, map(float, published.split()), strict=True), start=1):
        rounding = 0.5 * 10.0 ** -(1 if said >= 10 else 2)
        tolerance = 4 * wait.std() * math.sqrt(1 / CLIENTS + 1 / PUBLISHED_LOOPS) + rounding
        assert abs(wait.mean() - said) <= tolerance, n


@pytest.mark.parametrize("name", SPREAD)
def test_a_crowd_is_spread_as_published(name: str) -> None:
    """Total and busiest second are the published ones; jitter that vanishes at the cap leaves half in one."""
    mean, sd, share = SPREAD[name]
    error = 4 * math.sqrt(2 * share * (1 - share) / 200_000)  # the published share is of as many
    totals = crowd(PUBLISHED[name][0], clients=200_000, seed=1, name=name)
    assert totals.mean() == pytest.approx(mean, abs=4 * sd / math.sqrt(200_000) + 0.051)
    assert totals.std() == pytest.approx(sd, rel=0.01, abs=0.01)
    assert busiest_second(totals)[1] == pytest.approx(share, abs=error + 0.0005)


def test_the_busiest_second_has_its_closed_form() -> None:
    """A total of even draws is symmetric: the second around its mean is the busiest, and its share exact."""
    exact = {5: 66 / 120, 4: 230.0 / 384}  # of so many even draws from [0, 1)
    for draws, share in exact.items():
        windows = [1.0] * draws
        inside = full_total_cdf(windows, draws / 2 + 0.5) - full_total_cdf(windows, draws / 2 - 0.5)
        assert inside == pytest.approx(share)
    windows = [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0]
    full = full_total_cdf(windows, 46.0) - full_total_cdf(windows, 45.0)
    for name, share in (("jitter, then cap", exact[5]), ("urllib3, jitter", exact[4]), ("full", full)):
        _, found = busiest_second(crowd(PUBLISHED[name][0], clients=200_000, seed=2, name=name))
        assert share - 0.001 <= found <= share * 1.02 + 0.001


def test_the_busiest_second_is_found() -> None:
    """Of times in any order, the window of one second that most fall into, its end left out."""
    assert busiest_second([9.0, 3.0, 3.5, 3.9, 4.0, 7.0]) == (3.0, 0.5)
    assert busiest_second([5.0] * 4) == (5.0, 1.0)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_law_answers_for_one_client_as_for_a_crowd(name: str) -> None:
    """The same formula, handed numbers one at a time or arrays of them, gives the same waits."""
    law = PUBLISHED[name][0]
    draws = stream(3, name).random((laws.RETRIES, 5))
    together = iter(draws)
    crowded = [np.broadcast_to(wait, 5) for wait in law(lambda: next(together))]
    for client in range(5):
        alone = iter(draws[:, client])
        assert law(lambda alone=alone: float(next(alone))) == pytest.approx([w[client] for w in crowded])


def test_the_chapters_law_is_the_chapters_rule() -> None:
    """In milliseconds the law gives what `chapter_delay_ms` gives, draw for draw."""
    for draw in (0.0, 0.3, 0.999999):
        for n in range(1, 9):
            rule = chapter_delay_ms(n, base_ms=1_000, maximum_ms=20_000, jitter=draw)
            assert round(1_000 * laws.chapter(n, lambda draw=draw: draw)) == rule


def test_a_long_wait_of_polly_makes_the_next_one_short() -> None:
    """Each random point is used twice, so that neighbouring waits are correlated by about -0.4."""
    chance = stream(1, "polly")
    waits = laws.polly(lambda: chance.random(CLIENTS))
    assert np.corrcoef(waits[3], waits[4])[0, 1] == pytest.approx(-0.40, abs=0.03)
    assert all(before.mean() < after.mean() for before, after in pairwise(waits))
