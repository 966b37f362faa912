"""What does a simulated second of an overload cost, against a general simulator?

Chapter: 000, section 15.7.

Idea: the same system, 280 first tries a second with one retry and a stop, as processes and events of SimPy:
a source, a server, and each request a process of its own. Both must come to the same load before anything is
compared. The map of loads and stops has no other side; it has a bound in seconds.

Always true:
  OB1. Both sides run the same model for the same simulated time, and count the same things.
  OB2. A run whose two loads differ by more than five standard errors is no measurement, and ends here.
  OB3. Where SimPy is not installed its row is left out, and one sentence says so.

Not here: budgets, bounded queues and closed systems.
"""

from __future__ import annotations

import importlib.util
import math
import random
from typing import Any

from benchmarks.rounds import Row, Timed, judged, side_by_side
from codeai_lab.explore.overload import simulate
from codeai_lab.explore.systems import Open, System
from codeai_lab.lessons.overload import LOADS, TRIGGERS_S, phase_diagram

FIRST_TRIES, HORIZON_S, MEASURED_S = 280.0, 100, 60
AT_LEAST, MOST_S = 8.0, 5.0
SEED = 22
SYSTEM = System(demand=Open(first_tries=FIRST_TRIES), horizon_s=HORIZON_S)


def overload(*, rounds: int) -> list[Row]:
    """Measure a run of the heap against SimPy, and the map of forty loads and sixty-seven stops."""
    rows = [_map(rounds)]
    if importlib.util.find_spec("simpy") is None:
        print("SimPy is not installed here, so its row is left out (see benchmarks/README.md).\n")
        return rows
    return [_against_simpy(rounds), *rows]


def _against_simpy(rounds: int) -> Row:
    _require_the_same()

    def on_the_heap() -> Timed:
        return lambda: simulate(SYSTEM, seed=SEED, name="benchmark")

    def in_simpy() -> Timed:
        return lambda: simulated_in_simpy(SYSTEM, random.Random(SEED))

    times = side_by_side({"heap": on_the_heap, "simpy": in_simpy}, rounds=rounds)
    each = {name: times.of(name).median * 1e3 / HORIZON_S for name in times.names}
    return judged(
        f"{HORIZON_S} seconds of an overload, 280/s and one retry: SimPy / heap",
        times.ratio("simpy", "heap"),
        at_least=AT_LEAST,
        remark=f"{each['heap']:.2f} ms a simulated second; SimPy {each['simpy']:.2f} ms",
    )


def _map(rounds: int) -> Row:
    times = side_by_side({"map": lambda: phase_diagram}, rounds=rounds)
    taken = times.of("map")
    return Row(
        name=f"map of {len(LOADS)} loads and {len(TRIGGERS_S)} stops, watched for 2,000 s",
        ratio=None,
        bound=f"<= {MOST_S:g} s",
        held=taken.median <= MOST_S,
        remark=f"{taken.median:.2f} s ({taken.p10:.2f} to {taken.p90:.2f})",
    )


def simulated_in_simpy(system: System, dice: random.Random) -> tuple[float, float]:
    """Run the system in SimPy; give load and goodput of the last minute.

    A client does not wait for whichever comes first, answer or timeout, which costs SimPy a condition for
    each attempt: it looks after its timeout whether the answer has come.
    """
    import simpy

    assert isinstance(system.demand, Open)
    assert system.retries is not None
    world = simpy.Environment()
    queue: Any = simpy.Store(world)
    service_s, timeout_s, retries = 1 / system.capacity, system.timeout_s, system.retries
    stops, goes_on = system.trigger_at_s, system.trigger_at_s + system.trigger_s
    measured_from = system.horizon_s - MEASURED_S
    came = of_use = 0

    def source() -> Any:
        while True:
            yield world.timeout(dice.expovariate(FIRST_TRIES))
            world.process(request())

    def request() -> Any:
        nonlocal came
        for _ in range(1 + retries):
            came += world.now >= measured_from
            attempt = [world.now, False]
            queue.put(attempt)
            yield world.timeout(timeout_s)
            if attempt[1]:
                return

    def server() -> Any:
        nonlocal of_use
        while True:
            attempt = yield queue.get()
            now = world.now
            if stops <= now < goes_on:
                yield world.timeout(goes_on - now)
            elif now < stops < now + service_s:
                yield world.timeout(goes_on - stops)
            yield world.timeout(service_s)
            attempt[1] = True
            of_use += world.now >= measured_from and world.now - attempt[0] <= timeout_s

    world.process(source())
    world.process(server())
    world.run(until=system.horizon_s)
    return came / MEASURED_S, of_use / MEASURED_S


def _require_the_same() -> None:
    """Hold the two against each other before they are timed, in the overload and without it."""
    trace = simulate(SYSTEM, seed=SEED, name="benchmark")
    load, goodput = trace.load[-MEASURED_S:].mean(), trace.goodput[-MEASURED_S:].mean()
    other_load, other_goodput = simulated_in_simpy(SYSTEM, random.Random(SEED))
    error = 2 * math.sqrt(FIRST_TRIES / MEASURED_S) * math.sqrt(2)
    assert abs(load - other_load) <= 5 * error, f"the loads are {load:g} and {other_load:g}"
    assert goodput == other_goodput == 0, f"the goodputs are {goodput:g} and {other_goodput:g}"
