"""What stands in for a library's clock and chance while its loop is driven."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections.abc import Iterator
from time import sleep
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.library_standins import Chance, finished, standing_in


@pytest.fixture
def library() -> Iterator[Any]:
    """A library with a clock, a chance, a function that draws, and settings."""
    module: Any = ModuleType("a_retry_library")
    module.time, module.random, module.asyncio = time, random, asyncio
    module.draw, module.settings = random.random, SimpleNamespace(active=False, other=1)
    sys.modules["a_retry_library"] = module
    yield module
    del sys.modules["a_retry_library"]


def test_the_same_seed_and_names_give_the_same_draws() -> None:
    """A chance is a named stream; it answers in every form that a library asks in, and keeps what it gave."""
    one, same, other = Chance(1, "a"), Chance(1, "a"), Chance(1, "b")
    drawn = [one.random(), one.uniform(2.0, 4.0), one.randrange(6)]
    assert drawn == [same.random(), same.uniform(2.0, 4.0), same.randrange(6)]
    assert one.given == same.given
    assert one.given[:2] == [drawn[0], (drawn[1] - 2) / 2]
    assert other.random() != drawn[0]


def test_waits_are_noted_and_draws_are_ours(library: Any) -> None:
    """Nobody sleeps, and the process's own generator is neither read nor changed."""
    before = random.getstate()
    places = ("a_retry_library:time", "a_retry_library:random", "a_retry_library:draw")
    with standing_in(Chance(1, "x"), *places) as waited:
        library.time.sleep(1_000_000)
        drawn = [library.random.random(), library.random.uniform(0, 1), library.draw()]
        assert library.time.monotonic() > 0
    assert waited == [1_000_000]
    chance = Chance(1, "x")
    assert drawn == [chance.random() for _ in range(3)]
    assert random.getstate() == before


def test_every_name_is_put_back_even_after_an_error(library: Any) -> None:
    """Whatever happens within, the library is as it was."""
    held = dict(vars(library))
    with (
        pytest.raises(ZeroDivisionError),
        standing_in(Chance(1), "a_retry_library:time", "a_retry_library:asyncio"),
    ):
        raise ZeroDivisionError
    for refused in ("a_retry_library:settings", "a_retry_library:__name__"):
        with (
            pytest.raises(RefusedRequestError, match="no clock and no chance"),
            standing_in(Chance(1), "a_retry_library:time", refused),
        ):
            pass
    with (
        pytest.raises(AttributeError),
        standing_in(Chance(1), "a_retry_library:random", "a_retry_library:no"),
    ):
        pass
    assert dict(vars(library)) == held


def test_another_thread_has_the_real_clock_and_the_real_chance(library: Any) -> None:
    """Only the thread that drives is stood in for."""
    seen: list[object] = []

    def other() -> None:
        seen.extend([library.time.sleep, library.random.random, library.settings.active])
        random.seed(5)
        seen.append(library.draw())

    before = random.getstate()
    with standing_in(
        Chance(1),
        "a_retry_library:time",
        "a_retry_library:random",
        "a_retry_library:draw",
        instead={"a_retry_library:settings": {"active": True}},
    ):
        assert (library.settings.active, library.settings.other) == (True, 1)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    random.seed(5)
    assert seen == [sleep, random.random, False, random.random()]
    random.setstate(before)


def test_a_second_thread_that_drives_waits_for_its_turn(library: Any) -> None:
    """Two that drive at once would put each other's names back; the second begins when the first is done."""
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        with standing_in(Chance(1), "a_retry_library:time") as waited:
            order.append("second")
            library.time.sleep(2)
        assert waited == [2]

    with standing_in(Chance(1), "a_retry_library:time") as waited:
        thread = threading.Thread(target=second)
        thread.start()
        started.wait()
        library.time.sleep(1)
        order.append("first")
    thread.join()
    assert (order, waited) == (["first", "second"], [1])
    assert library.time is time


def test_a_coroutine_that_never_waits_needs_no_event_loop(library: Any) -> None:
    """It is driven where a loop runs already, as in a notebook; one that does wait is refused."""

    async def steps() -> str:
        await library.asyncio.sleep(3)
        return "done"

    async def in_a_loop() -> list[float]:
        with standing_in(Chance(1), "a_retry_library:asyncio") as waited:
            assert finished(steps()) == "done"
        return waited

    assert asyncio.run(in_a_loop()) == [3]

    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RefusedRequestError, match="waits for something"):
        finished(waits())
