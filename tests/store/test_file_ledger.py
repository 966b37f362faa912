"""The laws of the file ledger: the contract of every ledger, and that what is exported is what was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ledger_contract import ACCEPTED, LedgerContract, draft, same

from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.protocol import Ledger


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with DuckDBLedger(tmp_path_factory.mktemp("untouched") / "lab.duckdb") as ledger:
        yield ledger


class TestFileLedger(LedgerContract):
    """The ledger in a file behaves as the list does."""

    @pytest.fixture
    def fresh(self, tmp_path: Path) -> Iterator[Callable[[], Ledger]]:
        numbers, opened = count(), []

        def make() -> Ledger:
            opened.append(DuckDBLedger(tmp_path / f"{next(numbers)}.duckdb"))
            return opened[-1]

        yield make
        for ledger in opened:
            ledger.close()

    @pytest.fixture
    def ledger(self, fresh: Callable[[], Ledger]) -> Ledger:
        return fresh()

    @pytest.fixture
    def reopened(self) -> Iterator[Callable[[Ledger], Ledger]]:
        opened = []

        def reopen(ledger: Any) -> Ledger:
            path = Path(str(ledger.journal).removesuffix(".journal.jsonl"))
            ledger.close()
            opened.append(DuckDBLedger(path))
            assert opened[-1].notices == ()
            return opened[-1]

        yield reopen
        for ledger in opened:
            ledger.close()


def test_exported_forms_agree_with_live_ones(tmp_path: Path) -> None:
    """Payload rule: journal, SQL and a rebuilt index hold each accepted payload as it was read live."""
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        payloads = [payload for payload, _ in ACCEPTED.values()]
        live = [
            ledger.append(draft(str(n), payload=payload))[0].payload for n, payload in enumerate(payloads)
        ]
        asked = ledger.sql("SELECT payload FROM events ORDER BY seq").rows
        lines = ledger.journal.read_bytes().splitlines()[1:]
    (tmp_path / "lab.duckdb").unlink()
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        rebuilt = ledger.sql("SELECT payload FROM events ORDER BY seq").rows
        found = [event.payload for event in ledger.find("k")]
    for exported in (
        [json.loads(line)["payload"] for line in lines],
        [json.loads(text) for (text,) in asked],
        [json.loads(text) for (text,) in rebuilt],
        found,
    ):
        assert all(same(one, other) for one, other in zip(live, exported, strict=True))
