"""The front door: starting, recovering, and how a completion is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.recovery import Policy, completion
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.film_play import Fails, Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.store.memory import MemoryLedger

CLEAN = replace(STORY, fails=())


def test_the_start_records_the_request_as_checkpoint_v1() -> None:
    """Two events in one append: the request, and the checkpoint that holds it and nothing else."""
    play = Play(CLEAN, "resume", MemoryLedger())
    started, first = play.events
    assert started.causation_id is None
    assert first.causation_id == started.event_id
    assert first.payload["version"] == 1
    assert first.payload["request"] == started.payload["request"] == STORY.request.as_json()
    assert (first.payload["plan"], first.payload["node_status"]) == (None, {})


def test_a_name_is_started_once() -> None:
    """A name that is taken is refused, and nothing is recorded."""
    play = Play(CLEAN, "resume", MemoryLedger())
    before = play.events
    with pytest.raises(RefusedRequestError, match="earlier trajectory"):
        play.harness.start(play.name, STORY.request, STORY.limits)
    assert play.events == before


def test_there_is_nothing_to_recover_where_nothing_failed() -> None:
    """A policy answers a failure; without one it is refused."""
    play = Play(CLEAN, "resume", MemoryLedger())
    assert play.harness.choices(play.name) == ()
    for policy in Policy:
        with pytest.raises(RefusedRequestError, match="nothing to do here"):
            play.harness.recover(play.name, policy)


def test_without_another_path_there_is_no_fallback() -> None:
    """A record look-up has no other tool; without a standby only restart and resume are offered."""
    story = replace(STORY, fails=(Fails(tool="get_film", nth=1),), limits=replace(STORY.limits, standby={}))
    play = Play(story, "fallback", MemoryLedger())
    assert play.to_the_failure() == ("restart", "resume")
    with pytest.raises(RefusedRequestError, match="no other path"):
        play.recover()


def test_of_two_recoveries_one_is_told_that_there_is_nothing_left_to_do() -> None:
    """A failure is answered once; the second policy finds it answered."""
    ledger = MemoryLedger()
    play = Play(STORY, "resume", ledger)
    play.to_the_failure()
    play.harness.recover(play.name, "fallback")
    with pytest.raises(RefusedRequestError):
        play.harness.recover(play.name, "resume")
    assert [event.kind for event in play.events].count("recovery.started") == 1


def test_a_recovery_is_on_record_before_anything_of_it_is_done() -> None:
    """The choice names error, checkpoint, and what is kept or discarded, and is caused by the failure."""
    for policy, discards, keeps, version in (
        ("restart", [2], [], 1), ("resume", [], ["ai-film"], 2), ("fallback", [], ["ai-film"], 2),
    ):  # fmt: skip
        play = Play(STORY, policy, MemoryLedger())
        play.to_the_failure()
        failed = play.events[-1]
        play.harness.recover(play.name, policy)
        chosen = play.events[len(play.events) - (2 if policy == "fallback" else 1)]
        assert chosen.causation_id == failed.event_id
        assert chosen.payload == {
            "policy": policy, "failed_call_id": "call-5", "original_error": failed.payload["error"],
            "from_version": version, "discards": discards, "keeps": keeps,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("story", "policy", "expected"),
    [
        (CLEAN, None, "first-attempt"),
        (replace(STORY, limits=replace(STORY.limits, call_retries=1)), None, "retried"),
        (replace(STORY, limits=replace(STORY.limits, step_retries=1)), None, "retried"),
        (replace(STORY, limits=replace(STORY.limits, switches=1)), None, "recovered"),
        (STORY, "restart", "recovered"),
        (STORY, "resume", "recovered"),
        (STORY, "fallback", "recovered"),
    ],
)
def test_completions_are_told_apart_by_the_record(story: Story, policy: str | None, expected: str) -> None:
    """First attempt, retried and recovered are three answers, in the completion and from the events alone."""
    play = Play(story, policy or "resume", MemoryLedger())
    offered = play.to_the_failure()
    assert bool(offered) == (policy is not None)
    if offered:
        play.recover()
    assert play.events[-1].payload["completion"] == expected
    assert completion(play.events) == expected


def test_a_call_without_an_answer_makes_the_completion_a_retried_one() -> None:
    """Killed while a tool was asked is not a first attempt."""
    ledger = MemoryLedger()
    play = Play(CLEAN, "resume", ledger)
    walk = play.harness.walk(play.name)
    while walk.step() != "ask":
        pass
    play = Play(CLEAN, "resume", ledger, process="next")
    play.harness.run(play.name)
    assert play.events[-1].payload["completion"] == "retried"


def test_reading_the_state_records_nothing() -> None:
    """State and choices are read, not made."""
    ledger = MemoryLedger()
    play = Play(STORY, "resume", ledger)
    play.to_the_failure()
    before = ledger.snapshot()
    assert [schedule.policy for schedule in play.harness.choices(play.name)] == list(Policy)
    assert play.harness.state(play.name).failure is not None
    assert ledger.snapshot() == before
