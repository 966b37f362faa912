"""Which of RIFL's four problems does the chapter's path solve, and which does an atomic record solve?

Chapter: 004, "Retry, replay, duplicate", "What this is not", and "Where it is still weak" 2 and 5.

Idea: RIFL names four problems that every mechanism of this kind must solve. Each gets a card: what is asked,
what the ledger's path does, what an effect service does that keeps effect and record in one transaction, runs
of both with their numbers, and where it ends.

Always true:
  RF1. Every row, and every line of `answers`, comes from a run made when the card is asked for.
  RF2. Every card has a limit, and where a run can show it, one does.

Not here: how a card looks (`show.cards`); the runs (`lessons.two_paths`, `lessons.service_deaths`).
Sources: RIFL (SOSP 2015); Birrell and Nelson (1984).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.service_deaths import died_at, effect_outside
from codeai_lab.lessons.two_paths import (
    JUDGE,
    KEY,
    LEASE_US,
    Stand,
    ask_service,
    collected,
    late_walk,
    race,
    row_over,
    service_in,
    two_ledgers,
)
from codeai_lab.run.effects import MarkerWorld, WorldLookup
from codeai_lab.run.revisions import LAB, R_1B3C7A2
from codeai_lab.store.effect_service import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One of RIFL's problems, shaped as a failure mode is, so that a card can show it.

    Args:
        chapter_says: what RIFL asks for, and what the chapter says of it.
        ledger_path, effect_service: what each of the two does about it.
        limit: where both end.
        run: rows of three witnesses; `answers`: what the effect service said, a line a request.
    """

    name: str
    chapter_says: str
    ledger_path: str
    effect_service: str
    limit: str
    run: tuple[dict[str, Any], ...]
    answers: tuple[dict[str, Any], ...]
    evidence_label: str = "demo"

    @property
    def rule(self) -> str:
        """Say in one paragraph what stops it, and how far."""
        return (
            f"On the ledger's path: {self.ledger_path} At the effect service: {self.effect_service} "
            f"The limit: {self.limit}"
        )


def problems(folder: Path, *, progress: Callable[[str, int, int], None] | None = None) -> tuple[Problem, ...]:
    """Run what shows the four problems, in an empty or missing folder, and give their cards.

    Args:
        progress: is told the name of each problem before it is run, how many are done, and of how many.

    Raises: RefusedRequestError for a folder in use.
    """
    if folder.exists() and any(folder.iterdir()):
        raise RefusedRequestError(f"The folder {folder.name} is not empty; the runs need an empty one.")
    cards = (identification, completion_durability, retry_rendezvous, garbage_collection)
    given = []
    for done, card in enumerate(cards):
        if progress is not None:
            progress(card.__name__.replace("_", " "), done, len(cards))
        place = folder / card.__name__
        place.mkdir(parents=True, exist_ok=True)
        given.append(card(place))
    return tuple(given)


def identification(folder: Path) -> Problem:
    """Run a retry under its own key, under a fresh one, and another operation under a used one."""
    same, fresh, other = (Stand(LAB, MarkerWorld(folder / name)) for name in ("same", "fresh", "other"))
    same.ask("a1", KEY)
    same.ask("a2", KEY)
    fresh.ask("f1", KEY)
    fresh.ask("f2", "c1/2")
    other.ask("o1", KEY)
    other.ask("o2", KEY, line="another line")
    with service_in(folder) as service:
        client = service.open_client(lease_us=LEASE_US)
        answers = (
            ask_service(service, client, 1),
            ask_service(service, client, 1),
            ask_service(service, client, 1, line="another line"),
            ask_service(service, client, 2),
        )
    return Problem(
        name="Identification",
        chapter_says=(
            "Every request needs a name that its retries share: RIFL takes the client's lease and a number "
            "that the client counts up. A key that is looked up is that part alone, one quarter of RIFL."
        ),
        ledger_path=(
            "the caller's key names the intended effect, and a fingerprint holds it to one operation, which "
            "has no counterpart in RIFL."
        ),
        effect_service="the client's id and number; they are trusted, whatever comes with them.",
        limit=(
            "neither sees through a fresh name for an old effect; and where the name alone is compared, "
            "another operation under a used one is answered with the first one's result and is not done."
        ),
        run=(
            row_over("the-same-key", same),
            row_over("a-fresh-key", fresh),
            row_over("another-operation", other),
        ),
        answers=answers,
    )


def completion_durability(folder: Path) -> Problem:
    """Let the process die between effect and record: in a file, in one transaction, and outside of it."""
    repeating = Stand(R_1B3C7A2, MarkerWorld(folder / "repeating"))
    repeating.die_after_effect("d1", KEY)
    repeating.ask("d2", KEY)

    world = MarkerWorld(folder / "reconciled")
    reconciled = Stand(LAB, world)
    reconciled.die_after_effect("d1", KEY)
    reconciled.ask("d2", KEY)
    reconciled.runtime.reconcile_action("d1", authority=JUDGE, effect_lookup=WorldLookup(world))
    reconciled.ask("d3", KEY)

    with service_in(folder) as service:
        service.open_client(lease_us=LEASE_US)
        atomic = Stand(R_1B3C7A2, service)
        atomic.die_after_effect("d1", KEY)
        atomic.ask("d2", KEY)
        kept_together = row_over("died-after-effect, effect service", atomic)

    return Problem(
        name="Completion durability",
        chapter_says=(
            "The record of the result must come into being with the effect: neither visible without the "
            "other. This atomicity is what a file beside a ledger cannot provide."
        ),
        ledger_path=(
            "the start is recorded before the effect and the completion after it; what dies in between is "
            "unknown, and under lab it is reconciled instead of repeated."
        ),
        effect_service=(
            "one transaction writes both, so the retry is answered from the record, even under rules that "
            "act again. Whoever gets an answer knows of one effect; whoever gets an exception knows of none "
            "or one, and learns which by asking again under the same id."
        ),
        limit=(
            "only what lives in the service's own file is held together; a file that is written while the "
            "transaction is open stays when the transaction does not, and is written again."
        ),
        run=(
            row_over("died-after-effect", repeating),
            row_over("died-after-effect, reconciled", reconciled),
            kept_together,
            effect_outside(folder),
        ),
        answers=died_at(folder),
    )


def retry_rendezvous(folder: Path) -> Problem:
    """Let the loser of a race ask, wait, and lose its authority; let a walk come late; use two ledgers."""
    rows = [
        race(folder, "no-wait", waits=False),
        race(folder, "wait"),
        race(folder, "wait, authority ends", authority_ends=True),
        late_walk(folder, "late", fenced=False),
        late_walk(folder, "late, fenced", fenced=True),
    ]
    told: list[dict[str, Any]] = []

    def ask_meanwhile(point: Point) -> None:
        if point is Point.TAKEN and not told:
            told.append(ask_service(service, "c1", 1))

    rows.append(two_ledgers("two-ledgers", MarkerWorld(folder / "two-ledgers")))
    with service_in(folder, "shared") as shared:
        shared.open_client(lease_us=LEASE_US)
        rows.append(two_ledgers("two-ledgers, effect service", shared))
    with service_in(folder, "asked", watch=ask_meanwhile) as service:
        service.open_client(lease_us=LEASE_US)
        answers = [ask_service(service, "c1", 1)]
        answers.append(ask_service(service, "c1", 1))
    return Problem(
        name="Retry rendezvous",
        chapter_says=(
            "A retry must find the record of the first try, wherever it arrives: RIFL keeps the record with "
            "an object that the request touches, and both move together."
        ),
        ledger_path=(
            "all requests of a key meet in one ledger. The loser is told that it is in progress, or waits "
            "and is judged again; a walk that was taken for dead carries a fencing number, and an effect "
            "that checks it turns the late one away."
        ),
        effect_service=(
            "the record lies with the effect, so that retries through different ledgers meet there; while a "
            "request is under way the same id is told so, and is neither run nor queued."
        ),
        limit=(
            "a ledger is one file with one writer, and nothing moves; two ledgers do not know of each other. "
            "An answer from the service's record looks like an effect to the second ledger, and together "
            "they claim one too many. A wait ends by its deadline, and what it waited for may still happen."
        ),
        run=tuple(rows),
        answers=(*told, *answers),
    )


def garbage_collection(folder: Path) -> Problem:
    """Acknowledge, let a lease run out, collect, and come back through a ledger that knows nothing."""
    growing = Stand(LAB, MarkerWorld(folder / "growing"))
    for number in (1, 2, 3):
        growing.ask(f"g{number}", f"c1/{number}", line=f"line {number}")
        growing.ask(f"g{number}-again", f"c1/{number}", line=f"line {number}")
    rows = [row_over("nothing-is-dropped", growing)]
    records = rows[0]["event_kinds"].count("action.completed")
    rows[0]["notes"].append(f"the ledger keeps {records} completion records and drops none")
    rows.append(two_ledgers("ledger-lost", MarkerWorld(folder / "lost")))
    with service_in(folder, "acknowledged") as service:
        service.open_client(lease_us=LEASE_US)
        lost = "ledger-lost, acknowledged at the service"
        rows.append(two_ledgers(lost, service, between=lambda: service.acknowledge("c1", up_to=1)))
    return Problem(
        name="Garbage collection",
        chapter_says=(
            "Records must go at some time, and only when no retry can come: the client says up to where it "
            "has its answers, and the lease of one that is gone runs out. Completion records accumulate in "
            "the chapter's path; nothing there reclaims them."
        ),
        ledger_path="nothing is dropped; every outcome can be replayed for as long as the ledger lives.",
        effect_service=(
            "what is acknowledged is dropped, and so is all of a client whose lease is over. Dropping is an "
            "event: the number answers stale from then on, which is an error and no effect; the log's row "
            "stays."
        ),
        limit=(
            "an acknowledgement is the client's word: one that is given too early loses the result, not the "
            "effect. Stale says that it was acknowledged, and not what came of it. A lease that ends early "
            "costs a living client its answers. Only records are reclaimed; the log goes on growing."
        ),
        run=tuple(rows),
        answers=collected(folder),
    )
