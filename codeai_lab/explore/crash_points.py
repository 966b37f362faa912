"""A request dies between two steps. What does the next one do, and what is then true?

Chapter: 004, "Where the cache stops": its two time lines, and "Where it is still weak" 2.

Idea: a walk that is never moved again is a crash. It is dropped at every boundary of a rule set, the process
with it: what is in the ledger and in the world stays, what was in memory is gone. Then somebody follows up.

    same-key          submits again under the same key
    new-key           submits again under a fresh one
    reconcile-first   asks the effect system about what the record leaves open, and submits only what is left

    more than one effect                                 duplicate
    the caller is told to wait for one who is dead       stuck
    the caller is told that it succeeded: one effect     safe
                                          none           lost
    the caller is told that the effect is unknown        unknown

Always true:
  CP1. Effects are counted by the world; the answer is only compared with them.
  CP2. Nothing is alive after a crash.
  CP3. A boundary is one between two stages. A crash inside an append is the ledger's business; one inside the
       effect leaves what a crash before or after it leaves.

Not here: really killed processes (`tests/real`), walks that go on beside one another (`explore.schedules`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.projection import project_open_effects
from codeai_lab.errors import LabError
from codeai_lab.explore.moments import Moment, Race, move, runtime_of, submit, told
from codeai_lab.explore.protocols import Composed, composed
from codeai_lab.explore.worlds import EffectSystem
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import Revision
from codeai_lab.run.walk import Walk
from codeai_lab.store.memory import MemoryLedger
from codeai_lab.store.protocol import Ledger

NOTHING = "nothing"  # the name of the boundary before the first stage


class FollowUp(StrEnum):
    """What somebody does after a crash."""

    SAME_KEY = "same-key"
    NEW_KEY = "new-key"
    RECONCILE_FIRST = "reconcile-first"


class Verdict(StrEnum):
    """What is true in the end."""

    SAFE = "safe"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    LOST = "lost"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashPoint:
    """What became of one request that was dropped, or of two in a row, and of the follow-up.

    Args:
        after: the stages after which they were dropped, in order; `nothing` before the first.
        answer: what whoever followed up was told.
    """

    after: tuple[str, ...]
    follow_up: FollowUp
    effects: int
    answer: str

    @property
    def verdict(self) -> Verdict:
        return judge(self.effects, self.answer)


def crash_points(
    rules: Revision | Composed, *, follow_ups: tuple[FollowUp, ...] = tuple(FollowUp)
) -> tuple[CrashPoint, ...]:
    """Drop one request at every boundary of a rule set, and follow up in each way."""
    return tuple(point for follow_up in follow_ups for point in _sweep(composed(rules), (), follow_up))


def two_crashes(
    rules: Revision | Composed, *, follow_up: FollowUp = FollowUp.SAME_KEY
) -> tuple[CrashPoint, ...]:
    """Drop a request at every boundary, then the same-key retry of it at every boundary, and follow up."""
    rules = composed(rules)
    points: list[CrashPoint] = []
    steps, over = 0, False
    while not over:
        points += _sweep(rules, (steps,), follow_up)
        over = Scene(rules).crash(steps)
        steps += 1
    return tuple(points)


def crashes_everywhere(rules: Revision | Composed, submissions: int) -> dict[int, int]:
    """Let the process die after every prefix of every schedule, then submit once more under the same key.

    Returns: number of effects in the end -> number of prefixes, exact.
    """
    race = Race(composed(rules), submissions)
    known: dict[Hashable, Counter[int]] = {}

    def effects(moment: Moment) -> Counter[int]:
        like, _ = race.likeness(moment)
        if like not in known:
            counts = Counter([_effects_after_a_retry(race, moment)])
            for number in race.can_move(moment):
                counts.update(effects(race.after(moment, number)))
            known[like] = counts
        return known[like]

    return dict(sorted(effects(race.start()).items()))


def judge(effects: int, answer: str) -> Verdict:
    """Compare what the world shows with what the last caller was told."""
    if effects > 1:
        return Verdict.DUPLICATE
    if answer == "in_progress":
        return Verdict.STUCK
    if answer in ("succeeded", "replayed", "reconciled"):
        return Verdict.SAFE if effects else Verdict.LOST
    return Verdict.UNKNOWN


class Scene:
    """A ledger and a world on which one request after another is dropped, until somebody follows up."""

    def __init__(
        self,
        rules: Composed,
        *,
        ledger: Ledger | None = None,
        world: EffectSystem | None = None,
        name: str = "crash",
    ) -> None:
        """Set a scene, in memory where nothing else is given; `name` begins the ids of its events."""
        self.ledger = ledger or MemoryLedger(ledger_id="crash")
        self.world = world or rules.new_world()
        self.after: tuple[str, ...] = ()
        self._rules = rules
        self._runtime = runtime_of(rules, self.ledger, name=name)

    def crash(self, steps: int) -> bool:
        """Submit, take so many steps and die; give whether the walk was over by then."""
        walk = self.go(steps)
        over = walk.is_over
        walk.close()
        return over

    def go(self, steps: int) -> Walk:
        """Submit, take so many steps, and give the walk where it stands then."""
        walk = submit(self._runtime, f"r{len(self.after)}", self.world)
        place = NOTHING
        while steps and not walk.is_over:
            place = move(self._rules, walk)
            steps -= 1
        self.after += (place,)
        return walk

    def follow_up(self, how: FollowUp) -> CrashPoint:
        """Do what a caller does who comes back after the crash."""
        return CrashPoint(
            after=self.after, follow_up=how, answer=self._follow_up(how), effects=len(self.world.receipts())
        )

    def _follow_up(self, how: FollowUp) -> str:
        if how is FollowUp.RECONCILE_FIRST and (answer := self._reconcile()):
            return answer
        key = "fresh key" if how is FollowUp.NEW_KEY else "key"
        return _run(submit(self._runtime, "again", self.world, key=key))

    def _reconcile(self) -> str | None:
        """Ask about everything that the record leaves open; None when there is still something to submit."""
        answer = None
        for open_effect in project_open_effects(self.ledger.read_all()):
            judged = self._runtime.reconcile_action(
                open_effect.action_id, authority=Authority.of(RECONCILE), effect_lookup=self.world
            )
            if judged.verdict == "effect_confirmed":
                answer = "reconciled"
            elif judged.verdict != "no_effect_confirmed":
                return "refused"
        return answer


def _sweep(rules: Composed, before: tuple[int, ...], follow_up: FollowUp) -> list[CrashPoint]:
    """Drop a request at every boundary that it comes to, on scenes with the same crashes before it."""
    points: list[CrashPoint] = []
    over = False
    while not over:
        scene = Scene(rules)
        for steps in before:
            scene.crash(steps)
        over = scene.crash(len(points))
        points.append(scene.follow_up(follow_up))
    return points


def _effects_after_a_retry(race: Race, moment: Moment) -> int:
    race.go_to(moment)
    race.ledger.live_actions.clear()
    _run(submit(race.runtime, "again", race.world))
    return len(race.world.receipts())


def _run(walk: Walk) -> str:
    """Run a walk to its end and say what its caller was told."""
    with suppress(LabError):  # an exception is an answer too
        walk.run()
    return told(walk)
