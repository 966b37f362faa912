"""Do the counts that take a second each come to the known numbers, as their quick neighbours do?

The quick ones are in `test_backoff_laws.py`, `test_exploring_schedules.py`, `test_dropping_walks.py`,
`test_schedules.py` and `test_freezable.py`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.backoff_laws import law
from codeai_lab.explore.crash_points import crashes_everywhere
from codeai_lab.explore.moments import Race, submit
from codeai_lab.explore.protocols import rules_named
from codeai_lab.explore.schedules import every_schedule, explore
from codeai_lab.lessons.freezable import freezable
from codeai_lab.lessons.rerunning import rerun
from codeai_lab.lessons.schedules import schedule_rows
from codeai_lab.prove.verify import verify


@pytest.mark.parametrize(("cap", "atom"), [(60, 0.339), (400, 0.269)])
def test_the_decorrelated_atom_settles_under_a_far_cap(cap: float, atom: float) -> None:
    """After many delays a third to a quarter of them are exactly the cap, by cap over base."""
    settled = law(Backoff(strategy=Strategy.DECORRELATED, cap=cap), 10**6)
    assert settled.atom_at_cap == pytest.approx(atom, abs=5e-4)


def test_a_count_on_paper_agrees_with_three_under_the_first_rules() -> None:
    """Positions on paper, without events, walks or stages, give the numbers that the real stages give."""
    assert explore(rules_named("7a0d43b"), 3).effects == {1: 1_836, 2: 3_400_596, 3: 9_427_541_508}


def test_a_slower_count_of_a_lease_s_prefixes_agrees() -> None:
    """Each prefix of each schedule played by itself, with no two moments taken for alike."""
    rules = rules_named("takeover-alive-reconcile")
    prefixes = {schedule[:n] for schedule, _ in every_schedule(rules) for n in range(len(schedule) + 1)}
    counts: Counter[int] = Counter()
    for prefix in prefixes:
        race = Race(rules, 2)
        moment = race.start()
        for number in prefix:
            moment = race.after(moment, number)
        race.ledger.live_actions.clear()
        submit(race.runtime, "again", race.world).run()
        counts[len(race.world.receipts())] += 1
    assert dict(sorted(counts.items())) == crashes_everywhere(rules, 2)


def test_a_crash_after_any_prefix_of_three_under_a_lease_and_an_effect_that_checks() -> None:
    """Three submissions die together anywhere; after one more there is one effect."""
    assert crashes_everywhere(rules_named("takeover-alive-effect-side"), 3) == {1: 2_156_128}


def test_a_lease_that_runs_out_under_one_of_three_living_holders() -> None:
    """Asking before taking over does not mend the gap between the requests of three, either."""
    (three,) = schedule_rows(3, only=["takeover-alive-reconcile"])
    assert three["after_crash"] == {"1": 1_623_388, "2": 2_172_840, "3": 1_225_440}


def test_samples_of_throttling_become_evidence(tmp_path: Path) -> None:
    """The bundle is accepted, is the same bytes again, and its rerun is the same in every case."""
    one, two = (freezable("throttling").freeze("sampled", tmp_path / name, None, None) for name in "ab")
    assert one == two
    report = verify(tmp_path / "a", one)
    assert (report.valid, report.complete, report.findings) == (True, "yes", ())
    assert rerun(tmp_path / "a").same
