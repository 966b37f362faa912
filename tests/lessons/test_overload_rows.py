"""The rows of the overload lesson: what they hold, and what they depend on."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.measured import rows_of
from codeai_lab.lessons.overload import (
    LOADS,
    TRIGGERS_S,
    open_trace_rows,
    overload_measured,
    phase_diagram,
    run_case,
    trace_rows,
)
from codeai_lab.lessons.overload_cases import CASES

SHORT = {"horizon_s": 45, "seed": 3}
FEW = ("280-one-retry", "280-circuit-breaker", "closed-equal-1s-20s")


@pytest.fixture(scope="module")
def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


def test_a_row_says_what_was_asked_and_what_came(threads: ThreadPoolExecutor) -> None:
    """Load, goodput and recovery stand beside what theory says and all that was set."""
    for measured in overload_measured(cases=FEW, executor=threads, **SHORT):  # type: ignore[arg-type]
        row = measured.row
        assert row["case"] == measured.case
        assert {
            "expected_load",
            "expected_goodput",
            "expected_recovery_s",
            "backoff",
            "budget",
            "server",
        } <= row.keys()
        assert row["horizon_s"] == row["measured_s"] == 45
        assert row["load"] == row["load_mean"] == measured.samples["load"].mean
        assert row["goodput"] == row["goodput_mean"] == measured.samples["goodput"].mean
        assert row["load_sd"] == measured.samples["load"].sd
        assert measured.samples["load"].size == 45
        canonical_bytes(dict(row))


def test_another_case_or_order_changes_no_row(threads: ThreadPoolExecutor) -> None:
    """Each case has its own chance, whoever runs it."""
    once = rows_of(overload_measured(cases=FEW, executor=threads, **SHORT))  # type: ignore[arg-type]
    again = rows_of(overload_measured(cases=FEW[:0:-1], executor=threads, **SHORT))  # type: ignore[arg-type]
    assert [canonical_bytes(row) for row in once[:0:-1]] == [canonical_bytes(row) for row in again]
    alone = overload_measured(cases=FEW[:1], **SHORT)  # type: ignore[arg-type]
    assert canonical_bytes(once[0]) == canonical_bytes(dict(alone[0].row))


def test_a_trace_has_a_row_for_each_second() -> None:
    """The trace is the run that the lesson's row comes from."""
    rows = trace_rows("280-one-retry", **SHORT)  # type: ignore[arg-type]
    assert [row["second"] for row in rows] == list(range(45))
    assert [row["load"] for row in rows] == run_case("280-one-retry", **SHORT)["load"]  # type: ignore[arg-type]
    assert rows[29]["queue"] == pytest.approx(280 * 19, rel=0.1)
    assert rows[10]["queue"] < 100


def test_a_slider_moves_one_thing_and_leaves_the_first_tries() -> None:
    """Any open system has a trace; without retries its first tries are the same, and it comes back or not."""
    one, none = open_trace_rows(horizon_s=60), open_trace_rows(horizon_s=60, retries=0)
    assert [row["load"] for row in one[:20]] == [row["load"] for row in none[:20]]
    assert sum(row["load"] for row in one[40:]) > 1.8 * sum(row["load"] for row in none[40:])
    assert all(row["goodput"] == 0 for row in one[30:])
    assert all(row["goodput"] > 0 for row in open_trace_rows(first_tries=100, trigger_s=2, horizon_s=60)[30:])


def test_the_map_has_its_lines() -> None:
    """Forty loads, sixty-seven stops, the hidden capacity, and a border near the smallest trigger."""
    found = phase_diagram()
    assert (len(LOADS), len(TRIGGERS_S)) == (40, 67)
    assert [len(row) for row in found["failing"]] == [67] * 40
    assert found["hidden_capacity"] == 150
    assert found["horizon_s"] == 2_000
    for load, row, smallest in zip(
        found["loads"], found["failing"], found["smallest_trigger_s"], strict=True
    ):
        assert any(row) == (load >= 150)
        if smallest is not None and any(row):
            assert found["triggers_s"][row.index(True)] == pytest.approx(smallest, abs=0.065)
    assert found["smallest_trigger_s"][LOADS.index(280)] == pytest.approx(1.036, abs=5e-4)
    assert phase_diagram(loads=(100,), triggers_s=(0.5,), retries=2)["smallest_trigger_s"] == [None]


def test_every_case_has_a_theory() -> None:
    """What is expected was reckoned: 560 and 0, 125 s, and for each case a load and whether it comes back."""
    assert len(CASES) == 36
    assert (CASES["280-one-retry"].load, CASES["280-one-retry"].goodput) == (560, 0)
    assert CASES["280-no-retry"].recovery_s == 125
    assert CASES["closed-no-backoff"].load == 400
    for case in CASES.values():
        assert case.recovers or case.recovery_s is None
        assert case.load > 0


def test_a_case_that_there_is_not_is_refused() -> None:
    """The refusal lists those that there are."""
    with pytest.raises(RefusedRequestError, match="no case called 280; there are 280-no-retry"):
        overload_measured(cases=("280",))


@pytest.mark.parametrize("kept", [5, {"load": [1]}, {"load": [], "goodput": [1], "recovered_after_s": None}])
def test_a_kept_run_of_another_form_is_refused(tmp_path: Path, kept: object) -> None:
    """An answer that cannot be the case's is refused by the name of its file."""
    asked: dict[str, Any] = {"cases": ("280-no-retry",), "horizon_s": 70}
    keep = tmp_path / "runs.jsonl"
    measured = overload_measured(**asked, keep=keep)
    assert overload_measured(**asked, keep=keep) == measured
    keep.write_text(json.dumps(json.loads(keep.read_text()) | {"answer": kept}) + "\n")
    with pytest.raises(RefusedRequestError, match=r"^The file runs\.jsonl does not hold the answers"):
        overload_measured(**asked, keep=keep)
