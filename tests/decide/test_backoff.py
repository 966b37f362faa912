"""How long a program waits before it tries again: the rules, at their edges above all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.backoff import Backoff, Span, Strategy, chapter_delay_ms
from codeai_lab.errors import RefusedRequestError

LARGEST_BELOW_ONE = math.nextafter(1.0, 0.0)
EXCEED_THE_CAP = {Strategy.ADDITIVE: 1.0, Strategy.PROPORTIONAL: 20.0}  # by how much, with cap 20 and j = 1
WINDOWS = [1, 2, 4, 8, 16, 20, 20, 20]


def rule(strategy: Strategy, **other: float) -> Backoff:
    return Backoff(strategy=strategy, **other)


def test_the_window_doubles_up_to_the_cap() -> None:
    """The first window is the base, not twice the base; each next one is twice as long, up to the cap."""
    full = rule(Strategy.FULL)
    assert [full.window(n) for n in range(1, 9)] == WINDOWS


@pytest.mark.parametrize(
    ("strategy", "span"),
    [
        (Strategy.NO_BACKOFF, Span(0, 0)),
        (Strategy.EXPONENTIAL, Span(4, 4)),
        (Strategy.FULL, Span(0, 4)),
        (Strategy.EQUAL, Span(2, 4)),
        (Strategy.DECORRELATED, Span(1, 3, 20)),
        (Strategy.ADDITIVE, Span(4, 4.5)),
        (Strategy.ADDITIVE_CAP_AFTER, Span(4, 4.5, 20)),
        (Strategy.MULTIPLICATIVE, Span(2, 4)),
        (Strategy.MULTIPLICATIVE_CAP_AFTER, Span(2, 4, 20)),
        (Strategy.PROPORTIONAL, Span(2, 6)),
    ],
)
def test_each_strategy_is_a_span(strategy: Strategy, span: Span) -> None:
    """Base 1, cap 20, jitter 0.5, third retry: the span that each name stands for."""
    assert rule(strategy, jitter=0.5).span(3) == span


def test_a_decorrelated_delay_follows_the_one_before() -> None:
    """The decorrelated span reaches to three times the previous delay and does not use n."""
    decorrelated = rule(Strategy.DECORRELATED)
    assert decorrelated.span(7, previous=5.0) == decorrelated.span(2, previous=5.0) == Span(1, 15, 20)
    assert decorrelated.delay(1, LARGEST_BELOW_ONE, previous=20.0) == 20.0


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("n", [1, 31, 32, 1_023, 1_024, 1_025, 1_026, 10**6])
@pytest.mark.parametrize("draw", [0.0, 0.5, LARGEST_BELOW_ONE])
def test_no_delay_overflows_or_passes_the_cap(strategy: Strategy, n: int, draw: float) -> None:
    """At every n and draw the delay is a finite number from 0 to the cap, or what clamping first allows."""
    delay = rule(strategy).delay(n, draw)
    assert 0 <= delay <= 20 + EXCEED_THE_CAP.get(strategy, 0)


@pytest.mark.parametrize("strategy", sorted(set(Strategy) - {Strategy.NO_BACKOFF, *EXCEED_THE_CAP}))
def test_a_cap_below_the_base_wins(strategy: Strategy) -> None:
    """With a cap below the base the cap is the window from the start, and no delay is above it."""
    small = rule(strategy, base=5.0, cap=2.0)
    assert small.window(1) == 2.0
    assert all(small.delay(n, draw) <= 2.0 for n in (1, 2, 40) for draw in (0.0, LARGEST_BELOW_ONE))


@given(
    base=st.floats(1e-300, 1e300),
    cap=st.floats(1e-300, 1e300),
    n=st.integers(1, 3_000),
    draw=st.floats(0, LARGEST_BELOW_ONE),
)
def test_full_jitter_stays_below_its_window(base: float, cap: float, n: int, draw: float) -> None:
    """Whatever base, cap and draw, a full-jitter delay is below its window, and the window never shrinks."""
    full = rule(Strategy.FULL, base=base, cap=cap)
    assert full.delay(n, draw) < full.window(n) <= full.window(n + 1) <= cap


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None, "1"])
def test_retries_are_counted_from_one(bad: object) -> None:
    """What is no whole number from 1 counts no retry."""
    with pytest.raises(RefusedRequestError, match="counted by whole numbers from 1"):
        rule(Strategy.FULL).delay(bad, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [1.0, -0.1, math.nan, math.inf, True, "0.5", None])
def test_a_draw_lies_below_one(bad: object) -> None:
    """A draw of 1 or outside is refused, by the rules and by the chapter's."""
    with pytest.raises(RefusedRequestError, match="from 0 up to"):
        rule(Strategy.FULL).delay(1, bad)  # type: ignore[arg-type]
    with pytest.raises(RefusedRequestError, match="from 0 up to"):
        chapter_delay_ms(1, base_ms=100, maximum_ms=1_000, jitter=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [
        {"base": 0},
        {"base": -1},
        {"base": math.nan},
        {"base": True},
        {"cap": math.inf},
        {"cap": 0.0},
        {"jitter": -0.1},
        {"jitter": 1.5},
        {"jitter": "1"},
    ],
)
def test_a_rule_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    """Base and cap are above 0 and finite; a jitter that is a share lies between 0 and 1."""
    with pytest.raises(RefusedRequestError, match=r"^(The|A) \w+"):
        rule(Strategy.MULTIPLICATIVE, **bad)


def test_an_additive_jitter_is_a_time() -> None:
    """The jitter of the additive rules is a time, and may be longer than 1."""
    assert rule(Strategy.ADDITIVE, jitter=7.0).span(1) == Span(1, 8)


# --- the chapter's rule ---------------------------------------------------------------------------------


def chapter(attempts: int, jitter: float, **other: int) -> int:
    return chapter_delay_ms(attempts, **{"base_ms": 100, "maximum_ms": 1_000, **other}, jitter=jitter)


@pytest.mark.parametrize(
    ("attempts", "jitter", "delay"),
    [(1, 0.0, 0), (1, 0.5, 50), (1, LARGEST_BELOW_ONE, 99), (2, 0.999, 199), (4, 0.5, 400), (5, 0.5, 500)],
)
def test_the_chapter_rule_floors_a_share_of_the_window(attempts: int, jitter: float, delay: int) -> None:
    """floor(jitter * window) in whole milliseconds; attempts counts those begun, the first one included."""
    assert chapter(attempts, jitter) == delay


@pytest.mark.parametrize("attempts", [31, 32, 1_023, 1_024, 1_025, 1_026, 10**6])
def test_the_exponent_stops_at_thirty(attempts: int) -> None:
    """From the 31st attempt on the window is base * 2^30, however many there were."""
    delay = chapter(attempts, 0.5, base_ms=1, maximum_ms=2**53 - 1)
    assert delay == 2**29


def test_an_upstream_minimum_may_exceed_the_cap() -> None:
    """The local cap does not shorten what the other side asked for; a shorter request changes nothing."""
    assert chapter(1, 0.5, maximum_ms=500, retry_after_ms=600) == 600
    assert chapter(4, 0.5, retry_after_ms=10) == 400


@pytest.mark.parametrize("field", ["attempts", "base_ms", "maximum_ms"])
@pytest.mark.parametrize("bad", [0, -1, 10**18, 2**53, True, 1.0, None])
def test_the_chapter_rule_refuses_what_is_no_safe_whole_number(field: str, bad: object) -> None:
    """10^18, booleans, fractions and a base of 0 are refused, each by the name of what is wrong."""
    values: dict[str, object] = {"attempts": 1, "base_ms": 100, "maximum_ms": 1_000, field: bad}
    with pytest.raises(RefusedRequestError, match="whole number from 1"):
        chapter_delay_ms(values.pop("attempts"), **values, jitter=0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 10**18, True, 0.5])
def test_the_chapter_rule_refuses_an_unvalidated_minimum(bad: object) -> None:
    """An upstream minimum is a validated duration: a whole number from 0."""
    with pytest.raises(RefusedRequestError, match="upstream minimum must be a whole number from 0"):
        chapter(1, 0.5, retry_after_ms=bad)  # type: ignore[arg-type]


def test_no_draw_reaches_the_window() -> None:
    """Even the largest draw below 1 stays one below the window, up to the largest window."""
    for window in (1, 2, 3, 1_000, 2**30, 2**52 + 1, 2**53 - 1):
        delay = chapter(1, LARGEST_BELOW_ONE, base_ms=window, maximum_ms=window)
        assert delay == window - 1
