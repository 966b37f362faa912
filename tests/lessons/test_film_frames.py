"""What a state of a trajectory looks like: read from events and state alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codeai_lab.decide.folding import project_trajectory
from codeai_lab.decide.stepping import Frame, MarkKind
from codeai_lab.lessons.film_frames import frame_of
from codeai_lab.lessons.film_play import Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger


def played(story: Story, policy: str = "fallback") -> tuple[Event, ...]:
    run = Play(story, policy, MemoryLedger())
    if run.to_the_failure():
        run.recover()
    return run.events


def frames(events: tuple[Event, ...]) -> Iterator[Frame]:
    """Show each event as a step of its own."""
    for length in range(2, len(events) + 1):
        seen = events[:length]
        yield frame_of(seen, project_trajectory(seen), new=1, policy=None, choices=())


def test_a_frame_follows_from_the_events_and_the_state() -> None:
    """Shown twice it is the same frame, and only the last one has an outcome (FF1, FF2)."""
    events = played(STORY)
    shown = list(frames(events))
    assert shown == list(frames(events))
    assert [bool(frame.outcome) for frame in shown] == [False] * (len(shown) - 1) + [True]
    assert shown[-1].outcome["policy"] == "fallback"


def test_each_event_that_matters_has_its_sentence() -> None:
    """Checkpoint, failure, recovery and the other path are said, and no conclusion changes by a failure."""
    said = {frame.kind: frame.headline for frame in frames(played(STORY))}
    assert said[MarkKind.CHECKPOINT] == "Checkpoint v4 is committed."
    assert "No conclusion about memory-film changes." in said[MarkKind.FAILURE]
    assert said[MarkKind.CHOICE] == "The policy fallback goes on from checkpoint v2."
    assert said[MarkKind.END].startswith("Completed (recovered)")


def test_a_revision_says_whether_it_changed_anything() -> None:
    """A repair that repeats the query is not called a change."""
    clean = replace(STORY, fails=())
    changed = [frame.headline for frame in frames(played(clean.seeking("memory-film", query="")))]
    assert "The query for memory-film is changed, repair 1." in changed
    wordless = clean.seeking("memory-film", query="", rewritten="")
    repeated = [frame.headline for frame in frames(played(wordless))]
    assert "For memory-film the same query is proposed again, repair 3." in repeated


def test_what_is_true_now_is_in_the_facts() -> None:
    """Checkpoint, branches, calls and failures are shown, in the plan's order."""
    *_, last = frames(played(STORY))
    assert [name for name, _ in last.facts] == [
        "checkpoint", "ai-film", "memory-film", "compare", "calls", "failures on record", "policy",
    ]  # fmt: skip
    assert dict(last.facts)["memory-film"].endswith("by lexical_search")
