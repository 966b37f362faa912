"""What does a ledger say, while somebody else may be writing to it?

Chapter: 004, "The line that may already be there": the question to ask first is what the record establishes.

Idea: `inspect` reads along, without a lock and without changing a byte, and shows each action's status and
effect state apart. `restore` writes back what a journal has lost.

Always true:
  LG1. `inspect` creates nothing, not even beside a ledger that is not there.
  LG2. A damaged line is a finding and is named by its number.

Not here: reading and repairing (`store.reader`, `store.restore`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codeai_lab.cli.printing import print_json, print_table, progress
from codeai_lab.errors import LedgerDamagedError

if TYPE_CHECKING:
    from codeai_lab.records import Event


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
@click.option("--unknown", is_flag=True, help="Only the actions whose effect the record leaves unknown.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(ledger: Path, unknown: bool, as_json: bool) -> None:
    """Show what LEDGER records of each action; it may be in use.

    Every line is read and its chain followed. An action that is in progress in the writing process looks
    unknown from outside.
    """
    from codeai_lab.store.reader import LedgerReader

    reader = LedgerReader(ledger)
    try:
        with progress(f"read {ledger.name}") as advance:
            events = []
            for event in reader.read_all():
                events.append(event)
                if event.seq % 10_000 == 0:
                    advance("", event.seq, 0)
    except LedgerDamagedError as error:
        click.echo(f"codeai-lab: {error}", err=True)
        raise click.exceptions.Exit(1) from None
    actions = actions_of(events)
    shown = [action for action in actions if not unknown or action["effect_state"] == "unknown"]
    found = {
        "ledger_id": reader.ledger_id,
        "events": len(events),
        "unknown": sum(action["effect_state"] == "unknown" for action in actions),
        "actions": shown,
    }
    if as_json:
        print_json(found)
        return
    click.echo(
        f"{ledger.name}: ledger {reader.ledger_id}, {len(events)} events, {found['unknown']} unknown effects"
    )
    if shown:
        head = ("action_id", "idempotency_key", "status", "effect_state", "next_operation", "reused_from")
        print_table("", head, [[action[name] for name in head] for action in shown])


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
def restore(ledger: Path) -> None:
    """Write acknowledged lines that LEDGER's journal has lost back from its index."""
    from codeai_lab.store.restore import restore as write_back

    count = write_back(ledger)
    click.echo(
        f"{count} events were written back into the journal." if count else "The journal lacks nothing."
    )


def actions_of(events: list[Event]) -> list[dict[str, Any]]:
    """Project every action of a ledger, in the order of the requests."""
    from codeai_lab.decide.projection import project_action_state

    streams: dict[str, list[Event]] = {}
    for event in events:
        if event.kind.startswith("action."):
            streams.setdefault(event.stream_id, []).append(event)
    actions = []
    for history in streams.values():
        state = project_action_state(history)
        actions.append(
            {
                "action_id": state.action_id,
                "idempotency_key": history[0].idempotency_key,
                "status": state.refused if state.status is None else str(state.status),
                "effect_state": str(state.effect_state),
                "next_operation": str(state.next_operation),
                "started": state.started,
                "reused_from": state.reused_from_action_id,
            }
        )
    return actions
