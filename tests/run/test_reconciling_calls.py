"""Is a call that was left unknown judged by the provider's receipts, and by nothing else?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.decide.workstate import WorkState
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import CallRequest
from codeai_lab.run.callwalk import CallWalk, Work
from codeai_lab.run.provider import ReceiptLookup, SyntheticProvider, receipts
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.reconciling_calls import CallReconciliation
from codeai_lab.run.resuming import work_state_of
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.working import open_work
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

JUDGE = Authority.of(RECONCILE)
WORK = Work(
    work_id="w",
    call_id="c",
    idempotency_key="k",
    directive="find out",
    prompt="Say it.",
    offered={"chapter": "text"},
)


class Desk:
    """A ledger, a provider with its log, and an operator."""

    def __init__(self, ledger: Ledger, log: Path) -> None:
        self.ledger = ledger
        self.log = log
        self.provider = SyntheticProvider(log)
        self.runtime = Runtime(
            ledger, clock=ManualClock(tick_us=1), new_id=counted_ids("e"), run_id="r", actor_id="t"
        )
        self.bench = self.runtime._bench

    def leave_before(self, step: str, name: str = "") -> CallWalk:
        """Open a work and stop before a step; the walk is still alive."""
        work = replace(WORK, work_id=f"w{name}", call_id=f"c{name}") if name else WORK
        walk = open_work(self.bench, work, self.provider)
        while walk.next_step != step:
            walk.step()
        return walk

    def die_before(self, step: str, name: str = "") -> None:
        self.leave_before(step, name).close()

    def judge(self, call: str = "c", *, authority: Authority = JUDGE, by: Any = None) -> CallReconciliation:
        return self.runtime.reconcile_call(
            call, authority=authority, receipt_lookup=by or ReceiptLookup(self.log)
        )

    def kinds(self) -> list[str]:
        return [event.kind for event in self.ledger.read_all()]

    def state(self, name: str = "c") -> WorkState:
        return work_state_of(self.bench, name)

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


class Lookup:
    """An effect system that cannot tell, or fails, or points at nothing, or does something first."""

    def __init__(self, found: Any, *, resolves: bool = True, first: Callable[[], object] = list) -> None:
        self.found = found
        self.resolves = resolves
        self.first = first

    def find(self, _: Mapping[str, Any]) -> Any:
        self.first()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found() if callable(self.found) else self.found

    def resolve(self, _: Mapping[str, Any]) -> bool:
        return self.resolves


@EITHER
def test_a_receipt_confirms_that_the_provider_was_asked(desk: Desk) -> None:
    """Its answer is lost: asking again would be asking twice, and resuming is refused."""
    desk.die_before("observe")
    judged = desk.judge()
    assert (judged.verdict, judged.refused, judged.evidence) == ("effect_confirmed", None, ({"receipt": 1},))
    assert (judged.provider_effect, judged.next_operation) == ("observed", "none")
    last = list(desk.ledger.read_all())[-1]
    assert (last.kind, last.causation_id) == ("call.reconciled", desk.ledger.read("c")[0].event_id)
    assert last.payload == {"call_id": "c", "verdict": "effect_confirmed", "evidence": [{"receipt": 1}]}
    state = desk.state()
    assert (state.stage, state.next_operation, state.duplicate_risk) == ("reconciled", "none", True)
    assert desk.runtime.resume_call("c", as_call_id="d", transport=desk.provider).status == "refused"
    assert desk.asked == 1


def test_no_receipt_permits_a_fresh_attempt_under_the_authority_of_now(desk: Desk) -> None:
    """Confirmed absent: the call can be resumed, by who may call, and the provider is asked once in all."""
    desk.die_before("ask_provider")
    judged = desk.judge()
    assert (judged.verdict, judged.evidence) == ("no_effect_confirmed", ())
    assert (judged.provider_effect, judged.next_operation) == ("none", "start_call")
    assert desk.state().duplicate_risk is False
    ask = desk.runtime.resume_call
    assert ask("c", as_call_id="d", transport=desk.provider, authority=NO_AUTHORITY).status == "denied"
    assert ask("c", as_call_id="d", transport=desk.provider).status == "succeeded"
    assert desk.asked == 1
    assert desk.state().superseded_by == {"c": "d"}
    assert desk.kinds()[7:11] == ["attempt.started", "call.reconciled", "call.resumed", "call.requested"]


@pytest.mark.parametrize(
    ("by", "evidence"),
    [
        (Lookup(None), ()),
        (Lookup(ConnectionError("gone")), ({"lookup_failed": "ConnectionError"},)),
        (Lookup(({"receipt": 9},), resolves=False), ({"unresolved": {"receipt": 9}},)),
        (ReceiptLookup(Path("nowhere.jsonl")), ({"lookup_failed": "FileNotFoundError"},)),
    ],
    ids=["cannot tell", "fails", "does not resolve", "no log"],
)
def test_what_cannot_be_found_out_stays_unknown(by: Any, evidence: tuple[Any, ...], quick: Desk) -> None:
    """A valid last verdict; the next one is appended beside it, and the last one speaks."""
    quick.die_before("observe")
    judged = quick.judge(by=by)
    assert (judged.verdict, judged.evidence) == ("still_unknown", evidence)
    assert (judged.provider_effect, judged.next_operation) == ("unknown", "none")
    assert quick.state().duplicate_risk is True
    assert quick.judge().verdict == "effect_confirmed"
    assert quick.kinds()[-2:] == ["call.reconciled", "call.reconciled"]


@pytest.mark.parametrize(
    ("mine", "others", "verdict"),
    [
        ("observe", ["complete_call"], "effect_confirmed"),
        ("ask_provider", ["complete_call"], "no_effect_confirmed"),
        ("ask_provider", ["complete_call", "complete_call"], "no_effect_confirmed"),
        ("observe", ["observe"], "effect_confirmed"),
        ("ask_provider", ["observe"], "still_unknown"),
        ("observe", ["ask_provider"], "still_unknown"),
        ("observe", ["start_attempt"], "effect_confirmed"),
        ("ask_provider", ["ask_provider"], "no_effect_confirmed"),
    ],
)
def test_a_receipt_is_one_calls(mine: str, others: list[str], verdict: str, quick: Desk) -> None:
    """RCC3: of several calls with one key, each verdict is right, or says that it cannot tell."""
    quick.die_before(mine)
    for number, step in enumerate(others):
        quick.die_before(step, str(number))
    assert quick.judge().verdict == verdict
    assert quick.asked == [mine, *others].count("observe") + others.count("complete_call")


def test_receipts_of_another_request_are_not_its_own(quick: Desk) -> None:
    """Neither another key's nor another body's."""
    quick.die_before("ask_provider")
    quick.provider.send(b"another body", key="k")
    other = replace(WORK, work_id="v", call_id="d", idempotency_key="another key")
    open_work(quick.bench, other, quick.provider).run()
    assert quick.judge().verdict == "no_effect_confirmed"


def test_a_verdict_that_was_overtaken_is_found_anew(quick: Desk) -> None:
    """RCC4: another call with the key asks while receipts are read; and its receipt is not taken."""
    quick.die_before("ask_provider")
    left = [lambda: quick.die_before("interpret_answer", "x")]
    lookup = Lookup(
        lambda: tuple({"receipt": one["n"]} for one in receipts(quick.log)),
        first=lambda: left and left.pop()(),
    )
    judged = quick.judge(by=lookup)
    assert (judged.verdict, quick.asked) == ("no_effect_confirmed", 1)
    assert quick.kinds().count("call.reconciled") == 1


def test_who_may_not_judge_is_refused_and_learns_nothing(quick: Desk) -> None:
    """RCC1: who may call may not therefore judge; the refusal is on record."""
    quick.die_before("observe")
    for authority in (NO_AUTHORITY, Authority.of("model.call")):
        judged = quick.judge(authority=authority)
        assert (judged.refused, judged.verdict, judged.evidence) == ("not-authorised", None, ())
        assert (judged.provider_effect, judged.next_operation) == ("unknown", "none")
    last = list(quick.ledger.read_all())[-1]
    assert (last.kind, last.payload) == (
        "call.reconcile_refused",
        {"call_id": "c", "reason": "not-authorised"},
    )
    assert quick.state().next_operation == "reconcile_effect"


def test_a_call_that_is_alive_is_not_judged(quick: Desk) -> None:
    """RCC1: it goes on undisturbed in its own stream, and says itself what became of it."""
    walk = quick.leave_before("observe")
    assert quick.judge().refused == "in-progress"
    walk.close()
    assert quick.judge().verdict == "effect_confirmed"


def test_a_plain_call_that_is_under_way_is_not_judged(quick: Desk) -> None:
    """RCC1: also one without a chain of work around it, while its provider is asked."""
    said: list[str | None] = []
    request = CallRequest(call_id="p", idempotency_key="kp", prompt="p", chamber="c", requested_model="m")

    class Asks:
        def respond(self, _: CallRequest) -> Any:
            said.append(quick.judge("p").refused)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        quick.runtime.invoke_recorded_call(request, provider=Asks())
    assert said == ["in-progress"]
    assert quick.judge("p").verdict == "no_effect_confirmed"


@pytest.mark.parametrize("step", ["look_up", "start_attempt", "interpret_answer", "complete_call"])
def test_there_is_nothing_to_judge_where_the_record_says_it(step: str, quick: Desk) -> None:
    """Before an attempt was started, and once an answer is on record."""
    quick.die_before(step)
    before = quick.state()
    assert quick.judge().refused == "nothing-to-reconcile"
    assert quick.kinds()[-1] == "call.reconcile_refused"
    assert quick.state() == before


@pytest.mark.parametrize("name", ["nobody", "w"])
def test_what_is_no_call_is_refused(name: str, quick: Desk) -> None:
    """An unknown name and the name of a work; nothing is recorded."""
    quick.die_before("observe")
    before = quick.kinds()
    with pytest.raises(RefusedRequestError, match="no such call"):
        quick.judge(name)
    assert quick.kinds() == before
