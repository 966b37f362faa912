"""How many effects do a great many retried requests have, attempt by attempt?

Chapter: 004, retry, replay and duplicate; 000, section 15.7.

Idea: a trial is one request. All trials take their first attempt together, then those that were not answered
take their second, and so on, as places of a few arrays. What an attempt finds (a record, a claim, a memory of
the effect) decides what it does; dice decide only what is lost and who dies. Only how often each number of
effects came is kept, so that any number of trials fits into the same memory.

Always true:
  DU1. Nothing here knows the closed forms; every effect that is counted was reached by an attempt.
  DU2. The same seed, case and part give the same counts, in any process, after any other part.
  DU3. A part holds `TOGETHER` trials at a time and no more, however many it has.

Not here: the cases (`decide.duplicates`), what theory says of them (`decide.duplicate_laws`), the parts of a
long run (`explore.sweeps`), every interleaving of a few steps (`explore.schedules`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codeai_lab.decide.duplicates import Case, Model, Protection
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream

TOGETHER = 64_000  # so many stay in the cache; more at a time would take longer
FOR_EVER = 30_000  # an attempt number that is never reached

Bools = NDArray[np.bool_]
Attempts = NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What a protection does.

    Args:
        records: keeps what was completed, and answers from it.
        claims, ends: claims before it acts; the claim ends, and may be taken over.
        reconciles: asks the effect system before it takes over.
        remembers: the effect system drops a key that it remembers.
        together: effect and record are one write, which is not made where a record is.
    """

    records: bool = False
    claims: bool = False
    ends: bool = False
    reconciles: bool = False
    remembers: bool = False
    together: bool = False


RULES = {
    Protection.NONE: _Rules(),
    Protection.KEY_ONLY: _Rules(records=True),
    Protection.KEY_FINGERPRINT: _Rules(records=True),
    Protection.CLAIM: _Rules(records=True, claims=True),
    Protection.CLAIM_LEASE: _Rules(records=True, claims=True, ends=True),
    Protection.CLAIM_RECONCILE: _Rules(records=True, claims=True, ends=True, reconciles=True),
    Protection.EFFECT_SIDE: _Rules(remembers=True),
    Protection.ATOMIC: _Rules(records=True, together=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What some trials came to.

    Args:
        effects: at place k, how many trials had k effects.
        no_answer, stuck, met_foreign: how many trials were never answered; left a claim of a dead process
            for ever; found that their key belongs to another operation.
    """

    effects: tuple[int, ...]
    no_answer: int
    stuck: int
    met_foreign: int

    @property
    def trials(self) -> int:
        return sum(self.effects)

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            effects=tuple(one + two for one, two in zip(self.effects, other.effects, strict=True)),
            no_answer=self.no_answer + other.no_answer,
            stuck=self.stuck + other.stuck,
            met_foreign=self.met_foreign + other.met_foreign,
        )


def retry(case: Case, *, trials: int, seed: int, part: int = 0) -> Counted:
    """Let so many requests be retried until each is answered or its attempts are used up.

    Args:
        part: which part of a longer run this is; each has a stream of its own.

    Raises: RefusedRequestError (definite) for a number of trials below 1, and for a seed that is none.
    """
    if type(trials) is not int or trials < 1:
        raise RefusedRequestError("The number of trials must be a whole number from 1.")
    dice = stream(seed, "duplicates", case.name, part)
    counted = Counted(effects=(0,) * (case.attempts + 1), no_answer=0, stuck=0, met_foreign=0)
    for start in range(0, trials, TOGETHER):
        counted += _together(case, min(TOGETHER, trials - start), dice)
    return counted


def _together(case: Case, trials: int, dice: np.random.Generator) -> Counted:
    """Take the attempts of `trials` requests, all first ones, then all second ones, until none is left."""
    requests = _Requests(case, trials, dice)
    effects = np.zeros(case.attempts + 1, np.int64)
    met_foreign = 0
    for attempt in range(case.attempts):
        answered = requests.late(attempt) if case.model is Model.SLOW else requests.exchange(attempt, dice)
        # compress, here and below: taking by a mask in brackets costs ten times as much
        effects += np.bincount(requests.effects.compress(answered), minlength=effects.size)
        met_foreign += requests.met_foreign(answered)
        requests.keep(~answered)
    everyone = np.ones(requests.effects.size, np.bool_)
    effects += np.bincount(requests.effects, minlength=effects.size)
    return Counted(
        effects=tuple(effects.tolist()),
        no_answer=requests.effects.size,
        stuck=requests.stuck(),
        met_foreign=met_foreign + requests.met_foreign(everyone),
    )


class _Requests:
    """The requests that are not answered yet, a place each, and what stands about them in the systems."""

    def __init__(self, case: Case, trials: int, dice: np.random.Generator) -> None:
        self._case, self._rules = case, RULES[case.protection]
        collision = 0.0 if case.protection is Protection.NONE else case.collision
        foreign = _happens(dice, collision, trials)
        # A foreign key finds the record of another operation.
        self._of: dict[str, Any] = {"effects": np.zeros(trials, np.int16), "recorded": foreign}
        if collision:
            self._of |= {"foreign": foreign.copy(), "arrived": np.zeros(trials, np.bool_)}
        if self._rules.claims:
            self._of["free_from"] = np.zeros(trials, np.int16)
        if self._rules.remembers:
            self._of["forgotten_from"] = np.zeros(trials, np.int16)
        if case.model is Model.SLOW:
            self._of["service"] = dice.standard_exponential(trials)

    @property
    def effects(self) -> Attempts:
        effects: Attempts = self._of["effects"]
        return effects

    def keep(self, which: Bools) -> None:
        """Forget the requests that are over."""
        self._of = {name: values.compress(which) for name, values in self._of.items()}

    def exchange(self, attempt: int, dice: np.random.Generator) -> Bools:
        """Send the next attempt of each, the one before being over; say which were answered."""
        case, rules, count = self._case, self._rules, self.effects.size
        crashing = case.model is Model.CRASH
        arrives = ~_happens(dice, case.request_loss, count)
        replays = arrives & self._of["recorded"]
        enters = self._claimed(arrives & ~replays, attempt)
        confirmed = enters & (self.effects > 0) if rules.reconciles else np.zeros(count, np.bool_)
        acts = enters & ~confirmed & ~_happens(dice, case.crash_before, count)
        self._act(acts, attempt)
        completes = acts & ~_happens(dice, case.response_loss if crashing else 0.0, count)
        if rules.records:
            self._of["recorded"] |= (acts if rules.together else completes) | confirmed
        if "arrived" in self._of:
            self._of["arrived"] |= arrives
        heard = ~_happens(dice, 0.0 if crashing else case.response_loss, count)
        answered: Bools = (replays | confirmed | completes) & heard
        return answered

    def late(self, attempt: int) -> Bools:
        """Send the next attempt of each while all before it are still served; say which are answered in time.

        The one service time of a request holds for all its attempts, each of which acts at its end: so the
        first answer is that of the first attempt, and until then no record and no effect is to be found.
        """
        mine = ~self._of["recorded"]
        acts = self._claimed(mine, attempt)
        if self._rules.together:
            acts = acts & (self.effects == 0)  # of all these commits the first is made
        self._act(acts, attempt)
        if "arrived" in self._of:
            self._of["arrived"][:] = True
        timeout = -float(np.log(self._case.response_loss)) if self._case.response_loss else np.inf
        in_time: Bools = ~mine | (self._of["service"] <= (attempt + 1) * timeout)
        return in_time

    def _claimed(self, wanted: Bools, attempt: int) -> Bools:
        """Give which of those that want the key get it; without claims all do."""
        if not self._rules.claims:
            return wanted
        gets: Bools = wanted & (self._of["free_from"] <= attempt)
        free_from = attempt + self._case.lease if self._rules.ends else FOR_EVER
        np.copyto(self._of["free_from"], np.int16(free_from), where=gets)
        return gets

    def _act(self, acts: Bools, attempt: int) -> None:
        """Let the effect happen, unless the effect system remembers the key."""
        if self._rules.remembers:
            acts = acts & (self._of["forgotten_from"] <= attempt)
            retention = self._case.retention
            forgotten_from = FOR_EVER if retention is None else attempt + 1 + retention
            np.copyto(self._of["forgotten_from"], np.int16(forgotten_from), where=acts)
        self._of["effects"] += acts

    def met_foreign(self, which: Bools) -> int:
        """Count those, among these, that arrived under a key of another operation."""
        if "foreign" not in self._of:
            return 0
        return int((which & self._of["foreign"] & self._of["arrived"]).sum())

    def stuck(self) -> int:
        """Count the claims that nobody can take over and whose holder is dead."""
        if self._case.model is not Model.CRASH or "free_from" not in self._of:
            return 0
        return int(((self._of["free_from"] == FOR_EVER) & ~self._of["recorded"]).sum())


def _happens(dice: np.random.Generator, chance: float, count: int) -> Bools:
    """Say for each place whether something of this chance happens; no dice are rolled for what cannot."""
    return dice.random(count) < chance if chance else np.zeros(count, np.bool_)
