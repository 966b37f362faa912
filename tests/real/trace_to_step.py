"""A trace that fails on the way and offers three policies; copied beside the notebooks of the tests."""

from __future__ import annotations

from codeai_lab.decide.stepping import Choice, Frame, MarkKind

BEFORE = ("start", "search drama", "look up film", "search memory")
AFTER = {
    "restart": ("search drama again", "look up film again", "search memory again", "answer"),
    "resume": ("search memory again", "answer"),
    "fallback": ("search words instead", "answer"),
    "break": (),
}
KINDS = {"start": MarkKind.START, "look up film": MarkKind.CHECKPOINT, "search memory": MarkKind.FAILURE}

State = tuple[str, ...]


class Trace:
    """A state is the names of the marks so far, and the policy among them."""

    title = "A trace that fails"

    def start(self) -> State:
        return BEFORE[:1]

    def advance(self, state: State, choice: str | None = None) -> State:
        if len(state) < len(BEFORE):
            return (*state, BEFORE[len(state)])
        if len(state) == len(BEFORE):
            if choice == "break":
                raise OSError("disk at some/secret/path")
            assert choice is not None
            return (*state, choice, AFTER[choice][0])
        policy = state[len(BEFORE)]
        return (*state, AFTER[policy][len(state) - len(BEFORE) - 1])

    def frame(self, state: State) -> Frame:
        policy = state[len(BEFORE)] if len(state) > len(BEFORE) else ""
        is_over = state[-1] == "answer"
        calls = len(state) - 1 - bool(policy)
        return Frame(
            mark=state[-1],
            kind=MarkKind.END if is_over else KINDS.get(state[-1], MarkKind.STEP),
            headline=f"Came to: {state[-1]}.",
            facts=(("calls", str(calls)), ("policy", policy or "-")),
            choices=tuple(
                Choice(name=name, label=name.capitalize(), meaning=f"{len(marks)} more calls")
                for name, marks in AFTER.items()
            )
            if len(state) == len(BEFORE)
            else (),
            is_over=is_over,
            outcome={"policy": policy, "calls": calls} if is_over else {},
        )
