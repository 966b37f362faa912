"""When are two moments of a race the same?

Chapter: 004, "Two threads, one key, two effects".

Idea: a moment is everything that the rest of a race depends on: the events, who is alive, the world, and what
each walk knows. Nothing in it changes, so one can go on from it as often as one likes. Two moments that
differ in names only (ids, digests, which of two equal submissions is which) go on alike, and a search needs
to look at one of them.

    moment --walk 0 moves--> moment
           --walk 1 moves--> moment

Always true:
  MO1. Moving one walk changes no moment; it gives another.
  MO2. Moments with the same likeness have the same ends, in the same number, up to the numbering of the
       walks. An event stands in a likeness by its seq, kind and payload, ids replaced by seqs, so that each
       event belongs to one walk and the walks can be sorted.
  MO3. What has no known likeness is refused, never passed over: a fact that is new to this module cannot
       make two different moments look the same.

Not here: searching (`explore.schedules`).
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.witnesses import Receipt
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.protocols import Composed
from codeai_lab.explore.worlds import World
from codeai_lab.records import ActionRequest, Event
from codeai_lab.run.facts import Facts
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.walk import Walk
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

_T = TypeVar("_T")

PERMITTED = "file.append"
MOST_SUBMISSIONS = 4
# The same for all submissions of a race but for its ids, or without influence on where a walk goes.
_SAME_FOR_ALL = {"request", "authority", "adapter", "read_state", "wait", "fingerprint", "requested"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One moment of a race.

    Args:
        alive: the event ids of the requests whose walks are registered.
        stands: for each walk, where it stands and what it knows, without names.
    """

    events: tuple[Event, ...]
    alive: frozenset[str]
    world: tuple[tuple[Receipt, ...], frozenset[str]]
    walks: tuple[Walk, ...]
    stands: tuple[Hashable, ...]

    @property
    def effects(self) -> int:
        return len(self.world[0])

    @property
    def answers(self) -> tuple[str | None, ...]:
        """What each walk's caller was told; None while it is under way."""
        return tuple(told(walk) if walk.is_over else None for walk in self.walks)


class Race:
    """Submissions of one key under one rule set, on a ledger and a world that can be wound back."""

    def __init__(self, rules: Composed, submissions: int) -> None:
        if not 1 <= submissions <= MOST_SUBMISSIONS:
            raise RefusedRequestError(f"A race has 1 to {MOST_SUBMISSIONS} submissions.")
        self.rules = rules
        self.ledger = MemoryLedger(ledger_id="race")
        self.world = rules.new_world()
        self.runtime = runtime_of(rules, self.ledger)
        # Kept, because a walk that is dropped is no longer alive, and moments hold copies of these.
        self._walks = tuple(submit(self.runtime, f"r{n}", self.world) for n in range(submissions))
        self._names = tuple(walk.facts.request.action_id for walk in self._walks)
        self._numbers: dict[Hashable, int] = {}
        self._events: dict[str, Hashable] = {}

    def start(self) -> Moment:
        """Give the moment at which nobody has moved."""
        return Moment(
            events=(),
            alive=frozenset(),
            world=self.rules.new_world().snapshot(),
            walks=self._walks,
            stands=tuple(_stand(walk, ()) for walk in self._walks),
        )

    def after(self, moment: Moment, number: int) -> Moment:
        """Give the moment that follows when one walk takes one step."""
        self.go_to(moment)
        walk = copy.copy(moment.walks[number])
        move(self.rules, walk)
        events = self.ledger.snapshot()
        return Moment(
            events=events,
            alive=frozenset(self.ledger.live_actions),
            world=self.world.snapshot(),
            walks=_with(moment.walks, number, walk),
            stands=_with(moment.stands, number, _stand(walk, events)),
        )

    def can_move(self, moment: Moment) -> tuple[int, ...]:
        """Give the numbers of the walks that are neither over nor made to wait."""
        if self.rules.waits:
            self.go_to(moment)
        return movable(self.rules, self.ledger, moment.walks)

    def go_to(self, moment: Moment) -> None:
        """Wind ledger and world to a moment."""
        self.ledger.restore(moment.events)
        self.ledger.live_actions.update(moment.alive)
        self.world.restore(moment.world)

    def likeness(self, moment: Moment) -> tuple[Hashable, tuple[int, ...]]:
        """Give what this moment has in common with all that go on alike, and the walks in its order (MO2)."""
        own: dict[str, list[Hashable]] = {name: [] for name in self._names}
        for event in moment.events:
            own[event.stream_id].append(self._event(event, moment.events))
        numbered = []
        for number, walk in enumerate(moment.walks):
            requested = walk.facts.requested
            known = (moment.stands[number], requested.event_id in moment.alive, *own[requested.stream_id])
            # Small numbers in place of what they stand for: quick to sort and to compare.
            numbered.append((self._numbers.setdefault(known, len(self._numbers)), number))
        numbered.sort()
        return (
            (tuple(known for known, _ in numbered), moment.effects, len(moment.world[1])),
            tuple(number for _, number in numbered),
        )

    def _event(self, event: Event, among: Sequence[Event]) -> Hashable:
        if event.event_id not in self._events:
            # Requests differ in nothing but their names; what other events say may point at one.
            said = None if event.kind == "action.requested" else like(event.payload, _starts(among))
            self._events[event.event_id] = (event.seq, event.kind, said)
        return self._events[event.event_id]


_VARYING = tuple(one.name for one in fields(Facts) if one.name not in _SAME_FOR_ALL)


def like(value: Any, starts: Mapping[str, int]) -> Hashable:
    """Give a value without names: an event is its seq, an action's id the seq at which it begins.

    Raises: TypeError for what is not known here (MO3).
    """
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return starts.get(value, value)
    if isinstance(value, Event):
        return ("event", value.seq)
    if isinstance(value, tuple | list):
        return tuple([like(item, starts) for item in value])
    if isinstance(value, dict):
        return tuple([(name, like(item, starts)) for name, item in sorted(value.items())])
    if is_dataclass(value):
        return tuple([like(getattr(value, one.name), starts) for one in fields(value)])
    raise TypeError(f"{type(value).__name__} has no likeness")


def _stand(walk: Walk, events: Sequence[Event]) -> Hashable:
    """Give where a walk stands and what it knows; of one that is over, what its caller was told."""
    if walk.is_over:
        return told(walk)
    starts = _starts(events)
    return (walk.position, *[like(getattr(walk.facts, name), starts) for name in _VARYING])


def _starts(events: Sequence[Event]) -> dict[str, int]:
    """Give the seq at which each action begins."""
    return {event.stream_id: event.seq for event in reversed(events)}


def _with(items: tuple[_T, ...], number: int, item: _T) -> tuple[_T, ...]:
    return (*items[:number], item, *items[number + 1 :])


def movable(rules: Composed, ledger: Ledger, walks: Sequence[Walk]) -> tuple[int, ...]:
    """Give the numbers of the walks that are neither over nor made to wait, on the ledger as it is now."""
    return tuple(
        number
        for number, walk in enumerate(walks)
        if not walk.is_over and not _must_wait(rules, ledger, walk)
    )


def _must_wait(rules: Composed, ledger: Ledger, walk: Walk) -> bool:
    must_wait = rules.waits.get(str(walk.next_stage))
    return must_wait is not None and must_wait(ledger, walk.facts)


def move(rules: Composed, walk: Walk) -> str:
    """Let a walk take its next step, pass by what it has nothing to do at, and give the step's name."""
    stage = walk.step()
    while rules.passes and not walk.is_over and _has_nothing_to_do(rules, walk):
        walk.step()
    return stage


def _has_nothing_to_do(rules: Composed, walk: Walk) -> bool:
    passes = rules.passes.get(str(walk.next_stage))
    return passes is not None and passes(walk.facts)


def told(walk: Walk) -> str:
    """Say in one word what the caller of a walk that is over was told."""
    try:
        result = walk.result
    except Exception as error:
        return type(error).__name__
    return str(result.status) if result.reused_from_action_id is None else "replayed"


def runtime_of(rules: Composed, ledger: Ledger, *, name: str = "race") -> Runtime:
    """Give a runtime under a rule set whose ids and time are the same on every run."""
    return Runtime(
        ledger,
        rules=rules.revision,
        clock=ManualClock(),
        new_id=counted_ids(name),
        run_id=name,
        actor_id="explorer",
    )


def submit(runtime: Runtime, action_id: str, world: World, *, key: str = "key") -> Walk:
    """Give the walk of one more submission of the one operation that explorers submit."""
    request = ActionRequest(
        action_id=action_id,
        idempotency_key=key,
        capability=PERMITTED,
        instruction="append one line to the file",
        payload={"line": "one line"},
    )
    return runtime.walk(request, authority=Authority.of(PERMITTED, RECONCILE), adapter=world)
