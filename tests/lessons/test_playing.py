"""Does a play give the same bytes every time, and a row that only ledger and world decide?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.witnesses import hear
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons import RETRY_EDGES, RETRY_EFFECTS
from codeai_lab.lessons.cases import Ask
from codeai_lab.lessons.playing import Played, Table, chosen, play
from codeai_lab.run.effects import MarkerWorld
from codeai_lab.run.revisions import LAB, R_7A0D43B, REVISIONS
from codeai_lab.store.memory import MemoryLedger

Give = Callable[[str, str], Played]


@pytest.mark.parametrize("rules", REVISIONS)
def test_a_row_is_computed_from_ledger_and_world(played: Give, rules: str) -> None:
    """Y2: hearing events and receipts again gives the row, whatever the producer said."""
    for lesson in ("retry-effects", "retry-edges"):
        play_ = played(lesson, rules)
        for row in play_.rows:
            events = [event for event in play_.events if event.run_id == f"{lesson}/{row['case']}"]
            receipts = MarkerWorld(play_.world / row["case"]).receipts()
            heard = hear(events, receipts, summary=999)
            assert row["statuses"] == list(heard.statuses)
            assert row["reused_from"] == list(heard.reused_from)
            assert row["labels"] == list(heard.labels)
            assert row["effects_ledger"] == list(heard.effects_ledger)
            assert row["effects_world"] == len(receipts)
            assert row["event_kinds"] == [event.kind for event in events]


@pytest.mark.parametrize("rules", REVISIONS)
def test_the_receipts_of_every_case_are_its_markers(played: Give, rules: str) -> None:
    """The world is kept apart from the ledger, case by case, also where nothing happened."""
    for lesson in (RETRY_EFFECTS, RETRY_EDGES):
        play_ = played(lesson.name, rules)
        for case in lesson.cases:
            world = MarkerWorld(play_.world / case.name)
            assert world.marker_count() == len(world.receipts()) == case.expected_under(rules).effects_world


@pytest.mark.parametrize("rules", REVISIONS)
def test_a_row_is_json_in_the_agreed_words(played: Give, rules: str) -> None:
    """The names that scripts outside read, in one form that JSON keeps."""
    for row in played("retry-effects", rules).rows:
        assert set(row) == {
            "case", "revision", "requests", "statuses", "reused_from", "raised", "effects_ledger",
            "effects_world", "effects_summary", "labels", "event_kinds", "evidence_label", "provider_calls",
            "notes",
        }  # fmt: skip
        assert json.loads(json.dumps(row)) == row
        assert row["evidence_label"] == "demo"
        for name in ("statuses", "reused_from", "raised", "labels"):
            assert len(row[name]) == row["requests"]


def test_the_events_of_a_play_are_the_lines_of_its_journal(played: Give) -> None:
    """What is given back as events is what is on disk."""
    play_ = played("retry-effects", "lab")
    lines = [json.loads(line) for line in play_.journal.read_bytes().splitlines()]
    assert lines[0]["ledger_id"] == "retry-effects/lab"
    assert [line["event_id"] for line in lines[1:]] == [event.event_id for event in play_.events]
    assert [line["payload"] for line in lines[1:]] == [event.payload for event in play_.events]
    assert play_.events[0].event_id == "A-exact-duplicate-0001"


def test_cases_can_be_chosen_and_keep_their_order(tmp_path: Path) -> None:
    """Only the named ones are played, in the lesson's order, and told of as they begin."""
    told: list[str] = []
    play_ = play(RETRY_EFFECTS, LAB, tmp_path, only=["E-drift", "A-exact-duplicate"], progress=told.append)
    assert told == [row["case"] for row in play_.rows] == ["A-exact-duplicate", "E-drift"]
    assert sorted(path.name for path in play_.world.iterdir()) == ["A-exact-duplicate", "E-drift"]
    assert len(chosen(RETRY_EFFECTS, ())) == 7


def test_an_unknown_case_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    """One sentence; nothing is made."""
    with pytest.raises(RefusedRequestError) as refused:
        play(RETRY_EFFECTS, LAB, tmp_path / "new", only=["F"])
    assert str(refused.value).startswith("retry-effects has no case F; it has: A-exact-duplicate, B-other-")
    assert not (tmp_path / "new").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    """A play never mixes with what is there; the refusal shows the last part of the path alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RefusedRequestError) as refused:
        play(RETRY_EFFECTS, LAB, tmp_path / "mine")
    assert str(refused.value) == "The folder mine is not empty; a play needs an empty one."
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def table(tmp_path: Path, rules: str = "lab") -> Table:
    return Table("L", "C", REVISIONS[rules], MemoryLedger(), ManualClock(), tmp_path / "world")


@pytest.mark.parametrize("error", [RuntimeError, ConnectionError, KeyboardInterrupt])
def test_an_exception_that_reaches_the_caller_is_remembered_by_its_type(
    tmp_path: Path, error: type[BaseException]
) -> None:
    """Y3: an interrupt is part of a case too, and the next request is asked all the same."""
    on = table(tmp_path, "7a0d43b")
    on.ask(Ask(id="x1", key="k", raises=error))
    on.ask(Ask(id="x2", key="other"))
    row = on.row("demo")
    assert row["raised"] == [None if error is RuntimeError else error.__name__, None]
    assert row["effects_world"] == 2


def test_a_producer_that_miscounts_is_named_and_changes_nothing(tmp_path: Path) -> None:
    """Y2: the count is only shown beside ledger and world, and the disagreement is said."""
    on = table(tmp_path)
    on.ask(Ask(id="a1", key="k"))
    honest = on.row("demo")
    on.effects_counted = 2
    row = on.row("demo")
    assert row["effects_summary"] == 2
    assert row["notes"] == ["the summary says 2, the world shows 1"]
    assert row | {"effects_summary": 1, "notes": []} == honest


def test_an_effect_that_the_ledger_does_not_know_is_named(tmp_path: Path) -> None:
    """Somebody acted behind the ledger's back: the world shows it."""
    on = table(tmp_path)
    on.ask(Ask(id="a1", key="k", permitted=False))
    on.world.append_line("a1", "one line")
    assert on.row("demo")["notes"] == [
        "the ledger allows 0, the world shows 1",
        "the summary says 0, the world shows 1",
    ]


def test_a_silent_replay_is_remarked_on_once_for_each_thing_it_passed_over(tmp_path: Path) -> None:
    """Another operation and no authority at once: two notes, under the rules that replay by key alone."""
    on = table(tmp_path, R_7A0D43B.name)
    on.ask(Ask(id="b1", key="k"))
    on.ask(Ask(id="b2", key="k", instruction="another", line="two", permitted=False))
    assert on.row("demo")["notes"] == [
        "b2 was answered from another operation: instruction, payload",
        "b2 was answered without authority",
    ]
