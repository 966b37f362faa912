"""What may anyone ask of a ledger?

Chapter: 004, notes on the ledger's append; design of the conditional append: the claim is this one check.

Idea: append and read, nothing else: no update, no delete. An append may be conditional: *only if nothing
new has come for this key since I looked*. Claims rest on that comparison; there is no second lock.

Always true:
  S1. The events of one append are recorded together or not at all, with adjacent seqs, from 1 without gaps.
  S2. A conditional append whose key or stream has moved records nothing and returns nothing.
  S3. An event id is recorded once in a ledger's whole life.
  S4. What a caller does to a draft later changes nothing that is recorded.

What is handed out is to be read: a payload is shared with the ledger's memory, and to change one takes a copy
(`canonical.plain`). A copy of each event that is handed out was measured at 8 to 11 % of the work of a fresh
action and 18 to 38 % of that of a replay, and a frozen view protects the first level only. What is on file is
never reached by this: journal and index hold the lines that were written.

Not here: `MemoryLedger` (`store.memory`) and `DuckDBLedger` (`store.ledger`), which one contract test holds
to this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from codeai_lab.records import Event, EventDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """A condition: the newest event of this key, or stream, still has `last_seq` (0: there is none)."""

    last_seq: int
    key: str | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        if (self.key is None) == (self.stream is None):
            raise ValueError("a condition names a key or a stream, and only one of them")

    @property
    def subject(self) -> tuple[str, str]:
        """Whose newest event is meant: ("key", its name) or ("stream", its name)."""
        return ("stream", str(self.stream)) if self.key is None else ("key", self.key)


class Ledger(Protocol):
    """Append and read."""

    @property
    def ledger_id(self) -> str:
        """The name that the ledger was given when it was created."""
        ...

    @property
    def live_actions(self) -> set[str]:
        """The event ids of the requests whose walk is alive in this process; not durable."""
        ...

    def append(self, *drafts: EventDraft, unless_changed: Sequence[Unchanged] = ()) -> tuple[Event, ...]:
        """Record events together and durably, and give them with their seqs; give () when a condition failed.

        Raises: RefusedValueError (definite) for an event id that is recorded already and for a value that no
            line takes; ValueError for no drafts at all.
        """
        ...

    def read(self, stream_id: str) -> tuple[Event, ...]:
        """Give the events of one stream in order of seq."""
        ...

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        """Give the events that carry a key in order of seq."""
        ...

    def read_all(self) -> Iterator[Event]:
        """Give every event in order of seq."""
        ...
