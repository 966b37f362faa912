"""What may be said of a write that nobody answered, and what may be done about it?

Chapter: 003, "Make repeated writes idempotent", and its end: a later resume asks for authority again; 000,
definite and indefinite errors.

Idea: the harness asks within its bounds and gives up. The record then says unknown, and stays so until the
service is asked what there is under the key, which changes nothing. Permission is asked for again before each
attempt; where it is gone, no attempt is made, and what the earlier ones did is still unknown.

    asked ... no answer      failed/unknown
    looked up                effect_confirmed | no_effect_confirmed | still_unknown (no key)
    asked again              the record answers; the service is asked only where nothing was there

Always true:
  WV1. No row ends with more entries than attempts, and with the key none with more than one.
  WV2. What is claimed after the look-up is what the service says; without a key it stays unknown.
  WV3. A grant that is gone stops the next attempt; only what never started is denied with no effect.

Not here: retries that do get an answer (`lessons.watchlist`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.lessons.watchlist import MAY_ADD, harness, request_to_add, runtime_of_memory
from codeai_lab.records import ActionResult
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.watchlist import KEY, WatchlistLookup
from codeai_lab.run.watchlist_line import WatchlistProcess
from codeai_lab.run.watchlist_log import entry_count
from codeai_lab.run.watchlist_service import Fault

COLUMNS = (
    "case", "answers", "status", "effect_state", "entries",
    "verdict", "then_status", "then_effect_state", "entries_after",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One case.

    Args:
        attempts: how many the harness may make; faults: what goes wrong, by request number.
        killed: the service dies where request 1 is withheld, and is started anew.
        grants: so many attempts are permitted and then none; None: all of them.
        at_first, at_last: whether the runtime is shown a grant, when asked first and when asked again.
    """

    name: str
    attempts: int = 2
    faults: tuple[str, ...] = ()
    with_key: bool = True
    killed: bool = False
    grants: int | None = None
    at_first: bool = True
    at_last: bool = True


CASES = (
    Recovery(name="all-answers-lost", faults=("lost:1", "lost:2")),
    Recovery(name="all-answers-lost-without-key", faults=("lost:1", "lost:2"), with_key=False),
    Recovery(name="killed-after-the-commit", attempts=1, faults=("withheld:1",), killed=True),
    Recovery(name="revoked-after-a-lost-answer", faults=("lost:1",), grants=1, at_last=False),
    Recovery(name="revoked-before-the-first", grants=0, at_last=False),
    Recovery(name="never-permitted", grants=0, at_first=False, at_last=False),
    Recovery(name="answered-with-an-error", faults=("error:1",)),
)

# By hand. A status is history and stays what was reported; what the look-up found is the effect state.
_LOST_TWICE, _LOST = ["no answer", "no answer"], ["no answer"]
_OPEN = ("failed", "unknown")
_ROWS: tuple[tuple[Any, ...], ...] = (
    ("all-answers-lost", _LOST_TWICE, *_OPEN, 1, "effect_confirmed", "failed", "observed", 1),
    ("all-answers-lost-without-key", _LOST_TWICE, *_OPEN, 2, "still_unknown", *_OPEN, 2),
    ("killed-after-the-commit", _LOST, *_OPEN, 1, "effect_confirmed", "failed", "observed", 1),
    ("revoked-after-a-lost-answer", _LOST, *_OPEN, 1, "effect_confirmed", "denied", "none", 1),
    ("revoked-before-the-first", [], *_OPEN, 0, "no_effect_confirmed", "denied", "none", 0),
    ("never-permitted", [], "denied", "none", 0, None, "denied", "none", 0),
    ("answered-with-an-error", ["500"], *_OPEN, 0, "no_effect_confirmed", *_OPEN, 0),
)
EXPECTED = tuple(dict(zip(COLUMNS, row, strict=True)) for row in _ROWS)


def rows() -> list[dict[str, Any]]:
    """Play every case in a scratch folder and give its rows, in order."""
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        return [_recover(case, Path(scratch) / case.name) for case in CASES]


def _recover(case: Recovery, folder: Path) -> dict[str, Any]:
    """Ask, look up what the record leaves open, and ask under the same key again."""
    faults = [Fault.parse(text) for text in case.faults]
    runtime = runtime_of_memory()
    with ExitStack() as open_until_the_end:
        service = WatchlistProcess(folder, key_required=case.with_key, faults=faults)
        open_until_the_end.enter_context(service)
        adapter = harness(service.line, attempts=case.attempts, with_key=case.with_key, grants=case.grants)

        def ask(action_id: str, *, permitted: bool) -> ActionResult:
            authority = MAY_ADD if permitted else NO_AUTHORITY
            return runtime.execute_action(
                request_to_add(action_id, KEY), authority=authority, adapter=adapter
            )

        if case.killed:
            with ThreadPoolExecutor(1) as pool:
                asked = pool.submit(ask, "w1", permitted=case.at_first)
                service.wait_until_held()
                service.kill()
                first = asked.result()
            service = open_until_the_end.enter_context(WatchlistProcess(folder))
        else:
            first = ask("w1", permitted=case.at_first)
        answers, entries = list(adapter.answers), entry_count(folder)
        lookup = WatchlistLookup(line=service.line, key=KEY if case.with_key else None)
        judged = runtime.reconcile_action("w1", authority=Authority.of(RECONCILE), effect_lookup=lookup)
        then = ask("w2", permitted=case.at_last)
        said: Sequence[Any] = (
            case.name, answers, str(first.status), str(first.effect_state), entries,
            judged.verdict, str(then.status), str(then.effect_state), entry_count(folder),
        )  # fmt: skip
    return dict(zip(COLUMNS, said, strict=True))
