"""How long is the wait before each retry, in theory and in a sample?

Chapter: 000, section 15.7.

Idea: every rule with the same base, cap and number of retries. A row is one retry of one rule; beside each
closed form stands what a sample of waits came to, and how sure that is.

Always true:
  LB1. One stream of chance for each rule: another rule beside it changes no row of the others.
  LB2. The total's fields are the same in every row of a rule: they are of all its waits together.

Not here: the rules (`decide.backoff`), the closed forms (`decide.backoff_laws`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import law, total_law
from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.sleeps import sleeps
from codeai_lab.lessons.measured import Measured, Progress

CLIENTS, RETRIES, SEED = 20_000, 8, 20_261_130


def backoff_measured(
    *,
    strategies: Sequence[str] = tuple(Strategy),
    base: float = 1.0,
    cap: float = 20.0,
    jitter: float = 1.0,
    retries: int = RETRIES,
    clients: int = CLIENTS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give a row for each rule and retry, from a sample of `clients` clients.

    `attempt` counts the retries from 1; mean, variance and atom are those of the wait before it, the total's
    mean and sd those of all `retries` waits together. The unit is that of base and cap.

    Raises: RefusedRequestError (definite) for a strategy or values that no rule takes.
    """
    found: list[Measured] = []
    for done, name in enumerate(strategies):
        if progress is not None:
            progress(str(name), done, len(strategies))
        rule = Backoff(strategy=strategy_named(name), base=base, cap=cap, jitter=jitter)
        waits = sleeps(rule, retries=retries, clients=clients, seed=seed)
        totals = _totals(rule, Sample.of(waits.sum(axis=1).tolist()), retries)
        for n in range(1, retries + 1):
            fields, samples = _of_wait(rule, n, Sample.of(waits[:, n - 1].tolist()))
            row = {"strategy": str(rule.strategy), "attempt": n} | fields | totals[0]
            case = f"{rule.strategy}-{n}"
            found.append(Measured(case=case, row=row, samples=samples | totals[1]))
    return found


def strategy_named(name: str) -> Strategy:
    """Give a strategy by its name.

    Raises: RefusedRequestError (definite) for a name that none has.
    """
    try:
        return Strategy(name)
    except ValueError:
        raise RefusedRequestError(
            f"There is no strategy called {name}; there are {', '.join(Strategy)}."
        ) from None


def _of_wait(rule: Backoff, n: int, wait: Sample) -> tuple[dict[str, Any], dict[str, Sample]]:
    known = law(rule, n)
    samples = {
        "mean": wait,
        "variance": wait.squares_around(known.mean),
        "atom_at_cap": wait.where(lambda value: value == rule.cap),
    }
    return {name: estimate(getattr(known, name), sample) for name, sample in samples.items()}, samples


def _totals(rule: Backoff, total: Sample, retries: int) -> tuple[dict[str, Any], dict[str, Sample]]:
    known = total_law(rule, retries)
    sd = {"closed_form": known.variance**0.5, "sampled": total.sd, "se": total.se_of_sd}
    return {"total_mean": estimate(known.mean, total), "total_sd": sd}, {"total": total}
