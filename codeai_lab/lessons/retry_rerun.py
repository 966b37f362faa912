"""What did the pinned rerun measure, and what does each rule set give for it?

Chapter: 004, "Checking it without trusting it": eight cases, a frozen protocol, no fixes during the run.

Idea: six cases are asked one after the other. Two need more than one process or one thread, and say so: in
`reopen-replay` the second request is made by another process, in `concurrency-probe` two threads race for
each of three keys.

Always true:
  RR1. Six effects and six successes in the probe under every historical rule set, three effects under `lab`.
  RR2. Between the two requests of `reopen-replay` the ledger is closed, and its lock is free.

Not here: how threads are held in the window (`lessons.probe`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.errors import LabError
from codeai_lab.lessons.cases import Ask, Case, Expected, Lesson, under
from codeai_lab.lessons.playing import Table
from codeai_lab.lessons.probe import probe
from codeai_lab.run.child import SAFE, surroundings
from codeai_lab.run.revisions import revision_named
from codeai_lab.store.ledger import DuckDBLedger

LONGEST_START_S = 120
IN_ANOTHER_PROCESS = "from codeai_lab.lessons.retry_rerun import ask_here; ask_here()"


def reopen_between(table: Table, case: Case) -> None:
    """Ask once, close the ledger, let another process ask the rest, and open the ledger again (RR2).

    Raises: LabError when the other process could not ask.
    """
    first, *rest = case.asks
    table.ask(first)
    with table.away() as ledger:
        for ask in rest:
            told = _ask_elsewhere(
                ledger=str(ledger),
                world=str(table.world.folder),
                revision=table.revision.name,
                case=case.name,
                ask=ask.id,
                at_us=table.clock.now_us(),
            )
            table.effects_counted += told["effects"]
            table.raised |= told["raised"]
            table.notes.append(f"{ask.id} was asked by another process while this one had the ledger closed")


def ask_here() -> None:
    """Be the other process: open the ledger, make the request that standard input names, tell its result."""
    what = json.load(sys.stdin)
    case = next(case for case in RETRY_RERUN.cases if case.name == what["case"])
    with DuckDBLedger(what["ledger"]) as ledger:
        table = Table(
            RETRY_RERUN.name,
            case.name,
            revision_named(what["revision"]),
            ledger,
            ManualClock(start_us=what["at_us"]),
            Path(what["world"]),
            ids=what["ask"],
            actor_id="another-process",
        )
        table.ask(next(ask for ask in case.asks if ask.id == what["ask"]))
    print(json.dumps({"effects": table.effects_counted, "raised": table.raised}))


def _ask_elsewhere(**what: Any) -> dict[str, Any]:
    """Start another process for one request and give what it told."""
    try:
        done = subprocess.run(
            [sys.executable, SAFE, "-c", IN_ANOTHER_PROCESS],
            input=json.dumps(what),
            capture_output=True,
            text=True,
            env=surroundings(),
            timeout=LONGEST_START_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(
            f"The other process could not make its request ({type(error).__name__}); play the case again."
        ) from None
    return dict(json.loads(done.stdout))


RETRY_RERUN = Lesson(
    name="retry-rerun",
    chapter="004, Checking it without trusting it",
    question="What do the eight cases of the pinned rerun give?",
    cases=(
        Case(
            name="exact-duplicate",
            question="The identical request comes twice.",
            asks=(Ask(id="e1", key="ke"), Ask(id="e2", key="ke")),
            otherwise=Expected(
                statuses=("succeeded", "succeeded"), reused_from=(None, "e1"), effects_world=1
            ),
        ),
        Case(
            name="reopen-replay",
            question="The ledger is closed; another process opens it and makes the identical request.",
            asks=(Ask(id="r1", key="kr"), Ask(id="r2", key="kr")),
            otherwise=Expected(
                statuses=("succeeded", "succeeded"), reused_from=(None, "r1"), effects_world=1
            ),
            marked=("processes",),
            script=reopen_between,
        ),
        Case(
            name="fingerprint-collision",
            question="The key comes again with another instruction.",
            asks=(Ask(id="f1", key="kf"), Ask(id="f2", key="kf", instruction="remove the last line")),
            otherwise=Expected(
                statuses=("succeeded", None), raised=(None, "IdempotencyConflictError"), effects_world=1
            ),
            expected=under(
                "7a0d43b",
                gives=Expected(
                    statuses=("succeeded", "succeeded"), reused_from=(None, "f1"), effects_world=1
                ),
            ),
        ),
        Case(
            name="authority-change",
            question="The same request comes again from a caller who has lost its authority.",
            asks=(Ask(id="a1", key="ka"), Ask(id="a2", key="ka", permitted=False)),
            otherwise=Expected(statuses=("succeeded", "denied"), effects_world=1),
            expected=under(
                "7a0d43b",
                gives=Expected(
                    statuses=("succeeded", "succeeded"), reused_from=(None, "a1"), effects_world=1
                ),
            ),
        ),
        Case(
            name="precondition-drift",
            question="The world is no longer in the state that the request was planned against.",
            asks=(Ask(id="d1", key="kd", precondition="state-A", world="state-B"),),
            otherwise=Expected(statuses=("failed",), effects_world=0),
        ),
        Case(
            name="failed-replay",
            question="The adapter writes, then raises ConnectionError; the same key is tried again.",
            asks=(
                Ask(id="x1", key="kx", raises=ConnectionError),
                Ask(id="x2", key="kx", raises=ConnectionError),
            ),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "x1"), effects_world=1),
            expected=under(
                "7a0d43b",
                "a1b562a",
                gives=Expected(
                    statuses=(None, None), raised=("ConnectionError", "ConnectionError"), effects_world=2
                ),
            ),
        ),
        Case(
            name="crash-after-effect",
            question="The adapter writes, then raises RuntimeError; the same key is tried again.",
            asks=(
                Ask(id="c1", key="kc", raises=RuntimeError),
                Ask(id="c2", key="kc", raises=RuntimeError),
            ),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "c1"), effects_world=1),
        ),
        Case(
            name="concurrency-probe",
            question="Two threads submit one key at the same moment, three times, the window held open.",
            asks=tuple(
                Ask(id=f"p{run}{thread}", key=f"kp{run}", line=f"line {run}")
                for run in (1, 2, 3)
                for thread in ("a", "b")
            ),
            otherwise=Expected(statuses=("succeeded",) * 6, effects_world=6),
            expected=under("lab", gives=Expected(statuses=("succeeded", "in_progress") * 3, effects_world=3)),
            marked=("threads",),
            script=probe,
        ),
    ),
)
