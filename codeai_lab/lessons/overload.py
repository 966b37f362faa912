"""When do retries make an overload that feeds itself, and what ends it?

Chapter: 000, section 15.7: layered retry amplification; one deadline, one retry owner.

Idea: one row for each system: how many attempts come in a second of the last minute, how many of them are of
use, and how long after the trigger, or after the load was cut, the system came back. An open system shows
what waiting cannot do, a closed one what it can.

Always true:
  LO1. A row depends on its case, its horizon and the seed, and on nothing else.
  LO2. `recovered_after_s` is null where the system has not come back before the horizon; the row names the
       horizon, since a slow recovery may need a longer one.

Not here: the systems (`lessons.overload_cases`), the model (`explore.overload`), theory
(`decide.overload_laws`), layers, throttling and hedging by themselves (`lessons.amplification`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from codeai_lab.decide.overload_laws import harmless_trigger_s, hidden_capacity, smallest_trigger_s
from codeai_lab.decide.samples import Sample
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore import slotted
from codeai_lab.explore.overload import Trace, simulate
from codeai_lab.explore.sweeps import Part, sweep
from codeai_lab.explore.systems import Closed, Open, System
from codeai_lab.lessons.amplification import hedging_measured, layers_measured, throttling_measured
from codeai_lab.lessons.measured import Measured, Progress, are_numbers
from codeai_lab.lessons.overload_cases import CAPACITY, CASES, TIMEOUT_S, Case

__all__ = [
    "hedging_measured",
    "layers_measured",
    "open_trace_rows",
    "overload_measured",
    "phase_diagram",
    "throttling_measured",
    "trace_rows",
]

SEED = 20_261_130
MEASURED_S = 60  # the last minute
LOADS = tuple(range(105, 301, 5))  # 40 of them
TRIGGERS_S = tuple(hundredths / 100 for hundredths in range(0, 331, 5))  # 67 of them


def overload_measured(
    *,
    cases: Sequence[str] = tuple(CASES),
    seed: int = SEED,
    horizon_s: int | None = None,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each case.

    Args:
        horizon_s: another length of every run, in seconds. By default each case has its own, which is what
            its expected values are for.
        executor, keep, progress: as for `explore.sweeps.sweep`.

    Raises: RefusedRequestError (definite) for a case that there is not, and for no seed.
    """
    known = {name: _case(name) for name in cases}
    parts = [
        Part(
            name=name,
            task=run_case,
            arguments={"name": name, "seed": seed, "horizon_s": horizon_s},
            check=_has_form,
        )
        for name in known
    ]
    answers = sweep(parts, executor=executor, keep=keep, progress=progress)
    return [
        _measured(name, case, _system(case, horizon_s), answer)
        for (name, case), answer in zip(known.items(), answers, strict=True)
    ]


def run_case(name: str, seed: int, horizon_s: int | None = None) -> dict[str, Any]:
    """Give one case's last minute in plain form: the part of the sweep."""
    trace = _run(name, seed, horizon_s)
    return {
        "load": trace.load[-MEASURED_S:].tolist(),
        "goodput": trace.goodput[-MEASURED_S:].tolist(),
        "recovered_after_s": trace.recovered_after_s,
    }


def _has_form(answer: object) -> bool:
    return (
        isinstance(answer, dict)
        and answer.keys() == {"load", "goodput", "recovered_after_s"}
        and are_numbers(answer["load"])
        and are_numbers(answer["goodput"])
        and (answer["recovered_after_s"] is None or are_numbers([answer["recovered_after_s"]]))
    )


def trace_rows(case: str, *, seed: int = SEED, horizon_s: int | None = None) -> list[dict[str, Any]]:
    """Give a row for each second of a case's run: load, goodput, and the queue at the second's end."""
    return _by_second(case, _run(case, seed, horizon_s))


def open_trace_rows(
    *,
    first_tries: float = 280.0,
    retries: int = 1,
    trigger_s: float = 10.0,
    horizon_s: int = 120,
    seed: int = SEED,
) -> list[dict[str, Any]]:
    """Give such rows for any open system without waits: what a slider moves.

    Raises: RefusedRequestError (definite) for a system that cannot be run.
    """
    demand = Open(first_tries=first_tries)
    system = System(demand=demand, retries=retries, trigger_s=trigger_s, horizon_s=horizon_s)
    return _by_second("open", simulate(system, seed=seed, name="open"))


def phase_diagram(
    *,
    loads: Sequence[float] = LOADS,
    triggers_s: Sequence[float] = TRIGGERS_S,
    retries: int = 1,
    horizon_s: float = 2_000.0,
) -> dict[str, Any]:
    """Give the map of loads and stops, as plain lists, with the lines that theory draws into it.

    Returns: `failing[load][trigger]`, what it was reckoned for, `hidden_capacity`, and for each load
        `smallest_trigger_s` and `harmless_trigger_s` (None where their laws do not hold).
    """
    found = slotted.phase_diagram(
        loads, triggers_s, retries=retries, horizon_s=horizon_s, capacity=CAPACITY, timeout_s=TIMEOUT_S
    )
    return {
        "loads": list(found.loads),
        "triggers_s": list(found.triggers_s),
        "failing": found.failing.tolist(),
        "horizon_s": horizon_s,
        "retries": retries,
        "capacity": CAPACITY,
        "timeout_s": TIMEOUT_S,
        "hidden_capacity": hidden_capacity(CAPACITY, retries),
        "smallest_trigger_s": [_line(smallest_trigger_s, load, retries) for load in loads],
        "harmless_trigger_s": [_line(harmless_trigger_s, load, retries) for load in loads],
    }


def _line(law: Callable[..., float], load: float, retries: int) -> float | None:
    """Give a line's point where its law holds: one retry, a load between half the capacity and all of it."""
    holds = retries == 1 and CAPACITY / 2 <= load <= CAPACITY
    return law(load, capacity=CAPACITY, timeout_s=TIMEOUT_S) if holds else None


def _by_second(case: str, trace: Trace) -> list[dict[str, Any]]:
    by_second = zip(trace.load.tolist(), trace.goodput.tolist(), trace.queue.tolist(), strict=True)
    return [
        {"case": case, "second": second, "load": load, "goodput": goodput, "queue": queue}
        for second, (load, goodput, queue) in enumerate(by_second)
    ]


def _run(name: str, seed: int, horizon_s: int | None) -> Trace:
    return simulate(_system(_case(name), horizon_s), seed=seed, name=name)


def _case(name: str) -> Case:
    if name not in CASES:
        raise RefusedRequestError(f"There is no case called {name}; there are {', '.join(CASES)}.")
    return CASES[name]


def _system(case: Case, horizon_s: int | None) -> System:
    return case.system if horizon_s is None else replace(case.system, horizon_s=horizon_s)


def _measured(name: str, case: Case, system: System, answer: dict[str, Any]) -> Measured:
    samples = {quantity: Sample.of(answer[quantity]) for quantity in ("load", "goodput")}
    row: dict[str, Any] = {
        "case": name,
        "load": samples["load"].mean,
        "goodput": samples["goodput"].mean,
        "recovered_after_s": answer["recovered_after_s"],
        "expected_load": case.load,
        "expected_goodput": case.goodput,
        "expected_recovery_s": case.recovery_s,
    }
    for quantity, sample in samples.items():
        row |= {f"{quantity}_mean": sample.mean, f"{quantity}_sd": sample.sd}
    return Measured(case=name, row=row | _parameters(case, system), samples=samples)


def _parameters(case: Case, system: System) -> dict[str, Any]:
    demand, rule = system.demand, system.backoff
    who: dict[str, Any]
    if isinstance(demand, Closed):
        who = {"system": "closed", "clients": demand.clients, "think_s": demand.think_s}
    else:
        who = {"system": "open", "first_tries": demand.first_tries}
        if demand.cut_at_s is not None:
            who |= {"cut_at_s": demand.cut_at_s, "cut_to": demand.cut_to}
    return who | {
        "retries": system.retries,
        "backoff": "at once" if rule is None else f"{rule.strategy}, {rule.base:g} s up to {rule.cap:g} s",
        "budget": case.budget,
        "server": case.server,
        "trigger_s": system.trigger_s,
        "timeout_s": system.timeout_s,
        "capacity": system.capacity,
        "horizon_s": system.horizon_s,
        "measured_s": min(MEASURED_S, system.horizon_s),
    }
