"""What is a memory, and what hangs on it?

Chapter: 003, "Keep durable memory under a separate policy"; 000, 15.16.9: a memory is a transformation that
bears its provenance.

Idea: a memory is a claim with terms. The words (topic, value, statement) are a person's and can be erased;
the terms (stated or inferred, sources, expiry, confidence, permitted uses) say what the claim is worth and
stay in the ledger. A claim made from other memories names them, so that whatever becomes of them reaches it.

    the reader said it -> m1 --corrected--> m2
                          |                 |
                          +-> summary s1    +-> inference i1          delete m2: m1, m2, s1 and i1 go

Always true:
  ME1. A memory is never without an owner, a topic and a statement; an empty list of uses permits none.
  ME2. The provenance of a claim is that of everything it was made from, however many summaries lie between.
  ME3. All corrections of a memory are one memory to who deletes it; what cites any of them goes too.
  ME4. The terms hold none of the words.

Not here: what may be remembered (`decide.admission`), what it may say later (`decide.recall`), keeping and
erasing the words (`store.erasable`), recording (`run.remembering`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from codeai_lab.canonical import plain
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import Event


class SourceKind(StrEnum):
    """Whose words, or whose doing, a claim was made from."""

    READER = "reader"
    OBSERVED = "observed"
    MODEL = "model"
    RETRIEVED = "retrieved"


class Basis(StrEnum):
    """Did the owner say it, or was it concluded?"""

    STATED = "stated"
    INFERRED = "inferred"


class ClaimKind(StrEnum):
    """What kind of thing is claimed; of these only the first two can ever be remembered."""

    PREFERENCE = "preference"
    FACT = "fact"
    PERMISSION = "permission"
    APPROVAL = "approval"
    TOOL_GRANT = "tool-grant"
    INSTRUCTION = "instruction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a claim comes from.

    Args:
        who: who spoke or wrote, as an id.
        ids: what exactly, as `session-3/turn-2` or `film:ex-machina`; opaque names, never the words.
        needs: the capability that reading this source takes now; no grant of it, no use of the claim.
    """

    kind: SourceKind
    who: str
    ids: tuple[str, ...]
    needs: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(self.ids))
        if not (self.who and self.ids and all(self.ids) and self.needs):
            raise RefusedRequestError("A source needs who it is, at least one id and what reading it takes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A claim that somebody would like to have remembered.

    Args:
        topic, value: what it is about and what it says there, as `film.style` and `action`: what a request
            and two memories are compared by.
        statement: the same in words.
        sources: everything that it was made from; `derived_from` the memories among that, by id.
        confidence: from 0 to 1.
        permitted_uses: the purposes that it may serve.
        expires_at_us: from this instant on it says nothing; None where it was stated without end.
    Raises: RefusedRequestError (definite) for an empty name and for a confidence outside its range.
    """

    owner: str
    kind: ClaimKind
    topic: str
    value: str
    statement: str
    basis: Basis
    sources: tuple[Source, ...]
    confidence: float
    permitted_uses: tuple[str, ...]
    expires_at_us: int | None = None
    derived_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("owner", "topic", "value", "statement"):
            text = getattr(self, name)
            if type(text) is not str or not text.strip():
                raise RefusedRequestError(f"The {name} of a memory must be text and not empty.")
            plain(text, name)
        for name in ("sources", "permitted_uses", "derived_from"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if type(self.confidence) not in (int, float) or not 0 <= self.confidence <= 1:
            raise RefusedRequestError("The confidence of a memory is a number from 0 to 1.")

    def terms(self) -> dict[str, Any]:
        """Give everything but the words, as the ledger keeps it (ME4)."""
        said = {name: plain(getattr(self, name), name) for name in _PLAIN_TERMS}
        sources = [
            {"kind": str(source.kind), "who": source.who, "ids": list(source.ids), "needs": source.needs}
            for source in self.sources
        ]
        return {**said, "kind": str(self.kind), "basis": str(self.basis), "sources": sources}

    def words(self) -> dict[str, str]:
        """Give what a person may ask to have erased."""
        return {name: getattr(self, name) for name in _WORDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Candidate):
    """A claim that is remembered; `superseded_by` names the correction that took its place."""

    memory_id: str
    recorded_at_us: int
    superseded_by: str | None = None


_WORDS = ("topic", "value", "statement")
_PLAIN_TERMS = ("owner", "confidence", "permitted_uses", "expires_at_us", "derived_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """What the ledger says of one memory: its terms and what became of it, none of its words."""

    memory_id: str
    terms: Mapping[str, Any]
    text_digest: str
    recorded_at_us: int
    supersedes: str | None = None
    superseded_by: str | None = None
    is_deleted: bool = False

    @property
    def rests_on(self) -> tuple[str, ...]:
        return tuple(self.terms["derived_from"])

    def with_words(self, words: Mapping[str, str]) -> Memory:
        """Give the memory that has these terms and these words."""
        said = {name: self.terms[name] for name in _PLAIN_TERMS}
        sources = tuple(
            Source(kind=SourceKind(one["kind"]), who=one["who"], ids=tuple(one["ids"]), needs=one["needs"])
            for one in self.terms["sources"]
        )
        return Memory(
            **{**said, **{name: words[name] for name in _WORDS}},
            kind=ClaimKind(self.terms["kind"]),
            basis=Basis(self.terms["basis"]),
            sources=sources,
            memory_id=self.memory_id,
            recorded_at_us=self.recorded_at_us,
            superseded_by=self.superseded_by,
        )


def project_memories(events: Iterable[Event]) -> dict[str, MemoryLine]:
    """Fold one owner's events, in order of seq, into what became of each memory, by id."""
    lines: dict[str, MemoryLine] = {}
    for event in events:
        said = event.payload
        if event.kind == "memory.recorded":
            lines[said["memory_id"]] = MemoryLine(
                memory_id=said["memory_id"],
                terms=said["terms"],
                text_digest=said["text_digest"],
                recorded_at_us=event.recorded_at_us,
                supersedes=said["supersedes"],
            )
        elif event.kind == "memory.corrected":
            old = lines[said["memory_id"]]
            lines[old.memory_id] = replace(old, superseded_by=said["superseded_by"])
        elif event.kind == "memory.deleted":
            lines[said["memory_id"]] = replace(lines[said["memory_id"]], is_deleted=True)
    return lines


def shown(line: MemoryLine, memory: Memory | None) -> dict[str, Any]:
    """Give one memory as its owner sees it; `memory` is None where its words are gone."""
    state = "current" if line.superseded_by is None else f"corrected by {line.superseded_by}"
    if memory is None:
        state = "deleted" if line.is_deleted else "words lost"
    terms = line.terms
    return {
        "memory": line.memory_id,
        "state": state,
        "statement": None if memory is None else memory.statement,
        "basis": terms["basis"],
        "sources": [name for source in terms["sources"] for name in source["ids"]],
        "rests_on": list(line.rests_on),
        "recorded_at_us": line.recorded_at_us,
        "expires_at_us": terms["expires_at_us"],
        "confidence": terms["confidence"],
        "permitted_uses": list(terms["permitted_uses"]),
        "text_digest": line.text_digest,
    }


def provenance(claim: Candidate, known: Mapping[str, Memory]) -> tuple[Source, ...]:
    """Give every source that a claim goes back to, its own first (ME2)."""
    found = [*claim.sources]
    for memory in foundations(claim, known):
        found += memory.sources
    return tuple(dict.fromkeys(found))


def foundations(claim: Candidate, known: Mapping[str, Memory]) -> Iterator[Memory]:
    """Give the memories that a claim rests on, at whatever distance; those not known are passed over."""
    seen: set[str] = set()
    waiting = list(claim.derived_from)
    while waiting:
        name = waiting.pop(0)
        if name not in seen and name in known:
            seen.add(name)
            waiting += known[name].derived_from
            yield known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What a deletion takes with it: the memory in all its versions, and whatever rests on one of them."""

    versions: tuple[str, ...]
    derived: tuple[str, ...] = field(default=())

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.versions, *self.derived)


def reached_by_deleting(memory_id: str, lines: Mapping[str, MemoryLine]) -> Reached:
    """Follow the links from a memory that is to be deleted (ME3); what is deleted already is left out."""
    versions = _closed({memory_id}, lines, _versions_of)
    every = _closed(versions, lines, _versions_and_what_cites)
    living = [name for name, line in lines.items() if not line.is_deleted]
    return Reached(
        versions=tuple(name for name in living if name in versions),
        derived=tuple(name for name in living if name in every - versions),
    )


_Step = Callable[[MemoryLine, set[str]], set[str]]


def _closed(start: set[str], lines: Mapping[str, MemoryLine], step: _Step) -> set[str]:
    found = set(start)
    while further := {name for line in lines.values() for name in step(line, found)} - found:
        found |= further
    return found


def _versions_of(line: MemoryLine, found: set[str]) -> set[str]:
    version = {line.memory_id, *filter(None, (line.supersedes, line.superseded_by))}
    return version if version & found else set()


def _versions_and_what_cites(line: MemoryLine, found: set[str]) -> set[str]:
    cites = {line.memory_id} if found.intersection(line.rests_on) else set()
    return cites | _versions_of(line, found)
