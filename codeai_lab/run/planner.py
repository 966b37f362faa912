"""What does the model do in a trajectory, and what if it is a script?

Chapter: 003: the model plans, proposes, quotes and compares; the harness decides what of it runs.

Idea: everything that the model contributes goes through a few doors, so a script can stand in for it: the
same plan, the same quotes, the same words on every run, with no network. It knows no film: what it says
follows from the request and from what it is handed.

Always true:
  PN1. The same arguments give the same answer, unless the script says that this call times out.
  PN2. A proposal and a revision are words; the harness judges them before anything runs.

Not here: what is accepted of it (`decide.plan`, `decide.acceptance`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from codeai_lab.decide.acceptance import mentions
from codeai_lab.decide.plan import Proposal
from codeai_lab.decide.trajectory import Call, TrajectoryState
from codeai_lab.run.film_tools import ToolInputError, ToolTimeoutError

MOST_QUOTED = 3


class Caller(Protocol):
    """Whoever answers calls: a tool box, or the model."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Answer, or raise a ToolError."""
        ...


class Planner(Caller, Protocol):
    """What a model does besides answering calls; neither of these is a call, and neither runs anything."""

    def propose(self, state: TrajectoryState) -> tuple[Proposal, ...]:
        """Say what it would have run next, best first; () leaves it to the plan."""
        ...

    def revise(self, state: TrajectoryState, failed: Call, repair: int) -> Mapping[str, Any]:
        """Give other arguments for a call whose input was refused; `repair` counts from 1."""
        ...


class ScriptedPlanner:
    """A planner without a model.

    Args:
        timeouts: (tool, n): the nth call of this tool gets no answer, counted for this object's life.
        proposals: what it proposes whenever it is asked, besides the plan.
        tool: the search that its plan prefers.
    """

    def __init__(
        self,
        *,
        timeouts: tuple[tuple[str, int], ...] = (),
        proposals: tuple[Proposal, ...] = (),
        tool: str = "vector_search",
    ) -> None:
        self._timeouts = frozenset(timeouts)
        self._proposals = proposals
        self._tool = tool
        self._counts: Counter[str] = Counter()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Plan, quote or compare.

        Raises: ToolTimeoutError (indefinite) where the script says so; ToolInputError (definite).
        """
        self._counts[tool] += 1
        if (tool, self._counts[tool]) in self._timeouts:
            raise ToolTimeoutError(tool, f"{tool} did not answer in time.")
        if tool == "plan":
            return self._plan(arguments["request"])
        if tool == "quote":
            return _quote(arguments)
        if tool == "compare":
            return _compare(arguments)
        raise ToolInputError(tool, "The planner plans, quotes and compares; nothing else.")

    def propose(self, _: TrajectoryState) -> tuple[Proposal, ...]:
        return self._proposals

    def revise(self, state: TrajectoryState, failed: Call, repair: int) -> Mapping[str, Any]:
        """Search by the rewritten words; each further revision leaves the last of them out."""
        sought = {one.node: one for one in state.request.sought}.get(failed.proposal.node)
        if sought is None or "film_id" in failed.proposal.arguments:
            return failed.proposal.arguments
        words = sought.rewritten.split()
        return {"query": " ".join(words[: max(1, len(words) - repair + 1)])}

    def _plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        films = [
            {
                "node": sought["node"], "kind": "film", "needs": [],
                "tool": self._tool, "provider": "primary", "arguments": {"query": sought["query"]},
            }
            for sought in request["sought"]
        ]  # fmt: skip
        compare = {
            "node": "compare", "kind": "compare", "needs": [film["node"] for film in films],
            "tool": "compare", "provider": "planner", "arguments": {},
        }  # fmt: skip
        return {"nodes": [*films, compare]}


def _quote(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Quote the passages that speak of most of the terms, in the record's order."""
    passages = arguments["passages"]
    counts = [sum(mentions(one["text"], term) for term in arguments["terms"]) for one in passages]
    best = sorted(range(len(passages)), key=lambda place: (-counts[place], place))[:MOST_QUOTED]
    return {"passages": [passages[place]["passage_id"] for place in sorted(best)]}


def _compare(arguments: Mapping[str, Any]) -> dict[str, Any]:
    said = [f"{film['title']}: {film['passage']}" for film in arguments["films"]]
    titles = {film["film_id"]: film["title"] for film in arguments["films"]}
    better = titles.get(arguments["recommended"], "neither")
    text = " ".join([*said, f"The treatment with more {arguments['criterion']} is that of {better}."])
    return {"text": text, "recommended": arguments["recommended"]}
