"""Things to step, as small as the laws need them."""

from __future__ import annotations

from codeai_lab.decide.stepping import Choice, Frame, MarkKind

State = tuple[str, ...]


class Fork:
    """Two steps, then three ways, then two steps to the end; "bad" breaks. It counts what it is asked for."""

    title = "A <fork>"

    def __init__(self) -> None:
        self.asked: list[tuple[State, str | None]] = []
        self.is_broken = False
        self.error: BaseException = OSError("disk at some/secret/path <full>")

    def start(self) -> State:
        return ("start",)

    def advance(self, state: State, choice: str | None = None) -> State:
        self.asked.append((state, choice))
        if self.is_broken or choice == "bad":
            raise self.error
        return (*state, choice or f"s{len(state)}")

    def frame(self, state: State) -> Frame:
        is_over = len(state) == 6
        return Frame(
            mark=state[-1],
            kind={1: MarkKind.START, 3: MarkKind.FAILURE, 6: MarkKind.END}.get(len(state), MarkKind.STEP),
            headline=f"State {len(state)} & {state[-1]}.",
            facts=(("length", str(len(state))),),
            choices=tuple(
                Choice(name=name, label=name.upper(), meaning=f"the {name} way")
                for name in ("left", "right", "bad")
            )
            if len(state) == 3
            else (),
            is_over=is_over,
            outcome={"way": state[3], "steps": len(state) - 1} if is_over else {},
        )


class Turns:
    """The same two choices at every state, five times: who moves."""

    title = "Turns"

    def start(self) -> str:
        return ""

    def advance(self, state: str, choice: str | None = None) -> str:
        return state + str(choice)

    def frame(self, state: str) -> Frame:
        is_over = len(state) == 5
        return Frame(
            mark=state[-1:] or "start",
            kind=MarkKind.STEP,
            headline=f"Moved: {state}.",
            choices=() if is_over else (Choice(name="a", label="a"), Choice(name="b", label="b")),
            is_over=is_over,
            outcome={"moves_made": state} if is_over else {},
        )


class Long:
    """A run without choices; over after so many states, or never."""

    title = "A long one"

    def __init__(self, length: int | None) -> None:
        self.length = length

    def start(self) -> int:
        return 0

    def advance(self, state: int, choice: str | None = None) -> int:
        return state + 1

    def frame(self, state: int) -> Frame:
        is_over = self.length is not None and state + 1 == self.length
        return Frame(
            mark=f"m{state}", kind=MarkKind.STEP, headline=f"At {state}.", is_over=is_over, outcome={}
        )
