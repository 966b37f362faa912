"""The lesson `libraries`: what real retry loops wait, and what is said where nothing could be driven."""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons import libraries
from codeai_lab.lessons.libraries import FIELDS, libraries_measured, measure, rows, standing_in
from codeai_lab.lessons.library_catalogue import CATALOGUE, DRIVEN, FORMULAS, Entry
from codeai_lab.lessons.library_standins import Chance
from codeai_lab.lessons.measured import Measured

LOOPS = 25
SLOW = {"openai", "anthropic"}  # to import them takes seconds: tests/real drives these too


def installed(library: str) -> bool:
    try:
        return bool(version(library))
    except PackageNotFoundError:
        return False


QUICK = [entry for entry in DRIVEN if entry.library not in SLOW and installed(entry.library)]
NAMES = list(dict.fromkeys(entry.library for entry in QUICK))
needs_backoff = pytest.mark.skipif(not installed("backoff"), reason="backoff is an extra")


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    return libraries_measured(libraries=[*NAMES, *(entry.library for entry in FORMULAS)], loops=LOOPS)


@pytest.mark.parametrize("entry", QUICK, ids=lambda entry: entry.case)
def test_a_loop_waits_as_its_law_says_draw_for_draw(entry: Entry) -> None:
    """The library's own loop and the formula, given the same draws, give the same waits."""
    chance = Chance(7, entry.case)
    for _ in range(5):
        assert entry.drive is not None
        waits = entry.drive(chance)
        draws = iter(chance.given)
        assert waits == pytest.approx(entry.law(lambda draws=draws: next(draws)), rel=1e-12)
        assert len(waits) == (0 if entry.library == "requests" else 8)
        chance.given.clear()


def test_every_row_says_whether_it_was_driven(measured: list[Measured]) -> None:
    """A driven row has a version and a number of loops; a formula has neither and says what it is."""
    assert all(list(one.row) == list(FIELDS) for one in measured)
    for one, entry in zip(measured, [*QUICK, *FORMULAS], strict=True):
        row = one.row
        assert (row["driven"], row["loops"]) == ((True, LOOPS) if entry.drive else (False, 0)), row
        assert row["version"] == (version(entry.library) if entry.drive else "formula")
        assert entry.drive or "not driven" in row["note"]
    assert len({entry.case for entry in CATALOGUE}) == len(CATALOGUE)


def test_the_loops_agree_with_the_share_beside_them(measured: list[Measured]) -> None:
    """The share of the loops that fall into the law's busiest second is the law's, within its error."""
    for one in measured:
        beside = one.row["in_busiest_second"]
        if beside is None:
            assert one.row["library"] == "requests"
            continue
        share = beside["closed_form"]
        assert one.row["busiest_second"] == share
        assert abs(beside["sampled"] - share) <= 4 * math.sqrt(share * (1 - share) / LOOPS) + 1e-12, one.case


def test_rows_follow_from_their_samples(measured: list[Measured]) -> None:
    """Every statistic is that of a sample that travels with the row."""
    for one in measured:
        total = one.samples["total"]
        assert (one.row["total_mean"], one.row["total_sd"]) == (total.mean, total.sd)
        assert sum(one.row["mean_sleeps"]) == pytest.approx(total.mean)
        if one.row["mean_sleeps"]:
            assert one.row["p_last_is_cap"] == one.samples["p_last_is_cap"].mean
            assert one.row["in_busiest_second"]["sampled"] == one.samples["in_busiest_second"].mean


def test_clamping_after_the_jitter_leaves_none_at_the_cap(measured: list[Measured]) -> None:
    """Where the jitter is added first, the last wait is the cap itself for every client."""
    last = {one.case: one.row["p_last_is_cap"] for one in measured}
    for case in ("tenacity-wait-exponential-jitter", "stamina", "urllib3-backoff-jitter-1"):
        assert last.get(case, 1.0) == 1.0
    for case in ("tenacity-wait-random-exponential", "backoff-expo-random-jitter", "grpc-proposal-a6"):
        assert last.get(case, 0.0) == 0.0


def test_nothing_outside_changes_a_row(measured: list[Measured], monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket, no proxy, no credential, no profile: the same bytes, and the process's chance untouched."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a loop asked the network")

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_PROFILE", "there-is-none")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    before = random.getstate()
    again = libraries_measured(libraries=NAMES, loops=LOOPS)
    assert random.getstate() == before
    assert json.dumps([one.row for one in again]) == json.dumps([one.row for one in measured[: len(again)]])


@needs_backoff
def test_a_row_depends_on_no_other_and_on_its_seed() -> None:
    """A library alone, or in another thread, has the rows that it has among others; a seed has its own."""
    alone = rows(libraries=["backoff"], loops=10)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(rows, libraries=["the chapter", "backoff"], loops=10) for _ in range(2)]
    assert all(future.result()[:2] == alone for future in asked)
    assert rows(libraries=["backoff"], loops=10, seed=1) != alone


@pytest.mark.skipif(not installed("aiohttp-retry"), reason="aiohttp-retry is an extra")
def test_loops_are_driven_where_an_event_loop_runs() -> None:
    """In a notebook, whose loop is running, the asynchronous library is driven like any other."""

    async def in_a_notebook() -> list[dict[str, Any]]:
        return rows(libraries=["aiohttp-retry"], loops=2)

    assert [row["driven"] for row in asyncio.run(in_a_notebook())] == [True, True]


def test_a_library_that_is_not_installed_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is still told, no figure is, and the row says how to get the library."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(libraries, "version", missing)
    for row in rows(libraries=["tenacity", "openai"], loops=2):
        assert (row["version"], row["driven"], row["loops"]) == ("not installed", False, 0)
        assert "pip install 'codeai-lab[libraries]'" in row["note"]
        assert (row["mean_sleeps"], row["total_mean"], row["busiest_second"]) == ([], None, None)
        assert list(row) == list(FIELDS)


@needs_backoff
def test_a_library_that_cannot_be_imported_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed as installed and cannot be imported is, to a reader, not installed."""
    monkeypatch.setitem(sys.modules, "backoff", None)
    assert {row["version"] for row in rows(libraries=["backoff"], loops=2)} == {"not installed"}


@needs_backoff
def test_a_library_that_has_changed_inside_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a name inside has moved, the row names the version and what went wrong; nothing is raised."""
    monkeypatch.delattr("backoff._jitter.random")
    row = rows(libraries=["backoff"], loops=2)[0]
    assert (row["version"], row["driven"]) == (version("backoff"), False)
    assert "could not be driven (AttributeError)" in row["note"]


@needs_backoff
def test_a_law_that_a_loop_contradicts_stands_in_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that waits otherwise is shown as it waits, and the row says that its rule does not hold."""
    monkeypatch.setattr("backoff.full_jitter", lambda value: value / 2)
    row = rows(libraries=["backoff"], loops=10)[0]
    assert "waits otherwise" in row["note"]
    assert (row["driven"], row["total_mean"], row["total_sd"]) == (True, 45.5, 0.0)
    assert row["in_busiest_second"] == {"closed_form": None, "sampled": 1.0, "se": 0.0}
    assert row["busiest_second"] == 1.0


def test_a_reader_measures_a_policy_with_one_function() -> None:
    """A policy is a function of the retry and a draw; its row stands beside the libraries'."""

    def my_policy(n: int, draw: Callable[[], float]) -> float:
        return min(20.0, 2.0 ** (n - 1)) * (0.5 + draw() / 2)

    row = measure("mine", policy=my_policy)
    known = Backoff(strategy=Strategy.EQUAL)
    assert (row["library"], row["driven"], row["loops"]) == ("mine", False, 0)
    assert row["mean_sleeps"][7] == pytest.approx(3 * known.window(8) / 4, abs=0.3)
    assert row["total_mean"] == pytest.approx(68.25, abs=0.6)
    assert row["busiest_second"] == pytest.approx(0.068, abs=0.035)
    assert list(row) == list(FIELDS)
    assert measure("mine", policy=my_policy) == row


@needs_backoff
def test_a_reader_measures_a_library_with_one_function() -> None:
    """A loop is a function that gives its waits; clock and chance are stood in for by their names."""
    import backoff

    def drive(chance: random.Random) -> list[float]:
        call = backoff.on_predicate(backoff.constant, interval=3, max_tries=4, jitter=None)(lambda: False)
        with standing_in(chance, "backoff._sync:time") as waited:
            call()
        return waited

    row = measure("three times three", drive=drive, loops=10)
    assert (row["mean_sleeps"], row["total_mean"], row["busiest_second"]) == ([3, 3, 3], 9, 1.0)
    assert (row["driven"], row["loops"], row["p_last_is_cap"]) == (True, 10, 0.0)


def test_what_cannot_be_measured_is_refused() -> None:
    """A name that is not there, too few loops, both or neither function, a wait that is no time."""
    with pytest.raises(RefusedRequestError, match="no library called"):
        rows(libraries=["nobody"])
    for loops in (1, 0, True, 2.0):
        with pytest.raises(RefusedRequestError, match="whole number from 2"):
            rows(libraries=["the chapter"], loops=loops)  # type: ignore[arg-type]
        with pytest.raises(RefusedRequestError, match="whole number from 2"):
            measure("x", policy=lambda n, draw: 1.0, loops=loops)  # type: ignore[arg-type]
    with pytest.raises(RefusedRequestError, match="either"):
        measure("x")
    with pytest.raises(RefusedRequestError, match="either"):
        measure("x", policy=lambda n, draw: 1.0, drive=lambda chance: [1.0])
    for wait in (-1.0, math.nan, math.inf):
        with pytest.raises(RefusedRequestError, match="number of seconds"):
            measure("x", policy=lambda n, draw, wait=wait: wait, loops=2)


def test_progress_names_each_row() -> None:
    """Whoever watches is told the case, how many are done and how many there are."""
    told: list[tuple[str, int, int]] = []
    rows(libraries=["gRPC", "Polly"], loops=2, progress=lambda *said: told.append(said))
    assert told == [("grpc-proposal-a6", 0, 2), ("polly-version-8", 1, 2)]
