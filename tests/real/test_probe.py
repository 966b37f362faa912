"""Can real threads, or another process, ever make one key act twice under `lab`?"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.errors import LabError, LedgerError
from codeai_lab.lessons import RETRY_RERUN
from codeai_lab.lessons.cases import Ask
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.lessons.playing import Played, Table, play
from codeai_lab.lessons.probe import Meeting, open_together, race
from codeai_lab.lessons.rows import row_of
from codeai_lab.prove.verify import verify
from codeai_lab.records import ActionRequest, ActionResult, Event
from codeai_lab.run.revisions import LAB, REVISIONS, revision_named
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger

CONFLICT = "IdempotencyConflictError"
SHORT_S = 0.2


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[DuckDBLedger]:
    with DuckDBLedger(tmp_path / "lab.duckdb", ledger_id="L") as opened:
        yield opened


def table_at(ledger: DuckDBLedger, folder: Path, case: str) -> Table:
    return Table("race", case, LAB, ledger, ManualClock(), folder / case)


def rows_of(ledger: DuckDBLedger, tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Give the rows of many tables, reading the ledger once."""
    events: defaultdict[str, list[Event]] = defaultdict(list)
    for event in ledger.read_all():
        events[event.run_id].append(event)
    return [
        row_of(
            events[f"race/{table.case}"], table.world.receipts(), summary=table.effects_counted,
            case=table.case, revision="lab", raised=table.raised,
        )
        for table in tables
    ]  # fmt: skip


def together(*works: Callable[[], object]) -> list[Any]:
    """Start each in a thread of its own at the same moment, and give what they give."""
    gate = threading.Barrier(len(works))

    def begin(work: Callable[[], object]) -> object:
        gate.wait(timeout=30)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


# --- the two marked cases of the lesson ------------------------------------------------------------------


@pytest.fixture(scope="module", params=REVISIONS)
def marked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The two cases with processes and threads, as played under each rule set."""
    folder = tmp_path_factory.mktemp("marked")
    return play(
        RETRY_RERUN, revision_named(request.param), folder, only=["reopen-replay", "concurrency-probe"]
    )


def test_the_ledger_is_reopened_by_another_process(marked: Played) -> None:
    """Two requests, one effect, the link resolves; the second was recorded by somebody else."""
    row = marked.rows[0]
    assert (row["requests"], row["statuses"]) == (2, ["succeeded", "succeeded"])
    assert (row["reused_from"], row["raised"]) == ([None, "r1"], [None, None])
    assert (row["effects_ledger"], row["effects_world"], row["effects_summary"]) == ([1, 1], 1, 1)
    actors = {event.stream_id: event.actor_id for event in marked.events if event.stream_id[0] == "r"}
    assert actors == {"r1": "lesson", "r2": "another-process"}
    assert row["notes"] == ["r2 was asked by another process while this one had the ledger closed"]


def test_the_probe_gives_its_six_effects_and_under_lab_three(marked: Played) -> None:
    """One row, six requests over three keys; nothing is marked reused, nothing is raised."""
    row = marked.rows[1]
    under_lab = marked.revision is LAB
    assert (row["requests"], row["reused_from"], row["raised"]) == (6, [None] * 6, [None] * 6)
    assert row["statuses"] == (["succeeded", "in_progress"] * 3 if under_lab else ["succeeded"] * 6)
    effects = 3 if under_lab else 6
    assert row["effects_ledger"] == [effects, effects]
    assert row["effects_world"] == row["effects_summary"] == effects
    came, never = (1, ", the rest never arrived") if under_lab else (2, "")
    assert row["notes"] == [
        f"kp{run}: {came} of 2 threads came into the window before the effect{never}" for run in (1, 2, 3)
    ]


def test_each_key_of_the_probe_has_its_share(marked: Played) -> None:
    """Two effects a key under the chapter's rules, one under `lab`, by the world's own receipts."""
    receipts = (marked.world / "concurrency-probe" / "receipts.jsonl").read_text().splitlines()
    by_key = Counter(line.partition('"action_id":"p')[2][0] for line in receipts)
    share = 1 if marked.revision is LAB else 2
    assert by_key == {"1": share, "2": share, "3": share}


@pytest.mark.parametrize("rules", ["1b3c7a2", "lab"])
def test_the_lesson_freezes_into_a_bundle_that_holds(tmp_path: Path, rules: str) -> None:
    """All eight cases, threads and processes included, accepted with the digest from outside."""
    digest = freeze_lesson(RETRY_RERUN, revision_named(rules), tmp_path / "bundle")
    report = verify(tmp_path / "bundle", digest)
    assert (report.valid, report.complete, list(report.findings)) == (True, "yes", [])


def test_another_process_leaves_the_same_bytes_each_time(tmp_path: Path) -> None:
    """Ids and instants are handed to it, so that only a race of threads is outside the promise."""
    journals = [
        play(RETRY_RERUN, LAB, tmp_path / name, only=["reopen-replay"]).journal.read_bytes()
        for name in ("one", "two")
    ]
    assert journals[0] == journals[1]


def test_a_ledger_that_is_not_let_go_stops_the_other_process(tmp_path: Path) -> None:
    """The second request is really made beside this process: while anyone here has the ledger, it cannot."""
    (case,) = (case for case in RETRY_RERUN.cases if case.name == "reopen-replay")
    path = tmp_path / "lab.duckdb"
    with DuckDBLedger(path), DuckDBLedger(path) as ledger:
        table = Table(RETRY_RERUN.name, case.name, LAB, ledger, ManualClock(), tmp_path / "w", path=path)
        assert case.script is not None
        with pytest.raises(LabError) as refused:
            case.script(table, case)
    assert str(refused.value) == (
        "The other process could not make its request (CalledProcessError); play the case again."
    )


# --- the window -----------------------------------------------------------------------------------------


def test_a_wait_for_one_that_never_comes_ends() -> None:
    """PB1: alone in the window for its time and no longer, then on."""
    meeting = Meeting(2, at_most_s=0.1)
    began = time.monotonic()
    assert meeting.come("a") is False
    assert 0.05 < time.monotonic() - began < 10


def test_nobody_waits_for_one_that_is_over() -> None:
    """PB1: whether it is over before the other comes or while the other waits."""
    early = Meeting(2, at_most_s=60)
    early.is_over("b")
    late = Meeting(2, at_most_s=60)
    began = time.monotonic()
    told = together(lambda: early.come("a"), lambda: late.come("a"), lambda: late.is_over("b"))
    assert told == [False, False, None]
    assert time.monotonic() - began < 30


def test_all_that_come_go_on_together() -> None:
    """PB1: eight threads, each told that all came; being over afterwards changes nothing."""
    meeting = Meeting(8, at_most_s=60)
    assert together(*(lambda name=str(n): meeting.come(name) for n in range(8))) == [True] * 8
    meeting.is_over("3")
    assert len(meeting.came) == 8


def test_a_claim_cannot_lock_the_probe_up(ledger: DuckDBLedger, tmp_path: Path) -> None:
    """PB2: the other thread hangs outside the window for good; the one inside acts all the same."""
    table = table_at(ledger, tmp_path, "hang")
    hanging, go = threading.Event(), threading.Event()

    def hang() -> None:
        walk = table.walk(Ask(id="h2", key="kh"))
        walk.step()
        hanging.set()
        go.wait(60)
        walk.run()

    window = Meeting(2, at_most_s=SHORT_S)
    other = threading.Thread(target=hang)
    other.start()
    assert hanging.wait(60)
    result = table.walk(Ask(id="h1", key="kh"), before=lambda: window.come("h1")).run()
    assert (str(result.status), window.came, other.is_alive()) == ("succeeded", ["h1"], True)
    go.set()
    other.join(60)
    assert rows_of(ledger, [table])[0]["reused_from"] == [None, "h1"]
    assert len(table.world.receipts()) == 1


# --- many races ----------------------------------------------------------------------------------------


def test_two_hundred_repetitions_of_the_probe(ledger: DuckDBLedger, tmp_path: Path) -> None:
    """Never two effects for a key, no raw error, no deadlock; who loses is told so or gets the outcome."""
    tables, told = [], Counter()
    for n in range(200):
        tables.append(table := table_at(ledger, tmp_path, f"probe-{n}"))
        for run in range(3):
            asks = [
                Ask(id=f"{n}-{run}{thread}", key=f"{n}-{run}", line=f"line {run}") for thread in ("a", "b")
            ]
            results = race(table, asks, at_most_s=SHORT_S)
            told[tuple(sorted(how(result) for result in results))] += 1
    assert sum(told.values()) == 600
    assert set(told) <= {("in_progress", "succeeded"), ("replayed", "succeeded")}
    for row in rows_of(ledger, tables):
        assert (row["requests"], row["effects_world"], row["effects_summary"]) == (6, 3, 3), row
        assert (row["effects_ledger"], row["raised"], row["notes"]) == ([3, 3], [None] * 6, []), row
        assert set(row["labels"]) <= {None, "refused", "replay"}, row
    assert ledger.live_actions == set()


def how(result: ActionResult | None) -> str:
    if result is None:
        return "raised"
    return str(result.status) if result.reused_from_action_id is None else "replayed"


def test_sixteen_threads_and_five_hundred_keys(ledger: DuckDBLedger) -> None:
    """500 effects; every loser is handed the winner's outcome or told that it is in progress."""
    runtime = Runtime(ledger)
    effects: list[tuple[str, str]] = []

    class Acting:
        def execute(self, request: ActionRequest) -> str:
            effects.append((request.idempotency_key, request.action_id))
            return f"made by {request.action_id}"

    def submit_all(thread: int) -> list[tuple[str, ActionResult]]:
        return [
            (
                key,
                runtime.execute_action(
                    ActionRequest(
                        action_id=f"{thread}/{key}", idempotency_key=key, capability="c", instruction="i"
                    ),
                    authority=Authority.of("c"),
                    adapter=Acting(),
                ),
            )
            for key in (f"k{number}" for number in range(500))
        ]

    told = together(*(lambda thread=thread: submit_all(thread) for thread in range(16)))
    assert len(effects) == 500
    winners = dict(effects)
    assert len(winners) == 500
    seen = Counter()
    for thread, answers in enumerate(told):
        for key, result in answers:
            seen[how(result)] += 1
            won = winners[key] == f"{thread}/{key}"
            assert (how(result) == "succeeded") == won, (key, result)
            if how(result) == "replayed":
                assert result.reused_from_action_id == winners[key]
            if how(result) != "in_progress":
                assert (str(result.status), result.output) == ("succeeded", f"made by {winners[key]}")
    assert seen["succeeded"] == 500
    assert set(seen) <= {"succeeded", "replayed", "in_progress"}
    assert sum(seen.values()) == 8_000
    assert ledger.live_actions == set()


# --- the loser is not the winner's twin ------------------------------------------------------------------

OTHER = {"instruction": "remove the last line"}
LOST = {"permitted": False}
MOVED = {"precondition": "state-A", "moves": "state-B"}
ROUNDS = 60


def pair(n: int, both: dict[str, Any], second: dict[str, Any]) -> list[Ask]:
    return [Ask(id=f"{n}a", key=f"k{n}", **both), Ask(id=f"{n}b", key=f"k{n}", **both | second)]


def held_back(table: Table, winner: Ask, loser: Ask) -> None:
    """Let the loser look while the key is free, and go on when the winner is over: the latest moment."""
    looked, over = threading.Event(), threading.Event()

    def win() -> None:
        assert looked.wait(60)
        table.ask(winner)
        over.set()

    def lose() -> None:
        with table.hearing(loser):
            walk = table.walk(loser)
            while walk.facts.seen is None:
                walk.step()
            looked.set()
            assert over.wait(60)
            walk.run()

    together(win, lose)


def unsynchronised(table: Table, *asks: Ask) -> None:
    together(*(lambda ask=ask: table.ask(ask) for ask in asks))


def windowed(table: Table, *asks: Ask) -> None:
    race(table, asks, at_most_s=SHORT_S)


WAYS = pytest.mark.parametrize("way", [held_back, unsynchronised, windowed])
Way = Callable[..., None]


def races(
    ledger: DuckDBLedger, folder: Path, way: Way, both: dict[str, Any], second: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Give, for each round, its row and what became of each of the two by the last letter of its id."""
    tables = [table_at(ledger, folder, f"round-{n}") for n in range(ROUNDS)]
    for n, table in enumerate(tables):
        way(table, *pair(n, both, second))
    order: defaultdict[str, list[str]] = defaultdict(list)
    for event in ledger.read_all():
        if event.kind == "action.requested":
            order[event.run_id].append(event.stream_id)
    assert ledger.live_actions == set()
    for row in rows_of(ledger, tables):
        assert (row["requests"], row["effects_world"], row["effects_ledger"]) == (2, 1, [1, 1]), row
        names = order[f"race/{row['case']}"]
        fields = ("statuses", "reused_from", "raised")
        told = {name[-1]: {field: row[field][n] for field in fields} for n, name in enumerate(names)}
        yield row, told


SUCCEEDED = {"statuses": "succeeded", "reused_from": None, "raised": None}


@WAYS
def test_the_loser_that_asks_for_something_else(ledger: DuckDBLedger, tmp_path: Path, way: Way) -> None:
    """The conflict, whoever wins: never the winner's outcome for another operation, never "in progress"."""
    for row, told in races(ledger, tmp_path, way, {}, OTHER):
        conflict = {"statuses": None, "reused_from": None, "raised": CONFLICT}
        assert sorted(told.values(), key=str) == sorted([SUCCEEDED, conflict], key=str), row
        if way is held_back:
            assert told["b"] == conflict


@WAYS
def test_the_loser_that_lost_its_authority(ledger: DuckDBLedger, tmp_path: Path, way: Way) -> None:
    """Denied at every moment of the other's way; the winner is not disturbed."""
    for row, told in races(ledger, tmp_path, way, {}, LOST):
        denied = {"statuses": "denied", "reused_from": None, "raised": None}
        assert told == {"a": SUCCEEDED, "b": denied}, row


@WAYS
def test_the_loser_whose_precondition_the_winner_changed(
    ledger: DuckDBLedger, tmp_path: Path, way: Way
) -> None:
    """The winner's replay, or in progress while it acts: never FAILED for a key that succeeded."""
    for row, told in races(ledger, tmp_path, way, MOVED, {}):
        won = next(name for name, one in told.items() if one == SUCCEEDED)
        lost = told["b" if won == "a" else "a"]
        original = f"{row['case'].removeprefix('round-')}{won}"
        replayed = {"statuses": "succeeded", "reused_from": original, "raised": None}
        waiting = {"statuses": "in_progress", "reused_from": None, "raised": None}
        assert lost in ([replayed] if way is held_back else [replayed, waiting]), row


# --- the earlier variant ---------------------------------------------------------------------------------


def test_threads_that_open_the_ledger_at_the_same_moment(tmp_path: Path) -> None:
    """Fifty new files, opened by two to five threads at once, each for itself: nobody fails, one effect."""
    for n in range(50):
        folder = tmp_path / str(n)
        folder.mkdir()
        asks = [Ask(id=f"o{place}", key="ko") for place in range(2 + n % 4)]
        row = open_together(folder, asks)
        assert (row["requests"], row["raised"], row["notes"]) == (len(asks), [None] * len(asks), []), row
        assert (row["effects_ledger"], row["effects_world"], row["effects_summary"]) == ([1, 1], 1, 1), row
        assert row["statuses"][0] == "succeeded"
        assert set(row["statuses"][1:]) <= {"succeeded", "in_progress"}
        assert row["statuses"].count("succeeded") == 1 + sum(name is not None for name in row["reused_from"])


def test_opening_together_says_who_failed(tmp_path: Path) -> None:
    """PB3: what one thread is refused is noted by its type's name, and the others go on."""
    row = open_together(tmp_path, [Ask(id="o1", key="ko"), Ask(id="o2", key="\ud800")])
    assert (row["requests"], row["statuses"], row["effects_world"]) == (1, ["succeeded"], 1)
    assert row["notes"] == ["o2 ended in RefusedValueError"]


def test_opening_together_where_nobody_can(tmp_path: Path) -> None:
    """A folder lies where the ledger should: one sentence, not a row without requests."""
    (tmp_path / "lab.duckdb").mkdir()
    with pytest.raises(LedgerError):
        open_together(tmp_path, [Ask(id="o1", key="ko"), Ask(id="o2", key="ko")])
