"""Is a killed writer's ledger taken over by another process without a second effect?

A warm process opens nothing and forks a child for each round, so that a kill costs no new interpreter. The
child asks for one effect after the other under `lab`; it is killed at a moment that nobody chose. This
process then opens the ledger for writing, finds what is left open, asks the world, and asks for all again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.projection import project_open_effects
from codeai_lab.records import ActionRequest, ActionResult, NextOperation
from codeai_lab.run.effects import LineAdapter, MarkerWorld, WorldLookup
from codeai_lab.run.reconciling import RECONCILE, Reconciliation
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.restore import check

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.timeout(110),
]

LANES = 2
LEDGERS = 10
TAKEOVERS = 10  # of each ledger
KEYS = 6  # that a child is told to ask for
ACT = Authority.of("file.append")
JUDGE = Authority.of(RECONCILE)

WARM = """
import json, os, random, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import duckdb
from codeai_lab.decide.authority import Authority
from codeai_lab.records import ActionRequest
from codeai_lab.run import effects
from codeai_lab.run.effects import LineAdapter, MarkerWorld
from codeai_lab.run.runtime import Runtime
from codeai_lab.store import core
from codeai_lab.store.ledger import DuckDBLedger

ACT = Authority.of("file.append")

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def request(key, number):
    return ActionRequest(action_id=f"{key}.{number}", idempotency_key=key, capability="file.append",
                         instruction="append a line", payload={"line": key})

def asking(folder, keys, threads, seed):
    # Ask for one effect after the other, each saying before and after that it does.
    core.FLUSH_AT = 8
    draw = random.Random(seed)
    ledger = DuckDBLedger(folder / "lab.duckdb")
    world = MarkerWorld(folder / "world")
    say("open")
    def ask(key):
        # The pauses of a slow effect, so that a kill falls around it as often as into the ledger.
        before, after = draw.uniform(0, 0.002), draw.uniform(0, 0.002)
        adapter = LineAdapter(world, before=lambda: time.sleep(before), after=lambda: time.sleep(after))
        say("asks", key)
        result = Runtime(ledger).execute_action(request(key, 1), authority=ACT, adapter=adapter)
        say("told", key, result.status)
    if threads == 1:
        for key in keys:
            ask(key)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(ask, keys))
    say("done")
    signal.pause()

def stopping(folder, line):
    # Die before the so-many-th line of the effect system's own code.
    adapter, seen = LineAdapter(MarkerWorld(folder / "world")), [0]
    def trace(frame, event, _):
        if frame.f_code.co_filename != effects.__file__:
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    sys.settrace(trace)
    adapter.execute(request("k", 1))
    sys.settrace(None)
    say("done")
    signal.pause()

SCENES = {"asking": asking, "stopping": stopping}
say("ready")
for told in sys.stdin:
    scene, folder, *rest = json.loads(told)
    child = os.fork()
    if not child:
        try:
            SCENES[scene](Path(folder), *rest)
        except BaseException as error:
            say("failed", repr(error))
        os._exit(1)
    say("forked", child)
    say("gone", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Warm:
    """The process that forks, and what it and its children say."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._mouth: IO[str] = process.stdin
        self._ears: IO[str] = process.stdout
        assert self.hear() == ["ready"]

    def hear(self) -> list[str]:
        return self._ears.readline().split()

    def killed(self, scene: str, folder: Path, *rest: Any, words: int, pause_s: float) -> list[list[str]]:
        """Let a child play a scene, kill it so long after its so-many-th word, and give what was said."""
        self._mouth.write(json.dumps([scene, str(folder), *rest]) + "\n")
        self._mouth.flush()
        said: list[list[str]] = []
        child = None
        while child is None or (len(said) < words and (not said or said[-1][0] not in ("done", "gone"))):
            word = self.hear()
            if word[0] == "forked":
                child = int(word[1])
            else:
                said.append(word)
        if said[-1:] != [["gone", "-9"]]:
            time.sleep(pause_s)
            os.kill(child, signal.SIGKILL)
            while not said or said[-1][0] != "gone":
                said.append(self.hear())
        assert said[-1] == ["gone", "-9"], said
        assert not [word for word in said if word[0] == "failed"], said
        return said[:-1]


@pytest.fixture(scope="module")
def warm() -> Iterator[tuple[Warm, ...]]:
    """Give two processes that fork, so that one lane runs while the other waits for the disk."""
    with ExitStack() as stack:
        command = [sys.executable, "-c", WARM]
        started = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(LANES)
        ]
        yield tuple(map(Warm, started))


class Successor:
    """The process that takes over: a ledger opened for writing, and the world that it asks."""

    def __init__(self, folder: Path, name: str) -> None:
        self.ledger = DuckDBLedger(folder / "lab.duckdb")
        self.world = MarkerWorld(folder / "world")
        self._runtime = Runtime(self.ledger, new_id=counted_ids(name))
        self._new_id = counted_ids(f"by-{name}")

    def orphans(self) -> list[str]:
        return [state.action_id for state in project_open_effects(self.ledger.read_all())]

    def reconcile(self, action_id: str) -> Reconciliation:
        lookup = WorldLookup(self.world)
        return self._runtime.reconcile_action(action_id, authority=JUDGE, effect_lookup=lookup)

    def ask(self, key: str) -> ActionResult:
        """Ask for the effect of a key with the same meaning, under a new action id."""
        request = ActionRequest(
            action_id=self._new_id(), idempotency_key=key, capability="file.append",
            instruction="append a line", payload={"line": key},
        )  # fmt: skip
        return self._runtime.execute_action(request, authority=ACT, adapter=LineAdapter(self.world))


def effects(folder: Path) -> Counter[str]:
    """Count the markers of each key, from the marker files alone."""
    return Counter(marker.read_text().strip() for marker in (folder / "world" / "markers").glob("*"))


def take_over(folder: Path, name: str, keys: Sequence[str], told: Sequence[str]) -> list[str]:
    """Take over from a process that is gone and see that nothing happens twice; give the verdicts.

    `told` are the keys whose outcome somebody was told.
    """
    successor = Successor(folder, name)
    with successor.ledger:
        verdicts: list[str] = []
        for orphan in successor.orphans():
            key = orphan.rpartition(".")[0]
            assert key in keys
            assert key not in told
            before = effects(folder)
            refused = successor.ask(key)
            assert (refused.status, refused.next_operation) == ("refused", NextOperation.RECONCILE_EFFECT)
            judged = successor.reconcile(orphan)
            assert effects(folder) == before
            assert judged.verdict == ("effect_confirmed" if before[key] else "no_effect_confirmed"), orphan
            assert len(judged.evidence) == before[key]
            verdicts.append(judged.verdict)
            again = successor.ask(key)
            assert again.status == ("reconciled" if before[key] else "succeeded")
        for key in keys:
            again = successor.ask(key)
            assert again.status in ("succeeded", "reconciled")
            assert again.reused_from_action_id is not None or key not in told
        assert successor.orphans() == []
        assert len(successor.world.receipts()) == successor.world.marker_count()
    return verdicts


def killed_and_taken_over(warm: Warm, folder: Path) -> Counter[str]:
    """Let the writers of one ledger be killed and taken over in turn; give the verdicts."""
    draw = random.Random(folder.name)
    asked: list[str] = []
    verdicts: Counter[str] = Counter()
    folder.mkdir()
    for turn in range(TAKEOVERS):
        keys = [f"k{turn}-{place}" for place in range(KEYS)]
        said = warm.killed(
            "asking", folder, keys, draw.choice((1, 1, 2)), draw.random(),
            words=draw.randint(0, 2 * KEYS), pause_s=draw.uniform(0, 0.006),
        )  # fmt: skip
        told = [word[1:] for word in said if word[0] == "told"]
        assert {status for _, status in told} <= {"succeeded"}
        verdicts.update(take_over(folder, f"s{turn}", keys, [key for key, _ in told]))
        asked += keys
        assert effects(folder) == Counter(asked)
    check(folder / "lab.duckdb")
    return verdicts


def test_a_hundred_killed_writers_leave_one_effect_for_each_key(
    warm: tuple[Warm, ...], tmp_path: Path
) -> None:
    """Killed at a random moment and taken over, ten times ten: each orphan is found and judged as the world
    says, what somebody was told stays so, and in the end each key has one marker.
    """

    def lane(number: int) -> Counter[str]:
        verdicts: Counter[str] = Counter()
        for place in range(number, LEDGERS, LANES):
            verdicts += killed_and_taken_over(warm[number], tmp_path / f"ledger-{place}")
        return verdicts

    with ThreadPoolExecutor(LANES) as pool:
        verdicts = sum(pool.map(lane, range(LANES)), Counter())
    assert min(verdicts["effect_confirmed"], verdicts["no_effect_confirmed"]) >= 5, verdicts


def test_an_effect_system_killed_at_any_line_answers_for_what_is_there(
    warm: tuple[Warm, ...], tmp_path: Path
) -> None:
    """F1: killed before each line of its own code, the world tells of an effect where its marker is, and of
    none where there is none; done again where it says none, there is one marker with one receipt.
    """
    request = ActionRequest(
        action_id="k.1", idempotency_key="k", capability="file.append", instruction="append a line",
        payload={"line": "k"},
    )  # fmt: skip
    wrong: list[tuple[int, str]] = []
    for line in range(1, 200):
        folder = tmp_path / str(line)
        folder.mkdir()
        said = warm[0].killed("stopping", folder, line, words=1, pause_s=0)
        world = MarkerWorld(folder / "world")
        found = WorldLookup(world).find({"action_id": request.action_id})
        markers = world.marker_count()
        if found is not None and len(found) != markers:
            wrong.append((line, f"{len(found)} found, {markers} there"))
        if found == ():
            LineAdapter(world).execute(request)
            if (world.marker_count(), len(world.receipts())) != (1, 1):
                wrong.append((line, f"{world.marker_count()} markers, {len(world.receipts())} receipts"))
        if said == [["done"]]:
            break
    assert said == [["done"]]
    assert line > 10
    assert wrong == []
