"""After a failed call: is the same asked again, is something else asked, or does it end?

Chapter: 003, "Retry only operations that can be repeated safely": a timeout may clear, a wrong field name
will not, and a loop of repairs has to stop.

Idea: what may be done next follows from the kind of the newest failure and from how much of that kind was
spent. Nothing is tried without a bound, and the end of the bound is not a failure of the whole: the node
stays open, what was verified elsewhere stays verified, and there is a choice to make.

    newest failure   what it says                      next          when the bound is reached
    transient        it may pass by itself             retry         give_up
    input            the call itself is wrong          repair        give_up
    contradiction    the answer denies the candidate   reopen        give_up

Always true:
  RP1. A retry is offered after a transient failure alone; the same call is never made again after it failed
      by its input.
  RP2. A node takes at most `Limits.most_calls` calls, whatever fails in whatever order. The first call is no
      repair, so three repairs that fail are four failed calls.
  RP3. Reopening ends the search of one candidate, not the bound: what was spent before it stays spent.

Not here: making the calls and recording them (`run.repairing`), what fails (`run.film_tools`,
`store.film_sql`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """What kind of failure it was: whether it may pass by itself, and whose the next move is."""

    TRANSIENT = "transient"
    INPUT = "input"
    CONTRADICTION = "contradiction"


class AfterFailure(StrEnum):
    """What is done next about a node that is open."""

    RETRY = "retry"
    REPAIR = "repair"
    REOPEN = "reopen"
    GIVE_UP = "give_up"


class WayOn(StrEnum):
    """How the work may go on around a node that stays unresolved."""

    OTHER_ROUTE = "other_route"
    ASK = "ask"
    REPORT_MISSING = "report_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a tool gave no answer to a question, as a value: the next question is made from it.

    Args:
        kind: `syntax`, `schema`, `value` (well formed, and no answer comes of it), or `refused`.
        message: what the tool itself said.
        hint: what there is to ask about; empty where that is not the point.
    """

    kind: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed call of a node; `call` is the digest of tool and arguments."""

    kind: ErrorKind
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be spent on one node: retries of a call, repairs of it, candidates given back."""

    retries: int = 2
    repairs: int = 3
    reopenings: int = 1

    def __post_init__(self) -> None:
        if min(self.retries, self.repairs, self.reopenings) < 0:
            raise ValueError("a limit is zero or more")

    @property
    def most_calls(self) -> int:
        """How many calls a node can take at most: the first, and one for each thing that may be spent."""
        return 1 + self.retries + self.repairs + self.reopenings


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is done next, and why, in one sentence for the record."""

    move: AfterFailure
    reason: str


LIMITS = Limits()


def decide_repair(history: Sequence[Failure], newest: Failure, limits: Limits = LIMITS) -> Decision:
    """Decide what is done about a node after a call of it failed.

    Args:
        history: the failures of the node before this one, oldest first, those of an earlier process too.
    """
    move, limit_name, why = _FOLLOWS[newest.kind]
    limit: int = getattr(limits, limit_name)
    number = 1 + sum(failure.kind is newest.kind for failure in history)
    if number > limit:
        return Decision(move=AfterFailure.GIVE_UP, reason=f"all {limit_name} are spent: {limit} of {limit}")
    return Decision(move=move, reason=f"{why}: {number} of {limit} {limit_name}")


def refusal_of_repeat(history: Sequence[Failure], call: str) -> str | None:
    """Say why a call may not be made because it failed by its input before; None where it may."""
    if any(failure.call == call and failure.kind is ErrorKind.INPUT for failure in history):
        return "the same call with the same arguments failed by its input; change it before it is made again"
    return None


def ways_on(*, other_routes: Sequence[str] = (), may_ask: bool = False) -> tuple[WayOn, ...]:
    """Give the ways around an unresolved node, the one to prefer first; reporting it is always open."""
    ways = (
        (WayOn.OTHER_ROUTE, bool(other_routes)),
        (WayOn.ASK, may_ask),
        (WayOn.REPORT_MISSING, True),
    )
    return tuple(way for way, is_open in ways if is_open)


_FOLLOWS = {
    ErrorKind.TRANSIENT: (AfterFailure.RETRY, "retries", "the failure may pass by itself"),
    ErrorKind.INPUT: (AfterFailure.REPAIR, "repairs", "what the call asks has to change"),
    ErrorKind.CONTRADICTION: (AfterFailure.REOPEN, "reopenings", "another candidate is looked for"),
}
