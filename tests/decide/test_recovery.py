"""The three policies: from a recorded state to a schedule, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.plan import Role
from codeai_lab.decide.recovery import POLICIES, fallback, fallback_words, restart, resume, standby
from codeai_lab.decide.trajectory import TrajectoryState
from codeai_lab.lessons.film_play import Fails, Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.store.memory import MemoryLedger


def failed_at(*fails: Fails) -> TrajectoryState:
    run = Play(replace(STORY, fails=fails), "resume", MemoryLedger())
    run.to_the_failure()
    return project_trajectory(run.events)


TIMED_OUT = failed_at(Fails(tool="vector_search", nth=2))


def test_restart_goes_back_to_the_request_and_names_what_it_discards() -> None:
    """From v1, keeping nothing; the checkpoints since then are discarded."""
    schedule = restart(TIMED_OUT)
    assert schedule is not None
    assert (schedule.from_version, schedule.keeps, schedule.discards) == (1, (), (2,))
    assert schedule.detour is None


def test_resume_goes_on_from_the_newest_checkpoint_by_the_same_path() -> None:
    """From v2, keeping the verified branch, with no detour."""
    schedule = resume(TIMED_OUT)
    assert schedule is not None
    assert (schedule.from_version, schedule.keeps, schedule.discards) == (2, ("ai-film",), ())
    assert schedule.detour is None


def test_fallback_names_rule_paths_and_both_thresholds() -> None:
    """From v2, by another tool with the rewritten query; what is recorded says all that changed."""
    schedule = fallback(TIMED_OUT)
    assert schedule is not None
    assert schedule.detour is not None
    assert fallback_words(TIMED_OUT, schedule.detour) == {
        "node": "memory-film",
        "role": "search",
        "original_error": {
            "code": "timeout", "class": "transient", "definite": False,
            "message": "vector_search did not answer in time.",
        },
        "rule": "vector_search-failed-use-lexical_search",
        "old": {
            "tool": "vector_search", "provider": "primary",
            "arguments": {"query": "a person whose memories are erased after a relationship"},
        },
        "new": {
            "tool": "lexical_search", "provider": "primary",
            "arguments": {"query": "erased memories former relationship"},
        },
        "acceptance_threshold": {
            "old": {"method": "vector_search", "provider": "primary", "minimum": 0.2},
            "new": {"method": "lexical_search", "provider": "primary", "minimum": 0.1},
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "role"), [("get_film", Role.FETCH), ("quote", Role.QUOTE), ("plan", Role.PLAN)]
)
def test_where_no_search_failed_the_standby_is_the_other_path(tool: str, role: Role) -> None:
    """The same call goes to another provider, and no threshold of a search changes."""
    state = failed_at(Fails(tool=tool, nth=1))
    schedule = fallback(state)
    assert schedule is not None
    assert schedule.detour is not None
    assert schedule.detour.role is role
    assert schedule.detour.new.arguments == schedule.detour.old.arguments
    words = fallback_words(state, schedule.detour)
    assert words["acceptance_threshold"] == {"old": None, "new": None}


def test_without_a_standby_there_is_no_detour_for_a_look_up() -> None:
    """A policy that has nothing to offer says so."""
    state = failed_at(Fails(tool="get_film", nth=1))
    alone = replace(state, limits=replace(state.limits, standby={}))
    assert standby(alone) is None
    assert fallback(alone) is None


def test_without_a_failure_no_policy_has_a_schedule() -> None:
    """A policy answers a failure and nothing else."""
    fine = replace(TIMED_OUT, failure=None)
    assert [choose(fine) for choose in POLICIES.values()] == [None, None, None]


def test_a_schedule_follows_from_the_state_alone() -> None:
    """The same state gives the same schedule, and stays as it was."""
    again = failed_at(Fails(tool="vector_search", nth=2))
    for choose in POLICIES.values():
        assert choose(TIMED_OUT) == choose(TIMED_OUT) == choose(again)
    assert again == TIMED_OUT
