"""How is a long experiment run in parts, so that it can be watched, stopped and gone on with?

Chapter: 000, section 15.7: a bounded policy needs a limit on attempts and on time; so does an experiment.

Idea: a sweep is a list of parts. A part is a name and a function call whose answer is small, plain JSON; its
chance comes from its own name (`explore.dice`), so it does not matter where, when or in which order it runs.
Answers are kept in a file, a line each, as they come; a sweep that is started again runs only what is
missing.

Always true:
  SW1. The answers are given in the order of the parts, whoever ran them; with the same parts, the same bytes.
  SW2. No more parts are handed out than `window` at a time, so a sweep of any length runs in bounded memory.
  SW3. An interrupt loses at most the parts that were under way; those that had not begun are cancelled.
  SW4. A kept answer is used only for the very same part: same name, function and arguments.
  SW5. Our own workers end with this process, however it ends, and none of them hears Ctrl-C.

Not here: what is sampled (`explore.contention`, `explore.duplicates`, ...).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from codeai_lab.canonical import canonical_bytes, digest
from codeai_lab.errors import RefusedRequestError
from codeai_lab.run.child import unheard_interrupts, work_with_parent, workers_start

LINE_START = b'{"answer":'
Progress = Callable[[str, int, int], None]
Answer = Any  # plain JSON
Submit = Callable[..., Future[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One call of a sweep.

    Args:
        name: what the progress says, and what the part's random stream should be named after.
        task: a function of a module, so that another process can find it; its answer is plain JSON.
        arguments: its keyword arguments, plain JSON.
        check: says whether an answer that was kept may be this part's, by its form; it stays here.
    """

    name: str
    task: Callable[..., Answer]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Answer], bool] | None = None

    @property
    def identity(self) -> str:
        """The digest of what is asked; a kept answer is found by it."""
        called = f"{self.task.__module__}.{self.task.__qualname__}"
        return digest({"name": self.name, "task": called, "arguments": dict(self.arguments)})


def sweep(
    parts: Sequence[Part],
    *,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress | None = None,
    window: int = 64,
) -> Iterator[Answer]:
    """Run the parts and give their answers, in order.

    Args:
        executor: anything that is a `concurrent.futures.Executor`, such as dask's `Client.get_executor()`;
            the caller closes it. By default processes of this machine, as many as it has cores. A single
            part runs here.
        keep: a file in which answers are kept, and looked up first.
        progress: told the name of the part that just ended, how many are done, and of how many.
        window: how many parts may be under way or waiting at a time.

    Raises: RefusedRequestError (definite) for a file that holds something else, and for one that cannot be
        read and written, before any part runs; what a part raises, and KeyboardInterrupt; what was answered
        before is kept.
    """
    kept = _Kept(keep, parts)
    missing = [place for place, part in enumerate(parts) if part.identity not in kept.answers]
    done = len(parts) - len(missing)
    if progress is not None:
        progress("kept from before" if done else "starting", done, len(parts))

    def told(part: Part) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(part.name, done, len(parts))

    with _workers(executor, len(missing)) as submit:
        arriving = _answers(parts, missing, submit, window, cancels=executor is not None)
        early: dict[int, Answer] = {}
        for place, part in enumerate(parts):
            if place not in early and part.identity in kept.answers:
                yield kept.answers[part.identity]
                continue
            while place not in early:
                which, answer = next(arriving)
                early[which] = kept.add(parts[which], answer)
                told(parts[which])
            yield early.pop(place)


def _answers(
    parts: Sequence[Part], missing: Sequence[int], submit: Submit | None, window: int, *, cancels: bool
) -> Iterator[tuple[int, Answer]]:
    """Give (place, answer) of the missing parts as they end, with at most `window` of them under way."""
    if submit is None:
        for place in missing:
            yield place, parts[place].task(**parts[place].arguments)
        return
    under_way: dict[Future[Answer], int] = {}
    waiting = iter(missing)
    try:
        while True:
            for place in waiting:
                under_way[submit(parts[place].task, **parts[place].arguments)] = place
                if len(under_way) >= window:
                    break
            if not under_way:
                return
            ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=under_way.__getitem__):
                yield under_way.pop(future), future.result()
    finally:
        for future in under_way if cancels else ():
            future.cancel()


@contextmanager
def _workers(executor: Executor | None, parts: int) -> Iterator[Submit | None]:
    """Give what takes the parts: the caller's executor, processes of our own, or None for one part."""
    if executor is not None or parts < 2:
        yield None if executor is None else executor.submit
        return
    # Spawned, not forked: the caller may hold threads, a ledger or a kernel, none of which survives a fork.
    spawning = get_context("spawn")
    attached_to, let_go = spawning.Pipe(duplex=False)
    with workers_start():
        own = ProcessPoolExecutor(
            min(parts, os.cpu_count() or 1), spawning, initializer=work_with_parent, initargs=(attached_to,)
        )

    def submit(task: Callable[..., Answer], /, **arguments: Any) -> Future[Answer]:
        with workers_start():  # the pool starts them as they are needed
            return own.submit(task, **arguments)

    try:
        yield submit
    except BaseException:
        # Nobody waits for the parts that are under way: the workers end, and the pool notices. None is
        # cancelled before, for a pool that finds a cancelled part when it notices fails with a traceback.
        let_go.close()
        raise
    finally:
        with unheard_interrupts():  # an impatient second one would leave the pool half shut down
            own.shutdown(wait=True)
        let_go.close()
        attached_to.close()


class _Kept:
    """The file of answers: a line each, `{"answer", "part"}`; a torn last line is dropped."""

    def __init__(self, path: Path | None, parts: Sequence[Part]) -> None:
        self._path = path
        self.answers: dict[str, Answer] = {}
        if path is None:
            return
        try:
            content = path.read_bytes() if path.exists() else b""
            path.open("ab").close()
        except OSError as error:
            raise RefusedRequestError(
                f"Answers cannot be kept in {path.name} ({error.strerror}); name a file in a folder that is "
                "there and can be written to."
            ) from error
        whole, _, torn = content.rpartition(b"\n")
        try:
            for line in whole.splitlines():
                entry = json.loads(line)
                self.answers[entry["part"]] = entry["answer"]
            if not torn.startswith(LINE_START[: len(torn)]):
                raise ValueError("the last line is not ours either")
            self._require_forms(parts)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise RefusedRequestError(
                f"The file {path.name} does not hold the answers of a sweep; name another file, or remove it."
            ) from error
        if torn:
            path.write_bytes(whole + b"\n" if whole else b"")

    def _require_forms(self, parts: Sequence[Part]) -> None:
        for part in parts if self.answers else ():
            kept = part.identity in self.answers
            if kept and part.check is not None and not part.check(self.answers[part.identity]):
                raise ValueError(f"an answer of {part.name} has another form")

    def add(self, part: Part, answer: Answer) -> Answer:
        """Keep an answer, and give it in the form in which it would be read again."""
        line = canonical_bytes({"answer": answer, "part": part.identity})
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(line + b"\n")
        return json.loads(line)["answer"]
