"""What does a ledger say, while somebody else may be writing to it?

Chapter: 004, "The line that may already be there": the question to ask first is what the record establishes.

Idea: `inspect` reads along, without a lock and without changing a byte, and shows each action's status and
effect state apart, in the words of its answer. `restore` writes back what a journal has lost.

Always true:
  LG1. `inspect` creates nothing, not even beside a ledger that is not there.
  LG2. A damaged line is a finding, named by its number; so is an index that knows more than the journal.
  LG3. Of a request that was answered from another's record, effect and next operation are that other's, as
       in its answer. What is counted as unknown is each effect once: that of the action which may have acted.

Not here: reading and repairing (`store.reader`, `store.restore`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.printing import print_json, print_table, progress
from codeai_lab.errors import IndexAheadError, LedgerDamagedError

if TYPE_CHECKING:
    from codeai_lab.decide.projection import ActionState
    from codeai_lab.records import EffectState, Event, NextOperation
    from codeai_lab.store.reader import LedgerReader

HEAD = (
    "action_id", "idempotency_key", "status", "reason", "effect_state", "next_operation", "reused_from",
)  # fmt: skip


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
@click.option("--unknown", is_flag=True, help="Only the actions whose effect the record leaves unknown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(ledger: Path, unknown: bool, as_json: bool) -> None:
    """Show what LEDGER records of each action; it may be in use.

    Every line is read, its chain followed, and the end compared with the index where no writer keeps it. An
    action that is in progress in the writing process looks unknown from outside.
    """
    from codeai_lab.store.reader import LedgerReader

    reader = LedgerReader(ledger)
    try:
        events, lost = _read(reader, ledger.name)
    except LedgerDamagedError as error:
        raise _finding(error) from None
    actions, open_effects = actions_of(events), unknown_among(events)
    shown = [action for action in actions if not unknown or action["action_id"] in open_effects]
    found = {
        "ledger_id": reader.ledger_id,
        "events": len(events),
        "unknown": len(open_effects),
        "lost": None if lost is None else {"first": lost.missing[0], "last": lost.missing[1]},
        "finding": None if lost is None else str(lost),
        "actions": shown,
    }
    if as_json:
        print_json(found)
    else:
        counted = f"{_number_of(len(events), 'event')}, {_number_of(len(open_effects), 'unknown effect')}"
        click.echo(f"{ledger.name}: ledger {reader.ledger_id}, {counted}")
        if shown:
            print_table("", HEAD, [[action[name] for name in HEAD] for action in shown])
    if lost is not None:
        raise _finding(lost)


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
def restore(ledger: Path) -> None:
    """Write acknowledged lines that LEDGER's journal has lost back from its index.

    Every line that the journal has is read first, and its chain followed.
    """
    from codeai_lab.store.restore import restore as write_back

    try:
        count = write_back(ledger)
    except LedgerDamagedError as error:
        raise _finding(error) from None
    written = "event was" if count == 1 else "events were"
    click.echo(
        f"{count} {written} written back into the journal."
        if count
        else "The journal lacks nothing, and every line of it fits the next."
    )


def actions_of(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Show every action of a ledger, in the order of the requests, as its answer would be worded now."""
    states = _states(events)
    by_key: dict[str, list[Event]] = {}
    for event in events:
        if event.idempotency_key is not None:
            by_key.setdefault(event.idempotency_key, []).append(event)
    holders: dict[str, str | None] = {}
    actions = []
    for request, state in states.values():
        key = request.idempotency_key or ""
        if state.refused is not None and key not in holders:
            holders[key] = _holder(by_key[key])
        effect, then = _as_answered(state, states, holders.get(key))
        actions.append(
            {
                "action_id": state.action_id,
                "idempotency_key": request.idempotency_key,
                "status": _status(state),
                "reason": state.refused,
                "effect_state": str(effect),
                "next_operation": str(then),
                "started": state.started,
                "reused_from": state.reused_from_action_id,
            }
        )
    return actions


def unknown_among(events: Sequence[Event]) -> set[str]:
    """Give the ids of the actions that may have acted and whose effect the record leaves unknown."""
    from codeai_lab.decide.projection import project_open_effects

    return {state.action_id for state in project_open_effects(events)}


def _read(reader: LedgerReader, name: str) -> tuple[list[Event], IndexAheadError | None]:
    """Read every event, and say what the index knows beyond them."""
    events = []
    mark = reader.index_mark()
    with progress(f"read {name}") as advance:
        for event in reader.read_all():
            events.append(event)
            if event.seq % 10_000 == 0:
                advance("", event.seq, 0)
    try:
        if mark is not None:
            reader.refuse_lost(mark, last_seq=len(events))
    except IndexAheadError as error:
        return events, error
    return events, None


def _states(events: Sequence[Event]) -> dict[str, tuple[Event, ActionState]]:
    """Project every action: its id -> its request and its state."""
    from codeai_lab.decide.projection import project_action_state

    streams: dict[str, list[Event]] = {}
    for event in events:
        if event.kind.startswith("action."):
            streams.setdefault(event.stream_id, []).append(event)
    return {name: (history[0], project_action_state(history)) for name, history in streams.items()}


def _holder(of_key: Sequence[Event]) -> str | None:
    from codeai_lab.decide.projection import project_key_state

    holder = project_key_state(of_key).holder
    return None if holder is None else holder.stream_id


def _status(state: ActionState) -> str | None:
    """Give the word of the answer: a refusal beside a live walk was told as in progress."""
    from codeai_lab.records import ActionStatus

    if state.refused is None:
        return None if state.status is None else str(state.status)
    return str(ActionStatus.IN_PROGRESS if state.refused == "in-progress" else ActionStatus.REFUSED)


def _as_answered(
    state: ActionState, states: Mapping[str, tuple[Event, ActionState]], holder: str | None
) -> tuple[EffectState, NextOperation]:
    """Give the effect that the answer speaks of, and what may be done next about it."""
    from codeai_lab.records import EffectState, NextOperation

    told = {"effect-unknown": NextOperation.RECONCILE_EFFECT, "in-progress": NextOperation.WAIT}
    reused = state.reused_from_action_id
    if reused is not None and reused in states:
        original = states[reused][1]
        return original.effect_state, original.next_operation
    if state.refused not in told:
        return state.effect_state, state.next_operation  # its own: a conflict is about another operation
    if holder is None:
        return EffectState.NONE, NextOperation.START  # the effect was found absent since
    original = states[holder][1]
    is_open = original.effect_state is EffectState.UNKNOWN
    return original.effect_state, told[state.refused] if is_open else original.next_operation


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _finding(error: LedgerDamagedError | IndexAheadError) -> click.exceptions.Exit:
    click.echo(f"codeai-lab: {error}", err=True)
    return click.exceptions.Exit(1)
