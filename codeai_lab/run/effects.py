"""What is an effect, when nothing here may touch the real world?

Chapter: 004, "The line that may already be there": an adapter appends a line, and something goes wrong around
it.

Idea: a small honest world. An effect writes a marker file, and the world itself keeps a receipt of it;
neither asks the ledger. The adapters around it fail in the ways that matter: before the effect, after it, or
with the reply lost.

    world/markers/0001.txt      the effect
    world/receipts.jsonl        what the world itself kept of it: number, action, marker, digest

Always true:
  F1. Every effect leaves one marker and one receipt, also when the adapter raises afterwards.
  F2. The adapter's own count (`effects`) is kept in memory, apart from both; it is the producer's summary.
  F3. No marker is ever written over.
  F4. Whenever a process dies in the middle of an effect, the marker and its receipt are both there for a
      reader, or
      neither: the receipt is written first, and the marker appears under its name whole, in one step.

Not here: recording anything in the ledger (`run.stages`).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.witnesses import Receipt, receipt_from_json
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, CallRequest


class MarkerWorld:
    """A folder in which effects leave markers and receipts; made empty where it is missing.

    Raises: RefusedRequestError (definite) for a file, and for a folder that cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._markers = folder / "markers"
        self._receipts = folder / "receipts.jsonl"
        self._one_at_a_time = threading.Lock()
        if folder.exists() and not folder.is_dir():
            raise RefusedRequestError(f"{folder.name} is a file; a world needs a folder.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._receipts.touch()
        except OSError as error:
            raise RefusedRequestError(
                f"{folder.name} cannot be a world ({error.strerror}); name a folder that can be written to."
            ) from error

    def append_line(self, action_id: str, line: str) -> Receipt:
        """Let the effect happen: one marker that holds the line, and the world's receipt of it (F4)."""
        content = f"{line}\n".encode()
        with self._one_at_a_time:  # threads may race for a key; the world numbers what really happened
            self._markers.mkdir(exist_ok=True)
            number = len(list(self._markers.iterdir())) + 1
            marker = self._markers / f"{number:04d}.txt"
            receipt = Receipt(
                n=number,
                action_id=action_id,
                marker=marker.name,
                effect=hashlib.sha256(content).hexdigest(),
            )
            said = {name: getattr(receipt, name) for name in Receipt.__slots__}
            self._forget_what_did_not_happen()
            if marker.exists():
                raise FileExistsError(f"there is a marker called {marker.name} already")
            draft = self.folder / "draft"
            draft.unlink(missing_ok=True)  # one that was left behind may be another name of the last marker
            draft.write_bytes(content)
            with self._receipts.open("ab") as file:
                file.write(canonical_bytes(said) + b"\n")
            os.link(draft, marker)  # the effect: from here on it is there, whole, and its receipt is too
            draft.unlink()
        return receipt

    def receipts(self) -> tuple[Receipt, ...]:
        """Give what the world kept, in order, without a last receipt whose effect never came about (F4)."""
        lines = self._receipts.read_bytes().splitlines()
        kept = tuple(receipt_from_json(json.loads(line)) for line in lines)
        return kept[:-1] if kept and not (self._markers / kept[-1].marker).exists() else kept

    def marker_count(self) -> int:
        """Count the marker files."""
        return len(list(self._markers.iterdir())) if self._markers.exists() else 0

    def _forget_what_did_not_happen(self) -> None:
        lines = self._receipts.read_bytes().splitlines(keepends=True)
        if len(self.receipts()) < len(lines):
            with self._receipts.open("r+b") as file:
                file.truncate(sum(map(len, lines[:-1])))


class LineAdapter:
    """Appends the line that the request's payload names, then does what it was told to do next.

    Args:
        world: where the effect happens.
        before: called before the effect; may raise, so that nothing happens.
        after: called after the effect; may raise, so that the effect is there and the reply is not.
    """

    def __init__(
        self,
        world: MarkerWorld,
        *,
        before: Callable[[], object] | None = None,
        after: Callable[[], object] | None = None,
    ) -> None:
        self.calls = 0
        self.effects = 0
        self._world = world
        self._before = before
        self._after = after

    def execute(self, request: ActionRequest) -> dict[str, Any]:
        self.calls += 1
        if self._before is not None:
            self._before()
        receipt = self._world.append_line(
            request.action_id, str(request.payload.get("line", request.instruction))
        )
        self.effects += 1
        if self._after is not None:
            self._after()
        return {"marker": receipt.marker}


def raising(error: BaseException) -> Callable[[], None]:
    """Give what raises this error when called; hand it to an adapter as `before` or `after`."""

    def act() -> None:
        raise error

    return act


def lost_acknowledgement() -> Callable[[], None]:
    """Give what a caller sees when the effect happened and its reply did not come: a timeout."""
    return raising(TimeoutError("no acknowledgement came back"))


class MovableState:
    """A state of the world that a lesson moves by hand: `state-A`, `state-B`, and back."""

    def __init__(self, state: str) -> None:
        self.state = state

    def move(self, state: str) -> None:
        self.state = state

    def read(self) -> str:
        return self.state


class CountingProvider:
    """Answers every model call with its prompt's length, and counts how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def respond(self, call: CallRequest) -> dict[str, Any]:
        self.calls += 1
        return {"text": f"a response to {len(call.prompt)} characters"}


class WorldLookup:
    """The reading side of a marker world: what reconciling asks."""

    def __init__(self, world: MarkerWorld) -> None:
        self._world = world

    def find(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Give the receipts of a recorded request; the world keeps one of every effect: () is certain."""
        return tuple(
            {"receipt": receipt.n, "marker": receipt.marker, "effect": receipt.effect}
            for receipt in self._world.receipts()
            if receipt.action_id == request["action_id"]
        )

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether the marker is there and is what the receipt says."""
        marker = self._world.folder / "markers" / str(reference["marker"])
        if not marker.is_file():
            return False
        return bool(hashlib.sha256(marker.read_bytes()).hexdigest() == reference["effect"])


class StaleFenceError(Exception):
    """The effect system has seen a higher fencing number for this key; nothing was done."""


class FencedLineAdapter(LineAdapter):
    """An effect that checks the fencing number and turns away a walk that was taken for dead.

    `fences` is the effect system's own memory, the highest number seen for each key; share it.
    """

    def __init__(
        self, world: MarkerWorld, fences: dict[str, int], *, before: Callable[[], object] | None = None
    ) -> None:
        super().__init__(world, before=before)
        self._fences = fences

    def execute_fenced(self, request: ActionRequest, *, fence: int) -> dict[str, Any]:
        if fence < self._fences.get(request.idempotency_key, 0):
            self.calls += 1
            raise StaleFenceError("a newer claim on this key has been seen")
        self._fences[request.idempotency_key] = fence
        return self.execute(request)
