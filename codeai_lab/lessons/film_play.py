"""How is a story of two films played, whatever the films and whatever fails?

Chapter: 003, "Play the trace below": one request, one failure, and then a choice.

Idea: a story is data: what is asked, which calls fail and how, what may be spent. It is played in one stream
of a ledger. Whoever opens that ledger again goes on where the record ends: tools that have failed by then do
not fail anew, since which call of a tool is the next one is counted from the record.

Always true:
  FP1. Films, words and failures are the story's; another story needs no other code.
  FP2. Ids and clock follow from the story's policy and the process's name; the same play gives the same
       events.

Not here: the chapter's own story and what must come of it (`lessons.film_recovery`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority, PolicyEngine
from codeai_lab.decide.plan import Proposal
from codeai_lab.decide.recovery import POLICIES, Policy
from codeai_lab.decide.states import RequestState
from codeai_lab.decide.trajectory import TrajectoryLimits
from codeai_lab.decide.ways import missing_film
from codeai_lab.records import Event
from codeai_lab.run.facts import Bench
from codeai_lab.run.film_tools import TOOLS, Fault, FilmTools
from codeai_lab.run.films import FILMS
from codeai_lab.run.harness import TURN, Harness
from codeai_lab.run.planner import Planner, ScriptedPlanner
from codeai_lab.run.runtime import counted_ids
from codeai_lab.run.sources import may_read
from codeai_lab.run.trajectory import PAUSED, Desk, Stage
from codeai_lab.store.protocol import Ledger

LESSON = "film-recovery"
STARTED_AT_US = 1_789_603_200_000_000  # 2026-09-17
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """The nth call of a tool, the planner's included, fails so: as `run.film_tools.FaultKind` has it."""

    tool: str
    nth: int
    kind: str = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is asked, what goes wrong, what may be spent.

    Args:
        proposals: what the planner proposes besides its plan.
        memory_refs: ids of durable memories that were looked up for the request.
        answers: branch -> the words that the reader gives when asked about it.
    """

    request: RequestState
    limits: TrajectoryLimits
    fails: tuple[Fails, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    memory_refs: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)

    def seeking(self, node: str, **changes: Any) -> Story:
        """Give the story with one film sought in another way, as `seeking("memory-film", query="")`."""
        sought = tuple(replace(one, **changes) if one.node == node else one for one in self.request.sought)
        return replace(self, request=replace(self.request, sought=sought))


def play(story: Story, ledger: Ledger, *, progress: Progress | None = None) -> list[tuple[Event, ...]]:
    """Play a story under every policy that it offers, each in a stream of its own; give their events.

    Args:
        progress: is told (policy, policies done, policies in all) before each policy.
    """
    played = []
    for done, policy in enumerate(POLICIES):
        if progress is not None:
            progress(str(policy), done, len(POLICIES))
        run = Play(story, policy, ledger)
        offered = run.to_the_failure()
        if offered and policy not in offered:
            continue
        if offered:
            run.recover()
        played.append(run.events)
        if not offered:
            break
    return played


class Play:
    """One story under one policy, in one stream of a ledger; a second one on the same stream goes on there.

    Args:
        process: a name for whoever goes on, so that its ids differ from an earlier one's.
        authority: what may be read now; every film by default.
        planner: in the place of the scripted one; turn: the stages of a turn.
    """

    def __init__(
        self,
        story: Story,
        policy: Policy | str,
        ledger: Ledger,
        *,
        process: str = "",
        authority: Authority | None = None,
        planner: Planner | None = None,
        turn: tuple[Stage, ...] = TURN,
    ) -> None:
        self.story, self.policy = story, Policy(policy)
        self.name = f"film-{self.policy}"
        self._ledger = ledger
        minutes = list(POLICIES).index(self.policy)
        starts_us = max(STARTED_AT_US + minutes * 60_000_000, self._newest_us())
        ids = f"{self.name}{process and '-'}{process}"
        bench = Bench(
            ledger=ledger,
            clock=ManualClock(start_us=starts_us, tick_us=1_000),
            new_id=counted_ids(ids),
            policy=PolicyEngine(),
            rules="film",
            run_id=f"{LESSON}/{self.policy}",
            actor_id="harness",
        )
        self.harness = Harness(
            bench, desk_of(story, self.events, authority=authority, planner=planner), turn=turn
        )
        if not self.events:
            self.harness.start(self.name, story.request, story.limits, memory_refs=story.memory_refs)

    @property
    def events(self) -> tuple[Event, ...]:
        return self._ledger.read(self.name)

    def to_the_failure(self) -> tuple[Policy, ...]:
        """Run until it pauses or is complete, and give the policies that are offered then."""
        if self.harness.run(self.name) != PAUSED:
            return ()
        return tuple(schedule.policy for schedule in self.harness.choices(self.name))

    def recover(self) -> str:
        """Choose the policy, run on, and say how it ended."""
        self.harness.recover(self.name, self.policy)
        return self.harness.run(self.name)

    def choose_way(self, way: str) -> None:
        """Choose what is done about a film that stayed missing; asked, the reader says what the story has."""
        node = missing_film(self.harness.state(self.name))
        self.harness.choose_way(self.name, way, query=self.story.answers.get(node or ""))

    def _newest_us(self) -> int:
        return max((event.recorded_at_us + 1_000 for event in self.events), default=0)


def desk_of(
    story: Story,
    recorded: Sequence[Event] = (),
    *,
    authority: Authority | None = None,
    planner: Planner | None = None,
) -> Desk:
    """Give the tools of a story as they are after what is recorded: what has failed does not fail anew."""
    # Counted are answers: a call that a kill left without one is made again, and fails as it would have.
    tools = {e.payload["call_id"]: e.payload["tool"] for e in recorded if e.kind == "call.started"}
    answers = [event for event in recorded if event.kind in ("call.succeeded", "call.failed")]
    made = Counter(tools[event.payload["call_id"]] for event in answers)
    left = {(one.tool, one.nth - made[one.tool]): one.kind for one in story.fails}
    timeouts = tuple(which for which in left if which[0] not in TOOLS)
    return Desk(
        providers={"primary": FailingTools(left), "mirror": sound_tools(), "planner-2": ScriptedPlanner()},
        planner=planner or ScriptedPlanner(timeouts=timeouts, proposals=story.proposals),
        performer=story.request.performer,
        authority=may_read(film.film_id for film in FILMS) if authority is None else authority,
    )


class FailingTools:
    """The film tools, of which certain calls fail: (tool, n) -> how the nth call of it does."""

    def __init__(self, fails: Mapping[tuple[str, int], str]) -> None:
        self._fails = dict(fails)
        self._made: Counter[str] = Counter()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        self._made[tool] += 1
        kind = self._fails.get((tool, self._made[tool]))
        if kind is None:
            return sound_tools().call(tool, arguments)
        return FilmTools(faults=(Fault(tool=tool, nth=1, kind=kind),)).call(tool, arguments)


@cache
def sound_tools() -> FilmTools:
    """Give the tools without a fault; indexing the corpus takes a moment and is done when first needed."""
    return FilmTools()
