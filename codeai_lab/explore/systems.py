"""What is overloaded: which clients, which server, and what happens to it?

Chapter: 000, section 15.7: layered retry amplification.

Idea: a system is a demand, open or closed, the way in which clients try again, and a server that stands still
once. It is a value: what is run is written down before it runs.

Always true:
  SY1. A system that could not be run, or would never come to an end, is refused when it is written down.

Not here: running it (`explore.overload`, `explore.slotted`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeai_lab.decide.backoff import Backoff
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.budgets import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """First tries come by chance, so many a second; from an instant on, it may be another number."""

    first_tries: float = 280.0
    cut_at_s: float | None = None
    cut_to: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """So many clients, each with one request at a time; in between it thinks, so long on average."""

    clients: int = 400
    think_s: float = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Clients and their server.

    Args:
        retries: at most so many after a first try; None for no limit.
        backoff: the rule of the waits between attempts, in seconds; None for at once.
        budget: makes the account that stands for all clients; None for none.
        trigger_at_s, trigger_s: when the server stands still, and for how long; nothing is lost.
        queue_limit: the server turns away what would be one more; None for no limit.
        drops: what the server passes over, once it comes to it: "nothing"; what is "expired", its client
            gone; or what is "hopeless", since no answer can be ready before its client is gone.
    """

    demand: Open | Closed
    retries: int | None = 1
    backoff: Backoff | None = None
    budget: Callable[[], Budget] | None = None
    trigger_at_s: float = 20.0
    trigger_s: float = 10.0
    horizon_s: int = 400
    capacity: float = 300.0
    timeout_s: float = 1.0
    queue_limit: int | None = None
    drops: str = "nothing"

    def __post_init__(self) -> None:
        if type(self.horizon_s) is not int or self.horizon_s < 1:
            raise RefusedRequestError("A run lasts a whole number of seconds, from 1.")
        if not (self.capacity > 0 and self.timeout_s > 0 and self.trigger_s >= 0 and self.trigger_at_s >= 0):
            raise RefusedRequestError("Capacity and timeout are above 0, and the trigger is not below it.")
        if self.retries is not None and (type(self.retries) is not int or self.retries < 0):
            raise RefusedRequestError("Retries are counted by whole numbers from 0.")
        if self.drops not in ("nothing", "expired", "hopeless"):
            raise RefusedRequestError("A server drops nothing, what is expired, or what is hopeless.")
        if self.queue_limit is not None and self.queue_limit < 1:
            raise RefusedRequestError("A bounded queue holds at least one request.")
        if self.queue_limit is not None and self.retries is None and self.backoff is None:
            raise RefusedRequestError("Clients that are turned away need a limit on retries, or a backoff.")
        if isinstance(self.demand, Closed) and (self.demand.clients < 1 or self.demand.think_s <= 0):
            raise RefusedRequestError("A closed system has at least one client, which thinks for a while.")
        if isinstance(self.demand, Open) and min(self.demand.first_tries, self.demand.cut_to) < 0:
            raise RefusedRequestError("The number of first tries a second is not below 0.")

    def asked_for(self, second: int) -> float:
        """Give the requests that a healthy system would answer in a second, on average."""
        demand = self.demand
        if isinstance(demand, Closed):
            return demand.clients / demand.think_s
        return demand.first_tries if demand.cut_at_s is None or second < demand.cut_at_s else demand.cut_to

    @property
    def eased_at_s(self) -> float:
        """From when on the system may recover: the trigger has ended, or the first tries were cut."""
        cut = self.demand.cut_at_s if isinstance(self.demand, Open) else None
        return self.trigger_at_s + self.trigger_s if cut is None else cut
