"""Is a rule set the tuple of stages that the chapter's history gives?"""

from __future__ import annotations

import pytest

from codeai_lab.decide.projection import project_action_state
from codeai_lab.decide.witnesses import hear
from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.moments import runtime_of, submit
from codeai_lab.explore.protocols import Composed, together
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.run.acting import admit, complete, mark_started, perform
from codeai_lab.run.facts import Bench, Facts, Next, Stage
from codeai_lab.run.revisions import (
    LAB,
    R_7A0D43B,
    REVISIONS,
    Revision,
    is_known_by_name,
    revision_named,
)
from codeai_lab.run.stages import append_request, look_up, look_up_projection, receive
from codeai_lab.store.memory import MemoryLedger

STAGES = {
    "7a0d43b": (
        "append_request", "look_up", "replay", "require_authority",
        "check_precondition", "perform(RuntimeError)", "observe", "complete",
    ),
    "a1b562a": (
        "append_request", "look_up", "require_authority", "compare_identity", "replay",
        "check_precondition", "perform(RuntimeError)", "observe", "complete",
    ),
    "1b3c7a2": (
        "append_request", "look_up", "require_authority", "compare_identity", "replay",
        "check_precondition", "perform(Exception)", "observe", "complete",
    ),
    "88d1291": (
        "append_request", "look_up", "require_authority", "compare_identity", "replay",
        "check_precondition", "mark_started", "perform(Exception)", "observe", "complete",
    ),
    "lab": (
        "receive", "look_up_projection", "require_authority", "compare_identity", "refuse_unknown", "replay",
        "check_precondition_strictly", "admit", "perform(Exception)", "observe", "complete",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGES)
def test_a_rule_set_is_these_stages_in_this_order(name: str) -> None:
    """H1: five tuples, written down; no stage is added behind the reader's back."""
    assert revision_named(name).stage_names == STAGES[name]


def test_the_rule_sets_stand_oldest_first() -> None:
    """The order of the table is the order of the repairs."""
    assert list(REVISIONS) == list(STAGES)
    assert all(revision.name == name for name, revision in REVISIONS.items())
    assert [name for name, one in REVISIONS.items() if one.records_call_conflicts] == ["lab"]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
def test_everything_that_is_decided_comes_after_one_look_up(revision: Revision) -> None:
    """H2: one look-up, and before it only the taking in of the request."""
    looks = [place for place, stage in enumerate(revision.stages) if stage in (look_up, look_up_projection)]
    assert looks == [1]


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
def test_every_stage_says_what_it_promises(revision: Revision) -> None:
    """A stage has a docstring, also the one that is made for a kind of exception."""
    assert all(stage.__doc__ for stage in revision.stages)


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)
def test_the_names_of_the_published_rule_sets_tell_whether_they_record_starts(revision: Revision) -> None:
    """H3: what is read from the stages is what a later reader takes the name for."""
    assert revision.records_starts is (revision.name in ("88d1291", "lab"))
    assert is_known_by_name(revision)


@pytest.mark.parametrize(
    ("stages", "records"),
    [
        ((append_request, look_up, mark_started, perform(Exception), complete), True),
        ((append_request, look_up, perform(Exception), mark_started, complete), False),
        ((receive, together(look_up, admit, name="claim"), perform(Exception), complete), True),
        ((receive, look_up, together(perform(Exception), together(admit, complete))), False),
        ((append_request, look_up), False),
    ],
    ids=["marked", "marked too late", "joined", "joined too late", "never"],
)
def test_whether_starts_are_recorded_is_read_from_the_stages(
    stages: tuple[Stage, ...], records: bool
) -> None:
    """H3: a start counts when it is recorded before anything is performed, alone or joined with others."""
    revision = Revision(name="mine", stages=stages)
    assert revision.records_starts is records
    assert is_known_by_name(revision) is not records


def test_what_cannot_be_read_from_the_stages_may_be_said() -> None:
    """H3: a reader's own stage that records the start is not known for one, unless the rules say so."""

    def my_start(bench: Bench, facts: Facts) -> Next:
        return mark_started(bench, facts)

    stages = (append_request, look_up, my_start, perform(Exception), complete)
    assert not Revision(name="mine", stages=stages).records_starts
    assert Revision(name="mine", stages=stages, marks_starts=True).records_starts


@pytest.mark.parametrize(
    ("name", "start", "said", "then"),
    [
        ("mine", mark_started, True, "start"),
        ("mine", None, None, "reconcile_effect"),
        ("88d1291", mark_started, None, "start"),
        ("lab", None, False, "reconcile_effect"),
        ("1b3c7a2", mark_started, True, "start"),
    ],
    ids=["composed", "composed without", "published", "a published name without", "a published name with"],
)
def test_an_orphan_is_judged_by_the_rules_that_left_it(
    name: str, start: Stage | None, said: bool | None, then: str
) -> None:
    """A request of rules that record starts says so where the name does not, and its orphan had no effect."""
    stages = (append_request, look_up, *([start] if start else []), perform(Exception), complete)
    ledger, mine = MemoryLedger(), Composed(revision=Revision(name=name, stages=stages))
    walk = submit(runtime_of(mine, ledger), "a", CountedWorld())
    walk.step()
    walk.close()
    events = tuple(ledger.read_all())
    assert events[0].payload.get("records_starts") is said
    assert project_action_state(events).next_operation == then
    bounds = hear(events, (), summary=0).effects_ledger
    assert bounds == ((0, 0) if then == "start" else (0, 1))


def test_an_unknown_rule_set_is_answered_with_those_that_there_are() -> None:
    """One sentence, with the names."""
    with pytest.raises(RefusedRequestError) as refused:
        revision_named("deadbee")
    assert str(refused.value) == (
        "There is no rule set called deadbee; there are: 7a0d43b, a1b562a, 1b3c7a2, 88d1291, lab."
    )
    assert revision_named("lab") is LAB
    assert revision_named("7a0d43b") is R_7A0D43B
