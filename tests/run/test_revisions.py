"""Is a rule set the tuple of stages that the chapter's history gives?"""

from __future__ import annotations

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.run.revisions import LAB, R_7A0D43B, REVISIONS, Revision, revision_named
from codeai_lab.run.stages import look_up, look_up_projection

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


def test_an_unknown_rule_set_is_answered_with_those_that_there_are() -> None:
    """One sentence, with the names."""
    with pytest.raises(RefusedRequestError) as refused:
        revision_named("deadbee")
    assert str(refused.value) == (
        "There is no rule set called deadbee; there are: 7a0d43b, a1b562a, 1b3c7a2, 88d1291, lab."
    )
    assert revision_named("lab") is LAB
    assert revision_named("7a0d43b") is R_7A0D43B
