"""A small ledger as bytes, to be laid into a folder in whatever state a test needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ledger_contract import draft

from codeai_lab.clock import ManualClock
from codeai_lab.store.ledger import DuckDBLedger

BATCHES = (1, 2, 1, 2)
NAME = "lab.duckdb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A ledger of four batches, closed; and its index and DuckDB's log as they were before that.

    `early_index` is the index before the first append; with `log` beside it, it is what a kill leaves.
    """

    journal: bytes
    index: bytes
    early_index: bytes
    log: bytes

    @property
    def line_ends(self) -> list[int]:
        """Where each line ends, line 0 first, its newline included."""
        ends, size = [], 0
        for line in self.journal.splitlines(keepends=True):
            size += len(line)
            ends.append(size)
        return ends

    @property
    def batch_ends(self) -> list[int]:
        """Where each complete batch ends, line 0 first."""
        batches = [json.loads(line).get("batch", [1, 1]) for line in self.journal.splitlines()]
        return [end for end, (n, of) in zip(self.line_ends, batches, strict=True) if n == of]

    def lay(
        self,
        folder: Path,
        *,
        journal: bytes | None = None,
        index: bytes | None = None,
        log: bytes | None = None,
    ) -> Path:
        """Lay files into a folder and give the ledger's path; b"" is an empty file, None none at all."""
        folder.mkdir(exist_ok=True)
        for name, content in ((NAME, index), (f"{NAME}.journal.jsonl", journal), (f"{NAME}.wal", log)):
            (folder / name).unlink(missing_ok=True)
            if content is not None:
                (folder / name).write_bytes(content)
        return folder / NAME


def make(folder: Path, *, ledger_id: str = "L1") -> Made:
    """Make a ledger of `BATCHES` and give it as bytes."""
    path = folder / NAME
    clock = ManualClock()
    DuckDBLedger(path, ledger_id=ledger_id, clock=clock).close()
    early_index = path.read_bytes()
    with DuckDBLedger(path) as ledger:
        for number, size in enumerate(BATCHES):
            ledger.append(
                *(draft(f"{number}.{n}", key=f"k{number % 2}", stream=f"s{n}") for n in range(size))
            )
        ledger.sql("SELECT 1")
        assert path.read_bytes() == early_index
        log = path.with_name(f"{NAME}.wal").read_bytes()
    return Made(
        journal=ledger.journal.read_bytes(), index=path.read_bytes(), early_index=early_index, log=log
    )


def contents(folder: Path) -> dict[str, bytes | None]:
    """Give everything in a folder but the lock, which says nothing by being there; None for a folder."""
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in folder.iterdir()
        if not path.name.endswith(".lock")
    }


def flipped(content: bytes, place: int, bits: int = 0x01) -> bytes:
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


def never(what: str) -> Callable[..., None]:
    """Give a function that fails the test when it is called."""

    def called(*_: object, **__: object) -> None:
        raise AssertionError(f"{what} must not happen here")

    return called
