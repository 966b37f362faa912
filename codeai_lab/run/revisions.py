"""Which steps, in which order: what is a set of rules?

Chapter: 004, "What CodeAI does", "Where the cache stops"; the table of rule sets in the notebook of this
chapter.

Idea: a revision is a name and a tuple of stages. Reading two tuples side by side is reading the history of a
repair:

    7a0d43b   replays by key, asks for authority afterwards
    a1b562a   authority first, identity second, replay last
    1b3c7a2   records every Exception of the adapter, not only RuntimeError
    88d1291   marks the start before the adapter runs
    lab       records request and decision together, refuses the unknown, wins the key by a conditional append

Always true:
  H1. The first four keep their defects as found; no stage repairs them behind the reader's back.
  H2. A revision has a look-up, and everything that it decides comes after it.
  H3. Whether a revision records starts is read from its stages, never from its name.

Not here: what a stage promises (`run.stages`, `run.acting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codeai_lab.decide.projection import RULES_THAT_RECORD_STARTS
from codeai_lab.errors import RefusedRequestError
from codeai_lab.run.acting import admit, complete, mark_started, observe, perform
from codeai_lab.run.facts import Stage
from codeai_lab.run.stages import (
    append_request,
    check_precondition,
    check_precondition_strictly,
    compare_identity,
    look_up,
    look_up_projection,
    receive,
    refuse_unknown,
    replay,
    require_authority,
)

_RECORD_THE_START = (mark_started, admit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A rule set: its name and its stages in order.

    Args:
        records_call_conflicts: whether a call's conflict is recorded durably.
        marks_starts: what `records_starts` is where it cannot be read from the stages, because one of the
            reader's own records the start or performs; None to read it from them.
    """

    name: str
    stages: tuple[Stage, ...]
    records_call_conflicts: bool = False
    marks_starts: bool | None = None

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The names of the stages, in order, as a reader would write them down."""
        return tuple(stage.__name__ for stage in self.stages)

    @property
    def records_starts(self) -> bool:
        """Whether the start is on record before anything is performed (H3).

        A request of such rules that has no start had no effect. Of others it is unknown.
        """
        if self.marks_starts is not None:
            return self.marks_starts
        for part in _parts(self.stages):
            if part in _RECORD_THE_START:
                return True
            if part.__name__.startswith("perform"):
                return False
        return False


R_7A0D43B = Revision(
    name="7a0d43b",
    stages=(
        append_request, look_up, replay, require_authority,
        check_precondition, perform(RuntimeError), observe, complete,
    ),
)  # fmt: skip

R_A1B562A = Revision(
    name="a1b562a",
    stages=(
        append_request, look_up, require_authority, compare_identity, replay,
        check_precondition, perform(RuntimeError), observe, complete,
    ),
)  # fmt: skip

R_1B3C7A2 = Revision(
    name="1b3c7a2",
    stages=(
        append_request, look_up, require_authority, compare_identity, replay,
        check_precondition, perform(Exception), observe, complete,
    ),
)  # fmt: skip

R_88D1291 = Revision(
    name="88d1291",
    stages=(
        append_request, look_up, require_authority, compare_identity, replay,
        check_precondition, mark_started, perform(Exception), observe, complete,
    ),
)  # fmt: skip

LAB = Revision(
    name="lab",
    stages=(
        receive, look_up_projection, require_authority, compare_identity, refuse_unknown, replay,
        check_precondition_strictly, admit, perform(Exception), observe, complete,
    ),
    records_call_conflicts=True,
)  # fmt: skip


def is_known_by_name(rules: Revision) -> bool:
    """Say whether the name of a rule set alone tells a later reader whether it records starts."""
    return rules.records_starts == (rules.name in RULES_THAT_RECORD_STARTS)


def _parts(stages: Iterable[Stage]) -> Iterator[Stage]:
    """Give stages in order, and in place of one that joins several (`parts`) those."""
    for stage in stages:
        joined = getattr(stage, "parts", None)
        if joined is None:
            yield stage
        else:
            yield from _parts(joined)


REVISIONS = {revision.name: revision for revision in (R_7A0D43B, R_A1B562A, R_1B3C7A2, R_88D1291, LAB)}


def revision_named(name: str) -> Revision:
    """Give a revision by its name.

    Raises: RefusedRequestError naming those that there are.
    """
    try:
        return REVISIONS[name]
    except KeyError:
        known = ", ".join(REVISIONS)
        raise RefusedRequestError(f"There is no rule set called {name}; there are: {known}.") from None
