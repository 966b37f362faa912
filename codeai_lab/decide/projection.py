"""What does the history say about an action, and about a key?

Chapter: 004, "Where the cache stops" and "Failure is cached, and that is a decision".

Idea: a projection folds events into a state and adds nothing. Two axes come out: the status, which is what
was reported, and the effect state, which is what the record establishes. An action that started and did not
complete is *unknown*: not failed, not safe to repeat. A FAILED after the start is unknown too.

    requested          started          completed
    none/start  ->  unknown/reconcile  ->  observed/none    (succeeded)
                                           unknown/reconcile (failed)

Always true:
  P1. The state is a function of the events and their order alone; projecting twice gives the same.
  P2. What the record cannot tell stays unknown: rule sets that did not record starts leave an uncompleted
      request unknown.
  P3. A denial, a refusal and a failure before the start decide nothing for the key.
  P4. Verdicts are appended, never written over: the last one counts, and `still_unknown` is a valid last one.

Not here: reading the events (`store`), acting on the answer (`run.stages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from codeai_lab.records import ActionStatus, EffectState, Event, NextOperation

# The published rule sets that record the start of every execution. What others do, their requests say.
RULES_THAT_RECORD_STARTS = frozenset({"88d1291", "lab"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionState:
    """What the record says about one action.

    `contradicted` is true when a completion came in after a verdict of absence: a late walk had gone on.
    `status` is None while nothing was reported. `replayed` and `refused` actions have no effect of their own.
    """

    action_id: str
    status: ActionStatus | None
    effect_state: EffectState
    next_operation: NextOperation
    started: bool
    reused_from_action_id: str | None = None
    refused: str | None = None
    contradicted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """What the record says about one idempotency key.

    Args:
        last_seq: seq of the newest event that carries the key, 0 when there is none.
        first_completion: the oldest completion that is not a refusal of anything: what the historical rules
            replay.
        decisive: the completion that decides the key: it followed an execution start and was not found absent
            later; or the verdict that confirmed an effect which no completion reports.
        open_start: the execution start that has no completion and no verdict of absence, if any.
        holder: the `action.requested` event that the key belongs to, if it belongs to one.
    """

    last_seq: int
    first_completion: Event | None = None
    decisive: Event | None = None
    open_start: Event | None = None
    holder: Event | None = None


def project_action_state(events: Sequence[Event]) -> ActionState:
    """Fold the events of one action, in order of seq, into its state.

    Raises: ValueError when the events do not begin with `action.requested`.
    """
    if not events or events[0].kind != "action.requested":
        raise ValueError("the history of an action begins with action.requested")
    request = events[0]
    started = any(event.kind == "action.execution_started" for event in events)
    completion = _last(events, "action.completed")
    refusal = _last(events, "action.replay_refused")
    if refusal is not None:
        return _state(
            request, None, EffectState.NONE, NextOperation.NONE, started, refused=refusal.payload["reason"]
        )
    if completion is None:
        effect, then = _uncompleted(request, started)
        return _judged(_state(request, None, effect, then, started), events)
    status = ActionStatus(completion.payload["status"])
    reused = completion.payload.get("reused_from_action_id")
    if reused is not None:
        return _state(request, status, EffectState.NONE, NextOperation.NONE, started, reused=reused)
    effect, then = _completed(status, effect_possible=bool(completion.payload.get("effect_possible")))
    return _judged(_state(request, status, effect, then, started), events)


def project_key_state(events: Sequence[Event]) -> KeyState:
    """Fold all events of one key, in order of seq, into what the key's next request must know."""
    if not events:
        return KeyState(last_seq=0)
    first_completion = next((event for event in events if event.kind == "action.completed"), None)
    held = _holding(events)
    if held is None:
        return KeyState(last_seq=events[-1].seq, first_completion=first_completion)
    state, history = held
    decisive = _last(history, "action.completed") or _confirmation(state, history)
    started = _last(history, "action.execution_started") or history[0]
    return KeyState(
        last_seq=events[-1].seq,
        first_completion=first_completion,
        decisive=decisive,
        open_start=None if decisive else started,
        holder=history[0],
    )


def _holding(events: Sequence[Event]) -> tuple[ActionState, Sequence[Event]] | None:
    """Find the action that a key belongs to: the oldest with an effect, known or possible.

    One that is contradicted steps back behind another: what it was found absent for was tried afresh.
    """
    held = (
        (state, history)
        for history in _histories(events)
        if history[0].kind.startswith("action.")
        and (state := project_action_state(history)).effect_state is not EffectState.NONE
    )
    oldest = next(held, None)
    if oldest is None or not oldest[0].contradicted:
        return oldest  # mostly; then none of the later ones was looked at
    return next((one for one in held if not one[0].contradicted), oldest)


def project_open_effects(events: Iterable[Event]) -> tuple[ActionState, ...]:
    """Give every action whose effect the record leaves unknown, in the order of their requests."""
    streams = _by_stream(event for event in events if event.kind.startswith("action."))
    states = (project_action_state(history) for history in streams.values())
    return tuple(state for state in states if state.effect_state is EffectState.UNKNOWN)


def _completed(status: ActionStatus, *, effect_possible: bool) -> tuple[EffectState, NextOperation]:
    if status is ActionStatus.SUCCEEDED:
        return EffectState.OBSERVED, NextOperation.NONE
    if status is ActionStatus.DENIED:
        return EffectState.NONE, NextOperation.NONE
    if effect_possible:
        return EffectState.UNKNOWN, NextOperation.RECONCILE_EFFECT
    return EffectState.NONE, NextOperation.FIX_INPUTS


def starts_are_recorded(request: Event) -> bool:
    """Say whether the rules of a recorded request record every start, so that none recorded means none.

    The request says it itself (`records_starts`), or the name of its rules does; of rules that nobody knows
    nothing is assumed (P2).
    """
    said = request.payload.get("records_starts")
    return said if isinstance(said, bool) else request.payload.get("rules") in RULES_THAT_RECORD_STARTS


def _uncompleted(request: Event, started: bool) -> tuple[EffectState, NextOperation]:
    if not started and starts_are_recorded(request):
        return EffectState.NONE, NextOperation.START
    return EffectState.UNKNOWN, NextOperation.RECONCILE_EFFECT


_VERDICTS = {
    "effect_confirmed": (EffectState.OBSERVED, NextOperation.NONE),
    "no_effect_confirmed": (EffectState.NONE, NextOperation.START),
    "still_unknown": (EffectState.UNKNOWN, NextOperation.NONE),
}


def _judged(state: ActionState, events: Sequence[Event]) -> ActionState:
    """Let the last verdict of a reconciliation, if there is one, speak for the effect (P4)."""
    verdict = _last(events, "action.reconciled")
    if verdict is None:
        return state
    effect, then = _VERDICTS[verdict.payload["verdict"]]
    late = _last(events, "action.completed_late")
    if late is not None and late.seq > verdict.seq and effect is EffectState.NONE:
        unknown, reconcile = EffectState.UNKNOWN, NextOperation.RECONCILE_EFFECT
        return replace(state, effect_state=unknown, next_operation=reconcile, contradicted=True)
    return replace(state, effect_state=effect, next_operation=then)


def _confirmation(state: ActionState, events: Sequence[Event]) -> Event | None:
    """Give the verdict that confirmed an effect which no completion reports."""
    return _last(events, "action.reconciled") if state.effect_state is EffectState.OBSERVED else None


def _state(
    request: Event,
    status: ActionStatus | None,
    effect: EffectState,
    then: NextOperation,
    started: bool,
    *,
    reused: str | None = None,
    refused: str | None = None,
) -> ActionState:
    return ActionState(
        action_id=request.stream_id,
        status=status,
        effect_state=effect,
        next_operation=then,
        started=started,
        reused_from_action_id=reused,
        refused=refused,
    )


def _histories(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Give the events of each stream, in the order in which the streams begin.

    A key is mostly decided by its first action and may have been replayed a thousand times since, so the
    others are sorted out only when they are asked for.
    """
    first = events[0].stream_id
    yield [event for event in events if event.stream_id == first]
    yield from _by_stream(event for event in events if event.stream_id != first).values()


def _by_stream(events: Iterable[Event]) -> dict[str, list[Event]]:
    streams: dict[str, list[Event]] = {}
    for event in events:
        streams.setdefault(event.stream_id, []).append(event)
    return streams


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event.kind == kind), None)
