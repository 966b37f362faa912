"""The lessons `backoff` and `contention`: rows that follow from their samples."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.backoff import Strategy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.backoff import backoff_measured
from codeai_lab.lessons.contention import contention_measured
from codeai_lab.lessons.measured import Measured, rows_of

STATISTICS = ("mean", "variance", "atom_at_cap", "total_mean", "total_sd")


@pytest.fixture(scope="module")
def backoff() -> list[Measured]:
    return backoff_measured(clients=4_000)


def test_there_is_a_row_for_each_rule_and_retry(backoff: list[Measured]) -> None:
    """Ten rules and eight retries, each with its five statistics, and cases of one name each."""
    rows = rows_of(backoff)
    assert [(row["strategy"], row["attempt"]) for row in rows] == [
        (s, n) for s in Strategy for n in range(1, 9)
    ]
    assert all(set(row) == {"strategy", "attempt", *STATISTICS} for row in rows)
    assert len({one.case for one in backoff}) == len(rows)


def test_every_statistic_agrees_with_its_closed_form(backoff: list[Measured]) -> None:
    """Each sampled figure lies within 4.5 standard errors of its closed form."""
    for row in rows_of(backoff):
        for name in STATISTICS:
            said = row[name]
            bound = 4.5 * said["se"] + 1e-6 * abs(said["closed_form"]) + 1e-9
            if name == "atom_at_cap":  # a share that never came has no standard error of its own
                p = said["closed_form"]
                bound += 4.5 * (p * (1 - p) / 4_000) ** 0.5
            assert abs(said["sampled"] - said["closed_form"]) <= bound, (
                row["strategy"],
                row["attempt"],
                name,
            )


def test_a_statistic_is_the_mean_of_the_sample_of_its_name(backoff: list[Measured]) -> None:
    """Whoever has the samples has the figures."""
    for one in backoff:
        for name in ("mean", "variance", "atom_at_cap"):
            assert one.row[name]["sampled"] == one.samples[name].mean
        assert one.row["total_mean"]["sampled"] == one.samples["total"].mean
        assert one.row["total_sd"]["sampled"] == one.samples["total"].sd


def test_known_totals_are_there(backoff: list[Measured]) -> None:
    """Full 45.5 (sd 11.332), equal 68.25, exponential 91; the decorrelated atom at the fourth retry."""
    rows = {(row["strategy"], row["attempt"]): row for row in rows_of(backoff)}
    assert rows["full", 1]["total_mean"]["closed_form"] == 45.5
    assert rows["full", 1]["total_sd"]["closed_form"] == pytest.approx(11.332, abs=1e-3)
    assert rows["equal", 8]["total_mean"]["closed_form"] == 68.25
    assert rows["exponential", 8]["total_mean"]["closed_form"] == 91
    assert rows["decorrelated", 4]["atom_at_cap"]["closed_form"] == pytest.approx(0.103946, abs=1e-6)


def test_a_rule_beside_it_changes_nothing() -> None:
    """One rule alone, or in another order, has the same rows as among the others."""
    some = rows_of(backoff_measured(strategies=("full", "equal"), clients=50))
    assert rows_of(backoff_measured(strategies=("equal",), clients=50)) == some[8:]
    assert rows_of(backoff_measured(strategies=("equal", "full"), clients=50)) == some[8:] + some[:8]


def test_an_unknown_strategy_is_refused() -> None:
    """A name that no strategy has is refused, with those that there are."""
    with pytest.raises(
        RefusedRequestError, match=r"no strategy called None; there are no-backoff, exponential"
    ):
        backoff_measured(strategies=("None",))


def test_one_value_tells_no_spread() -> None:
    """A single run or client has means, and None for every spread and standard error."""
    (cell,) = rows_of(contention_measured(clients=(3,), runs=1, seed=3, strategies=("full",)))
    assert (cell["calls_sd"], cell["time_ms_sd"]) == (None, None)
    first = rows_of(backoff_measured(strategies=("full",), clients=1))[0]
    assert {name: first[name]["se"] for name in STATISTICS} == dict.fromkeys(STATISTICS)
    assert first["total_sd"]["sampled"] is None


@pytest.mark.parametrize(
    "kept",
    [5, None, [], {}, {"calls": [1]}, {"calls": 5, "time_ms": [1.5, 2]},
     {"calls": [1, "x"], "time_ms": [1, 2]}, {"calls": [1], "time_ms": [1]}],
)  # fmt: skip
def test_a_kept_cell_of_another_form_is_refused(tmp_path: Path, kept: object) -> None:
    """An answer that cannot be the cell's is refused by the name of its file, before anything is run."""
    asked: dict[str, Any] = {"clients": (3,), "runs": 2, "seed": 3, "strategies": ("full",)}
    keep = tmp_path / "cells.jsonl"
    measured = contention_measured(**asked, keep=keep)
    assert contention_measured(**asked, keep=keep) == measured
    keep.write_text(json.dumps(json.loads(keep.read_text()) | {"answer": kept}) + "\n")
    with pytest.raises(RefusedRequestError, match=r"^The file cells\.jsonl does not hold the answers"):
        contention_measured(**asked, keep=keep)


def test_contention_rows_do_not_depend_on_who_runs_them() -> None:
    """Reordered, in threads or one by one: the same row for the same cell, its fields from its samples."""
    asked = {"clients": (5, 8), "runs": 20, "seed": 3}
    with ThreadPoolExecutor(2) as threads:
        all_of_them = contention_measured(**asked, executor=threads)
        reordered = contention_measured(**asked, strategies=("full", "equal"), executor=threads)
    alone = contention_measured(clients=(8,), runs=20, seed=3, strategies=("full",))
    by_case = {one.case: one for one in all_of_them}
    assert len(by_case) == 10
    assert all(by_case[one.case] == one for one in [*reordered, *alone])
    for one in all_of_them:
        for name in ("calls", "time_ms"):
            assert one.row[f"{name}_mean"] == one.samples[name].mean
            assert one.row[f"{name}_sd"] == one.samples[name].sd
