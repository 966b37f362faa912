"""What does your retry library really do?

Chapter: 000, section 15.7.

Idea: the same parameters, handed to each library's own retry loop, and every wait that it asks for noted.
A library that clamps after it has added the jitter has none left at the cap: clients that failed together
come back together. How well a crowd is spread is the share of it whose last retry falls into the busiest
second. That needs more clients than loops can be driven for, so the share is that of a formula, and only
where the formula gave each driven loop's waits, draw for draw.

Always true:
  LI1. A row is driven or it is not, and says for how many loops; a formula is never called driven.
  LI2. The law stands in for the loops only where every loop agreed with it; otherwise the share is that of
       the loops alone.
  LI3. A library that is not installed, or has changed so that it cannot be driven, is a row that says so.
  LI4. The same seed gives the same bytes for the same versions; a row does not depend on the others.

Your own library or policy takes one function. A policy gives the wait before retry n, in seconds:

    def my_policy(n, draw):
        return min(20.0, 2.0 ** (n - 1)) * draw()

    measure("mine", policy=my_policy)

A loop is driven by a function that gives its waits; name where the library has its clock and its chance:

    def drive(chance):
        with standing_in(chance, "my_library.retry:time", "my_library.retry:random") as waited:
            my_library.call_with_retries(a_function_that_fails)
        return waited

    measure("my library", drive=drive)

Not here: the loops (`lessons.library_loops`, `lessons.library_requests`), the formulas
(`explore.library_laws`), which there are (`lessons.library_catalogue`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.library_laws import CAP, Law, busiest_second, crowd, each
from codeai_lab.lessons.library_catalogue import CATALOGUE, CapOrder, Drive, Entry
from codeai_lab.lessons.library_standins import Chance, standing_in
from codeai_lab.lessons.measured import Measured, Progress, rows_of

__all__ = ["CapOrder", "libraries_measured", "measure", "rows", "standing_in"]

LOOPS, CLIENTS, SEED = 200, 200_000, 20_261_130
GET = "pip install 'codeai-lab[libraries]'"
HOW_TO_GET = f"Not installed; get it with: {GET}"
CHANGED = f"This version could not be driven ({{}}); get one that can with: {GET}"
OTHERWISE = "This version waits otherwise than its rule here says; the figures are those of its loops."
FIELDS = (
    "library", "version", "rule", "counts_first_attempt", "cap_order", "mean_sleeps", "total_mean",
    "total_sd", "busiest_second", "in_busiest_second", "p_last_is_cap", "loops", "driven", "note",
)  # fmt: skip
Waits = list[list[float]]


def rows(
    *,
    libraries: Sequence[str] | None = None,
    loops: int = LOOPS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Give a row for each rule of each library, and for the formulas.

    Args:
        libraries: only these; None for all.
        loops: loops to drive for each row; a quarter where a loop is slow.

    Returns: rows with FIELDS. Waits are seconds. `mean_sleeps` has one for each retry; `busiest_second` is
        a share, of CLIENTS that follow the law where the loops agreed with it, and `in_busiest_second` puts
        the share of the loops beside it. Where nothing could be driven the figures are None.
    Raises: RefusedRequestError (definite) for a library that is not there and for fewer than two loops.
    """
    return rows_of(libraries_measured(libraries=libraries, loops=loops, seed=seed, progress=progress))


def libraries_measured(
    *,
    libraries: Sequence[str] | None = None,
    loops: int = LOOPS,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[Measured]:
    """Give the same rows with the samples that they follow from."""
    _require_loops(loops)
    wanted = _wanted(libraries)
    found = []
    for done, entry in enumerate(wanted):
        if progress is not None:
            progress(entry.case, done, len(wanted))
        found.append(_measured(entry, loops, seed))
    return found


def measure(
    name: str,
    *,
    drive: Drive | None = None,
    policy: Callable[[int, Callable[[], float]], float] | None = None,
    cap_order: CapOrder = CapOrder.NONE,
    loops: int = 2_000,
    seed: int = SEED,
) -> dict[str, Any]:
    """Give the row of your own library or policy.

    Args:
        drive: drives one loop with the chance it is handed, and gives its waits in seconds.
        policy: gives the wait before retry n, from 1 to 8, drawing as often as it likes.
        cap_order: where your rule has the cap, as far as you know; it is told and not measured.
        loops: how often to ask; the busiest second is found with one half and counted with the other.

    Raises: RefusedRequestError (definite) for both or neither, for fewer than two loops and for a wait that
        is no time.
    """
    _require_loops(loops)
    if drive is not None and policy is None:
        waits, _ = _looped(drive, name, loops, seed)
    elif policy is not None and drive is None:
        waits, _ = _looped(_evaluated(each(policy)), name, loops, seed)
    else:
        raise RefusedRequestError("Give either a function that drives a loop or a policy.")
    known: dict[str, Any] = {"library": name, "version": "yours", "rule": name}
    known |= {
        "counts_first_attempt": None,
        "cap_order": str(cap_order),
        "loops": loops if drive else 0,
        "driven": drive is not None,
        "note": "",
    }
    return dict(_summed(name, known, waits, None).row)


def _wanted(libraries: Sequence[str] | None) -> list[Entry]:
    there = list(dict.fromkeys(entry.library for entry in CATALOGUE))
    for name in libraries or ():
        if name not in there:
            raise RefusedRequestError(f"There is no library called {name}; there are {', '.join(there)}.")
    return [entry for entry in CATALOGUE if libraries is None or entry.library in libraries]


def _measured(entry: Entry, loops: int, seed: int) -> Measured:
    known: dict[str, Any] = {
        "library": entry.library,
        "version": "formula",
        "rule": entry.rule,
        "counts_first_attempt": entry.counts_first_attempt,
        "cap_order": str(entry.cap_order),
        "loops": 0,
        "driven": False,
        "note": entry.note,
    }
    if entry.drive is None:
        waits, _ = _looped(_evaluated(entry.law), entry.case, loops, seed)
        return _summed(entry.case, known, waits, _crowd(entry, seed))
    driven = max(2, loops // entry.one_loop_in)
    try:
        known["version"] = version(entry.library)
        waits, given = _looped(entry.drive, entry.case, driven, seed)
    except (PackageNotFoundError, ImportError):
        return _absent(entry.case, known | {"version": "not installed", "note": HOW_TO_GET})
    except Exception as error:
        # a loop is reached through names inside its library, and another version may fail in any way
        return _absent(entry.case, known | {"note": CHANGED.format(type(error).__name__)})
    known |= {"loops": driven, "driven": True}
    if all(_agrees(entry.law, *loop) for loop in zip(waits, given, strict=True)):
        return _summed(entry.case, known, waits, _crowd(entry, seed))
    return _summed(entry.case, known | {"note": OTHERWISE}, waits, None)


def _looped(drive: Drive, name: str, loops: int, seed: int) -> tuple[Waits, Waits]:
    """Drive so many loops; give the waits of each, and the draws that it took."""
    chance = Chance(seed, "libraries", name)
    waits, given = [], []
    for _ in range(loops):
        waited = [float(wait) for wait in drive(chance)]
        if not all(math.isfinite(wait) and wait >= 0 for wait in waited):
            raise RefusedRequestError("A wait is a number of seconds, from 0.")
        waits.append(waited)
        given.append(chance.given.copy())
        chance.given.clear()
    return waits, given


def _evaluated(law: Law) -> Drive:
    """Give what a formula gives in place of a driven loop."""
    return lambda chance: law(chance.random)


def _agrees(law: Law, waits: Sequence[float], given: Sequence[float]) -> bool:
    """Say whether a law gives these waits from these draws."""
    draws = iter(given)
    try:
        said = law(lambda: next(draws))
    except StopIteration:
        return False
    return len(said) == len(waits) and all(map(_near, said, waits))


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def _crowd(entry: Entry, seed: int) -> tuple[float, float]:
    return busiest_second(crowd(entry.law, clients=CLIENTS, seed=seed, name=entry.case))


def _summed(case: str, known: dict[str, Any], waits: Waits, busiest: tuple[float, float] | None) -> Measured:
    """Sum the loops up.

    Args:
        busiest: where the law's busiest second begins and its share; None where there is no law.
    """
    last = max(map(len, waits))
    nth = [[loop[n] for loop in waits if len(loop) > n] for n in range(last)]
    total = Sample.of([math.fsum(loop) for loop in waits])
    samples = {"total": total}
    row = known | {
        "mean_sleeps": [Sample.of(each_wait).mean for each_wait in nth],
        "total_mean": total.mean,
        "total_sd": total.sd,
        "busiest_second": None,
        "in_busiest_second": None,
        "p_last_is_cap": None,
    }
    if last:
        samples["p_last_is_cap"] = Sample.of(nth[-1]).where(lambda wait: wait == CAP)
        samples["in_busiest_second"], share = _spread(waits, busiest)
        row["p_last_is_cap"] = samples["p_last_is_cap"].mean
        row["in_busiest_second"] = estimate(share, samples["in_busiest_second"])
        row["busiest_second"] = samples["in_busiest_second"].mean if share is None else share
    return Measured(case=case, row={name: row[name] for name in FIELDS}, samples=samples)


def _spread(waits: Waits, busiest: tuple[float, float] | None) -> tuple[Sample, float | None]:
    """Count which loops ended in the busiest second, the law's or that of every other loop."""
    totals = [math.fsum(loop) for loop in waits]
    begins, share = busiest or (busiest_second(totals[::2])[0], None)
    counted = totals if busiest else totals[1::2]
    return Sample.of(counted).where(lambda at: begins - 1e-9 <= at < begins + 1), share


def _absent(case: str, known: dict[str, Any]) -> Measured:
    row = dict.fromkeys(FIELDS) | known | {"mean_sleeps": []}
    return Measured(case=case, row={name: row[name] for name in FIELDS}, samples={})


def _require_loops(loops: object) -> None:
    if type(loops) is not int or loops < 2:
        raise RefusedRequestError("The number of loops is a whole number from 2.")
