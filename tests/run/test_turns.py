"""One turn up to the answer: proposals, retries, repairs, another provider, and the end of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.decide.plan import Proposal, Role
from codeai_lab.decide.recovery import completion
from codeai_lab.decide.trajectory import Call, TrajectoryLimits, TrajectoryState
from codeai_lab.lessons.film_play import Fails, Play, Story
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.run.film_tools import ToolInputError
from codeai_lab.run.planner import ScriptedPlanner
from codeai_lab.store.memory import MemoryLedger

CLEAN = replace(STORY, fails=())


def story(*fails: Fails, **limits: Any) -> Story:
    return replace(STORY, fails=fails, limits=replace(STORY.limits, **limits))


def run(told: Story) -> tuple[Event, ...]:
    play = Play(told, "resume", MemoryLedger())
    play.harness.run(play.name)
    return play.events


def said(events: tuple[Event, ...], kind: str) -> list[Mapping[str, Any]]:
    return [event.payload for event in events if event.kind == kind]


def search(node: str, query: str = "something else", tool: str = "vector_search") -> Proposal:
    return Proposal(node=node, role=Role.SEARCH, tool=tool, provider="primary", arguments={"query": query})


# --- proposals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "reasons"),
    [
        ("ai-film", ["serves-no-open-node", "repeats-verified-branch"]),
        ("western", ["serves-no-open-node"]),
        ("compare", ["serves-no-open-node", "breaks-dependency"]),
    ],
)
def test_a_rejected_proposal_is_recorded_with_its_reason_and_asks_nobody(
    node: str, reasons: list[str]
) -> None:
    """Each kind of rejection is in the record; the plan's own call runs in its place."""
    hasty = search(node)
    events = run(replace(CLEAN, proposals=(hasty,)))
    seen = [event for event in said(events, "proposal.rejected") if event["proposal"] == hasty.as_json()]
    assert seen[0]["reason"] == reasons[0]
    assert {one["reason"] for one in seen} <= set(reasons)
    ran = [one for one in said(events, "call.started") if one["node"] == node]
    assert all(one["arguments"] != hasty.arguments or one["node"] == "ai-film" for one in ran)
    assert said(events, "trajectory.completed")[0]["status"] == "complete"


class Hasty(ScriptedPlanner):
    """A planner that proposes one thing once a branch is verified."""

    def __init__(self, proposal: Proposal) -> None:
        super().__init__()
        self._proposal = proposal

    def propose(self, state: TrajectoryState) -> tuple[Proposal, ...]:
        return (self._proposal,) if state.evidence.items else ()


def run_with(planner: ScriptedPlanner, told: Story = CLEAN) -> tuple[Event, ...]:
    """Run a story whose planner is another one."""
    play = Play(told, "resume", MemoryLedger(), planner=planner)
    play.harness.run(play.name)
    return play.events


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (search("ai-film"), "repeats-verified-branch"),
        (search("western"), "serves-no-open-node"),
        (replace(search("compare"), role=Role.COMPARE, tool="compare"), "breaks-dependency"),
    ],
)
def test_after_v2_each_bad_proposal_is_rejected_by_its_own_rule(proposal: Proposal, reason: str) -> None:
    """Recorded state decides what may run: the verified branch, no branch, and the comparison may not."""
    events = run_with(Hasty(proposal))
    rejected = said(events, "proposal.rejected")
    assert [one["reason"] for one in rejected] == [reason]
    assert rejected[0]["proposal"] == proposal.as_json()
    assert said(events, "trajectory.completed")[0]["completion"] == "first-attempt"


def test_beyond_the_budget_nothing_runs_and_what_is_verified_stays() -> None:
    """With no call left the node stays unresolved, with the reason, and the answer says what is missing."""
    events = run(story(calls=5))
    assert [one["reason"] for one in said(events, "proposal.rejected")] == ["exceeds-budget"]
    assert len(said(events, "call.started")) == 5
    assert said(events, "node.unresolved")[0]["node"] == "memory-film"
    [completed] = said(events, "trajectory.completed")
    assert completed["status"] == "partial"
    assert completed["missing"] == ["memory-film", "compare"]
    assert list(completed["scores"]) == ["ex-machina"]


def test_a_proposal_of_another_query_is_run_for_the_open_node() -> None:
    """A reformulated query by the same path is no fallback."""
    proposal = search("memory-film", "a man who cannot form new memories hunts his wife's attacker")
    events = run_with(Hasty(proposal))
    asked = [one["arguments"] for one in said(events, "call.started")]
    assert asked[4] == proposal.arguments
    assert asked.count(proposal.arguments) == 1
    assert said(events, "fallback.used") == []
    [completed] = said(events, "trajectory.completed")
    assert (completed["status"], completed["completion"]) == ("complete", "first-attempt")


def test_a_proposal_of_another_path_is_recorded_as_a_fallback() -> None:
    """The model may select a fallback; it is on record in the append that starts it, with both thresholds."""
    events = run_with(Hasty(search("memory-film", "erased memories former relationship", "lexical_search")))
    [used] = said(events, "fallback.used")
    assert used["rule"] == "proposed-by-the-planner"
    assert used["original_error"] is None
    assert used["acceptance_threshold"]["old"]["method"] == "vector_search"
    assert used["acceptance_threshold"]["new"]["method"] == "lexical_search"
    assert said(events, "trajectory.completed")[0]["completion"] == "recovered"


# --- failures that may pass -----------------------------------------------------------------------------


def test_a_timeout_is_retried_within_its_limit() -> None:
    """One call is tried again and comes through; nothing else is done again."""
    events = run(story(Fails(tool="vector_search", nth=2), call_retries=1))
    assert len(said(events, "call.started")) == 9
    assert [one["attempt"] for one in said(events, "call.started")].count(2) == 1
    assert said(events, "trajectory.completed")[0]["completion"] == "retried"


def test_the_ladder_is_call_then_step_then_provider_then_a_person() -> None:
    """Retries of the call end, then those of the step, then the standby is asked, and then it is paused."""
    fails = tuple(Fails(tool="get_film", nth=n) for n in range(2, 6))
    events = run(story(*fails, call_retries=1, step_retries=1, switches=1))
    of_node = [one for one in said(events, "call.started") if one["node"] == "memory-film"]
    assert [(one["role"], one["provider"]) for one in of_node] == [
        ("search", "primary"), ("fetch", "primary"), ("fetch", "primary"),
        ("search", "primary"), ("fetch", "primary"), ("fetch", "primary"),
        ("fetch", "mirror"), ("quote", "planner"),
    ]  # fmt: skip
    assert [one["node"] for one in said(events, "step.retried")] == ["memory-film"]
    [switched] = said(events, "fallback.used")
    assert switched["rule"] == "provider-failed-use-its-standby"
    assert (switched["old"]["provider"], switched["new"]["provider"]) == ("primary", "mirror")
    assert switched["original_error"]["code"] == "timeout"
    assert said(events, "trajectory.completed")[0]["completion"] == "recovered"


def test_a_switch_of_the_search_changes_its_threshold_too() -> None:
    """Another provider of the search is another path, and says so with both thresholds."""
    events = run(story(Fails(tool="vector_search", nth=2), switches=1))
    [switched] = said(events, "fallback.used")
    assert switched["acceptance_threshold"]["new"]["provider"] == "mirror"
    accepted = [one for one in said(events, "validation.decided") if one["node"] == "memory-film"]
    assert accepted[0]["acceptance"] == switched["acceptance_threshold"]["new"]


def test_a_failure_beyond_every_limit_pauses() -> None:
    """Without limits left the trajectory is paused, with the verified branch and the open one."""
    play = Play(story(Fails(tool="vector_search", nth=2)), "resume", MemoryLedger())
    assert play.harness.run(play.name) == "paused"
    state = play.harness.state(play.name)
    assert state.working.status == {"ai-film": "verified", "memory-film": "open", "compare": "open"}
    assert state.working.retries == {"memory-film": 1}
    assert state.working.budget.spent == 5


def test_a_failure_of_no_known_kind_is_not_retried() -> None:
    """What nobody understands pauses at once; only the type of a stranger's exception is kept."""

    class Odd(ScriptedPlanner):
        def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
            if tool == "quote":
                raise RuntimeError("/secret/path")
            return super().call(tool, arguments)

    events = run_with(Odd(), story(call_retries=3))
    [failed] = said(events, "call.failed")
    assert failed["error"] == {
        "code": "raised", "class": "unknown", "definite": False, "message": "The tool raised RuntimeError.",
    }  # fmt: skip
    assert events[-1].kind == "call.failed"


# --- failures of the input ------------------------------------------------------------------------------


def empty_query() -> Story:
    return CLEAN.seeking("memory-film", query="")


def test_an_input_error_is_repaired_and_never_repeated() -> None:
    """A query that was refused is changed before it is asked again."""
    events = run(empty_query())
    [repaired] = said(events, "query.repaired")
    assert (repaired["old"], repaired["repair"]) == ({"query": ""}, 1)
    assert repaired["new"] == {"query": STORY.request.sought[1].rewritten}
    assert said(events, "call.failed")[0]["error"]["class"] == "input"
    [completed] = said(events, "trajectory.completed")
    assert (completed["status"], completed["completion"]) == ("complete", "retried")


class NeverRight(ScriptedPlanner):
    """A planner whose every revision is refused, each in another way."""

    def revise(self, state: TrajectoryState, failed: Call, repair: int) -> Mapping[str, Any]:
        return {"question": f"revision {repair}"}


def test_three_failed_repairs_leave_the_node_unresolved_and_the_verified_branch_intact() -> None:
    """The loop ends after three; what to do then is for a person: another route, asking, or reporting it."""
    events = run_with(NeverRight(), empty_query())
    assert [one["repair"] for one in said(events, "query.repaired")] == [1, 2, 3]
    assert len(said(events, "call.failed")) == 4
    [left] = said(events, "node.unresolved")
    assert left["node"] == "memory-film"
    assert set(left["choices"]) == {"other_route", "ask", "report_missing"}
    assert said(events, "checkpoint.committed")[-1]["node_status"]["ai-film"] == "verified"
    assert said(events, "trajectory.completed")[0]["status"] == "partial"


def test_after_the_repairs_another_route_may_be_tried() -> None:
    """Where the limits allow it, the other search serves the node, on record as a fallback with its error."""
    told = replace(empty_query(), limits=replace(STORY.limits, other_routes=1))
    events = run_with(NeverRight(), told)
    [used] = said(events, "fallback.used")
    assert used["original_error"]["class"] == "input"
    assert (used["old"]["tool"], used["new"]["tool"]) == ("vector_search", "lexical_search")
    assert said(events, "node.unresolved") == []
    [completed] = said(events, "trajectory.completed")
    assert (completed["status"], completed["completion"]) == ("complete", "recovered")


class Stubborn(ScriptedPlanner):
    """A planner that proposes the very call that was refused."""

    def revise(self, state: TrajectoryState, failed: Call, repair: int) -> Mapping[str, Any]:
        return failed.proposal.arguments


def test_a_revision_that_changes_nothing_is_rejected_and_spends_a_repair() -> None:
    """The refused call is made once; three repeats are refused with their reason, and then the loop ends."""
    events = run_with(Stubborn(), empty_query())
    assert [one["reason"] for one in said(events, "proposal.rejected")] == ["repeats-refused-input"] * 3
    assert [one["repair"] for one in said(events, "query.repaired")] == [1, 2, 3]
    assert len(said(events, "call.failed")) == 1
    [left] = said(events, "node.unresolved")
    assert (left["node"], left["reason"]) == ("memory-film", "all repairs are spent: 3 of 3")
    assert said(events, "checkpoint.committed")[-1]["node_status"]["ai-film"] == "verified"


def test_a_script_that_has_no_revision_ends_in_the_bounded_repair() -> None:
    """Where the scripted planner knows nothing better, that is refused three times a node and given up."""

    class NoQuote(ScriptedPlanner):
        def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
            if tool == "quote":
                raise ToolInputError(tool, "There is no such field.")
            return super().call(tool, arguments)

    events = run_with(NoQuote())
    left = [(one["node"], one["reason"]) for one in said(events, "node.unresolved")]
    assert left == [(node, "all repairs are spent: 3 of 3") for node in ("ai-film", "memory-film")]
    assert len(said(events, "call.failed")) == 2
    assert len(said(events, "proposal.rejected")) == 6
    assert said(events, "trajectory.completed")[0]["status"] == "partial"


def test_repeats_are_counted_across_processes() -> None:
    """What was spent is read from the record: with a new process for every turn there are three repairs."""
    whole = [event.kind for event in run_with(Stubborn(), empty_query())]
    ledger, over, turns = MemoryLedger(), False, 0
    while not over:
        play = Play(empty_query(), "resume", ledger, process=str(turns), planner=Stubborn())
        walk = play.harness.walk(play.name, asks_anew=False)
        walk.turn()
        over, turns = walk.is_over, turns + 1
    assert [event.kind for event in play.events] == whole


@pytest.mark.parametrize("tool", ["plan", "quote", "compare"])
def test_the_planner_may_fail_too(tool: str) -> None:
    """A call that thinks is a call: it fails, is retried, and is counted like the others."""
    events = run(story(Fails(tool=tool, nth=1), call_retries=1))
    assert len(said(events, "call.started")) == 9
    assert completion(events) == "retried"


def test_a_plan_that_cannot_be_made_ends_in_a_partial_answer() -> None:
    """Without a plan there is nothing to go on with, and the answer says so."""

    class Lost(ScriptedPlanner):
        def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
            raise ToolInputError(tool, "no plan")

    events = run_with(Lost(), replace(CLEAN, limits=TrajectoryLimits(repairs=0)))
    assert said(events, "trajectory.completed")[0]["missing"] == ["plan"]
