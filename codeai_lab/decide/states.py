"""Which kinds of state does a trajectory leave behind, and how long does each live?

Chapter: 003, "Separate state by purpose and lifetime".

Idea: four kinds, four lifetimes, never one history. The request says what is wanted, the working state what
is done and what is open, the evidence what it rests on. Durable memory outlives them all and is no part of
them: a trajectory names a memory by its id and holds nothing of it.

    request   what is wanted              one trajectory            mishandled: the intent drifts
    working   plan, status, budget        one trajectory            mishandled: work is repeated or skipped
    evidence  sources, passages, results  while it must be checked  mishandled: the answer loses its support
    memory    preferences, facts          across, under a policy    mishandled: old or poisoned claims steer

Always true:
  ST1. Each kind is a record of its own, frozen, and says its lifetime.
  ST2. A record comes back from its JSON form equal to what it was.
  ST3. Evidence names a source, the passages, how and when it was found, and which calls it rests on.

Not here: durable memory (`decide.memory`), putting the kinds together (`decide.checkpoints`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar

from codeai_lab.decide.plan import Budget, NodeStatus, Plan


class Lifetime(StrEnum):
    """How long a kind of state lives."""

    TRAJECTORY = "one trajectory"
    CHECKPOINT = "one trajectory or checkpoint"
    WHILE_VERIFIABLE = "as long as the result must be verified"
    UNDER_POLICY = "across sessions, under policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """One film that is wanted.

    Args:
        node: the name of its branch.
        query: how it is searched for first; `rewritten` the words for a search by words.
        about: words of which its record must have one, or it is another film; a `*` ends a beginning.
        title: the title where the request names it.
    """

    node: str
    query: str
    rewritten: str
    about: tuple[str, ...]
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """By which words the better one is recognised."""

    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """What is wanted, by whom, and what was approved for this trajectory."""

    lifetime: ClassVar[Lifetime] = Lifetime.TRAJECTORY

    request_id: str
    performer: str
    goal: str
    constraints: tuple[str, ...]
    sought: tuple[Sought, ...]
    criterion: Criterion
    approvals: tuple[str, ...] = ()

    def for_node(self, node: str) -> Sought:
        """Give what is sought in a branch.

        Raises: KeyError for a branch that the request does not have.
        """
        return {one.node: one for one in self.sought}[node]

    def as_json(self) -> dict[str, Any]:
        return {
            "request_id": self.request_id,
            "performer": self.performer,
            "goal": self.goal,
            "constraints": list(self.constraints),
            "approvals": list(self.approvals),
            "sought": [{**asdict(one), "about": list(one.about)} for one in self.sought],
            "criterion": {"name": self.criterion.name, "terms": list(self.criterion.terms)},
        }

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> RequestState:
        """Read a request; raises KeyError, TypeError for words that are none."""
        return cls(
            request_id=words["request_id"],
            performer=words["performer"],
            goal=words["goal"],
            constraints=tuple(words["constraints"]),
            approvals=tuple(words["approvals"]),
            sought=tuple(Sought(**{**one, "about": tuple(one["about"])}) for one in words["sought"]),
            criterion=Criterion(name=words["criterion"]["name"], terms=tuple(words["criterion"]["terms"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall:
    """A call that failed: it stays in the record whatever is done about it."""

    call_id: str
    node: str
    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingState:
    """What is done, what is open, what it has cost."""

    lifetime: ClassVar[Lifetime] = Lifetime.CHECKPOINT

    plan: Plan | None
    status: Mapping[str, NodeStatus]
    budget: Budget
    failures: tuple[FailedCall, ...] = ()

    @property
    def open_questions(self) -> tuple[str, ...]:
        """The nodes that are not verified, in the plan's order."""
        return tuple(node for node, status in self.status.items() if status is not NodeStatus.VERIFIED)

    @property
    def retries(self) -> Mapping[str, int]:
        """How many calls failed on behalf of each node."""
        nodes = [failed.node for failed in self.failures]
        return {node: nodes.count(node) for node in dict.fromkeys(nodes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a node is verified: its source, what was read there, how it was found, which calls it rests on.

    Args:
        film_id, confidence: the film and the score of the search that found it; None for a comparison.
        result: what the record look-up (or the comparison) gave.
        validated_at: seq of the decision that accepted it.
    """

    node: str
    source_id: str
    film_id: str | None
    method: str
    provider: str
    passages: tuple[Mapping[str, str], ...]
    confidence: float | None
    recorded_at_us: int
    call_ids: tuple[str, ...]
    result: Mapping[str, Any]
    validated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceState:
    """What the verified nodes rest on."""

    lifetime: ClassVar[Lifetime] = Lifetime.WHILE_VERIFIABLE

    items: tuple[Evidence, ...] = ()

    def of(self, node: str) -> Evidence | None:
        return next((item for item in self.items if item.node == node), None)

    def without(self, nodes: tuple[str, ...]) -> EvidenceState:
        return EvidenceState(items=tuple(item for item in self.items if item.node not in nodes))

    def also(self, item: Evidence) -> EvidenceState:
        """Give the evidence with one more item, in place of an older one of the same node."""
        return EvidenceState(items=(*self.without((item.node,)).items, item))


NO_EVIDENCE = EvidenceState()
