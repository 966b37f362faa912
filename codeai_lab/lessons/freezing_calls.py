"""How does the lesson on killed processes become evidence?

Chapter: 004, "Checking it without trusting it"; run 2026-09-13-68f4ba0 of the chapter on working state.

Idea: as with any lesson (`lessons.freezing`): the plan is written down, then it is played, and the ledger's
lines are put beside what the world kept. The world of a call is its provider, so its receipts are the
provider's own log. A row says where the killed process stood and what the next one did.

Always true:
  FC1. The protocol file is written before the run and never after.
  FC2. Each case is marked `processes`; a plan names its calls, and how often the provider will be asked.

Not here: what is played (`lessons.working_state`), the form of a bundle (`prove.bundle`).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codeai_lab import __version__
from codeai_lab.lessons import working_state as lesson
from codeai_lab.lessons.freezing import results
from codeai_lab.prove.bundle import describe, environment, freeze

PRODUCER = f"codeai_lab {__version__}"
OF_CALLS = (
    "What the provider itself kept of each request (`data/world/`): receipts in a log of its own process, "
    "not the ledger's."
)
LESSON, REVISION = lesson.LESSON, "lab"


def freeze_working_state(
    to: Path, *, notebook: Path | None = None, progress: Callable[[str], None] | None = None
) -> str:
    """Play the eight cases and write the bundle `to`; give the bundle's digest.

    Args:
        to: the folder that becomes the bundle; missing or empty.
        notebook: an executed notebook to put into it.
        progress: is told the name of each case before it is played.

    Raises: BundleError (definite) when `to` is taken; nothing is left behind then.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        folder, protocol_file = Path(scratch) / "play", Path(scratch) / "protocol.json"
        protocol_file.write_text(json.dumps(protocol()), encoding="utf-8")
        folder.mkdir()
        rows = lesson.play(folder, progress=progress and (lambda case, *_: progress(case)))
        planned = json.loads(protocol_file.read_text(encoding="utf-8"))
        return freeze(
            to,
            protocol=planned,
            ledger=folder / "lab.duckdb.journal.jsonl",
            world=_world(folder, Path(scratch) / "world"),
            results=results(LESSON, REVISION, [row | {"evidence_label": "pinned run"} for row in rows]),
            environment=environment(),
            readme=describe(planned, producer=PRODUCER, world=OF_CALLS),
            producer=PRODUCER,
            notebook=notebook,
        )


def protocol() -> dict[str, Any]:
    """Write down what will be done and what must come of it, before it is done."""
    return {
        "format": "codeai-lab-protocol-v1",
        "lesson": LESSON,
        "revision": REVISION,
        "seed": 0,
        "ledger_id": LESSON,
        "cases": [_plan(case, row) for case, row in zip(lesson.CASES, lesson.EXPECTED, strict=True)],
    }


def _plan(case: lesson.Killed, row: dict[str, Any]) -> dict[str, Any]:
    """Plan a case: its calls are the one that is killed, if it comes to one, and the one that follows it."""
    first = None if row["stage"] is None else _first_status(row)
    calls: list[tuple[str, Any]] = [] if row["stage"] is None else [("call", first)]
    if case.then in lesson.NEW_CALLS and row["outcome"] == "succeeded":
        calls.append((f"call-{lesson.NEW_CALLS[case.then]}", row["outcome"]))
    return {
        "case": case.name,
        "question": lesson.QUESTIONS[case.name],
        "marked": ["processes"],
        "requests": [
            {"id": f"{case.name}-{name}", "kind": "call", "key": f"{case.name}-key"} for name, _ in calls
        ],
        "expected": {
            "requests": len(calls),
            "statuses": [status for _, status in calls],
            "reused_from": [None] * len(calls),
            "raised": [None] * len(calls),
            "effects_world": row["receipts_after"],
        },
    }


def _first_status(row: dict[str, Any]) -> Any:
    """Give what the record says in the end of the first call: an answer, also where it was reinterpreted."""
    if row["then"] == "reinterpret":
        return row["outcome"]
    return "succeeded" if row["stage"] == "completed" else None


def _world(play: Path, world: Path) -> Path:
    """Put each provider's log where a bundle has the receipts of a case."""
    for case in lesson.CASES:
        (world / case.name).mkdir(parents=True)
        shutil.copyfile(play / f"{case.name}.receipts.jsonl", world / case.name / "receipts.jsonl")
    return world
