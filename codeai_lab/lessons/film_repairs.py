"""A query is wrong in several places. Who repairs it, and when does the trying end?

Chapter: 003, "Retry only operations that can be repeated safely": the SQL tool returns its error to the
model, the query changes, and after three failures the node remains unresolved.

Idea: one wrong question to the film corpus, put to a real database, and three that revise it: one reads the
error, one changes what does not matter, one says again what it said. Each has a ledger of its own, in which
every attempt is on record with the database's own words.

Always true:
  RR1. The errors are DuckDB's; nothing here makes one up.
  RR2. However the loop ends, it has called at most once and as often as repairs are allowed.

Not here: the loop (`run.repairing`), the database (`store.film_sql`), a trajectory's own repairs
(`run.turns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import PolicyEngine
from codeai_lab.decide.repair import LIMITS, Limits
from codeai_lab.lessons.film_play import LESSON, STARTED_AT_US
from codeai_lab.records import Event
from codeai_lab.run.facts import Bench
from codeai_lab.run.films import FILMS
from codeai_lab.run.repairing import Resolution, Revise, Task, resolve
from codeai_lab.run.revisers import change_nothing_that_matters, mend_spelling, say_it_again
from codeai_lab.run.runtime import counted_ids
from codeai_lab.store.film_sql import FilmDatabase
from codeai_lab.store.memory import MemoryLedger

NODE = "memory-film"
WRONG = "SELECT titel FROM film JOIN themes USING (film_id) WERE theme = 'memory loss' ORDER BY year LIMIT 1"
REVISERS: Mapping[str, Revise] = {
    "reads the error": mend_spelling,
    "changes what does not matter": change_nothing_that_matters,
    "says it again": say_it_again,
}


def repaired(
    query: str = WRONG, revise: Revise = mend_spelling, *, limits: Limits = LIMITS
) -> tuple[Resolution, tuple[Event, ...]]:
    """Put a query to the corpus and have it revised within the limits; give the end and the record."""
    ledger = MemoryLedger()
    bench = Bench(
        ledger=ledger,
        clock=ManualClock(start_us=STARTED_AT_US, tick_us=1_000),
        new_id=counted_ids("repair"),
        policy=PolicyEngine(),
        rules="film",
        run_id=f"{LESSON}/repair",
        actor_id="harness",
    )
    with FilmDatabase(map(asdict, FILMS)) as films:
        task = Task(
            node=NODE,
            tool="film_sql",
            arguments={"query": query},
            call=lambda _, arguments: films.ask(arguments["query"]),
            revise=revise,
            limits=limits,
            other_routes=("lexical_search",),
            may_ask=True,
        )
        ended = resolve(bench, task)
    return ended, ledger.read(NODE)


def repair_rows(query: str = WRONG) -> list[dict[str, Any]]:
    """Have the query revised by each of the three; one row for each."""
    rows = []
    for name, revise in REVISERS.items():
        ended, events = repaired(query, revise)
        kinds = [event.kind for event in events]
        problems = [event.payload["problem"]["kind"] for event in events if event.kind == "node.call_failed"]
        rows.append(
            {
                "reviser": name,
                "errors": problems,
                "refused": kinds.count("repair.refused"),
                "calls": len(problems) + kinds.count("node.answered"),
                "ended": str(ended.status),
                "because": ended.how or ended.reason,
                "answer": None if ended.answer is None else ended.answer["rows"],
                "ways_on": [str(way) for way in ended.ways],
            }
        )
    return rows
