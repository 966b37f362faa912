"""How does one get a ledger of a million events, and a bundle of it, in minutes?

Idea: the runtime itself walks every request under the rules `lab`, on a ledger that writes the package's own
lines into a file and flushes nothing. The journal that results is one that the file ledger would have
written.

    a case is up to a hundred times this, 100 events: 1 action succeeds and leaves a marker (4 events), 12
    fail and leave none (4 events each), and 24 requests are replays of earlier ones (2 events each);
    another number of replays makes another number of events of the same keys

Always true: the same count gives the same lines.

Not here: what is measured on it.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.prove import bundle
from codeai_lab.records import ActionRequest, ActionResult, Event, EventDraft
from codeai_lab.run.effects import LineAdapter, MarkerWorld, raising
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.lines import encode_batch, encode_creation, line_digest, place
from codeai_lab.store.protocol import Unchanged

LESSON = "benchmark"
KEYS_A_BLOCK, REPLAYS_A_BLOCK = 13, 24
MOST_BLOCKS_A_CASE = 100
CREATED = encode_creation(ledger_id=LESSON, recorded_at_us=1_000_000)
AUTHORITY = Authority.of("file.append")


def request(number: int, *, key: str, name: str) -> ActionRequest:
    """Give one request of an ordinary size; requests with the same number ask for the same operation."""
    return ActionRequest(
        action_id=name,
        idempotency_key=key,
        capability="file.append",
        instruction="append the line to the end of the file",
        payload={"path": "notes/reading.txt", "line": f"line {number} that may already be there"},
        precondition={"lines": number, "digest": f"{number:064x}"},
        performer="agent",
    )


@dataclass(slots=True, kw_only=True)
class Case:
    """One case that was played: what was asked, what came of it, the kinds of its events."""

    name: str
    asked: list[ActionRequest] = field(default_factory=list)
    results: list[ActionResult] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    @property
    def effects(self) -> int:
        """The number of its actions that succeeded: one in each block."""
        return sum(one.status == "succeeded" and one.reused_from_action_id is None for one in self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A journal that was made, the worlds that belong to it, and its cases."""

    journal: Path
    world: Path
    cases: tuple[Case, ...]

    @property
    def events(self) -> int:
        return sum(len(case.kinds) for case in self.cases)

    @property
    def requests(self) -> int:
        return sum(len(case.asked) for case in self.cases)

    @property
    def keys(self) -> int:
        return sum(one.reused_from_action_id is None for case in self.cases for one in case.results)


def make(folder: Path, *, events: int, replays: int = REPLAYS_A_BLOCK) -> Made:
    """Make a journal of so many events, a multiple of those that a block has with so many replays."""
    folder.mkdir(parents=True)
    journal, world = folder / "lab.duckdb.journal.jsonl", folder / "world"
    clock, new_id = ManualClock(tick_us=7), counted_ids("event")
    with journal.open("wb", buffering=1 << 20) as file:
        ledger = Written(file)

        def case_of(number: int) -> Case:
            case = Case(name=f"case-{number:04d}")
            ledger.kinds = case.kinds
            runtime = Runtime(
                ledger, clock=clock, new_id=new_id, run_id=f"{LESSON}/{case.name}", actor_id="benchmark"
            )
            _play(case, runtime, MarkerWorld(world / case.name), blocks=blocks[number], replays=replays)
            return case

        whole, rest = divmod(events // (4 * KEYS_A_BLOCK + 2 * replays), MOST_BLOCKS_A_CASE)
        blocks = [MOST_BLOCKS_A_CASE] * whole + [rest] * (rest > 0)
        cases = tuple(case_of(number) for number in range(len(blocks)))
    return Made(journal=journal, world=world, cases=cases)


def _play(case: Case, runtime: Runtime, world: MarkerWorld, *, blocks: int, replays: int) -> None:
    succeeding = LineAdapter(world)
    failing = LineAdapter(world, before=raising(RuntimeError("the file is not there")))

    def ask(name: str, number: int, adapter: LineAdapter) -> None:
        asked = request(number, key=f"{case.name}-key-{number}", name=f"{case.name}-{name}")
        case.asked.append(asked)
        case.results.append(
            runtime.execute_action(
                asked, authority=AUTHORITY, adapter=adapter, read_state=lambda: asked.precondition
            )
        )

    keys = 0
    for block in range(blocks):
        for turn in range(KEYS_A_BLOCK):
            ask(f"first-{keys}", keys, failing if turn else succeeding)
            keys += 1
        for turn in range(replays):
            # A multiplicative hash spreads the replays over the keys so far, the same way on every run.
            number = (block * replays + turn) * 2_654_435_761 % keys
            ask(f"again-{block}-{turn}", number, failing)


class Written:
    """A ledger that writes the lines of a journal and flushes nothing; it remembers what look-ups need."""

    def __init__(self, file: BinaryIO) -> None:
        self.ledger_id = LESSON
        self.live_actions: set[str] = set()
        self.kinds: list[str] = []
        self._file = file
        self._seq, self._prev = 0, line_digest(CREATED)
        self._by_key: defaultdict[str | None, list[Event]] = defaultdict(list)
        self._streams: set[str] = set()
        file.write(CREATED + b"\n")

    def append(self, *drafts: EventDraft, unless_changed: Sequence[Unchanged] = ()) -> tuple[Event, ...]:
        del unless_changed  # nobody else writes here
        events = place(drafts, after_seq=self._seq)
        _, raws, self._prev = encode_batch(events, prev=self._prev)
        self._file.write(b"\n".join(raws) + b"\n")
        self._seq += len(events)
        for event in events:
            self.kinds.append(event.kind)
            self._streams.add(event.stream_id)
            self._by_key[event.idempotency_key].append(event)
        return events

    def read(self, stream_id: str) -> tuple[Event, ...]:
        if stream_id in self._streams:
            raise ValueError("every request of a benchmark has an id of its own")
        return ()

    def find(self, idempotency_key: str) -> tuple[Event, ...]:
        return tuple(self._by_key.get(idempotency_key, ()))

    def read_all(self) -> Iterator[Event]:
        raise NotImplementedError("the lines are in the file")


def ledger_of(made: Made, folder: Path, *, indexed: bool = True) -> Path:
    """Copy a journal into a folder of its own and give the ledger's path; opening it once makes its index."""
    folder.mkdir(parents=True)
    path = folder / "lab.duckdb"
    shutil.copyfile(made.journal, folder / made.journal.name)
    if indexed:
        DuckDBLedger(path).close()
    return path


def small_ledger(folder: Path, *, actions: int) -> Path:
    """Make a ledger in a file with so many actions of four events each, and close it."""
    folder.mkdir(parents=True)
    path = folder / "lab.duckdb"
    with DuckDBLedger(path) as ledger:
        runtime = Runtime(ledger)
        for number in range(actions):
            act(runtime, request(number, key=f"small-key-{number}", name=f"small-{number}"))
    return path


class NothingToDo:
    """An adapter without an effect, so that the protocol alone is measured."""

    def execute(self, request: ActionRequest) -> dict[str, Any]:
        return {"marker": f"{request.action_id}.txt"}


def act(runtime: Runtime, asked: ActionRequest) -> ActionResult:
    """Carry out a request whose precondition holds."""
    return runtime.execute_action(
        asked, authority=AUTHORITY, adapter=NothingToDo(), read_state=lambda: asked.precondition
    )


def freeze(made: Made, to: Path) -> Path:
    """Make a bundle of a journal; its rows are known from how it was made."""
    expected = {case.name: _expected(case) for case in made.cases}
    protocol = {
        "format": "codeai-lab-protocol-v1",
        "lesson": LESSON,
        "revision": "lab",
        "seed": 22,
        "ledger_id": LESSON,
        "cases": [_plan(case, expected[case.name]) for case in made.cases],
    }
    results = {
        "format": "codeai-lab-results-v1",
        "lesson": LESSON,
        "revision": "lab",
        "producer": {"name": "codeai_lab", "version": "0"},
        "rows": [_row(case, expected[case.name]) for case in made.cases],
    }
    producer = "codeai_lab benchmarks"
    bundle.freeze(
        to,
        protocol=protocol,
        ledger=made.journal,
        world=made.world,
        results=results,
        environment=bundle.environment(),
        readme=bundle.describe(protocol, producer=producer),
        producer=producer,
    )
    return to


def _expected(case: Case) -> dict[str, Any]:
    return {
        "requests": len(case.results),
        "statuses": [str(result.status) for result in case.results],
        "reused_from": [result.reused_from_action_id for result in case.results],
        "raised": [None] * len(case.results),
        "effects_world": case.effects,
    }


def _plan(case: Case, expected: dict[str, Any]) -> dict[str, Any]:
    return {
        "case": case.name,
        "question": "What does a large bundle cost to verify?",
        "marked": [],
        "requests": [
            {"id": asked.action_id, "kind": "action", "key": asked.idempotency_key} for asked in case.asked
        ],
        "expected": expected,
    }


def _row(case: Case, expected: dict[str, Any]) -> dict[str, Any]:
    own = [result for result in case.results if result.reused_from_action_id is None]
    failed = sum(result.status == "failed" for result in own)
    return expected | {
        "case": case.name,
        "revision": "lab",
        "effects_ledger": [case.effects, case.effects + failed],
        "effects_summary": case.effects,
        "labels": [
            "replay" if result.reused_from_action_id else "unknown" if result.status == "failed" else None
            for result in case.results
        ],
        "event_kinds": case.kinds,
        "provider_calls": 0,
        "evidence_label": "demo",
        "notes": [],
    }
