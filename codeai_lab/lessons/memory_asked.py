"""What is remembered already, a request comes: what may each memory say?

Chapter: 003, "Keep durable memory under a separate policy": the older preference for action films and the
request that asks for ambiguity; "Keep recovery in the execution record".

Idea: one memory is in question, others may be there beside it; a request says something, hints at it, or
leaves it open; a grant is there or not. Each situation has one right answer, written here by hand.

Always true:
  AS1. The expected answer, reason, value and options stand beside the situation; nothing computes them.

Not here: asking `decide.recall` (`lessons.durable_memory`), what may be remembered
(`lessons.memory_offered`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.authority import Authority, Grant
from codeai_lab.decide.memory import Candidate, ClaimKind, Memory
from codeai_lab.decide.recall import RECALL, MemoryRequest, Wish
from codeai_lab.lessons.memory_offered import (
    CORPUS,
    FRIEND,
    INVITE,
    NOW_US,
    READER,
    RECOMMEND,
    TALKS,
    WATCHES,
    YEAR,
    concluded,
    remembered,
    said,
)

STYLE = "film.style"
EVERYTHING = Authority.of(RECALL, TALKS, WATCHES, CORPUS)
ACTION = said("I prefer action films.", value="action")
GUESS = concluded("Action films were watched to the end.", value="action")
SLOW = said("I prefer slow films.", value="slow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, the memories that are there, the first of them in question, and what must be answered.

    `value` is what the topic gets in the end, `options` what the reader is asked to choose from instead.
    """

    case: str
    situation: str
    memories: tuple[Memory, ...]
    request: MemoryRequest
    answer: str
    reason: str
    value: str | None = None
    options: tuple[str, ...] = ()
    authority: Authority = EVERYTHING


def asks(wish: Wish | None = None, *, purpose: str = RECOMMEND, topic: str = STYLE) -> MemoryRequest:
    """Give the reader's request: with a wish, or open."""
    return MemoryRequest(
        request_id="request-42",
        reader=READER,
        purpose=purpose,
        wishes={} if wish is None else {topic: wish},
        open_topics=() if wish is not None else (topic,),
    )


def has(candidate: Candidate = ACTION, memory_id: str = "m1", **other: Any) -> Memory:
    return remembered(memory_id, candidate, **other)


def _with(*grants: Grant) -> Authority:
    return Authority(grants=grants)


_OPEN = "the request leaves it open"
_SAYS = "the request says it"
_BETTER = "a better founded memory speaks"
_UNSURE = "the request is unsure and memory says otherwise"
_ENDS = concluded("Action films were watched to the end.", value="action", expires_at_us=NOW_US)
_JUST = concluded("Action films were watched to the end.", value="action", expires_at_us=NOW_US + 1)
_SHAKY = concluded("One action film was watched.", value="action", confidence=0.4)
_PRIVATE = said("I prefer action films.", value="action", permitted_uses=(INVITE,))
_FROM_M1 = concluded("Likes it loud.", value="loud", derived_from=("m1",))
_FROM_LOG = concluded("Likes it loud.", value="loud", derived_from=("m-log",))
_OLD_PERMISSION = said("Book what you like.", value="book", kind=ClaimKind.PERMISSION)

ASKED = (
    Asked(case="open-request", situation="the request leaves the style open", memories=(has(),),
          request=asks(), answer="used", reason=_OPEN, value="action"),
    Asked(case="explicit-request", situation="an older memory says action, the request asks for ambiguity",
          memories=(has(),), request=asks(Wish(value="ambiguity")), answer="outranked", reason=_SAYS,
          value="ambiguity"),
    Asked(case="explicit-and-the-same", situation="request and memory agree", memories=(has(),),
          request=asks(Wish(value="action")), answer="outranked", reason=_SAYS, value="action"),
    Asked(case="explicit-and-shaky", situation="the request says it, and the memory is of low confidence",
          memories=(has(_SHAKY),), request=asks(Wish(value="slow")), answer="outranked", reason=_SAYS,
          value="slow"),
    Asked(case="hint-against-memory", situation="the request hints at something else than the memory",
          memories=(has(),), request=asks(Wish(value="ambiguity", is_firm=False)), answer="ask",
          reason=_UNSURE, options=("action", "ambiguity")),
    Asked(case="hint-and-memory-agree", situation="the request hints at what the memory says",
          memories=(has(),), request=asks(Wish(value="action", is_firm=False)), answer="used",
          reason=_OPEN, value="action"),
    Asked(case="low-confidence", situation="only an unsure conclusion is there", memories=(has(_SHAKY),),
          request=asks(), answer="ask", reason="its confidence is low", options=("action",)),
    Asked(case="shaky-beside-sure", situation="an unsure conclusion beside a sure statement",
          memories=(has(_SHAKY), has(SLOW, "m2")), request=asks(), answer="outranked", reason=_BETTER,
          value="slow"),
    Asked(case="stated-before-inferred", situation="a conclusion contradicts what the reader said",
          memories=(has(GUESS), has(SLOW, "m2")), request=asks(), answer="outranked", reason=_BETTER,
          value="slow"),
    Asked(case="statements-disagree", situation="the reader said two things and corrected neither",
          memories=(has(), has(SLOW, "m2", days_ago=200)), request=asks(), answer="ask",
          reason="memories disagree", options=("action", "slow")),
    Asked(case="conclusions-agree", situation="two conclusions say the same",
          memories=(has(GUESS), has(GUESS, "m2")), request=asks(), answer="used", reason=_OPEN,
          value="action"),
    Asked(case="said-long-ago", situation="stated without an end, a year ago", memories=(has(days_ago=365),),
          request=asks(), answer="ask", reason="it is old", options=("action",)),
    Asked(case="expired", situation="its expiry is this very instant", memories=(has(_ENDS),),
          request=asks(), answer="expired", reason="it, or what it rests on, has expired"),
    Asked(case="not-yet-expired", situation="its expiry is the next microsecond", memories=(has(_JUST),),
          request=asks(), answer="used", reason=_OPEN, value="action"),
    Asked(case="another-purpose", situation="kept for invitations, asked for a recommendation",
          memories=(has(_PRIVATE),), request=asks(), answer="not_permitted",
          reason="it may not be used for this purpose"),
    Asked(case="another-topic", situation="the request is about length", memories=(has(),),
          request=asks(topic="film.length"), answer="unrelated", reason="the request is not about this"),
    Asked(case="source-revoked", situation="the conversations may not be read any more", memories=(has(),),
          request=asks(), authority=Authority.of(RECALL), answer="withheld",
          reason="source: no grant names this capability"),
    Asked(case="grant-expired", situation="the grant for the conversations ended this instant",
          memories=(has(),), request=asks(), answer="withheld", reason="source: the grant has expired",
          authority=_with(Grant(capability=RECALL), Grant(capability=TALKS, expires_at_us=NOW_US))),
    Asked(case="grant-of-another", situation="the grant to recall is a friend's", memories=(has(),),
          request=asks(), answer="withheld", reason="recall: the grant is for another performer",
          authority=_with(Grant(capability=RECALL, performer=FRIEND), Grant(capability=TALKS))),
    Asked(case="memory-of-another", situation="the memory is a friend's",
          memories=(has(said("I prefer action films.", owner=FRIEND)),), request=asks(),
          answer="not_mentioned", reason="it is not the reader's"),
    Asked(case="corrected", situation="the memory was corrected",
          memories=(has(superseded_by="m2"), has(SLOW, "m2")), request=asks(), answer="superseded",
          reason="it was corrected", value="slow"),
    Asked(case="rests-on-a-revoked-source", situation="a conclusion from a viewing log that is closed now",
          memories=(has(_FROM_LOG, "m2"), has(GUESS, "m-log")), request=asks(),
          authority=Authority.of(RECALL, TALKS), answer="withheld",
          reason="source: no grant names this capability"),
    Asked(case="rests-on-an-expired-one", situation="a conclusion from a memory that has expired",
          memories=(has(_FROM_M1, "m2"), has(_ENDS)), request=asks(), answer="expired",
          reason="it, or what it rests on, has expired"),
    Asked(case="rests-on-a-corrected-one", situation="a conclusion from a memory that was corrected",
          memories=(has(_FROM_M1, "m2"), has(superseded_by="m3"), has(SLOW, "m3")), request=asks(),
          answer="withheld", reason="what it rests on was corrected", value="slow"),
    Asked(case="rests-on-a-deleted-one", situation="a conclusion whose memory is gone",
          memories=(has(_FROM_M1, "m2"),), request=asks(), answer="withheld",
          reason="what it rests on is gone"),
    Asked(case="rests-on-another-purpose", situation="a conclusion from what was kept for invitations",
          memories=(has(_FROM_M1, "m2"), has(_PRIVATE)), request=asks(), answer="not_permitted",
          reason="it may not be used for this purpose"),
    Asked(case="fact-is-no-preference", situation="a fact about a film, and the style is left open",
          memories=(has(YEAR),), request=asks(), answer="unrelated",
          reason="the request is not about this"),
    Asked(case="fact-about-the-film", situation="the request is about that film's year",
          memories=(has(YEAR),), request=asks(topic=YEAR.topic), answer="used", reason=_OPEN, value="2014"),
    Asked(case="permission-from-before", situation="an earlier program had kept a permission",
          memories=(has(_OLD_PERMISSION),), request=asks(), answer="withheld", reason="the gate: permission"),
)  # fmt: skip
