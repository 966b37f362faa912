"""What is asked in a case, and what must come of it?

Chapter: 004, "The executed demo, read exactly": few cases, each with numbers.

Idea: a case is data: requests in order, what goes wrong around each, and what each rule set is expected to
give. The protocol of a bundle is this data written down before the run.

Always true:
  Z1. Expectations are written by hand from the chapter; nothing computes them from a run.
  Z2. Ids and keys are unique within a lesson.

Not here: playing a case (`lessons.playing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from codeai_lab.run.revisions import REVISIONS

if TYPE_CHECKING:
    from codeai_lab.lessons.playing import Table

PERMITTED = "file.append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One action that is asked for.

    Args:
        id, key: the action's id and its idempotency key.
        world: the state that the world is moved to before this request; None leaves it where it is.
        raises: what the adapter raises right after the effect; None when it returns.
        moves: the state that the effect itself moves the world to.
        blind: True when nobody can read the state of the world.
    """

    id: str
    key: str
    instruction: str = "append one line to the file"
    line: str = "one line"
    permitted: bool = True
    precondition: str | None = None
    world: str | None = None
    raises: type[BaseException] | None = None
    moves: str | None = None
    blind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskCall:
    """One model call that is asked for."""

    id: str
    key: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a rule set must give for a case; one entry a request in the tuples."""

    statuses: tuple[str | None, ...]
    effects_world: int
    reused_from: tuple[str | None, ...] = ()
    raised: tuple[str | None, ...] = ()

    def as_json(self) -> dict[str, Any]:
        nothing = [None] * len(self.statuses)
        return {
            "requests": len(self.statuses),
            "statuses": list(self.statuses),
            "reused_from": list(self.reused_from) or nothing,
            "raised": list(self.raised) or nothing,
            "effects_world": self.effects_world,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: its requests in order, and what is expected under each rule set that is not `otherwise`.

    Args:
        marked: what takes part in it whose order nobody promises; the expected statuses are then those that
            are allowed.
        script: plays the asks in another way than one after the other.
    """

    name: str
    question: str
    asks: tuple[Ask | AskCall, ...]
    otherwise: Expected
    expected: Mapping[str, Expected] = field(default_factory=dict)
    marked: tuple[Literal["threads", "processes"], ...] = ()
    script: Callable[[Table, Case], None] | None = None

    def expected_under(self, revision: str) -> Expected:
        return self.expected.get(revision, self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Cases that belong together, in the order in which they are played."""

    name: str
    chapter: str
    question: str
    cases: tuple[Case, ...]

    def protocol(self, revision: str) -> dict[str, Any]:
        """Write down what will be done and what must come of it, before it is done."""
        return {
            "format": "codeai-lab-protocol-v1",
            "lesson": self.name,
            "revision": revision,
            "seed": 0,
            "ledger_id": self.ledger_id(revision),
            "cases": [
                {
                    "case": case.name,
                    "question": case.question,
                    "requests": [
                        {
                            "id": ask.id,
                            "kind": "call" if isinstance(ask, AskCall) else "action",
                            "key": ask.key,
                        }
                        for ask in case.asks
                    ],
                    "marked": list(case.marked),
                    "expected": case.expected_under(revision).as_json(),
                }
                for case in self.cases
            ],
        }

    def ledger_id(self, revision: str) -> str:
        """Give the name of the ledger that a play under a rule set makes."""
        return f"{self.name}/{revision}"


def under(*revisions: str, gives: Expected) -> dict[str, Expected]:
    """Give the same expectation for several rule sets; a misspelt name fails at import."""
    return {REVISIONS[name].name: gives for name in revisions}
