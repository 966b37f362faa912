"""How does a memory get on record, and how does it go again?

Chapter: 003, "Keep durable memory under a separate policy".

Idea: `decide.memory` and its neighbours decide, `store.erasable` keeps the words, the ledger keeps the rest.
All memories of one owner are one stream, and every append is conditional on that stream being as it was read:
what was judged is what was there, and a memory that cites another cannot slip in while that one is deleted.

    memory.recorded    memory_id, terms, text_digest, supersedes
    memory.refused     memory_id, gate, reason, sources; never the words
    memory.corrected   memory_id, superseded_by; in one append with the new version's memory.recorded
    memory.deleted     memory_id, text_digest, because_of; one for everything that the deletion reaches
    memory.used        request_id, purpose, memory_id, reason         in the stream of the request
    memory.withheld    the same, and which of the other answers it was

Always true:
  RM1. The words are durable before the event that names them, and go after the event that deletes them.
  RM2. Opening finishes what a crash left: no text stays that no living memory names.
  RM3. No event holds a word of a memory, kept or refused.
  RM4. Whoever manages memories has a grant for it now, and reaches their own only; those of others are
       answered as if they did not exist.
  RM5. A deletion reaches every version and everything derived; what is derived again rests on the living.

Not here: what is kept and what is recalled (`decide.admission`, `decide.recall`). One `Remembering` at a time
works on a folder of texts. An expired memory keeps its words until it is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.admission import Admission, admit
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.memory import (
    Candidate,
    Memory,
    MemoryLine,
    Reached,
    project_memories,
    reached_by_deleting,
    shown,
)
from codeai_lab.decide.recall import Caution, MemoryRequest, Recall, Recalled, Use, recall
from codeai_lab.errors import LabError, LedgerDamagedError, RefusedRequestError
from codeai_lab.records import EventDraft
from codeai_lab.run.facts import Bench
from codeai_lab.store.erasable import ErasableTexts
from codeai_lab.store.protocol import Unchanged

MANAGE = "memory.manage"
_NO_SUCH = "There is no such memory; `inspect` lists those there are."
Rederive = Callable[[MemoryLine, Mapping[str, Memory]], tuple[str, Candidate] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What went, and the ids of what was derived again from what was left."""

    reached: Reached
    derived_again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """An owner's memories as they were read: what became of each, and the newest seq."""

    owner: str
    lines: Mapping[str, MemoryLine]
    last_seq: int

    @property
    def left(self) -> tuple[MemoryLine, ...]:
        return tuple(line for line in self.lines.values() if not line.is_deleted)


class Remembering:
    """The memories that one ledger records; opening it finishes erasing (RM2).

    Args:
        bench: ledger, clock, ids and policy, as for any action.
        texts: where the words lie.
    """

    def __init__(self, bench: Bench, texts: ErasableTexts) -> None:
        self._bench = bench
        self._texts = texts
        wanted: set[str] = set()
        for event in bench.ledger.read_all():
            if event.kind == "memory.recorded":
                wanted.add(event.payload["text_digest"])
            elif event.kind == "memory.deleted":
                wanted.discard(event.payload["text_digest"])
        self.erased_at_opening = texts.keep_only(wanted)

    def remember(self, memory_id: str, candidate: Candidate, *, authority: Authority) -> Admission:
        """Judge a claim and record what came of it; a refused one leaves its reason and none of its words.

        Raises: NotPermittedError; RefusedRequestError for an id that is taken (definite, nothing recorded).
        """
        return self._keep(memory_id, candidate, authority, supersedes=None)

    def correct(
        self, memory_id: str, candidate: Candidate, *, as_memory_id: str, authority: Authority
    ) -> Admission:
        """Put a corrected claim in the place of a memory; the old one is kept as history and speaks no more.

        Raises: as `remember`; RefusedRequestError where there is no such memory, or it was corrected before.
        """
        return self._keep(as_memory_id, candidate, authority, supersedes=memory_id)

    def delete(
        self, memory_id: str, *, owner: str, authority: Authority, rederive: Rederive | None = None
    ) -> Deletion:
        """Delete a memory, its versions and what rests on them, and erase their words.

        Args:
            rederive: is shown each derived line that went and the memories that are left; may give another
                id and a claim, which is judged like any other.
        Raises: NotPermittedError, RefusedRequestError (definite); TextNotErasedError (indefinite) when the
            deletion is recorded and a file could not be removed.
        """
        while True:
            self._require(owner, authority)
            seen = self._read(owner)
            if memory_id not in [line.memory_id for line in seen.left]:
                raise RefusedRequestError(_NO_SUCH)
            reached = reached_by_deleting(memory_id, seen.lines)
            drafts = [
                self._draft(
                    _stream(owner), "memory.deleted",
                    memory_id=name, text_digest=seen.lines[name].text_digest, because_of=memory_id,
                )
                for name in reached.all
            ]  # fmt: skip
            if self._append(seen, *drafts):
                break
        self._texts.erase(*(seen.lines[name].text_digest for name in reached.all))
        return Deletion(reached=reached, derived_again=self._derive_again(seen, reached, authority, rederive))

    def recall(
        self, request: MemoryRequest, *, authority: Authority, caution: Caution | None = None
    ) -> Recall:
        """Say what the reader's memories mean for a request, and record what became of each."""
        while True:
            seen = self._read(request.reader)
            said = recall(
                self._living(seen).values(),
                request,
                now_us=self._bench.clock.now_us(),
                authority=authority,
                policy=self._bench.policy,
                caution=caution,
            )
            drafts = [
                self._answered(request, one)
                for one in said.recalled
                if one.use not in (Use.UNRELATED, Use.SUPERSEDED)
            ]
            if not drafts or self._append(seen, *drafts):
                return said

    def inspect(self, owner: str, *, authority: Authority) -> list[dict[str, Any]]:
        """Show an owner everything that is kept of their memories, history and deleted ones included.

        Raises: NotPermittedError (definite).
        """
        self._require(owner, authority)
        seen = self._read(owner)
        living = self._living(seen)
        return [shown(line, living.get(name)) for name, line in seen.lines.items()]

    def _keep(
        self, memory_id: str, candidate: Candidate, authority: Authority, *, supersedes: str | None
    ) -> Admission:
        while True:
            self._require(candidate.owner, authority)
            seen = self._read(candidate.owner)
            if memory_id in seen.lines or not memory_id:
                raise RefusedRequestError("This memory id is taken or empty; give every memory its own.")
            if supersedes is not None:
                _require_current(seen, supersedes)
            admission = admit(candidate, self._living(seen))
            if admission.is_kept:
                recorded = self._record(seen, memory_id, candidate, supersedes)
            else:
                recorded = self._append(seen, self._refused(memory_id, candidate, admission))
            if recorded:
                return admission

    def _record(self, seen: _Seen, memory_id: str, candidate: Candidate, supersedes: str | None) -> bool:
        digest = self._texts.put(canonical_bytes(candidate.words()).decode())
        drafts = [
            self._draft(
                _stream(seen.owner), "memory.recorded",
                memory_id=memory_id, terms=candidate.terms(), text_digest=digest, supersedes=supersedes,
            )
        ]  # fmt: skip
        if supersedes is not None:
            drafts.append(
                self._draft(
                    _stream(seen.owner), "memory.corrected", memory_id=supersedes, superseded_by=memory_id
                )
            )
        try:
            recorded = self._append(seen, *drafts)
        except LabError as error:
            if error.definite:  # else the event may be durable, and opening again settles it (RM2)
                self._texts.erase(digest)
            raise
        if not recorded:
            self._texts.erase(digest)
        return recorded

    def _refused(self, memory_id: str, candidate: Candidate, admission: Admission) -> EventDraft:
        return self._draft(
            _stream(candidate.owner), "memory.refused",
            memory_id=memory_id, gate=admission.gate, reason=admission.reason,
            sources=candidate.terms()["sources"],
        )  # fmt: skip

    def _derive_again(
        self, before: _Seen, reached: Reached, authority: Authority, rederive: Rederive | None
    ) -> tuple[str, ...]:
        made = []
        for name in reached.derived if rederive else ():
            given = rederive(before.lines[name], self._living(self._read(before.owner))) if rederive else None
            if given is None:
                continue
            memory_id, candidate = given
            if candidate.owner != before.owner:
                raise RefusedRequestError("What is derived again belongs to the owner of what was deleted.")
            if self.remember(memory_id, candidate, authority=authority).is_kept:
                made.append(memory_id)
        return tuple(made)

    def _read(self, owner: str) -> _Seen:
        events = self._bench.ledger.read(_stream(owner))
        return _Seen(owner=owner, lines=project_memories(events), last_seq=events[-1].seq if events else 0)

    def _living(self, seen: _Seen) -> dict[str, Memory]:
        """Join terms and words; a memory whose words are not those that were recorded says nothing."""
        living = {}
        for line in seen.left:
            with suppress(LedgerDamagedError):
                if (text := self._texts.read(line.text_digest)) is not None:
                    living[line.memory_id] = line.with_words(json.loads(text))
        return living

    def _append(self, seen: _Seen, *drafts: EventDraft) -> bool:
        unchanged = Unchanged(stream=_stream(seen.owner), last_seq=seen.last_seq)
        return bool(self._bench.ledger.append(*drafts, unless_changed=[unchanged]))

    def _require(self, owner: str, authority: Authority) -> None:
        now_us = self._bench.clock.now_us()
        self._bench.policy.require(MANAGE, authority, performer=owner, now_us=now_us)

    def _answered(self, request: MemoryRequest, one: Recalled) -> EventDraft:
        said = {
            "request_id": request.request_id,
            "purpose": request.purpose,
            "memory_id": one.memory_id,
            "reason": one.reason,
        }
        stream = f"memory-request/{request.request_id}"
        if one.use is Use.USED:
            return self._draft(stream, "memory.used", **said)
        return self._draft(stream, "memory.withheld", **said, answer=str(one.use))

    def _draft(self, stream: str, kind: str, **payload: Any) -> EventDraft:
        return self._bench.draft(stream, kind, payload)


def _stream(owner: str) -> str:
    return f"memories/{owner}"


def _require_current(seen: _Seen, memory_id: str) -> None:
    line = seen.lines.get(memory_id)
    if line is None or line.is_deleted:
        raise RefusedRequestError(_NO_SUCH)
    if line.superseded_by is not None:
        raise RefusedRequestError(
            "This memory was corrected before; correct the version that took its place."
        )
