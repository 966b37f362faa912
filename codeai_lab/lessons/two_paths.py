"""What does a run show on the ledger's path, and what at the effect service?

Chapter: 004, "Retry, replay, duplicate": a key look-up is one quarter of RIFL.

Idea: one ledger under one rule set is a stand. Behind it is a marker world, where an effect and its record
are two things, or an effect service, whose file holds both. Several stands may share one of them. A row puts
beside one another what the ledgers say, what the effect system kept and what was counted.

Always true:
  TP1. A request that dies here dies between two stages, with its ledger as a crash would leave it.
  TP2. No thread: who is held up and who goes on is said by hand.

Not here: what the runs are for (`lessons.rifl`); deaths inside the service (`lessons.service_deaths`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority, Grant
from codeai_lab.decide.retention import RequestId
from codeai_lab.decide.witnesses import Receipt
from codeai_lab.lessons.cases import PERMITTED
from codeai_lab.lessons.playing import FROZEN_AT_US
from codeai_lab.lessons.rows import row_of
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import FencedLineAdapter, LineAdapter, MarkerWorld, WorldLookup
from codeai_lab.run.facts import Wait
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import LAB, Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.waiting import waiting
from codeai_lab.run.walk import Walk
from codeai_lab.store.effect_service import EffectService, Point, ServiceAdapter
from codeai_lab.store.memory import MemoryLedger

LEASE_US = 1_800_000_000  # half an hour, as in RAMCloud
KEY = "c1/1"  # the first request of the first client
JUDGE = Authority.of(RECONCILE)


class Acting(Protocol):
    """An adapter that counts its effects."""

    effects: int

    def execute(self, request: ActionRequest) -> Any: ...


class Stand:
    """One ledger under one rule set, in front of an effect system that other stands may share."""

    def __init__(self, revision: Revision, effects: MarkerWorld | EffectService, *, ids: str = "e") -> None:
        self.revision = revision
        self.effects = effects
        self.clock = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000)
        self.ledger = MemoryLedger(ledger_id=ids)
        self.runtime = Runtime(self.ledger, rules=revision, clock=self.clock, new_id=counted_ids(ids))
        self.adapters: list[Acting] = []
        self.raised: dict[str, str] = {}

    def walk(
        self,
        action_id: str,
        key: str,
        *,
        line: str = "one line",
        authority: Authority | None = None,
        adapter: Acting | None = None,
        wait: Wait | None = None,
    ) -> Walk:
        """Give the walk of a request, standing before its first stage."""
        request = ActionRequest(
            action_id=action_id, idempotency_key=key, capability=PERMITTED, instruction="append one line",
            payload={"line": line},
        )  # fmt: skip
        acting = adapter or self._usual_adapter()
        self.adapters.append(acting)
        permitted = Authority.of(PERMITTED) if authority is None else authority
        return self.runtime.walk(request, authority=permitted, adapter=acting, wait=wait)

    def ask(self, action_id: str, key: str, **how: Any) -> None:
        """Ask once, as a caller would; what is raised is remembered by its type's name."""
        self.finish(self.walk(action_id, key, **how))

    def finish(self, walk: Walk) -> None:
        """Let a walk go to its end, if it is not there already."""
        try:
            if not walk.is_over:
                walk.run()
        except Exception as error:
            self.raised[walk.facts.request.action_id] = type(error).__name__

    def die_after_effect(self, action_id: str, key: str) -> None:
        """Let a request end where its process would: the effect was carried out, nothing says so (TP1)."""
        walk = advance(self.walk(action_id, key), "perform", past=True)
        walk.close()

    def _usual_adapter(self) -> Acting:
        if isinstance(self.effects, MarkerWorld):
            return LineAdapter(self.effects)
        return ServiceAdapter(self.effects)


def advance(walk: Walk, stage: str, *, past: bool = False) -> Walk:
    """Take a walk to just before a stage, or just past it."""
    while not str(walk.next_stage).startswith(stage):
        walk.step()
    if past:
        walk.step()
    return walk


def row_over(case: str, *stands: Stand) -> dict[str, Any]:
    """Bring what several ledgers say of one effect system into one row."""
    receipts: tuple[Receipt, ...] = stands[0].effects.receipts()
    return row_of(
        [event for stand in stands for event in stand.ledger.read_all()],
        receipts,
        summary=sum(adapter.effects for stand in stands for adapter in stand.adapters),
        case=case,
        revision=stands[0].revision.name,
        raised={name: error for stand in stands for name, error in stand.raised.items()},
    )


def ask_service(
    service: EffectService, client_id: str, number: int, *, line: str = "one line", first_incomplete: int = 1
) -> dict[str, Any]:
    """Ask the service once and give the answer, its result, and what the file holds afterwards."""
    asked = RequestId(client_id=client_id, sequence=number)
    verdict = service.submit(asked, line, action_id=asked.key, first_incomplete=first_incomplete)
    return {
        "asked": asked.key,
        "line": line,
        "answer": str(verdict.answer),
        "result": None if verdict.result is None else verdict.result["marker"],
        **service.kept(),
    }


def service_in(
    folder: Path, name: str = "effects", *, watch: Callable[[Point], object] | None = None
) -> EffectService:
    """Open an effect service whose clock stands still."""
    clock = ManualClock(start_us=FROZEN_AT_US)
    return EffectService(folder / f"{name}.duckdb", clock=clock, watch=watch)


# --- runs that need more than one caller, or more than one ledger ----------------------------------------


def race(folder: Path, name: str, *, waits: bool = True, authority_ends: bool = False) -> dict[str, Any]:
    """Let a loser ask while the winner stands right after its effect; the winner goes on while it waits."""
    stand = Stand(LAB, MarkerWorld(folder / name))
    winner = advance(stand.walk("w1", KEY), "perform", past=True)

    def pause() -> None:
        if not winner.is_over:
            winner.step()
        stand.clock.advance(1_000_000)

    wait = waiting(clock=ManualClock(tick_us=1), timeout_us=1_000, pause=pause)
    ends_us = FROZEN_AT_US + 500_000 if authority_ends else None
    authority = Authority(grants=(Grant(capability=PERMITTED, expires_at_us=ends_us),))
    stand.ask("w2", KEY, authority=authority, wait=wait if waits else None)
    stand.finish(winner)
    return row_over(name, stand)


def late_walk(folder: Path, name: str, *, fenced: bool) -> dict[str, Any]:
    """Take a walk for dead before its effect, find none, act afresh; then the first goes on."""
    world, fences = MarkerWorld(folder / name), dict[str, int]()
    stand = Stand(LAB, world)

    def adapter() -> LineAdapter:
        return FencedLineAdapter(world, fences) if fenced else LineAdapter(world)

    late = advance(stand.walk("l1", KEY, adapter=adapter()), "perform")
    late.disown()
    stand.runtime.reconcile_action("l1", authority=JUDGE, effect_lookup=WorldLookup(world))
    stand.ask("l2", KEY, adapter=adapter())
    stand.finish(late)
    return row_over(name, stand)


def two_ledgers(
    name: str, effects: MarkerWorld | EffectService, *, between: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Ask for one effect through one ledger, and then through another that knows nothing of it."""
    first, second = Stand(LAB, effects, ids="first"), Stand(LAB, effects, ids="second")
    first.ask("t1", KEY)
    if between is not None:
        between()
    second.ask("t2", KEY)
    return row_over(name, first, second)


def collected(folder: Path) -> tuple[dict[str, Any], ...]:
    """Ask three times, acknowledge two, let the lease run out, collect; ask again after each."""
    clock = ManualClock(start_us=FROZEN_AT_US)
    with EffectService(folder / "collected.duckdb", clock=clock) as service:
        client = service.open_client(lease_us=LEASE_US)
        answers = [ask_service(service, client, number, line=f"line {number}") for number in (1, 2)]
        answers.append(ask_service(service, client, 3, line="line 3", first_incomplete=3))
        answers.append(ask_service(service, client, 1, line="line 1"))
        answers.append(ask_service(service, client, 3, line="line 3"))
        clock.advance(LEASE_US)
        answers.append(ask_service(service, client, 3, line="line 3"))
        answers.append(ask_service(service, client, 4, line="line 4"))
        service.collect()
        answers.append(ask_service(service, client, 3, line="line 3"))
        answers.append(ask_service(service, client, 4, line="line 4"))
    when = ["", "", "acknowledges 1 and 2", "", "", "lease over", "lease over", "collected", "collected"]
    return tuple({"when": said, **answer} for said, answer in zip(when, answers, strict=True))
