"""What does a notebook find in its next cell, when the one before it was interrupted?

One real kernel; each test has a ledger file and a world of its own in it. The stop button is pressed when the
cell is known to be where the test wants it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_kernel import LiveKernel, kernels, wait_for

from codeai_lab.decide.projection import project_open_effects
from codeai_lab.errors import LedgerInUseError
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader
from codeai_lab.store.restore import check

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the stop button is another one there"),
    pytest.mark.timeout(90),
]

SET_UP = """
import json, threading, time
from pathlib import Path
from codeai_lab import ActionRequest, Authority, DuckDBLedger, LineAdapter, MarkerWorld, Runtime
from codeai_lab import project_open_effects
from codeai_lab.records import EventDraft
from codeai_lab.run.effects import WorldLookup

folder = Path({folder!r})
ledger = DuckDBLedger(folder / "lab.duckdb")
world = MarkerWorld(folder / "world")
runtime = Runtime(ledger)

def ask(action_id, key="k", **waits):
    request = ActionRequest(action_id=action_id, idempotency_key=key, capability="file.append",
                            instruction="append a line", payload={{"line": key}})
    adapter = LineAdapter(world, **waits)
    result = runtime.execute_action(request, authority=Authority.of("file.append"), adapter=adapter)
    return [str(result.status), str(result.next_operation), adapter.calls, result.reused_from_action_id]

def reconcile(action_id):
    return runtime.reconcile_action(action_id, authority=Authority.of("effect.reconcile"),
                                    effect_lookup=WorldLookup(world))

def unknown():
    return [state.action_id for state in project_open_effects(ledger.read_all())]

def for_an_event():
    (folder / "waiting").touch()
    threading.Event().wait()

def asleep():
    (folder / "waiting").touch()
    time.sleep(300)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    with kernels(tmp_path_factory.mktemp("kernel") / "scratch") as (one,):
        yield one


@pytest.fixture
def folder(kernel: LiveKernel, tmp_path: Path) -> Iterator[Path]:
    """Give a folder with a ledger and a world, set up in the kernel."""
    assert kernel.run(SET_UP.format(folder=str(tmp_path))).error is None
    yield tmp_path
    assert kernel.run("ledger.close()").error is None
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:  # the kernel has let go of it, and it is whole
        assert ledger.notices == ()
        told = [event.event_id for event in ledger.read_all()]
        assert ledger.sql("SELECT seq, event_id FROM events ORDER BY seq").rows == tuple(
            enumerate(told, start=1)
        )
    assert check(tmp_path / "lab.duckdb").events == len(told)


def inspected(folder: Path) -> Any:
    """Give what `codeai-lab inspect` says of the ledger, from another process."""
    command = [sys.executable, "-m", "codeai_lab", "inspect", str(folder / "lab.duckdb"), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


def interrupted(kernel: LiveKernel, code: str, folder: Path) -> None:
    """Run a cell, press stop once it says that it waits, and see that this is what ends it."""
    (folder / "waiting").unlink(missing_ok=True)
    cell = kernel.start(code)
    wait_for((folder / "waiting").exists, "the cell waits")
    assert kernel.stop(cell).error == "KeyboardInterrupt"


@pytest.mark.parametrize("waits", ["for_an_event", "asleep"])
def test_a_cell_interrupted_after_its_effect_leaves_an_unknown_that_reconciles(
    kernel: LiveKernel, folder: Path, waits: str
) -> None:
    """The record says unknown, inside and from outside; the same key is refused and names what to do; the
    world confirms; the same key then gives `reconciled`: one marker.
    """
    interrupted(kernel, f"ask('a1', after={waits})", folder)

    (action,) = inspected(folder)["actions"]
    assert action == {
        "action_id": "a1", "idempotency_key": "k", "status": None, "effect_state": "unknown",
        "next_operation": "reconcile_effect", "started": True, "reused_from": None, "reason": None,
    }  # fmt: skip
    with pytest.raises(LedgerInUseError):
        DuckDBLedger(folder / "lab.duckdb")

    assert kernel.run("print(json.dumps([unknown(), ask('a2')]))").told() == [
        ["a1"],
        ["refused", "reconcile_effect", 0, None],
    ]
    verdict, evidence, *states = kernel.run(
        "judged = reconcile('a1')\n"
        "print(json.dumps([judged.verdict, judged.evidence, judged.effect_state, judged.next_operation]))"
    ).told()
    (marker,) = (folder / "world" / "markers").iterdir()
    assert (verdict, states) == ("effect_confirmed", ["observed", "none"])
    assert [(found["receipt"], found["marker"]) for found in evidence] == [(1, marker.name)]
    assert kernel.run("print(json.dumps([unknown(), ask('a3'), ask('a4')]))").told() == [
        [],
        ["reconciled", "none", 0, "a1"],
        ["reconciled", "none", 0, "a1"],
    ]
    assert [path.name for path in (folder / "world" / "markers").iterdir()] == [marker.name]
    assert inspected(folder)["unknown"] == 0


def test_a_cell_interrupted_before_its_effect_may_be_run_again_after_reconciling(
    kernel: LiveKernel, folder: Path
) -> None:
    """Nothing happened and the record cannot know it: refused, confirmed absent by the world, then the same
    key runs: one effect, and a replay of it from then on.
    """
    interrupted(kernel, "ask('a1', before=for_an_event)", folder)

    first = kernel.run("print(json.dumps([unknown(), ask('a2'), world.marker_count()]))").told()
    judged = kernel.run(
        "judged = reconcile('a1'); print(json.dumps([judged.verdict, judged.evidence]))"
    ).told()
    again = kernel.run("print(json.dumps([unknown(), ask('a3'), ask('a4'), world.marker_count()]))").told()

    assert first == [["a1"], ["refused", "reconcile_effect", 0, None], 0]
    assert judged == ["no_effect_confirmed", []]
    assert again == [[], ["succeeded", "none", 1, None], ["succeeded", "none", 0, "a3"], 1]


def test_the_same_cell_run_again_after_an_interrupt_has_one_effect(kernel: LiveKernel, folder: Path) -> None:
    """A reader runs the set-up cell again and the interrupted one again: the ledger is the same one, the walk
    is gone and not in progress, and only reconciling goes on.
    """
    interrupted(kernel, "ask('a1', after=asleep)", folder)
    assert kernel.run("first = ledger").error is None
    assert kernel.run(SET_UP.format(folder=str(folder))).error is None
    assert kernel.run("first.close()").error is None

    same_cell = kernel.run("ask('a1', after=asleep)")
    assert (same_cell.error, same_cell.message) == (
        "RefusedRequestError",
        "This action id belongs to an earlier request; give every request an id of its own.",
    )
    told = kernel.run(
        "print(json.dumps([unknown(), ask('a2'), reconcile('a1').verdict, ask('a3'), world.marker_count()]))"
    ).told()
    assert told == [
        ["a1"],
        ["refused", "reconcile_effect", 0, None],
        "effect_confirmed",
        ["reconciled", "none", 0, "a1"],
        1,
    ]


def test_interrupted_while_it_waits_for_somebody_elses_effect_nothing_is_lost(
    kernel: LiveKernel, folder: Path
) -> None:
    """A thread is inside the effect and the cell waits for its outcome: interrupted, the cell ends, the
    thread does not; its outcome is replayed later.
    """
    begun = (
        "from codeai_lab.clock import SystemClock\n"
        "from codeai_lab.run.waiting import waiting\n"
        "go = threading.Event()\n"
        "slow = threading.Thread(target=lambda: ask('a1', before=lambda: (entered.set(), go.wait(60))))\n"
        "entered = threading.Event()\n"
        "slow.start()\n"
        "assert entered.wait(30)\n"
        "def pause():\n"
        "    (folder / 'waiting').touch()\n"
        "    time.sleep(0.005)\n"
        "request = ActionRequest(action_id='a2', idempotency_key='k', capability='file.append',\n"
        "                        instruction='append a line', payload={'line': 'k'})\n"
        "wait = waiting(clock=SystemClock(), timeout_us=60_000_000, pause=pause)\n"
    )
    assert kernel.run(begun).error is None
    interrupted(
        kernel,
        "runtime.execute_action(request, authority=Authority.of('file.append'), adapter=LineAdapter(world),\n"
        "                       wait=wait)",
        folder,
    )

    told = kernel.run(
        "busy = [ask('a3'), reconcile('a1').refused]\n"
        "go.set(); slow.join(30)\n"
        "print(json.dumps([busy, unknown(), ask('a4'), world.marker_count()]))"
    ).told()

    assert told == [
        [["in_progress", "wait", 0, None], "in-progress"],
        [],
        ["succeeded", "none", 0, "a1"],
        1,
    ]


def test_after_an_interrupted_query_the_next_cell_works(kernel: LiveKernel, folder: Path) -> None:
    """Three times in the middle of a long SELECT: KeyboardInterrupt, and both SQL and appending go on."""
    endless = "ledger.sql('SELECT sum(a.range * b.range % 7) FROM range(2000000) a, range(2000000) b')"
    for number in range(1, 4):
        before_s = kernel.used_s()
        cell = kernel.start(endless)
        wait_for(lambda since=before_s: kernel.used_s() > since + 0.1, "the query is being answered")
        assert kernel.stop(cell).error == "KeyboardInterrupt"
        told = kernel.run(
            f"ask('a{number}', key='k{number}')\n"
            "print(json.dumps(ledger.sql('SELECT count(*), count(DISTINCT stream_id) FROM events').rows))"
        ).told()
        assert told == [[4 * number, number]]
    assert kernel.run("print(json.dumps(world.marker_count()))").told() == 3


def test_after_an_interrupted_loop_of_appends_the_next_cell_goes_on(kernel: LiveKernel, folder: Path) -> None:
    """Twenty interrupts among appends and flushes of the index: each next cell finds what is recorded and
    goes on from there; nothing is lost and nothing is there twice.
    """
    begun = """
from codeai_lab.store import core
usual, core.FLUSH_AT = core.FLUSH_AT, 4
told = 0
def draft(number):
    return EventDraft(event_id=f"e-{number}", run_id="run", stream_id="s", kind="noted", actor_id="reader",
                      idempotency_key=None, recorded_at_us=1, causation_id=None, payload={})
"""
    appending = """
number = len(ledger.read("s"))
assert number >= told
while True:
    ledger.append(draft(number))
    number += 1
    told = number
"""
    assert kernel.run(begun).error is None
    draw = random.Random(8)
    journal = folder / "lab.duckdb.journal.jsonl"
    for _ in range(20):
        cell = kernel.start(appending)
        enough = journal.stat().st_size + draw.randint(1, 4_000)
        wait_for(lambda enough=enough: journal.stat().st_size > enough, "the cell appends")
        assert kernel.stop(cell).error == "KeyboardInterrupt"
    told = kernel.run(
        "core.FLUSH_AT = usual\n"
        "ids = [event.event_id for event in ledger.read('s')]\n"
        "print(json.dumps([ids, ledger.sql('SELECT count(*) FROM events').rows[0][0], told]))"
    ).told()
    ids, count, acknowledged = told
    assert ids == [f"e-{number}" for number in range(len(ids))]
    assert count == len(ids) >= acknowledged
    with LedgerReader(folder / "lab.duckdb") as reader:
        assert [event.event_id for event in reader.read_all()] == ids


def test_a_storm_of_interrupts_among_effects_leaves_one_effect_for_each_key(
    kernel: LiveKernel, folder: Path
) -> None:
    """F1, M2: thirty interrupts anywhere in a loop of actions; after each, what is open is reconciled, and in
    the end every key is asked again: a marker for each, and no walk that is gone counts as in progress.
    """
    begun = """
asked, names = [], iter(range(10**9))
def again(key):
    return ask(f"{key}.{next(names)}", key=key)
"""
    acting = """
while True:
    asked.append(f"k{len(asked)}")
    again(asked[-1])
"""
    settling = """
verdicts = []
for action_id in unknown():
    verdicts.append(reconcile(action_id).verdict or reconcile(action_id).refused)
answers = {again(key)[0] for key in asked[-3:]}
print(json.dumps([verdicts, sorted(answers), unknown(), len(ledger.live_actions)]))
"""
    assert kernel.run(begun).error is None
    draw = random.Random(15)
    journal = folder / "lab.duckdb.journal.jsonl"
    seen: Counter[str] = Counter()
    for _ in range(30):
        cell = kernel.start(acting)
        enough = journal.stat().st_size + draw.randint(1, 9_000)
        wait_for(lambda enough=enough: journal.stat().st_size > enough, "the cell acts")
        assert kernel.stop(cell).error == "KeyboardInterrupt"
        verdicts, answers, still_open, alive = kernel.run(settling).told()
        seen.update(verdicts)
        assert set(answers) <= {"succeeded", "reconciled"}
        assert (still_open, alive) == ([], 0)
    assert set(seen) <= {"effect_confirmed", "no_effect_confirmed"}
    asked = kernel.run("print(json.dumps(asked))").told()
    told = kernel.run("print(json.dumps(sorted({again(key)[0] for key in asked})))").told()
    assert set(told) <= {"succeeded", "reconciled"}
    lines = Counter(marker.read_text().strip() for marker in (folder / "world" / "markers").iterdir())
    assert lines == Counter(asked)
    with LedgerReader(folder / "lab.duckdb") as reader:
        assert project_open_effects(reader.read_all()) == ()


def test_a_kernel_killed_inside_its_effect_is_taken_over(tmp_path: Path) -> None:
    """The kernel dies instead (restart, crash): this process opens the ledger and finds the same unknown."""
    with kernels(tmp_path / "scratch") as (kernel,):
        assert kernel.run(SET_UP.format(folder=str(tmp_path))).error is None
        kernel.start("ask('a1', after=for_an_event)")
        wait_for((tmp_path / "waiting").exists, "the cell waits")
        assert inspected(tmp_path)["unknown"] == 1
        kernel.kill()
    with DuckDBLedger(tmp_path / "lab.duckdb") as ledger:
        (state,) = project_open_effects(ledger.read_all())
    assert (state.action_id, str(state.next_operation)) == ("a1", "reconcile_effect")
