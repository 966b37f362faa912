"""What does the next trajectory need of this one, and what is lost when a part is left out?

Chapter: 003, "Resume from the last verified checkpoint", on Re-TRAC: compression remains useful only when it
preserves what the next decision needs.

Idea: the film comparison is run until it stops: the first record for the memory-loss branch contradicts, the
look-up of the next one times out twice. What was recorded is made a state, a fraction of the transcript. Then
each part of the state is left out in turn, and the check says what the decision about the branch would miss.

Always true:
  CS1. The facts are read from the events of a trajectory that ran, but for one open question, which a person
       put.
  CS2. One row for each part of a state, with everything that is missed without it.

Not here: the check itself (`decide.compression`), the trajectory (`run.trajectory`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codeai_lab.decide.compression import Carried, Fact, FactKind, compress, missing
from codeai_lab.decide.recovery import Policy
from codeai_lab.decide.transcribing import facts_of
from codeai_lab.lessons.film_play import Fails, Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger

OPEN_NODE = "memory-film"
QUESTION = Fact(
    kind=FactKind.QUESTION, node="compare", said={"question": "does a robot's identity count as identity?"}
)


def film_events() -> tuple[Event, ...]:
    """Run the film comparison until it stops, and give what was recorded."""
    story = replace(
        STORY,
        limits=replace(STORY.limits, call_retries=1),
        fails=(
            Fails(tool="get_film", nth=2, kind="contradiction"),
            Fails(tool="get_film", nth=3),
            Fails(tool="get_film", nth=4),
        ),
    )
    run = Play(story, Policy.RESUME, MemoryLedger())
    run.to_the_failure()
    return run.events


def film_facts() -> tuple[Fact, ...]:
    """Give what the film comparison has recorded when it stops, and the question that was put meanwhile."""
    return (*facts_of(film_events()), QUESTION)


def rows() -> list[dict[str, Any]]:
    """Leave out each part of the state in turn and say what the next decision misses."""
    facts = film_facts()
    return [
        {"left out": part, "missed": list(missing(state, facts, deciding=OPEN_NODE))}
        for part, state in _states(compress(facts))
    ]


def _states(whole: Carried) -> Iterator[tuple[str, Carried]]:
    yield "nothing", whole
    for part in Carried.__slots__:
        yield part, whole.without(part)
