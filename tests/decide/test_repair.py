"""Does what follows on a failure depend on its kind, and does it end?"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.repair import (
    AfterFailure,
    ErrorKind,
    Failure,
    Limits,
    WayOn,
    decide_repair,
    refusal_of_repeat,
    ways_on,
)

TIMEOUT = Failure(kind=ErrorKind.TRANSIENT, call="a")
WRONG = Failure(kind=ErrorKind.INPUT, call="a")
WRONG_AGAIN = Failure(kind=ErrorKind.INPUT, call="b")
DENIED = Failure(kind=ErrorKind.CONTRADICTION, call="a")

# fmt: off
TABLE = [
    # failures so far, oldest first                                  what follows
    ([TIMEOUT],                                                      "retry"),
    ([TIMEOUT, TIMEOUT],                                             "retry"),
    ([TIMEOUT, TIMEOUT, TIMEOUT],                                    "give_up"),
    ([WRONG],                                                        "repair"),
    ([WRONG, WRONG_AGAIN],                                           "repair"),
    ([WRONG, WRONG_AGAIN, WRONG_AGAIN],                              "repair"),
    ([WRONG, WRONG_AGAIN, WRONG_AGAIN, WRONG_AGAIN],                 "give_up"),
    ([DENIED],                                                       "reopen"),
    ([DENIED, DENIED],                                               "give_up"),
    ([WRONG, TIMEOUT],                                               "retry"),
    ([TIMEOUT, TIMEOUT, WRONG],                                      "repair"),
    ([WRONG, WRONG_AGAIN, TIMEOUT, WRONG_AGAIN],                     "repair"),
    ([WRONG, WRONG_AGAIN, WRONG_AGAIN, DENIED],                      "reopen"),
    ([WRONG, WRONG_AGAIN, WRONG_AGAIN, DENIED, WRONG],               "give_up"),
    ([WRONG, WRONG_AGAIN, DENIED, WRONG],                            "repair"),
    ([TIMEOUT, TIMEOUT, DENIED, TIMEOUT],                            "give_up"),
]
# fmt: on


@pytest.mark.parametrize(("failures", "follows"), TABLE)
def test_the_kind_and_what_was_spent_decide(failures: list[Failure], follows: str) -> None:
    """RP1, RP3: a timeout is retried, an input repaired, a contradiction reopened; each within a bound."""
    *history, newest = failures
    assert decide_repair(history, newest).move == follows


def test_the_reason_says_how_much_is_spent() -> None:
    """A decision names its bound, so that a record can be read without the code."""
    assert decide_repair([WRONG], WRONG_AGAIN).reason.endswith("2 of 3 repairs")
    assert decide_repair([TIMEOUT, TIMEOUT], TIMEOUT).reason == "all retries are spent: 2 of 2"


@given(
    kinds=st.lists(st.sampled_from(ErrorKind), min_size=40, max_size=40),
    limits=st.builds(
        Limits, retries=st.integers(0, 4), repairs=st.integers(0, 4), reopenings=st.integers(0, 4)
    ),
)
def test_every_order_of_failures_ends_within_the_bound(kinds: list[ErrorKind], limits: Limits) -> None:
    """RP2: however the failures fall, a node is given up after at most `most_calls` calls."""
    history: list[Failure] = []
    for number in itertools.count(1):
        newest = Failure(kind=kinds[number - 1], call=str(number))
        move = decide_repair(history, newest, limits).move
        history.append(newest)
        if move is AfterFailure.GIVE_UP:
            break
    assert len(history) <= limits.most_calls


def test_the_bound_is_reached_and_not_only_kept() -> None:
    """RP2: three failed repairs are four failed calls; with retries and a reopening, seven."""
    assert Limits(retries=0, repairs=3, reopenings=0).most_calls == 4
    assert Limits().most_calls == 7


def test_a_call_that_failed_by_its_input_is_not_made_again() -> None:
    """RP1: the very same call is refused with a reason; one that timed out, or another call, is not."""
    assert "change it" in str(refusal_of_repeat([WRONG], "a"))
    assert refusal_of_repeat([WRONG], "b") is None
    assert refusal_of_repeat([TIMEOUT, DENIED], "a") is None


def test_an_unresolved_node_leaves_a_choice() -> None:
    """Another route comes first where there is one, then asking; reporting the film is always open."""
    assert ways_on() == (WayOn.REPORT_MISSING,)
    assert ways_on(may_ask=True) == (WayOn.ASK, WayOn.REPORT_MISSING)
    assert ways_on(other_routes=["lexical_search"], may_ask=True) == tuple(WayOn)


@pytest.mark.parametrize("name", ["retries", "repairs", "reopenings"])
def test_a_limit_is_not_negative(name: str) -> None:
    """A bound below zero would mean nothing and is not taken."""
    with pytest.raises(ValueError, match="zero or more"):
        Limits(**{name: -1})
