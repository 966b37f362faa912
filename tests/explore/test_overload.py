"""A server under load and clients that try again: single runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.budgets import Budget, RequestFunded, SuccessFunded
from codeai_lab.explore.overload import NEVER, TURNED_AWAY, Trace, _Server, simulate
from codeai_lab.explore.systems import Closed, Open, System

SEED = 20_261_130
PUBLISHED = System(demand=Open(), horizon_s=100)


def run(system: System, name: str = "x", seed: int = SEED) -> Trace:
    return simulate(system, seed=seed, name=name)


def same(one: Trace, other: Trace) -> bool:
    arrays = ("load", "goodput", "failed", "queue")
    return (
        all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in arrays)
        and one.recovered_after_s == other.recovered_after_s
    )


# --- the server ----------------------------------------------------------------------------------------


def server(**of_system: object) -> _Server:
    wanted: dict[str, object] = {
        "demand": Open(), "capacity": 2.0, "trigger_at_s": 10.0, "trigger_s": 4.0, **of_system,
    }  # fmt: skip
    return _Server(System(**wanted))  # type: ignore[arg-type]


def test_requests_are_answered_in_their_order() -> None:
    """At two a second: one alone takes half a second, a second one waits for the first."""
    taken = server()
    assert [taken.take(at) for at in (1.0, 1.25, 1.25, 5.0)] == [1.5, 2.0, 2.5, 5.5]


def test_a_stop_loses_nothing_and_delays_everything() -> None:
    """What was begun is finished after the stop, what comes in it is begun then, in order."""
    taken = server()
    assert [taken.take(at) for at in (9.75, 10.0, 13.0, 14.0, 20.0)] == [14.25, 14.75, 15.25, 15.75, 20.5]
    taken = server()
    assert [taken.take(at) for at in (9.5, 10.0)] == [10.0, 14.5]


def test_a_bounded_queue_turns_away_at_once() -> None:
    """With two at the server the third is turned away, until one has left."""
    taken = server(queue_limit=2)
    assert [taken.take(at) for at in (1.0, 1.0, 1.0, 1.49, 1.5)] == [
        1.5, 2.0, TURNED_AWAY, TURNED_AWAY, 2.5,
    ]  # fmt: skip


def test_what_is_dropped_takes_no_time() -> None:
    """With a timeout of 1 s the third of three is begun in time and too late to be finished in time."""
    assert [server(drops="hopeless").take(1.0) for _ in range(1)] == [1.5]
    hopeless, expired = server(drops="hopeless"), server(drops="expired")
    assert [hopeless.take(1.0) for _ in range(4)] == [1.5, 2.0, NEVER, NEVER]
    assert [expired.take(1.0) for _ in range(4)] == [1.5, 2.0, 2.5, NEVER]
    assert hopeless.take(1.6) == 2.5


# --- the published setting -----------------------------------------------------------------------------


def last_minute(trace: Trace) -> tuple[float, float]:
    return trace.load[-60:].mean(), trace.goodput[-60:].mean()


def test_one_retry_keeps_the_overload_alive() -> None:
    """280 first tries a second, one retry, ten seconds of stop: 560 +- 18 ever after, and nothing of use."""
    trace = run(PUBLISHED)
    load, goodput = last_minute(trace)
    assert load == pytest.approx(560, abs=18)
    assert goodput == 0
    assert trace.recovered_after_s is None
    assert trace.load[:20].mean() == pytest.approx(280, abs=4 * (280 / 20) ** 0.5)
    assert trace.failed[:19].sum() == 0


def test_without_the_trigger_the_same_system_is_healthy() -> None:
    """Vulnerable is not failed: without the stop nothing is ever late."""
    trace = run(replace(PUBLISHED, trigger_s=0.0))
    assert trace.failed.sum() == 0
    assert trace.recovered_after_s == 0
    assert last_minute(trace) == pytest.approx((280, 280), abs=4 * (280 / 60) ** 0.5)


@pytest.mark.parametrize(
    ("base_s", "strategy"), [(0.1, Strategy.FULL), (1.0, "exponential"), (2.0, "decorrelated")]
)
def test_waiting_changes_nothing_in_an_open_system(base_s: float, strategy: str) -> None:
    """Backoff postpones what comes and takes none of it away."""
    rule = Backoff(strategy=Strategy(strategy), base=base_s, cap=20.0)
    load, goodput = last_minute(run(replace(PUBLISHED, backoff=rule)))
    assert load == pytest.approx(560, abs=18)
    assert goodput == 0


def test_below_the_hidden_capacity_it_comes_back() -> None:
    """120 first tries a second, twice of which can be served, recover in 33 s, give or take four sd."""
    trace = run(System(demand=Open(first_tries=120), horizon_s=80))
    assert trace.recovered_after_s == pytest.approx(33, abs=4 * 2.4 + 1)
    assert trace.failed[70:].sum() == 0


@pytest.mark.parametrize(
    ("defence", "within_s"),
    [({"queue_limit": 250}, 2), ({"queue_limit": 250, "retries": 3}, 2), ({"drops": "hopeless"}, 3)],
)
def test_a_server_that_defends_itself_is_back_at_once(defence: dict[str, object], within_s: float) -> None:
    """A short queue, and work that is dropped once it is hopeless, keep the waits below the timeout."""
    trace = run(replace(PUBLISHED, horizon_s=100, **defence))  # type: ignore[arg-type]
    assert trace.recovered_after_s is not None
    assert trace.recovered_after_s <= within_s
    assert last_minute(trace) == pytest.approx((280, 280), abs=4 * (280 / 60) ** 0.5)


def test_a_closed_system_without_waits_never_recovers() -> None:
    """400 clients that try again at once make 400 attempts a second, and none is answered in time."""
    closed = System(demand=Closed(), retries=None, horizon_s=100)
    trace = run(closed)
    assert last_minute(trace) == (pytest.approx(400, abs=0.5), 0)
    assert trace.goodput[:20].mean() == pytest.approx(263, abs=4 * (263 / 20) ** 0.5)
    rule = Backoff(strategy=Strategy.EXPONENTIAL, base=1.0, cap=20.0)
    waited = run(replace(closed, backoff=rule))
    assert waited.recovered_after_s == pytest.approx(9, abs=1)
    assert last_minute(waited) == pytest.approx((263, 263), abs=8)


# --- what is counted -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "system",
    [
        PUBLISHED,
        replace(PUBLISHED, retries=3, queue_limit=100),
        replace(PUBLISHED, drops="expired"),
        replace(PUBLISHED, retries=3, budget=SuccessFunded),
        System(demand=Closed(clients=50, think_s=0.1), horizon_s=60),
    ],
    ids=["plain", "bounded", "dropping", "funded", "closed"],
)
def test_every_attempt_ends_in_one_way(system: System) -> None:
    """What came is answered in time or has failed, but for the last answers, which come after the end."""
    trace = run(system)
    unanswered = trace.load.sum() - trace.goodput.sum() - trace.failed.sum()
    assert 0 <= unanswered <= 1.1 * system.capacity * system.timeout_s
    assert (trace.queue >= 0).all()
    assert trace.goodput.max() <= system.capacity * 1.1


def test_retries_are_limited_by_their_number() -> None:
    """Without retries the load is the first tries; with R, never more than 1 + R times as many in all."""
    alone = run(replace(PUBLISHED, retries=0, horizon_s=50)).load.sum()
    for retries in (1, 3):
        many = run(replace(PUBLISHED, retries=retries, horizon_s=50)).load.sum()
        assert alone < many <= (1 + retries) * alone


class Heard(Budget):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.log: list[tuple[str, float]] = []

    def asked(self, at: float) -> None:
        self.log.append(("asked", at))

    def answered(self, at: float) -> None:
        self.log.append(("answered", at))

    def failed(self, at: float) -> None:
        self.log.append(("failed", at))


def test_a_budget_hears_everything_in_the_order_of_time() -> None:
    """No answer is heard of before it was given, and no failure before its timeout has passed."""
    heard = Heard()
    trace = run(replace(PUBLISHED, horizon_s=60, budget=lambda: heard))
    instants = [at for kind, at in heard.log if kind != "answered"]
    assert instants == sorted(instants)
    answers = [at for kind, at in heard.log if kind == "answered"]
    assert answers == sorted(answers)
    latest = 0.0
    for kind, at in heard.log:
        assert kind != "answered" or at >= latest - 1e-9  # after what was heard before the last event
        latest = at if kind != "answered" else latest
    kinds = [kind for kind, _ in heard.log]
    assert (
        min(at for kind, at in heard.log if kind == "failed") > 20.5
    )  # 20 s, and a timeout, less a short queue
    # a budget that forbids nothing changes nothing
    assert same(trace, run(replace(PUBLISHED, horizon_s=60)))
    assert abs(kinds.count("answered") - trace.goodput.sum()) <= 2


def test_a_budget_limits_the_load() -> None:
    """One retry in ten requests: the load stays below 1.1 times the first tries, and nothing is answered."""
    trace = run(replace(PUBLISHED, retries=3, budget=lambda: RequestFunded(0.1)))
    load, goodput = last_minute(trace)
    assert load == pytest.approx(308, abs=4 * 1.1 * (280 / 60) ** 0.5)
    assert goodput == 0


# --- chance --------------------------------------------------------------------------------------------


def test_a_run_depends_on_its_system_seed_and_name_alone() -> None:
    """The same names give the same bytes, whatever ran before; another seed or name gives others."""
    short = replace(PUBLISHED, horizon_s=40, backoff=Backoff(strategy=Strategy.FULL))
    first = run(short)
    run(short, name="y")
    assert same(first, run(short))
    assert not same(first, run(short, name="y"))
    assert not same(first, run(short, seed=1))


def test_the_first_tries_are_the_same_whatever_becomes_of_them() -> None:
    """Another number of retries leaves the stream of first tries as it was."""
    none = run(replace(PUBLISHED, retries=0, horizon_s=40))
    three = run(replace(PUBLISHED, retries=3, horizon_s=40))
    assert (none.load[:20] == three.load[:20]).all()


def test_a_cut_changes_the_first_tries_from_then_on() -> None:
    """Before the cut 280 a second come, after it 50."""
    trace = run(System(demand=Open(cut_at_s=50.0, cut_to=50.0), retries=0, trigger_s=0.0, horizon_s=100))
    assert trace.load[:50].mean() == pytest.approx(280, abs=4 * (280 / 50) ** 0.5)
    assert trace.load[51:].mean() == pytest.approx(50, abs=4)
    assert isinstance(trace.load, np.ndarray)


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"horizon_s": 0}, "whole number of seconds"),
        ({"horizon_s": 1.5}, "whole number of seconds"),
        ({"capacity": 0.0}, "Capacity and timeout"),
        ({"timeout_s": float("nan")}, "Capacity and timeout"),
        ({"trigger_s": -1.0}, "Capacity and timeout"),
        ({"retries": -1}, "Retries are counted"),
        ({"retries": True}, "Retries are counted"),
        ({"drops": "everything"}, "drops nothing"),
        ({"queue_limit": 0}, "at least one request"),
        ({"queue_limit": 5, "retries": None}, "need a limit"),
        ({"demand": Closed(clients=0)}, "at least one client"),
        ({"demand": Open(first_tries=-1.0)}, "not below 0"),
    ],
)
def test_a_system_that_cannot_be_run_is_refused(wrong: dict[str, object], says: str) -> None:
    """Each wrong value is refused in one sentence, before anything runs."""
    with pytest.raises(RefusedRequestError, match=says):
        System(**{"demand": Open(), **wrong})  # type: ignore[arg-type]


def test_no_seed_is_refused() -> None:
    """A seed is a whole number from 0, here as everywhere."""
    with pytest.raises(RefusedRequestError, match="seed"):
        run(PUBLISHED, seed=-1)
