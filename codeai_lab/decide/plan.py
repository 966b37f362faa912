"""What may run next, and what may not?

Chapter: 003, "Resume from the last verified checkpoint": the model proposes, recorded state decides.

Idea: a plan is a graph of nodes, each with what it needs first. A proposal asks for one call on behalf of one
node. The harness runs it only if it serves an open node, whose needs are verified, within the budget.

    verified branch    repeats-verified-branch      needs not verified   breaks-dependency
    no such open node  serves-no-open-node          no call left         exceeds-budget
    the same call was refused by its input          repeats-refused-input

Always true:
  PL1. A plan names each node once, needs only what it names, and has no circle.
  PL2. A proposal is rejected for the first rule that it breaks, and the rule has a name.
  PL3. A proposal is no call: judging it asks nobody and spends nothing.

Not here: where the state comes from (`decide.trajectory`), recording a rejection (`run.trajectory`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from codeai_lab.canonical import digest

PLAN = "plan"  # the node that the call for the plan itself serves


class NodeStatus(StrEnum):
    """How far a node is."""

    OPEN = "open"
    VERIFIED = "verified"
    UNRESOLVED = "unresolved"


class Role(StrEnum):
    """What a call is for, whichever tool does it."""

    PLAN = "plan"
    SEARCH = "search"
    FETCH = "fetch"
    QUOTE = "quote"
    COMPARE = "compare"


class Rejection(StrEnum):
    """Why a proposal is not run."""

    REPEATS_VERIFIED_BRANCH = "repeats-verified-branch"
    SERVES_NO_OPEN_NODE = "serves-no-open-node"
    BREAKS_DEPENDENCY = "breaks-dependency"
    EXCEEDS_BUDGET = "exceeds-budget"
    REPEATS_REFUSED_INPUT = "repeats-refused-input"
    NOT_PERMITTED = "not-permitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One call that somebody would like to have made, on behalf of a node."""

    node: str
    role: Role
    tool: str
    provider: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes two calls the same call; who provides the tool is not part of it."""
        return self.node, str(self.role), self.tool, digest(dict(self.arguments))

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "role": str(self.role),
            "tool": self.tool,
            "provider": self.provider,
            "arguments": dict(self.arguments),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """By which tool of which provider, with which arguments, a node is served first."""

    tool: str
    provider: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """One task: `film` finds and verifies a film, by its route; `compare` compares those that it needs."""

    node: str
    kind: str
    needs: tuple[str, ...] = ()
    route: Route

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "kind": self.kind,
            "needs": list(self.needs),
            "tool": self.route.tool,
            "provider": self.route.provider,
            "arguments": dict(self.route.arguments),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The nodes, in the order in which they are taken."""

    nodes: tuple[PlanNode, ...]

    def node(self, name: str) -> PlanNode:
        """Give a node by its name.

        Raises: KeyError for a name that the plan does not have.
        """
        return next((node for node in self.nodes if node.node == name), None) or _no_node(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.node for node in self.nodes)

    def dependents(self, name: str) -> tuple[str, ...]:
        """Give every node that needs this one, directly or by others."""
        reached = {name}
        for node in self.nodes:  # a plan names what is needed before it is needed
            if reached & set(node.needs):
                reached.add(node.node)
        return tuple(node for node in self.names if node in reached - {name})

    def as_json(self) -> dict[str, Any]:
        return {"nodes": [node.as_json() for node in self.nodes]}

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> Plan:
        """Read a plan.

        Raises: KeyError, TypeError for words that are no plan.
        """
        return cls(
            nodes=tuple(
                PlanNode(
                    node=node["node"],
                    kind=node["kind"],
                    needs=tuple(node["needs"]),
                    route=Route(tool=node["tool"], provider=node["provider"], arguments=node["arguments"]),
                )
                for node in words["nodes"]
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many calls a trajectory may make, and how many it has made, failed ones included."""

    calls: int
    spent: int

    @property
    def left(self) -> int:
        return max(0, self.calls - self.spent)


def judge_proposal(
    proposal: Proposal,
    *,
    plan: Plan | None,
    status: Mapping[str, NodeStatus],
    budget: Budget,
    refused: Collection[tuple[str, str, str, str]] = (),
) -> Rejection | None:
    """Say by which rule a proposal is rejected; None when it may run (PL2).

    Args:
        plan: None while there is none; then only the plan itself may be asked for.
        refused: keys of calls that failed by their input.
    """
    known = {PLAN: NodeStatus.OPEN if plan is None else NodeStatus.VERIFIED, **status}
    if known.get(proposal.node) is NodeStatus.VERIFIED:
        return Rejection.REPEATS_VERIFIED_BRANCH
    if known.get(proposal.node) is not NodeStatus.OPEN:
        return Rejection.SERVES_NO_OPEN_NODE
    needs = () if plan is None else plan.node(proposal.node).needs
    if any(known.get(name) is not NodeStatus.VERIFIED for name in needs):
        return Rejection.BREAKS_DEPENDENCY
    if proposal.key in refused:
        return Rejection.REPEATS_REFUSED_INPUT
    return None if budget.left else Rejection.EXCEEDS_BUDGET


def fault_of_plan(plan: Plan) -> str | None:
    """Say what makes a plan unusable; None for a plan that can be taken (PL1)."""
    if not plan.nodes:
        return "the plan has no node"
    if len(set(plan.names)) < len(plan.names) or PLAN in plan.names:
        return "the plan names a node twice"
    named: set[str] = set()
    for node in plan.nodes:
        if unknown := [need for need in node.needs if need not in plan.names]:
            return f"the plan needs {unknown[0]} and does not name it"
        named.add(node.node)
    try:
        order = list(TopologicalSorter({node.node: node.needs for node in plan.nodes}).static_order())
    except CycleError:
        return "the plan goes in a circle"
    # The nodes are taken as they stand, so what is needed has to stand first.
    stands = {name: place for place, name in enumerate(plan.names)}
    late = [name for name in order for need in plan.node(name).needs if stands[need] > stands[name]]
    return f"the plan names {late[0]} before what it needs" if late else None


def _no_node(name: str) -> PlanNode:
    raise KeyError(name)
