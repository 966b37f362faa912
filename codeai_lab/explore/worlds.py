"""Where do effects go when a run is one of many thousands?

Chapter: 004, "The line that may already be there"; the marker files of `run.effects`, with the files taken
away.

Idea: a world that counts. It keeps a receipt of every effect, can be asked for one, and can be wound back. It
asks the ledger nothing. With `remembers_keys` it is an effect system that knows an idempotency key when it
sees it again, and then leaves the world alone.

Always true:
  CW1. One receipt for each effect, numbered from 1; a key that is remembered adds none.
  CW2. The output of an execution is the same every time, so that no answer tells two runs apart.
  CW3. Its look-up only reads.

Not here: what the marker files are (`run.effects`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from codeai_lab.canonical import digest
from codeai_lab.decide.witnesses import Receipt
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import LineAdapter, MarkerWorld, WorldLookup
from codeai_lab.run.reconciling import EffectLookup


class World(Protocol):
    """What carries out effects and keeps receipts of them."""

    def execute(self, request: ActionRequest) -> Any:
        """Do it once and give an output that has a JSON form."""
        ...

    def receipts(self) -> tuple[Receipt, ...]:
        """Give what the world kept, in order."""
        ...


class EffectSystem(World, EffectLookup, Protocol):
    """A world that can be asked, besides, what became of a request."""


class CountedWorld:
    """A world in memory: adapter, effect system and its look-up in one."""

    def __init__(self, *, remembers_keys: bool = False) -> None:
        self.remembers_keys = remembers_keys
        self._receipts: tuple[Receipt, ...] = ()
        self._keys: frozenset[str] = frozenset()

    def execute(self, request: ActionRequest) -> dict[str, Any]:
        """Let the effect happen, unless its key is remembered."""
        if self.remembers_keys and request.idempotency_key in self._keys:
            return {"done": True}
        number = len(self._receipts) + 1
        receipt = Receipt(
            n=number,
            action_id=request.action_id,
            marker=f"{number:04d}",
            effect=digest({"instruction": request.instruction, "payload": dict(request.payload)}),
        )
        self._receipts += (receipt,)
        self._keys |= {request.idempotency_key}
        return {"done": True}

    def receipts(self) -> tuple[Receipt, ...]:
        """Give what the world kept, in order."""
        return self._receipts

    def find(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Give references to the effects of a recorded request; () when there are none."""
        return tuple({"receipt": one.n} for one in self._receipts if one.action_id == request["action_id"])

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether a reference leads to an effect that is there."""
        return reference.get("receipt") in {one.n for one in self._receipts}

    def snapshot(self) -> tuple[tuple[Receipt, ...], frozenset[str]]:
        """Give all that it holds, to come back to with `restore`."""
        return self._receipts, self._keys

    def restore(self, snapshot: tuple[tuple[Receipt, ...], frozenset[str]]) -> None:
        """Wind the world to a snapshot."""
        self._receipts, self._keys = snapshot

    def __repr__(self) -> str:
        return f"CountedWorld(effects={len(self._receipts)})"


class FolderWorld:
    """The same on disk, marker files and their receipts: for a schedule or a crash that is for real."""

    def __init__(self, folder: Path) -> None:
        self._markers = MarkerWorld(folder)
        self._lookup = WorldLookup(self._markers)
        self.execute = LineAdapter(self._markers).execute
        self.receipts = self._markers.receipts
        self.find = self._lookup.find
        self.resolve = self._lookup.resolve
