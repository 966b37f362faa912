"""When may a program repeat work without duplicating an effect?

The front door: the names that a reader of the chapters types, each loaded when it is first used, so that
`import codeai_lab` costs nothing and reaches for no database, no plot and no widget.

Read the source in the order of a request's way: `records`, `decide.identity`, `decide.authority`,
`run.stages`, `run.acting`, `run.revisions`, `run.walk`, `run.runtime`, `store.core`,
`decide.projection`, `decide.witnesses`, `prove.verify`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "canonical": ("canonical_bytes", "digest"),
    "clock": ("ManualClock", "SystemClock"),
    "errors": ("IdempotencyConflictError", "LabError"),
    "records": (
        "ActionRequest", "ActionResult", "ActionStatus", "CallRequest", "CallResult", "EffectState", "Event",
        "NextOperation",
    ),
    "decide.authority": ("NO_AUTHORITY", "Authority", "Grant", "PolicyEngine"),
    "decide.identity": ("ACTION_FINGERPRINT_V1", "action_fingerprint"),
    "decide.projection": ("project_action_state", "project_key_state", "project_open_effects"),
    "decide.witnesses": ("hear",),
    "store.ledger": ("DuckDBLedger",),
    "store.memory": ("MemoryLedger",),
    "store.reader": ("LedgerReader",),
    "run.effects": ("LineAdapter", "MarkerWorld", "MovableState", "lost_acknowledgement", "raising"),
    "run.revisions": ("LAB", "REVISIONS", "Revision"),
    "run.runtime": ("Runtime", "counted_ids"),
    "run.walk": ("Walk",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"codeai_lab has no {name}")
    return getattr(import_module(f"codeai_lab.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
