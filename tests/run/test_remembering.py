"""The laws of run.remembering: what is on record of a memory, and what a crash or a deletion leaves of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant, PolicyEngine
from codeai_lab.decide.memory import Candidate, ClaimKind, Memory, MemoryLine
from codeai_lab.decide.recall import RECALL, Use, Wish
from codeai_lab.errors import LedgerFailedError, LedgerFullError, NotPermittedError, RefusedRequestError
from codeai_lab.lessons.memory_asked import EVERYTHING, asks
from codeai_lab.lessons.memory_offered import FRIEND, NOW_US, READER, THOUGHT, YEAR, concluded, said
from codeai_lab.lessons.memory_on_disk import CORRECTED, OWNER, POISON, STATED, SUMMARY, files_with
from codeai_lab.records import Event, EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.run.remembering import MANAGE, Remembering
from codeai_lab.run.runtime import counted_ids
from codeai_lab.store.erasable import ErasableTexts, TextNotErasedError
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

# On either ledger; the other laws here are held on the one in memory, and both ledgers to one contract.
EITHER = pytest.mark.parametrize("ledger", ["memory", "file"], indirect=True)

ANOTHER = said("I prefer slow films.", topic="film.pace", value="slow")


def opened(ledger: Ledger, folder: Path, session: str = "s1") -> Remembering:
    bench = Bench(
        ledger=ledger, clock=ManualClock(start_us=NOW_US), new_id=counted_ids(session), policy=PolicyEngine(),
        rules="lab", run_id="test", actor_id="harness",
    )  # fmt: skip
    return Remembering(bench, ErasableTexts(folder / "texts", ledger_id=ledger.ledger_id))


def kinds(ledger: Ledger) -> list[str]:
    return [event.kind for event in ledger.read_all()]


def states(memories: Remembering, owner: str = READER) -> dict[str, str]:
    return {one["memory"]: one["state"] for one in memories.inspect(owner, authority=OWNER)}


@EITHER
def test_a_memory_s_whole_life_is_on_record(ledger: Ledger, tmp_path: Path) -> None:
    """The literal history of keeping, refusing, correcting, recalling and deleting, and what it says."""
    memories = opened(ledger, tmp_path)
    assert memories.remember("m1", STATED, authority=OWNER).is_kept
    assert memories.remember("p1", POISON, authority=OWNER).reason == "retrieved-text-is-evidence"
    assert memories.correct("m1", CORRECTED, as_memory_id="m2", authority=OWNER).is_kept
    assert memories.recall(asks(), authority=EVERYTHING).values == {"film.style": "quiet"}
    memories.recall(asks(Wish(value="loud")), authority=EVERYTHING)
    memories.delete("m2", owner=READER, authority=OWNER)
    assert kinds(ledger) == [
        "memory.recorded", "memory.refused", "memory.recorded", "memory.corrected",
        "memory.used", "memory.withheld", "memory.deleted", "memory.deleted",
    ]  # fmt: skip
    used, withheld = ledger.read("memory-request/request-42")
    assert used.payload == {
        "request_id": "request-42", "purpose": "recommend-films", "memory_id": "m2",
        "reason": "the request leaves it open",
    }  # fmt: skip
    assert (withheld.payload["answer"], withheld.payload["reason"]) == ("outranked", "the request says it")
    refused = ledger.read(f"memories/{READER}")[1]
    assert refused.payload == {
        "memory_id": "p1", "gate": "provenance", "reason": "retrieved-text-is-evidence",
        "sources": POISON.terms()["sources"],
    }  # fmt: skip
    assert states(memories) == {"m1": "deleted", "m2": "deleted"}


@EITHER
def test_no_event_holds_a_word_of_a_memory(ledger: Ledger, tmp_path: Path) -> None:
    """RM3: neither of a kept, a corrected nor a refused one, nor of what was recalled."""
    memories = opened(ledger, tmp_path)
    claims = {"m1": STATED, "m2": ANOTHER, "m3": YEAR, "p1": POISON, "s1": SUMMARY}
    for name, claim in claims.items():
        memories.remember(name, claim, authority=OWNER)
    memories.correct("m1", CORRECTED, as_memory_id="m4", authority=OWNER)
    memories.recall(asks(), authority=EVERYTHING)
    told = "\n".join(map(repr, ledger.read_all()))
    told = re.sub(r"\b[0-9a-f]{64}\b", "", told)  # a salted digest may hold the digits of a year by chance
    words = [word for claim in (*claims.values(), CORRECTED) for word in claim.words().values()]
    assert [word for word in words if word in told.replace("film:ex-machina", "")] == []


def test_a_correction_is_kept_as_history_and_used_no_more(ledger: Ledger, tmp_path: Path) -> None:
    """The old words can be inspected; only the newest version can be corrected; the gate judges it anew."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    assert not memories.correct("m1", POISON, as_memory_id="m2", authority=OWNER).is_kept
    assert states(memories) == {"m1": "current"}
    memories.correct("m1", CORRECTED, as_memory_id="m3", authority=OWNER)
    old, new = memories.inspect(READER, authority=OWNER)
    assert (old["state"], old["statement"]) == ("corrected by m3", STATED.statement)
    assert (new["state"], new["statement"]) == ("current", CORRECTED.statement)
    given = memories.recall(asks(), authority=EVERYTHING)
    assert [(one.memory_id, one.use) for one in given.recalled] == [("m1", Use.SUPERSEDED), ("m3", Use.USED)]
    with pytest.raises(RefusedRequestError, match="corrected before"):
        memories.correct("m1", CORRECTED, as_memory_id="m4", authority=OWNER)


@EITHER
def test_a_deletion_reaches_versions_and_derived_ones_and_the_disk(ledger: Ledger, tmp_path: Path) -> None:
    """RM5: one append for all of them, and no word is left in any file."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    memories.remember("s1", SUMMARY, authority=OWNER)
    memories.correct("m1", CORRECTED, as_memory_id="m2", authority=OWNER)
    memories.remember("m9", ANOTHER, authority=OWNER)
    gone = memories.delete("m1", owner=READER, authority=OWNER)
    assert (gone.reached.versions, gone.reached.derived) == (("m1", "m2"), ("s1",))
    assert states(memories) == {"m1": "deleted", "s1": "deleted", "m2": "deleted", "m9": "current"}
    for claim in (STATED, SUMMARY, CORRECTED):
        assert files_with(tmp_path, claim.statement) == []
    deleted = [event for event in ledger.read_all() if event.kind == "memory.deleted"]
    assert {event.payload["because_of"] for event in deleted} == {"m1"}
    with pytest.raises(RefusedRequestError, match="no such memory"):
        memories.delete("m1", owner=READER, authority=OWNER)


def test_what_is_derived_again_is_judged_and_rests_on_the_living(ledger: Ledger, tmp_path: Path) -> None:
    """RM5: a new claim on what was deleted is refused; one on what is left is kept; none is no matter."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    memories.remember("m2", ANOTHER, authority=OWNER)
    for name, on in (("s1", ("m1", "m2")), ("s2", ("m1",)), ("s3", ("m1", "m2"))):
        claim = concluded(f"So {name}.", sources=(THOUGHT,), derived_from=on)
        memories.remember(name, claim, authority=OWNER)
    shown: dict[str, list[str]] = {}

    def again(line: MemoryLine, left: Mapping[str, Memory]) -> tuple[str, Candidate] | None:
        shown[line.memory_id] = sorted(left)
        on = {"s1": ("m2",), "s3": ("m1",)}.get(line.memory_id)
        if on is None:
            return None
        return f"{line.memory_id}-again", concluded("Anew.", sources=(THOUGHT,), derived_from=on)

    gone = memories.delete("m1", owner=READER, authority=OWNER, rederive=again)
    assert gone.derived_again == ("s1-again",)
    assert shown == {"s1": ["m2"], "s2": ["m2", "s1-again"], "s3": ["m2", "s1-again"]}
    assert states(memories)["s1-again"] == "current"
    assert "s3-again" not in states(memories)


@pytest.mark.parametrize(
    "authority",
    [
        NO_AUTHORITY,
        EVERYTHING,
        Authority(grants=(Grant(capability=MANAGE, performer=FRIEND),)),
        Authority(grants=(Grant(capability=MANAGE, expires_at_us=NOW_US),)),
    ],
    ids=["none", "recalls only", "of a friend", "expired"],
)
def test_managing_takes_a_grant_now(ledger: Ledger, tmp_path: Path, authority: Authority) -> None:
    """RM4: without one nothing is recorded, written, changed or shown."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    before = kinds(ledger), sorted(path.name for path in tmp_path.rglob("*"))
    acts: list[Callable[[], object]] = [
        lambda: memories.remember("m2", STATED, authority=authority),
        lambda: memories.correct("m1", CORRECTED, as_memory_id="m2", authority=authority),
        lambda: memories.delete("m1", owner=READER, authority=authority),
        lambda: memories.inspect(READER, authority=authority),
    ]
    for act in acts:
        with pytest.raises(NotPermittedError):
            act()
    assert (kinds(ledger), sorted(path.name for path in tmp_path.rglob("*"))) == before


def test_another_s_memory_is_as_none(ledger: Ledger, tmp_path: Path) -> None:
    """RM4: who asks for a friend's memory gets the same words as for one that never was."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    told = []
    for name in ("m1", "never"):
        for act in (
            lambda name=name: memories.delete(name, owner=FRIEND, authority=OWNER),
            lambda name=name: memories.correct(
                name, said("Mine.", owner=FRIEND), as_memory_id="x", authority=OWNER
            ),
        ):
            with pytest.raises(RefusedRequestError) as raised:
                act()
            told.append(str(raised.value))
    assert len(set(told)) == 1
    assert states(memories, FRIEND) == {}
    assert memories.remember("m1", said("Mine.", owner=FRIEND), authority=OWNER).findings  # not their words
    assert states(memories) == {"m1": "current"}


def test_a_revoked_source_is_withheld_at_the_next_recall(ledger: Ledger, tmp_path: Path) -> None:
    """Identity, policy and authority are asked again each time, and the answer is on record."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    assert memories.recall(asks(), authority=EVERYTHING).values
    assert memories.recall(asks(), authority=Authority.of(RECALL)).values == {}
    assert [event.kind for event in ledger.read("memory-request/request-42")] == [
        "memory.used", "memory.withheld",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["m1", ""])
def test_a_memory_id_is_used_once(ledger: Ledger, tmp_path: Path, name: str) -> None:
    """One id, one memory, also after it was deleted; nothing is recorded or kept."""
    memories = opened(ledger, tmp_path)
    memories.remember("m1", STATED, authority=OWNER)
    memories.delete("m1", owner=READER, authority=OWNER)
    before = kinds(ledger)
    with pytest.raises(RefusedRequestError, match="taken or empty"):
        memories.remember(name, ANOTHER, authority=OWNER)
    assert kinds(ledger) == before
    assert files_with(tmp_path, ANOTHER.statement) == []


def test_words_that_were_changed_or_lost_say_nothing_and_can_be_deleted(
    ledger: Ledger, tmp_path: Path
) -> None:
    """What is not what was recorded is not recalled; it is shown as lost, and deleting it works."""
    memories = opened(ledger, tmp_path)
    for name in ("m1", "m2"):
        memories.remember(name, STATED, authority=OWNER)
    first, second = [
        tmp_path / "texts" / one["text_digest"] for one in memories.inspect(READER, authority=OWNER)
    ]
    first.write_bytes(first.read_bytes().replace(b"ambiguous", b"explosive"))
    second.unlink()
    assert memories.recall(asks(), authority=EVERYTHING).recalled == ()
    assert states(memories) == {"m1": "words lost", "m2": "words lost"}
    memories.delete("m1", owner=READER, authority=OWNER)
    assert not first.exists()


class Interposed:
    """A ledger into which somebody else records just before one of our appends."""

    def __init__(self, ledger: MemoryLedger, meanwhile: Callable[[], object]) -> None:
        self.ledger_id, self.live_actions = ledger.ledger_id, ledger.live_actions
        self.read, self.find, self.read_all = ledger.read, ledger.find, ledger.read_all
        self._ledger, self._meanwhile = ledger, meanwhile
        self.is_armed = False

    def append(self, *drafts: EventDraft, unless_changed: Any = ()) -> tuple[Event, ...]:
        if self.is_armed:
            self.is_armed = False
            self._meanwhile()
        return self._ledger.append(*drafts, unless_changed=unless_changed)


def test_what_cites_a_memory_cannot_slip_in_while_it_is_deleted(memory: MemoryLedger, tmp_path: Path) -> None:
    """The deletion looks again and reaches it; the other way round the citing claim is refused."""
    others = opened(memory, tmp_path, "other")
    late = Interposed(memory, lambda: others.remember("s1", SUMMARY, authority=OWNER))
    memories = opened(late, tmp_path, "late")
    memories.remember("m1", STATED, authority=OWNER)
    late.is_armed = True
    assert memories.delete("m1", owner=READER, authority=OWNER).reached.all == ("m1", "s1")

    others.remember("m1b", STATED, authority=OWNER)
    claim = concluded("So.", sources=(THOUGHT,), derived_from=("m1b",))
    late = Interposed(memory, lambda: others.delete("m1b", owner=READER, authority=OWNER))
    memories = opened(late, tmp_path, "later")
    late.is_armed = True
    assert memories.remember("s2", claim, authority=OWNER).reason == "rests-on-an-unknown-memory"
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["ledger.json"]


@pytest.mark.parametrize(
    ("error", "left"),
    [(LedgerFullError("full"), 0), (LedgerFailedError("flush"), 1), (KeyboardInterrupt(), 1)],
)
def test_words_go_at_once_only_where_their_event_surely_is_not_there(
    memory: MemoryLedger, tmp_path: Path, error: BaseException, left: int
) -> None:
    """RM1: after a definite failure they are erased; where the event may be durable, opening decides."""

    def fail() -> None:
        raise error

    ledger = Interposed(memory, fail)
    memories = opened(ledger, tmp_path)
    ledger.is_armed = True
    with pytest.raises(type(error)):
        memories.remember("m1", STATED, authority=OWNER)
    assert len(files_with(tmp_path, STATED.statement)) == left
    assert opened(memory, tmp_path, "s2").erased_at_opening == left
    assert files_with(tmp_path, STATED.statement) == []


# --- crashes: the process ends before each single step that reaches the disk or the ledger --------------


class Died(BaseException):
    """The process ends here; nothing that comes after it in that process has an effect."""


class Dying:
    """Counts the steps that reach disk or ledger; from the chosen one on, all of them die."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Died

    def wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.step()
            return real(*args, **options)

        return call


@contextmanager
def dying(steps: int, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dying]:
    death = Dying(steps)
    with monkeypatch.context() as patched:
        for name in ("open", "write", "fsync", "replace", "unlink", "mkdir"):
            patched.setattr(os, name, death.wrap(getattr(os, name)))
        patched.setattr(ledger, "append", death.wrap(ledger.append))
        yield death


def prepared(ledger: MemoryLedger, folder: Path) -> None:
    memories = opened(ledger, folder)
    memories.remember("m1", STATED, authority=OWNER)
    memories.remember("s1", SUMMARY, authority=OWNER)
    memories.remember("m9", ANOTHER, authority=OWNER)


ACTS: dict[str, Callable[[Remembering], object]] = {
    "remember": lambda memories: memories.remember("m2", CORRECTED, authority=OWNER),
    "correct": lambda memories: memories.correct("m1", CORRECTED, as_memory_id="m2", authority=OWNER),
    "delete": lambda memories: memories.delete("m1", owner=READER, authority=OWNER),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_crash_before_any_step_leaves_all_or_nothing(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RM1, RM2: after reopening, every living memory has its words, and no other words are in any file.

    The second opening may die too, at each of its own steps; the one after it finishes.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)  # counted as a step; thousands of real ones take long
    deaths, outcomes = 0, set()
    for steps in range(100):
        for again in range(100):
            folder = tmp_path / f"{steps}-{again}"
            folder.mkdir()
            ledger = MemoryLedger()
            prepared(ledger, folder)
            memories = opened(ledger, folder, "s2")
            died = _died(steps, ledger, monkeypatch, lambda memories=memories: ACTS[act](memories))
            died_again = _died(
                again, ledger, monkeypatch, lambda ledger=ledger, folder=folder: opened(ledger, folder, "s3")
            )
            outcomes.add(_check(ledger, folder))
            deaths += died
            if not died_again:
                break
        if not died:
            break
    assert not died
    assert deaths >= 6
    assert len(outcomes) == 2  # as before the act, or as after it: nothing in between


def _died(steps: int, ledger: MemoryLedger, patch: pytest.MonkeyPatch, act: Callable[[], object]) -> bool:
    with dying(steps, ledger, patch):
        try:
            act()
        except (Died, TextNotErasedError):
            return True
    return False


def _check(ledger: MemoryLedger, folder: Path) -> tuple[tuple[str, str], ...]:
    """Open once more, hold the law, and say what became of each memory."""
    memories = opened(ledger, folder, "s4")
    seen = memories.inspect(READER, authority=OWNER)
    living = {one["text_digest"] for one in seen if one["state"] != "deleted"}
    assert {path.name for path in (folder / "texts").iterdir()} == {*living, "ledger.json"}
    assert all(one["statement"] for one in seen if one["state"] != "deleted")
    for one in (STATED, SUMMARY, CORRECTED, ANOTHER):
        told = [row for row in seen if row["statement"] == one.statement]
        assert len(files_with(folder, one.statement)) == len(told)
    assert opened(ledger, folder, "s5").erased_at_opening == 0
    return tuple((one["memory"], one["state"]) for one in seen)


def test_the_sweep_of_crashes_sees_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting two memories is one append, two files and a flush at least: the sweep is no empty one."""
    ledger = MemoryLedger()
    prepared(ledger, tmp_path)
    memories = opened(ledger, tmp_path, "s2")
    with dying(1_000, ledger, monkeypatch) as death:
        memories.delete("m1", owner=READER, authority=OWNER)
    assert 1_000 - death.left >= 1 + 2 + 1


def test_a_claim_of_another_kind_is_refused_with_its_kind(ledger: Ledger, tmp_path: Path) -> None:
    """What the reader permits in a session is not on record as a memory, and leaves no words."""
    memories = opened(ledger, tmp_path)
    claim = said("You may buy tickets.", kind=ClaimKind.PERMISSION)
    assert memories.remember("m1", claim, authority=OWNER).reason == "permission"
    assert kinds(ledger) == ["memory.refused"]
    assert files_with(tmp_path, claim.statement) == []
