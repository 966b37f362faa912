"""What may run next: the graph of a plan, and the judgement of a proposal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.plan import (
    PLAN,
    Budget,
    NodeStatus,
    Plan,
    PlanNode,
    Proposal,
    Rejection,
    Role,
    Route,
    fault_of_plan,
    judge_proposal,
)

SEARCH = Route(tool="vector_search", provider="primary", arguments={"query": "minds"})
FIRST = PlanNode(node="first", kind="film", route=SEARCH)
SECOND = PlanNode(node="second", kind="film", route=SEARCH)
BOTH = PlanNode(
    node="both", kind="compare", needs=("first", "second"), route=Route(tool="compare", provider="planner")
)
GRAPH = Plan(nodes=(FIRST, SECOND, BOTH))
STATUS = {"first": NodeStatus.VERIFIED, "second": NodeStatus.OPEN, "both": NodeStatus.OPEN}
LEFT, NONE_LEFT = Budget(calls=5, spent=4), Budget(calls=5, spent=5)


def proposal(node: str, **changes: object) -> Proposal:
    usual = {"role": Role.SEARCH, "tool": "vector_search", "provider": "primary", "arguments": {"query": "x"}}
    return Proposal(node=node, **{**usual, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node", "budget", "refused", "expected"),
    [
        ("first", LEFT, (), Rejection.REPEATS_VERIFIED_BRANCH),
        (PLAN, LEFT, (), Rejection.REPEATS_VERIFIED_BRANCH),
        ("third", LEFT, (), Rejection.SERVES_NO_OPEN_NODE),
        ("both", LEFT, (), Rejection.BREAKS_DEPENDENCY),
        ("second", NONE_LEFT, (), Rejection.EXCEEDS_BUDGET),
        ("second", LEFT, (proposal("second").key,), Rejection.REPEATS_REFUSED_INPUT),
        ("second", LEFT, (), None),
    ],
)
def test_a_proposal_is_rejected_by_the_name_of_the_rule_that_it_breaks(
    node: str, budget: Budget, refused: tuple[tuple[str, str, str, str], ...], expected: Rejection | None
) -> None:
    """Each rule has a name, and a proposal that breaks none may run."""
    judged = judge_proposal(proposal(node), plan=GRAPH, status=STATUS, budget=budget, refused=refused)
    assert judged is expected


def test_an_unresolved_node_is_not_open() -> None:
    """A node that was given up takes no call, and what needs it takes none either."""
    status = {**STATUS, "second": NodeStatus.UNRESOLVED}
    assert judge_proposal(proposal("second"), plan=GRAPH, status=status, budget=LEFT) == "serves-no-open-node"
    assert judge_proposal(proposal("both"), plan=GRAPH, status=status, budget=LEFT) == "breaks-dependency"


def test_before_there_is_a_plan_only_the_plan_may_be_asked_for() -> None:
    """Without a plan no node is open but the plan itself."""
    assert judge_proposal(proposal(PLAN), plan=None, status={}, budget=LEFT) is None
    assert judge_proposal(proposal("first"), plan=None, status={}, budget=LEFT) == "serves-no-open-node"


def test_two_calls_are_the_same_whoever_provides_the_tool() -> None:
    """The provider is no part of what makes a call the same; node, role, tool and arguments are."""
    one = proposal("second")
    assert one.key == replace(one, provider="mirror").key
    for change in ({"tool": "lexical_search"}, {"arguments": {"query": "y"}}, {"role": Role.FETCH}):
        assert one.key != replace(one, **change).key


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ((), "the plan has no node"),
        ((FIRST, FIRST), "the plan names a node twice"),
        ((replace(FIRST, node=PLAN),), "the plan names a node twice"),
        ((FIRST, BOTH), "the plan needs second and does not name it"),
        ((replace(FIRST, needs=("second",)), replace(SECOND, needs=("first",))), "the plan goes in a circle"),
        ((FIRST, BOTH, SECOND), "the plan names both before what it needs"),
        (GRAPH.nodes, None),
    ],
)
def test_an_unusable_plan_is_told_by_its_fault(nodes: tuple[PlanNode, ...], fault: str | None) -> None:
    """A plan names each node once, needs only what it names before, and has no circle."""
    assert fault_of_plan(Plan(nodes=nodes)) == fault


def test_dependents_are_found_through_others() -> None:
    """What needs a node indirectly depends on it too."""
    last = PlanNode(node="last", kind="compare", needs=("both",), route=SEARCH)
    plan = Plan(nodes=(*GRAPH.nodes, last))
    assert plan.dependents("first") == ("both", "last")
    assert plan.dependents("last") == ()


def test_a_plan_comes_back_from_its_json() -> None:
    """The JSON form of a plan holds all of it."""
    assert Plan.from_json(GRAPH.as_json()) == GRAPH


def test_a_budget_is_never_negative() -> None:
    """What is left is zero when more was spent than there was."""
    assert Budget(calls=1, spent=3).left == 0
