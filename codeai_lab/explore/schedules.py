"""How many orders are there in which submissions of one key can move, and in how many does the effect double?

Chapter: 004, "Two threads, one key, two effects"; its probe is one schedule among many.

Idea: a schedule is the sequence of the walks that moved, until all are over. From a moment, every walk that
can move is moved, and what follows is counted; moments that are alike are counted one time (`moments`). The
numbers are exact. Two measures stand side by side: every schedule weighs the same, or a fair coin decides at
each step which of the walks that can move does. Neither is a machine's.

    rules = R_1B3C7A2                       explore(rules).effects        {1: 20, 2: 48600}
    play_schedule(rules, (0, 0, 1, ...), DuckDBLedger(...), CountedWorld())

A count depends on what is one step: one stage. Split a stage in two and there are more schedules; join all
into one and there are two. Under `unguarded` the look-up and the replay are one step, under the chapter's
rule sets two. Where a rule set acts unguarded, with m stages of which p come before the look-up, two
submissions have C(2m, m) schedules, and 2 C(m+p, p) of them have one effect.

Always true:
  SC1. Counts are exact integers, probabilities exact fractions, and the probabilities add up to 1.
  SC2. A walk that must wait is not moved; where none can move and not all are over, the schedule ends stuck.
  SC3. Played step by step on another ledger, a schedule gives the effects and answers that were counted.

Not here: walks that are dropped (`explore.crash_points`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.moments import Moment, Race, movable, move, runtime_of, submit, told
from codeai_lab.explore.protocols import Composed, composed
from codeai_lab.explore.worlds import World
from codeai_lab.run.revisions import Revision
from codeai_lab.store.protocol import Ledger

Schedule = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a schedule can end: the number of effects, and what the callers were told, sorted; "stuck" for one
    that waits for ever.
    """

    effects: int
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many schedules end in one way, how likely a fair coin makes it, and a shortest one of them."""

    schedules: int
    fair_coin: Fraction
    shortest: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """Every way in which a race can end."""

    rules: Composed
    submissions: int
    endings: dict[Ending, Share]
    moments: int

    @property
    def schedules(self) -> int:
        return sum(share.schedules for share in self.endings.values())

    @property
    def effects(self) -> dict[int, int]:
        """Give, for each number of effects, how many schedules have it."""
        counts: Counter[int] = Counter()
        for ending, share in self.endings.items():
            counts[ending.effects] += share.schedules
        return dict(sorted(counts.items()))

    @property
    def fair_coin(self) -> dict[int, Fraction]:
        """Give, for each number of effects, how likely it is when a fair coin decides every step."""
        chances: dict[int, Fraction] = {}
        for ending, share in self.endings.items():
            chances[ending.effects] = chances.get(ending.effects, Fraction(0)) + share.fair_coin
        return dict(sorted(chances.items()))

    @property
    def answers(self) -> dict[tuple[str, ...], int]:
        """Give, for each set of answers, how many schedules end with it."""
        counts: Counter[tuple[str, ...]] = Counter()
        for ending, share in self.endings.items():
            counts[ending.answers] += share.schedules
        return dict(sorted(counts.items()))

    @property
    def shortest_bad(self) -> Schedule | None:
        """Give a schedule with more than one effect, as short as any; None when there is none."""
        bad = [share.shortest for ending, share in self.endings.items() if ending.effects > 1]
        return min(bad, key=_length_first, default=None)


def explore(rules: Revision | Composed, submissions: int = 2) -> Explored:
    """Count every schedule of some submissions of one key, exactly.

    Args:
        submissions: 1 to 4; they differ in nothing but their ids.

    Raises: RefusedRequestError for a rule set whose walks can go round for ever.
    """
    race = Race(composed(rules), submissions)
    known: dict[Hashable, dict[Ending, Share]] = {}
    under_way: set[Hashable] = set()

    def endings(moment: Moment) -> dict[Ending, Share]:
        like, order = race.likeness(moment)
        if like in under_way:
            raise RefusedRequestError(f"Under {race.rules.name} walks can go round for ever.")
        if like not in known:
            under_way.add(like)
            # Kept by place in the likeness's own order: alike moments may number their walks otherwise.
            known[like] = _renumbered(look(moment), {number: place for place, number in enumerate(order)})
            under_way.discard(like)
        return _renumbered(known[like], dict(enumerate(order)))

    def look(moment: Moment) -> dict[Ending, Share]:
        turns = race.can_move(moment)
        if not turns:
            answers = tuple(sorted(answer or "stuck" for answer in moment.answers))
            ending = Ending(effects=moment.effects, answers=answers)
            return {ending: Share(schedules=1, fair_coin=Fraction(1), shortest=())}
        found: dict[Ending, Share] = {}
        for number in turns:
            for ending, share in endings(race.after(moment, number)).items():
                one = Share(
                    schedules=share.schedules,
                    fair_coin=share.fair_coin / len(turns),
                    shortest=(number, *share.shortest),
                )
                found[ending] = one if ending not in found else _added(found[ending], one)
        return found

    return Explored(
        rules=race.rules, submissions=submissions, endings=endings(race.start()), moments=len(known)
    )


def _added(one: Share, other: Share) -> Share:
    return Share(
        schedules=one.schedules + other.schedules,
        fair_coin=one.fair_coin + other.fair_coin,
        shortest=min(one.shortest, other.shortest, key=_length_first),
    )


def _renumbered(endings: dict[Ending, Share], places: dict[int, int]) -> dict[Ending, Share]:
    return {
        ending: Share(
            schedules=share.schedules,
            fair_coin=share.fair_coin,
            shortest=tuple(places[number] for number in share.shortest),
        )
        for ending, share in endings.items()
    }


def _length_first(schedule: Schedule) -> tuple[int, Schedule]:
    return len(schedule), schedule


# --- one schedule at a time ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step that was played: which walk took which stage, what it recorded, the effects so far."""

    walk: int
    stage: str
    recorded: tuple[str, ...]
    effects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A schedule as it was played; `answers` has None for a walk that it left under way."""

    steps: tuple[Step, ...]
    answers: tuple[str | None, ...]
    effects: int
    could_move: tuple[int, ...]

    @property
    def looked_before_acting(self) -> bool:
        """Say whether every look-up came before every effect: the window that the chapter's probe holds
        open."""
        looks = [place for place, step in enumerate(self.steps) if step.stage.startswith("look_up")]
        acts = [place for place, step in enumerate(self.steps) if step.stage.startswith("perform")]
        return bool(looks and acts) and max(looks) < min(acts)


def play_schedule(
    rules: Revision | Composed,
    schedule: Sequence[int],
    ledger: Ledger,
    world: World,
    *,
    submissions: int = 2,
    name: str = "race",
) -> Played:
    """Play one schedule step by step, for real, on any ledger; walks that it leaves under way are dropped.

    Args:
        schedule: the numbers of the walks that move, from 0.
        world: carries out the effects; its receipts are counted.
        name: begins every id and the key, so that a ledger takes many plays.

    Raises: RefusedRequestError for a step of a walk that is over or must wait.
    Touches: the ledger and the world.
    """
    rules = composed(rules)
    runtime = runtime_of(rules, ledger, name=name)
    key = f"{name}/key"
    walks = [submit(runtime, f"{name}/r{n}", world, key=key) for n in range(submissions)]
    before = len(world.receipts())
    steps: list[Step] = []
    try:
        for number in schedule:
            if number not in movable(rules, ledger, walks):
                raise RefusedRequestError(
                    f"Step {len(steps) + 1} moves walk {number}, which cannot move there."
                )
            recorded = len(ledger.find(key))
            stage = move(rules, walks[number])
            steps.append(
                Step(
                    walk=number,
                    stage=stage,
                    recorded=tuple(event.kind for event in ledger.find(key)[recorded:]),
                    effects=len(world.receipts()) - before,
                )
            )
        return Played(
            steps=tuple(steps),
            answers=tuple(told(walk) if walk.is_over else None for walk in walks),
            effects=len(world.receipts()) - before,
            could_move=movable(rules, ledger, walks),
        )
    finally:
        for walk in walks:
            walk.close()


def every_schedule(rules: Revision | Composed, submissions: int = 2) -> Iterator[tuple[Schedule, Moment]]:
    """Give every schedule, in order, with the moment at its end.

    No two moments are taken for alike here, so that this is a check of `explore` that shares none of its
    cleverness, and as slow as that sounds.
    """
    race = Race(composed(rules), submissions)
    waiting: list[tuple[Schedule, Moment]] = [((), race.start())]
    while waiting:
        schedule, moment = waiting.pop()
        turns = race.can_move(moment)
        if not turns:
            yield schedule, moment
        waiting += [((*schedule, number), race.after(moment, number)) for number in reversed(turns)]


def some_schedules(
    rules: Revision | Composed, count: int, *, seed: int, submissions: int = 2
) -> Iterator[tuple[Schedule, Moment]]:
    """Give schedules drawn with a fair coin at every step, and the moment at the end of each."""
    race = Race(composed(rules), submissions)
    coin = random.Random(seed)
    for _ in range(count):
        schedule: Schedule = ()
        moment = race.start()
        while turns := race.can_move(moment):
            number = coin.choice(turns)
            schedule, moment = (*schedule, number), race.after(moment, number)
        yield schedule, moment
