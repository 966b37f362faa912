"""May this be remembered?

Chapter: 003, "Keep durable memory under a separate policy": permissions and approvals never cross as a
preference; a sentence of a retrieved summary that becomes one is memory poisoning. 000, 15.16.9: "a summary
becomes a grant".

Idea: four tests, the strongest first. Where does it come from, what kind of thing is it, on which terms, and
only then: how is it worded?

    made from                       preference         fact                         anything else
    the owner's own words           kept               kept                         refused
    what was observed or concluded  kept, as inferred  kept, as inferred            refused
    retrieved text, in any part     refused            kept, about that thing only  refused

The wording test is the weakest and comes last. It reads English phrases. It cannot catch a paraphrase ("what
pleases this reader is simply booked"), another language, a letter that only looks like another one, an
instruction spread over two claims, or a lie told calmly; nor can it tell a permission from a sentence that
quotes one, and refuses both, since a refusal costs one question and a poisoned memory costs every later
session. What holds is provenance: text that was retrieved can become a fact about the very thing that was
retrieved, and in no wording a preference, so there is nothing for it to steer. Provenance in turn is only as
good as whoever writes it down: it must come from the harness that fetched the text, never from the text.

Always true:
  AD1. Every claim gets all findings, in the order of the tests; it is kept only where there is none.
  AD2. Permission, approval, tool grant and instruction are refused by kind, whoever said them.
  AD3. Nothing retrieved becomes a preference or a fact about something else, also when a model summarised it
       first or another memory lies between.
  AD4. Only what the owner said is stated; an inference has an expiry.
  AD5. A finding names a rule and holds nothing of the text.

Not here: what a memory that was kept may say later (`decide.recall`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from codeai_lab.decide.memory import Basis, Candidate, ClaimKind, Memory, SourceKind, provenance


class Gate(StrEnum):
    """The tests, the strongest first."""

    PROVENANCE = "provenance"
    KIND = "kind"
    TERMS = "terms"
    WORDING = "wording"


class Refusal(StrEnum):
    """Why a claim is not remembered."""

    NO_SOURCE = "no-source"
    RETRIEVED_TEXT = "retrieved-text-is-evidence"
    FACT_ABOUT_ELSE = "fact-about-something-else"
    NOT_SAID_BY_OWNER = "not-said-by-its-owner"
    UNKNOWN_FOUNDATION = "rests-on-an-unknown-memory"
    PERMISSION = "permission"
    APPROVAL = "approval"
    TOOL_GRANT = "tool-grant"
    INSTRUCTION = "instruction"
    NO_USE = "no-permitted-use"
    NO_EXPIRY = "inference-without-expiry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One test that a claim did not pass, and why."""

    gate: Gate
    refusal: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The judgement: kept, or refused for the first of the findings."""

    findings: tuple[Finding, ...] = ()

    @property
    def is_kept(self) -> bool:
        return not self.findings

    @property
    def reason(self) -> str:
        """Name what decided."""
        return "kept" if self.is_kept else str(self.findings[0].refusal)

    @property
    def gate(self) -> str | None:
        """Name the test that decided; None where all were passed."""
        return None if self.is_kept else str(self.findings[0].gate)

    def at(self, gate: Gate) -> str | None:
        """Say what this test would have found had it been the only one; None where nothing."""
        return next((str(one.refusal) for one in self.findings if one.gate is gate), None)


_NOTHING_KNOWN: Mapping[str, Memory] = MappingProxyType({})


def admit(candidate: Candidate, known: Mapping[str, Memory] = _NOTHING_KNOWN) -> Admission:
    """Judge a claim.

    Args:
        known: the memories that it may rest on, by id; their provenance is the claim's too.
    """
    findings = (
        *_by_provenance(candidate, known),
        *_by_kind(candidate),
        *_by_terms(candidate),
        *_by_wording(candidate, known),
    )
    return Admission(findings=findings)


def wordings(text: str) -> tuple[Refusal, ...]:
    """Name what a text reads like, by its phrases alone; an empty answer establishes nothing."""
    read = _readable(text)
    return tuple(refusal for refusal, pattern in _PHRASES.items() if pattern.search(read))


def _by_provenance(candidate: Candidate, known: Mapping[str, Memory]) -> Iterator[Finding]:
    sources = provenance(candidate, known)
    retrieved = [source for source in sources if source.kind is SourceKind.RETRIEVED]
    if not sources:
        yield Finding(gate=Gate.PROVENANCE, refusal=Refusal.NO_SOURCE)
    if retrieved and candidate.kind is not ClaimKind.FACT:
        yield Finding(gate=Gate.PROVENANCE, refusal=Refusal.RETRIEVED_TEXT)
    # A fact may be kept about what was read and about nothing else, the reader least of all.
    things = {name for source in retrieved for name in source.ids}
    if retrieved and candidate.kind is ClaimKind.FACT and candidate.topic.rpartition("/")[0] not in things:
        yield Finding(gate=Gate.PROVENANCE, refusal=Refusal.FACT_ABOUT_ELSE)
    own_words = all(one.kind is SourceKind.READER and one.who == candidate.owner for one in sources)
    if candidate.basis is Basis.STATED and (not own_words or candidate.derived_from):
        yield Finding(gate=Gate.PROVENANCE, refusal=Refusal.NOT_SAID_BY_OWNER)
    if not known.keys() >= set(candidate.derived_from):
        yield Finding(gate=Gate.PROVENANCE, refusal=Refusal.UNKNOWN_FOUNDATION)


def _by_kind(candidate: Candidate) -> Iterator[Finding]:
    if candidate.kind not in (ClaimKind.PREFERENCE, ClaimKind.FACT):
        yield Finding(gate=Gate.KIND, refusal=Refusal(str(candidate.kind)))


def _by_terms(candidate: Candidate) -> Iterator[Finding]:
    if not candidate.permitted_uses:
        yield Finding(gate=Gate.TERMS, refusal=Refusal.NO_USE)
    if candidate.basis is Basis.INFERRED and candidate.expires_at_us is None:
        yield Finding(gate=Gate.TERMS, refusal=Refusal.NO_EXPIRY)


def _by_wording(candidate: Candidate, known: Mapping[str, Memory]) -> Iterator[Finding]:
    # What the owner asks for in the imperative is a preference: "always show me the shorter one".
    sources = provenance(candidate, known)
    spared = candidate.basis is Basis.STATED and all(one.kind is SourceKind.READER for one in sources)
    for refusal in wordings("\n".join(candidate.words().values())):
        if not (spared and refusal is Refusal.INSTRUCTION):
            yield Finding(gate=Gate.WORDING, refusal=refusal)


def _readable(text: str) -> str:
    """Undo what hides a phrase from a pattern and not from a reader: width, case, invisible signs, spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    seen = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return " ".join(seen.split())


_MACHINE = r"(you|it|(the |this |your )?(assistant|agent|system|model|software))"
_PHRASES = {
    Refusal.PERMISSION: re.compile(
        rf"\b{_MACHINE} (may|can|could|is free to|are free to)\b"
        r"|\b(allowed|permitted|authori[sz]ed|entitled) to\b|\bpermission\b"
        r"|\bwithout (further )?(asking|confirm\w*|approval|consent)\b"
    ),
    Refusal.APPROVAL: re.compile(
        r"\b(has|have|had|is|are|was|were|been|already|hereby) approved\b|\bpre-?approved\b"
        r"|\bapproves? of (any|all|every|the) \w*(purchase|payment|order|action)|\bapproval\b"
        r"|\b(has|have|had) (agreed|consented)\b|\bsigned off\b"
    ),
    Refusal.TOOL_GRANT: re.compile(
        r"\b(grant(s|ed)?|access|unlock(s|ed)?|enable(s|d)?)\b.{0,40}"
        r"\b(tools?|api|functions?|account|wallet|watchlist|capabilit(y|ies))\b"
    ),
    Refusal.INSTRUCTION: re.compile(
        r"\b(ignore|disregard|forget|override)\b.{0,30}\b(previous|prior|above|earlier|instructions?|rules?)\b"
        r"|\b(always|never) (recommend|suggest|choose|pick|show|use|answer|say|reply|call|rank|prefer|ask)\b"
        rf"|\b{_MACHINE} (must|should|shall|need to|has to|have to)\b|\bfrom now on\b"
        r"|\b(system|assistant|developer) ?(prompt|message|:)|\bdo not (tell|mention|reveal|ask)\b"
    ),
}
