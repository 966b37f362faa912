"""The laws of store.memory: the contract of every ledger, and winding back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ledger_contract import LedgerContract, draft, ids

from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger, Unchanged


class TestMemoryLedger(LedgerContract):
    """The specification keeps its own contract; reopening it is a matter of doing nothing."""

    @pytest.fixture
    def ledger(self) -> Ledger:
        return MemoryLedger()

    @pytest.fixture
    def fresh(self) -> Callable[[], Ledger]:
        return MemoryLedger

    @pytest.fixture
    def untouched(self) -> Ledger:
        return MemoryLedger()

    @pytest.fixture
    def reopened(self) -> Callable[[Ledger], Ledger]:
        return lambda ledger: ledger


def test_a_snapshot_is_a_place_to_come_back_to() -> None:
    """A ledger wound back holds what it held, forgets live walks, and goes on from there."""
    ledger = MemoryLedger(ledger_id="wound")
    ledger.append(draft("a"))
    snapshot = ledger.snapshot()
    ledger.append(draft("b"))
    ledger.live_actions.add("b")
    ledger.restore(snapshot)
    assert ids(ledger.read_all()) == ["a"]
    assert ledger.live_actions == set()
    assert ledger.append(draft("b"), unless_changed=[Unchanged(key="k", last_seq=1)])[0].seq == 2
    assert snapshot == ledger.snapshot()[:1]


def test_its_repr_is_the_same_on_every_machine() -> None:
    """A memory ledger shows its name and the number of its events."""
    assert repr(MemoryLedger(ledger_id="m")) == "MemoryLedger('m', events=0)"
