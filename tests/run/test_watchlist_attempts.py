"""Does the harness ask again within its bounds, under one key, and claim no more than it was told?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant
from codeai_lab.decide.idempotency_key import Result
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, ActionStatus, EffectState, NextOperation
from codeai_lab.run.runtime import Runtime, counted_ids
from codeai_lab.run.watchlist import (
    CAPABILITY,
    KEY,
    Attempts,
    Caller,
    NoAnswerError,
    StoppedError,
    TurnedDownError,
    WatchlistAdapter,
    WatchlistLookup,
)
from codeai_lab.run.watchlist_line import NO_ANSWER, WatchlistLine
from codeai_lab.store.memory import MemoryLedger

ENTRY = {"entry": 1, "film": "ex-machina"}
ADDED = Result(status=201, body=ENTRY)
MAY_ADD = Authority.of(CAPABILITY)
REQUEST = ActionRequest(
    action_id="w1",
    idempotency_key=KEY,
    capability=CAPABILITY,
    instruction="add the film",
    payload={"film": "ex-machina"},
)


class Line(WatchlistLine):
    """Answers as it is told, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: int | BaseException, found: Any = None) -> None:
        super().__init__(port=0)
        object.__setattr__(self, "answers", list(answers))
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "found", found)

    def add(self, payload: Mapping[str, Any], *, key: str | None, silence_us: int = 0) -> Result:
        self.asked.append((dict(payload), key, silence_us))  # type: ignore[attr-defined]
        answer = self.answers.pop(0)  # type: ignore[attr-defined]
        if isinstance(answer, BaseException):
            raise answer
        return ADDED if answer == 201 else Result(status=answer, body={"detail": "Nothing was changed."})

    def entries(self, *, key: str | None = None) -> dict[str, Any]:
        return dict(self.found)  # type: ignore[attr-defined]


def lost() -> ConnectionError:
    return ConnectionError(NO_ANSWER)


def adapter_on(line: Line, *, at_most: int = 3, **how: Any) -> WatchlistAdapter:
    usual: dict[str, Any] = {
        "caller": lambda: Caller(performer="agent", authority=MAY_ADD),
        "clock": ManualClock(),
        "attempts": Attempts(at_most=at_most, silence_us=7),
    }
    return WatchlistAdapter(line, **usual | how)


def in_turn(*authorities: Authority) -> Callable[[], Caller]:
    """Give what the caller holds at the first asking, the second, ..."""
    held = iter(authorities)
    return lambda: Caller(performer="agent", authority=next(held))


def test_every_attempt_carries_the_same_key_and_payload() -> None:
    """WC1: two answers lost, the third comes, and nothing differs but the time."""
    line = Line(lost(), TimeoutError(), 201)
    assert adapter_on(line).execute(REQUEST) == {**ENTRY, "answers": [NO_ANSWER, NO_ANSWER, "201"]}
    assert line.asked == [(REQUEST.payload, KEY, 7)] * 3  # type: ignore[attr-defined]


def test_without_the_key_none_is_sent() -> None:
    """The same attempts without a key, to show what then happens."""
    line = Line(201)
    adapter_on(line, with_key=False).execute(REQUEST)
    assert line.asked == [(REQUEST.payload, None, 7)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("at_most", [1, 2, 5])
def test_attempts_are_bounded_and_without_an_answer_nothing_is_claimed(at_most: int) -> None:
    """WC2, WC4: so many and no more, and the error is indefinite."""
    adapter = adapter_on(Line(*[lost() for _ in range(9)]), at_most=at_most)
    with pytest.raises(NoAnswerError, match="may be there") as spent:
        adapter.execute(REQUEST)
    assert spent.value.answers == (NO_ANSWER,) * at_most
    assert spent.value.definite is False


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("lost_before", [0, 1])
def test_an_answer_that_turns_it_down_ends_the_attempts(status: int, lost_before: int) -> None:
    """WC2: only what was lost is asked again; it is definite only where every attempt was answered."""
    line = Line(*[lost() for _ in range(lost_before)], status, 201)
    with pytest.raises(TurnedDownError, match=f"answered {status}: Nothing was changed") as turned:
        adapter_on(line).execute(REQUEST)
    assert turned.value.status == status
    assert turned.value.definite is (lost_before == 0)
    assert line.answers == [201]  # type: ignore[attr-defined]


def test_what_is_under_way_is_asked_again_after_a_pause_and_stays_open() -> None:
    """WC2, WC4: 409 says that it may still come about, so that is no definite answer."""
    pauses: list[str] = []
    adapter = adapter_on(Line(409, 409, 201), pause=lambda: pauses.append("pause"))
    assert adapter.execute(REQUEST)["answers"] == ["409", "409", "201"]
    assert len(pauses) == 2
    with pytest.raises(TurnedDownError, match="409") as turned:
        adapter_on(Line(409, 409), at_most=2).execute(REQUEST)
    assert turned.value.definite is False


@pytest.mark.parametrize(
    ("authorities", "answers", "definite"),
    [
        ((NO_AUTHORITY,), (), True),
        ((MAY_ADD, NO_AUTHORITY), (NO_ANSWER,), False),
        ((MAY_ADD, MAY_ADD, Authority.of("file.append")), (NO_ANSWER, NO_ANSWER), False),
    ],
)
def test_a_grant_that_is_gone_stops_the_next_attempt(
    authorities: Sequence[Authority], answers: Sequence[str], definite: bool
) -> None:
    """WC3: asked right before each attempt; what the earlier ones did is not known."""
    line = Line(lost(), lost(), 201)
    with pytest.raises(StoppedError, match="no grant names this capability") as stopped:
        adapter_on(line, caller=in_turn(*authorities)).execute(REQUEST)
    assert (stopped.value.answers, stopped.value.definite) == (tuple(answers), definite)
    assert len(line.asked) == len(answers)  # type: ignore[attr-defined]


def test_another_performer_makes_no_attempt() -> None:
    """WC3: who resumes is not whoever asked, whatever they hold."""
    line = Line(201)
    with pytest.raises(StoppedError, match="another performer's"):
        adapter_on(line, caller=lambda: Caller(performer="other", authority=MAY_ADD)).execute(REQUEST)
    assert line.asked == []  # type: ignore[attr-defined]


def test_a_grant_that_expires_between_two_attempts_stops_the_second() -> None:
    """WC3: the clock is read before each attempt."""
    clock = ManualClock(start_us=100)
    grant = Authority(grants=(Grant(capability=CAPABILITY, expires_at_us=150),))
    adapter = adapter_on(
        Line(lost(), 201),
        clock=clock,
        caller=lambda: Caller(performer="agent", authority=grant),
        pause=lambda: clock.advance(50),
    )
    with pytest.raises(StoppedError, match="the grant has expired"):
        adapter.execute(REQUEST)


def test_no_attempt_begins_after_the_deadline() -> None:
    """WC3, WC4: the time for all attempts is bounded too."""
    clock = ManualClock(start_us=100)
    bounds = Attempts(at_most=9, timeout_us=100)
    line = Line(*[lost() for _ in range(9)])
    adapter = adapter_on(line, attempts=bounds, clock=clock, pause=lambda: clock.advance(40))
    with pytest.raises(StoppedError, match="the deadline has passed") as stopped:
        adapter.execute(REQUEST)
    assert stopped.value.answers == (NO_ANSWER,) * 3


@pytest.mark.parametrize("bounds", [{"at_most": 0}, {"at_most": 1, "silence_us": 0}])
def test_no_attempt_at_all_is_no_bound(bounds: dict[str, int]) -> None:
    """WC4: a bound lets one attempt through."""
    with pytest.raises(RefusedRequestError):
        Attempts(**bounds)


def test_a_key_that_no_field_can_carry_is_refused_before_any_attempt() -> None:
    """Nothing is sent, so the refusal is definite."""
    line = Line(201)
    request = ActionRequest(
        action_id="w", idempotency_key="a\nb", capability=CAPABILITY, instruction="add", payload={}
    )
    with pytest.raises(RefusedRequestError):
        adapter_on(line).execute(request)
    assert line.asked == []  # type: ignore[attr-defined]


def test_an_interrupt_is_no_lost_answer() -> None:
    """Whoever interrupts gets no further attempt."""
    line = Line(KeyboardInterrupt(), 201)
    with pytest.raises(KeyboardInterrupt):
        adapter_on(line).execute(REQUEST)
    assert line.answers == [201]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"entries": [ENTRY], "under_way": False}, (ENTRY,)),
        ({"entries": [], "under_way": False}, ()),
        ({"entries": [], "under_way": True}, None),
        ({"entries": [{"entry": 1, "film": "other"}], "under_way": False}, None),
    ],
)
def test_a_look_up_says_what_the_service_says(
    found: dict[str, Any], expected: tuple[dict[str, Any], ...] | None
) -> None:
    """WC5: what is under way, or is another operation's, is not settled."""
    lookup = WatchlistLookup(line=Line(found=found), key=KEY)
    assert lookup.find({"payload": REQUEST.payload}) == expected


def test_without_a_key_a_look_up_cannot_tell() -> None:
    """WC5: the film may be on the list because of somebody else."""
    lookup = WatchlistLookup(line=Line(found={"entries": [ENTRY], "under_way": False}), key=None)
    assert lookup.find({"payload": REQUEST.payload}) is None
    assert lookup.resolve(ENTRY)
    assert not lookup.resolve({**ENTRY, "entry": 2})


def test_the_runtime_records_what_the_harness_was_told() -> None:
    """Spent attempts are a failure whose effect is unknown, and the same key is not sent again."""
    runtime = Runtime(MemoryLedger(), clock=ManualClock(), new_id=counted_ids("e"))
    line = Line(lost(), lost(), 201)
    adapter = adapter_on(line, at_most=2)
    result = runtime.execute_action(REQUEST, authority=MAY_ADD, adapter=adapter)
    assert (result.status, result.effect_state) == (ActionStatus.FAILED, EffectState.UNKNOWN)
    assert result.next_operation is NextOperation.RECONCILE_EFFECT
    assert result.error is not None
    assert result.error["type"] == "NoAnswerError"
    again = ActionRequest(
        **{name: getattr(REQUEST, name) for name in REQUEST.__slots__} | {"action_id": "w2"}
    )
    assert runtime.execute_action(again, authority=MAY_ADD, adapter=adapter).reused_from_action_id == "w1"
    assert len(line.asked) == 2  # type: ignore[attr-defined]
