"""Is every moment of a call's chain on record, and is the provider asked in one step only?"""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant, PolicyEngine
from codeai_lab.decide.identity import call_fingerprint
from codeai_lab.decide.workstate import CallOperation, project_work_state
from codeai_lab.errors import (
    IdempotencyConflictError,
    LedgerFullError,
    OutcomeNotRecordedError,
    RefusedRequestError,
    RefusedValueError,
)
from codeai_lab.records import ActionStatus, EventDraft
from codeai_lab.run.calls import MAY_CALL
from codeai_lab.run.callwalk import CallWalk, Settings, Work
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import SyntheticProvider, body_hash, receipts, request_body
from codeai_lab.run.resuming import work_state_of
from codeai_lab.run.runtime import counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

CLEAN = [
    "directive.opened", "task.created", "context.item_offered", "context.compilation_requested",
    "context.compiled", "call.requested", "call.manifest", "attempt.started", "attempt.observed",
    "attempt.interpreted", "attempt.retry_decided", "attempt.completed", "call.status_decided",
    "call.completed",
]  # fmt: skip
STEPS = [
    ("open_directive", 1), ("create_task", 1), ("offer_item", 1), ("request_compilation", 1),
    ("compile_context", 1), ("request_call", 1), ("require_authority", 0), ("look_up", 0),
    ("record_manifest", 1),
    ("start_attempt", 1), ("ask_provider", 0), ("observe", 1), ("interpret_answer", 1),
    ("decide_retry", 1), ("complete_attempt", 1), ("decide_status", 1), ("complete_call", 1),
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the provider keeps its receipts."""
    return tmp_path / "receipts.jsonl"


@pytest.fixture
def provider(log: Path) -> SyntheticProvider:
    """A provider within this process."""
    return SyntheticProvider(log)


def bench_on(ledger: Ledger, ids: str = "e") -> Bench:
    return Bench(
        ledger=ledger,
        clock=ManualClock(tick_us=1),
        new_id=counted_ids(ids),
        policy=PolicyEngine(),
        rules="lab",
        run_id="r",
        actor_id="t",
    )


def work(name: str = "w", **changes: Any) -> Work:
    usual: dict[str, Any] = {"directive": "find out", "prompt": "Say it.", "required": ("chapter",)}
    usual["offered"] = {"chapter": "text"}
    return Work(work_id=name, call_id=f"{name}-call", idempotency_key="k", **usual | changes)


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


def walk_to(walk: CallWalk, step: str) -> None:
    while walk.next_step != step:
        walk.step()


class Says:
    """A transport that gives these bytes."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.calls = 0

    def send(self, body: bytes, *, key: str) -> bytes:
        self.calls += 1
        return self.reply


class Raises:
    """A transport that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def send(self, body: bytes, *, key: str) -> bytes:
        raise self.error


@EITHER
def test_a_clean_call_is_this_chain(ledger: Ledger, provider: SyntheticProvider, log: Path) -> None:
    """The fourteen events, literally, with what they say; one receipt, of what the manifest names."""
    answer = open_work(bench_on(ledger), work(), provider).run()
    events = list(ledger.read_all())
    call = work().call({"chapter": "text"})
    own, hashed = call_fingerprint(call).as_json(), body_hash(request_body(call))
    body = f"a response to {len(request_body(call))} bytes"
    asked = {"prompt": "Say it.", "chamber": "reading-room", "requested_model": "model-small"}
    w, c = {"work_id": "w"}, {"call_id": "w-call"}
    raw = '{"finish":"stop","text":"' + body + '"}'
    assert [(event.kind, event.payload) for event in events] == list(
        zip(
            CLEAN,
            [
                w | {"directive": "find out"},
                w | {"prompt": "Say it.", "required": ["chapter"]},
                w | {"name": "chapter", "content": "text"},
                w | {"offered": ["chapter"]},
                w | {"context": {"chapter": "text"}},
                c | asked | {"context": {"chapter": "text"}, "rules": "lab", "fingerprint": own},
                c | {"fingerprint": own, "request_body_hash": hashed},
                c | {"attempt": 1},
                c | {"attempt": 1, "response": {"encoding": "utf-8", "body": raw}},
                c | {"attempt": 1, "status": "succeeded", "response": {"text": body}, "error": None},
                c | {"attempt": 1, "retry": False},
                c | {"attempt": 1, "status": "succeeded"},
                c | {"status": "succeeded"},
                c
                | {
                    "status": "succeeded",
                    "replayed": False,
                    "original_call_id": None,
                    "response": {"text": body},
                },
            ],
            strict=True,
        )
    )
    assert (answer.call_id, answer.status, answer.response) == ("w-call", "succeeded", {"text": body})
    assert receipts(log) == [{"n": 1, "key": "k", "request_body_hash": hashed}]


def test_every_step_records_at_most_one_event_and_the_provider_is_asked_in_one(
    memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """WK1, WK2: all sixteen steps, one by one."""
    walk = open_work(bench_on(memory), work(), provider)
    taken = []
    while not walk.is_over:
        before, asked = len(kinds(memory)), len(receipts(log))
        step = walk.step()
        taken.append((step, len(kinds(memory)) - before))
        assert (len(receipts(log)) > asked) is (step == "ask_provider")
        if step == "ask_provider":
            assert kinds(memory)[-1] == "attempt.started"
    assert taken == STEPS
    assert walk.next_step is None
    with pytest.raises(ValueError, match="over"):
        walk.step()


def test_every_event_names_its_cause_and_carries_the_key(
    memory: MemoryLedger, provider: SyntheticProvider
) -> None:
    """WK1: up to the request each is caused by the one before it, from then on by the request."""
    open_work(bench_on(memory), work(), provider).run()
    events = list(memory.read_all())
    assert {event.idempotency_key for event in events} == {"k"}
    causes = [events[0], *events[1:5], *[events[5]] * 8]
    assert [event.causation_id for event in events] == [None, *(cause.event_id for cause in causes)]
    assert [event.stream_id for event in events] == ["w"] * 5 + ["w-call"] * 9


def test_missing_context_ends_the_work_before_any_call(
    memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """Five events, nobody asked, and the missing names in the answer."""
    answer = open_work(bench_on(memory), work(required=("chapter", "source", "notes")), provider).run()
    assert kinds(memory) == [*CLEAN[:4], "context.compilation_failed"]
    assert list(memory.read_all())[-1].payload == {"work_id": "w", "missing": ["source", "notes"]}
    assert (answer.status, answer.next_operation) == (ActionStatus.FAILED, CallOperation.FIX_INPUTS)
    assert answer.reason == "required context missing: source, notes"
    assert receipts(log) == []


@pytest.mark.parametrize("place", range(len(STEPS)))
@pytest.mark.parametrize("end", ["closed", "dropped"])
def test_a_walk_that_never_goes_on_leaves_what_it_recorded(
    place: int, end: str, memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """CW2: at every boundary; nothing is registered as alive any more, and the state fits the receipts."""
    walk = open_work(bench_on(memory), work(), provider)
    for _ in range(place):
        walk.step()
    assert (len(memory.live_actions) == 1) is (place > 0)
    if end == "closed":
        walk.close()
        walk.close()
        with pytest.raises(ValueError, match="closed before its end"):
            walk.run()
    del walk
    gc.collect(1)  # what this test made is young
    assert memory.live_actions == set()
    assert kinds(memory) == CLEAN[: sum(recorded for _, recorded in STEPS[:place])]
    if place:
        effect = project_work_state(list(memory.read_all())).provider_effect
        possible = {None: {0}, "none": {0}, "unknown": {0, 1}, "observed": {1}}[effect]
        assert len(receipts(log)) in possible


@pytest.mark.parametrize("error", [TimeoutError("no answer"), KeyboardInterrupt(), SystemExit()])
def test_what_the_transport_raises_escapes_and_leaves_the_effect_unknown(
    error: BaseException, memory: MemoryLedger
) -> None:
    """CW1: an interrupt too; the attempt has no observation and no completion."""
    walk = open_work(bench_on(memory), work(), Raises(error))
    with pytest.raises(type(error)):
        walk.run()
    assert kinds(memory) == CLEAN[:8]
    assert project_work_state(list(memory.read_all())).next_operation is CallOperation.RECONCILE_EFFECT
    assert memory.live_actions == set()
    with pytest.raises(type(error)):
        walk.run()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(b"\xff\xfe", "the answer is not JSON"), (b'{"finish":"length"}', "the answer is not finished")],
)
def test_an_answer_that_says_nothing_is_a_failure_and_its_bytes_are_kept(
    reply: bytes, reason: str, ledger: Ledger
) -> None:
    """WK4: observed and failed are two things; nobody is asked again."""
    transport = Says(reply)
    answer = open_work(bench_on(ledger), work(), transport).run()
    assert (answer.status, answer.reason, answer.response) == (ActionStatus.FAILED, reason, None)
    assert kinds(ledger) == CLEAN
    assert list(ledger.read_all())[-1].payload["status"] == "failed"
    assert transport.calls == 1
    state = project_work_state(list(ledger.read_all()))
    assert (state.stage, state.provider_effect) == ("completed", "observed")


class Full(MemoryLedger):
    """A ledger that has no space for observations."""

    def append(self, *drafts: EventDraft, unless_changed: Any = ()) -> Any:
        if drafts[0].kind == "attempt.observed":
            raise LedgerFullError("no space")
        return super().append(*drafts, unless_changed=unless_changed)


@pytest.mark.parametrize(
    ("ledger", "reply"), [(Full(), b"{}"), (MemoryLedger(), b"x" * 2**20)], ids=["full", "too long"]
)
def test_an_answer_that_cannot_be_recorded_is_an_indefinite_error(ledger: Ledger, reply: bytes) -> None:
    """The provider was asked, so the error names reconciling."""
    with pytest.raises(OutcomeNotRecordedError) as raised:
        open_work(bench_on(ledger), work(), Says(reply)).run()
    assert not raised.value.definite
    assert kinds(ledger)[-1] == "attempt.started"


def intrude(ledger: MemoryLedger, stream: str) -> None:
    """Append to a stream behind a walk's back."""
    ledger.append(replace(ledger.read(stream)[-1], event_id=f"intruder-{stream}", kind="call.noted"))


@pytest.mark.parametrize("step", ["record_manifest", "start_attempt"])
def test_a_walk_that_was_overtaken_asks_nobody(
    step: str, memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """WK3: the stream is not as the walk left it, so nothing is recorded and nothing is sent."""
    walk = open_work(bench_on(memory), work(), provider)
    walk_to(walk, step)
    intrude(memory, "w-call")
    before = kinds(memory)
    with pytest.raises(RefusedRequestError, match="Somebody else"):
        walk.run()
    assert kinds(memory) == before
    assert receipts(log) == []


def test_a_walk_that_was_overtaken_while_it_asked_does_not_say_that_nothing_happened(
    memory: MemoryLedger, provider: SyntheticProvider
) -> None:
    """WK3: after the request the error is indefinite."""
    walk = open_work(bench_on(memory), work(), provider)
    walk_to(walk, "observe")
    intrude(memory, "w-call")
    with pytest.raises(OutcomeNotRecordedError):
        walk.run()


@pytest.mark.parametrize("names", [{"work_id": "w"}, {"call_id": "w-call"}])
def test_a_name_belongs_to_one_work(
    names: dict[str, str], memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """A work id and a call id that are taken are refused, before anybody is asked."""
    bench = bench_on(memory)
    open_work(bench, work(), provider).run()
    with pytest.raises(RefusedRequestError, match="belongs to an earlier work"):
        open_work(bench, replace(work("other"), idempotency_key="k2", **names), provider).run()
    assert len(receipts(log)) == 1


@EITHER
def test_a_restart_of_a_call_that_is_complete_asks_nobody(
    ledger: Ledger, provider: SyntheticProvider, log: Path
) -> None:
    """WK5: the same key, the same call: answered from the record, and it says from where."""
    bench = bench_on(ledger)
    first = open_work(bench, work(), provider).run()
    again = open_work(bench, work("w2"), provider).run()
    third = open_work(bench, work("w3"), provider).run()
    assert [one.replayed_from for one in (first, again, third)] == [None, "w-call", "w-call"]
    assert again.response == first.response
    assert kinds(ledger) == [*CLEAN, *[*CLEAN[:6], "call.completed"] * 2]
    assert ledger.read("w2-call")[-1].payload["replayed"] is True
    assert len(receipts(log)) == 1


def test_a_restart_of_a_call_that_is_not_complete_asks_again(
    memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """The naive restart: nobody looked at the working state, and the provider has two receipts."""
    bench = bench_on(memory)
    walk = open_work(bench, work(), provider)
    walk_to(walk, "observe")
    walk.close()
    assert open_work(bench, work("w2"), provider).run().status == "succeeded"
    assert len(receipts(log)) == 2


@pytest.mark.parametrize(
    ("changes", "dimension"),
    [
        ({"prompt": "Say something else."}, "prompt_hash"),
        ({"offered": {"chapter": "another text"}}, "rendered_context"),
        ({"settings": Settings(requested_model="m2")}, "requested_model"),
        ({"settings": Settings(chamber="hall")}, "chamber"),
    ],
)
def test_a_key_of_another_call_is_refused_durably(
    changes: dict[str, Any], dimension: str, memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """WK5: the dimension is named, nobody is asked, and the refusal stays on record."""
    bench = bench_on(memory)
    open_work(bench, work(), provider).run()
    with pytest.raises(IdempotencyConflictError) as raised:
        open_work(bench, work("w2", **changes), provider).run()
    assert (raised.value.original_id, raised.value.dimensions) == ("w-call", (dimension,))
    refusal = memory.read("w2-call")[-1]
    assert refusal.payload == {
        "call_id": "w2-call",
        "reason": "identity-conflict",
        "original_call_id": "w-call",
        "fingerprint_version": "call-fingerprint-v1",
        "dimensions": [dimension],
        "idempotency_key": "k",
    }
    assert len(receipts(log)) == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"offered": {}}, RefusedRequestError),
        ({"offered": {"a": 1, "b": 2}}, RefusedRequestError),
        ({"offered": {"a": {1}}}, RefusedValueError),
        ({"prompt": ""}, RefusedRequestError),
        ({"settings": Settings(chamber="")}, RefusedRequestError),
    ],
)
def test_a_work_that_cannot_be_asked_is_refused_at_once(
    changes: dict[str, Any], error: type[Exception]
) -> None:
    """Before the first event, not after the fifth."""
    with pytest.raises(error):
        work(**changes)


def test_a_work_and_its_call_have_names_of_their_own() -> None:
    """They are two streams."""
    for name in ("", "w-call"):
        with pytest.raises(RefusedRequestError, match="names of their own"):
            replace(work(), work_id=name)


def test_a_run_gives_the_same_bytes_again(tmp_path: Path) -> None:
    """Ids and time are handed in, so two runs record the same."""

    def run(place: str) -> tuple[Any, ...]:
        ledger = MemoryLedger()
        open_work(bench_on(ledger), work(), SyntheticProvider(tmp_path / place)).run()
        return ledger.snapshot()

    assert run("one") == run("two")


@pytest.mark.parametrize("number", range(1, 15))
def test_an_interrupt_right_after_an_append_leaves_a_state_that_can_be_read(
    number: int, provider: SyntheticProvider, log: Path
) -> None:
    """The event is there and the walk does not know it: the record alone still says what is in order."""

    class Interrupted(MemoryLedger):
        def append(self, *drafts: EventDraft, unless_changed: Any = ()) -> Any:
            events = super().append(*drafts, unless_changed=unless_changed)
            if events[-1].seq == number:
                raise KeyboardInterrupt
            return events

    ledger = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        open_work(bench_on(ledger), work(), provider).run()
    assert ledger.live_actions == set()
    assert kinds(ledger) == CLEAN[:number]
    assert project_work_state(list(ledger.read_all())).call_id == ("w-call" if number > 5 else None)
    assert len(receipts(log)) == (number > 8)


def test_a_condition_is_on_the_stream_alone(memory: MemoryLedger, provider: SyntheticProvider) -> None:
    """Another work under way beside it does not stop a walk."""
    bench = bench_on(memory)
    walks = [open_work(bench, replace(work(name), idempotency_key=name), provider) for name in ("a", "b")]
    while not all(walk.is_over for walk in walks):
        for walk in walks:
            walk.step()
    assert [walk.run().status for walk in walks] == ["succeeded", "succeeded"]


# --- authority -----------------------------------------------------------------------------------------


def test_a_denial_completes_the_call_before_the_ledger_is_asked(
    ledger: Ledger, provider: SyntheticProvider, log: Path
) -> None:
    """WK6: after its request and nothing else; the same answer whatever is recorded about the key."""
    answers = []
    for name, key, prompt in (
        ("unused", "u", "Say it."),
        ("first", "k", "Say it."),
        ("used", "k", "Say it."),
        ("colliding", "k", "Say another thing."),
    ):
        authority = MAY_CALL if name == "first" else NO_AUTHORITY
        asked = replace(work(name, prompt=prompt), idempotency_key=key)
        answer = open_work(bench_on(ledger, name), asked, provider, authority=authority).run()
        if name != "first":
            answers.append(replace(answer, call_id=""))
            assert [event.kind for event in ledger.read(f"{name}-call")] == [
                "call.requested",
                "call.completed",
            ]
            state = work_state_of(bench_on(ledger, "reader"), name)
            assert (state.stage, state.provider_effect, state.next_operation) == ("denied", "none", "none")
    assert answers == [answers[0]] * 3
    assert (answers[0].status, answers[0].response) == (ActionStatus.DENIED, None)
    assert "no grant names this capability" in str(answers[0].reason)
    assert len(receipts(log)) == 1


def test_a_denied_call_decides_nothing_for_its_key(memory: MemoryLedger, provider: SyntheticProvider) -> None:
    """WK6: with authority the same key is answered afresh."""
    open_work(bench_on(memory), work("w"), provider, authority=NO_AUTHORITY).run()
    answer = open_work(bench_on(memory, "f"), work("v"), provider).run()
    assert (answer.status, answer.replayed_from) == ("succeeded", None)


def test_a_grant_that_expires_while_the_walk_is_held_starts_no_attempt(
    memory: MemoryLedger, provider: SyntheticProvider, log: Path
) -> None:
    """WK6: judged again right before the attempt; the denial follows the manifest and nobody is asked."""
    clock = ManualClock(tick_us=1)
    grant = Grant(capability="model.call", performer="student", expires_at_us=5_000_000)
    bench = replace(bench_on(memory), clock=clock)
    authority = Authority(grants=(grant,))
    walk = open_work(bench, work(), provider, authority=authority, performer="student")
    walk_to(walk, "start_attempt")
    clock.advance(5_000_000)
    assert walk.run().status is ActionStatus.DENIED
    assert kinds(memory) == [*CLEAN[:7], "call.completed"]
    assert receipts(log) == []
    assert work_state_of(bench, "w").duplicate_risk is False


def test_an_allowed_call_reads_the_clock_no_more_often(
    memory: MemoryLedger, provider: SyntheticProvider
) -> None:
    """Asking the policy leaves the bytes of a clean chain as they were: one reading an event."""
    open_work(bench_on(memory), work(), provider).run()
    times = [event.recorded_at_us for event in memory.read_all()]
    assert times == list(range(times[0], times[0] + 14))
