"""What do five backoff strategies cost when N clients want to change one row?

Chapter: 000, section 15.7, and the study of contention that it cites.

Idea: one row for each strategy and number of clients: calls and time, mean and standard deviation over the
runs, as the study draws them. Beside the figures stand theory and the places where the ranking turns over:
what holds at 100 clients does not hold at 190.

Always true:
  LC1. A row depends on its strategy, its number of clients, the runs and the seed, and on nothing else.

Not here: the model (`explore.contention`), the theory (`decide.contention_laws`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from codeai_lab.decide.samples import Sample
from codeai_lab.explore.contention import STUDIED, contend
from codeai_lab.explore.sweeps import Part, sweep
from codeai_lab.lessons.measured import Measured, Progress, are_numbers

CLIENTS = (10, 20, 50, 100)
RUNS, SEED = 100, 20_261_130


def contention_measured(
    *,
    clients: Sequence[int] = CLIENTS,
    runs: int = RUNS,
    seed: int = SEED,
    strategies: Sequence[str] = STUDIED,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each strategy and number of clients.

    Args:
        executor, keep, progress: as for `explore.sweeps.sweep`.

    Raises: RefusedRequestError (definite) for what cannot be contended.
    """
    cells = [(strategy, count) for count in clients for strategy in strategies]
    parts = [
        Part(
            name=f"{strategy}, {count} clients",
            task=contended,
            arguments={"strategy": str(strategy), "clients": count, "runs": runs, "seed": seed},
            check=lambda answer: _has_form(answer, runs),
        )
        for strategy, count in cells
    ]
    answers = sweep(parts, executor=executor, keep=keep, progress=progress)
    return [_measured(*cell, runs, answer) for cell, answer in zip(cells, answers, strict=True)]


def contended(strategy: str, clients: int, runs: int, seed: int) -> dict[str, list[float]]:
    """Give one cell's runs in plain form: the part of the sweep."""
    found = contend(strategy, clients=clients, runs=runs, seed=seed)
    return {"calls": found.calls.tolist(), "time_ms": found.time_ms.tolist()}


def _has_form(answer: object, runs: int) -> bool:
    return (
        isinstance(answer, dict)
        and answer.keys() == {"calls", "time_ms"}
        and all(are_numbers(values, runs) for values in answer.values())
    )


def _measured(strategy: str, clients: int, runs: int, answer: dict[str, list[float]]) -> Measured:
    samples = {name: Sample.of(values) for name, values in answer.items()}
    row: dict[str, Any] = {"strategy": str(strategy), "clients": clients, "runs": runs}
    for name, sample in samples.items():
        row |= {f"{name}_mean": sample.mean, f"{name}_sd": sample.sd}
    return Measured(case=f"{strategy}-{clients}", row=row, samples=samples)
