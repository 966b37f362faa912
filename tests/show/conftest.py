"""Made-up rows, ledger lines and receipts, as small as the laws need them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import matplotlib.figure
import pytest

from codeai_lab.show.shown import Shown

Row = dict[str, Any]
Line = dict[str, Any]


def _row(case: str, revision: str, statuses: list[str | None], **given: Any) -> Row:
    none = [None] * len(statuses)
    row = {
        "case": case,
        "revision": revision,
        "requests": len(statuses),
        "statuses": statuses,
        "reused_from": none,
        "raised": none,
        "effects_ledger": [0, 0],
        "effects_world": 0,
        "labels": none,
        "event_kinds": [],
        "evidence_label": "demo",
        "provider_calls": 0,
        "notes": [],
    } | given
    return {"effects_summary": row["effects_world"]} | row


@pytest.fixture
def make_row() -> Callable[..., Row]:
    """Make a row of three witnesses that agree on no effect, unless told otherwise."""
    return _row


@pytest.fixture
def rows() -> list[Row]:
    """Give three cases under two rule sets: a replay that became a denial, an unknown effect, a duplicate."""
    twice = ["succeeded", "succeeded"]
    known, unknown = (
        {"effects_ledger": [1, 1], "effects_world": 1},
        {"effects_ledger": [0, 1], "effects_world": 1},
    )
    doubled = {"effects_ledger": [0, 2], "effects_world": 2, "labels": ["unknown", "duplicate"]}
    replayed = {"reused_from": [None, "d1"], "labels": ["unknown", "replay"]}
    return [
        _row("B-no-authority", "7a0d43b", twice, **known, reused_from=[None, "b1"], labels=[None, "replay"]),
        _row("D-crash-gap", "7a0d43b", ["failed", "failed"], **unknown, **replayed),
        _row("D-fresh-key", "7a0d43b", ["failed", "failed"], **doubled),
        _row("B-no-authority", "lab", ["succeeded", "denied"], **known, labels=[None, "denied"]),
        _row("D-crash-gap", "lab", ["failed", "failed"], **unknown, **replayed),
        _row("D-fresh-key", "lab", ["failed", "failed"], **doubled),
    ]


class Drawing:
    """Draws a picture one time for all tests that look at it; its figure is not to be changed.

    The PNG is left out: it takes as long as the SVG and is looked at by the tests of `show.shown` alone.
    """

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[Shown, matplotlib.figure.Figure]] = {}

    def __call__(self, draw: Callable[..., Shown], *what: Any, **how: Any) -> Shown:
        return self._once(draw, what, how)[0]

    def figure(self, draw: Callable[..., Shown], *what: Any, **how: Any) -> matplotlib.figure.Figure:
        return self._once(draw, what, how)[1]

    def again(self, draw: Callable[..., Shown], *what: Any, **how: Any) -> Shown:
        """Draw anew, whatever was drawn before."""
        return _drawn(draw, what, how)[0]

    def _once(
        self, draw: Callable[..., Shown], what: tuple[Any, ...], how: dict[str, Any]
    ) -> tuple[Shown, matplotlib.figure.Figure]:
        asked = json.dumps([draw.__module__, draw.__qualname__, what, how], sort_keys=True)
        if asked not in self._drawn:
            self._drawn[asked] = _drawn(draw, what, how)
        return self._drawn[asked]


def _drawn(
    draw: Callable[..., Shown], what: tuple[Any, ...], how: dict[str, Any]
) -> tuple[Shown, matplotlib.figure.Figure]:
    """Draw, and keep hold of the figure as it is when it is shown."""
    kept: list[matplotlib.figure.Figure] = []
    save = matplotlib.figure.Figure.savefig

    def save_svg(figure: matplotlib.figure.Figure, to: Any, *, format: str, **given: Any) -> None:
        if format == "svg":
            save(figure, to, format=format, **given)

    module: Any = sys.modules[draw.__module__]
    show = module.show_figure
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(matplotlib.figure.Figure, "savefig", save_svg)
        patched.setattr(module, "show_figure", lambda fig, **given: kept.append(fig) or show(fig, **given))
        value = draw(*what, **how)
    return value, kept[-1]


@pytest.fixture(scope="session")
def drawing() -> Drawing:
    return Drawing()


class Record:
    """Writes ledger lines and receipts in the order in which they are called for."""

    def __init__(self, rules: str) -> None:
        self.rules = rules
        self.events: list[Line] = []
        self.receipts: list[Line] = []

    def line(
        self, kind: str, stream: str, key: str | None = "K", batch: tuple[int, int] = (1, 1), **payload: Any
    ) -> None:
        seq = len(self.events) + 1
        self.events.append(
            {"seq": seq, "event_id": f"e{seq}", "run_id": "retry-effects/X", "stream_id": stream,
             "kind": kind, "idempotency_key": key, "recorded_at_us": seq, "payload": payload,
             "batch": list(batch)}
        )  # fmt: skip

    def request(self, stream: str, key: str = "K", batch: tuple[int, int] = (1, 1)) -> None:
        named = {
            "action_id": stream,
            "capability": "file.append",
            "instruction": "append a line",
            "rules": self.rules,
        }
        self.line("action.requested", stream, key, batch, **named)

    def start(self, stream: str, batch: tuple[int, int] = (1, 1)) -> None:
        self.line("action.execution_started", stream, "K", batch, action_id=stream)

    def complete(
        self, stream: str, status: str = "succeeded", batch: tuple[int, int] = (1, 1), **payload: Any
    ) -> None:
        given = {"effect_possible": True, "error": None, "reused_from_action_id": None} | payload
        self.line("action.completed", stream, "K", batch, action_id=stream, status=status, **given)

    def replay(self, stream: str, original: str) -> None:
        self.complete(stream, effect_possible=False, reused_from_action_id=original)

    def effect(self, stream: str, what: str = "one line") -> None:
        n = len(self.receipts) + 1
        self.receipts.append({"n": n, "action_id": stream, "marker": f"{n:04d}.txt", "effect": what})


@pytest.fixture
def record() -> Callable[[str], Record]:
    """Give a fresh record under the named rules."""
    return Record
