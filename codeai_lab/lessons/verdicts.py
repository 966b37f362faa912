"""What does the same key give after a verdict, and what if the walk was not dead?

Chapter: 004, "Where it is still weak" 2 and 3: reconciliation first.

Idea: an orphan is reconciled at an effect system that keeps receipts, and at one that cannot tell; each
verdict is followed by the same key. Then the danger in it: a walk that was taken for dead goes on. The ledger
records it beside the verdict; only an effect that checks the fencing number keeps it from acting.

Always true:
  VE1. The effects are counted by the world's receipts, after everything.

Not here: reconciling itself (`run.reconciling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.lessons.cases import PERMITTED, Ask
from codeai_lab.lessons.orphan import AFTER, AGAIN, BEFORE, leave_orphan
from codeai_lab.lessons.playing import FROZEN_AT_US, Table, request_of
from codeai_lab.run.effects import FencedLineAdapter, LineAdapter, WorldLookup
from codeai_lab.run.reconciling import RECONCILE, EffectLookup
from codeai_lab.run.revisions import LAB
from codeai_lab.store.memory import MemoryLedger

JUDGE = Authority.of(RECONCILE)


class CannotTell:
    """An effect system that keeps nothing: whether an effect happened cannot be found out there."""

    def find(self, request: Mapping[str, Any]) -> None:
        """Know nothing about any request."""
        del request

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Resolve no reference."""
        del reference
        return False


def three_verdicts(folder: Path) -> list[dict[str, Any]]:
    """Reconcile an orphan in three ways, ask again with the same key, and tell what came of it."""
    rows = []
    for number, (died, keeps_receipts) in enumerate(((AFTER, True), (BEFORE, True), (AFTER, False))):
        table = leave_orphan(LAB, folder / f"orphan-{number}", died=died)
        lookup: EffectLookup = WorldLookup(table.world) if keeps_receipts else CannotTell()
        judged = table.runtime.reconcile_action("o1", authority=JUDGE, effect_lookup=lookup)
        table.ask(AGAIN)
        rows.append(
            {
                "died": died,
                "the effect system": "keeps receipts" if keeps_receipts else "cannot tell",
                "verdict": judged.verdict,
                "the same key": table.row("demo")["statuses"][1],
                "effects": len(table.world.receipts()),
            }
        )
    return rows


def late_walks(folder: Path) -> list[dict[str, Any]]:
    """Let a walk that was judged dead go on, at an effect without a fence and at one with it."""
    return [_late_walk(folder / "open", fenced=False), _late_walk(folder / "fenced", fenced=True)]


def _late_walk(folder: Path, *, fenced: bool) -> dict[str, Any]:
    clock, fences = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000), dict[str, int]()
    table = Table("verdicts", "late walk", LAB, MemoryLedger(ledger_id="late"), clock, folder)

    def adapter() -> LineAdapter:
        return FencedLineAdapter(table.world, fences) if fenced else LineAdapter(table.world)

    auth = Authority.of(PERMITTED)
    walk = table.runtime.walk(request_of(Ask(id="late", key="k")), authority=auth, adapter=adapter())
    while not str(walk.next_stage).startswith("perform"):
        walk.step()
    walk.disown()
    table.runtime.reconcile_action("late", authority=JUDGE, effect_lookup=WorldLookup(table.world))
    table.runtime.execute_action(request_of(Ask(id="fresh", key="k")), authority=auth, adapter=adapter())
    result = walk.run()
    return {
        "the effect": "checks the fencing number" if fenced else "checks nothing",
        "the late walk": str(result.status),
        "recorded as": table.ledger.read("late")[-1].kind,
        "effects": len(table.world.receipts()),
    }
