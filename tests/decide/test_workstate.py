"""Does the record of a call say how far it can have got, and what may be done next?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.decide.identity import recorded_call_fingerprint
from codeai_lab.decide.workstate import (
    CallOperation,
    CallStage,
    answered_call,
    events_of_work,
    project_call_state,
    project_work_state,
)
from codeai_lab.records import EffectState, Event

SET_UP = (
    "directive.opened", "task.created", "context.item_offered",
    "context.compilation_requested", "context.compiled",
)  # fmt: skip
CALL = (
    "call.requested", "call.manifest", "attempt.started", "attempt.observed", "attempt.interpreted",
    "attempt.retry_decided", "attempt.completed", "call.status_decided", "call.completed",
)  # fmt: skip
CLEAN = (*SET_UP, *CALL)


def chain(*kinds: str, work: str = "w", call: str = "c", after: int = 0, **payload: Any) -> tuple[Event, ...]:
    """Give a history of these kinds, each event caused by the one before it."""
    events: list[Event] = []
    for number, kind in enumerate(kinds, start=after + 1):
        events.append(
            Event(
                seq=number,
                event_id=f"{work}-{number}",
                run_id="r",
                stream_id=call if kind.startswith(("call.", "attempt.")) else work,
                kind=kind,
                actor_id="t",
                idempotency_key="k",
                recorded_at_us=number,
                causation_id=events[-1].event_id if events else None,
                payload={"replayed": False, **payload} if kind == "call.completed" else payload,
            )
        )
    return tuple(events)


# fmt: off
STATES = [
    (1,  None,                "-",        "recompile",        None),
    (2,  None,                "-",        "recompile",        None),
    (3,  None,                "-",        "recompile",        None),
    (4,  None,                "-",        "recompile",        None),
    (5,  None,                "-",        "start_call",       None),
    (6,  "requested",         "none",     "start_call",       False),
    (7,  "manifest_recorded", "none",     "start_call",       False),
    (8,  "effect_unknown",    "unknown",  "reconcile_effect", True),
    (9,  "observed",          "observed", "reinterpret",      False),
    (10, "observed",          "observed", "reinterpret",      False),
    (11, "observed",          "observed", "reinterpret",      False),
    (12, "observed",          "observed", "reinterpret",      False),
    (13, "observed",          "observed", "reinterpret",      False),
    (14, "completed",         "observed", "none",             False),
]
# fmt: on


@pytest.mark.parametrize(("length", "stage", "effect", "then", "risk"), STATES)
def test_each_prefix_of_a_clean_chain_has_its_state(
    length: int, stage: str | None, effect: str, then: str, risk: bool | None
) -> None:
    """WS1, WS2: the whole table, one row for each place at which a process can die."""
    events = chain(*CLEAN[:length])
    state = project_work_state(events)
    assert (state.stage, state.provider_effect or "-", state.next_operation, state.duplicate_risk) == (
        stage, effect, then, risk,
    )  # fmt: skip
    assert project_work_state(events) == state
    assert state.work_id == "w"
    assert state.call_id == ("c" if length > 5 else None)
    assert state.reason


def test_missing_context_is_to_be_fixed_and_named() -> None:
    """A failed compilation asks for other inputs, by name, and no call is spoken of."""
    state = project_work_state(chain(*SET_UP[:4], "context.compilation_failed", missing=["source", "notes"]))
    assert state.next_operation is CallOperation.FIX_INPUTS
    assert state.reason == "required context missing: source, notes"
    assert (state.stage, state.provider_effect, state.duplicate_risk) == (None, None, None)


def resumed(taken_over_at: int, *, new: int) -> tuple[Event, ...]:
    """Give a work whose call was killed and resumed: so many events, the link, so many of the new call."""
    old = chain(*CLEAN[:taken_over_at])
    link = replace(
        chain("call.resumed", after=taken_over_at, new_call_id="d")[0], causation_id=old[-1].event_id
    )
    follow = chain(*CALL[:new], call="d", after=taken_over_at + 1)
    return (*old, link, replace(follow[0], causation_id=link.event_id), *follow[1:])


@pytest.mark.parametrize("new", range(1, 10))
def test_a_superseded_call_names_its_successor_and_the_newest_call_speaks(new: int) -> None:
    """WS3: also when the successor itself was killed, at any place."""
    state = project_work_state(resumed(7, new=new))
    alone = project_work_state(chain(*CLEAN[: 5 + new], call="d"))
    assert state.superseded_by == {"c": "d"}
    assert replace(state, superseded_by={}) == alone


def test_a_replayed_call_had_no_effect_of_its_own() -> None:
    """It is completed, nobody was asked, and the original is named."""
    events = chain(*SET_UP, "call.requested", "call.completed", replayed=True, original_call_id="first")
    state = project_work_state(events)
    assert (state.stage, state.provider_effect, state.duplicate_risk) == (
        CallStage.COMPLETED, EffectState.NONE, False,
    )  # fmt: skip
    assert state.reason == "it was answered from first"


def test_a_denied_call_asked_nobody() -> None:
    """Whether it was denied at once or right before its attempt."""
    for before in (CALL[:1], CALL[:2]):
        state = project_work_state(chain(*SET_UP, *before, "call.completed", status="denied"))
        assert (state.stage, state.provider_effect, state.next_operation) == ("denied", "none", "none")
        assert state.duplicate_risk is False


@pytest.mark.parametrize(
    ("verdict", "stage", "effect", "then", "risk"),
    [
        ("effect_confirmed", "reconciled", "observed", "none", True),
        ("no_effect_confirmed", "reconciled", "none", "start_call", False),
        ("still_unknown", "effect_unknown", "unknown", "none", True),
    ],
)
def test_the_last_verdict_speaks_for_an_unknown_effect(
    verdict: str, stage: str, effect: str, then: str, risk: bool
) -> None:
    """WS2: what was found out goes before what was left open; a refusal to find out changes nothing."""
    events = chain(*SET_UP, *CALL[:3], "call.reconciled", "call.reconcile_refused", verdict=verdict)
    state = project_work_state(events)
    assert (state.stage, state.provider_effect, state.next_operation) == (stage, effect, then)
    assert (state.duplicate_risk, bool(state.reason)) == (risk, True)


def test_the_state_of_a_call_needs_its_request() -> None:
    """A history that begins elsewhere is no call's."""
    for events in ((), chain(*SET_UP), chain(*CLEAN)):
        with pytest.raises(ValueError, match=r"begins with call\.requested"):
            project_call_state(events)


def test_a_conflict_is_an_end() -> None:
    """A refused call has no effect and nothing is to be done about it."""
    state = project_work_state(chain(*SET_UP, "call.requested", "call.replay_refused"))
    assert (state.stage, state.provider_effect, state.next_operation) == ("refused", "none", "none")


def test_a_second_attempt_is_dark_again() -> None:
    """What is newest decides: an observed first attempt does not cover a second one."""
    events = chain(*CLEAN[:11], "attempt.started")
    assert project_work_state(events).next_operation is CallOperation.RECONCILE_EFFECT


def test_an_event_that_it_does_not_know_changes_nothing() -> None:
    """Other events of the call's stream are passed over."""
    events = chain(*CLEAN[:8], "call.noted")
    assert project_work_state(events) == project_work_state(events[:-1])


@pytest.mark.parametrize(
    "events",
    [(), chain(*CALL), chain("task.created", *CLEAN), chain(*CLEAN, *CLEAN)],
    ids=["nothing", "no directive", "not at the beginning", "two works"],
)
def test_a_history_that_is_not_one_work_is_refused(events: tuple[Event, ...]) -> None:
    """The state of two works at once would hide one of them."""
    with pytest.raises(ValueError, match=r"directive\.opened"):
        project_work_state(events)


def test_works_of_one_key_are_told_apart_by_their_causes() -> None:
    """WS4: by the name of the work or of any of its calls; the later success hides no unknown effect."""
    first = resumed(7, new=3)
    second = chain(*CLEAN, work="w2", call="c2", after=len(first))
    ledger = (*first, *second)
    for name in ("w", "c", "d"):
        assert events_of_work(ledger, name) == first
        assert project_work_state(events_of_work(ledger, name)).next_operation == "reconcile_effect"
    for name in ("w2", "c2"):
        assert events_of_work(ledger, name) == second
    assert events_of_work(ledger, "nobody") == ()
    mixed = [one for pair in zip(first, second, strict=False) for one in pair]
    assert events_of_work(mixed, "w2") == second[: len(first)]


def request_of(call: str, *, prompt: str = "Say it.", manifest: str | None = None) -> tuple[Event, ...]:
    """Give a completed call whose manifest carries this digest; by default the one that fits."""
    said = {"prompt": prompt, "chamber": "a", "requested_model": "m", "context": {}}
    fits = recorded_call_fingerprint(said).digest
    events = chain("call.requested", "call.manifest", "call.completed", work=call, call=call)
    payloads = (said, {"fingerprint": {"digest": manifest or fits}}, {"response": call})
    return tuple(replace(event, payload=payload) for event, payload in zip(events, payloads, strict=True))


def test_the_oldest_call_with_fitting_terminal_evidence_is_the_answer() -> None:
    """A completion without a manifest of the same call answers nobody."""
    without = tuple(event for event in request_of("c0") if event.kind != "call.manifest")
    foreign = request_of("c1", manifest="0" * 64)
    unfinished = request_of("c2")[:2]
    found = answered_call((*without, *foreign, *unfinished, *request_of("c3"), *request_of("c4")))
    assert found is not None
    assert [event.stream_id for event in found] == ["c3", "c3"]
    assert found[1].payload["response"] == "c3"
    assert answered_call((*without, *foreign, *unfinished)) is None
