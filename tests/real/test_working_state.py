"""Is the published table of working states what really killed producers leave, receipts counted elsewhere?"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frozen_again import frozen_again

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import PolicyEngine
from codeai_lab.lessons.working_state import COLUMNS, EXPECTED, play
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.verify import verify
from codeai_lab.run.callwalk import Settings
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import ProviderProcess, receipts
from codeai_lab.run.resuming import reinterpret_call, resume_call, work_state_of
from codeai_lab.run.runtime import counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.reader import LedgerReader

# The published table, and what it says came then; a dash is a null.
GOLDEN = """
clean-complete                     | completed         | observed | none             | no  | 1 | 14
compilation-failed                 | -                 | -        | fix_inputs       | -   | 0 | 5
killed-during-compilation          | -                 | -        | recompile        | -   | 0 | 4
killed-after-manifest              | manifest_recorded | none     | start_call       | no  | 0 | 7
killed-after-manifest-drift        | manifest_recorded | none     | start_call       | no  | 0 | 7
killed-during-effect               | effect_unknown    | unknown  | reconcile_effect | yes | 1 | 8
killed-during-effect-naive-restart | effect_unknown    | unknown  | reconcile_effect | yes | 1 | 8
killed-after-observation           | observed          | observed | reinterpret      | no  | 1 | 9
"""
THEN: dict[str, tuple[str, str, int, int | None]] = {
    "killed-after-manifest": ("resume", "succeeded", 1, 17),
    "killed-after-manifest-drift": ("resume", "refused: request_body_hash", 0, 7),
    "killed-during-effect": ("resume", "refused: reconcile_effect", 1, 8),
    "killed-during-effect-naive-restart": ("naive-restart", "succeeded", 2, None),
    "killed-after-observation": ("reinterpret", "succeeded", 1, None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the lesson was played."""
    return tmp_path_factory.mktemp("played")


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    """What the progress was told."""
    return []


@pytest.fixture(scope="module")
def ends() -> list[int]:
    """How the producers ended."""
    return []


@pytest.fixture(scope="module")
def rows(folder: Path, told: list[tuple[str, int, int]], ends: list[int]) -> list[dict[str, Any]]:
    """The eight rows, played one time, with a note of how each producer ended."""

    class Noted(subprocess.Popen[str]):
        def __exit__(self, *reason: Any) -> None:
            super().__exit__(*reason)
            ends.append(self.returncode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Noted)
        return play(folder, progress=lambda *said: told.append(said))


def spelled(value: object) -> str:
    """Give a value as the table has it."""
    if value is None:
        return "-"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def test_every_row_of_the_table_is_reproduced(rows: list[dict[str, Any]]) -> None:
    """WL2: state, receipts and events, as the next process finds them."""
    table = [[cell.strip() for cell in line.split("|")] for line in GOLDEN.strip().splitlines()]
    assert [[spelled(row[name]) for name in COLUMNS[:7]] for row in rows] == table


def test_every_sequel_is_reproduced(rows: list[dict[str, Any]]) -> None:
    """What was done next, what came of it, and what it added; where nothing is done nothing is added."""
    for row in rows:
        then, outcome, asked, events = THEN.get(row["case"], (None, None, row["receipts"], row["events"]))
        assert (row["then"], row["outcome"], row["receipts_after"]) == (then, outcome, asked)
        assert events is None or row["events_after"] == events


def test_the_rows_are_those_that_the_lesson_expects(rows: list[dict[str, Any]]) -> None:
    """Names and order too."""
    assert rows == list(EXPECTED)
    assert [list(row) for row in rows] == [list(COLUMNS)] * len(rows)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_every_kill_was_a_real_one(rows: list[dict[str, Any]], ends: list[int]) -> None:
    """WL1: six producers died of SIGKILL, two came to their end."""
    assert len(rows) == len(ends)
    assert ends == [0, 0, *[-signal.SIGKILL] * 6]


def test_the_progress_is_told(rows: list[dict[str, Any]], told: list[tuple[str, int, int]]) -> None:
    """Each case before it is played."""
    assert told == [(row["case"], place, 8) for place, row in enumerate(rows)]


def test_the_ledger_outlived_every_producer(rows: list[dict[str, Any]], folder: Path) -> None:
    """One journal holds all cases, whole; and the provider's receipts lie beside it, not in it."""
    with LedgerReader(folder / "lab.duckdb") as reader:
        events = list(reader.read_all())
    assert len(events) == sum(row["events_after"] for row in rows)
    for row in rows:
        asked = receipts(folder / f"{row['case']}.receipts.jsonl")
        assert [receipt["n"] for receipt in asked] == list(range(1, row["receipts_after"] + 1))
        assert {receipt["key"] for receipt in asked} <= {f"{row['case']}-key"}


def test_every_play_leaves_what_is_pinned_of_one(
    rows: list[dict[str, Any]], folder: Path, killed: Path
) -> None:
    """WL3: ids, clock and answers are handed in, so journal and logs have the bytes of another day."""
    assert (folder / "lab.duckdb.journal.jsonl").read_bytes() == (killed / "data/ledger.jsonl").read_bytes()
    for row in rows:
        left = folder / f"{row['case']}.receipts.jsonl"
        assert left.read_bytes() == (killed / "data/world" / row["case"] / "receipts.jsonl").read_bytes()


def test_the_command_freezes_it_with_the_same_bytes_every_time(
    frozen_working_state: Path,
) -> None:
    """FZ2, WL3: played once more it has the same bytes, and its digest is what the outside world keeps."""
    to, said = frozen_again("working-state", "lab")
    assert digest_of(to) in said
    assert verify(to, digest_of(to)).complete == "yes"
    assert digest_of(to) == digest_of(frozen_working_state)


def test_a_provider_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """PV4: the process that started it is killed, and the provider's port is closed soon after."""
    program = (
        "import sys; from pathlib import Path; from codeai_lab.run.provider import ProviderProcess\n"
        "p = ProviderProcess(Path(sys.argv[1])); p.__enter__(); print(p._child.pid, flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as starter:  # fmt: skip
        assert starter.stdout is not None
        assert int(starter.stdout.readline()) > 0
        starter.kill()
        # Its output is the starter's: it is closed when the provider, too, has ended.
        assert starter.stdout.read() == ""


def test_a_provider_that_is_gone_is_a_connection_that_failed(tmp_path: Path) -> None:
    """Whoever asks gets a ConnectionError, and one that never started says so."""
    with ProviderProcess(tmp_path / "log") as provider:
        line = provider.line
        assert line.send(b"ask", key="k") == b'{"finish":"stop","text":"a response to 3 bytes"}'
        assert len(receipts(tmp_path / "log")) == 1
    with pytest.raises(ConnectionError):
        line.send(b"ask", key="k")
    assert len(receipts(tmp_path / "log")) == 1
    with pytest.raises(RuntimeError, match="ended before its time"), ProviderProcess(tmp_path / "no" / "log"):
        raise AssertionError("it cannot have started")


# --- every durable point ---------------------------------------------------------------------------------

PRODUCER = """
import sys
from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import PolicyEngine
from codeai_lab.run.callwalk import Work
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import Line
from codeai_lab.run.runtime import counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.ledger import DuckDBLedger

file, port, length = sys.argv[1:]
ledger = DuckDBLedger(file)
bench = Bench(ledger=ledger, clock=ManualClock(), new_id=counted_ids("p"), policy=PolicyEngine(),
              rules="lab", run_id="r", actor_id="producer")
work = Work(work_id="w", call_id="c", idempotency_key=length, directive="d", prompt="p", offered={"i": 1})
walk = open_work(bench, work, Line(int(port)))
while sum(1 for _ in ledger.read_all()) < int(length):
    walk.step()
print("stands", flush=True)
sys.stdin.read()
"""
STATES = {
    **dict.fromkeys(range(1, 5), ("recompile", 0)),
    5: ("start_call", 0),
    6: ("start_call", 0),
    7: ("start_call", 0),
    8: ("reconcile_effect", 0),
    **dict.fromkeys(range(9, 14), ("reinterpret", 1)),
    14: ("none", 1),
}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    """One provider for all the kills."""
    with ProviderProcess(tmp_path_factory.mktemp("provider") / "log") as started:
        yield started


@pytest.mark.parametrize("length", STATES)
def test_a_kill_after_each_event_leaves_that_state_and_no_way_to_ask_twice(
    length: int, provider: ProviderProcess, tmp_path: Path
) -> None:
    """The producer is killed after so many events; whatever is in order then, one request at most is made."""
    file = tmp_path / "lab.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", PRODUCER, str(file), str(provider.line.port), str(length)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as producer:  # fmt: skip
        assert producer.stdout is not None
        assert producer.stdout.readline() == "stands\n"
        producer.kill()
    assert producer.returncode != 0

    def asked() -> int:
        return sum(receipt["key"] == str(length) for receipt in receipts(provider.log))

    then, so_far = STATES[length]
    with DuckDBLedger(file) as ledger:
        bench = Bench(
            ledger=ledger, clock=ManualClock(), new_id=counted_ids("s"), policy=PolicyEngine(),
            rules="lab", run_id="r", actor_id="successor",
        )  # fmt: skip
        state = work_state_of(bench, "w")
        assert (state.next_operation, asked(), len(list(ledger.read_all()))) == (then, so_far, length)
        if state.call_id is None:
            return
        resumed = resume_call(bench, "c", as_call_id="d", transport=provider.line, settings=Settings())
        assert resumed.status == ("succeeded" if then == "start_call" else "refused")
        reinterpreted = reinterpret_call(bench, "c")
        assert reinterpreted.status == ("succeeded" if then == "reinterpret" else "refused")
        assert asked() == (0 if then == "reconcile_effect" else 1)
