"""What is a ledger, with everything about files taken away?

Chapter: 004, every example of it: small enough to hold in the head.

Idea: a list, a lock, and the one check. This is the specification; `DuckDBLedger` must behave the same, and
explorers use this one, because it can be wound back.

Always true: S1 to S4 of `store.protocol`, held by the same contract test as the file ledger.

Not here: durability; this ledger dies with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from codeai_lab.errors import RefusedValueError
from codeai_lab.records import Event, EventDraft
from codeai_lab.store.lines import encode_batch, place
from codeai_lab.store.protocol import Unchanged


class MemoryLedger:
    """A ledger as a list of events."""

    def __init__(self, *, ledger_id: str = "memory") -> None:
        self.ledger_id = ledger_id
        self.live_actions: set[str] = set()
        self._events: list[Event] = []
        self._guard = threading.Lock()

    def append(self, *drafts: EventDraft, unless_changed: Sequence[Unchanged] = ()) -> tuple[Event, ...]:
        """Record events together; give () when a key or stream has moved.

        Raises: RefusedValueError (definite) for what the file ledger refuses too.
        """
        if not drafts:
            raise ValueError("an append records at least one event")
        with self._guard:
            if any(self._moved(condition) for condition in unless_changed):
                return ()
            known = {event.event_id for event in self._events}
            ids = [draft.event_id for draft in drafts]
            if len(set(ids)) < len(ids) or not known.isdisjoint(ids):
                raise RefusedValueError("event_id", "this event id is recorded already")
            events = place(drafts, after_seq=len(self._events))
            encode_batch(events, prev="")  # refuses what has no line, such as a payload that is too large
            self._events.extend(events)
            return events

    def read(self, stream_id: str) -> tuple[Event, ...]:
        """Give the events of one stream in order of seq."""
        return tuple(self._history("stream", stream_id))

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        """Give the events that carry a key in order of seq."""
        return tuple(self._history("key", idempotency_key))

    def read_all(self) -> Iterator[Event]:
        """Give every event in order of seq."""
        return iter(tuple(self._events))

    def snapshot(self) -> tuple[Event, ...]:
        """Give all events, to come back to with `restore`."""
        return tuple(self._events)

    def restore(self, snapshot: tuple[Event, ...]) -> None:
        """Wind the ledger to a snapshot; walks that were alive are not."""
        with self._guard:
            self._events = list(snapshot)
            self.live_actions.clear()

    def __repr__(self) -> str:
        return f"MemoryLedger({self.ledger_id!r}, events={len(self._events)})"

    def _history(self, by: str, name: str) -> list[Event]:
        column = "idempotency_key" if by == "key" else "stream_id"
        return [event for event in self._events if getattr(event, column) == name]

    def _moved(self, condition: Unchanged) -> bool:
        history = self._history(*condition.subject)
        return (history[-1].seq if history else 0) != condition.last_seq
