"""What changes when one value of a question changes: a base, a cap, a loss, a load?

Chapter: 000, section 15.7.

Idea: three questions of this kind, each with the values that it takes, a preview that is worked out while
somebody drags a slider, and the full run that is worked out when they let go. Both give rows of the same
form; the preview is a smaller sample of the same thing, or a shorter run of the same system.

Always true:
  WI1. The same values and stage give the same rows.
  WI2. A preview samples no more than PREVIEWED clients or requests, or runs no further than PREVIEWED_S.

Not here: sliders and pictures (`show.sliders`), the lessons in full (`lessons.backoff`, ...).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import law, total_law
from codeai_lab.decide.duplicates import Case, Model, Protection
from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.overload import simulate
from codeai_lab.explore.sleeps import busiest_share, sleeps
from codeai_lab.explore.systems import Open, System
from codeai_lab.lessons.duplicates import duplicates_measured
from codeai_lab.lessons.measured import rows_of
from codeai_lab.lessons.overload_cases import CASES

SEED = 20_261_130
PREVIEWED, PREVIEWED_S = 300, 45
TRIALS, RUN_S, LAST_S = 20_000, 400, 60
WAITING = (Strategy.EXPONENTIAL, Strategy.EQUAL, Strategy.FULL, Strategy.DECORRELATED)

Values = Mapping[str, float]
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """A question with values to change.

    Args:
        values: name -> lowest, highest, step, and the value to begin with.
        units: name -> unit, where there is one.
        preview, full: give the rows for values of these names.
        numbers: name what the rows come to.
    """

    values: Mapping[str, tuple[float, float, float, float]]
    units: Mapping[str, str]
    preview: Callable[[Values], Rows]
    full: Callable[[Values], Rows]
    numbers: Callable[[Sequence[Mapping[str, Any]]], dict[str, float]]


# --- how long to wait ----------------------------------------------------------------------------------


def waits(values: Values, *, preview: bool) -> Rows:
    """Give the waits of four rules, as `lessons.backoff` does, with the share in the busiest second.

    A preview leaves the closed form of the decorrelated rule out, which takes longer than all the rest.
    """
    rows: Rows = []
    retries = int(values["attempts"]) - 1
    clients = min(int(values["clients"]), PREVIEWED) if preview else int(values["clients"])
    for strategy in WAITING:
        rule = Backoff(strategy=strategy, base=values["base"], cap=values["cap"])
        drawn = sleeps(rule, retries=retries, clients=clients, seed=SEED)
        totals = drawn.sum(axis=1)
        known = not (preview and strategy is Strategy.DECORRELATED)
        whole = total_law(rule, retries) if known else None
        total = Sample.of(totals.tolist())
        of_total = {
            "total_mean": estimate(None if whole is None else whole.mean, total),
            "total_sd": {
                "closed_form": None if whole is None else math.sqrt(whole.variance),
                "sampled": total.sd,
                "se": total.se_of_sd,
            },
            "busiest_second": busiest_share(totals),
        }
        for n in range(1, retries + 1):
            mean = estimate(law(rule, n).mean if known else None, Sample.of(drawn[:, n - 1].tolist()))
            rows.append({"strategy": str(strategy), "attempt": n, "mean": mean} | of_total)
    return rows


def waits_come_to(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Name, for each rule, the mean total and the share of the clients that is back in the busiest second."""
    totals = {row["strategy"]: row for row in rows}
    numbers = {f"{rule}, total": row["total_mean"]["sampled"] for rule, row in totals.items()}
    return numbers | {f"{rule}, busiest second": row["busiest_second"] for rule, row in totals.items()}


# --- how many duplicates -------------------------------------------------------------------------------


def duplicates(values: Values, *, preview: bool) -> Rows:
    """Give what a retry does where nothing protects, for each number of attempts up to the one asked for."""
    cases = [
        Case(
            model=Model.LOSS,
            protection=Protection.NONE,
            attempts=attempts,
            response_loss=values["loss"],
            request_loss=values["request loss"],
        )
        for attempts in range(1, int(values["attempts"]) + 1)
    ]
    # Here and now: starting processes takes longer than the trials.
    with ThreadPoolExecutor(1) as here:
        trials = PREVIEWED if preview else TRIALS
        return rows_of(duplicates_measured(cases=cases, trials=trials, seed=SEED, executor=here))


def duplicates_come_to(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Name what the largest number of attempts comes to."""
    last = rows[-1]
    return {
        "expected effects": last["effects_mean"]["sampled"],
        "expected duplicates": last["duplicates_mean"]["sampled"],
        "probability of a duplicate": last["p_duplicate"]["sampled"],
    }


# --- how much load -------------------------------------------------------------------------------------


def overload(values: Values, *, preview: bool) -> Rows:
    """Give a run of an open system second by second; a preview is a shorter one."""
    system = System(
        demand=Open(first_tries=values["load"]),
        retries=int(values["attempts"]) - 1,
        trigger_s=values["stop"],
        horizon_s=PREVIEWED_S if preview else RUN_S,
    )
    return _seconds(system, f"{values['load']:g} a second, {int(values['attempts'])} attempts")


def traces(cases: Sequence[str] = ("280-one-retry", "140-one-retry"), *, seed: int = SEED) -> Rows:
    """Give the runs of some of the lesson's cases, second by second, with when the server stood still.

    Raises: RefusedRequestError (definite) for a case that there is not.
    """
    for name in cases:
        if name not in CASES:
            raise RefusedRequestError(f"There is no case called {name}; there are {', '.join(CASES)}.")
    return [row for name in cases for row in _seconds(CASES[name].system, name, seed)]


def _seconds(system: System, name: str, seed: int = SEED) -> Rows:
    trace = simulate(system, seed=seed, name=name)
    by_second = zip(trace.load.tolist(), trace.goodput.tolist(), trace.queue.tolist(), strict=True)
    still = range(math.floor(system.trigger_at_s), math.ceil(system.trigger_at_s + system.trigger_s))
    return [
        {
            "case": name,
            "second": second,
            "load": load,
            "goodput": goodput,
            "queue": queue,
            "stands_still": second in still,
        }
        for second, (load, goodput, queue) in enumerate(by_second)
    ]


def overload_comes_to(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Name the means of the last minute, or of what a preview has after the stop."""
    after = max((row["second"] for row in rows if row["stands_still"]), default=0)
    last = [row for row in rows[-LAST_S:] if row["second"] > after]
    return {
        f"{what} at the end": math.fsum(row[what] for row in last) / max(1, len(last))
        for what in ("load", "goodput")
    }


def _both(function: Callable[..., Rows]) -> dict[str, Callable[[Values], Rows]]:
    return {
        "preview": lambda values: function(values, preview=True),
        "full": lambda values: function(values, preview=False),
    }


QUESTIONS = {
    "waits": WhatIf(
        values={
            "base": (0.1, 5, 0.1, 1), "cap": (1, 120, 1, 20), "attempts": (2, 12, 1, 9),
            "clients": (100, 10_000, 100, 1_000),
        },
        units={"base": "s", "cap": "s"},
        numbers=waits_come_to,
        **_both(waits),
    ),
    "duplicates": WhatIf(
        values={"loss": (0, 0.9, 0.05, 0.3), "request loss": (0, 0.9, 0.05, 0), "attempts": (1, 10, 1, 4)},
        units={},
        numbers=duplicates_come_to,
        **_both(duplicates),
    ),
    "overload": WhatIf(
        values={"load": (50, 295, 5, 280), "attempts": (1, 4, 1, 2), "stop": (0, 15, 0.5, 10)},
        units={"load": "a second", "stop": "s"},
        numbers=overload_comes_to,
        **_both(overload),
    ),
}  # fmt: skip
