"""A trajectory on a ledger file is really killed after every stage, and another process goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeai_lab.lessons.film_play import Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_rows import call_key
from codeai_lab.records import Event
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILD = Path(__file__).with_name("trajectory_child.py")
USUAL_CALLS = {"restart": 13, "resume": 9, "fallback": 9}


@pytest.fixture(scope="module")
def children() -> Iterator[subprocess.Popen[str]]:
    """Give the process that forks those that are killed."""
    with subprocess.Popen(
        [sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory where there is one: a kill spares what was written, flushed to disk or not."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


def kill_after(children: subprocess.Popen[str], ledger: Path, policy: str, steps: int) -> str:
    assert children.stdin is not None
    assert children.stdout is not None
    children.stdin.write(f"{ledger} {policy} {steps}\n")
    children.stdin.flush()
    return children.stdout.readline().strip()


@pytest.mark.parametrize("policy", USUAL_CALLS)
def test_killed_after_every_stage_and_resumed_in_another_process(
    policy: str, folder: Path, children: subprocess.Popen[str]
) -> None:
    """At every boundary verified work is kept, one call repeated at most, no verified branch run again."""
    # Up to the choice the three histories are one, so two of them need not be killed there again.
    steps, fate = 0 if policy == "resume" else steps_to_the_choice(), "killed"
    while fate == "killed":
        file = folder / f"{steps}.duckdb"
        fate = kill_after(children, file, policy, steps)
        assert fate in ("killed", "ended 0")
        with DuckDBLedger(file) as ledger:
            left = ledger.read(f"film-{policy}")
            play = Play(STORY, policy, ledger, process="successor")
            if play.harness.run(play.name) == "paused":
                play.recover()
            check(left, play.events, policy)
        steps += 1
    assert steps > steps_to_the_choice() + 20


def steps_to_the_choice() -> int:
    play = Play(STORY, "resume", MemoryLedger())
    walk = play.harness.walk(play.name)
    steps = 0
    while not walk.is_over:
        walk.step()
        steps += 1
    return steps


def check(left: tuple[Event, ...], events: tuple[Event, ...], policy: str) -> None:
    assert events[: len(left)] == left
    started = [event for event in events if event.kind == "call.started"]
    outcomes = [event for event in events if event.kind in ("call.succeeded", "call.failed")]
    answered = {event.payload["call_id"] for event in outcomes}
    unanswered = [call for call in started if call.payload["call_id"] not in answered]
    assert len(unanswered) <= 1
    assert len(started) == USUAL_CALLS[policy] + len(unanswered)
    assert events[-1].payload["recommendation"] == "Eternal Sunshine of the Spotless Mind"
    assert_verified_work_is_kept(left, events)
    assert_no_verified_branch_ran_again(events)


def assert_verified_work_is_kept(left: tuple[Event, ...], events: tuple[Event, ...]) -> None:
    """What was answered before the kill is not asked again, but by a restart, or where it had failed."""
    restarts = [event.seq for event in events if event.payload.get("policy") == "restart"]
    last = left[-1].seq if left else 0
    begins = max([seq for seq in restarts if seq <= last], default=0)
    ends = min([seq for seq in restarts if seq > last], default=events[-1].seq)
    succeeded = {event.payload["call_id"] for event in left if event.kind == "call.succeeded"}
    known = {
        call_key(event)
        for event in left
        if event.kind == "call.started" and event.seq > begins and event.payload["call_id"] in succeeded
    }
    for event in events[len(left) :]:
        if event.kind == "call.started" and event.seq < ends:
            assert call_key(event) not in known


def assert_no_verified_branch_ran_again(events: tuple[Event, ...]) -> None:
    verified: set[str] = set()
    for event in events:
        if event.kind == "checkpoint.committed":
            verified = {node for node, said in event.payload["node_status"].items() if said == "verified"}
        elif event.payload.get("policy") == "restart":
            verified = set()
        elif event.kind == "call.started":
            assert event.payload["node"] not in verified
