"""How does the harness ask for a write again without asking for another one?

Chapter: 003, "Make repeated writes idempotent": the harness attaches a stable key to every attempt of a
logical action.

Idea: an adapter for `Runtime.execute_action` that sends the request's own key with every attempt. It tries
again only where the service did not answer, so many times and for so long as it was told, and right before
each attempt asks anew who is acting and what they may do.

    attempt 1 --> no answer     the entry may be there
    attempt 2 --> no answer     still nobody knows
    attempt 3 --> 201           the service says that it is there: the one for this key

Always true:
  WC1. All attempts of one action carry the same key and the same payload.
  WC2. Nothing is claimed that the service did not say: without an answer the error is indefinite.
  WC3. No attempt is made by another performer, without a current grant, or after the deadline.
  WC4. Attempts are bounded; time and the pause between two of them are handed in.
  WC5. The look-up only reads, and without a key it cannot tell whose an entry is.

Not here: recording (`run.runtime`); starting the service and asking it (`run.watchlist_line`). That an entry
is absent holds for the moment of the look-up: what is still on its way to the service is not seen, and only
the key keeps it from adding a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeai_lab.clock import Clock, Deadline
from codeai_lab.decide.authority import Authority, PolicyEngine
from codeai_lab.decide.idempotency_key import key_field
from codeai_lab.errors import LabError, RefusedRequestError
from codeai_lab.records import ActionRequest
from codeai_lab.run.watchlist_line import NO_ANSWER, SILENCE_US, WatchlistLine

CAPABILITY = "watchlist.add"
KEY = "request-42/add-eternal-sunshine"
UNSETTLED = {NO_ANSWER, "409"}  # what the service may still come to do, or did without saying so


class WatchlistError(LabError):
    """The entry was not added, or nobody knows; `answers` has what each attempt was answered.

    It is definite only where the service answered every attempt, and none with "still under way".
    """

    def __init__(self, message: str, *, answers: Sequence[str]) -> None:
        super().__init__(message)
        self.answers = tuple(answers)
        self.definite = UNSETTLED.isdisjoint(answers)


class NoAnswerError(WatchlistError):
    """The attempts are spent, and the last one got no answer."""


class TurnedDownError(WatchlistError):
    """The service answered that it did not add the entry; `status` is its status."""

    def __init__(self, status: int, detail: str, *, answers: Sequence[str]) -> None:
        super().__init__(f"The watchlist service answered {status}: {detail}", answers=answers)
        self.status = status


class StoppedError(WatchlistError):
    """No further attempt was permitted; `reason` says which rule refused."""

    def __init__(self, reason: str, *, answers: Sequence[str]) -> None:
        after = f"after {len(answers)} attempts" if answers else "before the first attempt"
        super().__init__(f"Adding to the watchlist was stopped {after}: {reason}.", answers=answers)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is acting at this moment, and what they may do."""

    performer: str
    authority: Authority


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often and how long.

    Args:
        at_most: attempts in all, 1 or more.
        silence_us: how long the service may keep silent in one attempt.
        timeout_us: after which no further attempt begins; None for no such bound.
    """

    at_most: int
    silence_us: int = SILENCE_US
    timeout_us: int | None = None

    def __post_init__(self) -> None:
        if self.at_most < 1 or self.silence_us < 1:
            raise RefusedRequestError("There must be at least one attempt, and time for an answer.")


class WatchlistAdapter:
    """Adds the film that a request's payload names, under the request's own key.

    `answers` has what each attempt of the last execution was answered, a status or that there was none.

    Args:
        caller: says who is acting now; asked right before each attempt.
        pause: called between two attempts; nothing by default.
        with_key: False sends no key, to show what then happens.
    """

    def __init__(
        self,
        line: WatchlistLine,
        *,
        attempts: Attempts,
        caller: Callable[[], Caller],
        clock: Clock,
        policy: PolicyEngine | None = None,
        pause: Callable[[], object] = lambda: None,
        with_key: bool = True,
    ) -> None:
        self._line = line
        self._attempts = attempts
        self._caller = caller
        self._clock = clock
        self._policy = policy or PolicyEngine()
        self._pause = pause
        self._with_key = with_key
        self.answers: list[str] = []

    def execute(self, request: ActionRequest) -> dict[str, Any]:
        """Ask until the service answers or the attempts are spent; give its entry, and every answer.

        Raises: StoppedError, TurnedDownError, NoAnswerError; each says in `definite` whether more is known.
        """
        key = request.idempotency_key if self._with_key else None
        if key is not None:
            key_field(key)
        answers = self.answers = []
        timeout_us = self._attempts.timeout_us
        deadline = None
        if timeout_us is not None:
            deadline = Deadline.after(timeout_us=timeout_us, now_us=self._clock.now_us())
        while len(answers) < self._attempts.at_most:
            if answers:
                self._pause()
            self._require(request, deadline, answers)
            try:
                result = self._line.add(request.payload, key=key, silence_us=self._attempts.silence_us)
            except OSError:
                answers.append(NO_ANSWER)
                continue
            answers.append(str(result.status))
            if result.is_success:
                return {**result.body, "answers": answers}
            if result.status != 409:  # what is under way may still come about
                raise TurnedDownError(result.status, str(result.body.get("detail")), answers=answers)
        if answers[-1] != NO_ANSWER:
            raise TurnedDownError(409, "the first request is still under way.", answers=answers)
        raise NoAnswerError(
            f"The watchlist service gave no answer ({len(answers)} attempts); the entry may be there. "
            "Look it up before asking again.",
            answers=answers,
        )

    def _require(self, request: ActionRequest, deadline: Deadline | None, answers: Sequence[str]) -> None:
        """Return if an attempt may be made at this moment, by whoever acts at this moment (WC3)."""
        now_us = self._clock.now_us()
        caller = self._caller()
        if caller.performer != request.performer:
            raise StoppedError("the request is another performer's", answers=answers)
        judged = self._policy.judge(
            request.capability, caller.authority, performer=caller.performer, now_us=now_us
        )
        if not judged.allowed:
            raise StoppedError(judged.reason, answers=answers)
        if deadline is not None and deadline.has_passed(now_us=now_us):
            raise StoppedError("the deadline has passed", answers=answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchlistLookup:
    """The reading side of the service: what reconciling asks; `key` is the action's own, if it had one."""

    line: WatchlistLine
    key: str | None

    def find(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
        """Give the entry of the key; () where there is none, None where the service's word does not say."""
        if self.key is None:
            return None
        said = self.line.entries(key=self.key)
        if said["under_way"]:
            return None
        found = tuple(said["entries"])
        return found if all(entry["film"] == request["payload"].get("film") for entry in found) else None

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether the entry is on the list."""
        return dict(reference) in self.line.entries()["entries"]
