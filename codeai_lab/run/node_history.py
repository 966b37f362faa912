"""What has been tried for one node of a plan, and how is the next step put on record?

Chapter: 003, "Retry only operations that can be repeated safely": a bound that a restart forgets is no bound.

Idea: a node has a stream of its own. What failed there, what was decided about it and what was tried next is
read back from the stream, and every append says how far the writer had read.

Always true:
  NH1. The failures of a node are a function of its events: a new process counts on where the last one was.
  NH2. An event is recorded only if the stream is as this history left it, and names the one before as its
      cause.

Not here: the loop (`run.repairing`), the counting (`decide.repair`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codeai_lab.canonical import plain
from codeai_lab.decide.repair import ErrorKind, Failure
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import Event, EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.store.protocol import Unchanged

FAILED = ("node.call_failed", "repair.refused")
ENDS = ("node.answered", "node.unresolved")
REOPENED = "discovery.reopened"


class NodeHistory:
    """The stream of one node as it was read and written by one worker."""

    def __init__(self, bench: Bench, node: str) -> None:
        self._bench = bench
        self.node = node
        self.events = bench.ledger.read(node)

    @property
    def newest(self) -> Event | None:
        return self.events[-1] if self.events else None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Everything that failed so far, refused proposals among it."""
        return failures_of(self.events)

    @property
    def newest_failure(self) -> Mapping[str, Any]:
        """What is recorded about the newest failure."""
        return next(event.payload for event in reversed(self.events) if event.kind in FAILED)

    def due(self, first: Mapping[str, Any]) -> dict[str, Any]:
        """Give the arguments of the call that is due; `first` begins a search."""
        newest = self.newest
        due = first if newest is None or newest.kind == REOPENED else newest.payload["arguments"]
        arguments: dict[str, Any] = plain(dict(due), "arguments")
        return arguments

    def how(self) -> str:
        """Say what it took: first_attempt, retried, repaired, or reopened and then at the first attempt."""
        kinds = [event.kind for event in self.events]
        since = kinds[max((place for place, kind in enumerate(kinds) if kind == REOPENED), default=0) :]
        for kind, word in _WORDS.items():
            if kind in since:
                return word
        return "first_attempt"

    def record(self, *parts: tuple[str, Mapping[str, Any]]) -> Event:
        """Append events together and give the last one.

        Raises: RefusedRequestError (definite) when somebody else was in the stream.
        """
        last_seq = self.newest.seq if self.newest else 0
        cause = self.newest.event_id if self.newest else None
        drafts: list[EventDraft] = []
        for kind, payload in parts:
            said = {"node": self.node, **payload}
            drafts.append(self._bench.draft(self.node, kind, said, cause=cause))
            cause = drafts[-1].event_id
        recorded = self._bench.ledger.append(
            *drafts, unless_changed=[Unchanged(stream=self.node, last_seq=last_seq)]
        )
        if not recorded:
            raise RefusedRequestError("Somebody else works on this node; read its history and go on there.")
        self.events = (*self.events, *recorded)
        return recorded[-1]


def failures_of(events: Sequence[Event]) -> tuple[Failure, ...]:
    """Read the failures of a node from its events, oldest first."""
    return tuple(
        Failure(kind=ErrorKind(event.payload["error_kind"]), call=event.payload["call"])
        for event in events
        if event.kind in FAILED
    )


_WORDS = {"repair.attempted": "repaired", "retry.attempted": "retried", REOPENED: "reopened"}
