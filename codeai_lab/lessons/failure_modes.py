"""Which run shows each of the chapter's seven failure modes, and which rule stops it?

Chapter: 004, "Failure modes".

Idea: a failure mode is a claim, so each gets a run that shows it, with its numbers, and where there is one a
second run under the rule that stops it. Six are cases of the lessons; re-checking on replay needs a rule set
composed for the purpose, and the race is two walks moved by hand, with no thread.

Always true:
  FM1. Every card's rows come from a run, made when the card is asked for.
  FM2. The composed rule set is ordinary stages in another order; nothing is written for the failure alone.

Not here: how a card looks (`show.cards`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.lessons.cases import PERMITTED, Ask, Lesson
from codeai_lab.lessons.playing import FROZEN_AT_US, Table, play, request_of
from codeai_lab.lessons.retry_edges import RETRY_EDGES
from codeai_lab.lessons.retry_effects import RETRY_EFFECTS
from codeai_lab.run.effects import LineAdapter
from codeai_lab.run.revisions import LAB, R_1B3C7A2, R_7A0D43B, Revision
from codeai_lab.run.stages import check_precondition
from codeai_lab.store.memory import MemoryLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMode:
    """A failure mode: its name, what the chapter says, the rows that show it, the rule that stops it."""

    name: str
    chapter_says: str
    rule: str
    run: tuple[dict[str, Any], ...]
    evidence_label: str = "demo"


RECHECKING = Revision(
    name="1b3c7a2-rechecking",
    # The stages of 1b3c7a2 with the precondition moved in front of the replay.
    stages=(
        *R_1B3C7A2.stages[:4],
        check_precondition,
        *(stage for stage in R_1B3C7A2.stages[4:] if stage is not check_precondition),
    ),
)


def failure_modes(folder: Path) -> tuple[FailureMode, ...]:
    """Play the seven runs in an empty or missing folder and give the failure modes with their rows."""
    rows = _Rows(folder)
    return (
        FailureMode(
            name="Minting fresh keys for old operations",
            chapter_says="A loop that makes a new key for every attempt makes duplicates, not safety.",
            rule="One key for one effect, kept across attempts; no rule set sees through fresh ones.",
            run=(rows.case(RETRY_EFFECTS, "D-fresh-key", LAB), rows.case(RETRY_EFFECTS, "D-crash-gap", LAB)),
        ),
        FailureMode(
            name="Treating the key as the operation",
            chapter_says="A handle for looking something up does not say that two requests meant the same.",
            rule="compare_identity: the fingerprint is compared before anything is replayed.",
            run=rows.before_and_after(RETRY_EFFECTS, "B-other-operation"),
        ),
        FailureMode(
            name="Letting replay skip authority",
            chapter_says="That it succeeded before is no permission for whoever asks now.",
            rule="require_authority stands before replay and judges the current grants.",
            run=rows.before_and_after(RETRY_EFFECTS, "B-no-authority"),
        ),
        FailureMode(
            name="Reading FAILED as nothing happened",
            chapter_says="A failure on record is history; the effect may be real all the same.",
            rule="Status and effect state are two axes: FAILED after the start is unknown, 0 to 1 effects.",
            run=(rows.case(RETRY_EFFECTS, "D-crash-gap", R_1B3C7A2),),
        ),
        FailureMode(
            name="Mistaking replayed failure for recovery",
            chapter_says="Getting the old FAILED back repaired nothing; it kept things from getting worse.",
            rule="A replayed FAILED names its next operation: reconcile the effect.",
            run=(rows.case(RETRY_EDGES, "escaping-exception", LAB),),
        ),
        FailureMode(
            name="Re-checking preconditions on replay",
            chapter_says="Asking for the old world again loses the replay of the action that changed it.",
            rule="The precondition belongs to the identity; it is checked before a fresh attempt only.",
            run=(
                rows.case(RETRY_EDGES, "moved-by-its-own-success", RECHECKING),
                rows.case(RETRY_EDGES, "moved-by-its-own-success", R_1B3C7A2),
            ),
        ),
        FailureMode(
            name="Assuming sequential safety covers concurrency",
            chapter_says="One key, two submissions at once, two effects.",
            rule="admit: the append that claims the key is conditional on nobody having come since look_up.",
            run=(rows.race(R_1B3C7A2), rows.race(LAB)),
        ),
    )


def race_by_hand(revision: Revision, folder: Path) -> dict[str, Any]:
    """Let two walks with one key pass each other: both look up before either performs. No thread is needed.

    Under `lab` the second is admitted first and the other, when its turn comes, is told so.
    """
    clock = ManualClock(start_us=FROZEN_AT_US, tick_us=1_000)
    ledger = MemoryLedger(ledger_id="race")
    table = Table("failure-modes", "two-walks-one-key", revision, ledger, clock, folder)
    adapters = [LineAdapter(table.world), LineAdapter(table.world)]
    walks = [
        table.runtime.walk(
            request_of(Ask(id=name, key="kr")), authority=Authority.of(PERMITTED), adapter=adapter
        )
        for name, adapter in zip(("r1", "r2"), adapters, strict=True)
    ]
    for walk in walks:
        while walk.next_stage is not None and not walk.next_stage.startswith(("admit", "perform")):
            walk.step()
    for walk in walks:
        walk.run()
    table.effects_counted = sum(adapter.effects for adapter in adapters)
    return table.row("demo")


class _Rows:
    """Plays cases, each in a folder of its own, and gives their rows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plays = 0

    def case(self, lesson: Lesson, case: str, revision: Revision) -> dict[str, Any]:
        return play(lesson, revision, self._next_folder(), only=[case]).rows[0]

    def before_and_after(self, lesson: Lesson, case: str) -> tuple[dict[str, Any], ...]:
        return self.case(lesson, case, R_7A0D43B), self.case(lesson, case, LAB)

    def race(self, revision: Revision) -> dict[str, Any]:
        return race_by_hand(revision, self._next_folder())

    def _next_folder(self) -> Path:
        self._plays += 1
        return self._folder / f"run-{self._plays}"
