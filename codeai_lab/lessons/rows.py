"""What is the one unit of every table, figure and bundle?

Chapter: 004, "Checking it without trusting it".

Idea: a row. It names a case and a rule set, and puts beside one another what the caller was told, what the
ledger allows, what the world kept and what the producer counted.

Always true:
  RW1. Answers, bounds and labels are computed from ledger and world (`decide.witnesses`); only `raised` and
       the summary are the producer's word.

Not here: showing a row (`show.tables`), writing it into a bundle (`lessons.freezing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from codeai_lab.decide.witnesses import Receipt, hear
from codeai_lab.records import Event


def row_of(
    events: Sequence[Event],
    receipts: Sequence[Receipt],
    *,
    summary: int,
    case: str,
    revision: str,
    raised: Mapping[str, str] = MappingProxyType({}),
    evidence_label: str = "demo",
) -> dict[str, Any]:
    """Bring three witnesses into one row, the unit of every table, figure and bundle.

    Args:
        events: the events of one case, in order of seq; receipts: the world's own, in order of n.
        summary: the number of effects that the producer counted.
        raised: action or call id -> type name of the exception that reached the caller.
    """
    heard = hear(events, receipts, summary=summary)
    asked = [event.stream_id for event in events if event.kind in ("action.requested", "call.requested")]
    return {
        "case": case,
        "revision": revision,
        "requests": heard.requests,
        "statuses": list(heard.statuses),
        "reused_from": list(heard.reused_from),
        "raised": [raised.get(name) for name in asked],
        "effects_ledger": list(heard.effects_ledger),
        "effects_world": heard.effects_world,
        "effects_summary": heard.effects_summary,
        "labels": [None if label is None else str(label) for label in heard.labels],
        "event_kinds": [event.kind for event in events],
        "provider_calls": sum(event.kind == "attempt.observed" for event in events),
        "evidence_label": evidence_label,
        "notes": list(heard.disagreements),
    }
