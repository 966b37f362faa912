"""What does a key change when the answer to a write is lost?

Chapter: 003, "Make repeated writes idempotent".

Idea: a film is added to a watchlist, and the answer is lost, so many times. With the key the service keeps
its retries to one entry; without it there is an entry for every attempt. Entries are counted in the service's
own log, in a process of its own. Two rules for what a service keeps are played side by side: the draft's, and
the chapter's.

    retries   with the key   without
       1            1            2
       5            1            6

Always true:
  WA1. Attempts, entries and what the service took each request for are read from its log; `answers` is what
       the harness heard.
  WA2. The rules differ in one case: an error is replayed under the draft, and runs anew under the chapter's.

Not here: what is done where nobody answers at all (`lessons.watchlist_recoveries`); the service and the
harness (`run.watchlist_service`, `run.watchlist`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.decide.idempotency_key import Rule
from codeai_lab.records import ActionRequest
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.watchlist import CAPABILITY, KEY, Attempts, Caller, WatchlistAdapter
from codeai_lab.run.watchlist_line import WatchlistLine, WatchlistProcess
from codeai_lab.run.watchlist_log import answers_in, entry_count
from codeai_lab.run.watchlist_service import Fault, FaultKind
from codeai_lab.store.memory import MemoryLedger

FILM, OTHER_FILM = "eternal-sunshine-of-the-spotless-mind", "ex-machina"
RETRIES = (1, 2, 3, 4, 5)
MAY_ADD = Authority.of(CAPABILITY)
ASKED: dict[str, tuple[tuple[str | None, str], ...]] = {
    "key-missing": ((None, FILM),),
    "other-payload": (("a", FILM), ("a", OTHER_FILM)),
    "concurrent": (("b", FILM), ("b", FILM), ("b", FILM)),
    "success-again": (("c", FILM), ("c", FILM)),
    "error-again": (("d", FILM), ("d", FILM)),
}
COLUMNS = ("case", "rule", "with_key", "retries", "attempts", "entries", "answers", "service")
Progress = Callable[[str, int, int], None]


def _expected_lost(rule: Rule, with_key: bool, retries: int) -> tuple[Any, ...]:
    entries = 1 if with_key else retries + 1
    service = ["run", *(["replay"] * retries)] if with_key else ["run"] * (retries + 1)
    answers = [*(["no answer"] * retries), "201"]
    return ("response-lost", str(rule), with_key, retries, retries + 1, entries, answers, service)


# By hand: the last case is the one in which the two rules part.
_TABLE: dict[Rule, tuple[tuple[Any, ...], ...]] = {
    rule: (
        ("key-missing", str(rule), False, None, 1, 0, ["400"], ["key_missing"]),
        ("other-payload", str(rule), True, None, 2, 1, ["201", "422"], ["run", "key_reused"]),
        (
            "concurrent", str(rule), True, None, 3, 1,
            ["201", "409", "201"], ["run", "outstanding", "replay"],
        ),
        ("success-again", str(rule), True, None, 2, 1, ["201", "201"], ["run", "replay"]),
        ("error-again", str(rule), True, None, 2, entries, ["500", second], ["run", taken_for]),
    )
    for rule, entries, second, taken_for in (
        (Rule.DRAFT, 0, "500", "replay"), (Rule.CHAPTER, 1, "201", "run"),
    )
}  # fmt: skip
EXPECTED: tuple[dict[str, Any], ...] = tuple(
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        *(
            _expected_lost(rule, key, retries)
            for rule in Rule
            for key in (True, False)
            for retries in RETRIES
        ),
        *_TABLE[Rule.DRAFT],
        *_TABLE[Rule.CHAPTER],
    )
)


def rows(progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play every case in a scratch folder and give its rows, in order, as `replay --json` has them.

    Args:
        progress: is told (what is played, how many parts are done, of how many) before each part.
    """
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        return play(Path(scratch), progress=progress)


def play(folder: Path, *, progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play every case in an empty folder, which keeps the services' logs."""
    parts = [(rule, with_key) for rule in Rule for with_key in (True, False)]
    played: list[dict[str, Any]] = []
    for done, (rule, with_key) in enumerate(parts):
        _tell(progress, f"response-lost, {rule}", done, len(parts) + len(Rule))
        played += _lost(folder / f"{rule}-{'key' if with_key else 'no-key'}", rule, with_key=with_key)
    for done, rule in enumerate(Rule, start=len(parts)):
        _tell(progress, f"the draft's table, {rule}", done, len(parts) + len(Rule))
        played += _table(folder / f"{rule}-table", rule)
    return played


# --- the answer is lost ---------------------------------------------------------------------------------


def _lost(folder: Path, rule: Rule, *, with_key: bool) -> Iterator[dict[str, Any]]:
    """Play 1 to 5 retries at one service; each is the action of another request, under a key of its own."""
    plan, first = [], 1
    for retries in RETRIES:
        plan += [Fault(kind=FaultKind.LOST, request=number) for number in range(first, first + retries)]
        first += retries + 1
    with WatchlistProcess(folder, rule=rule, key_required=with_key, faults=plan) as service:
        runtime = runtime_of_memory()
        for retries in RETRIES:
            seen = _Seen.of(folder)
            adapter = harness(service.line, attempts=retries + 1, with_key=with_key)
            request = request_to_add(f"w{retries}", KEY.replace("42", str(41 + retries)))
            runtime.execute_action(request, authority=MAY_ADD, adapter=adapter)
            yield seen.row("response-lost", rule, with_key, retries, adapter.answers)


# --- the draft's table ----------------------------------------------------------------------------------


def _table(folder: Path, rule: Rule) -> Iterator[dict[str, Any]]:
    """Ask one service what the draft speaks of, case after case; request 4 is held and request 9 fails."""
    faults = [Fault(kind=FaultKind.SLOW, request=4), Fault(kind=FaultKind.ERROR, request=9)]
    with WatchlistProcess(folder, rule=rule, faults=faults) as service:
        for case, asked in ASKED.items():
            seen = _Seen.of(folder)
            if case == "concurrent":
                answers = _concurrently(service)
            else:
                answers = [_ask(service.line, key, film) for key, film in asked]
            yield seen.row(case, rule, case != "key-missing", None, answers)


def _concurrently(service: WatchlistProcess) -> list[str]:
    """Ask while the same is under way, and once more when it is done."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_ask, service.line, "b", FILM)
        service.wait_until_held()
        second = _ask(service.line, "b", FILM)
        service.line.release(4)
        return [first.result(), second, _ask(service.line, "b", FILM)]


def _ask(line: WatchlistLine, key: str | None, film: str) -> str:
    return str(line.add({"film": film}, key=key).status)


# --- what all of them need ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was in a service's log before a case."""

    folder: Path
    requests: int
    entries: int

    @classmethod
    def of(cls, folder: Path) -> _Seen:
        return cls(folder, len(answers_in(folder)), entry_count(folder))

    def row(
        self, case: str, rule: Rule, with_key: bool, retries: int | None, answers: Sequence[str]
    ) -> dict[str, Any]:
        """Give the row of what came since."""
        service = answers_in(self.folder)[self.requests :]
        entries = entry_count(self.folder) - self.entries
        said = (case, str(rule), with_key, retries, len(service), entries, list(answers), service)
        return dict(zip(COLUMNS, said, strict=True))


def harness(
    line: WatchlistLine, *, attempts: int, with_key: bool, grants: int | None = None
) -> WatchlistAdapter:
    """Give the harness of a case; `grants` attempts are permitted, all of them where it is None."""
    asked = iter(range(grants)) if grants is not None else None

    def caller() -> Caller:
        permitted = asked is None or next(asked, None) is not None
        return Caller(performer="agent", authority=MAY_ADD if permitted else NO_AUTHORITY)

    bounds = Attempts(at_most=attempts)
    return WatchlistAdapter(line, attempts=bounds, caller=caller, clock=ManualClock(), with_key=with_key)


def runtime_of_memory() -> Runtime:
    """Give a runtime whose ledger, time and ids are the same on every run."""
    return Runtime(MemoryLedger(), clock=ManualClock(tick_us=1_000), new_id=counted_ids("event"))


def request_to_add(action_id: str, key: str) -> ActionRequest:
    """Give the logical action of every case, under its key."""
    return ActionRequest(
        action_id=action_id,
        idempotency_key=key,
        capability=CAPABILITY,
        instruction="add the film to the shared watchlist",
        payload={"film": FILM},
    )


def _tell(progress: Progress | None, name: str, done: int, of: int) -> None:
    if progress is not None:
        progress(name, done, of)
