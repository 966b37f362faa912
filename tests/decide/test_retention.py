"""Is a request's answer looked for in RIFL's order, and is nothing forgotten ever new again?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.retention import (
    Answer,
    RequestId,
    Retained,
    Verdict,
    acknowledge,
    arrive,
    collect,
    complete,
    give_up,
    judge,
)
from codeai_lab.errors import RefusedRequestError

LEASE_OVER_AT_US = 1_000
NOW_US, LATE_US = 999, 1_000

NEW, IN_PROGRESS, DUPLICATE, STALE, LEASE_EXPIRED = Answer


class Server:
    """Remembers clients as RAMCloud's test has it: `acknowledged` is the number that a request carries."""

    def __init__(self, *, lease_until_us: int = LEASE_OVER_AT_US) -> None:
        self.clients: dict[int, Retained] = {}
        self.now_us = NOW_US
        self._lease_until_us = lease_until_us

    def check(self, client: int, number: int, acknowledged: int) -> Verdict:
        known = self.clients.get(client, Retained(lease_until_us=self._lease_until_us))
        verdict, self.clients[client] = arrive(
            known, number, first_incomplete=acknowledged + 1, now_us=self.now_us
        )
        return verdict

    def complete(self, client: int, number: int, result: Any) -> None:
        self.clients[client] = complete(self.clients[client], number, result)


@pytest.fixture
def server() -> Server:
    """Client 1 has been seen up to 10 and has acknowledged 5; the result of 10 is 1010."""
    server = Server()
    assert server.check(1, 10, 5).answer is NEW
    server.complete(1, 10, 1010)
    return server


def test_the_duplicate_table_of_ramcloud(server: Server) -> None:
    """The published table, in its order: each answer, the result, and the mark after it."""
    table = [
        # client, number, acknowledged -> answer, result, started before, mark afterwards
        ((2, 1, 0), NEW, None, False, 0),
        ((1, 4, 3), STALE, None, False, 5),
        ((1, 11, 6), NEW, None, False, 6),
        ((1, 11, 6), IN_PROGRESS, None, True, 6),
        ((1, 10, 6), DUPLICATE, 1010, True, 6),
        ((1, 9, 7), NEW, None, False, 7),
        ((1, 9, 7), IN_PROGRESS, None, True, 7),  # a duplicate that has no result yet
    ]
    for asked, answer, result, started_before, mark in table:
        verdict = server.check(*asked)
        assert (verdict.answer, verdict.result, verdict.started_before) == (answer, result, started_before)
        assert server.clients[asked[0]].acknowledged == mark
    server.complete(1, 9, 1009)
    assert server.check(1, 9, 7) == Verdict(answer=DUPLICATE, result=1009)


def test_results_are_kept_while_the_window_moves(server: Server) -> None:
    """The second published table: what is above the mark keeps its result, whatever comes and goes below."""
    for number, acknowledged in ((11, 5), (12, 5), (13, 5), (14, 10), (15, 11), (16, 5)):
        assert server.check(1, number, acknowledged).answer is NEW
        server.complete(1, number, 1000 + number)
    assert server.check(1, 17, 5).answer is NEW
    assert server.clients[1].acknowledged == 11
    for number in range(12, 17):
        assert server.check(1, number, 5) == Verdict(answer=DUPLICATE, result=1000 + number)
    assert server.check(1, 17, 5) == Verdict(answer=IN_PROGRESS)
    server.complete(1, 17, 1017)
    assert server.check(1, 17, 5) == Verdict(answer=DUPLICATE, result=1017)
    assert [server.check(1, number, 0).answer for number in (1, 5, 10, 11)] == [STALE] * 4


def test_the_lease_is_asked_about_for_unknown_numbers_only(server: Server) -> None:
    """Lease over, from its very instant on: a known result is still given, a stale number is stale, new work
    is refused and leaves nothing behind."""
    server.check(1, 11, 5)
    server.now_us = LATE_US
    before = server.clients[1]
    assert server.check(1, 10, 5) == Verdict(answer=DUPLICATE, result=1010)
    assert server.check(1, 11, 5).answer is IN_PROGRESS
    assert server.check(1, 4, 3).answer is STALE
    for number, acknowledged in ((12, 5), (9, 8)):  # ahead of all others, and in a gap
        assert server.check(1, number, acknowledged).answer is LEASE_EXPIRED
    assert server.clients[1] == before
    assert server.check(3, 1, 0).answer is LEASE_EXPIRED


def test_completing_what_is_acknowledged_does_nothing(server: Server) -> None:
    """A result that nobody can ask for is not kept."""
    before = server.clients[1]
    server.complete(1, 5, 1005)
    assert server.clients[1] == before
    server.check(1, 11, 5)
    cancelled = acknowledge(server.clients[1], up_to=11)  # by a client that waits no longer
    assert complete(cancelled, 11, 1011) == cancelled
    assert (cancelled.results, cancelled.in_progress) == ({}, frozenset())
    assert judge(cancelled, 11, now_us=NOW_US).answer is STALE


def test_an_acknowledgement_drops_records_and_never_goes_back(server: Server) -> None:
    """The mark rises and takes the records up to it; a lower number changes nothing."""
    server.check(1, 11, 5)
    server.complete(1, 11, 1011)
    after = acknowledge(server.clients[1], up_to=10)
    assert (dict(after.results), after.acknowledged) == ({11: 1011}, 10)
    assert acknowledge(after, up_to=10) is after
    assert acknowledge(after, up_to=3) is after


def test_what_was_given_up_is_new_again(server: Server) -> None:
    """A request that ended without changing anything may be tried again under its number."""
    server.check(1, 11, 5)
    server.clients[1] = give_up(server.clients[1], 11)
    assert server.check(1, 11, 5).answer is NEW


def test_only_a_client_whose_lease_is_over_and_that_is_idle_is_collected(server: Server) -> None:
    """A living lease, or work under way, keeps every record."""
    idle = server.clients[1]
    assert collect(idle, now_us=NOW_US) is idle
    server.check(1, 11, 5)
    busy = server.clients[1]
    assert collect(busy, now_us=LATE_US) is busy
    gone = collect(idle, now_us=LATE_US)
    assert (dict(gone.results), gone.acknowledged, gone.collected) == ({}, 10, True)
    assert collect(gone, now_us=LATE_US) is gone


@pytest.mark.parametrize("now_us", [0, NOW_US, LATE_US, 10**12])
def test_after_the_collection_no_clock_makes_anything_new(server: Server, now_us: int) -> None:
    """What was known is stale, the rest has no lease, also where the clock was set back."""
    gone = collect(server.clients[1], now_us=LATE_US)
    answers = [judge(gone, number, now_us=now_us).answer for number in (1, 9, 10, 11, 99)]
    assert answers == [STALE, STALE, STALE, LEASE_EXPIRED, LEASE_EXPIRED]


@pytest.mark.parametrize(("number", "first_incomplete"), [(1, 2), (5, 6), (5, 0), (5, -1), (0, 0), (0, 1)])
def test_no_request_acknowledges_itself(number: int, first_incomplete: int) -> None:
    """Numbers that no client can mean are refused before anything is decided."""
    with pytest.raises(RefusedRequestError):
        arrive(Retained(lease_until_us=10), number, first_incomplete=first_incomplete, now_us=0)


@pytest.mark.parametrize("key", ["c1/7", "a/b/12", "c1/999999999999999"])
def test_an_id_travels_as_a_key(key: str) -> None:
    """A key is read back as the id that made it."""
    assert RequestId.from_key(key).key == key


@pytest.mark.parametrize(
    "key",
    ["", "c1", "c1/", "/1", "c1/0", "c1/-1", "c1/+1", "c1/01", "c1/1.0", "c1/²", "c1/٣", "c1/" + "9" * 16],
)
def test_other_keys_are_no_ids(key: str) -> None:
    """What is not a client and a number, in its one spelling, is refused."""
    with pytest.raises(RefusedRequestError):
        RequestId.from_key(key)


# --- whatever happens, in whatever order ----------------------------------------------------------------

NUMBERS = st.integers(1, 6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), NUMBERS, NUMBERS),
        st.tuples(st.just("complete"), NUMBERS, st.none()),
        st.tuples(st.just("acknowledge"), NUMBERS, st.none()),
        st.tuples(st.just("clock"), st.integers(990, 1_010), st.none()),
        st.tuples(st.just("collect"), st.none(), st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_nothing_is_ever_new_twice(steps: list[tuple[str, Any, Any]]) -> None:
    """RT2, RT4: no number that was taken is taken again, stale stays stale, the mark only rises, and no
    answer comes from a result that another number had."""
    known, now_us = Retained(lease_until_us=LEASE_OVER_AT_US), NOW_US
    taken: set[int] = set()
    stale: set[int] = set()
    for what, number, other in steps:
        mark = known.acknowledged
        if what == "ask":
            verdict, known = arrive(known, number, first_incomplete=min(number, other), now_us=now_us)
            if verdict.answer is NEW:
                assert number not in taken
                assert now_us < LEASE_OVER_AT_US
                assert not known.collected
                taken.add(number)
            if number in stale:
                assert verdict.answer is STALE
            if verdict.answer is STALE:
                stale.add(number)
            if verdict.answer is DUPLICATE:
                assert verdict.result == f"result {number}"
        elif what == "complete" and number in known.in_progress:
            known = complete(known, number, f"result {number}")
        elif what == "acknowledge":
            known = acknowledge(known, up_to=number)
        elif what == "clock":
            now_us = number
        elif what == "collect":
            known = collect(known, now_us=now_us)
        assert known.acknowledged >= mark
        assert all(one > known.acknowledged for one in {*known.results, *known.in_progress})
