"""Does time only go forward, and does a deadline end at its very instant?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab import clock
from codeai_lab.clock import Deadline, ManualClock, SystemClock


def test_the_machines_clock_is_read_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: a reading is an integer of microseconds since 1970."""
    monkeypatch.setattr(clock.time, "time_ns", lambda: 1_789_344_000_123_456_789)
    assert SystemClock().now_us() == 1_789_344_000_123_456


def test_the_machines_clock_set_back_does_not_run_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """K2: a wall clock that is set back an hour stands still until it has caught up."""
    readings: Iterator[int] = iter([5_000_000, 1_000_000, 4_999_000, 6_000_000])
    monkeypatch.setattr(clock.time, "time_ns", lambda: next(readings))
    ours = SystemClock()
    assert [ours.now_us() for _ in range(4)] == [5_000, 5_000, 5_000, 6_000]


def test_a_manual_clock_moves_only_when_told() -> None:
    """K2: without a tick the reading is the same until somebody advances it."""
    ours = ManualClock(start_us=100)
    assert (ours.now_us(), ours.now_us()) == (100, 100)
    ours.advance(0)
    ours.advance(50)
    assert ours.now_us() == 150


def test_a_ticking_clock_gives_each_reading_its_own_instant() -> None:
    """A tick follows a reading, so the first reading is the start."""
    ours = ManualClock(start_us=100, tick_us=10)
    assert [ours.now_us() for _ in range(3)] == [100, 110, 120]


@given(st.lists(st.integers(min_value=0, max_value=2**40)), st.integers(min_value=0, max_value=1_000))
def test_no_way_of_moving_a_manual_clock_turns_it_back(moves: list[int], tick_us: int) -> None:
    """K2: readings never decrease."""
    ours = ManualClock(tick_us=tick_us)
    readings = [ours.now_us()]
    for move in moves:
        ours.advance(move)
        readings.append(ours.now_us())
    assert readings == sorted(readings)


def test_a_clock_is_not_told_to_run_backwards() -> None:
    """K2: a negative tick or step is refused."""
    with pytest.raises(ValueError, match="backwards"):
        ManualClock(tick_us=-1)
    with pytest.raises(ValueError, match="backwards"):
        ManualClock().advance(-1)


def test_a_deadline_has_passed_at_its_very_instant() -> None:
    """K3: at the instant itself nothing is left."""
    deadline = Deadline.after(timeout_us=500, now_us=1_000)
    assert deadline == Deadline(at_us=1_500)
    assert not deadline.has_passed(now_us=1_499)
    assert deadline.has_passed(now_us=1_500)
    assert [deadline.remaining_us(now_us=now) for now in (0, 1_499, 1_500, 9_999)] == [1_500, 1, 0, 0]


def test_a_timeout_of_zero_is_over_at_once() -> None:
    """K1: a timeout is a duration of zero or more."""
    assert Deadline.after(timeout_us=0, now_us=7).has_passed(now_us=7)
    with pytest.raises(ValueError, match="zero or more"):
        Deadline.after(timeout_us=-1, now_us=7)
