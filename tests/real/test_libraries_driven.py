"""Every library's own loop, at full counts, against the published table; and over a real connection."""

from __future__ import annotations

import json
import math
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pytest

from codeai_lab.explore.dice import stream
from codeai_lab.lessons.libraries import libraries_measured
from codeai_lab.lessons.library_catalogue import DRIVEN
from codeai_lab.lessons.library_standins import Chance, standing_in
from codeai_lab.lessons.measured import Measured

pytestmark = pytest.mark.real

LOOPS, PUBLISHED_LOOPS = 400, 60  # the fewest loops that a published mean was of
SDK = "0.44 0.87 1.74 3.52 7 7 7 7"
AFTER = "1.5 2.5 4.5 8.5 16.5 20 20 20"
# case: version, whether the first attempt counts, where the cap is, mean waits, total
PUBLISHED: dict[str, tuple[str, bool | None, str, str, float]] = {
    "tenacity-wait-exponential": ("9.2.1", True, "none", "1 2 4 8 16 20 20 20", 91.0),
    "tenacity-wait-random-exponential": (
        "9.2.1", True, "before", "0.50 1.01 2.02 4.04 7.96 9.96 9.90 9.94", 45.3,
    ),
    "tenacity-wait-exponential-jitter": ("9.2.1", True, "after", AFTER, 93.5),
    "stamina": ("26.1.0", True, "after", AFTER, 93.5),
    "backoff-expo-full-jitter": ("2.2.1", True, "before", "0.50 0.99 2.00 3.95 7.99 10.1 9.98 10.1", 45.6),
    "backoff-expo-random-jitter": ("2.2.1", True, "before", "1.5 2.5 4.5 8.5 16.5 20.5 20.5 20.5", 95.0),
    "google-api-core-retry": ("2.44.0", None, "before", "0.50 0.98 1.96 4.07 7.91 10.1 9.91 10.1", 45.6),
    "urllib3-backoff-jitter-0": ("2.8.0", False, "none", "0 2 4 8 16 20 20 20", 90.0),
    "urllib3-backoff-jitter-1": ("2.8.0", False, "after", "0 2.49 4.48 8.53 16.5 20 20 20", 92.0),
    "httpx-retries-backoff-jitter-1": (
        "0.6.0", False, "after", "1.00 1.97 3.99 7.82 13.7 16.9 18.4 19.1", 82.8,
    ),
    "httpx-retries-backoff-jitter-0.5": (
        "0.6.0", False, "after", "1.50 2.97 6.06 11.9 19.5 20 20 20", 101.9,
    ),
    "aiohttp-retry-exponentialretry": ("2.9.1", True, "none", "2 4 8 16 20 20 20 20", 110.0),
    "aiohttp-retry-jitterretry": ("2.9.1", True, "before", "2.33 4.33 8.37 16.3 20.4 20.4 20.3 20.3", 112.7),
    "botocore-standard-transient": ("1.44.8", True, "before", "0.025 0.05 0.1 0.2 0.4 0.8 1.6 3.2", 6.4),
    "botocore-standard-throttling": (
        "1.44.8", True, "before", "0.45 0.97 1.98 4.48 7.91 9.88 10.3 11.2", 45.5,
    ),
    "botocore-legacy": ("1.44.8", True, "none", "0.5 1 2 4 8 16 32 64", 127.5),
    "openai": ("3.57.0", False, "before", SDK, 34.6),
    "anthropic": ("2.14.0", False, "before", SDK, 34.6),
    "requests-as-it-comes": ("2.34.2", None, "none", "", 0.0),
}  # fmt: skip
SHARES = {
    "tenacity-wait-exponential": 1.0, "tenacity-wait-exponential-jitter": 0.551, "stamina": 0.551,
    "urllib3-backoff-jitter-1": 0.599, "backoff-expo-random-jitter": 0.452,
    "aiohttp-retry-jitterretry": 0.442, "openai": 0.314, "anthropic": 0.314,
    "botocore-standard-transient": 0.157, "backoff-expo-full-jitter": 0.035,
    "google-api-core-retry": 0.035, "tenacity-wait-random-exponential": 0.035,
    "httpx-retries-backoff-jitter-1": 0.035,
}  # fmt: skip


def found(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


@pytest.fixture(scope="module")
def measured() -> dict[str, Measured]:
    """All rows, with an environment that would send any of the libraries astray."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
            patch.setenv(name, "http://127.0.0.1:1")
        for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            patch.setenv(name, "of-the-environment")
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
            patch.setenv(name, "http://127.0.0.1:1/astray")
        patch.setenv("AWS_PROFILE", "there-is-none")

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a loop asked the network")

        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return {one.case: one for one in libraries_measured(loops=LOOPS)}


def row_of(measured: dict[str, Measured], case: str) -> dict[str, Any]:
    entry = next(entry for entry in DRIVEN if entry.case == case)
    if found(entry.library) != PUBLISHED[case][0]:
        pytest.skip(f"{entry.library} {PUBLISHED[case][0]} is not installed")
    return dict(measured[case].row)


def test_every_driven_row_has_a_published_one() -> None:
    """The table has a row for each loop that is driven."""
    assert {entry.case for entry in DRIVEN} == PUBLISHED.keys()


@pytest.mark.parametrize("case", PUBLISHED)
def test_a_library_waits_as_published(measured: dict[str, Measured], case: str) -> None:
    """Version, counting, cap order, each mean wait and the total are the published ones, within the error."""
    row = row_of(measured, case)
    entry = next(entry for entry in DRIVEN if entry.case == case)
    known, counts, order, means, total = PUBLISHED[case]
    loops = max(2, LOOPS // entry.one_loop_in)
    assert (row["version"], row["counts_first_attempt"], row["cap_order"]) == (known, counts, order)
    assert (row["driven"], row["loops"], row["note"]) == (True, loops, entry.note)
    chance = stream(1, case)
    waits = [np.broadcast_to(wait, 20_000) for wait in entry.law(lambda: chance.random(20_000))]
    spreads = [float(wait.std()) for wait in waits]
    error = 4 * math.sqrt(1 / loops + 1 / PUBLISHED_LOOPS)
    for got, said, sd in zip(row["mean_sleeps"], map(float, means.split()), spreads, strict=True):
        assert abs(got - said) <= error * sd + (0.05 if said >= 10 else 0.005)
    sd = float(sum(waits).std()) if waits else 0.0
    assert abs(row["total_mean"] - total) <= error * sd + 0.051
    assert abs(row["total_sd"] - sd) <= max(4 * sd / math.sqrt(2 * loops) * 1.3, 1e-9)


@pytest.mark.parametrize("case", SHARES)
def test_the_busiest_second_is_as_published(measured: dict[str, Measured], case: str) -> None:
    """Of a crowd that failed together the published share comes back within one second."""
    row = row_of(measured, case)
    share = SHARES[case]
    error = 4 * math.sqrt(2 * share * (1 - share) / 200_000) + 0.0005
    assert row["busiest_second"] == pytest.approx(share, abs=error)
    beside = row["in_busiest_second"]
    assert abs(beside["sampled"] - share) <= 4 * math.sqrt(share * (1 - share) / row["loops"]) + 0.0005


def test_the_last_wait_is_the_cap_as_published(measured: dict[str, Measured]) -> None:
    """Always where the clamp comes after a jitter of one second, never where it comes before."""
    for case, share in {
        "tenacity-wait-exponential-jitter": 1.0,
        "urllib3-backoff-jitter-1": 1.0,
        "httpx-retries-backoff-jitter-1": 0.922,
        "backoff-expo-full-jitter": 0.0,
        "openai": 0.0,
    }.items():
        error = 4 * math.sqrt(share * (1 - share) / LOOPS)
        assert abs(row_of(measured, case)["p_last_is_cap"] - share) <= error + 0.0005


@pytest.mark.skipif(not found("urllib3"), reason="urllib3 is an extra")
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_an_answer_from_below_the_loop_is_as_good_as_one_from_a_server(jitter: float) -> None:
    """Over a real connection to this machine the loop asks nine times and waits the same."""
    from urllib3 import HTTPConnectionPool
    from urllib3.util.retry import Retry

    asked: list[str] = []

    class Unavailable(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Unavailable) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        retries = Retry(
            total=8, status_forcelist=[503], backoff_factor=1, backoff_max=20, backoff_jitter=jitter,
            raise_on_status=False,
        )  # fmt: skip
        chance = Chance(3, "served")
        with (
            HTTPConnectionPool("127.0.0.1", server.server_port) as pool,
            standing_in(chance, "urllib3.util.retry:time", "urllib3.util.retry:random") as waited,
        ):
            assert pool.urlopen("GET", "/", retries=retries).status == 503
        server.shutdown()
    entry = next(entry for entry in DRIVEN if entry.case == f"urllib3-backoff-jitter-{jitter:.0f}")
    assert entry.drive is not None
    assert [0.0, *waited] == entry.drive(Chance(3, "served"))
    assert len(asked) == 9


def test_the_rows_are_plain_json(measured: dict[str, Measured]) -> None:
    """Each row is plain JSON, whatever its library answered."""
    for one in measured.values():
        assert json.loads(json.dumps(dict(one.row), allow_nan=False)) == one.row
