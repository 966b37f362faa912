"""How is a trajectory started, run, and taken up again after a failure?

Chapter: 003, "Play the trace below"; "This division forms the state-machine boundary".

Idea: the front door. It starts a trajectory with checkpoint v1, walks it until it is completed or paused, and
records which policy somebody chose. Taking it up in another process is the same call on the same ledger.

    harness = Harness(bench, desk)
    harness.start("film-1", request, limits)
    harness.run("film-1")                    # "paused": the memory search timed out
    harness.recover("film-1", Policy.RESUME)
    harness.run("film-1")                    # "completed"

Always true:
  HA1. Checkpoint v1 holds the request, and is recorded with the start or not at all.
  HA2. A recovery is recorded before anything of it is done, with the error that it answers; so is the way
       around a film that stayed missing.
  HA3. A recovery is for the performer of the request, and one at a time: of two, one is told so.

Not here: the stages (`run.turns`, `run.validating`), what the policies schedule (`decide.recovery`), which
ways are open (`decide.ways`).
"""

from __future__ import annotations

from typing import Any

from codeai_lab.decide.checkpoints import COMMITTED, Checkpoint
from codeai_lab.decide.folding import STARTED
from codeai_lab.decide.plan import Budget
from codeai_lab.decide.recovery import POLICIES, Policy, Schedule, fallback_words
from codeai_lab.decide.repair import WayOn
from codeai_lab.decide.states import RequestState, WorkingState
from codeai_lab.decide.trajectory import TrajectoryLimits, TrajectoryState
from codeai_lab.decide.ways import missing_film, offered_ways, other_path, words_of_other_path
from codeai_lab.errors import RefusedRequestError
from codeai_lab.run.facts import Bench
from codeai_lab.run.sources import ask_authority, require_performer
from codeai_lab.run.trajectory import Desk, Part, Stage, TrajectoryWalk, record, state_of
from codeai_lab.run.turns import ask, attempt, observe, read_state
from codeai_lab.run.validating import commit, validating
from codeai_lab.store.protocol import Unchanged

FIRST: tuple[Stage, ...] = (ask_authority,)
TURN: tuple[Stage, ...] = (read_state, attempt, ask, observe, validating(), commit)


class Harness:
    """Runs trajectories on one bench, for whoever sits at the desk.

    Args:
        turn: the stages of a turn.
    """

    def __init__(self, bench: Bench, desk: Desk, *, turn: tuple[Stage, ...] = TURN) -> None:
        self._bench = bench
        self._desk = desk
        self._turn = turn

    def start(
        self,
        trajectory_id: str,
        request: RequestState,
        limits: TrajectoryLimits,
        *,
        memory_refs: tuple[str, ...] = (),
    ) -> None:
        """Record the request as checkpoint v1 (HA1).

        Args:
            memory_refs: ids of durable memories that were looked up for this request.
        Raises: RefusedRequestError (definite) for a name that is taken.
        """
        first = Checkpoint(
            version=1,
            request=request,
            working=WorkingState(plan=None, status={}, budget=Budget(calls=limits.calls, spent=0)),
            memory_refs=memory_refs,
        )
        said = {"trajectory_id": trajectory_id, "request": request.as_json(), "limits": limits.as_json()}
        started = self._bench.draft(trajectory_id, STARTED, said)
        committed = self._bench.draft(trajectory_id, COMMITTED, first.as_json(), cause=started.event_id)
        unused = Unchanged(stream=trajectory_id, last_seq=0)
        if not self._bench.ledger.append(started, committed, unless_changed=[unused]):
            raise RefusedRequestError("This name belongs to an earlier trajectory; give every one its own.")

    def walk(self, trajectory_id: str, *, asks_anew: bool = True) -> TrajectoryWalk:
        """Give the walk of a trajectory, standing wherever its record ends; nothing has happened yet.

        Args:
            asks_anew: False where the same process goes on right after another walk of its own, whose
                judgement of saved sources still stands.
        Raises: RefusedRequestError (definite) for one that is not recorded.
        """
        first = FIRST if asks_anew else ()
        return TrajectoryWalk(self._bench, trajectory_id, self._desk, first=first, turn=self._turn)

    def run(self, trajectory_id: str) -> str:
        """Walk on until the trajectory is `completed` or `paused`, and say which.

        Raises: as `TrajectoryWalk.step`.
        """
        return self.walk(trajectory_id).run()

    def state(self, trajectory_id: str) -> TrajectoryState:
        """Read where a trajectory stands; nothing is recorded."""
        return state_of(self._bench, trajectory_id)

    def choices(self, trajectory_id: str) -> tuple[Schedule, ...]:
        """Give what each policy would schedule now; () where nothing has failed."""
        state = self.state(trajectory_id)
        return tuple(schedule for choose in POLICIES.values() if (schedule := choose(state)))

    def choose_way(self, trajectory_id: str, way: WayOn | str, *, query: str | None = None) -> None:
        """Record what a person chose for the film that stayed missing (HA2).

        Args:
            query: the reader's answer where they were asked: how to search instead.
        Raises: RefusedRequestError (definite) for a way that is not open now, or where somebody else went on
            meanwhile; NotPermittedError (definite) for another performer.
        """
        state = self.state(trajectory_id)
        require_performer(state, self._desk)
        node, chosen = missing_film(state), WayOn(way)
        if node is None or chosen not in offered_ways(state):
            raise RefusedRequestError(f"The way {chosen} is not open here; no film waits for it.")
        answer = query if chosen is WayOn.ASK else None
        parts: list[Part] = [("way.chosen", {"node": node, "way": str(chosen), "query": answer})]
        if chosen is WayOn.OTHER_ROUTE and (detour := other_path(state, node)):
            parts.append(("fallback.used", words_of_other_path(state, detour)))
        record(self._bench, state, *parts)

    def recover(self, trajectory_id: str, policy: Policy | str) -> Schedule:
        """Record the policy that was chosen after a failure, and give its schedule (HA2).

        Raises: RefusedRequestError (definite) where nothing has failed, there is no other path, or somebody
            else went on meanwhile; NotPermittedError (definite) for another performer.
        """
        state = self.state(trajectory_id)
        require_performer(state, self._desk)
        schedule = POLICIES[Policy(policy)](state)
        if schedule is None:
            raise RefusedRequestError(
                f"The policy {policy} has nothing to do here: nothing failed, or there is no other path."
            )
        failed = next(
            event
            for event in self._bench.ledger.read(trajectory_id)
            if event.kind == "call.failed" and event.payload["call_id"] == schedule.failed.call_id
        )
        record(self._bench, state, *_chosen(state, schedule), cause=failed.event_id)
        return schedule


def _chosen(state: TrajectoryState, schedule: Schedule) -> list[Part]:
    said: dict[str, Any] = {
        "policy": str(schedule.policy),
        "failed_call_id": schedule.failed.call_id,
        "original_error": schedule.failed.error,
        "from_version": schedule.from_version,
        "discards": list(schedule.discards),
        "keeps": list(schedule.keeps),
    }
    parts: list[Part] = [("recovery.started", said)]
    if schedule.detour is not None:
        parts.append(("fallback.used", fallback_words(state, schedule.detour)))
    return parts
