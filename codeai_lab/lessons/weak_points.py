"""What became of the eight points that the chapter lists as still weak?

Chapter: 004, "Where it is still weak".

Idea: each point has a run as it was and, where there is one, a run under `lab`, and a word for what became of
it: *repaired* (the weakness is gone, within the stated limit), *narrowed* (it is smaller and said), or *made
visible* (it is as it was, and shows).

Always true:
  WP1. The word is a claim, and the rows beside it are its evidence; both are made when the point is asked
       for.
  WP2. File and ledger are never one step: nothing here says that they are.

Not here: how a point is shown (`show.cards`), the garbage collection that answers point 5 at the effect's own
side (`lessons.rifl`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.lessons.cases import Ask, Lesson
from codeai_lab.lessons.failure_modes import race_by_hand
from codeai_lab.lessons.orphan import AFTER, append_again, leave_orphan
from codeai_lab.lessons.playing import FROZEN_AT_US, Table, play
from codeai_lab.lessons.retry_edges import RETRY_EDGES
from codeai_lab.lessons.retry_effects import RETRY_EFFECTS
from codeai_lab.run.effects import WorldLookup
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import LAB, R_1B3C7A2, Revision
from codeai_lab.store.memory import MemoryLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakPoint:
    """One of the eight: its name, what the chapter says, what `lab` does about it, the rows that show both.

    `became` is repaired, narrowed or made visible.
    """

    name: str
    became: str
    chapter_says: str
    rule: str
    run: tuple[dict[str, Any], ...]
    evidence_label: str = "demo"


def weak_points(folder: Path) -> tuple[WeakPoint, ...]:
    """Play the runs in an empty or missing folder and give the eight points in the chapter's order."""
    effects = _Both(RETRY_EFFECTS, folder / "effects")
    edges = _Both(RETRY_EDGES, folder / "edges")
    return (
        WeakPoint(
            name="1. Concurrent duplicates are unprotected",
            became="repaired",
            chapter_says="Nothing spans the time from looking up to acting.",
            rule="Repaired for one ledger: the append that claims a key is conditional.",
            run=(race_by_hand(R_1B3C7A2, folder / "race-old"), race_by_hand(LAB, folder / "race-lab")),
        ),
        WeakPoint(
            name="2. Completion and effect are not atomic",
            became="narrowed",
            chapter_says="A process that dies between them leaves an orphan, and the same key acts again.",
            rule="Narrowed: the start is on record, so the key is not acted on again. It stays two steps.",
            run=(_orphan(R_1B3C7A2, folder / "orphan-old"), _orphan(LAB, folder / "orphan-lab")),
        ),
        WeakPoint(
            name="3. Actions have no recovery projection",
            became="repaired",
            chapter_says="A failure with an effect ends at an operator's judgement outside the runtime.",
            rule="Repaired: the state names what is next; reconciling appends a verdict with evidence.",
            run=(effects.rows("D-crash-gap")[0], _reconciled(LAB, folder / "judged-lab")),
        ),
        WeakPoint(
            name="4. Call conflicts leave no durable record",
            became="repaired",
            chapter_says="A call's conflict raises, and only its request stays behind.",
            rule="Repaired: call.replay_refused is appended before the error is raised.",
            run=effects.rows("C-call-conflict"),
        ),
        WeakPoint(
            name="5. Completion records are never reclaimed",
            became="made visible",
            chapter_says="Every outcome that can be replayed lives for ever.",
            rule="Made visible: the ledger keeps all; only the effect's own side collects.",
            run=effects.rows("A-exact-duplicate"),
        ),
        WeakPoint(
            name="6. A missing current state skips the precondition",
            became="repaired",
            chapter_says="A precondition that was supplied is weaker than one that is enforced.",
            rule="Repaired: check_precondition_strictly refuses what it cannot read.",
            run=edges.rows("precondition-unreadable"),
        ),
        WeakPoint(
            name="7. DENIED outcomes replay",
            became="repaired",
            chapter_says="Whoever gains authority needs a new key.",
            rule="Changed rule: a denial completes the request and decides nothing for the key.",
            run=edges.rows("denied-then-permitted"),
        ),
        WeakPoint(
            name="8. The architectural gaps that the rerun froze",
            became="narrowed",
            chapter_says="Sequential semantics are measured; concurrency and the crash gap stay unbuilt.",
            rule="Narrowed: both are built within one process and one ledger; `rerun` measures again.",
            run=edges.rows("interrupt-inside"),
        ),
    )


def _orphan(revision: Revision, folder: Path) -> dict[str, Any]:
    table = leave_orphan(revision, folder, died=AFTER)
    append_again(table)
    return table.row("demo")


def _reconciled(revision: Revision, folder: Path) -> dict[str, Any]:
    """Fail after the effect, reconcile, and ask again with the same key."""
    clock = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000)
    ledger = MemoryLedger(ledger_id="judged")
    table = Table("weak-points", "failed, reconciled, asked again", revision, ledger, clock, folder)
    table.ask(Ask(id="v1", key="kv", raises=ConnectionError))
    table.runtime.reconcile_action(
        "v1", authority=Authority.of(RECONCILE), effect_lookup=WorldLookup(table.world)
    )
    table.ask(Ask(id="v2", key="kv"))
    return table.row("demo")


class _Both:
    """Plays single cases of a lesson under the chapter's last rules and under `lab`."""

    def __init__(self, lesson: Lesson, folder: Path) -> None:
        self._lesson = lesson
        self._folder = folder

    def rows(self, case: str) -> tuple[dict[str, Any], ...]:
        return tuple(
            play(self._lesson, rules, self._folder / f"{case}-{rules.name}", only=[case]).rows[0]
            for rules in (R_1B3C7A2, LAB)
        )
