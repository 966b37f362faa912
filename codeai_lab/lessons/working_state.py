"""Restart is not resume: what may be done after a process was killed in the middle of a model call?

Chapter: 004, "Where the cache stops": resume is refused except where the record proves that no effect could
have happened; run 2026-09-13-68f4ba0 of the chapter on working state.

Idea: a producer in a process of its own is killed where it stands, after one event or another, or while the
provider has its request and has not answered. Another process opens the ledger again, reads what was left,
and does what the case says next. How often the provider was asked is counted by the provider, in a process
and a log of its own.

    producer    events ... attempt.started ---> x killed
    provider                               ---> receipt
    afterwards  effect unknown: resuming is refused; a naive restart asks a second time

Always true:
  WL1. Every kill is a real one (SIGKILL; where there is none, what the system has instead).
  WL2. `receipts` are the provider's, `events` the ledger's; reading the state adds to neither.
  WL3. Ids, clock and the ledger's name are the same on every play, and so are the journal's bytes.

Not here: killing at every boundary of an action (that is a sweep of its own).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import PolicyEngine
from codeai_lab.decide.workstate import WorkState, events_of_work, project_work_state
from codeai_lab.records import ActionStatus
from codeai_lab.run.callwalk import CallAnswer, Settings, Work
from codeai_lab.run.child import attached, say, started
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import Line, ProviderProcess, Transport, receipts
from codeai_lab.run.resuming import reinterpret_call, resume_call
from codeai_lab.run.runtime import counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.protocol import Ledger

LESSON = "working-state"
STARTED_AT_US = 1_789_257_600_000_000  # 2026-09-13, the day of the chapter's run
COLUMNS = (
    "case", "stage", "provider_effect", "next_operation", "duplicate_risk", "receipts", "events",
    "then", "outcome", "receipts_after", "events_after",
)  # fmt: skip
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """One case.

    Args:
        after: the event after which the producer is killed; None where it comes to its end.
        answered: False where it goes on to ask from there, is held by the provider and killed while it waits.
        required: the context that the task cannot do without.
        then: what the next process does; None where it only reads.
        model: what that process has configured.
    """

    name: str
    after: str | None = None
    answered: bool = True
    required: tuple[str, ...] = ("chapter",)
    then: str | None = None
    model: str = Settings().requested_model


CASES = (
    Killed(name="clean-complete"),
    Killed(name="compilation-failed", required=("chapter", "source")),
    Killed(name="killed-during-compilation", after="context.compilation_requested"),
    Killed(name="killed-after-manifest", after="call.manifest", then="resume"),
    Killed(name="killed-after-manifest-drift", after="call.manifest", then="resume", model="model-large"),
    Killed(name="killed-during-effect", after="attempt.started", answered=False, then="resume"),
    Killed(
        name="killed-during-effect-naive-restart", after="attempt.started", answered=False,
        then="naive-restart",
    ),
    Killed(name="killed-after-observation", after="attempt.observed", then="reinterpret"),
)  # fmt: skip

QUESTIONS = {
    "clean-complete": "Nobody is killed: what does a whole chain leave?",
    "compilation-failed": "The task cannot do without an item that nobody offered.",
    "killed-during-compilation": "The process dies before its context is compiled.",
    "killed-after-manifest": "It dies with the call recorded as intended; the next process resumes it.",
    "killed-after-manifest-drift": "The same, but the next process is configured with another model.",
    "killed-during-effect": "It dies while the provider has its request; the next process asks to resume.",
    "killed-during-effect-naive-restart": "The same, but the next process does not consult the record.",
    "killed-after-observation": "It dies with the answer on record and unread.",
}
NEW_CALLS = {"resume": "resumed", "naive-restart": "again"}  # how the next process names a call of its own

# By hand, from the published run; what is not in its table is what the next process of this lesson does.
_UNKNOWN = ("effect_unknown", "unknown", "reconcile_effect", True, 1, 8)
_MANIFEST = ("manifest_recorded", "none", "start_call", False, 0, 7)
EXPECTED = tuple(
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("clean-complete", "completed", "observed", "none", False, 1, 14, None, None, 1, 14),
        ("compilation-failed", None, None, "fix_inputs", None, 0, 5, None, None, 0, 5),
        ("killed-during-compilation", None, None, "recompile", None, 0, 4, None, None, 0, 4),
        ("killed-after-manifest", *_MANIFEST, "resume", "succeeded", 1, 17),
        ("killed-after-manifest-drift", *_MANIFEST, "resume", "refused: request_body_hash", 0, 7),
        ("killed-during-effect", *_UNKNOWN, "resume", "refused: reconcile_effect", 1, 8),
        ("killed-during-effect-naive-restart", *_UNKNOWN, "naive-restart", "succeeded", 2, 22),
        (
            "killed-after-observation", "observed", "observed", "reinterpret", False, 1, 9,
            "reinterpret", "succeeded", 1, 14,
        ),
    )
)  # fmt: skip


def rows(progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play the eight cases in a scratch folder and give their rows, in order, as `replay --json` has them.

    Args:
        progress: is told (case, cases done, cases in all) before each case.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        return play(Path(scratch), progress=progress)


def play(folder: Path, *, progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play the eight cases in an empty folder, which keeps the ledger and the provider's logs."""
    played = []
    for place, case in enumerate(CASES):
        if progress is not None:
            progress(case.name, place, len(CASES))
        played.append(_play(case, folder))
    return played


def _play(case: Killed, folder: Path) -> dict[str, Any]:
    ledger_file, log = folder / "lab.duckdb", folder / f"{case.name}.receipts.jsonl"
    with ProviderProcess(log, hold=0 if case.answered else 1) as provider:
        _let_a_producer_die(case, ledger_file, provider)
        with DuckDBLedger(ledger_file) as ledger:
            state = _read(case, ledger)
            seen = {"receipts": len(receipts(log)), "events": _events(case, ledger)}
            answer = _go_on(case, ledger, provider.line)
            after = {"receipts_after": len(receipts(log)), "events_after": _events(case, ledger)}
    return {
        "case": case.name,
        "stage": state.stage and str(state.stage),
        "provider_effect": state.provider_effect and str(state.provider_effect),
        "next_operation": str(state.next_operation),
        "duplicate_risk": state.duplicate_risk,
        **seen,
        "then": case.then,
        "outcome": None if answer is None else _outcome(answer),
        **after,
    }


# --- the process that is killed -------------------------------------------------------------------------


def _let_a_producer_die(case: Killed, ledger_file: Path, provider: ProviderProcess) -> None:
    """Run the case's producer in a child process and kill it where the case says."""
    program = "import sys; from codeai_lab.lessons.working_state import produce; produce(*sys.argv[1:])"
    with started("-c", program, case.name, str(ledger_file), str(provider.line.port)) as child:
        try:
            if child.stdout is None or child.stdout.readline() != "stands\n":
                raise RuntimeError(f"the producer of {case.name} ended before its time")
            if not case.answered:
                provider.wait_until_held()
            if case.after is not None:
                child.kill()
        except BaseException:
            child.kill()  # before the folder that it works in is removed
            raise
    if (child.returncode == 0) is not (case.after is None):
        raise RuntimeError(f"the producer of {case.name} ended in another way than it should")


def produce(name: str, ledger_file: str, port: str) -> None:
    """Be the producer of a case: walk, say where the walk stands, and wait there to be killed."""
    case = next(case for case in CASES if case.name == name)
    clock = ManualClock(start_us=STARTED_AT_US)
    with attached() as let_go, DuckDBLedger(ledger_file, ledger_id=LESSON, clock=clock) as ledger:
        walk = open_work(_bench(case, ledger, "producer"), _work(case), Line(int(port)))
        while not walk.is_over:
            walk.step()
            if ledger.read(walk.facts.stream)[-1].kind == case.after:
                break
        say("stands")
        if not case.answered:
            walk.run()
        if not walk.is_over:
            let_go.wait()  # only when whoever should have killed it is gone


# --- the process that comes afterwards ------------------------------------------------------------------


def _read(case: Killed, ledger: Ledger) -> WorkState:
    return project_work_state(events_of_work(ledger.find(_work(case).idempotency_key), _work(case).work_id))


def _go_on(case: Killed, ledger: Ledger, transport: Transport) -> CallAnswer | None:
    """Do what the case says next, as the process that found the ledger."""
    bench, work = _bench(case, ledger, "successor"), _work(case)
    if case.then == "resume":
        return resume_call(
            bench,
            work.call_id,
            as_call_id=f"{work.call_id}-{NEW_CALLS[case.then]}",
            transport=transport,
            settings=Settings(requested_model=case.model),
        )
    if case.then == "reinterpret":
        return reinterpret_call(bench, work.call_id)
    if case.then == "naive-restart":  # the same work from its beginning, the record not consulted
        name = NEW_CALLS[case.then]
        again = replace(work, work_id=f"{work.work_id}-{name}", call_id=f"{work.call_id}-{name}")
        return open_work(bench, again, transport).run()
    return None


def _outcome(answer: CallAnswer) -> str:
    if answer.status is not ActionStatus.REFUSED:
        return str(answer.status)
    return f"refused: {', '.join(answer.differs) or answer.next_operation}"


def _events(case: Killed, ledger: Ledger) -> int:
    return sum(event.run_id == f"{LESSON}/{case.name}" for event in ledger.read_all())


def _work(case: Killed) -> Work:
    return Work(
        work_id=f"{case.name}-work",
        call_id=f"{case.name}-call",
        idempotency_key=f"{case.name}-key",
        directive="say what the chapter claims",
        prompt="Name the claim that the chapter rests on.",
        offered={"chapter": "One key, one effect; an unknown effect is asked about and never repeated."},
        required=case.required,
    )


def _bench(case: Killed, ledger: Ledger, who: str) -> Bench:
    started_us = STARTED_AT_US + CASES.index(case) * 60_000_000 + (30_000_000 if who == "successor" else 0)
    return Bench(
        ledger=ledger,
        clock=ManualClock(start_us=started_us, tick_us=1_000),
        new_id=counted_ids(f"{case.name}-{who}"),
        policy=PolicyEngine(),
        rules="lab",
        run_id=f"{LESSON}/{case.name}",
        actor_id=who,
    )
