"""Which systems are overloaded in the lesson, and what should come of each?

Chapter: 000, section 15.7: layered retry amplification.

Idea: one published setting, 280 requests a second against a server that does 300, which stands still for ten
seconds; then one thing after another is changed. Beside each system stands what theory says of the last
minute: the load, and whether the system has come back.

Always true:
  OC1. A case is named once, and its name never changes: its chance is named after it.
  OC2. What is expected is reckoned or written here, never taken from a run.

Not here: running them (`lessons.overload`, `explore.overload`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from codeai_lab.decide.backoff import Backoff, Strategy
from codeai_lab.decide.overload_laws import (
    closed_healthy,
    closed_overload,
    recovery_after_cut_s,
    recovery_s,
    request_funded_load,
    sustained_load,
)
from codeai_lab.explore.budgets import (
    AdaptiveThrottling,
    Budget,
    CircuitBreaker,
    RequestFunded,
    RetryQuota,
    SuccessFunded,
)
from codeai_lab.explore.systems import Closed, Open, System

CAPACITY, TIMEOUT_S, TRIGGER_S = 300.0, 1.0, 10.0
CUT_AT_S = 100.0
BACK_AT_S = 30.0  # the server goes on
CLIENTS, THINK_S = 400, 1.5
ANSWER_S = 0.02  # a closed, healthy system's mean time to an answer, roughly: service and a short queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A system, and what theory says of it.

    Args:
        load: attempts a second in the last minute.
        recovers: whether it has come back by then.
        recovery_s: how long that takes, where a formula says so.
        budget, server: what the system's own fields are called in a table.
    """

    system: System
    load: float
    recovers: bool
    recovery_s: float | None = None
    budget: str = "none"
    server: str = "plain"

    @property
    def goodput(self) -> float:
        return self.load if self.recovers else 0.0


def _plain(first_tries: float, retries: int = 1) -> Case:
    law = recovery_s(
        first_tries, retries=retries, capacity=CAPACITY, trigger_s=TRIGGER_S, timeout_s=TIMEOUT_S
    )
    return Case(
        system=System(demand=Open(first_tries=first_tries), retries=retries),
        load=sustained_load(first_tries, retries) if law is None else first_tries,
        recovers=law is not None,
        recovery_s=law,
    )


def _waiting(strategy: Strategy, base_s: float) -> Case:
    rule = Backoff(strategy=strategy, base=base_s, cap=20.0)
    return Case(system=System(demand=Open(), backoff=rule), load=sustained_load(280, 1), recovers=False)


def _request_funded(first_tries: float, ratio: float, *, recovers: bool) -> Case:
    return Case(
        system=System(demand=Open(first_tries=first_tries), retries=3, budget=partial(RequestFunded, ratio)),
        load=first_tries if recovers else request_funded_load(first_tries, ratio),
        recovers=recovers,
        budget=f"request-funded, {ratio:.0%}",
    )


def _cut(to: float, horizon_s: int = 400) -> Case:
    law = recovery_after_cut_s(
        280, to, retries=1, capacity=CAPACITY, trigger_s=TRIGGER_S, timeout_s=TIMEOUT_S,
        cut_after_s=CUT_AT_S - BACK_AT_S,
    )  # fmt: skip
    return Case(
        system=System(demand=Open(cut_at_s=CUT_AT_S, cut_to=to), horizon_s=horizon_s),
        load=sustained_load(to, 1) if law is None else to,
        recovers=law is not None,
        recovery_s=law,
    )


def _closed(strategy: Strategy | None, base_s: float = 1.0, cap_s: float = 20.0) -> Case:
    rule = None if strategy is None else Backoff(strategy=strategy, base=base_s, cap=cap_s)
    demand = Closed(clients=CLIENTS, think_s=THINK_S)
    return Case(
        system=System(demand=demand, retries=None, backoff=rule, horizon_s=600),
        load=closed_overload(CLIENTS, TIMEOUT_S)
        if rule is None
        else closed_healthy(CLIENTS, THINK_S, ANSWER_S),
        recovers=rule is not None,
    )


def _rescued(budget: Callable[[], Budget], called: str, retries: int = 1) -> Case:
    system = System(demand=Open(), retries=retries, budget=budget)
    return Case(system=system, load=280.0, recovers=True, budget=called)


def _defended(
    called: str, *, retries: int = 1, queue_limit: int | None = None, drops: str = "nothing"
) -> Case:
    system = System(demand=Open(), retries=retries, queue_limit=queue_limit, drops=drops)
    return Case(system=system, load=280.0, recovers=True, server=called)


CASES: dict[str, Case] = {
    # an open system, nothing held back
    "280-no-retry": _plain(280, 0),
    "280-one-retry-no-trigger": Case(
        system=System(demand=Open(), trigger_s=0.0), load=280.0, recovers=True, recovery_s=0.0
    ),
    "280-one-retry": _plain(280),
    "280-three-retries": _plain(280, 3),
    "250-one-retry": _plain(250),
    "200-one-retry": _plain(200),
    "155-one-retry": _plain(155),
    "140-one-retry": _plain(140),
    "120-one-retry": _plain(120),
    # waits between attempts change nothing there
    "280-full-100ms": _waiting(Strategy.FULL, 0.1),
    "280-full-1s": _waiting(Strategy.FULL, 1.0),
    "280-full-10s": _waiting(Strategy.FULL, 10.0),
    "280-exponential-1s": _waiting(Strategy.EXPONENTIAL, 1.0),
    # budgets: 5 % would recover, at 6 requests a second, long after the run has ended
    "280-request-funded-5-percent": _request_funded(280, 0.05, recovers=False),
    "280-request-funded-10-percent": _request_funded(280, 0.10, recovers=False),
    "280-request-funded-20-percent": _request_funded(280, 0.20, recovers=False),
    "240-request-funded-10-percent": _request_funded(240, 0.10, recovers=True),
    "240-request-funded-20-percent": _request_funded(240, 0.20, recovers=True),
    "280-success-funded": _rescued(SuccessFunded, "success-funded, 100 and 0.1", retries=3),
    "280-quota-5": _rescued(partial(RetryQuota, 500, 5), "quota 500, a retry costs 5", retries=3),
    "280-quota-14": _rescued(partial(RetryQuota, 500, 14), "quota 500, a retry costs 14", retries=3),
    "280-adaptive-throttling": _rescued(AdaptiveThrottling, "adaptive throttling, K = 2"),
    "280-circuit-breaker": _rescued(CircuitBreaker, "circuit breaker, a probe every 5 s"),
    # a server that defends itself
    "280-bounded-queue": _defended("queue of at most 250", queue_limit=250),
    "280-bounded-queue-three-retries": _defended("queue of at most 250", retries=3, queue_limit=250),
    "280-drops-hopeless": _defended("drops what it cannot answer in time", drops="hopeless"),
    "280-drops-expired": _defended("drops what is too late already", drops="expired"),
    # fewer first tries, from 70 s after the trigger on
    "280-cut-to-50": _cut(50),
    "280-cut-to-100": _cut(100),
    "280-cut-to-140": _cut(140, horizon_s=1_600),
    "280-cut-to-160": _cut(160),
    # a closed system: 400 clients
    "closed-no-backoff": _closed(None),
    "closed-full-100ms-1s": _closed(Strategy.FULL, 0.1, 1.0),
    "closed-full-1s-20s": _closed(Strategy.FULL),
    "closed-exponential-1s-20s": _closed(Strategy.EXPONENTIAL),
    "closed-equal-1s-20s": _closed(Strategy.EQUAL),
}
