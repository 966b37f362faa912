"""What does every test start from?

Idea: the same draws in every run, no window, and a mark on whatever needs kernels, processes or threads.
"""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

REAL = Path(__file__).parent / "real"

os.environ.setdefault("MPLBACKEND", "Agg")

# A run never fails by the luck of its draw, nor by the load of the machine.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/real, so that `-m "not real"` leaves out everything slow."""
    for item in items:
        if REAL in item.path.parents:
            item.add_marker(pytest.mark.real)
