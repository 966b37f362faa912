"""How is a library's own retry loop driven without waiting, without a network, and the same way each time?

Chapter: 000, section 15.8: the jitter is an injected sample, and a policy never sleeps by itself.

Idea: a library waits and draws through two names in its own modules, mostly `time` and `random`. For the
thread that drives, and for no other, these names lead to a list that notes the wait and to a stream of
chance that keeps what it gave. The loop itself is the library's, line for line.

Always true:
  ST1. Nobody sleeps, and the process's own random generator is neither read nor changed.
  ST2. Another thread that uses the same library meanwhile has the real clock and the real chance; a second
       thread that drives waits for its turn.
  ST3. Every name is put back, whatever happens within.

Not here: the libraries (`lessons.library_loops`).
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream

_one_drives = threading.RLock()
DRAWS = ("random", "uniform", "triangular", "expovariate", "gauss", "randint", "randrange", "choice")


class Chance(random.Random):
    """Even draws of a named stream, in the form that libraries ask for.

    `given` holds every draw from [0, 1) so far; whoever reads them may clear it.
    """

    def __new__(cls, *_: object) -> Chance:
        return super().__new__(cls)

    def __init__(self, seed: int, *names: str) -> None:
        super().__init__(seed)
        self.given: list[float] = []
        self._stream = stream(seed, *names)

    def random(self) -> float:
        drawn = float(self._stream.random())
        self.given.append(drawn)
        return drawn


@contextmanager
def standing_in(
    chance: random.Random, *places: str, instead: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[list[float]]:
    """Drive a library within; give the list that its waits are noted in.

    Args:
        chance: what it draws from.
        places: `module:name` where the library has `time`, `asyncio`, `random` or the function
            `random.random`.
        instead: for another `module:name`, the attributes that it shall have, such as an empty environment.

    Raises: RefusedRequestError (definite) for a name that leads to something else; ImportError and
        AttributeError where there is no such module and no such name.
    """
    waited: list[float] = []
    put_back: list[tuple[Any, str, Any]] = []
    with _one_drives:
        try:
            for place in (*places, *(instead or {})):
                module, name = import_module(place.partition(":")[0]), place.partition(":")[2]
                real = getattr(module, name)
                given = (instead or {}).get(place)
                ours = _StandIn(real, given) if given else _stand_in(real, place, chance, waited)
                put_back.append((module, name, real))
                setattr(module, name, ours)
            yield waited
        finally:
            for module, name, real in reversed(put_back):
                setattr(module, name, real)


def finished(steps: Any) -> Any:
    """Give what a coroutine returns that never has to wait for anything: no event loop is needed.

    So it can be driven where a loop is running already, as in a notebook.
    """
    try:
        steps.send(None)
    except StopIteration as end:
        return end.value
    steps.close()
    raise RefusedRequestError("The coroutine waits for something; only one that never does can be driven.")


class _StandIn:
    """A module to the thread that drives, with some names of our own; to every other thread the real one."""

    def __init__(self, real: Any, ours: Mapping[str, Any]) -> None:
        self._real, self._ours, self._driver = real, ours, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name in self._ours and threading.get_ident() == self._driver:
            return self._ours[name]
        return getattr(self._real, name)


def _stand_in(real: Any, place: str, chance: random.Random, waited: list[float]) -> Any:
    if real is time:
        return _StandIn(real, {"sleep": waited.append})
    if real is asyncio:
        return _StandIn(real, {"sleep": _noting(waited)})
    if real is random:
        return _StandIn(real, {name: getattr(chance, name) for name in DRAWS})
    if real == random.random:
        inside = _StandIn(random, {"random": chance.random})
        return lambda: inside.random()
    raise RefusedRequestError(f"{place} is no clock and no chance; there is nothing to stand in for.")


def _noting(waited: list[float]) -> Callable[[float], Any]:
    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    return sleep
