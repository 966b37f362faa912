"""Rows as the lessons give them, small and with numbers that are easy to find again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codeai_lab.show.contention_figures import calls_and_time
from codeai_lab.show.crash_figures import crash_strips
from codeai_lab.show.duplicate_figures import duplicates_by_attempts
from codeai_lab.show.layer_figures import hedging, layers, throttling
from codeai_lab.show.library_figures import busiest_second
from codeai_lab.show.overload_figures import overload_trace
from codeai_lab.show.phase_figure import phase_map
from codeai_lab.show.protection_figure import duplicates_by_protection
from codeai_lab.show.ranking_figure import ranking_flips
from codeai_lab.show.rescue_figure import rescues
from codeai_lab.show.shown import Shown
from codeai_lab.show.waiting_figures import mean_waits, wait_distributions

Row = dict[str, Any]


def estimate(closed_form: float | None, sampled: float, se: float = 0.01) -> Row:
    return {"closed_form": closed_form, "sampled": sampled, "se": se}


def shapes() -> list[Row]:
    """Full jitter, and the decorrelated rule with a tenth of the clients at the cap."""
    return [
        {
            "strategy": "full",
            "attempt": 4,
            "quantiles": [0.0, 2.0, 4.0, 6.0, 8.0],
            "atom_at_cap": estimate(0, 0),
        },
        {
            "strategy": "decorrelated",
            "attempt": 4,
            "quantiles": [1.0, 3.0, 6.5, 12.0, 20.0],
            "atom_at_cap": estimate(0.1039, 0.1042),
        },
    ]


def waits() -> list[Row]:
    return [
        {"strategy": rule, "attempt": n, "mean": estimate(mean, mean + 0.02)} | totals
        for rule, means, totals in (
            ("full", (0.5, 1.0), {"total_mean": estimate(45.5, 45.61), "total_sd": estimate(11.33, 11.29)}),
            ("equal", (0.75, 1.5), {"total_mean": estimate(68.25, 68.17), "total_sd": estimate(5.67, 5.61)}),
        )
        for n, mean in enumerate(means, start=1)
    ]


def cells() -> list[Row]:
    """Three strategies at 100, 140 and 180 clients; the ratios cross 1 at 140 and at 160."""
    found = {
        "decorrelated": ((1_003, 4_598), (1_600, 6_115), (2_200, 7_555)),
        "equal": ((813, 6_631), (1_230, 7_965), (1_638, 9_145)),
        "full": ((796, 4_892), (1_210, 6_115), (1_656, 7_169)),
    }
    return [
        {"strategy": rule, "clients": clients, "runs": 100, "calls_mean": float(calls), "calls_sd": 8.0,
         "time_ms_mean": float(time), "time_ms_sd": 500.0}
        for rule, values in found.items()
        for clients, (calls, time) in zip((100, 140, 180), values, strict=True)
    ]  # fmt: skip


def stacks() -> list[Row]:
    return [
        {
            "layers": 3,
            "attempts": 4,
            "failure": 1.0,
            "calls": estimate(64.0, 64.0),
            "failed": estimate(1.0, 1.0),
        },
        {
            "layers": 1,
            "attempts": 3,
            "failure": 0.5,
            "calls": estimate(1.75, 1.743),
            "failed": estimate(0.125, 0.126),
        },
    ]


def throttled() -> list[Row]:
    return [
        {
            "k": k,
            "demand": 1_000,
            "accepts": 100,
            "load": estimate(100 * k, load),
            "accepted": estimate(100.0, 100.0),
        }
        for k, load in ((2.0, 199.9), (1.5, 149.7))
    ]


def hedged() -> list[Row]:
    return [
        {"after": 1.0, "extra_load": estimate(0.3679, 0.3681), "p999_sampled": 3.961, "p999_unhedged": 6.91},
        {"after": 3.0, "extra_load": estimate(0.0498, 0.0497), "p999_sampled": 4.945, "p999_unhedged": 6.92},
    ]


def libraries() -> list[Row]:
    """Two libraries that were driven, and one that is not installed."""
    fields = (
        "library", "version", "rule", "cap_order", "mean_sleeps", "total_mean", "busiest_second", "note",
    )  # fmt: skip
    found = (
        ("backoff", "2.2.1", "expo, full_jitter: U(0, w)", "before", [0.5, 1.0], 45.6, 0.0351, ""),
        ("tenacity", "9.2.1", "wait_exponential_jitter: w + U", "after", [1.5, 2.5], 93.5, 0.5507, ""),
        ("gone", "not installed", "whatever", "none", [], None, None, "Not installed."),
    )
    return [dict(zip(fields, one, strict=True)) | {"counts_first_attempt": True} for one in found]


def seconds() -> list[Row]:
    """Four seconds of health, two of standing still, sixty of which nothing is of use."""
    return [
        {"case": "280-one-retry", "second": second, "load": 280 if second < 4 else 561,
         "goodput": 280 if second < 4 else 0, "queue": 10 * second, "stands_still": second in (4, 5)}
        for second in range(66)
    ]  # fmt: skip


def systems() -> list[Row]:
    usual = {"capacity": 300.0, "horizon_s": 400}
    return [
        usual | {"case": "280-one-retry", "system": "open", "load": 556.4, "goodput": 0.0,
                 "recovered_after_s": None, "expected_load": 560.0},
        usual | {"case": "280-no-retry", "system": "open", "load": 281.5, "goodput": 281.5,
                 "recovered_after_s": 127, "expected_load": 280.0},
        usual | {"case": "closed-no-backoff", "system": "closed", "load": 400.0, "goodput": 0.0,
                 "recovered_after_s": None, "expected_load": 400.0},
    ]  # fmt: skip


def phase() -> Row:
    return {
        "loads": [100, 200, 280], "triggers_s": [0.5, 1.05, 1.25], "horizon_s": 2_000.0, "retries": 1,
        "failing": [[False, False, False], [False, False, True], [False, True, True]],
        "capacity": 300.0, "timeout_s": 1.0, "hidden_capacity": 150.0,
        "smallest_trigger_s": [None, 1.25, 1.036],
    }  # fmt: skip


def duplicates() -> list[Row]:
    """Nothing protects, half the responses lost; and three rungs of the ladder under loss."""

    def row(
        attempts: int, protection: str, loss: float, request: float, *numbers: tuple[float, float]
    ) -> Row:
        named = zip(("effects_mean", "duplicates_mean", "p_duplicate"), numbers, strict=True)
        return {
            "model": "loss", "protection": protection, "attempts": attempts, "response_loss": loss,
            "request_loss": request,
        } | {name: estimate(*pair) for name, pair in named}  # fmt: skip

    return [
        row(2, "none", 0.5, 0.0, (1.5, 1.498), (0.5, 0.498), (0.5, 0.498)),
        row(4, "none", 0.5, 0.0, (1.875, 1.881), (0.875, 0.881), (0.5, 0.503)),
        row(4, "none", 0.3, 0.2, (1.375, 1.371), (0.3766, 0.3712), (0.2918, 0.2887)),
        row(4, "claim+lease", 0.3, 0.2, (1.1, 1.11), (0.1, 0.107), (0.1, 0.107)),
        row(4, "atomic", 0.3, 0.2, (1.0, 1.0), (0.0, 0.0), (0.0, 0.0)),
    ]


def crashes() -> list[Row]:
    points = {
        "unguarded": (
            ("nothing", 1, "safe"),
            ("perform(Exception)", 2, "duplicate"),
            ("complete", 1, "safe"),
        ),
        "claim-busy": (("nothing", 1, "safe"), ("claim", 0, "stuck"), ("perform(Exception)", 1, "stuck")),
    }
    return [
        {
            "rule_set": name,
            "after_stage": stage,
            "follow_up": follow_up,
            "effects": effects,
            "outcome": outcome,
        }
        for name, of_rules in points.items()
        for follow_up in ("same-key", "new-key")
        for stage, effects, outcome in of_rules
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure, its rows, and one change to them: the row's number, its field, and another value."""

    draw: Callable[..., Shown]
    rows: Callable[[], Any]
    change: tuple[int, str, Any]

    def changed(self) -> Any:
        number, name, value = self.change
        rows = self.rows()
        at = rows if isinstance(rows, dict) else rows[number]
        at[name] = value
        return rows


FIGURES = {
    "distributions": Drawn(draw=wait_distributions, rows=shapes,
                           change=(1, "atom_at_cap", estimate(0.1039, 0.2777))),
    "means": Drawn(draw=mean_waits, rows=waits, change=(3, "total_mean", estimate(68.25, 77.7))),
    "contention": Drawn(draw=calls_and_time, rows=cells, change=(8, "calls_mean", 7_777.0)),
    "ranking": Drawn(draw=ranking_flips, rows=cells, change=(1, "time_ms_mean", 5_777.0)),
    "layers": Drawn(draw=layers, rows=stacks, change=(1, "calls", estimate(1.75, 1.777))),
    "throttling": Drawn(draw=throttling, rows=throttled, change=(0, "load", estimate(200.0, 277.7))),
    "hedging": Drawn(draw=hedging, rows=hedged, change=(0, "p999_sampled", 3.777)),
    "libraries": Drawn(draw=busiest_second, rows=libraries, change=(1, "busiest_second", 0.777)),
    "trace": Drawn(draw=overload_trace, rows=seconds, change=(65, "goodput", 277)),
    "rescues": Drawn(draw=rescues, rows=systems, change=(1, "recovered_after_s", None)),
    "phase": Drawn(draw=phase_map, rows=phase,
                   change=(0, "failing", [[False] * 3, [False, True, True], [False, True, True]])),
    "attempts": Drawn(draw=duplicates_by_attempts, rows=duplicates,
                      change=(1, "duplicates_mean", estimate(0.875, 0.777))),
    "protections": Drawn(draw=duplicates_by_protection, rows=duplicates,
                         change=(3, "duplicates_mean", estimate(0.1, 0.177))),
    "crashes": Drawn(draw=crash_strips, rows=crashes, change=(1, "outcome", "lost")),
}  # fmt: skip
