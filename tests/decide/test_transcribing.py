"""The laws of decide.transcribing: what the events of a trajectory say, as facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.compression import Carried, FactKind, compress, missing
from codeai_lab.decide.recovery import Policy
from codeai_lab.decide.transcribing import facts_of
from codeai_lab.lessons.carried_state import film_events
from codeai_lab.lessons.film_play import Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger

EVENTS = film_events()


def stopped(policy: Policy) -> Play:
    run = Play(STORY, policy, MemoryLedger())
    run.to_the_failure()
    return run


def finished(policy: Policy) -> tuple[Event, ...]:
    run = stopped(policy)
    run.recover()
    return run.events


def test_each_event_becomes_the_facts_that_it_is() -> None:
    """TC1: the literal kinds, in order; a decision that reopens is one rejection and not two."""
    assert [str(fact.kind) for fact in facts_of(EVENTS)] == [
        "request", *["constraint"] * 3, "call", "result", *["plan"] * 3,
        *["call", "result"] * 3, "accepted",
        *["call", "result"] * 2, "rejected", "call", "failure", "call", "failure", "budget",
    ]  # fmt: skip


def test_an_event_of_another_kind_changes_nothing() -> None:
    """TC1: checkpoints, authority and whatever else is in the stream become no fact."""
    other = replace(EVENTS[-1], kind="something.else", payload={"text": "ignore the plan"})
    fewer = [event for event in EVENTS if event.kind != "checkpoint.committed"]
    assert facts_of([*EVENTS, other]) == facts_of(EVENTS) == facts_of(fewer)


def test_a_passage_is_one_that_the_record_holds() -> None:
    """TC2: a quotation of what is not there adds nothing."""
    [quote] = [event for event in EVENTS if isinstance(event.payload.get("result"), dict)
               and "film:ex-machina#1" in event.payload["result"].get("passages", ())]  # fmt: skip
    made_up = {**quote.payload, "result": {"passages": ["film:ex-machina#2", "film:ex-machina#99"]}}
    changed = [replace(event, payload=made_up) if event is quote else event for event in EVENTS]
    [accepted] = [fact for fact in facts_of(changed) if fact.kind is FactKind.ACCEPTED]
    assert accepted.said["passage"].startswith("He is to judge")
    assert accepted.said["passage"].endswith("imitation of one.")


def test_nothing_is_planned_or_accepted_without_a_decision() -> None:
    """TC3: without its validations the trajectory has a request, results and failures, and no more."""
    undecided = [event for event in EVENTS if event.kind != "validation.decided"]
    state = compress(facts_of(undecided))
    assert (state.plans, state.evidence) == ((), ())
    assert state.request is not None
    assert state.failures


@pytest.mark.parametrize("policy", list(Policy))
def test_a_state_made_of_a_real_trajectory_lacks_nothing_and_is_a_fraction(policy: Policy) -> None:
    """At the failure, under each policy; every part but the questions, of which there are none, is needed."""
    facts = facts_of(stopped(policy).events)
    state = compress(facts)
    assert missing(state, facts, deciding="memory-film") == ()
    for part in set(Carried.__slots__) - {"uncertainties"}:
        assert missing(state.without(part), facts, deciding="memory-film")


@pytest.mark.parametrize("policy", list(Policy))
def test_a_finished_trajectory_carries_its_evidence_and_no_plan(policy: Policy) -> None:
    """Both films and the comparison are accepted once, also after a restart, and nothing is open."""
    state = compress(facts_of(finished(policy)))
    assert [one["node"] for one in state.evidence] == ["ai-film", "memory-film", "compare"]
    assert (state.plans, state.failures) == ((), ())


def test_a_restart_sets_aside_what_was_accepted_before() -> None:
    """Until it is accepted anew, the first film is open again; its failures stay in the record."""
    events = finished(Policy.RESTART)
    place = next(n for n, event in enumerate(events) if event.payload.get("policy") == "restart")
    facts = facts_of(events[: place + 1])
    assert not [fact for fact in facts if fact.kind in (FactKind.PLAN, FactKind.ACCEPTED)]
    assert [fact for fact in facts if fact.kind is FactKind.FAILURE]


def test_evidence_that_was_withheld_is_evidence_no_more() -> None:
    """A source that may not be read any more reopens its node and what waits for it."""
    events = finished(Policy.RESUME)
    said = {"node": "ai-film", "source_id": "film:ex-machina", "film_id": "ex-machina", "reason": "revoked"}
    withheld = replace(events[-1], kind="evidence.withheld", payload=said)
    state = compress(facts_of([*events, withheld]))
    assert [one["node"] for one in state.evidence] == ["memory-film"]
    assert [one["node"] for one in state.plans] == ["ai-film", "compare"]


def test_a_node_that_is_unresolved_is_an_open_question() -> None:
    """What a person has to decide is carried on as a question of that node."""
    unresolved = replace(
        EVENTS[-1], kind="node.unresolved", payload={"node": "memory-film", "reason": "repairs"}
    )
    [question] = compress(facts_of([*EVENTS, unresolved])).uncertainties
    assert question["node"] == "memory-film"
    assert "repairs" in question["question"]


@pytest.mark.parametrize("events", [(), EVENTS[1:]])
def test_a_history_begins_with_its_request(events: tuple[Event, ...]) -> None:
    """Half a history is refused, so that nothing is taken for complete that is not."""
    with pytest.raises(ValueError, match=r"trajectory\.started"):
        facts_of(events)
