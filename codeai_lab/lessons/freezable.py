"""Which lessons can become evidence, under which rules, and what is planned then?

Chapter: 004, "Checking it without trusting it": frozen protocol, no fixes during the run.

Idea: three kinds of lessons leave something to check: requests under a rule set, a chain of work or a
trajectory of the one harness that there is, and samples of a simulation. Each is frozen in a way of its own;
here they are one table, for whoever freezes, and for whoever plays a bundle's protocol again.

Always true:
  FB1. A lesson's protocol under its rules is the same every time, and known before anything is played.

Not here: the freezing (`lessons.freezing`, `lessons.freezing_calls`, `lessons.freezing_samples`,
`lessons.film_recovery`), the rerun (`lessons.rerunning`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons import LESSONS
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.lessons.measured import Progress
from codeai_lab.run.revisions import REVISIONS

SAMPLED = (
    "backoff", "contention", "overload", "layers", "throttling", "hedging", "duplicates", "libraries",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Freezable:
    """A lesson that can become evidence.

    Args:
        rules: under which it can be played; the last is taken where nobody says.
        protocol: rules -> what will be done and what must come of it.
        freeze: (rules, to, notebook, progress) -> the bundle's digest.
    """

    name: str
    rules: tuple[str, ...]
    protocol: Callable[[str], Mapping[str, Any]]
    freeze: Callable[[str, Path, Path | None, Progress | None], str]

    def rules_named(self, name: str | None) -> str:
        """Give the rules of a name, or the usual ones.

        Raises: RefusedRequestError (definite) for rules that the lesson is not played under.
        """
        if name is None:
            return self.rules[-1]
        if name not in self.rules:
            raise RefusedRequestError(
                f"{self.name} is not frozen under {name}; leave the rules out, or name one of: "
                f"{', '.join(self.rules)}."
            )
        return name


def freezable(name: str) -> Freezable:
    """Give a lesson that can become evidence.

    Raises: RefusedRequestError (definite) for another, naming those that can.
    """
    if name in LESSONS:
        return _of_requests(name)
    if name in SAMPLED:
        return _of_samples(name)
    if name == "working-state":
        return _of_work()
    if name == "film-recovery":
        return _of_films()
    there = ", ".join([*LESSONS, "working-state", "film-recovery", *SAMPLED])
    raise RefusedRequestError(f"There is no lesson called {name} that can be frozen; there are: {there}.")


def _of_requests(name: str) -> Freezable:
    lesson = LESSONS[name]

    def freeze(rules: str, to: Path, notebook: Path | None, progress: Progress | None) -> str:
        told = _counting(progress, len(lesson.cases))
        return freeze_lesson(lesson, REVISIONS[rules], to, notebook=notebook, progress=told)

    return Freezable(name=name, rules=tuple(REVISIONS), protocol=lesson.protocol, freeze=freeze)


# What follows is imported when it is asked for: simulations need numpy, and most commands do not.


def _of_work() -> Freezable:
    calls = import_module("codeai_lab.lessons.freezing_calls")

    def freeze(_rules: str, to: Path, notebook: Path | None, progress: Progress | None) -> str:
        told = _counting(progress, len(calls.protocol()["cases"]))
        digest: str = calls.freeze_working_state(to, notebook=notebook, progress=told)
        return digest

    return Freezable(
        name=calls.LESSON, rules=(calls.REVISION,), protocol=lambda _rules: calls.protocol(), freeze=freeze
    )


def _of_films() -> Freezable:
    films = import_module("codeai_lab.lessons.film_recovery")

    def freeze(_rules: str, to: Path, notebook: Path | None, _progress: Progress | None) -> str:
        digest: str = films.freeze_film_recovery(to, notebook=notebook)
        return digest

    return Freezable(name=films.LESSON, rules=("film",), protocol=films.protocol, freeze=freeze)


def _of_samples(name: str) -> Freezable:
    samples = import_module("codeai_lab.lessons.freezing_samples")

    def freeze(_rules: str, to: Path, notebook: Path | None, progress: Progress | None) -> str:
        digest: str = samples.freeze_samples(name, to, notebook=notebook, progress=progress)
        return digest

    return Freezable(
        name=name, rules=(samples.RULES,), protocol=lambda _rules: samples.protocol(name), freeze=freeze
    )


def _counting(progress: Progress | None, of: int) -> Callable[[str], None] | None:
    """Tell how many cases are done to one who counts, where the play only names the next."""
    if progress is None:
        return None
    done = iter(range(of))
    return lambda case: progress(case, next(done), of)
