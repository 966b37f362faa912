"""What may a memory say about this request, now?

Chapter: 003, "Keep durable memory under a separate policy" (an explicit request outranks, low confidence is a
reason to ask, so is an unclear intent) and "Keep recovery in the execution record": saved memory is
authorised again under current identity and policy.

Idea: a memory proposes and the request decides. Each memory goes through the same questions in the same
order; the first that stops it is the answer.

    was it corrected?                                            superseded
    may this reader, now, read all that it was made from?        withheld
    would the gate keep it today?                                withheld
    is it for this purpose?                                      not_permitted
    has it expired?                                              expired
    does the request leave this open?                            unrelated
    does the request say it, or somebody who knows better?       outranked
    is it unsure, old, or at odds with another or with a doubt?  ask
    then                                                         used

Always true:
  RE1. Every memory of the reader gets one answer and its reason; the memories of others are not mentioned.
  RE2. What the request says firmly is never changed by any memory.
  RE3. Identity, grants and the gate are asked at every recall; nothing that was permitted before counts.
  RE4. A claim is worth no more than what it rests on: withheld, not permitted or expired with it.
  RE5. A topic has an answer or a question, never both; a stated memory goes before an inferred one.

Not here: recording it (`run.remembering`); who the reader is, which the caller establishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from codeai_lab.decide.admission import admit
from codeai_lab.decide.authority import Authority, PolicyEngine
from codeai_lab.decide.memory import Basis, Memory, foundations

RECALL = "memory.recall"
DAY_US = 86_400_000_000


class Use(StrEnum):
    """What becomes of a memory in one request."""

    USED = "used"
    OUTRANKED = "outranked"
    ASK = "ask"
    EXPIRED = "expired"
    NOT_PERMITTED = "not_permitted"
    WITHHELD = "withheld"
    SUPERSEDED = "superseded"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a request says of a topic; not firm where the words leave a doubt ("perhaps something quiet?")."""

    value: str
    is_firm: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """What memories are asked for.

    Args:
        reader: whose request it is, established now.
        purpose: what the answer is for, as `recommend-films`.
        wishes: topic -> what the request itself says.
        open_topics: what the request leaves open and a memory may fill in.
    """

    request_id: str
    reader: str
    purpose: str
    wishes: Mapping[str, Wish] = field(default_factory=dict)
    open_topics: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.wishes, *self.open_topics)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """When a memory is a reason to ask and not an answer: below this confidence, from this age on."""

    ask_below: float = 0.7
    ask_after_us: int = 365 * DAY_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer for one memory."""

    memory_id: str
    use: Use
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to ask the reader: a topic, and the values that were proposed for it."""

    topic: str
    options: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a request gets: one answer a memory, a value or a question a topic."""

    recalled: tuple[Recalled, ...]
    values: Mapping[str, str]
    questions: tuple[Question, ...] = ()

    def of(self, memory_id: str) -> Recalled | None:
        """Give the answer for one memory; None where it is not the reader's or does not exist."""
        return next((one for one in self.recalled if one.memory_id == memory_id), None)


Stopped = tuple[Use, str]


def recall(
    memories: Iterable[Memory],
    request: MemoryRequest,
    *,
    now_us: int,
    authority: Authority,
    policy: PolicyEngine | None = None,
    caution: Caution | None = None,
) -> Recall:
    """Judge every memory of the reader against a request; nothing is recorded."""
    asked = _Asked(
        own={memory.memory_id: memory for memory in memories if memory.owner == request.reader},
        request=request,
        now_us=now_us,
        authority=authority,
        policy=policy or PolicyEngine(),
    )
    judged = {name: stopped for name, memory in asked.own.items() if (stopped := asked.stops(memory))}
    values: dict[str, str] = {}
    questions = []
    for topic in request.topics:
        about = [one for name, one in asked.own.items() if name not in judged and one.topic == topic]
        spoken, said = _settle(topic, request.wishes.get(topic), about, caution or Caution(), now_us)
        judged |= spoken
        if isinstance(said, Question):
            questions.append(said)
        elif said is not None:
            values[topic] = said
    unrelated = (Use.UNRELATED, "the request is not about this")
    recalled = []
    for name in asked.own:
        use, reason = judged.get(name, unrelated)
        recalled.append(Recalled(memory_id=name, use=use, reason=reason))
    return Recall(recalled=tuple(recalled), values=values, questions=tuple(questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One recall: whose memories, for what, with which authority, when."""

    own: Mapping[str, Memory]
    request: MemoryRequest
    now_us: int
    authority: Authority
    policy: PolicyEngine

    def stops(self, memory: Memory) -> Stopped | None:
        """Say what stops a memory before anybody looks at what it says; None where nothing does."""
        if memory.superseded_by is not None:
            return Use.SUPERSEDED, "it was corrected"
        below = tuple(foundations(memory, self.own))
        if why := self._withheld((memory, *below)):
            return Use.WITHHELD, why
        if any(self.request.purpose not in one.permitted_uses for one in (memory, *below)):
            return Use.NOT_PERMITTED, "it may not be used for this purpose"
        if any(
            one.expires_at_us is not None and self.now_us >= one.expires_at_us for one in (memory, *below)
        ):
            return Use.EXPIRED, "it, or what it rests on, has expired"
        return None

    def _withheld(self, chain: tuple[Memory, ...]) -> str | None:
        if why := self._lacks(RECALL):
            return f"recall: {why}"
        for one in chain:
            if not self.own.keys() >= set(one.derived_from):
                return "what it rests on is gone"
            for source in one.sources:
                if why := self._lacks(source.needs):
                    return f"source: {why}"
            if not (today := admit(one, self.own)).is_kept:
                return f"the gate: {today.reason}"
        if any(one.superseded_by for one in chain[1:]):
            return "what it rests on was corrected"
        return None

    def _lacks(self, capability: str) -> str | None:
        judged = self.policy.judge(
            capability, self.authority, performer=self.request.reader, now_us=self.now_us
        )
        return None if judged.allowed else judged.reason


def _settle(
    topic: str, wish: Wish | None, about: Sequence[Memory], caution: Caution, now_us: int
) -> tuple[dict[str, Stopped], str | Question | None]:
    """Let the request and the memories about one topic come to a value, a question or nothing (RE5)."""
    if wish is not None and wish.is_firm:
        return _all(about, Use.OUTRANKED, "the request says it"), wish.value
    best, doubt = _best_of(about, caution, now_us)
    rest = _all([one for one in about if one not in best], Use.OUTRANKED, "a better founded memory speaks")
    proposed = tuple(sorted({one.value for one in best} | ({wish.value} if wish else set())))
    if doubt is None and len(proposed) > 1:
        doubt = "the request is unsure and memory says otherwise" if wish else "memories disagree"
    if doubt is None and wish is not None and not best:
        doubt = "the request is unsure"
    if doubt is not None:
        return rest | _all(best, Use.ASK, doubt), Question(topic=topic, options=proposed, reason=doubt)
    return rest | _all(best, Use.USED, "the request leaves it open"), proposed[0] if proposed else None


def _best_of(about: Sequence[Memory], caution: Caution, now_us: int) -> tuple[list[Memory], str | None]:
    """Give the memories that speak for a topic, and the doubt that all of them share."""
    sure = [one for one in about if not _doubt(one, caution, now_us)]
    stated = [one for one in sure if one.basis is Basis.STATED]
    best = stated or sure or list(about)
    return best, _doubt(best[0], caution, now_us) if best and not sure else None


def _doubt(memory: Memory, caution: Caution, now_us: int) -> str | None:
    if memory.confidence < caution.ask_below:
        return "its confidence is low"
    return "it is old" if now_us - memory.recorded_at_us >= caution.ask_after_us else None


def _all(memories: Iterable[Memory], use: Use, reason: str) -> dict[str, Stopped]:
    return {memory.memory_id: (use, reason) for memory in memories}
