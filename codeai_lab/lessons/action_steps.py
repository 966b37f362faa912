"""A process dies between two stages. What can the next one know, and what does it do?

Chapter: 004, "Where the cache stops": the gap between the effect and its record, entered on foot.

Idea: one request under a rule set is moved stage by stage, and at every boundary its process may die. Then
somebody may ask the world, or come back with the same key from a new process, which may die as well. The
ledger, the world and what the record alone allows to say stand beside one another at each mark.

    steps = ActionSteps(LAB)
    stepper(steps, script=[death_after(LAB, "perform")])

Always true:
  AS1. A boundary is one between two stages; nothing is alive after a death.
  AS2. Effects are counted by the world; what the record says is projected from its events alone.

Not here: all boundaries at one time (`lessons.crash_points`), two requests that move at the same time
(`lessons.schedule_steps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from codeai_lab.decide.authority import Authority
from codeai_lab.decide.projection import project_action_state, project_open_effects
from codeai_lab.decide.stepping import Choice, Frame, MarkKind
from codeai_lab.explore.crash_points import judge
from codeai_lab.explore.moments import Moment, Race, told
from codeai_lab.explore.protocols import Composed, composed
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import Revision
from codeai_lab.run.walk import Walk

GO_ON, DIE, AGAIN, ASK, STOP = "go on", "die", "again", "ask", "stop"
_BETWEEN = {
    AGAIN: Choice(name=AGAIN, label="The same key comes again", meaning="from a new process"),
    ASK: Choice(name=ASK, label="Ask the world first", meaning="and record its verdict; nothing is repeated"),
    STOP: Choice(name=STOP, label="Nobody comes back", meaning="the record stays as it is"),
}
_REFUSED = {"refused", "in_progress", "denied"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the story stands.

    Args:
        request: the number of the request that is under way, or was the last one to be.
        before: the stage before which that request stands; None when it is over or its process is dead.
        deaths: the stages after which a process died, in order.
        is_over: nobody comes any more.
    """

    moment: Moment
    mark: str
    kind: MarkKind
    headline: str
    request: int = 0
    before: str | None
    deaths: tuple[str, ...] = ()
    is_over: bool = False


class ActionSteps:
    """One request after another under one rule set, all with one key, to be moved by a person."""

    def __init__(self, rules: Revision | Composed, *, requests: int = 2) -> None:
        """Take a rule set, and how many requests may come: 1 to 4."""
        self._race = Race(composed(rules), requests)
        self._requests = requests

    @property
    def title(self) -> str:
        """The name of what is stepped."""
        return f"One action under the rules {self._race.rules.name}, stage by stage"

    def start(self) -> Standing:
        """Give the moment at which the first request stands before its first stage."""
        moment = self._race.start()
        before = moment.walks[0].next_stage
        return Standing(
            moment=moment,
            mark="asked",
            kind=MarkKind.START,
            headline=f"Request 1 stands before {before}; nothing has happened.",
            before=before,
        )

    def advance(self, state: Standing, choice: str | None = None) -> Standing:
        """Take the next stage, let the process die, or let somebody come back, as chosen.

        Raises: ValueError when nobody comes any more, or the choice is not offered (definite).
        """
        if choice not in {one.name for one in self._choices(state)}:
            raise ValueError("the story is over" if state.is_over else "this choice is not offered here")
        ways = {
            GO_ON: self._gone_on,
            DIE: self._dead,
            AGAIN: self._again,
            ASK: self._asked,
            STOP: self._stopped,
        }
        after = ways[choice](state)
        nobody_is_left = after.request + 1 == self._requests and after.before is None
        return replace(after, is_over=True, kind=MarkKind.END) if nobody_is_left else after

    def frame(self, state: Standing) -> Frame:
        """Say what is in the ledger, what is in the world, and what the record alone allows to say."""
        moment = state.moment
        kinds = ", ".join(event.kind for event in moment.events) or "nothing"
        where = f"stands before {state.before}" if state.before else f"is told: {_told(state)}"
        return Frame(
            mark=state.mark,
            kind=state.kind,
            headline=state.headline,
            facts=(
                (f"request {state.request + 1}", where),
                ("the ledger holds", kinds),
                ("the world shows", _effects(moment.effects)),
                ("the record alone says", _recorded(moment)),
            ),
            choices=self._choices(state),
            is_over=state.is_over,
            outcome=self._outcome(state) if state.is_over else {},
        )

    # --- the ways on -------------------------------------------------------------------------------------

    def _choices(self, state: Standing) -> tuple[Choice, ...]:
        if state.is_over:
            return ()
        if state.before is not None:
            return (
                Choice(name=GO_ON, label=f"Go on: {state.before}"),
                Choice(name=DIE, label="The process dies here", meaning="what was in memory is gone"),
            )
        may_come = state.request + 1 < self._requests
        may_ask = any(project_open_effects(state.moment.events))
        return tuple(_BETWEEN[name] for name in [AGAIN] * may_come + [ASK] * may_ask + [STOP])

    def _gone_on(self, state: Standing) -> Standing:
        moment = self._race.after(state.moment, state.request)
        walk = moment.walks[state.request]
        recorded = [event.kind for event in moment.events[len(state.moment.events) :]]
        said = f"Request {state.request + 1} took {state.before}"
        said += f" and recorded {', '.join(recorded)}." if recorded else "."
        if moment.effects > state.moment.effects:
            said += f" The world now shows {_effects(moment.effects)}."
        kind = MarkKind.STEP
        if walk.is_over:
            said += f" Its caller is told: {told(walk)}."
            kind = MarkKind.REFUSAL if told(walk) in _REFUSED else MarkKind.STEP
        elif moment.effects > max(1, state.moment.effects):
            kind = MarkKind.FAILURE
        mark = str(state.before)
        return replace(state, moment=moment, mark=mark, kind=kind, headline=said, before=walk.next_stage)

    def _dead(self, state: Standing) -> Standing:
        stages = self._race.rules.revision.stage_names
        place = stages.index(str(state.before))
        after = stages[place - 1] if place else "nothing"
        return replace(
            state,
            moment=replace(state.moment, alive=frozenset()),
            mark="dies",
            kind=MarkKind.FAILURE,
            headline=f"The process of request {state.request + 1} dies after {after}; nobody is told.",
            before=None,
            deaths=(*state.deaths, after),
        )

    def _again(self, state: Standing) -> Standing:
        walk: Walk = state.moment.walks[state.request + 1]
        return replace(
            state,
            mark=AGAIN,
            kind=MarkKind.CHOICE,
            headline=f"Request {state.request + 2} has the same key and stands before {walk.next_stage}.",
            request=state.request + 1,
            before=walk.next_stage,
        )

    def _asked(self, state: Standing) -> Standing:
        race = self._race
        race.go_to(state.moment)
        verdicts = [
            race.runtime.reconcile_action(
                one.action_id, authority=Authority.of(RECONCILE), effect_lookup=race.world
            ).verdict
            for one in project_open_effects(state.moment.events)
        ]
        return replace(
            state,
            moment=replace(state.moment, events=race.ledger.snapshot()),
            mark=ASK,
            kind=MarkKind.CHOICE,
            headline=f"The world was asked; the verdict is on record: {', '.join(map(str, verdicts))}.",
        )

    def _stopped(self, state: Standing) -> Standing:
        return replace(
            state,
            mark=STOP,
            kind=MarkKind.END,
            headline=f"Nobody comes back. The world shows {_effects(state.moment.effects)}.",
            is_over=True,
        )

    def _outcome(self, state: Standing) -> dict[str, str | int | bool]:
        effects = state.moment.effects
        return {
            "rules": self._race.rules.name,
            "died after": ", ".join(state.deaths) or "-",
            "effects": effects,
            "the last caller was told": _told(state),
            "verdict": str(judge(effects, _told(state))),
        }


def death_after(rules: Revision | Composed, stage: str, *, then: str = AGAIN) -> tuple[str, ...]:
    """Give the choices by which a request dies after a stage, and what comes then goes on to its end.

    Args:
        stage: how the stage's name begins, as "perform".
    """
    names = composed(rules).revision.stage_names
    place = next(place for place, name in enumerate(names) if name.startswith(stage))
    return (*[GO_ON] * (place + 1), DIE, then, *([GO_ON] if then == AGAIN else []))


def _told(state: Standing) -> str:
    """Say what the caller of the last request was told."""
    walk = state.moment.walks[state.request]
    return told(walk) if walk.is_over else "nothing"


def _effects(number: int) -> str:
    return {0: "no effect", 1: "1 effect"}.get(number, f"{number} effects")


def _recorded(moment: Moment) -> str:
    """Say, for each request on record, what the record establishes."""
    said = []
    for number, walk in enumerate(moment.walks, start=1):
        own = [event for event in moment.events if event.stream_id == walk.facts.request.action_id]
        if own:
            known = project_action_state(own)
            said.append(f"request {number}: effect {known.effect_state}, next {known.next_operation}")
    return "; ".join(said) or "nothing"
