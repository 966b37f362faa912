"""Does another process go on with a call only where nobody can be asked twice?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant, PolicyEngine
from codeai_lab.decide.workstate import CallOperation, WorkState
from codeai_lab.errors import IdempotencyConflictError, RefusedRequestError
from codeai_lab.records import ActionStatus, EventDraft
from codeai_lab.run.callwalk import CallAnswer, CallWalk, Settings, Work
from codeai_lab.run.facts import Bench
from codeai_lab.run.provider import SyntheticProvider, body_hash, receipts
from codeai_lab.run.resuming import reinterpret_call, resume_call, resuming, work_state_of
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

WORK = Work(
    work_id="w",
    call_id="c",
    idempotency_key="k",
    directive="find out",
    prompt="Say it.",
    offered={"chapter": "text"},
)
OLD = [
    "directive.opened", "task.created", "context.item_offered", "context.compilation_requested",
    "context.compiled", "call.requested", "call.manifest",
]  # fmt: skip
NINE = [
    "call.requested", "call.manifest", "attempt.started", "attempt.observed", "attempt.interpreted",
    "attempt.retry_decided", "attempt.completed", "call.status_decided", "call.completed",
]  # fmt: skip
LENGTHS = {"directive.opened": 1, **{kind: number for number, kind in enumerate([*OLD[1:5], *NINE], start=2)}}


class Desk:
    """A ledger, a provider with its log, and what a next process does with them."""

    def __init__(self, ledger: Ledger, log: Path) -> None:
        self.ledger = ledger
        self.log = log
        self.provider = SyntheticProvider(log)
        self.bench = Bench(
            ledger=ledger,
            clock=ManualClock(tick_us=1),
            new_id=counted_ids("e"),
            policy=PolicyEngine(),
            rules="lab",
            run_id="r",
            actor_id="t",
        )

    def die_after(self, kind: str, *, work: Work = WORK) -> None:
        """Let a walk be dropped right after this event."""
        walk = open_work(self.bench, work, self.provider)
        while not self.kinds() or self.kinds()[-1] != kind:
            walk.step()
        walk.close()

    def resume(self, call: str = "c", new: str = "d", **settings: str) -> CallAnswer:
        return self.resuming(call, new, **settings).run()

    def resuming(self, call: str = "c", new: str = "d", **settings: str) -> CallWalk:
        return resuming(
            self.bench, call, as_call_id=new, transport=self.provider, settings=Settings(**settings)
        )

    def state(self, name: str = "w") -> WorkState:
        return work_state_of(self.bench, name)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.ledger.read_all()]

    @property
    def asked(self) -> int:
        return len(receipts(self.log))


@pytest.fixture
def desk(ledger: Ledger, tmp_path: Path) -> Desk:
    """On either ledger."""
    return Desk(ledger, tmp_path / "receipts.jsonl")


@pytest.fixture
def quick(memory: MemoryLedger, tmp_path: Path) -> Desk:
    """On the ledger without a file."""
    return Desk(memory, tmp_path / "receipts.jsonl")


# --- resume ------------------------------------------------------------------------------------------


@EITHER
def test_a_call_of_which_only_the_manifest_is_recorded_is_resumed(desk: Desk) -> None:
    """Receipts 0 to 1, events 7 to 17: the link, and nine events of a new call with the same key."""
    desk.die_after("call.manifest")
    assert (desk.asked, len(desk.kinds())) == (0, 7)
    answer = desk.resume()
    assert (answer.call_id, answer.status, answer.next_operation) == ("d", "succeeded", "none")
    assert (desk.asked, desk.kinds()) == (1, [*OLD, "call.resumed", *NINE])
    state = desk.state()
    assert (state.call_id, state.stage, state.superseded_by) == ("d", "completed", {"c": "d"})
    assert desk.ledger.live_actions == set()


@EITHER
def test_the_link_says_what_took_whose_place_and_why_it_may(desk: Desk) -> None:
    """RS2: link and request are one append, in the two calls' streams, the same bytes named three times."""
    desk.die_after("call.manifest")
    desk.resume()
    link, requested = list(desk.ledger.read_all())[7:9]
    manifests = [event for event in desk.ledger.read_all() if event.kind == "call.manifest"]
    [sent] = receipts(desk.log)
    assert link.stream_id == "c"
    assert link.payload == {
        "call_id": "c",
        "new_call_id": "d",
        "stage": "manifest_recorded",
        "request_body_hash": sent["request_body_hash"],
    }
    assert {one.payload["request_body_hash"] for one in manifests} == {sent["request_body_hash"]}
    assert link.causation_id == desk.ledger.read("c")[0].event_id
    assert requested.causation_id == link.event_id
    assert {event.idempotency_key for event in desk.ledger.read_all()} == {"k"}
    assert {event.causation_id for event in desk.ledger.read("d")[1:]} == {requested.event_id}


def test_a_call_without_a_manifest_is_resumed_from_its_request(quick: Desk) -> None:
    """The request's own words say what was intended."""
    quick.die_after("call.requested")
    assert quick.resume().status == "succeeded"
    assert quick.asked == 1


@pytest.mark.parametrize("settings", [{"requested_model": "model-large"}, {"chamber": "hall"}])
@pytest.mark.parametrize("died_after", ["call.requested", "call.manifest"])
def test_another_configuration_is_refused_by_the_request_body_hash(
    settings: dict[str, str], died_after: str, quick: Desk
) -> None:
    """RS1: refused, named, nobody asked, nothing recorded; and as it was intended it can still be resumed."""
    quick.die_after(died_after)
    before = quick.kinds()
    answer = quick.resume(**settings)
    assert (answer.status, answer.differs) == (ActionStatus.REFUSED, ("request_body_hash",))
    assert answer.next_operation is CallOperation.START_CALL
    assert (quick.asked, quick.kinds()) == (0, before)
    assert quick.resume().status == "succeeded"


@pytest.mark.parametrize(
    ("kind", "forgery"),
    [
        ("call.manifest", {"request_body_hash": body_hash(b"other")}),
        ("call.requested", {"requested_model": "model-large"}),
    ],
)
def test_a_manifest_that_does_not_fit_its_request_is_not_believed(
    kind: str, forgery: dict[str, str], quick: Desk
) -> None:
    """RS1: where request and manifest disagree, nobody can say what was intended."""
    quick.die_after("call.manifest")
    assert isinstance(quick.ledger, MemoryLedger)
    events = quick.ledger.snapshot()
    quick.ledger.restore(
        tuple(
            replace(event, payload={**event.payload, **forgery}) if event.kind == kind else event
            for event in events
        )
    )
    assert quick.resume().differs == ("request_body_hash",)
    assert (quick.asked, len(quick.kinds())) == (0, 7)


@pytest.mark.parametrize("answered", [False, True], ids=["not asked", "asked"])
def test_an_unknown_effect_is_never_resumed(answered: bool, desk: Desk) -> None:
    """Whether or not the provider was asked: the record is the same, and so is the refusal."""
    walk = open_work(desk.bench, WORK, desk.provider)
    while walk.next_step != ("observe" if answered else "ask_provider"):
        walk.step()
    walk.close()
    before = desk.kinds()
    for go_on in (desk.resume, lambda: reinterpret_call(desk.bench, "c")):
        answer = go_on()
        assert (answer.status, answer.next_operation) == ("refused", CallOperation.RECONCILE_EFFECT)
        assert answer.differs == ()
    assert (desk.asked, desk.kinds()) == (int(answered), before)


@pytest.mark.parametrize(
    ("died_after", "then"),
    [(kind, "reconcile_effect" if kind == "attempt.started" else "reinterpret") for kind in NINE[2:8]]
    + [("call.completed", "none")],
)
def test_a_resume_is_refused_wherever_an_attempt_was_started(died_after: str, then: str, quick: Desk) -> None:
    """With the operation that is in order instead, and without a trace."""
    quick.die_after(died_after)
    before, asked = quick.kinds(), quick.asked
    answer = quick.resume()
    assert (answer.status, answer.next_operation) == ("refused", then)
    assert answer.reason
    assert (quick.asked, quick.kinds()) == (asked, before)


def test_a_call_that_is_alive_is_left_alone(quick: Desk) -> None:
    """RS4: its walk goes on undisturbed, and when it is given up it can be resumed."""
    walk = open_work(quick.bench, WORK, quick.provider)
    while walk.next_step != "start_attempt":
        walk.step()
    answer = quick.resume()
    assert (answer.status, answer.next_operation) == (ActionStatus.IN_PROGRESS, CallOperation.NONE)
    while walk.next_step != "interpret_answer":
        walk.step()
    assert reinterpret_call(quick.bench, "c").status is ActionStatus.IN_PROGRESS
    assert walk.run().status == "succeeded"
    assert quick.asked == 1


def test_a_superseded_call_is_not_resumed_a_second_time(quick: Desk) -> None:
    """It has a successor, which is the one to speak of."""
    quick.die_after("call.manifest")
    quick.resume()
    before = quick.kinds()
    answer = quick.resume(new="e")
    assert (answer.status, answer.next_operation, answer.reason) == ("refused", "none", "superseded by d")
    assert reinterpret_call(quick.bench, "c").reason == "superseded by d"
    assert (quick.asked, quick.kinds()) == (1, before)


def test_the_front_door_resumes_a_call(ledger: Ledger, tmp_path: Path) -> None:
    """`Runtime.resume_call` is the same thing: one request, the old call superseded."""
    desk = Desk(ledger, tmp_path / "receipts.jsonl")
    desk.die_after("call.manifest")
    runtime = Runtime(ledger, clock=ManualClock(tick_us=1), new_id=counted_ids("n"), run_id="r", actor_id="t")
    refused = runtime.resume_call(
        "c", as_call_id="x", transport=desk.provider, settings=Settings(chamber="hall")
    )
    assert refused.differs == ("request_body_hash",)
    answer = runtime.resume_call("c", as_call_id="d", transport=desk.provider)
    assert (answer.call_id, answer.status) == ("d", "succeeded")
    assert (desk.asked, desk.kinds()) == (1, [*OLD, "call.resumed", *NINE])


@pytest.mark.parametrize(
    "died_after", ["call.requested", "call.manifest", "attempt.started", "call.completed"]
)
def test_who_may_not_call_resumes_nothing_and_learns_nothing(died_after: str, quick: Desk) -> None:
    """RS5: the same answer wherever the call stands; nobody is asked and nothing recorded."""
    quick.die_after(died_after)
    before, asked = quick.kinds(), quick.asked
    for authority in (NO_AUTHORITY, Authority(grants=(Grant(capability="model.call", expires_at_us=1),))):
        answer = resume_call(
            quick.bench,
            "c",
            as_call_id="d",
            transport=quick.provider,
            settings=Settings(),
            authority=authority,
        )
        reason = "no grant names this capability" if authority is NO_AUTHORITY else "the grant has expired"
        assert answer == CallAnswer(
            call_id="c",
            status=ActionStatus.DENIED,
            reason=f"The current authority does not permit this: {reason}.",
        )
    assert (quick.asked, quick.kinds()) == (asked, before)


@pytest.mark.parametrize("place", range(12))
def test_of_two_that_resume_one_asks(place: int, quick: Desk) -> None:
    """RS2: the second comes at every boundary of the first, and the provider is asked by one of them.

    Before the first has judged, the second takes the call; from then on it is refused.
    """
    quick.die_after("call.manifest")
    first = quick.resuming(new="d")
    for _ in range(place):
        first.step()
    second = quick.resume(new="e")
    answers = [first.run(), second]
    assert sorted(one.status for one in answers) == ["refused", "succeeded"]
    assert [one.status for one in answers][0 if place else 1] == "succeeded"
    assert quick.asked == 1
    assert quick.kinds() == [*OLD, "call.resumed", *NINE]


def test_two_that_judged_the_same_record_append_one_link(quick: Desk) -> None:
    """RS2: the append is conditional on what was judged; the loser judges again and is told."""
    quick.die_after("call.manifest")

    class Late(MemoryLedger):
        """Lets the other one in between the judgement and the append."""

        def append(self, *drafts: EventDraft, unless_changed: Any = ()) -> Any:
            if drafts[0].kind == "call.resumed" and drafts[0].payload["new_call_id"] == "d":
                other.resume(new="e")
            return super().append(*drafts, unless_changed=unless_changed)

    late = Late()
    assert isinstance(quick.ledger, MemoryLedger)
    late.restore(quick.ledger.snapshot())
    one, other = Desk(late, quick.log), Desk(late, quick.log)
    one.bench, other.bench = (
        replace(desk.bench, new_id=counted_ids(name)) for desk, name in ((one, "one"), (other, "other"))
    )
    answer = one.resume(new="d")
    assert (answer.status, answer.reason) == ("refused", "superseded by e")
    assert other.kinds() == [*OLD, "call.resumed", *NINE]
    assert one.asked == 1


@pytest.mark.parametrize("place", range(1, 11))
def test_a_resume_that_dies_is_gone_on_with_from_its_own_record(place: int, quick: Desk) -> None:
    """Two crashes in a row, the second at every boundary: no request is repeated, none is lost in silence."""
    quick.die_after("call.manifest")
    walk = quick.resuming(new="d")
    for _ in range(place):
        walk.step()
    walk.close()
    state = quick.state()
    assert (state.call_id, state.superseded_by) == ("d", {"c": "d"})
    if state.next_operation is CallOperation.START_CALL:
        assert quick.resume("d", "e").status == "succeeded"
        assert quick.state().superseded_by == {"c": "d", "d": "e"}
    elif state.next_operation is CallOperation.REINTERPRET:
        assert reinterpret_call(quick.bench, "d").status == "succeeded"
    else:
        assert state.next_operation is CallOperation.RECONCILE_EFFECT
        assert quick.resume("d", "e").status == "refused"
        assert quick.asked == (place == 5)
        return
    assert quick.asked == 1


def test_a_key_that_was_answered_meanwhile_is_answered_from_the_record(quick: Desk) -> None:
    """A naive restart had come first: resuming the old call then asks nobody."""
    quick.die_after("call.manifest")
    open_work(quick.bench, replace(WORK, work_id="w2", call_id="c2"), quick.provider).run()
    answer = quick.resume()
    assert (answer.status, answer.replayed_from) == ("succeeded", "c2")
    assert quick.asked == 1


def test_a_naive_restart_hides_nothing(quick: Desk) -> None:
    """It succeeds, the provider was asked twice, and the first work still says unknown."""
    walk = open_work(quick.bench, WORK, quick.provider)
    while walk.next_step != "observe":
        walk.step()
    walk.close()
    restart = open_work(quick.bench, replace(WORK, work_id="w2", call_id="c2"), quick.provider).run()
    assert (restart.status, quick.asked) == ("succeeded", 2)
    assert quick.state("w").next_operation is CallOperation.RECONCILE_EFFECT
    assert quick.state("c2").next_operation is CallOperation.NONE
    assert quick.resume().next_operation is CallOperation.RECONCILE_EFFECT


def test_a_conflict_found_while_resuming_is_raised_and_recorded(quick: Desk) -> None:
    """The key was used for another call meanwhile."""
    quick.die_after("call.manifest")
    other = replace(WORK, work_id="w2", call_id="c2", prompt="Something else.")
    open_work(quick.bench, other, quick.provider).run()
    with pytest.raises(IdempotencyConflictError):
        quick.resume()
    assert quick.kinds()[-3:] == ["call.resumed", "call.requested", "call.replay_refused"]
    assert quick.state().next_operation is CallOperation.NONE
    assert quick.asked == 1


@pytest.mark.parametrize("new", ["c", "w", "other"])
def test_the_new_name_must_be_free(new: str, quick: Desk) -> None:
    """A name that is taken is refused and nothing is recorded."""
    open_work(
        quick.bench, replace(WORK, work_id="w2", call_id="other", idempotency_key="k2"), quick.provider
    ).run()
    quick.die_after("call.manifest")
    before = quick.kinds()
    with pytest.raises(RefusedRequestError, match="belongs to an earlier call"):
        quick.resume(new=new)
    assert quick.kinds() == before


# --- reinterpret -------------------------------------------------------------------------------------


@pytest.mark.parametrize("died_after", NINE[3:8])
def test_an_answer_on_record_is_gone_on_with_and_nobody_is_asked(died_after: str, desk: Desk) -> None:
    """RS3: wherever it stopped, the record becomes that of a clean call, and the answer is the same."""
    desk.die_after(died_after)
    answer = reinterpret_call(desk.bench, "c")
    clean = Desk(MemoryLedger(), desk.log.with_name("clean.jsonl"))
    expected = open_work(clean.bench, WORK, clean.provider).run()
    assert answer == expected
    said = [[(event.kind, event.payload) for event in one.ledger.read_all()] for one in (desk, clean)]
    assert said[0] == said[1]
    assert (desk.asked, len(desk.kinds())) == (1, 14)
    assert {event.causation_id for event in desk.ledger.read("c")[1:]} == {desk.ledger.read("c")[0].event_id}
    again = reinterpret_call(desk.bench, "c")
    assert (again.status, again.next_operation) == ("refused", "none")
    assert len(desk.kinds()) == 14


def test_a_stored_answer_that_says_nothing_is_a_recorded_failure(quick: Desk) -> None:
    """RS3: the bytes decide, also when they are no text."""

    class Odd:
        def send(self, body: bytes, *, key: str) -> bytes:
            return b"\xff"

    walk = open_work(quick.bench, WORK, Odd())
    while walk.next_step != "interpret_answer":
        walk.step()
    walk.close()
    answer = reinterpret_call(quick.bench, "c")
    assert (answer.status, answer.reason) == (ActionStatus.FAILED, "the answer is not JSON")
    assert quick.state().stage == "completed"


@pytest.mark.parametrize("died_after", ["call.requested", "call.manifest"])
def test_there_is_nothing_to_reinterpret_before_an_answer(died_after: str, quick: Desk) -> None:
    """It is refused with start_call."""
    quick.die_after(died_after)
    before = quick.kinds()
    answer = reinterpret_call(quick.bench, "c")
    assert (answer.status, answer.next_operation) == ("refused", CallOperation.START_CALL)
    assert quick.kinds() == before


# --- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("died_after", LENGTHS)
def test_reading_the_state_records_nothing(died_after: str, quick: Desk) -> None:
    """At every place of the chain, by the work's name and by the call's."""
    quick.die_after(died_after)
    state = quick.state()
    if state.call_id is not None:
        assert quick.state(state.call_id) == state
    assert len(quick.kinds()) == LENGTHS[died_after]


def test_an_unknown_name_is_refused(quick: Desk) -> None:
    """Of works, of calls, and of calls that belong to no work."""
    quick.die_after("call.manifest")
    stray = replace(quick.ledger.read("c")[0], event_id="x", stream_id="stray", causation_id=None)
    quick.ledger.append(EventDraft(**{name: getattr(stray, name) for name in EventDraft.__slots__}))
    for name in ("nobody", "stray"):
        with pytest.raises(RefusedRequestError, match="no work"):
            quick.state(name)
        with pytest.raises(RefusedRequestError, match="no work"):
            quick.resume(name)
    for go_on in (lambda: quick.resume("w"), lambda: reinterpret_call(quick.bench, "w")):
        with pytest.raises(RefusedRequestError, match="name of a work"):
            go_on()


def test_resume_call_is_its_walk_run_to_the_end(quick: Desk) -> None:
    """The front door and the walk are one thing."""
    quick.die_after("call.manifest")
    answer = resume_call(quick.bench, "c", as_call_id="d", transport=quick.provider, settings=Settings())
    assert (answer.call_id, answer.status) == ("d", "succeeded")
