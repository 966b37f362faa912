"""What may be remembered, what may it say later, and what is left once it was deleted?

Chapter: 003, "Keep durable memory under a separate policy".

Idea: a table of situations, each with one right answer. The first part asks the gate, the second asks for a
request, the third does it on disk and looks at what is left there.

    asked        answers
    remember     kept, refused
    recall       used, outranked, ask, expired, not_permitted, withheld, superseded, unrelated, not_mentioned
    afterwards   erased, kept_as_history, derived_again, refused

Always true:
  DM1. Every answer is computed by the code that decides it; what is expected was written by hand beside it.
  DM2. The rows are the same on every play.

Not here: the situations (`lessons.memory_offered`, `lessons.memory_asked`, `lessons.memory_on_disk`);
compression (`lessons.carried_state`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeai_lab.decide.admission import Gate, admit
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.memory import Candidate, Memory
from codeai_lab.decide.recall import Wish, recall
from codeai_lab.lessons.memory_asked import ASKED, EVERYTHING, Asked, asks
from codeai_lab.lessons.memory_offered import NOW_US, OFFERED, Offered
from codeai_lab.lessons.memory_on_disk import AFTERWARDS, Afterwards

LESSON = "durable-memory"
COLUMNS = ("case", "asked", "situation", "answer", "reason", "gate", "value", "options")
SITUATIONS: tuple[Offered | Asked | Afterwards, ...] = (*OFFERED, *ASKED, *AFTERWARDS)
Progress = Callable[[str, int, int], None]


def rows(progress: Progress | None = None) -> list[dict[str, Any]]:
    """Play every situation and give one row each, in order, as `replay --json` has them.

    Args:
        progress: is told (case, cases done, cases in all) before each case.
    """
    played = []
    for place, one in enumerate(SITUATIONS):
        if progress is not None:
            progress(one.case, place, len(SITUATIONS))
        played.append(play(one))
    return played


def play(one: Offered | Asked | Afterwards) -> dict[str, Any]:
    """Let the code that decides answer one situation, and give its row."""
    if isinstance(one, Offered):
        return _offer(one)
    return _ask(one) if isinstance(one, Asked) else _look_after(one)


def expected() -> list[dict[str, Any]]:
    """Give the rows as they were written by hand, without what was asked and why."""
    return [
        {
            "case": one.case,
            "answer": one.answer,
            "reason": one.reason,
            "gate": one.gate if isinstance(one, Offered) else None,
            "value": one.value if isinstance(one, Asked) else None,
            "options": list(one.options) if isinstance(one, Asked) else [],
        }
        for one in SITUATIONS
    ]


def unexpected(played: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name every value of a row that is not what was written by hand, a sentence each."""
    return [
        f"{row['case']}: {name} is {row[name]} and {value} was expected."
        for row, right in zip(played, expected(), strict=True)
        for name, value in right.items()
        if row[name] != value
    ]


def gates(claim: Candidate, known: Mapping[str, Memory] | None = None) -> dict[str, str]:
    """Say what each test would find in a claim had it been the only one, and what decides."""
    judged = admit(claim, known or {})
    return {**{str(gate): judged.at(gate) or "nothing" for gate in Gate}, "so": judged.reason}


def told(
    memories: Sequence[Memory],
    wish: Wish | None = None,
    *,
    now_us: int = NOW_US,
    authority: Authority = EVERYTHING,
) -> dict[str, Any]:
    """Ask about the style of a film and give one row: what each memory may say, the value, the options."""
    request = asks(wish)
    given = recall(memories, request, now_us=now_us, authority=authority)
    answers = {one.memory_id: f"{one.use}: {one.reason}" for one in given.recalled}
    options = [option for question in given.questions for option in question.options]
    return {**answers, "style": given.values.get(request.topics[0]), "ask, with": options}


def _offer(one: Offered) -> dict[str, Any]:
    judged = admit(one.candidate, {memory.memory_id: memory for memory in one.known})
    answer = "kept" if judged.is_kept else "refused"
    return _row(one, "remember", answer, judged.reason, gate=judged.gate)


def _ask(one: Asked) -> dict[str, Any]:
    given = recall(one.memories, one.request, now_us=NOW_US, authority=one.authority)
    about = given.of(one.memories[0].memory_id)
    answer, reason = (about.use, about.reason) if about else ("not_mentioned", "it is not the reader's")
    options = [option for question in given.questions for option in question.options]
    value = next(iter(given.values.values()), None)
    return _row(one, "recall", str(answer), reason, value=value, options=options)


def _look_after(one: Afterwards) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="codeai-lab-") as scratch:
        answer, reason = one.play(Path(scratch))
    return _row(one, "afterwards", answer, reason)


def _row(
    one: Offered | Asked | Afterwards, asked: str, answer: str, reason: str, **more: Any
) -> dict[str, Any]:
    row = {"case": one.case, "asked": asked, "situation": one.situation, "answer": answer, "reason": reason}
    return {**row, "gate": None, "value": None, "options": [], **more}
