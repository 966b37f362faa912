"""What does every test start from?

Idea: the same draws in every run, no window, and a mark on whatever needs kernels, processes or threads.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from codeai_lab.explore import sweeps

REAL = Path(__file__).parent / "real"
# What killed processes left. That they still leave these bytes is held by tests/real/test_working_state.py.
(KILLED,) = (Path(__file__).parents[1] / "evidence" / "working-state").glob("*-lab")

os.environ.setdefault("MPLBACKEND", "Agg")
gc.disable()  # until all is imported and collected: see `pytest_collection_finish`

# A run never fails by the luck of its draw, nor by the load of the machine.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, max_examples=40
)
hypothesis.settings.register_profile(  # pytest --hypothesis-profile=thorough
    "thorough", hypothesis.settings.get_profile("repeatable"), max_examples=1_000
)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/real, so that `-m "not real"` leaves out everything slow."""
    for item in items:
        if is_real(item.path):
            item.add_marker(pytest.mark.real)


@cache
def is_real(path: Path) -> bool:
    return REAL in path.parents


class InThisProcess(Executor):
    """Runs at once what it is given; it is made in the place of a pool of processes, and asks for none."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # raised again where the answer is asked for
            future.set_exception(error)
        return future


OF_PROCESSES = sweeps.ProcessPoolExecutor


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a sweep start its processes in tests/real only; its answers are the same."""
    pool = OF_PROCESSES if is_real(item.path) else InThisProcess
    sweeps.ProcessPoolExecutor = pool  # type: ignore[misc,assignment]


def pytest_collection_finish() -> None:
    """Set aside what was imported and collected: it stays to the end, so the garbage collector need not look.

    What the tests leave is little and is looked through more rarely than by default; what has become old is
    mostly kept for other tests, and is looked through hardly ever.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 1_000)
    gc.enable()


@pytest.fixture(scope="session")
def killed() -> Path:
    """The pinned bundle of `working-state`."""
    return KILLED


@pytest.fixture
def played_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody be killed: `working-state` leaves what is pinned of it."""
    _let_the_pinned_play_be_played(monkeypatch)


@pytest.fixture(scope="session")
def frozen_working_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the bundle of `working-state`, frozen now from what is pinned of it; change a copy."""
    from codeai_lab.lessons.freezing_calls import freeze_working_state

    to = tmp_path_factory.mktemp("work") / "working-state"
    with pytest.MonkeyPatch.context() as patched:
        _let_the_pinned_play_be_played(patched)
        freeze_working_state(to)
    return to


def _let_the_pinned_play_be_played(patched: pytest.MonkeyPatch) -> None:
    from codeai_lab.lessons import working_state

    def play(folder: Path, *, progress: Any = None) -> list[dict[str, Any]]:
        shutil.copyfile(KILLED / "data" / "ledger.jsonl", folder / "lab.duckdb.journal.jsonl")
        for log in (KILLED / "data" / "world").glob("*/receipts.jsonl"):
            shutil.copyfile(log, folder / f"{log.parent.name}.receipts.jsonl")
        return [dict(row) for row in working_state.EXPECTED]

    patched.setattr(working_state, "play", play)
