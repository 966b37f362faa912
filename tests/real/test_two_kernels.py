"""Two notebooks on one ledger file: what may the second one do, while the first one writes, and after it?

Two real kernels. The first one acts under `lab`, effect after effect; the second one asks for writing, is
refused, reads along, and takes over when the first one is gone.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kernel import Cell, LiveKernel, kernels, wait_for

from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.restore import check

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the stop button is another one there"),
    pytest.mark.timeout(90),
]

SET_UP = """
import json, time
from pathlib import Path
from codeai_lab import ActionRequest, Authority, DuckDBLedger, LedgerReader, LineAdapter, MarkerWorld, Runtime
from codeai_lab import project_open_effects
from codeai_lab.errors import LedgerInUseError
from codeai_lab.run.effects import WorldLookup

folder = Path({folder!r})
path = folder / "lab.duckdb"
world = MarkerWorld(folder / "world")

def ask(runtime, key, action_id):
    request = ActionRequest(action_id=action_id, idempotency_key=key, capability="file.append",
                            instruction="append a line", payload={{"line": key}})
    adapter = LineAdapter(world, before=lambda: time.sleep(0.001))
    return runtime.execute_action(request, authority=Authority.of("file.append"), adapter=adapter)
"""
FIRST = """
ledger = DuckDBLedger(path)
runtime = Runtime(ledger)
"""
ACTING = """
number = 0
while not (folder / "enough").exists():
    ask(runtime, f"k{number}", f"k{number}.1")
    number += 1
print(json.dumps(number))
"""
REFUSED = """
began = time.monotonic()
try:
    DuckDBLedger(path)
except LedgerInUseError as error:
    print(json.dumps([str(error), time.monotonic() - began]))
"""
# Look again and again until there were so many sizes; of each look tell what was wrong with it, if anything.
READING = """
BATCHES = [["action.requested", "action.claimed", "action.execution_started"], ["action.completed"]]
reader, sizes, wrong, until = LedgerReader(path), [0], [], time.monotonic() + 30
while len(set(sizes)) < 12 and time.monotonic() < until:
    events = list(reader.read_all())
    kinds = [event.kind for event in events]
    whole = (BATCHES[0] + BATCHES[1]) * (len(events) // 4 + 1)
    still_open = [state.action_id for state in project_open_effects(events)]
    ((count,),) = reader.sql("SELECT count(*) FROM events").rows
    if [event.seq for event in events] != list(range(1, len(events) + 1)) or kinds != whole[:len(kinds)]:
        wrong.append(["not a prefix", kinds[-4:]])
    if len(events) % 4 not in (0, 3):
        wrong.append(["half a batch", kinds[-3:]])
    if still_open != ([events[-1].stream_id] if len(events) % 4 else []):
        wrong.append(["open", still_open])
    if not sizes[-1] <= len(events) <= count:
        wrong.append(["went back", sizes[-1], len(events), count])
    sizes.append(len(events))
print(json.dumps([sorted(set(sizes)), wrong, sorted(file.name for file in folder.iterdir())]))
"""
TAKING_OVER = """
until = time.monotonic() + 30
while True:
    try:
        ledger = DuckDBLedger(path)
        break
    except LedgerInUseError:
        assert time.monotonic() < until
        time.sleep(0.005)
runtime = Runtime(ledger)
orphans = [state.action_id for state in project_open_effects(ledger.read_all())]
refused = [str(ask(runtime, orphan[:-2], f"{orphan}.refused").next_operation) for orphan in orphans]
verdicts = [runtime.reconcile_action(orphan, authority=Authority.of("effect.reconcile"),
                                     effect_lookup=WorldLookup(world)).verdict for orphan in orphans]
keys = sorted({event.idempotency_key for event in ledger.read_all()}, key=lambda key: int(key[1:]))
answers = sorted({str(ask(runtime, key, f"{key}.2").status) for key in keys})
still_open = [state.action_id for state in project_open_effects(ledger.read_all())]
print(json.dumps([orphans, refused, verdicts, answers, still_open, keys]))
"""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LiveKernel, LiveKernel, Path]]:
    """Give two kernels, set up, the first of which has the ledger open."""
    folder = tmp_path / "work"
    folder.mkdir()
    with kernels(tmp_path / "first", tmp_path / "second") as (first, second):
        for kernel in (first, second):
            assert kernel.run(SET_UP.format(folder=str(folder))).error is None
        assert first.run(FIRST).error is None
        yield first, second, folder


def grows(folder: Path) -> None:
    """Wait until the first kernel has appended some more."""
    journal = folder / "lab.duckdb.journal.jsonl"
    enough = journal.stat().st_size + 10_000
    wait_for(lambda: journal.stat().st_size > enough, "the first kernel appends")


def is_one_sentence_without_a_path(told: Cell, folder: Path) -> None:
    sentence, seconds = told.told()
    assert sentence.startswith("Another process, perhaps another notebook, writes to lab.duckdb")
    assert "LedgerReader" in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert str(folder) not in sentence
    assert seconds < 5


def test_the_second_kernel_is_told_that_it_cannot_write_and_reads_along(
    pair: tuple[LiveKernel, LiveKernel, Path],
) -> None:
    """G1, V1, V2: refused in words, while the first one goes on; reading sees whole prefixes that grow, and
    makes no file; once the first one lets go the second may write, and then the first one is told the same.
    """
    first, second, folder = pair
    acting = first.start(ACTING)
    grows(folder)
    files = sorted(file.name for file in folder.iterdir())
    is_one_sentence_without_a_path(second.run(REFUSED), folder)
    sizes, wrong, seen_files = second.run(READING).told()
    is_one_sentence_without_a_path(second.run(REFUSED), folder)
    grows(folder)  # the first one was never disturbed
    (folder / "enough").touch()
    acted = first.finish(acting).told()

    assert wrong == []
    assert len(sizes) >= 12
    assert seen_files == files
    assert first.run("ledger.close()").error is None
    orphans, _, _, answers, still_open, keys = second.run(TAKING_OVER).told()
    assert (orphans, answers, still_open) == ([], ["succeeded"], [])
    assert keys == [f"k{number}" for number in range(acted)]
    is_one_sentence_without_a_path(first.run(REFUSED), folder)
    assert first.run("print(json.dumps(len(list(LedgerReader(path).read_all()))))").told() == 6 * acted
    assert markers(folder) == Counter(keys)


def test_when_the_first_kernel_is_killed_the_second_may_write(
    pair: tuple[LiveKernel, LiveKernel, Path],
) -> None:
    """G1: killed in the middle of its loop, it leaves the lock free and at most one effect open; the second
    kernel reconciles it and asks for every key again: one marker each.
    """
    first, second, folder = pair
    first.start(ACTING)
    grows(folder)
    is_one_sentence_without_a_path(second.run(REFUSED), folder)
    grows(folder)
    first.kill()

    orphans, refused, verdicts, answers, still_open, keys = second.run(TAKING_OVER).told()

    assert len(orphans) == len(verdicts) <= 1
    assert refused == ["reconcile_effect"] * len(orphans)
    assert set(verdicts) <= {"effect_confirmed", "no_effect_confirmed"}
    assert set(answers) <= {"succeeded", "reconciled"}
    assert ("reconciled" in answers) == (verdicts == ["effect_confirmed"])
    assert still_open == []
    assert keys == [f"k{number}" for number in range(len(keys))]
    assert len(keys) > 5
    assert markers(folder) == Counter(keys)
    assert second.run("ledger.close()").error is None
    with DuckDBLedger(folder / "lab.duckdb") as ledger:
        assert ledger.notices == ()
    check(folder / "lab.duckdb")


def markers(folder: Path) -> Counter[str]:
    """Count the markers of each key, from the marker files alone."""
    return Counter(marker.read_text().strip() for marker in (folder / "world" / "markers").iterdir())
