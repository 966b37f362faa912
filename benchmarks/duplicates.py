"""What does a million retried requests cost, against following them one by one?

Chapter: 004, retry, replay and duplicate; 000, section 15.7.

Idea: the reference is the same model as a plain loop: for each trial its attempts, for each attempt what it
finds and what becomes of it. It is written here, as plainly and as fast as a loop over trials can be, and
both must come to the same mean before anything is compared.

Always true:
  DB1. Both sides follow the same requests through the same protections, and count the same things.
  DB2. A run whose two means differ by more than five standard errors is no measurement, and ends here.

Not here: the processes of a long sweep (`tests/real`); one process stands against one.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable

from benchmarks.rounds import Row, Timed, judged, side_by_side
from codeai_lab.decide.duplicates import Case, Model, Protection
from codeai_lab.decide.samples import Sample
from codeai_lab.explore.duplicates import retry

MANY, FEW = 1_000_000, 20_000  # trials of the arrays, and of the loop, which takes the same time for each
AT_LEAST = 5.0
SEED = 22
CASES = [
    Case(model=Model.LOSS, protection=Protection.NONE, attempts=4, response_loss=0.3, request_loss=0.2),
    Case(model=Model.CRASH, protection=Protection.KEY_ONLY, attempts=4, response_loss=0.3, request_loss=0.2),
    Case(model=Model.CRASH, protection=Protection.CLAIM_RECONCILE, attempts=4, response_loss=0.3,
         request_loss=0.2),
    Case(model=Model.SLOW, protection=Protection.NONE, attempts=4, response_loss=0.3),
]  # fmt: skip


def duplicates(*, rounds: int) -> list[Row]:
    """Measure a million trials of each case, in arrays and in a loop."""
    return [_row(case, rounds) for case in CASES]


def _row(case: Case, rounds: int) -> Row:
    _require_the_same(case)

    def in_arrays() -> Timed:
        return lambda: _seconds(lambda: retry(case, trials=MANY, seed=SEED))

    def in_a_loop() -> Timed:
        return lambda: _seconds(lambda: one_by_one(case, FEW, random.Random(SEED))) * (MANY / FEW)

    times = side_by_side({"arrays": in_arrays, "loop": in_a_loop}, rounds=rounds)
    each = {name: times.of(name).median * 1e3 for name in times.names}
    return judged(
        f"a million trials, {case.model} under {case.protection}: a plain loop / arrays",
        times.ratio("loop", "arrays"),
        at_least=AT_LEAST,
        remark=f"{each['arrays']:.0f} ms a million; the loop {each['loop']:.0f} ms",
    )


def one_by_one(case: Case, trials: int, dice: random.Random) -> Counter[int]:
    """Follow each request by itself; give how many had how many effects."""
    return (_slow if case.model is Model.SLOW else _lost_or_crashed)(case, trials, dice)


def _lost_or_crashed(case: Case, trials: int, dice: random.Random) -> Counter[int]:
    roll, counts = dice.random, Counter[int]()
    lost, unanswered, attempts = case.request_loss, case.response_loss, range(case.attempts)
    crashing = case.model is Model.CRASH
    records = case.protection is not Protection.NONE
    reconciles = case.protection is Protection.CLAIM_RECONCILE  # the lease is over when the next one comes
    for _ in range(trials):
        effects, recorded = 0, False
        for _attempt in attempts:
            if roll() < lost:
                continue
            if not (recorded or (reconciles and effects)):
                effects += 1
                if crashing and roll() < unanswered:
                    continue
            recorded = records
            if crashing or roll() >= unanswered:
                break
        counts[effects] += 1
    return counts


def _slow(case: Case, trials: int, dice: random.Random) -> Counter[int]:
    serve, counts = dice.expovariate, Counter[int]()
    timeout, attempts = -math.log(case.response_loss), case.attempts  # of a service that takes 1 on average
    for _ in range(trials):
        service, effects = serve(1.0), 1
        while effects < attempts and service > effects * timeout:
            effects += 1
        counts[effects] += 1
    return counts


def _require_the_same(case: Case) -> None:
    """Hold the two against each other before they are timed."""
    arrays = Sample.counted(dict(enumerate(retry(case, trials=MANY, seed=SEED).effects)))
    loop = Sample.of(one_by_one(case, FEW, random.Random(SEED)).elements())
    far = abs(arrays.mean - loop.mean)
    assert far <= 5 * math.hypot(arrays.se or 0, loop.se or 0), f"{case.name}: the means are {far:g} apart"


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun
