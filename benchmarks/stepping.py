"""Does a stepper stay quick in a long run?

Chapter: 003, "Play the trace below".

Idea: a run of 500 states is stepped to its end, back to the beginning, and to the end again, as a browser
would ask for it: one message in, the widget's answer out, made into the bytes that travel. What is timed is
all that the kernel does for one press. The early steps of a run stand against the late ones of the same run.

Always true:
  ST1. A press is what a message from the browser does, its answer made into JSON included.
  ST2. Each of the three legs is measured: new states, going back, and states that are kept.

Not here: what the browser does with the answer (`tests/real`), which costs the kernel nothing.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from benchmarks.rounds import Row, Spread, judged
from codeai_lab.decide.stepping import Frame, MarkKind
from codeai_lab.show.steppers import Stepper, stepper

STATES = 500
SOME = 50
MOST_MS = 50.0
LEGS = ("stepping on", "going back", "stepping on again")


class LongRun:
    """A run of many states, each with eight facts, as a trajectory has them."""

    title = "A long run"

    def start(self) -> int:
        return 0

    def advance(self, state: int, choice: str | None = None) -> int:  # noqa: ARG002
        return state + 1

    def frame(self, state: int) -> Frame:
        return Frame(
            mark=f"step {state}",
            kind=MarkKind.CHECKPOINT if state % 5 == 0 else MarkKind.STEP,
            headline=f"Step {state} was taken, its result was validated, and the checkpoint was committed.",
            facts=tuple((f"fact {number}", f"value {number} of step {state}") for number in range(8)),
            is_over=state == STATES - 1,
            outcome={"steps": state} if state == STATES - 1 else {},
        )


class _Wire:
    """Takes what the widget sends and makes it into bytes, as a connection would."""

    comm_id = "benchmark"

    def __init__(self) -> None:
        self.bytes = 0

    def send(self, data: Any, **_: Any) -> None:
        self.bytes += len(json.dumps(data).encode())

    def on_msg(self, _: Any) -> None:
        """Hear nothing: the benchmark presses by itself."""


def stepping(*, rounds: int) -> list[Row]:
    """Step to the end, back, and to the end again; late steps against early ones, and the time of one."""
    ratios: dict[str, list[float]] = {leg: [] for leg in LEGS}
    slowest: list[float] = []
    for number in range(rounds + 1):
        for leg, times in _one_run().items():
            if number:  # the first round pays for warming up
                ratios[leg].append(statistics.median(times[-SOME:]) / statistics.median(times[:SOME]))
                slowest.append(sorted(times)[round(len(times) * 0.99) - 1])
    rows = [
        judged(f"{leg} in a run of {STATES} states: the last {SOME} steps / the first {SOME}",
               Spread.of(ratios[leg]), at_most=1.5)
        for leg in LEGS
    ]  # fmt: skip
    worst_ms = max(slowest) * 1e3
    return [
        *rows,
        Row(
            name="kernel time of one step, 99th percentile of the slowest leg",
            ratio=None,
            bound=f"<= {MOST_MS:g} ms",
            held=worst_ms <= MOST_MS,
            remark=f"{worst_ms:.2f} ms",
        ),
    ]


def _one_run() -> dict[str, list[float]]:
    widget = stepper(LongRun(), script=())
    widget.comm = wire = _Wire()
    presses = dict(zip(LEGS, ("step", "back", "step"), strict=True))
    times = {leg: [_timed(widget, press) for _ in range(STATES - 1)] for leg, press in presses.items()}
    assert widget.model.frame.is_over
    assert wire.bytes > 0
    return times


def _timed(widget: Stepper, press: str) -> float:
    begun = time.perf_counter()
    widget._handle_msg({"content": {"data": {"method": "custom", "content": {"do": press}}}, "buffers": []})
    return time.perf_counter() - begun
