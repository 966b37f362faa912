"""How does a simulation become evidence, when nothing in it was asked for and nothing was done?

Chapter: 000, section 15.7; 004, "Checking it without trusting it".

Idea: what a simulation has to show is what was measured. Each quantity of a case is one event of the ledger,
`sample.recorded`, with its values or how often each came; the rows beside it are statistics of these, which a
verifier works out again. Sizes are smaller than when a lesson is replayed, so that a bundle stays readable.

Always true:
  FS1. The protocol file is written before the run and never after.
  FS2. Lesson, seed and package version alone decide the bytes, apart from `environment.json` and the digests
       over it; `libraries` depends on the versions of the libraries besides.
  FS3. A row follows from the samples beside it (`lessons.measured`).

Not here: the simulations (`lessons.backoff`, ...), the form of a bundle (`prove.bundle`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codeai_lab import __version__
from codeai_lab.clock import ManualClock
from codeai_lab.decide.backoff import Strategy
from codeai_lab.decide.samples import Sample
from codeai_lab.explore.contention import STUDIED
from codeai_lab.lessons.amplification import LAYERED
from codeai_lab.lessons.backoff import RETRIES, SEED, backoff_measured
from codeai_lab.lessons.contention import contention_measured
from codeai_lab.lessons.duplicates import duplicates_measured, usual_cases
from codeai_lab.lessons.freezing import results
from codeai_lab.lessons.libraries import libraries_measured
from codeai_lab.lessons.library_catalogue import CATALOGUE
from codeai_lab.lessons.measured import Measured, Progress
from codeai_lab.lessons.overload import (
    hedging_measured,
    layers_measured,
    overload_measured,
    throttling_measured,
)
from codeai_lab.lessons.overload_cases import CASES as OVERLOADED
from codeai_lab.prove.bundle import describe, environment, freeze
from codeai_lab.records import EventDraft
from codeai_lab.run.runtime import counted_ids
from codeai_lab.store.ledger import DuckDBLedger

PRODUCER = f"codeai_lab {__version__}"
RULES = "sampled"  # no rule set of the runtime takes part
STARTED_AT_US = 1_796_083_200_000_000  # 2026-12-01; no clock is read
NO_WORLD = (
    "What was measured, value by value or as how often each came, is in the ledger; there is no world here."
)
LIMITS = (
    "That a closed form or a parameter in a row is right: the verifier works out what was sampled, no more."
)
CONTENDING = (10, 50, 100)
MEASURES: Mapping[str, Callable[..., list[Measured]]] = {
    "backoff": partial(backoff_measured, clients=200),
    "contention": partial(contention_measured, clients=CONTENDING, runs=50),
    "overload": overload_measured,
    "layers": layers_measured,
    "throttling": throttling_measured,
    "hedging": partial(hedging_measured, requests=100_000),
    "duplicates": partial(duplicates_measured, trials=100_000),
    "libraries": libraries_measured,
}
QUESTIONS: Mapping[str, str] = {
    "backoff": "How long is the wait, in theory and in a sample?",
    "contention": "What do calls and time come to when so many clients change one row?",
    "overload": "Does the server recover, and when?",
    "layers": "How many calls reach the bottom?",
    "throttling": "How much load does the backend see when clients throttle themselves?",
    "hedging": "What does a second request cost, and what does it spare?",
    "duplicates": "How often does the effect happen, and how often twice?",
    "libraries": "How long does a library really wait, and how well is a crowd spread?",
}


def freeze_samples(
    lesson: str, to: Path, *, notebook: Path | None = None, progress: Progress | None = None
) -> str:
    """Measure a lesson and write the bundle `to`; give the bundle's digest.

    Args:
        lesson: a name of `MEASURES`.
        to: the folder that becomes the bundle; missing or empty.
        notebook: an executed notebook to put into it.

    Raises: BundleError (definite) when `to` is taken; nothing is left behind then.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        protocol_file, ledger_file = Path(scratch) / "protocol.json", Path(scratch) / "lab.duckdb"
        protocol_file.write_text(json.dumps(protocol(lesson)), encoding="utf-8")
        planned = json.loads(protocol_file.read_text(encoding="utf-8"))
        measured = MEASURES[lesson](seed=planned["seed"], progress=progress)
        journal = _recorded(lesson, measured, ledger_file)
        return freeze(
            to,
            protocol=planned,
            ledger=journal,
            world=Path(scratch) / "world",
            results=results(
                lesson,
                RULES,
                [{**one.row, "case": one.case, "evidence_label": "pinned run"} for one in measured],
            ),
            environment=environment(*(_driven() if lesson == "libraries" else ())),
            readme=describe(planned, producer=PRODUCER, world=NO_WORLD, limits=LIMITS),
            producer=PRODUCER,
            notebook=notebook,
        )


def protocol(lesson: str) -> dict[str, Any]:
    """Write down which cases will be measured, before they are; nothing is asked for in any of them."""
    nothing = {"requests": 0, "statuses": [], "reused_from": [], "raised": [], "effects_world": 0}
    return {
        "format": "codeai-lab-protocol-v1",
        "lesson": lesson,
        "revision": RULES,
        "seed": SEED,
        "ledger_id": f"{lesson}/{RULES}",
        "cases": [
            {
                "case": case,
                "question": QUESTIONS[lesson],
                "requests": [],
                "marked": [],
                "expected": nothing,
            }
            for case in _cases(lesson)
        ],
    }


def _driven() -> list[str]:
    """Name the libraries whose loops are driven: their versions decide what is measured."""
    return sorted({entry.library for entry in CATALOGUE if entry.drive is not None})


def _cases(lesson: str) -> list[str]:
    """Name the cases of a lesson, in the order in which they are measured."""
    match lesson:
        case "backoff":
            return [f"{strategy}-{n}" for strategy in Strategy for n in range(1, RETRIES + 1)]
        case "contention":
            return [f"{strategy}-{clients}" for clients in CONTENDING for strategy in STUDIED]
        case "overload":
            return list(OVERLOADED)
        case "layers":
            return list(LAYERED)
        case "throttling":
            return ["k-2", "k-1.5", "k-1.1"]
        case "hedging":
            return ["after-0.5", "after-1", "after-3"]
        case "duplicates":
            return [case.name for case in usual_cases()]
        case _:
            return [entry.case for entry in CATALOGUE]


def _recorded(lesson: str, measured: Sequence[Measured], file: Path) -> Path:
    """Write what was measured into a ledger, a case at a time, and give its journal."""
    if [one.case for one in measured] != _cases(lesson):
        raise AssertionError("what was measured is not what was planned")
    ids = counted_ids("sample")
    with DuckDBLedger(
        file, ledger_id=f"{lesson}/{RULES}", clock=ManualClock(start_us=STARTED_AT_US)
    ) as ledger:
        for one in measured:
            drafts = [_draft(lesson, one.case, name, sample, ids()) for name, sample in one.samples.items()]
            if drafts:
                ledger.append(*drafts)
        return ledger.journal


def _draft(lesson: str, case: str, quantity: str, sample: Sample, event_id: str) -> EventDraft:
    return EventDraft(
        event_id=event_id,
        run_id=f"{lesson}/{case}",
        stream_id=case,
        kind="sample.recorded",
        actor_id="sampler",
        idempotency_key=None,
        recorded_at_us=STARTED_AT_US,
        causation_id=None,
        payload={"case": case, "quantity": quantity, **sample.recorded()},
    )
