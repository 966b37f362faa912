"""Does a history say what the table says, and no more?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide import projection
from codeai_lab.decide.projection import (
    ActionState,
    KeyState,
    project_action_state,
    project_key_state,
    project_open_effects,
    starts_are_recorded,
)
from codeai_lab.records import ActionStatus, EffectState, Event, NextOperation

RULE_SETS = ("7a0d43b", "a1b562a", "1b3c7a2", "88d1291", "lab")
BEFORE_STARTS = ("7a0d43b", "a1b562a", "1b3c7a2")
WITH_STARTS = ("88d1291", "lab")

Part = tuple[str, str, dict[str, Any]]


def requested(name: str, rules: str = "lab") -> Part:
    return name, "action.requested", {"action_id": name, "rules": rules}


def started(name: str) -> Part:
    return name, "action.execution_started", {"action_id": name}


def claimed(name: str) -> Part:
    return name, "action.claimed", {"action_id": name}


def completed(name: str, status: str, *, possible: bool, reused: str | None = None) -> Part:
    return (
        name,
        "action.completed",
        {"action_id": name, "status": status, "effect_possible": possible, "reused_from_action_id": reused},
    )


def refused(name: str, reason: str) -> Part:
    return name, "action.replay_refused", {"action_id": name, "reason": reason}


def reconciled(name: str, verdict: str) -> Part:
    return name, "action.reconciled", {"action_id": name, "verdict": verdict}


def history(*parts: Part) -> tuple[Event, ...]:
    return tuple(
        Event(
            seq=seq, event_id=f"e{seq}", run_id="r", stream_id=stream, kind=kind, actor_id="t",
            idempotency_key="k", recorded_at_us=seq, causation_id=None, payload=payload,
        )
        for seq, (stream, kind, payload) in enumerate(parts, start=1)
    )  # fmt: skip


STARTED = (requested("a"), claimed("a"), started("a"))

# What the record says about an action, in the order of the table: status, effect state, next operation.
TABLE = {
    "requested, no execution started": ((requested("a"),), None, "none", "start"),
    "execution started, no completion": (STARTED, None, "unknown", "reconcile_effect"),
    "completed, succeeded": (
        (*STARTED, completed("a", "succeeded", possible=True)), "succeeded", "observed", "none",
    ),
    "completed, denied": (
        (requested("a"), completed("a", "denied", possible=False)), "denied", "none", "none",
    ),
    "completed, failed, after start": (
        (*STARTED, completed("a", "failed", possible=True)), "failed", "unknown", "reconcile_effect",
    ),
    "completed, failed, before start": (
        (requested("a"), completed("a", "failed", possible=False)), "failed", "none", "fix_inputs",
    ),
    "replay refused": ((requested("a"), refused("a", "identity-conflict")), None, "none", "none"),
    "replayed": (
        (requested("a"), completed("a", "succeeded", possible=False, reused="x")),
        "succeeded", "none", "none",
    ),
    "replayed failure": (
        (requested("a"), completed("a", "failed", possible=False, reused="x")), "failed", "none", "none",
    ),
    "reconciled: confirmed": (
        (*STARTED, reconciled("a", "effect_confirmed")), None, "observed", "none",
    ),
    "reconciled: confirmed absent": (
        (*STARTED, reconciled("a", "no_effect_confirmed")), None, "none", "start",
    ),
    "reconciled: still unknown": ((*STARTED, reconciled("a", "still_unknown")), None, "unknown", "none"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "status", "effect", "then"), TABLE.values(), ids=TABLE.keys())
def test_the_table_row_by_row(parts: Sequence[Part], status: str | None, effect: str, then: str) -> None:
    """What the record says about an action: status, effect state and next operation are three things."""
    state = project_action_state(history(*parts))
    assert (state.status, state.effect_state, state.next_operation) == (status, effect, then)
    assert state.action_id == "a"
    assert state.started is (started("a") in parts)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_request_alone_says_what_its_rules_could_tell(rules: str) -> None:
    """P2: rules that did not record starts leave an uncompleted request unknown."""
    state = project_action_state(history(requested("a", rules)))
    told = (state.effect_state, state.next_operation)
    assert told == (("none", "start") if rules in WITH_STARTS else ("unknown", "reconcile_effect"))


def test_a_request_of_rules_that_nobody_knows_stays_unknown() -> None:
    """P2: what the record cannot tell stays unknown."""
    nameless = history(("a", "action.requested", {"action_id": "a"}))
    for events in (nameless, history(requested("a", "of-tomorrow"))):
        assert project_action_state(events).effect_state is EffectState.UNKNOWN


@pytest.mark.parametrize(
    ("rules", "said", "recorded"),
    [
        ("mine", True, True), ("mine", False, False), ("lab", False, False), ("7a0d43b", True, True),
        ("mine", "yes", False), ("lab", None, True), ("mine", None, False),
    ],
)  # fmt: skip
def test_a_request_may_say_itself_whether_starts_are_recorded(
    rules: str, said: object, recorded: bool
) -> None:
    """P2: its own word goes before the name of its rules; what is no word at all says nothing."""
    asked = ("a", "action.requested", {"action_id": "a", "rules": rules, "records_starts": said})
    (event,) = history(asked)
    assert starts_are_recorded(event) is recorded
    assert project_action_state([event]).effect_state == ("none" if recorded else "unknown")


@pytest.mark.parametrize("rules", BEFORE_STARTS)
def test_older_rules_complete_without_a_start(rules: str) -> None:
    """Their completions say by themselves whether the adapter was entered."""
    for possible, effect, then in (
        (True, "unknown", "reconcile_effect"),
        (False, "none", "fix_inputs"),
    ):
        state = project_action_state(
            history(requested("a", rules), completed("a", "failed", possible=possible))
        )
        assert (state.effect_state, state.next_operation, state.started) == (effect, then, False)


@pytest.mark.parametrize("reason", ["identity-conflict", "effect-unknown", "in-progress"])
def test_a_refusal_has_no_effect_of_its_own(reason: str) -> None:
    """A refused request did nothing, whatever is unknown about the key; its reason is kept."""
    state = project_action_state(history(requested("a"), refused("a", reason)))
    assert state == ActionState(
        action_id="a",
        status=None,
        effect_state=EffectState.NONE,
        next_operation=NextOperation.NONE,
        started=False,
        refused=reason,
    )


def test_a_replay_names_the_action_that_it_reused() -> None:
    """A replay has the original's status and no new effect."""
    state = project_action_state(
        history(requested("a"), completed("a", "succeeded", possible=False, reused="x"))
    )
    assert (state.status, state.reused_from_action_id) == (ActionStatus.SUCCEEDED, "x")


@pytest.mark.parametrize(
    ("verdicts", "effect", "then"),
    [
        (("still_unknown", "effect_confirmed"), "observed", "none"),
        (("still_unknown", "no_effect_confirmed"), "none", "start"),
        (("effect_confirmed", "still_unknown"), "unknown", "none"),
        (("no_effect_confirmed", "effect_confirmed"), "observed", "none"),
        (("still_unknown", "still_unknown"), "unknown", "none"),
    ],
)
def test_the_last_verdict_counts(verdicts: Sequence[str], effect: str, then: str) -> None:
    """P4: verdicts are appended, and `still_unknown` is a valid last one; the report stays what it was."""
    said = [reconciled("a", verdict) for verdict in verdicts]
    for report, status in (((), None), ((completed("a", "failed", possible=True),), "failed")):
        state = project_action_state(history(*STARTED, *report, *said))
        assert (state.status, state.effect_state, state.next_operation) == (status, effect, then)


def test_a_history_begins_with_its_request() -> None:
    """What is not a history of an action is not folded into one."""
    for broken in ((), history(started("a")), history(started("a"), requested("a"))):
        with pytest.raises(ValueError, match=r"begins with action\.requested"):
            project_action_state(broken)


# --- keys ----------------------------------------------------------------------------------------------


def seqs(state: KeyState) -> tuple[int | None, ...]:
    """Give the seqs of what was found: first completion, decisive, open start, holder."""
    found = (state.first_completion, state.decisive, state.open_start, state.holder)
    return tuple(None if event is None else event.seq for event in found)


SUCCEEDED = completed("a", "succeeded", possible=True)
FAILED = completed("a", "failed", possible=True)
DENIED = completed("a", "denied", possible=False)
DRIFTED = completed("a", "failed", possible=False)
SECOND = (requested("b"), claimed("b"), started("b"))

KEYS: dict[str, tuple[tuple[Part, ...], tuple[int | None, ...]]] = {
    "nothing": ((), (None, None, None, None)),
    "requested under rules that record starts": ((requested("a"),), (None, None, None, None)),
    "requested under older rules": ((requested("a", "1b3c7a2"),), (None, None, 1, 1)),
    "started": (STARTED, (None, None, 3, 1)),
    "succeeded": ((*STARTED, SUCCEEDED), (4, 4, None, 1)),
    "failed after the start": ((*STARTED, FAILED), (4, 4, None, 1)),
    "denied": ((requested("a"), DENIED), (2, None, None, None)),
    "failed before the start": ((requested("a"), DRIFTED), (2, None, None, None)),
    "denied, then started": ((requested("a"), DENIED, *SECOND), (2, None, 5, 3)),
    "denied, then succeeded": (
        (requested("a"), DENIED, *SECOND, completed("b", "succeeded", possible=True)), (2, 6, None, 3),
    ),
    "failed before, then failed after the start": (
        (requested("a"), DRIFTED, *SECOND, completed("b", "failed", possible=True)), (2, 6, None, 3),
    ),
    "succeeded, then replayed": (
        (*STARTED, SUCCEEDED, requested("b"), completed("b", "succeeded", possible=False, reused="a")),
        (4, 4, None, 1),
    ),
    "started, then refused": ((*STARTED, requested("b"), refused("b", "in-progress")), (None, None, 3, 1)),
    "refused in between, then succeeded": (
        (*STARTED, requested("b"), refused("b", "in-progress"), SUCCEEDED), (6, 6, None, 1),
    ),
    "orphan found absent": ((*STARTED, reconciled("a", "no_effect_confirmed")), (None, None, None, None)),
    "orphan still unknown": ((*STARTED, reconciled("a", "still_unknown")), (None, None, 3, 1)),
    "failure found absent": (
        (*STARTED, FAILED, reconciled("a", "no_effect_confirmed")), (4, None, None, None),
    ),
    "failure confirmed": ((*STARTED, FAILED, reconciled("a", "effect_confirmed")), (4, 4, None, 1)),
    "found absent, then tried again": (
        (*STARTED, reconciled("a", "no_effect_confirmed"), *SECOND), (None, None, 7, 5),
    ),
    "an older orphan, acted on again by older rules": (
        (requested("a", "a1b562a"), requested("b", "a1b562a"), completed("b", "succeeded", possible=True)),
        (3, None, 1, 1),
    ),
    "a start of 88d1291, then a request of lab": (
        (requested("a", "88d1291"), started("a"), requested("b"), refused("b", "effect-unknown")),
        (None, None, 2, 1),
    ),
    "two that older rules let race": (
        (
            requested("a", "1b3c7a2"), requested("b", "1b3c7a2"),
            completed("b", "succeeded", possible=True), SUCCEEDED,
        ),
        (3, 4, None, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "found"), KEYS.values(), ids=KEYS.keys())
def test_what_decides_a_key(parts: Sequence[Part], found: tuple[int | None, ...]) -> None:
    """P3: what could not have acted decides nothing; the first that may have acted holds the key."""
    state = project_key_state(history(*parts))
    assert seqs(state) == found
    assert state.last_seq == len(parts)


def test_a_call_with_the_same_key_moves_the_key_and_decides_nothing() -> None:
    """The guard of a conditional append counts every event that carries the key."""
    mixed = history(
        ("c", "call.requested", {"call_id": "c"}),
        requested("a"),
        DENIED,
        ("c", "call.completed", {"call_id": "c", "status": "succeeded"}),
    )
    state = project_key_state(mixed)
    assert (state.last_seq, *seqs(state)) == (4, 3, None, None, None)


def test_open_effects_are_those_that_the_record_leaves_unknown() -> None:
    """In the order of their requests, calls left out, and under rule sets that are mixed."""
    events = history(
        requested("done"),
        started("done"),
        requested("orphan"),
        started("orphan"),
        requested("older", "a1b562a"),
        requested("waiting", "88d1291"),
        completed("done", "succeeded", possible=True),
        requested("denied"),
        completed("denied", "denied", possible=False),
        requested("failed"),
        started("failed"),
        ("call", "call.requested", {"call_id": "call"}),
        completed("failed", "failed", possible=True),
        requested("absent"),
        started("absent"),
        reconciled("absent", "no_effect_confirmed"),
        requested("still"),
        started("still"),
        reconciled("still", "still_unknown"),
    )
    assert [state.action_id for state in project_open_effects(events)] == [
        "orphan", "older", "failed", "still",
    ]  # fmt: skip
    assert project_open_effects(iter(())) == ()


# --- prefixes ------------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> tuple[Event, ...]:
    """One key, several actions, each going its own way, interleaved as they please."""
    ways = []
    for number in range(draw(st.integers(1, 4))):
        name = f"a{number}"
        rules = draw(st.sampled_from(RULE_SETS))
        begin = [requested(name, rules)] + ([started(name)] if rules in WITH_STARTS else [])
        way = draw(
            st.sampled_from(
                [
                    [requested(name, rules), completed(name, "denied", possible=False)],
                    [requested(name, rules), completed(name, "failed", possible=False)],
                    [requested(name, rules), refused(name, "in-progress")],
                    [requested(name, rules), completed(name, "succeeded", possible=False, reused="a0")],
                    [*begin, completed(name, "succeeded", possible=True)],
                    [*begin, completed(name, "failed", possible=True)],
                    begin,
                ]
            )
        )
        verdicts = st.sampled_from(["effect_confirmed", "no_effect_confirmed", "still_unknown"])
        if way[-1][1] not in ("action.replay_refused",) and way[-1][2].get("reused_from_action_id") is None:
            way = way + [reconciled(name, verdict) for verdict in draw(st.lists(verdicts, max_size=2))]
        ways.append(way)
    merged = []
    while any(ways):
        way = draw(st.sampled_from([way for way in ways if way]))
        merged.append(way.pop(0))
    return history(*merged)


@given(histories())
def test_every_prefix_is_a_history_of_its_own(events: tuple[Event, ...]) -> None:
    """P1: at every moment the state is a function of what was recorded until then."""
    for end in range(len(events) + 1):
        prefix = events[:end]
        state = project_key_state(prefix)
        assert state == project_key_state(list(prefix))
        assert state.last_seq == end
        assert not (state.decisive and state.open_start)
        assert (state.holder is None) == (state.decisive is None and state.open_start is None)
        unknown = {one.action_id for one in project_open_effects(prefix)}
        for name in {event.stream_id for event in prefix}:
            own = [event for event in prefix if event.stream_id == name]
            one = project_action_state(own)
            assert (one.effect_state is EffectState.UNKNOWN) == (name in unknown)
            if one.next_operation is NextOperation.START:
                absent = any(event.payload.get("verdict") == "no_effect_confirmed" for event in own)
                assert absent or not one.started


@given(histories())
def test_a_key_is_freed_only_by_what_says_that_nothing_happened(events: tuple[Event, ...]) -> None:
    """P3, P4: a key stays held until a verdict of absence, or a report that the adapter was not entered."""
    held = None
    for end in range(1, len(events) + 1):
        last, now = events[end - 1], project_key_state(events[:end]).holder
        if held is not None and now is None:
            assert last.stream_id == held.stream_id
            not_entered = last.kind == "action.completed" and not last.payload["effect_possible"]
            absent = last.payload.get("verdict") == "no_effect_confirmed"
            assert not_entered or absent or last.kind == "action.replay_refused"
        held = now


def test_a_keys_state_does_not_read_on_behind_what_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a key was replayed, its state is found at the action that decides it."""
    replays = [part for n in range(50) for part in (requested(f"r{n}"), refused(f"r{n}", "effect-unknown"))]
    events = history(requested("a"), started("a"), *replays)
    judged: list[str] = []

    def counted(one: Sequence[Event]) -> ActionState:
        judged.append(one[0].stream_id)
        return project_action_state(one)

    monkeypatch.setattr(projection, "project_action_state", counted)

    assert project_key_state(events).open_start == events[1]
    assert judged == ["a"]
