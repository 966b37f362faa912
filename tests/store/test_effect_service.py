"""Are effect and completion record there together or not at all, and does no id ever act twice?"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.retention import Answer, RequestId, Verdict
from codeai_lab.errors import LedgerClosedError, LedgerFailedError, RefusedRequestError, RefusedValueError
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import raising
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import LAB, R_1B3C7A2, REVISIONS
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.store.effect_service import EffectService, NotDoneError, Point, ServiceAdapter
from codeai_lab.store.memory import MemoryLedger

LEASE_US = 10_000_000
MADE = {"effect": 1, "marker": "effects/1"}
NEW, IN_PROGRESS, DUPLICATE, STALE, LEASE_EXPIRED = Answer


class Desk:
    """A service with one client, whose clock and watcher the test holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.on: dict[Point, Callable[[], object]] = {}
        self.passed: list[Point] = []
        self.open()
        self.client = self.service.open_client(lease_us=LEASE_US)

    def open(self) -> None:
        self.service = EffectService(self.path, clock=self.clock, watch=self._watch)

    def reopen(self) -> None:
        self.service.close()
        self.open()

    def ask(self, number: int = 1, *, line: str = "one line", first_incomplete: int = 1) -> Verdict:
        return self.service.submit(
            RequestId(client_id=self.client, sequence=number), line, action_id=f"a{number}",
            first_incomplete=first_incomplete,
        )  # fmt: skip

    def answers(self, *numbers: int) -> list[Answer]:
        return [self.ask(number).answer for number in numbers]

    def holds(self, effects: int, records: int, collections: int = 0) -> bool:
        return self.service.kept() == {"effects": effects, "records": records, "collections": collections}

    def _watch(self, point: Point) -> None:
        self.passed.append(point)
        self.on.get(point, lambda: None)()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty file, made one time: most of a test's time would go into that."""
    path = tmp_path_factory.mktemp("made") / "effects.duckdb"
    EffectService(path).close()
    return path


@pytest.fixture
def desk(tmp_path: Path, made: Path) -> Iterator[Desk]:
    desk = Desk(shutil.copy(made, tmp_path / "effects.duckdb"))
    yield desk
    desk.service.close()


def request(action_id: str, key: str = "c1/1", **changes: Any) -> ActionRequest:
    usual = {"capability": "file.append", "instruction": "append one line", "payload": {"line": "one line"}}
    return ActionRequest(action_id=action_id, idempotency_key=key, **usual | changes)


# --- one step -------------------------------------------------------------------------------------------


def test_a_new_request_acts_and_its_retry_is_answered_from_the_record(desk: Desk) -> None:
    """New, then a duplicate with the very result, also after the file was opened again."""
    assert desk.ask() == Verdict(answer=NEW, result=MADE)
    assert desk.passed == list(Point)
    assert desk.ask() == Verdict(answer=DUPLICATE, result=MADE)
    desk.reopen()
    assert desk.ask() == Verdict(answer=DUPLICATE, result=MADE)
    assert desk.holds(1, 1)
    assert desk.passed == list(Point)


@pytest.mark.parametrize("point", list(Point))
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt], ids=lambda kind: kind.__name__)
def test_ended_at_any_point_both_are_there_or_neither(
    desk: Desk, point: Point, error: type[BaseException]
) -> None:
    """ES1: whatever raises, wherever; the same id is then new or a duplicate, and there is one effect."""
    desk.on[point] = raising(error())
    with pytest.raises(error):
        desk.ask()
    desk.on.clear()
    done = int(point is Point.COMMITTED)
    assert desk.holds(done, done)
    assert desk.ask() == Verdict(answer=DUPLICATE if done else NEW, result=MADE)
    assert desk.holds(1, 1)


def test_the_answer_is_looked_for_again_inside_the_transaction(desk: Desk) -> None:
    """ES3: what was acknowledged, or ran out of its lease, after it was taken is not done."""
    desk.on[Point.TAKEN] = lambda: desk.service.acknowledge(desk.client, up_to=1)
    assert desk.ask(1).answer is STALE
    desk.on[Point.TAKEN] = lambda: desk.clock.advance(LEASE_US)
    assert desk.ask(2).answer is LEASE_EXPIRED
    assert desk.holds(0, 0, collections=1)


def test_what_is_under_way_is_neither_run_nor_queued(desk: Desk) -> None:
    """Asked meanwhile, the same id is in progress; another one goes its way."""
    told: list[Verdict] = []

    def ask_meanwhile() -> None:
        desk.on.clear()
        told.extend([desk.ask(1), desk.ask(2)])

    desk.on[Point.TAKEN] = ask_meanwhile
    assert desk.ask(1) == Verdict(answer=NEW, result={"effect": 2, "marker": "effects/2"})
    assert told == [Verdict(answer=IN_PROGRESS), Verdict(answer=NEW, result=MADE)]
    assert desk.answers(1, 2) == [DUPLICATE, DUPLICATE]


def test_a_lease_that_ends_under_a_living_holder_lets_nobody_in(desk: Desk) -> None:
    """Expiry permits asking, not doing: the same id is in progress, nothing is collected, and the effect that
    was under way is recorded one time."""
    told: list[object] = []

    def be_slow() -> None:
        desk.on.clear()
        told.extend([desk.ask(1).answer, desk.service.collect()])
        desk.clock.advance(LEASE_US - 1)
        told.append(desk.service.renew(desk.client, lease_us=2))
        desk.on[Point.BEGUN] = lambda: None
        desk.on[Point.EFFECT_WRITTEN] = lambda: desk.clock.advance(1_000_000)

    desk.on[Point.TAKEN] = be_slow
    assert desk.ask(1).answer is NEW
    assert told == [IN_PROGRESS, (), True]
    assert desk.answers(1, 2) == [DUPLICATE, LEASE_EXPIRED]
    assert desk.holds(1, 1)


# --- what is kept, and for how long ---------------------------------------------------------------------


def test_an_acknowledged_request_is_stale_and_its_bytes_stay(desk: Desk) -> None:
    """ES4: the record goes, the number answers stale for good, and the log keeps its row."""
    assert desk.answers(1, 2) == [NEW, NEW]
    assert desk.ask(3, first_incomplete=3).answer is NEW
    assert desk.holds(3, 1, collections=1)
    desk.reopen()
    assert desk.answers(1, 2, 3) == [STALE, STALE, DUPLICATE]
    assert [receipt.action_id for receipt in desk.service.receipts()] == ["a1", "a2", "a3"]
    assert desk.holds(3, 1, collections=1)


def test_a_duplicate_may_acknowledge_too_and_a_refused_request_may_not(desk: Desk) -> None:
    """What comes with a request counts where the request itself does."""
    assert desk.answers(1, 2, 3) == [NEW, NEW, NEW]
    assert desk.ask(3, first_incomplete=3).answer is DUPLICATE
    assert desk.holds(3, 1, collections=1)
    desk.clock.advance(LEASE_US)
    assert desk.ask(9, first_incomplete=9).answer is LEASE_EXPIRED
    assert desk.holds(3, 1, collections=1)


def test_a_client_that_is_gone_is_collected(desk: Desk) -> None:
    """Its results go, its numbers answer stale, the rest has no lease; the clock may be set back."""
    assert desk.answers(1, 2) == [NEW, NEW]
    other = desk.service.open_client(lease_us=2 * LEASE_US)
    assert desk.service.collect() == ()
    desk.clock.advance(LEASE_US)
    assert desk.answers(1, 2, 3) == [DUPLICATE, DUPLICATE, LEASE_EXPIRED]
    assert desk.service.collect() == (desk.client,)
    assert desk.service.collect() == ()
    assert desk.holds(2, 0, collections=1)
    desk.clock = ManualClock()
    desk.reopen()
    assert desk.answers(1, 2, 3) == [STALE, STALE, LEASE_EXPIRED]
    assert not desk.service.renew(desk.client, lease_us=LEASE_US)
    assert desk.service.renew(other, lease_us=LEASE_US)


def test_client_ids_are_given_out_and_never_twice(desk: Desk) -> None:
    """A new lease is a new id, also after the file was opened again; an id that nobody was given has none."""
    assert desk.client == "c1"
    desk.reopen()
    assert desk.service.open_client(lease_us=1) == "c2"
    desk.client = "c9"
    assert desk.ask(2, first_incomplete=2).answer is LEASE_EXPIRED
    desk.service.acknowledge("c9", up_to=5)
    assert not desk.service.renew("c9", lease_us=LEASE_US)
    assert desk.holds(0, 0)


def test_a_lease_is_renewed_while_it_lasts(desk: Desk) -> None:
    """Renewed in time it goes on; from its very end on it cannot be."""
    desk.clock.advance(LEASE_US - 1)
    assert desk.service.renew(desk.client, lease_us=LEASE_US)
    desk.clock.advance(LEASE_US - 1)
    assert desk.ask(1).answer is NEW
    desk.clock.advance(1)
    assert not desk.service.renew(desk.client, lease_us=LEASE_US)
    assert desk.ask(2).answer is LEASE_EXPIRED


def test_an_id_is_trusted(desk: Desk) -> None:
    """The limit of identification: another line under a used id is answered with the first one's result."""
    desk.ask(1, line="one line")
    assert desk.ask(1, line="another line") == Verdict(answer=DUPLICATE, result=MADE)
    assert desk.holds(1, 1)


def test_what_cannot_be_meant_is_refused_and_leaves_nothing(desk: Desk) -> None:
    """A line that is no text, and numbers that no client can say; the next request is served."""
    wrong: list[tuple[Any, int, int]] = [
        (7, 1, 1), (None, 1, 1), ("\ud800", 1, 1), ("x", 1, 2), ("x", 0, 0),
    ]  # fmt: skip
    for served, (line, number, first) in enumerate(wrong):
        with pytest.raises((RefusedValueError, RefusedRequestError)):
            desk.ask(number, line=line, first_incomplete=first)
        assert desk.holds(served, served), (line, number, first)
        assert desk.ask(10 + served).answer is NEW


def test_any_text_is_a_line(desk: Desk) -> None:
    """What is appended is what was handed in, to the byte, and resolves."""
    lines = ("", "two\nlines", "nul\0byte", "\u00e9 \U0001f600", "'; DROP TABLE effects; --")
    for number, line in enumerate(lines, start=1):
        desk.ask(number, line=line)
        (reference,) = desk.service.find({"action_id": f"a{number}"})
        assert reference["effect"] == hashlib.sha256(f"{line}\n".encode()).hexdigest()
        assert desk.service.resolve(reference)


def test_a_closed_service_says_so(tmp_path: Path) -> None:
    """No error of the database reaches the caller; closing twice is harmless."""
    with EffectService(tmp_path / "effects.duckdb") as service:
        pass
    service.close()
    with pytest.raises(LedgerFailedError, match="does not answer"):
        service.kept()


# --- behind a runtime -----------------------------------------------------------------------------------


def runtime_on(rules: Any = LAB) -> Runtime:
    return Runtime(MemoryLedger(), rules=rules, clock=ManualClock(), new_id=counted_ids("e"))


def test_a_reconciliation_asks_the_service(desk: Desk) -> None:
    """The effect is there and the reply was lost: confirmed from the log, and the key is answered from it."""
    runtime = runtime_on()
    adapter = ServiceAdapter(desk.service, after=raising(TimeoutError("no acknowledgement")))
    lost = runtime.execute_action(request("a1"), authority=Authority.of("file.append"), adapter=adapter)
    judged = runtime.reconcile_action("a1", authority=Authority.of(RECONCILE), effect_lookup=desk.service)
    assert (lost.status, judged.verdict, len(judged.evidence)) == ("failed", "effect_confirmed", 1)
    assert desk.service.resolve(judged.evidence[0])
    assert (adapter.calls, adapter.effects) == (1, 1)


def test_what_the_log_does_not_hold_is_certainly_absent(desk: Desk) -> None:
    """A look-up of another action finds nothing; a reference to another line does not resolve."""
    desk.ask(1)
    (reference,) = desk.service.find({"action_id": "a1"})
    assert desk.service.find({"action_id": "a2"}) == ()
    assert desk.service.resolve(reference)
    assert not desk.service.resolve({**reference, "effect": "0" * 64})
    assert not desk.service.resolve({**reference, "receipt": 2})


@pytest.mark.parametrize("rules", REVISIONS)
def test_under_every_rule_set_a_retry_after_a_death_has_one_effect(desk: Desk, rules: str) -> None:
    """The process dies right after the effect; what the rules do with the same key, the effect is one."""
    runtime, adapter = runtime_on(REVISIONS[rules]), ServiceAdapter(desk.service)
    asked = {"authority": Authority.of("file.append"), "adapter": adapter}
    walk = runtime.walk(request("a1"), **asked)
    while walk.step() != walk.revision.stage_names[-3]:
        pass
    walk.close()
    runtime.execute_action(request("a2"), **asked)
    assert adapter.effects == len(desk.service.receipts()) == 1


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (lambda desk: (desk.ask(1), desk.service.acknowledge("c1", up_to=1)), STALE),
        (lambda desk: desk.clock.advance(LEASE_US), LEASE_EXPIRED),
    ],
    ids=["stale", "lease_expired"],
)
def test_what_the_service_does_not_do_is_a_recorded_failure(
    desk: Desk, before: Callable[[Desk], object], answer: Answer
) -> None:
    """The adapter raises and says why; nothing was done now."""
    before(desk)
    found, adapter = len(desk.service.receipts()), ServiceAdapter(desk.service)
    told = runtime_on(R_1B3C7A2).execute_action(
        request("a9"), authority=Authority.of("file.append"), adapter=adapter
    )
    assert told.status == "failed"
    said = f"nothing was done now; the request is {answer}"
    assert told.error == {"code": "adapter-raised", "type": "NotDoneError", "message": said}
    assert (len(desk.service.receipts()), adapter.effects) == (found, 0)
    with pytest.raises(NotDoneError) as refused:
        adapter.execute(request("a9"))
    assert refused.value.answer is answer


def test_a_key_that_is_no_id_is_refused(desk: Desk) -> None:
    """The service takes no name that it cannot keep apart."""
    with pytest.raises(RefusedRequestError):
        ServiceAdapter(desk.service).execute(request("a1", key="ka"))
    assert desk.holds(0, 0)


def test_every_two_deaths_in_a_row_end_in_one_effect(desk: Desk) -> None:
    """ES2: an id is asked for, ended at any point, asked again and ended again, and asked a third time."""
    for number, deaths in enumerate(itertools.product(Point, repeat=2), start=1):
        done = False
        for point in deaths:
            desk.on = {} if done else {point: raising(RuntimeError())}
            with nullcontext() if done else pytest.raises(RuntimeError):
                assert desk.ask(number).answer is DUPLICATE
            done = done or point is Point.COMMITTED
        desk.on = {}
        assert desk.ask(number).answer is (DUPLICATE if done else NEW)
        assert desk.holds(number, number)


# --- fork ----------------------------------------------------------------------------------------------


def test_a_forked_childs_copy_refuses_to_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ES5: every question is refused in one sentence, also while the parent holds the file; the parent goes
    on.
    """
    desk = Desk(tmp_path / "effects.duckdb")
    service = desk.service
    desk.ask(1)
    uses: dict[str, Callable[[], object]] = {
        "submit": lambda: desk.ask(2),
        "open_client": lambda: service.open_client(lease_us=1),
        "renew": lambda: service.renew(desk.client, lease_us=1),
        "acknowledge": lambda: service.acknowledge(desk.client, up_to=1),
        "collect": service.collect,
        "receipts": service.receipts,
        "find": lambda: service.find({"action_id": "a1"}),
        "resolve": lambda: service.resolve({"receipt": 1, "effect": "x"}),
        "kept": service.kept,
    }
    with service._file._guard, monkeypatch.context() as patched:  # as another thread of the parent may
        patched.setattr(os, "getpid", lambda: -1)
        for name, use in uses.items():
            with pytest.raises(LedgerClosedError, match="parent of this forked process; ask it there"):
                pytest.fail(f"{name} was answered: {use()}")
        service.close()
    assert desk.answers(1, 2) == [DUPLICATE, NEW]
    service.close()
    with pytest.raises(LedgerFailedError):
        service.kept()
