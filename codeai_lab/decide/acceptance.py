"""May this candidate become evidence, and which of two films is recommended?

Chapter: 003, "Checkpoint only verified progress", "Record fallback as a different evidence path".

Idea: a candidate is judged under the threshold of the method that found it. One that came by another path
than the plan's is accepted only with a recorded fallback, and never under the threshold of the old path: two
searches do not mean the same by a score. The recommendation is computed from what was quoted as evidence.

    another path, no fallback recorded      refused, field `fallback`
    judged under another path's threshold   refused, field `acceptance_threshold`
    below the threshold                     refused, field `score`
    nothing quoted, or not from the record  refused, field `passages`

Always true:
  AC1. A refusal names its field; the first that applies, in the order above.
  AC2. A record that is about something else than what was sought contradicts its candidate.
  AC3. The recommendation is the film with the highest score, the first in the plan's order on a tie.

Not here: what is done about a refusal (`decide.trajectory`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from codeai_lab.decide.plan import Route
from codeai_lab.decide.states import Criterion, Evidence, Sought


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A threshold: the path that it is for, and the least score that it takes there."""

    method: str
    provider: str
    minimum: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judgement: accepted, or refused for a reason that concerns one field."""

    accepted: bool
    reason: str | None = None
    field: str | None = None


ACCEPTED = Judged(accepted=True)


def judge_candidate(
    *,
    score: float,
    found_by: Route,
    planned: Route,
    acceptance: Acceptance,
    fallback: Mapping[str, Any] | None,
) -> Judged:
    """Judge a candidate under a threshold (AC1).

    Args:
        found_by, planned: the path that led to it, and the one that the plan had.
        fallback: the payload of the `fallback.used` that explains a difference.
    """
    path = (found_by.tool, found_by.provider)
    if path != (planned.tool, planned.provider):
        new = None if fallback is None else fallback["new"]
        if new is None or (new["tool"], new["provider"]) != path:
            return _refused(
                "the path to this candidate is not the plan's and no fallback says so", "fallback"
            )
    if (acceptance.method, acceptance.provider) != path:
        return _refused("the threshold is that of another path", "acceptance_threshold")
    if score < acceptance.minimum:
        return _refused("the score is below the threshold", "score")
    return ACCEPTED


def contradiction(record: Mapping[str, Any], film_id: str, sought: Sought) -> str | None:
    """Say in what a record contradicts the candidate that it was looked up for; None when it does not."""
    if record.get("film_id") != film_id:
        return "film_id"
    if sought.title is not None and record.get("title") != sought.title:
        return "title"
    told = f"{record.get('summary', '')} {' '.join(record.get('themes', ()))}"
    return None if any(mentions(told, term) for term in sought.about) else "summary"


def judge_quotes(record: Mapping[str, Any], quoted: Sequence[str]) -> Judged:
    """Accept quoted passages that are all in the record; at least one is needed."""
    known = {passage["passage_id"] for passage in record["passages"]}
    if not quoted or not known.issuperset(quoted):
        return _refused("what is quoted is not in the record", "passages")
    return ACCEPTED


def judge_comparison(said: Mapping[str, Any], titles: Iterable[str], recommended: str | None) -> Judged:
    """Accept a comparison that speaks of every film and recommends what the evidence does."""
    if said.get("recommended") != recommended:
        return _refused("the evidence recommends another film", "recommended")
    if not all(title in str(said.get("text")) for title in titles):
        return _refused("the comparison leaves a film out", "text")
    return ACCEPTED


def scores(films: Iterable[Evidence], criterion: Criterion) -> dict[str, int]:
    """Count for each film how many of the criterion's terms its quoted passages and its themes have."""
    return {str(film.film_id): sum(mentions(_told(film), term) for term in criterion.terms) for film in films}


def recommended(scored: Mapping[str, int]) -> str | None:
    """Give the film with the highest score (AC3); None where there is no film."""
    return max(scored, key=lambda film: scored[film], default=None)


def mentions(text: str, term: str) -> bool:
    """Say whether a term occurs in a text as a word, or begins one where it ends in `*`."""
    words = re.findall(r"[a-z]+", text.lower())
    if term.endswith("*"):
        return any(word.startswith(term[:-1]) for word in words)
    return term in words


def _told(film: Evidence) -> str:
    return " ".join([*(passage["text"] for passage in film.passages), *film.result.get("themes", ())])


def _refused(reason: str, field: str) -> Judged:
    return Judged(accepted=False, reason=reason, field=field)
