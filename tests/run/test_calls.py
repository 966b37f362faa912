"""Is a recorded response given again only for the same call, and a conflict raised before anyone is asked?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant, Permission, PolicyEngine
from codeai_lab.decide.identity import call_fingerprint
from codeai_lab.decide.witnesses import hear
from codeai_lab.errors import IdempotencyConflictError, OutcomeNotRecordedError, RefusedRequestError
from codeai_lab.records import ActionStatus, CallRequest, Event
from codeai_lab.run.effects import CountingProvider
from codeai_lab.run.revisions import LAB, REVISIONS, Revision
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.ledger import DuckDBLedger
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

RuntimeOn = Callable[..., Runtime]

EVERY = pytest.mark.parametrize("rules", REVISIONS.values(), ids=REVISIONS)
FRESH = ["call.requested", "call.manifest", "attempt.started", "attempt.observed", "call.completed"]


def call(call_id: str, key: str = "kc", **changes: Any) -> CallRequest:
    usual = {"prompt": "Say hello.", "chamber": "small", "requested_model": "m1", "context": {"n": 22}}
    return CallRequest(call_id=call_id, idempotency_key=key, **usual | changes)


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


@EVERY
def test_an_identical_call_is_replayed_and_says_so(
    rules: Revision, ledger: Ledger, runtime_on: RuntimeOn
) -> None:
    """Q2: replayed, with the original's id, also the third time; the provider was asked once."""
    runtime, provider = runtime_on(ledger, rules), CountingProvider()
    results = [runtime.invoke_recorded_call(call(name), provider=provider) for name in ("c1", "c2", "c3")]
    assert [(one.call_id, one.replayed, one.original_call_id) for one in results] == [
        ("c1", False, "c1"), ("c2", True, "c1"), ("c3", True, "c1"),
    ]  # fmt: skip
    assert {str(one.response) for one in results} == {"{'text': 'a response to 10 characters'}"}
    assert provider.calls == 1
    assert kinds(ledger) == [*FRESH, "call.requested", "call.completed", "call.requested", "call.completed"]
    replayed = list(ledger.read_all())[-1]
    assert replayed.payload["replayed"] is True
    assert replayed.payload["original_call_id"] == "c1"
    assert replayed.causation_id == ledger.read("c3")[0].event_id


@pytest.mark.parametrize(
    ("field", "dimension", "other"),
    [
        ("prompt", "prompt_hash", "Say goodbye."),
        ("chamber", "chamber", "large"),
        ("requested_model", "requested_model", "m2"),
        ("context", "rendered_context", {"n": 23}),
        ("context", "rendered_context", {"n": True}),
    ],
)
@EVERY
def test_each_dimension_alone_conflicts_and_is_named(
    rules: Revision, field: str, dimension: str, other: Any, memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """Q1, Q3: raised before the provider is asked; on record only under `lab`."""
    runtime, provider = runtime_on(memory, rules), CountingProvider()
    runtime.invoke_recorded_call(call("c1"), provider=provider)
    with pytest.raises(IdempotencyConflictError) as conflict:
        runtime.invoke_recorded_call(call("c2", **{field: other}), provider=provider)
    error = conflict.value
    assert (error.idempotency_key, error.original_id) == ("kc", "c1")
    assert (error.fingerprint_version, error.dimensions) == ("call-fingerprint-v1", (dimension,))
    assert provider.calls == 1
    left = [event for event in memory.read_all() if event.stream_id == "c2"]
    assert left[0].kind == "call.requested"
    if rules is not LAB:
        assert len(left) == 1
        return
    assert [event.kind for event in left[1:]] == ["call.replay_refused"]
    assert left[1].causation_id == left[0].event_id
    assert left[1].payload == {
        "call_id": "c2",
        "reason": "identity-conflict",
        "idempotency_key": "kc",
        "original_call_id": "c1",
        "fingerprint_version": "call-fingerprint-v1",
        "dimensions": [dimension],
    }


@EVERY
def test_a_fresh_call_records_what_was_really_sent(
    rules: Revision, memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """The manifest is the runtime's own; the whole chain of a call, literally."""
    runtime_on(memory, rules).invoke_recorded_call(call("c1"), provider=CountingProvider())
    own = call_fingerprint(call("c1")).as_json()
    response = {"text": "a response to 10 characters"}
    assert [(event.kind, event.payload) for event in memory.read_all()] == [
        (
            "call.requested",
            {
                "call_id": "c1",
                "prompt": "Say hello.",
                "chamber": "small",
                "requested_model": "m1",
                "context": {"n": 22},
                "rules": rules.name,
                "fingerprint": own,
            },
        ),
        ("call.manifest", {"call_id": "c1", "fingerprint": own}),
        ("attempt.started", {"call_id": "c1", "attempt": 1}),
        ("attempt.observed", {"call_id": "c1", "attempt": 1, "response": response}),
        (
            "call.completed",
            {
                "call_id": "c1",
                "status": "succeeded",
                "replayed": False,
                "original_call_id": None,
                "response": response,
            },
        ),
    ]
    assert {event.idempotency_key for event in memory.read_all()} == {"kc"}


def tampered(ledger: MemoryLedger, change: Callable[[Event], Event | None]) -> None:
    """Rewrite the record of a ledger in memory, event by event."""
    events = [changed for event in ledger.read_all() if (changed := change(event)) is not None]
    ledger.restore(tuple(replace(event, seq=seq) for seq, event in enumerate(events, start=1)))


def foreign_manifest(event: Event) -> Event:
    if event.kind != "call.manifest":
        return event
    other = call_fingerprint(call("x", prompt="something else")).as_json()
    return replace(event, payload={**event.payload, "fingerprint": other})


@pytest.mark.parametrize(
    "change",
    [lambda event: None if event.kind == "call.manifest" else event, foreign_manifest],
    ids=["no manifest", "another call's manifest"],
)
@EVERY
def test_a_completion_without_a_fitting_manifest_is_a_miss(
    rules: Revision, change: Callable[[Event], Event | None], memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """Terminal evidence is needed: without it the provider is asked again."""
    provider = CountingProvider()
    runtime_on(memory, rules, ids="one").invoke_recorded_call(call("c1"), provider=provider)
    tampered(memory, change)
    again = runtime_on(memory, rules, ids="two").invoke_recorded_call(call("c2"), provider=provider)
    assert (again.replayed, provider.calls) == (False, 2)
    other = call("c3", key="kc", prompt="Say goodbye.")
    with pytest.raises(IdempotencyConflictError) as conflict:
        runtime_on(memory, rules, ids="three").invoke_recorded_call(other, provider=provider)
    assert conflict.value.original_id == "c2"


@EVERY
def test_a_stored_digest_of_a_call_is_not_believed(
    rules: Revision, memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """The fingerprint is rebuilt from the recorded request, so a forged digest opens no door."""
    provider = CountingProvider()
    runtime_on(memory, rules, ids="one").invoke_recorded_call(call("c1"), provider=provider)
    wanted = call("c2", prompt="Say goodbye.")

    def forge(event: Event) -> Event:
        if event.kind != "call.requested":
            return event
        return replace(event, payload={**event.payload, "fingerprint": call_fingerprint(wanted).as_json()})

    tampered(memory, forge)
    with pytest.raises(IdempotencyConflictError) as conflict:
        runtime_on(memory, rules, ids="two").invoke_recorded_call(wanted, provider=provider)
    assert conflict.value.dimensions == ("prompt_hash",)


def test_a_call_that_never_came_back_is_no_answer(memory: MemoryLedger, runtime_on: RuntimeOn) -> None:
    """The provider's error escapes and leaves an attempt without observation; the key is asked again."""

    class Down:
        def respond(self, call: CallRequest) -> Any:
            raise TimeoutError("no answer")

    runtime = runtime_on(memory)
    with pytest.raises(TimeoutError):
        runtime.invoke_recorded_call(call("c1"), provider=Down())
    assert kinds(memory) == FRESH[:3]
    assert runtime.invoke_recorded_call(call("c2"), provider=CountingProvider()).replayed is False


@EVERY
def test_one_call_id_is_one_call(rules: Revision, ledger: Ledger, runtime_on: RuntimeOn) -> None:
    """A call id that is taken is refused, under its own key and another, and nothing is recorded."""
    runtime, provider = runtime_on(ledger, rules), CountingProvider()
    runtime.invoke_recorded_call(call("c1"), provider=provider)
    before = list(ledger.read_all())
    for key in ("kc", "other"):
        with pytest.raises(RefusedRequestError, match="belongs to an earlier call"):
            runtime.invoke_recorded_call(call("c1", key), provider=provider)
    assert list(ledger.read_all()) == before
    assert provider.calls == 1


def test_a_call_is_replayed_after_reopening(tmp_path: Path, runtime_on: RuntimeOn) -> None:
    """The same answer from the file, in a later opening, with numbers of equal value."""
    provider = CountingProvider()
    for opening in (1, 2):
        with DuckDBLedger(tmp_path / "lab.duckdb") as file:
            asked = call(f"c{opening}", context={"n": 22.0 if opening == 2 else 22})
            result = runtime_on(file, ids=f"o{opening}").invoke_recorded_call(asked, provider=provider)
            assert (result.replayed, result.original_call_id) == (opening == 2, "c1")
    assert provider.calls == 1


@EITHER
def test_what_the_caller_does_to_a_response_changes_no_record(ledger: Ledger, runtime_on: RuntimeOn) -> None:
    """A response is a copy, the provider's object too."""
    answer = {"lines": ["one"]}

    class Fixed:
        def respond(self, call: CallRequest) -> Any:
            return answer

    runtime = runtime_on(ledger)
    for name in ("c1", "c2", "c3"):
        result = runtime.invoke_recorded_call(call(name), provider=Fixed())
        assert result.response == {"lines": ["one"]}
        result.response["lines"].append("forged")
        answer["lines"].append("forged")


def test_a_response_that_cannot_be_recorded_leaves_it_open_what_was_done(
    memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """The provider was asked, so the error is indefinite and names reconciling."""

    class Odd:
        def respond(self, _: CallRequest) -> object:
            return {1, 2}

    with pytest.raises(OutcomeNotRecordedError) as raised:
        runtime_on(memory).invoke_recorded_call(call("c1"), provider=Odd())

    assert not raised.value.definite
    assert [event.kind for event in memory.read_all()][-1] == "attempt.started"


# --- authority -----------------------------------------------------------------------------------------


@EVERY
def test_a_denial_is_the_same_bytes_on_a_used_an_unused_and_a_colliding_key(
    rules: Revision, ledger: Ledger, runtime_on: RuntimeOn
) -> None:
    """Q4: judged before the look-up, recorded as the completion of this request; nobody is asked."""
    runtime, provider = runtime_on(ledger, rules), CountingProvider()
    runtime.invoke_recorded_call(call("c1"), provider=provider)
    denied = [
        runtime.invoke_recorded_call(one, provider=provider, authority=NO_AUTHORITY)
        for one in (call("used"), call("unused", "other key"), call("colliding", prompt="Say goodbye."))
    ]
    assert {one.public() for one in denied} == {denied[0].public()}
    assert {(one.status, one.response, one.replayed) for one in denied} == {
        (ActionStatus.DENIED, None, False)
    }
    assert provider.calls == 1
    for name in ("used", "unused", "colliding"):
        requested, completed = ledger.read(name)
        assert (completed.kind, completed.causation_id) == ("call.completed", requested.event_id)
        assert completed.payload == {
            "call_id": name, "status": "denied", "replayed": False, "original_call_id": None,
            "response": None, "error": denied[0].error,
        }  # fmt: skip


def test_a_denial_decides_nothing_for_the_key(memory: MemoryLedger, runtime_on: RuntimeOn) -> None:
    """Q4: with authority the key is asked afresh, and what was answered is what is replayed."""
    runtime, provider = runtime_on(memory), CountingProvider()
    runtime.invoke_recorded_call(call("c1"), provider=provider, authority=NO_AUTHORITY)
    results = [runtime.invoke_recorded_call(call(name), provider=provider) for name in ("c2", "c3")]
    assert [one.original_call_id for one in results] == ["c2", "c2"]
    assert provider.calls == 1
    assert hear(list(memory.read_all()), (), summary=0).labels == ("denied", "retry", "replay")


@pytest.mark.parametrize(
    ("grant", "status"),
    [
        (Grant(capability="model.call"), "succeeded"),
        (Grant(capability="model.call", performer="student"), "succeeded"),
        (Grant(capability="model.call", performer="another"), "denied"),
        (Grant(capability="model.call", expires_at_us=1_000_000), "denied"),
        (Grant(capability="model.call", expires_at_us=1_000_001), "succeeded"),
        (Grant(capability="file.append"), "denied"),
    ],
)
def test_a_call_is_judged_as_an_action_is(
    grant: Grant, status: str, memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """Q4: capability, performer and instant, which is that of the recorded request."""
    result = runtime_on(memory).invoke_recorded_call(
        call("c1"), provider=CountingProvider(), authority=Authority(grants=(grant,)), performer="student"
    )
    assert result.status == status
    assert memory.read("c1")[0].recorded_at_us == 1_000_000


def test_a_policy_of_ones_own_is_asked_about_calls_too(memory: MemoryLedger) -> None:
    """Q4: the default authority is judged like any other, so a policy that refuses all calls is obeyed."""

    class NoCalls(PolicyEngine):
        def judge(self, capability: str, authority: Authority, *, performer: str, now_us: int) -> Permission:
            return Permission(allowed=False, reason="no calls today")

    runtime = Runtime(memory, policy=NoCalls(), new_id=counted_ids("e"))
    result = runtime.invoke_recorded_call(call("c1"), provider=CountingProvider())
    assert result.error == {
        "code": "not-authorised",
        "message": "The current authority does not permit this: no calls today.",
    }


@pytest.mark.parametrize("raises", [None, KeyboardInterrupt, ConnectionError])
def test_a_call_is_alive_while_its_provider_is_asked(
    raises: type[BaseException] | None, memory: MemoryLedger, runtime_on: RuntimeOn
) -> None:
    """Q5: and no longer, whatever becomes of the asking."""
    alive: list[set[str]] = []

    class Watching:
        def respond(self, _: CallRequest) -> Any:
            alive.append(set(memory.live_actions))
            if raises is not None:
                raise raises
            return "yes"

    with contextlib.suppress(KeyboardInterrupt, ConnectionError):
        runtime_on(memory).invoke_recorded_call(call("c1"), provider=Watching())
    assert alive == [{memory.read("c1")[0].event_id}]
    assert memory.live_actions == set()
