"""Which other rules could there be, and what would each of them be worth?

Chapter: 004, "Two threads, one key, two effects" and "Where the cache stops".

Idea: a protocol is a tuple of stages, so a protocol of a paper, or a broken one, is another tuple. Nearly all
is composed of the stages of `run`; the few that are new (`explore.other_stages`) are what `lab` does not do.

    unguarded    append_request, look_up+replay, perform, complete
    claim-busy   receive,        look_up+replay, claim, perform, complete

Always true:
  PT1. What `together` joins is one step: no other walk moves inside it and no crash falls into it. That is a
       claim about the system, and true only where the parts share a transaction or a lock.
  PT2. A walk that must wait is not moved; it does not spin. Outside an explorer its stage answers "busy".
  PT3. Where a claim decides, the request is recorded with it (`receive`), as under `lab`.
  PT4. A stage at which a walk has nothing to do is no step of it: it is passed by, together with the step
       before. So a walk may have more steps than another under the same rules.

Not here: moving along a tuple (`run.walk`), trying all orders (`explore.schedules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.other_stages import (
    ACT,
    act_unless_found,
    answer,
    ask_first,
    complete_first,
    complete_or_reuse,
    effect_is_known,
    hold_in_memory,
    reconcile_orphan,
    refuse_alive,
    refuse_claimed,
    somebody_else_is_alive,
    took_nothing_over,
)
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.run.acting import admit, complete, observe
from codeai_lab.run.facts import Bench, Facts, Next, Stage
from codeai_lab.run.revisions import REVISIONS, Revision
from codeai_lab.run.stages import (
    append_request,
    check_precondition,
    look_up,
    look_up_projection,
    receive,
    replay,
    require_authority,
)
from codeai_lab.store.protocol import Ledger

MustWait = Callable[[Ledger, Facts], bool]
Passes = Callable[[Facts], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A rule set as explorers play it.

    Args:
        waits: stage name -> whether a walk that stands before that stage must wait now.
        passes: stage name -> whether a walk that stands before that stage has nothing to do there (PT4).
        remembers_keys: whether the effect system knows a key when it sees it again.
    """

    revision: Revision
    waits: Mapping[str, MustWait] = field(default_factory=lambda: MappingProxyType({}))
    passes: Mapping[str, Passes] = field(default_factory=lambda: MappingProxyType({}))
    remembers_keys: bool = False

    @property
    def name(self) -> str:
        return self.revision.name

    def new_world(self) -> CountedWorld:
        """Give an empty world of the kind that these rules count on."""
        return CountedWorld(remembers_keys=self.remembers_keys)


def composed(rules: Revision | Composed) -> Composed:
    """Give a rule set as explorers play it; a plain revision waits for nobody."""
    return rules if isinstance(rules, Composed) else Composed(revision=rules)


def together(*stages: Stage, name: str | None = None) -> Stage:
    """Make several stages one step (PT1); its name is theirs joined by "+", or the one given.

    A walk that looks again goes to the first stage whose name begins with `look_up`.
    """

    def stage(bench: Bench, facts: Facts) -> Next:
        for part in stages:
            after = part(bench, facts)
            if not isinstance(after, Facts):
                return after
            facts = after
        return facts

    stage.__name__ = name or "+".join(part.__name__ for part in stages)
    stage.__doc__ = together.__doc__
    vars(stage)["parts"] = stages  # what it is made of can still be read (`Revision.records_starts`)
    return stage


# --- the protocols ---------------------------------------------------------------------------------------

COMPLETED = together(look_up, replay)
DECIDED = together(look_up_projection, replay)
HOLD = together(hold_in_memory, name="lock")
CLAIM = together(look_up_projection, refuse_claimed, replay, admit, name="claim")
# A completion is looked for apart: in the projection the orphan that was taken over still stands first.
TAKE = together(COMPLETED, look_up_projection, refuse_alive, admit, name="claim")
TAKEOVER = (receive, COMPLETED, TAKE, ACT, complete)


def _rules(name: str, *stages: Stage, waits: str | None = None, remembers_keys: bool = False) -> Composed:
    return Composed(
        revision=Revision(name=name, stages=stages),
        waits=MappingProxyType({waits: somebody_else_is_alive} if waits else {}),
        remembers_keys=remembers_keys,
    )


UNGUARDED = _rules("unguarded", append_request, COMPLETED, ACT, complete)
BUSY = _rules("claim-busy", receive, DECIDED, CLAIM, ACT, complete)
ATOMIC = _rules("atomic", append_request, COMPLETED, together(COMPLETED, ACT, complete, name="effect+record"))
EFFECT_SIDE = _rules("effect-side", append_request, COMPLETED, ACT, complete, remembers_keys=True)

# What two walks do to each other.
RACES = (
    UNGUARDED,
    BUSY,
    _rules("claim-wait", receive, DECIDED, CLAIM, ACT, complete, waits="claim"),
    _rules("lock", append_request, HOLD, COMPLETED, ACT, complete, waits="lock"),
    _rules("lock-after-look-up", append_request, COMPLETED, HOLD, ACT, complete, waits="lock"),
    ATOMIC,
    _rules("atomic-unchecked", append_request, COMPLETED, together(ACT, complete, name="effect+record")),
    EFFECT_SIDE,
    _rules(
        "seven-step",
        append_request, COMPLETED, require_authority, check_precondition, ACT, observe, complete,
    ),
)  # fmt: skip

# What a crash leaves to the next walk.
CRASHES = (
    UNGUARDED,
    _rules(
        "record-first",
        append_request, COMPLETED, complete_first, together(ACT, answer, name=ACT.__name__),
    ),
    _rules(
        "claim-in-memory",
        append_request, COMPLETED, together(COMPLETED, hold_in_memory, name="claim"), ACT, complete,
    ),
    BUSY,
    _rules("takeover-blind", *TAKEOVER),
    _rules(
        "takeover-reconcile",
        receive,
        DECIDED,
        together(look_up_projection, refuse_alive, reconcile_orphan, replay, admit, name="claim"),
        ACT,
        complete,
    ),
    _rules("takeover-effect-side", *TAKEOVER, remembers_keys=True),
    EFFECT_SIDE,
    ATOMIC,
)  # fmt: skip

# The lease has run out while its holder is at work: whoever comes next takes the claim of a living one. There
# is no fence. Asking first is one step more for those who take over, and leaves a gap behind it.
TAKE_ANY = together(look_up_projection, admit, name="claim")
TAKEN = (receive, COMPLETED, TAKE_ANY, ACT, complete)
LEASES = (
    _rules("takeover-alive", *TAKEN),
    Composed(
        revision=Revision(
            name="takeover-alive-reconcile",
            stages=(receive, COMPLETED, TAKE_ANY, ask_first, act_unless_found, complete_or_reuse),
        ),
        passes=MappingProxyType({ask_first.__name__: took_nothing_over, ACT.__name__: effect_is_known}),
    ),
    _rules("takeover-alive-effect-side", *TAKEN, remembers_keys=True),
)

PROTOCOLS = {rules.name: rules for rules in (*RACES, *CRASHES, *LEASES)}


def rules_named(name: str) -> Composed:
    """Give a rule set or a composed protocol by its name.

    Raises: RefusedRequestError naming those that there are.
    """
    known = {**{name: composed(rules) for name, rules in REVISIONS.items()}, **PROTOCOLS}
    if name not in known:
        raise RefusedRequestError(f"There are no rules called {name}; there are: {', '.join(known)}.")
    return known[name]
