"""How is a copy of a bundle changed so that only the intended thing is wrong with it?

Idea: a copy's ledger is a list of events that can be changed and written back with a fresh chain, its
documents are plain values, and `seal` makes every digest inside good again. What is left to find is what was
meant.

Always true:
  CP1. Writing a ledger back unchanged gives the same bytes.
  CP2. With `rechain` the events are numbered and chained anew; without it they are written as they are.
  CP3. What holds more than files, folders and links is refused before anything of it is copied.

Not here: which changes there are (`prove.corruptions`, `prove.forgeries`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.canonical import encoded
from codeai_lab.errors import BundleError
from codeai_lab.prove.bundle import seal

Event = dict[str, Any]
Change = Callable[["Copy"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """One named way of damaging a bundle.

    Args:
        code: the code of the finding that must name it; for an `outside` kind the one that --expect gives.
        needs: what a bundle must have for it, said when it does not apply.
    """

    name: str
    summary: str
    code: str
    apply: Change
    outside: bool
    needs: str


def kinds_in(kinds: list[Corruption]) -> Callable[..., Callable[[Change], Change]]:
    """Give a decorator that files a function among `kinds`, named after it and summed up by its docstring."""

    def kind(
        *, code: str, needs: str = "it lacks what would be damaged", outside: bool = False
    ) -> Callable[[Change], Change]:
        def file(apply: Change) -> Change:
            kinds.append(
                Corruption(
                    name=apply.__name__.replace("_", "-"),
                    summary=str(apply.__doc__).removesuffix("."),
                    code=code,
                    apply=apply,
                    outside=outside,
                    needs=needs,
                )
            )
            return apply

        return file

    return kind


class Copy:
    """A copy of a bundle, to be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / "data" / "ledger.jsonl"
        self.world = folder / "data" / "world"

    def lines(self) -> list[bytes]:
        """Give the ledger's raw lines, line 0 first, each with its newline."""
        return self.ledger.read_bytes().splitlines(keepends=True)

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write raw lines and nothing else: no chain, no digests."""
        self.ledger.write_bytes(b"".join(lines))

    def events(self) -> list[Event]:
        """Give the ledger's events, parsed, without line 0."""
        return [json.loads(line) for line in self.lines()[1:]]

    def write_events(self, events: Sequence[Event], *, rechain: bool = True) -> None:
        """Write events back after line 0; with `rechain`, numbered and chained anew."""
        created = self.lines()[0]
        prev = hashlib.sha256(created[:-1]).hexdigest()
        lines = [created]
        for number, event in enumerate(events, start=1):
            fields = {**event, "seq": number, "prev": prev} if rechain else event
            raw = encoded(fields)
            prev = hashlib.sha256(raw).hexdigest()
            lines.append(raw + b"\n")
        self.write_lines(lines)

    def document(self, name: str) -> Any:
        """Give protocol, results or environment, parsed."""
        return json.loads((self.folder / "data" / f"{name}.json").read_bytes())

    def write_document(self, name: str, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        (self.folder / "data" / f"{name}.json").write_bytes(text.encode())

    def seal(self) -> None:
        """Make every digest inside good again."""
        seal(self.folder)


def require_copyable(bundle: Path) -> None:
    """Raise BundleError (definite) where a folder holds a pipe, a socket or a device, or cannot be read."""
    try:
        for path in _all_in(bundle):
            if not (path.is_symlink() or path.is_dir() or path.is_file()):
                raise BundleError(
                    f"{bundle.name} cannot be copied: {path.name} in it is no file, no folder and no link."
                )
            if path.is_file() and not path.is_symlink():
                path.open("rb").close()
    except OSError as error:
        raise BundleError(f"{bundle.name} cannot be copied: {error.strerror}.") from None


def without(events: Sequence[Event], *gone: Event) -> list[Event]:
    """Leave events out and number the batches that they stood in anew."""
    seqs = {event["seq"] for event in gone}
    batch_of: dict[int, list[Event]] = {}
    for event in events:
        batch_of.setdefault(event["seq"] - event["batch"][0], []).append(event)
    kept = []
    for batch in batch_of.values():
        left = [event for event in batch if event["seq"] not in seqs]
        kept += [{**event, "batch": [place, len(left)]} for place, event in enumerate(left, start=1)]
    return kept


def _all_in(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _all_in(path)
