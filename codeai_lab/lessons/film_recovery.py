"""The memory search times out. What does each way of going on keep, spend and change?

Chapter: 003, "Play the trace below": Ex Machina is compared with a film about memory loss.

Idea: one request, one failure, three policies. Up to the timeout there are five calls, and four of them are
what the Ex Machina branch and its set-up took:

    call-1  plan            the plan                        set-up
    call-2  vector_search   a candidate for the AI film     Ex Machina branch
    call-3  get_film        the record of the candidate     Ex Machina branch
    call-4  quote           the passages that support it    Ex Machina branch; then checkpoint v2
    call-5  vector_search   a film about memory loss        times out

Restart repeats the four and makes the fifth again; resume makes the fifth again; fallback makes another one
in its place.

Always true:
  FM1. Every number in a row is counted from recorded events (`lessons.film_rows`).
  FM2. Ids, clock and the ledger's name are the same on every play, and so are the journal's bytes.
  FM3. What must come of it is written by hand; nothing computes it from a run.

Not here: playing a story (`lessons.film_play`), what each form of saved work can say (`lessons.film_saved`),
stepping it (`lessons.film_steps`).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from codeai_lab import __version__
from codeai_lab.clock import ManualClock
from codeai_lab.decide.recovery import Policy
from codeai_lab.decide.states import Criterion, RequestState, Sought
from codeai_lab.decide.trajectory import TrajectoryLimits
from codeai_lab.lessons.film_play import LESSON, STARTED_AT_US, Fails, Progress, Story, play
from codeai_lab.lessons.film_rows import row_of_recovery
from codeai_lab.lessons.freezing import results
from codeai_lab.prove.bundle import describe, environment, freeze
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger

PRODUCER = f"codeai_lab {__version__}"
AMBIGUITY = Criterion(
    name="ambiguity",
    terms=(
        "unclear", "uncertain*", "whether", "open", "doubt*", "ambig*", "strangers", "knowing", "memory",
        "memories", "identity", "mind", "self",
    ),
)  # fmt: skip
USUAL_LIMITS = TrajectoryLimits(
    calls=24,
    standby={"primary": "mirror", "planner": "planner-2"},
    acceptance={"vector_search": 0.2, "lexical_search": 0.1},
)
STORY = Story(
    request=RequestState(
        request_id="request-42",
        performer="reader",
        goal=(
            "Compare Ex Machina with a film about memory loss, then recommend the more ambiguous treatment "
            "of identity."
        ),
        constraints=("two films", "compare their treatment of identity", "favour ambiguity over action"),
        sought=(
            Sought(
                node="ai-film",
                query="an artificial mind and what it is to be a person",
                rewritten="robot mind imitation",
                about=("robot", "artificial", "machine*"),
                title="Ex Machina",
            ),
            Sought(
                node="memory-film",
                query="a person whose memories are erased after a relationship",
                rewritten="erased memories former relationship",
                about=("memory", "memories", "amnesia"),
            ),
        ),
        criterion=AMBIGUITY,
    ),
    limits=USUAL_LIMITS,
    fails=(Fails(tool="vector_search", nth=2),),
)
QUESTIONS = {
    Policy.RESTART: "What does it cost to begin again?",
    Policy.RESUME: "What does it cost to go on from the checkpoint, by the same path?",
    Policy.FALLBACK: "What does it cost, and change, to go on by another path?",
}

# By hand, from the chapter's table and its counting rule.
_SECOND = "Eternal Sunshine of the Spotless Mind"
EXPECTED: tuple[dict[str, Any], ...] = tuple(
    {
        "policy": policy, "verified_kept": kept, "repeated_calls": repeated, "additional_calls": additional,
        "skipped_calls": skipped, "provenance_changed": changed, "source_of_second_film": source,
        "recommendation": _SECOND, "timeout_in_record": True,
    }
    for policy, kept, repeated, additional, skipped, changed, source in (
        ("restart", [], 4, 5, 0, False, "vector_search"),
        ("resume", ["ex-machina"], 0, 1, 4, False, "vector_search"),
        ("fallback", ["ex-machina"], 0, 1, 4, True, "lexical_search"),
    )
)  # fmt: skip


def rows(story: Story = STORY, *, progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play a story under every policy that it offers and give the rows, as `replay --json` has them.

    A story without a failure gives one row, with the policy `none`.

    Args:
        progress: is told (policy, policies done, policies in all) before each policy.
    """
    ledger = MemoryLedger(ledger_id=LESSON)
    return [row_of_recovery(events) for events in play(story, ledger, progress=progress)]


# --- evidence -------------------------------------------------------------------------------------------


def protocol(rules: str = "film") -> dict[str, Any]:
    """Write down what will be done and what must come of it, before it is done."""
    return {
        "format": "codeai-lab-protocol-v1",
        "lesson": LESSON,
        "revision": rules,
        "seed": 0,
        "ledger_id": LESSON,
        "cases": [
            {
                "case": row["policy"],
                "question": QUESTIONS[Policy(row["policy"])],
                "requests": [{"id": f"film-{row['policy']}", "kind": "trajectory", "key": None}],
                "marked": [],
                "expected": row,
            }
            for row in EXPECTED
        ],
    }


def freeze_film_recovery(to: Path, *, notebook: Path | None = None) -> str:
    """Play the three policies and write the bundle `to`; give the bundle's digest.

    Args:
        to: the folder that becomes the bundle; missing or empty.
        notebook: an executed notebook to put into it.
    Raises: BundleError (definite) when `to` is taken; nothing is left behind then.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        planned = Path(scratch) / "protocol.json"
        planned.write_text(json.dumps(protocol()), encoding="utf-8")
        with DuckDBLedger(
            Path(scratch) / "lab.duckdb", ledger_id=LESSON, clock=ManualClock(start_us=STARTED_AT_US)
        ) as ledger:
            played = play(STORY, ledger)
            journal = ledger.journal
        plan = json.loads(planned.read_text(encoding="utf-8"))
        return freeze(
            to,
            protocol=plan,
            ledger=journal,
            world=Path(scratch) / "world",
            results=results(LESSON, plan["revision"], [row_of_recovery(events) for events in played]),
            environment=environment(),
            readme=describe(plan, producer=PRODUCER),
            producer=PRODUCER,
            notebook=notebook,
        )
