"""What may the harness ask about films, and how may it fail?

Chapter: 003, "Play the trace below": the tools are `vector_search`, `lexical_search` and `get_film`, and the
memory search times out.

Idea: three tools that only read, behind one door, `call`. Each search ranks the whole corpus by a score; the
two differ in what they call near. A *fault* makes the nth call of a tool fail in a chosen way, so that a
failure comes at the same call in every run.

    tools = FilmTools(faults=(Fault(tool="vector_search", nth=2, kind=FaultKind.TIMEOUT),))
    tools.call("vector_search", {"query": "an artificial mind"})

Always true:
  FT1. The same calls give the same answers in every process; a tie is broken by film_id.
  FT2. Every call counts, refused or failed; the nth call of a tool fails as its fault says, and no other.
  FT3. A call that cannot be answered as it is asked is a ToolInputError, and it will not do better again.
  FT4. A timeout is indefinite: the caller does not know what became of the call. No tool changes anything.

Not here: what to do about a failure (`decide.repair`), checking a record against its candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from codeai_lab.decide.repair import ErrorKind
from codeai_lab.errors import LabError
from codeai_lab.run.film_index import WordIndex
from codeai_lab.run.film_vectors import closeness, embed
from codeai_lab.run.films import FILMS, Film


class ToolError(LabError):
    """A tool gave no answer; `tool` names it, `kind` says what may be done about it."""

    kind = ErrorKind.TRANSIENT

    def __init__(self, tool: str, message: str) -> None:
        super().__init__(message)
        self.tool = tool


class ToolTimeoutError(ToolError):
    """No answer came in time; whether the tool did its work is not known."""

    definite = False


class ToolUnavailableError(ToolError):
    """The tool was not reached, so it did nothing."""


class ToolAnswerError(ToolError):
    """An answer came and cannot be read; it is thrown away whole."""


class ToolInputError(ToolError):
    """The call cannot be answered as it is: change it, since the same call fails again."""

    kind = ErrorKind.INPUT


class FaultKind(StrEnum):
    """In which way a call fails."""

    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    MALFORMED = "malformed"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The nth call of a tool, counted from 1, fails so.

    A contradiction is no error: `get_film` gives another film's plot under the id that was asked for.
    """

    tool: str
    nth: int
    kind: FaultKind | str

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", FaultKind(self.kind))
        if self.tool not in TOOLS or self.nth < 1:
            raise ValueError("a fault names a tool and one of its calls, counted from 1")
        if self.kind is FaultKind.CONTRADICTION and self.tool != "get_film":
            raise ValueError("only a record can contradict its candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A film that a search found; `score` is from 0 to 1 and means what its search means by near."""

    film_id: str
    title: str
    score: float


TOOLS = ("lexical_search", "vector_search", "get_film")


class FilmTools:
    """The tools over a corpus.

    Args:
        films: the corpus.
        faults: which calls fail, and how; calls are counted for as long as this object lives.
    """

    def __init__(self, films: tuple[Film, ...] = FILMS, faults: tuple[Fault, ...] = ()) -> None:
        self._films = {film.film_id: film for film in films}
        self._faults = {(fault.tool, fault.nth): FaultKind(fault.kind) for fault in faults}
        self._counts: Counter[str] = Counter()
        self._words = WordIndex({film.film_id: f"{film.title}. {film.summary}" for film in films})
        self._vectors = {film.film_id: embed(_plot(film)) for film in films}

    @property
    def calls(self) -> Mapping[str, int]:
        """How often each tool was called so far."""
        return {tool: self._counts[tool] for tool in TOOLS}

    def lexical_search(self, query: str, limit: int = 3) -> tuple[Hit, ...]:
        """Give the films that have the words of the query in title or summary, best first."""
        found: tuple[Hit, ...] = self.call("lexical_search", {"query": query, "limit": limit})
        return found

    def vector_search(self, query: str, limit: int = 3) -> tuple[Hit, ...]:
        """Give the films that are about what the query is about, nearest first."""
        found: tuple[Hit, ...] = self.call("vector_search", {"query": query, "limit": limit})
        return found

    def get_film(self, film_id: str) -> dict[str, Any]:
        """Give the record of a film as plain JSON, with the id of its source and its passages."""
        record: dict[str, Any] = self.call("get_film", {"film_id": film_id})
        return record

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool by name.

        Returns: what the tool gives: a tuple of hits, or a record.
        Raises: ToolTimeoutError (indefinite), ToolUnavailableError, ToolAnswerError (transient all three);
            ToolInputError (definite) for a tool, a field or a value that is not to be had.
        """
        if tool not in TOOLS:
            raise ToolInputError(str(tool), f"There is no such tool; there are: {', '.join(TOOLS)}.")
        self._counts[tool] += 1
        fault = self._faults.get((tool, self._counts[tool]))
        if fault in _RAISED:
            raise _RAISED[fault](tool)
        given = _checked(tool, arguments)
        if tool == "get_film":
            return self._record(given["film_id"], contradicting=fault is FaultKind.CONTRADICTION)
        scores = self._words.scores if tool == "lexical_search" else self._nearness
        return self._ranked(scores(given["query"]), given["limit"])

    def _ranked(self, scores: Mapping[str, float], limit: int) -> tuple[Hit, ...]:
        # Rounded before it is compared, so that no last bit of a sum decides a rank.
        rounded = {film_id: round(score, 6) for film_id, score in scores.items()}
        best = sorted((-score, film_id) for film_id, score in rounded.items() if score > 0)[:limit]
        return tuple(
            Hit(film_id=film_id, title=self._films[film_id].title, score=-score) for score, film_id in best
        )

    def _nearness(self, query: str) -> dict[str, float]:
        asked = embed(query)
        return {film_id: closeness(asked, vector) for film_id, vector in self._vectors.items()}

    def _record(self, film_id: str, *, contradicting: bool) -> dict[str, Any]:
        film = self._films.get(film_id)
        if film is None:
            raise ToolInputError("get_film", "There is no film with this id; search for it first.")
        told = self._unlike(film) if contradicting else film
        return {
            "source_id": film.source_id,
            "film_id": film.film_id,
            "title": film.title,
            "year": film.year,
            "director": film.director,
            "summary": told.summary,
            "themes": list(told.themes),
            "passages": [
                {"passage_id": f"{film.source_id}#{number}", "text": text}
                for number, text in enumerate(told.passages, start=1)
            ],
        }

    def _unlike(self, film: Film) -> Film:
        """Give the film that is least about what this one is about."""
        own = self._vectors[film.film_id]
        others = ((round(closeness(own, vector), 6), name) for name, vector in self._vectors.items())
        return self._films[min(others)[1]]


def _plot(film: Film) -> str:
    return f"{film.summary} {' '.join(film.themes)}"


def _checked(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give the arguments of a call with the usual ones filled in; refuse what no answer could be given to."""
    usual: dict[str, Any] = {} if tool == "get_film" else {"limit": 3}
    asked = "film_id" if tool == "get_film" else "query"
    given = {**usual, **arguments}
    unknown = sorted(str(name) for name in given.keys() - {asked, *usual})
    if unknown:
        known = " and ".join([asked, *usual])
        raise ToolInputError(tool, f"{tool} has no field {unknown[0]!r}; it takes {known}.")
    text = given.get(asked)
    if not isinstance(text, str) or not text.strip():
        raise ToolInputError(tool, f"{tool} needs a {asked} that is text and not empty.")
    if "limit" in given and (type(given["limit"]) is not int or given["limit"] < 1):
        raise ToolInputError(tool, f"{tool} needs a limit that is a whole number, 1 or more.")
    return given


_RAISED: Mapping[FaultKind | None, Callable[[str], ToolError]] = {
    FaultKind.TIMEOUT: lambda tool: ToolTimeoutError(tool, f"{tool} did not answer in time."),
    FaultKind.UNAVAILABLE: lambda tool: ToolUnavailableError(tool, f"{tool} is not available now."),
    FaultKind.MALFORMED: lambda tool: ToolAnswerError(tool, f"{tool} gave an answer that cannot be read."),
}
