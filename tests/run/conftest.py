"""A small world, a ledger and a runtime whose time and ids are the same on every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import Clock, ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import MarkerWorld
from codeai_lab.run.revisions import LAB, Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger


@pytest.fixture
def memory() -> MemoryLedger:
    """A ledger without a file."""
    return MemoryLedger()


@pytest.fixture
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger in memory, or the one that a test asks for by name; what both must do is in tests/store."""
    if getattr(request, "param", "memory") == "memory":
        yield MemoryLedger()
        return
    with DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="L", clock=ManualClock()) as file:
        yield file


@pytest.fixture
def world(tmp_path: Path) -> MarkerWorld:
    """A folder in which effects leave markers and receipts."""
    return MarkerWorld(tmp_path / "world")


@pytest.fixture
def auth() -> Authority:
    """What the usual caller may do."""
    return Authority.of("file.append")


@pytest.fixture
def req() -> Callable[..., ActionRequest]:
    """Make a request in the chapter's way: `req("d1", "kc")`, with changes by name."""

    def make(action_id: str, key: str = "k", **changes: Any) -> ActionRequest:
        usual = {"capability": "file.append", "instruction": "append one line", "payload": {"line": "one"}}
        return ActionRequest(action_id=action_id, idempotency_key=key, **usual | changes)

    return make


@pytest.fixture
def runtime_on() -> Callable[..., Runtime]:
    """Make a runtime on a ledger; a second one on the same ledger needs ids of its own."""

    def make(ledger: Ledger, rules: Revision = LAB, *, ids: str = "e", clock: Clock | None = None) -> Runtime:
        clock = clock or ManualClock(tick_us=1)
        return Runtime(ledger, rules=rules, clock=clock, new_id=counted_ids(ids), run_id="r", actor_id="t")

    return make
