"""Do `inspect` and `restore` say what a ledger holds, in the words of its answers, and what is wrong?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codeai_lab import (
    ActionRequest,
    ActionResult,
    ActionStatus,
    Authority,
    DuckDBLedger,
    LineAdapter,
    MarkerWorld,
    Runtime,
)
from codeai_lab.cli.ledgers import inspect, restore
from codeai_lab.errors import IdempotencyConflictError
from codeai_lab.run.reconciling import RECONCILE

WORDS = {str(status) for status in ActionStatus}


def run(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def shown(path: Path, *options: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(run(inspect, path, "--json", *options).stdout)
    return said


def stop() -> None:
    raise KeyboardInterrupt


class Played:
    """A ledger in a file, and requests to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "k.duckdb"
        self.journal = folder / "k.duckdb.journal.jsonl"
        self.world = MarkerWorld(folder / "world")

    def ask(
        self, ledger: DuckDBLedger, name: str, key: str, *, what: str = "i", after: Any = None
    ) -> ActionResult:
        request = ActionRequest(action_id=name, idempotency_key=key, capability="c", instruction=what)
        adapter = LineAdapter(self.world, after=after)
        return Runtime(ledger).execute_action(request, authority=Authority.of("c"), adapter=adapter)


@pytest.fixture(scope="module")
def seven_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven events: a success of three and its completion, an interrupt in an effect of three."""
    one = Played(tmp_path_factory.mktemp("seven"))
    with DuckDBLedger(one.path) as ledger:
        one.ask(ledger, "a1", "k1")
        with pytest.raises(KeyboardInterrupt):
            one.ask(ledger, "a2", "k2", after=stop)
    return one.path.parent


@pytest.fixture
def played(seven_events: Path, tmp_path: Path) -> Played:
    """Give a copy of these events, which may be added to."""
    shutil.copytree(seven_events, tmp_path, dirs_exist_ok=True)
    return Played(tmp_path)


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(("lines", "events", "named"), [(2, 0, "events 1 to 7"), (5, 4, "events 5 to 7")])
def test_a_journal_that_was_cut_is_a_finding(played: Played, lines: int, events: int, named: str) -> None:
    """LG2, LG1: exit 1, one sentence that names the lost events and the way back, what is left, no change."""
    whole = played.journal.read_bytes()
    played.journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:lines]))
    before = everything(played.path.parent)

    for options in ((), ("--json",)):
        result = run(inspect, played.path, *options)
        assert result.exit_code == 1
        assert result.stderr == (
            f"codeai-lab: The index of k.duckdb knows more than its journal, which has lost {named}: "
            "acknowledged, and still in the index. Run: codeai-lab restore k.duckdb\n"
        )
    said = json.loads(result.stdout)
    assert (said["events"], said["lost"]) == (events, {"first": events + 1, "last": 7})
    assert "knows more than its journal" in said["finding"]
    assert f"{events} events, 0 unknown effects" in run(inspect, played.path).stdout
    assert everything(played.path.parent) == before

    assert run(restore, played.path).exit_code == 0
    assert played.journal.read_bytes() == whole
    assert (shown(played.path)["lost"], shown(played.path)["finding"]) == (None, None)


def test_a_journal_that_was_cut_by_a_line_is_a_finding(played: Played) -> None:
    """LG2: half a batch is left out and the whole of it is named."""
    played.journal.write_bytes(b"".join(played.journal.read_bytes().splitlines(keepends=True)[:-1]))
    assert run(inspect, played.path).exit_code == 1
    assert shown(played.path)["lost"] == {"first": 5, "last": 7}


def test_a_ledger_in_use_makes_no_alarm(played: Played) -> None:
    """A writer's index is its own and mostly behind: exit 0, nothing said of it."""
    with DuckDBLedger(played.path) as ledger:
        played.ask(ledger, "a3", "k3")
        result = run(inspect, played.path)
        assert (result.exit_code, result.stderr) == (0, "")
    assert run(inspect, played.path).exit_code == 0


def test_an_edited_line_is_named_by_both(played: Played) -> None:
    """LG2: exit 1 and the line's place in the file, from `inspect` and from `restore`; no byte is changed."""
    edited = played.journal.read_bytes().replace(b'"instruction":"i"', b'"instruction":"I"', 1)
    played.journal.write_bytes(edited)
    for command in (inspect, restore):
        result = run(command, played.path)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("codeai-lab: Line 2 of the journal file, event 1, is not what was")
    assert played.journal.read_bytes() == edited


def test_a_whole_journal_lacks_nothing(played: Played) -> None:
    """`restore` says that it read every line, or how many it wrote."""
    said = "The journal lacks nothing, and every line of it fits the next.\n"
    assert run(restore, played.path).stdout == said
    whole = played.journal.read_bytes()
    with DuckDBLedger(played.path) as ledger:
        played.ask(ledger, "a3", "k1")
    played.journal.write_bytes(whole)
    assert run(restore, played.path).stdout == "2 events were written back into the journal.\n"


def test_counts_are_worded_by_their_number(played: Played) -> None:
    """One unknown effect, not one effects."""
    assert "7 events, 1 unknown effect\n" in run(inspect, played.path).stdout


def test_what_is_shown_is_what_was_answered(played: Played) -> None:
    """LG3: status, effect and next of a refusal, a replay, a success, a denial: as in the results."""
    with DuckDBLedger(played.path) as ledger:
        results = [
            played.ask(ledger, "r2", "k2"),
            played.ask(ledger, "r1", "k1"),
            played.ask(ledger, "n1", "k4"),
            Runtime(ledger).execute_action(
                ActionRequest(action_id="d1", idempotency_key="k5", capability="x", instruction="i"),
                authority=Authority.of("c"),
                adapter=LineAdapter(played.world),
            ),
        ]
    rows = {action["action_id"]: action for action in shown(played.path)["actions"]}

    assert [str(result.status) for result in results] == ["refused", "succeeded", "succeeded", "denied"]
    for result in results:
        row = rows[result.action_id]
        assert (row["status"], row["effect_state"], row["next_operation"], row["reused_from"]) == (
            result.status,
            result.effect_state,
            result.next_operation,
            result.reused_from_action_id,
        )
    assert rows["r2"]["reason"] == "effect-unknown"
    assert {row["status"] for row in rows.values() if row["status"] is not None} <= WORDS
    assert shown(played.path)["unknown"] == 1  # the effect that may have happened, not each answer about it
    assert [row["action_id"] for row in shown(played.path, "--unknown")["actions"]] == ["a2"]


def test_a_refusal_beside_a_live_walk_is_in_progress(played: Played) -> None:
    """LG3: the answer said wait, and so does what is shown while nothing came of the walk."""
    with DuckDBLedger(played.path) as ledger:
        results = []

        def ask_again() -> None:
            results.append(played.ask(ledger, "b2", "k6"))
            stop()

        with pytest.raises(KeyboardInterrupt):
            played.ask(ledger, "b1", "k6", after=ask_again)
    row = shown(played.path)["actions"][-1]
    assert row["action_id"] == "b2"
    assert (row["status"], row["reason"], row["effect_state"], row["next_operation"]) == (
        "in_progress", "in-progress", "unknown", "wait",
    )  # fmt: skip
    assert (results[0].status, results[0].effect_state, results[0].next_operation) == (
        "in_progress", "unknown", "wait",
    )  # fmt: skip


def test_a_conflict_is_refused_and_speaks_of_no_effect(played: Played) -> None:
    """LG3: another operation under a taken key has no effect of its own, known or unknown."""
    with DuckDBLedger(played.path) as ledger, pytest.raises(IdempotencyConflictError):
        played.ask(ledger, "c1", "k1", what="another operation")
    row = shown(played.path)["actions"][-1]
    assert (row["status"], row["reason"], row["effect_state"], row["next_operation"]) == (
        "refused", "identity-conflict", "none", "none",
    )  # fmt: skip


class Answering:
    """An effect system that gives one answer to every question."""

    def __init__(self, found: list[dict[str, str]] | None) -> None:
        self.found = found

    def find(self, _: object) -> list[dict[str, str]] | None:
        return self.found

    def resolve(self, _: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("found", "effect", "then"),
    [
        ([{"marker": "m"}], "observed", "none"),
        ([], "none", "start"),
        (None, "unknown", "reconcile_effect"),
    ],
    ids=["confirmed", "absent", "still unknown"],
)
def test_a_verdict_speaks_for_those_who_were_refused(
    played: Played, found: list[dict[str, str]] | None, effect: str, then: str
) -> None:
    """LG3: once the key is reconciled, a refused request shows what the key's record says since."""
    with DuckDBLedger(played.path) as ledger:
        played.ask(ledger, "r2", "k2")
        Runtime(ledger).reconcile_action(
            "a2", authority=Authority.of(RECONCILE), effect_lookup=Answering(found)
        )
    row = shown(played.path)["actions"][-1]
    assert (row["action_id"], row["status"]) == ("r2", "refused")
    assert (row["effect_state"], row["next_operation"]) == (effect, then)
