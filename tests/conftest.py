"""What does every test start from?

Idea: the same draws in every run, no window, and a mark on whatever needs kernels, processes or threads.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import hypothesis
import pytest

REAL = Path(__file__).parent / "real"

os.environ.setdefault("MPLBACKEND", "Agg")

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
        if REAL in item.path.parents:
            item.add_marker(pytest.mark.real)


def pytest_collection_finish() -> None:
    """Set aside what was imported and collected: it stays to the end, so the garbage collector need not look.

    What the tests leave is little and is looked through more rarely than by default.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 50)
