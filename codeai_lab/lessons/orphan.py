"""The line that may already be there: which of three answers to an orphan is true?

Chapter: 004, the opening scene, and the second time line of "Where the cache stops".

Idea: a walk is dropped where the process would have died, before the effect or after it. The ledger is the
same in both worlds, so an answer must hold in both. Appending again doubles the line in one of them; a
success written by hand is false in the other; "unknown" is what the record allows in both.

    died before the effect:  world 0        the ledger cannot tell
    died after the effect:   world 1        these two apart

Always true:
  OR1. The two deaths leave the same kinds of events.
  OR2. Every claim is compared with the world's own receipts.

Not here: finding out which it was; that is reconciling, and needs the world to be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.lessons.cases import PERMITTED, Ask
from codeai_lab.lessons.playing import FROZEN_AT_US, Table, request_of
from codeai_lab.records import EventDraft
from codeai_lab.run.effects import LineAdapter
from codeai_lab.run.revisions import LAB, R_1B3C7A2, Revision
from codeai_lab.store.memory import MemoryLedger

BEFORE, AFTER = "before the effect", "after the effect"
FIRST = Ask(id="o1", key="ko")
AGAIN = Ask(id="o2", key="ko")


def leave_orphan(revision: Revision, folder: Path, *, died: str) -> Table:
    """Let one request die before or after its effect and give the table as the next process finds it.

    Args:
        died: BEFORE or AFTER.
    """
    clock = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000)
    table = Table("orphan", f"died {died}", revision, MemoryLedger(ledger_id="orphan"), clock, folder)
    walk = table.runtime.walk(
        request_of(FIRST), authority=Authority.of(PERMITTED), adapter=LineAdapter(table.world)
    )
    while not str(walk.next_stage).startswith("perform"):
        walk.step()
    if died == AFTER:
        walk.step()
    walk.close()
    return table


def append_again(table: Table) -> tuple[int, int]:
    """Submit the same key again, and claim the one effect that this process counted."""
    table.ask(AGAIN)
    return (table.effects_counted, table.effects_counted)


def write_success_by_hand(table: Table) -> tuple[int, int]:
    """Append a completion that nobody observed, and claim the one effect that it says."""
    requested = table.events()[0]
    table.ledger.append(
        EventDraft(
            event_id="by-hand",
            run_id=requested.run_id,
            stream_id=requested.stream_id,
            kind="action.completed",
            actor_id="operator",
            idempotency_key=requested.idempotency_key,
            recorded_at_us=requested.recorded_at_us + 1,
            causation_id=requested.event_id,
            payload={
                "action_id": requested.stream_id,
                "status": "succeeded",
                "effect_possible": True,
                "output": None,
                "error": None,
                "observed": None,
                "reused_from_action_id": None,
            },
        )
    )
    return (1, 1)


def say_unknown(table: Table) -> tuple[int, int]:
    """Submit the same key again under `lab`, which acts on nothing and claims what the record allows."""
    table.ask(AGAIN)
    low, high = table.row("demo")["effects_ledger"]
    return (low, high)


ANSWERS: tuple[tuple[str, Revision, Callable[[Table], tuple[int, int]]], ...] = (
    ("append again", R_1B3C7A2, append_again),
    ("write a success by hand", R_1B3C7A2, write_success_by_hand),
    ("say unknown", LAB, say_unknown),
)


def three_answers(folder: Path) -> list[dict[str, Any]]:
    """Give each answer in each of the two worlds: what it claims, what the world shows, whether it holds."""
    rows = []
    for answer, revision, give in ANSWERS:
        for died in (BEFORE, AFTER):
            table = leave_orphan(revision, folder / answer.replace(" ", "-") / died.split()[0], died=died)
            low, high = give(table)
            world = len(table.world.receipts())
            rows.append(
                {
                    "answer": answer,
                    "the process died": died,
                    "it claims": _effects(low, high),
                    "the world shows": world,
                    "so it": "holds" if low <= world <= high else "lies",
                }
            )
    return rows


def _effects(low: int, high: int) -> str:
    if low != high:
        return f"{low} to {high} effects"
    return "1 effect" if low == 1 else f"{low} effects"
