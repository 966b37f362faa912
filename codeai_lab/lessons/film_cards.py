"""What goes wrong when a kind of state is mishandled, and which run shows it?

Chapter: 003, "Separate state by purpose and lifetime": the table's last column.

Idea: each of the four kinds has its own failure, and each is shown by two runs over the same story: one in
which the kind of state was lost or trusted, one in which it was kept and judged.

    request   the intent drifts         the request is guessed anew          read from checkpoint v1
    working   work is repeated          an answer is all that was saved      a checkpoint was saved
    evidence  the answer loses support  a source is revoked in between       the source is still permitted
    memory    old claims steer          an old taste stands in the request   a memory is named by its id

Always true:
  CM1. Every card's rows come from runs, made when the card is asked for; the notes hold their numbers.
  CM2. A note is computed from the record of its run.

Not here: how a card looks (`show.cards`), what a memory may do (`decide.memory`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.recovery import Policy
from codeai_lab.decide.states import Criterion
from codeai_lab.lessons.failure_modes import FailureMode
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_saved import saved_rows
from codeai_lab.lessons.rows import row_of
from codeai_lab.records import Event
from codeai_lab.run.films import FILMS
from codeai_lab.run.sources import may_read
from codeai_lab.store.memory import MemoryLedger

GUESSED = Criterion(name="action", terms=("attack*", "fight*", "hunt*", "kill*", "gun*", "chase*"))


def mishandled_states(story: Story = STORY) -> tuple[FailureMode, ...]:
    """Make the runs and give the four failure modes with their rows."""
    kept = _run(story, "resume")
    return (
        FailureMode(
            name="Request state mishandled: the intent drifts",
            chapter_says="Goal, constraints and approvals last one trajectory; lost, the work drifts.",
            rule="Checkpoint v1 holds the request, and every later checkpoint links it.",
            run=(
                _row(_run(replace(story, request=_guessed(story)), "resume"), "request-guessed", _recommends),
                _row(kept, "request-recorded", _recommends),
            ),
        ),
        FailureMode(
            name="Working state mishandled: work is repeated or skipped",
            chapter_says="Without plan and node status nothing says what is complete and what may run next.",
            rule="A checkpoint connects plan, node status and budget; recorded state decides what may run.",
            run=tuple(_saved_row(row, kept) for row in saved_rows(story) if row["saved"] != "transcript"),
        ),
        FailureMode(
            name="Evidence state mishandled: the answer loses support",
            chapter_says="Evidence lives as long as the result must be verified, under the policy of today.",
            rule="Saved evidence is judged anew before it is used; withheld, its branch is open again.",
            run=(
                _row(_run(story, "resume", revoked=True), "source-revoked", _support),
                _row(kept, "source-permitted", _support),
            ),
        ),
        FailureMode(
            name="Durable memory mishandled: old claims steer later work",
            chapter_says="Old, private or poisoned memory changes later work; the request outranks it.",
            rule="A trajectory names a memory by its id and holds nothing of it; the request decides.",
            run=(
                _row(_run(replace(story, request=_guessed(story)), "resume"), "memory-trusted", _recommends),
                _row(_run(replace(story, memory_refs=("memory-7",)), "resume"), "memory-named", _recommends),
            ),
        ),
    )


def _run(story: Story, policy: str, *, revoked: bool = False) -> tuple[Event, ...]:
    """Run a story to its failure and on; with `revoked`, the first verified source is not permitted then."""
    ledger = MemoryLedger()
    run = Play(story, policy, ledger)
    run.to_the_failure()
    run = Play(story, policy, ledger, process="later", authority=_without_first(run) if revoked else None)
    run.recover()
    return run.events


def _without_first(run: Play) -> Authority:
    first = run.harness.state(run.name).evidence.items[0].film_id
    return may_read(film.film_id for film in FILMS if film.film_id != first)


def _guessed(story: Story) -> Any:
    return replace(story.request, criterion=GUESSED)


def _row(events: Sequence[Event], case: str, note: Any) -> dict[str, Any]:
    row = row_of(events, (), summary=0, case=case, revision=str(Policy.RESUME))
    return {**row, "notes": [note(events)]}


def _saved_row(saved: dict[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    note = f"{saved['repeated_calls']} calls are repeated; what was saved lacks {len(saved['lacks'])} links."
    return _row(events, f"saved-{saved['saved']}", lambda _: note)


def _recommends(events: Sequence[Event]) -> str:
    started, completed = events[0].payload, events[-1].payload
    criterion = started["request"]["criterion"]["name"]
    return f"By {criterion}, this run recommends: {completed['recommendation']}."


def _support(events: Sequence[Event]) -> str:
    withheld = [event.payload["source_id"] for event in events if event.kind == "evidence.withheld"]
    completed = events[-1].payload
    return f"Withheld: {', '.join(withheld) or 'nothing'}; the answer is {completed['status']}."
