"""Does a schedule that is played on a ledger file do what it did in memory?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codeai_lab.explore.protocols import RACES, rules_named
from codeai_lab.explore.schedules import every_schedule, explore, play_schedule, some_schedules
from codeai_lab.explore.worlds import FolderWorld
from codeai_lab.run.revisions import REVISIONS
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger

SHORT = [rules.name for rules in RACES if len(rules.revision.stages) <= 5]
LONG = ["seven-step", *REVISIONS]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[DuckDBLedger]:
    """One ledger file for many plays."""
    with DuckDBLedger(tmp_path / "lab.duckdb") as opened:
        yield opened


@pytest.mark.parametrize("name", SHORT)
def test_every_schedule_of_a_short_protocol(ledger: DuckDBLedger, name: str) -> None:
    """All orders of two submissions, up to five stages: the effects and answers that were counted."""
    rules = rules_named(name)
    for number, (schedule, moment) in enumerate(every_schedule(rules)):
        played = play_schedule(rules, schedule, ledger, rules.new_world(), name=f"s{number}")
        assert (played.effects, played.answers) == (moment.effects, moment.answers), schedule


@pytest.mark.parametrize("name", LONG)
def test_some_schedules_of_a_long_rule_set(ledger: DuckDBLedger, tmp_path: Path, name: str) -> None:
    """One for each ending, with marker files, and two hundred drawn ones."""
    rules = rules_named(name)
    for number, (ending, share) in enumerate(explore(rules).endings.items()):
        world = FolderWorld(tmp_path / f"world-{number}")
        played = play_schedule(rules, share.shortest, ledger, world, name=f"e{number}")
        assert (played.effects, tuple(sorted(map(str, played.answers)))) == (ending.effects, ending.answers)
        assert len(list((tmp_path / f"world-{number}").glob("markers/*"))) == ending.effects
    for number, (schedule, moment) in enumerate(some_schedules(rules, 200, seed=2026)):
        played = play_schedule(rules, schedule, ledger, rules.new_world(), name=f"d{number}")
        assert (played.effects, played.answers) == (moment.effects, moment.answers), schedule


def test_the_history_on_file_is_the_history_in_memory(ledger: DuckDBLedger) -> None:
    """The same schedule records the same kinds in the same order, step by step."""
    for number, name in enumerate(("lab", "1b3c7a2", "takeover-reconcile")):
        rules = rules_named(name)
        schedule, _ = next(some_schedules(rules, 1, seed=number))
        on_file = play_schedule(rules, schedule, ledger, rules.new_world(), name=name)
        in_memory = play_schedule(rules, schedule, MemoryLedger(), rules.new_world(), name=name)
        assert on_file == in_memory
