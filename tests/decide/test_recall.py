"""The laws of decide.recall: a memory proposes, the request decides, and everything is asked anew."""

from __future__ import annotations

import itertools

import pytest

from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant
from codeai_lab.decide.memory import Memory
from codeai_lab.decide.recall import DAY_US, RECALL, Caution, MemoryRequest, Recall, Use, Wish, recall
from codeai_lab.lessons.memory_asked import ACTION, EVERYTHING, GUESS, SLOW, STYLE, asks, has
from codeai_lab.lessons.memory_offered import CORPUS, FRIEND, NOW_US, TALKS, concluded, said

POOL = (
    has(ACTION, "stated"),
    has(SLOW, "stated-too"),
    has(GUESS, "inferred"),
    has(concluded("One film.", value="slow", confidence=0.3), "shaky"),
    has(said("I like it loud.", value="loud"), "old", days_ago=400),
    has(concluded("Ended.", value="end", expires_at_us=NOW_US), "expired"),
    has(concluded("Rests.", value="rest", derived_from=("inferred",)), "rests"),
    has(superseded_by="stated", memory_id="corrected"),
)
WISHES = (None, Wish(value="ambiguity"), Wish(value="slow", is_firm=False))


def told(*memories: Memory, request: MemoryRequest | None = None, **other: object) -> Recall:
    asked: dict[str, object] = {"now_us": NOW_US, "authority": EVERYTHING, **other}
    return recall(memories, request or asks(), **asked)  # type: ignore[arg-type]


def test_every_mixture_of_memories_has_one_answer_each_and_a_value_or_a_question() -> None:
    """RE1, RE2, RE5: over all mixtures of eight memories and three requests."""
    seen: set[Use] = set()
    for size in range(len(POOL) + 1):
        for memories in itertools.combinations(POOL, size):
            for wish in WISHES:
                said_of = told(*memories, request=asks(wish))
                uses = [one.use for one in said_of.recalled]
                seen |= set(uses)
                assert [one.memory_id for one in said_of.recalled] == [one.memory_id for one in memories]
                assert all(one.reason for one in said_of.recalled)
                assert not said_of.values.keys() & {question.topic for question in said_of.questions}
                assert (Use.ASK in uses) <= bool(said_of.questions)
                assert not (Use.USED in uses and said_of.questions)
                if wish and wish.is_firm:
                    assert said_of.values == {STYLE: "ambiguity"}
                    assert not {Use.USED, Use.ASK} & set(uses)
                for one in said_of.recalled:
                    value = next(memory.value for memory in memories if memory.memory_id == one.memory_id)
                    assert one.use is not Use.USED or said_of.values[STYLE] == value
    assert seen == {Use.USED, Use.OUTRANKED, Use.ASK, Use.EXPIRED, Use.WITHHELD, Use.SUPERSEDED}


def test_the_order_of_memories_decides_nothing() -> None:
    """The answers are the same in every order of four memories that speak about one topic."""
    answers = {
        (
            tuple(sorted((one.memory_id, one.use, one.reason) for one in given.recalled)),
            tuple(given.values.items()),
            given.questions,
        )
        for order in itertools.permutations(POOL[1:5])
        for given in [told(*order)]
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("authority", "why"),
    [
        (NO_AUTHORITY, "recall: no grant names this capability"),
        (Authority.of(TALKS), "recall: no grant names this capability"),
        (Authority.of(RECALL), "source: no grant names this capability"),
        (Authority.of(RECALL, CORPUS), "source: no grant names this capability"),
        (
            Authority(grants=(Grant(capability=RECALL), Grant(capability=TALKS, performer=FRIEND))),
            "source: the grant is for another performer",
        ),
        (
            Authority(grants=(Grant(capability=RECALL, expires_at_us=NOW_US), Grant(capability=TALKS))),
            "recall: the grant has expired",
        ),
    ],
)
def test_authority_is_asked_for_now(authority: Authority, why: str) -> None:
    """RE3: without a grant for recalling, and one for each source, a memory is withheld."""
    (one,) = told(has(), authority=authority).recalled
    assert (one.use, one.reason) == (Use.WITHHELD, why)
    (one,) = told(has(), authority=Authority.of(RECALL, TALKS)).recalled
    assert one.use is Use.USED


def test_withheld_comes_before_everything_that_tells_of_the_memory() -> None:
    """A memory whose source may not be read says neither that it expired nor that it was for another use."""
    ended = said("x", expires_at_us=NOW_US - 1, permitted_uses=("other",))
    (one,) = told(has(ended), authority=Authority.of(RECALL)).recalled
    assert one.use is Use.WITHHELD


def test_memories_of_others_are_not_mentioned() -> None:
    """RE1: not with an answer, not with a value, not as what something rests on."""
    theirs = has(said("I prefer action films.", owner=FRIEND), "m1")
    mine = has(concluded("So do I.", derived_from=("m1",)), "m2")
    given = told(theirs, mine)
    assert [one.memory_id for one in given.recalled] == ["m2"]
    assert given.recalled[0].reason == "what it rests on is gone"
    assert given.of("m1") is None
    assert given.values == {}


@pytest.mark.parametrize(("confidence", "use"), [(0.7, Use.USED), (0.69, Use.ASK)])
def test_low_confidence_is_a_reason_to_ask(confidence: float, use: Use) -> None:
    """Below the bound the reader is asked; the bound itself is enough."""
    (one,) = told(has(concluded("x", confidence=confidence))).recalled
    assert one.use is use


@pytest.mark.parametrize(("age_us", "use"), [(365 * DAY_US - 1, Use.USED), (365 * DAY_US, Use.ASK)])
def test_age_is_a_reason_to_ask(age_us: int, use: Use) -> None:
    """What was stated a year ago is asked about; a caller may set other bounds."""
    memory = has(days_ago=0)
    (one,) = told(memory, now_us=NOW_US + age_us).recalled
    assert one.use is use
    (one,) = told(memory, now_us=NOW_US + age_us, caution=Caution(ask_after_us=1_000 * DAY_US)).recalled
    assert one.use is Use.USED


def test_a_request_about_nothing_uses_nothing() -> None:
    """Without topics every memory is unrelated, and there is neither value nor question."""
    request = MemoryRequest(request_id="r", reader="reader-7", purpose="recommend-films")
    given = told(*POOL[:3], request=request)
    assert {one.use for one in given.recalled} == {Use.UNRELATED}
    assert (given.values, given.questions) == ({}, ())


def test_a_hint_without_a_memory_is_asked_about() -> None:
    """The request's own doubt is a question, and its hint the one option."""
    (question,) = told(request=asks(Wish(value="quiet", is_firm=False))).questions
    assert (question.options, question.reason) == (("quiet",), "the request is unsure")
