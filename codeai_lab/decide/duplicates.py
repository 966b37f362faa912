"""What can go wrong between a request and its answer, and what stands between a retry and a second effect?

Chapter: 004, retry, replay and duplicate; 000, section 15.7: a timeout does not say that nothing happened.

Idea: an attempt that had its effect and was not answered is followed by another one. Three things make an
answer stay away, and one number says how often: it is lost, the server dies before it has recorded the
effect, or the service takes longer than the timeout. The same number under three models, and eight
protections: what helps against one cause does nothing against another.

Always true:
  DC1. A case is made of plain values, each inside its meaning, or is refused in one sentence.
  DC2. Two cases that differ have different names.

Not here: what a case comes to (`decide.duplicate_laws` in theory, `explore.duplicates` in trials).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from codeai_lab.errors import RefusedRequestError

MOST_ATTEMPTS = 1_000


class Model(StrEnum):
    """Why an attempt that had its effect is not answered."""

    LOSS = "loss"  # the answer is lost on its way
    CRASH = "crash"  # the server dies between the effect and the record of it
    SLOW = "slow"  # the service takes longer than the timeout, and goes on


class Protection(StrEnum):
    """What stands between a retry and a second effect; each row of the chapter's ladder."""

    NONE = "none"
    KEY_ONLY = "key-only"  # look up, act, record
    KEY_FINGERPRINT = "key+fingerprint"  # the same; another operation under the same key is refused
    CLAIM = "claim"  # a durable claim before the effect, which nobody may take over
    CLAIM_LEASE = "claim+lease"  # the claim ends after a while, and the next attempt acts
    CLAIM_RECONCILE = "claim+reconcile"  # the same; the next attempt asks the effect system first
    EFFECT_SIDE = "effect-side"  # the effect system drops what it remembers
    ATOMIC = "atomic"  # effect and record in one write


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request, its attempts, and what can go wrong with each of them.

    Args:
        attempts: how often the client tries at most, the first time included; the next one follows a timeout.
        response_loss: the probability that an attempt that had its effect is not answered in time. Under
            `atomic` in the model `crash`, where nothing lies between effect and record, the server dies
            with this probability after both.
        request_loss: the probability that an attempt never arrives; 0 in the model `slow`.
        crash_before: in the model `crash`, the probability that the server dies between claim and effect.
        collision: the probability that the key belongs to another operation already. All but `none` look,
            and all but `key-only` find out.
        lease: how many timeouts a claim lasts, for the two protections whose claim ends.
        retention: through how many further attempts the effect system remembers a key; None is for ever.

    Raises: RefusedRequestError (definite) for values outside these meanings.
    """

    model: Model
    protection: Protection
    attempts: int
    response_loss: float
    request_loss: float = 0.0
    crash_before: float = 0.0
    collision: float = 0.0
    lease: int = 1
    retention: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", _named(Model, "models", self.model))
        object.__setattr__(self, "protection", _named(Protection, "protections", self.protection))
        _require_whole("number of attempts", self.attempts, 1)
        _require_whole("lease", self.lease, 1)
        if self.retention is not None:
            _require_whole("retention", self.retention, 0)
        for name in ("response_loss", "request_loss", "crash_before", "collision"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise RefusedRequestError(f"The {name} must be a probability, from 0 to 1.")
            object.__setattr__(self, name, float(value))
        if self.model is Model.SLOW and self.request_loss:
            raise RefusedRequestError("In the model slow nothing is lost: leave request_loss at 0.")
        if self.model is not Model.CRASH and self.crash_before:
            raise RefusedRequestError("Only in the model crash does a server die: leave crash_before at 0.")

    @property
    def name(self) -> str:
        """What tells it from all others: the five that each case has, and the rest where it is not usual."""
        parts = [self.model, self.protection, self.attempts, self.response_loss, self.request_loss]
        unusual = {
            "before": self.crash_before or None,
            "collision": self.collision or None,
            "lease": self.lease if self.lease != 1 else None,
            "retention": self.retention,
        }
        parts += [f"{name} {value}" for name, value in unusual.items() if value is not None]
        return " ".join(map(str, parts))


def late(*, service: float, timeout: float) -> float:
    """Give P(S > T) for a service time S that is exponential: the response loss of the model `slow`."""
    if not (0 < service < math.inf and 0 <= timeout < math.inf):
        raise RefusedRequestError("The service time must be above 0, the timeout 0 or more, both finite.")
    return math.exp(-timeout / service)


def _named(kind: type[StrEnum], plural: str, value: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise RefusedRequestError(f"The {plural} of duplicates are {', '.join(kind)}.") from None


def _require_whole(name: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value <= MOST_ATTEMPTS:
        raise RefusedRequestError(f"The {name} must be a whole number from {least} to {MOST_ATTEMPTS}.")
