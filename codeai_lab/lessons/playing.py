"""What really happens when a case is played?

Chapter: 004, "Do this now": run it, count it, reopen it.

Idea: every case gets a runtime under one rule set, one shared ledger in a real file, and a world of its own.
What the caller was told, what the ledger holds, what the world kept and what the producer counted are brought
into one row.

Always true:
  Y1. Ids, clock and the ledger's name are the same on every play, and so are the journal's bytes; only in a
      case that is marked `threads` the order of the lines is nobody's promise.
  Y2. A row is computed from ledger and world; the producer's count is only shown beside them.
  Y3. An exception that reaches the caller is caught here, by its type's name, KeyboardInterrupt included.

Not here: the cases (`lessons.retry_effects` and its neighbours).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.clock import Clock, ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.decide.identity import (
    differing_dimensions,
    recorded_action_fingerprint,
)
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.cases import PERMITTED, Ask, AskCall, Case, Lesson
from codeai_lab.lessons.rows import row_of
from codeai_lab.records import ActionRequest, CallRequest, Event
from codeai_lab.run.effects import CountingProvider, LineAdapter, MarkerWorld, MovableState, raising
from codeai_lab.run.revisions import Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.walk import Walk
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.protocol import Ledger

FROZEN_AT_US = 1_789_344_000_000_000  # 2026-09-14, the day on which the chapter's protocol was frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A lesson that was played under one rule set, and where its ledger and its worlds lie."""

    lesson: Lesson
    revision: Revision
    rows: tuple[dict[str, Any], ...]
    events: tuple[Event, ...]
    journal: Path
    world: Path


def play(
    lesson: Lesson,
    revision: Revision,
    folder: Path,
    *,
    only: Sequence[str] = (),
    evidence_label: str = "demo",
    progress: Callable[[str], None] | None = None,
) -> Played:
    """Play a lesson's cases, all or `only` some, under one rule set.

    Args:
        folder: where ledger and worlds are made; must be empty or missing.
        progress: is told the name of each case before it is played.

    Raises: RefusedRequestError for an unknown case or a folder in use.
    """
    cases = chosen(lesson, only)
    if folder.exists() and any(folder.iterdir()):
        raise RefusedRequestError(f"The folder {folder.name} is not empty; a play needs an empty one.")
    folder.mkdir(parents=True, exist_ok=True)
    clock = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000)
    rows = []
    path = folder / "lab.duckdb"
    ledger = DuckDBLedger(path, ledger_id=lesson.ledger_id(revision.name), clock=clock)
    try:
        for case in cases:
            if progress is not None:
                progress(case.name)
            # Threads share no clock that ticks: for them all of it happens at one instant.
            own = ManualClock(start_us=clock.now_us()) if "threads" in case.marked else clock
            world = folder / "world" / case.name
            table = Table(lesson.name, case.name, revision, ledger, own, world, path=path)
            try:
                (case.script or ask_in_order)(table, case)
            finally:
                ledger = table.reopened or ledger
            rows.append(table.row(evidence_label))
        events = tuple(ledger.read_all())
        journal = ledger.journal
    finally:
        ledger.close()
    return Played(
        lesson=lesson,
        revision=revision,
        rows=tuple(rows),
        events=events,
        journal=journal,
        world=folder / "world",
    )


def chosen(lesson: Lesson, only: Sequence[str]) -> tuple[Case, ...]:
    """Give the cases that are named, in the lesson's order; all when none is named.

    Raises: RefusedRequestError naming those that there are.
    """
    known = [case.name for case in lesson.cases]
    for name in only:
        if name not in known:
            raise RefusedRequestError(f"{lesson.name} has no case {name}; it has: {', '.join(known)}.")
    return tuple(case for case in lesson.cases if not only or case.name in only)


def ask_in_order(table: Table, case: Case) -> None:
    """Play a case as most are played: one request after the other, each to its end."""
    for ask in case.asks:
        table.ask(ask)


class Table:
    """One case on the table: a runtime under one rule set, a world, and what the caller was told so far.

    Args:
        path: the ledger's file, where it has one.
        ids, actor_id: for what this table records; another process at the same case takes others.
    """

    def __init__(
        self,
        lesson: str,
        case: str,
        revision: Revision,
        ledger: Ledger,
        clock: Clock,
        folder: Path,
        *,
        path: Path | None = None,
        ids: str | None = None,
        actor_id: str = "lesson",
    ) -> None:
        self.case = case
        self.revision = revision
        self.world = MarkerWorld(folder)
        self.provider = CountingProvider()
        self.effects_counted = 0
        self.raised: dict[str, str] = {}
        self.notes: list[str] = []
        self.reopened: DuckDBLedger | None = None
        self._run_id = f"{lesson}/{case}"
        self.clock = clock
        self._path = path
        self._counting = threading.Lock()
        self._state = MovableState("state-A")
        self._unpermitted: set[str] = set()
        self._new_id = counted_ids(ids or case)
        self._actor_id = actor_id
        self._sit_at(ledger)

    def ask(self, ask: Ask | AskCall) -> None:
        """Ask once, as a caller would, and remember what came of it."""
        with self.hearing(ask):
            if isinstance(ask, AskCall):
                self.runtime.invoke_recorded_call(call_of(ask), provider=self.provider)
            else:
                self.walk(ask).run()

    @contextmanager
    def hearing(self, ask: Ask | AskCall) -> Iterator[None]:
        """Catch what reaches the caller of an ask, and remember it by its type's name (Y3)."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            self.raised[ask.id] = type(error).__name__

    def walk(self, ask: Ask, *, before: Callable[[], object] | None = None) -> Walk:
        """Give the walk of an ask, standing before its first stage.

        Args:
            before: called inside the adapter, before its effect.
        """
        if ask.world is not None:
            self._state.move(ask.world)
        if not ask.permitted:
            self._unpermitted.add(ask.id)
        return self.runtime.walk(
            request_of(ask),
            authority=Authority.of(PERMITTED) if ask.permitted else NO_AUTHORITY,
            adapter=LineAdapter(self.world, before=before, after=lambda: self._after_effect(ask)),
            read_state=None if ask.blind else self._state.read,
        )

    @contextmanager
    def away(self) -> Iterator[Path]:
        """Close the ledger, give its file to somebody else, and open it again afterwards.

        Raises: ValueError for a ledger without a file.
        """
        if self._path is None or not isinstance(self.ledger, DuckDBLedger):
            raise ValueError("only a ledger in a file can be closed and opened again")
        self.ledger.close()
        yield self._path
        self.reopened = DuckDBLedger(self._path)
        self._sit_at(self.reopened)

    def events(self) -> tuple[Event, ...]:
        """Give the events of this case."""
        return tuple(event for event in self.ledger.read_all() if event.run_id == self._run_id)

    def row(self, evidence_label: str) -> dict[str, Any]:
        """Bring the three witnesses of this case into a row."""
        row = row_of(
            self.events(),
            self.world.receipts(),
            summary=self.effects_counted,
            case=self.case,
            revision=self.revision.name,
            raised=self.raised,
            evidence_label=evidence_label,
        )
        row["notes"] += [*self._what_replay_passed_over(self.events()), *self.notes]
        return row

    def _sit_at(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.runtime = Runtime(
            ledger,
            rules=self.revision,
            clock=self.clock,
            new_id=self._new_id,
            run_id=self._run_id,
            actor_id=self._actor_id,
        )

    def _after_effect(self, ask: Ask) -> None:
        with self._counting:
            self.effects_counted += 1
        if ask.moves is not None:
            self._state.move(ask.moves)
        if ask.raises is not None:
            raising(ask.raises("the connection was lost after the effect"))()

    def _what_replay_passed_over(self, events: Sequence[Event]) -> list[str]:
        """Name the replays that answered another operation, or a caller without authority."""
        requests = {event.stream_id: event for event in events if event.kind == "action.requested"}
        notes = []
        for event in events:
            original = event.payload.get("reused_from_action_id")
            if event.kind != "action.completed" or original is None:
                continue
            asked = recorded_action_fingerprint(requests[event.stream_id].payload)
            held = recorded_action_fingerprint(requests[original].payload)
            if dimensions := differing_dimensions(held, asked):
                notes.append(
                    f"{event.stream_id} was answered from another operation: {', '.join(dimensions)}"
                )
            if event.stream_id in self._unpermitted:
                notes.append(f"{event.stream_id} was answered without authority")
        return notes


def request_of(ask: Ask) -> ActionRequest:
    """Give the action request that an ask stands for."""
    return ActionRequest(
        action_id=ask.id,
        idempotency_key=ask.key,
        capability=PERMITTED,
        instruction=ask.instruction,
        payload={"line": ask.line},
        precondition=ask.precondition,
        performer="lesson-agent",
    )


def call_of(ask: AskCall) -> CallRequest:
    """Give the call request that an ask stands for."""
    return CallRequest(
        call_id=ask.id,
        idempotency_key=ask.key,
        prompt=ask.prompt,
        chamber="reading-room",
        requested_model="model-small",
        context={"chapter": 22},
    )
