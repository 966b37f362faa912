"""Who changes a query that failed?

Chapter: 003, "Retry only operations that can be repeated safely": the error goes back to the model so that
the query can change.

Idea: a model is anything that makes new arguments from the old ones and the problem. Three stand in for it,
so that a lesson comes out the same on every run: one that reads the error and mends one word, one that
changes the call and nothing that matters, and one that says again what it said.

Always true:
  RV1. A reviser sees the arguments and the problem, and no database.
  RV2. `mend_spelling` changes one word, the one that the error names, to the nearest that there is.

Not here: how often one is asked (`run.repairing`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from codeai_lab.decide.repair import Problem

_NAMED_BY = (
    re.compile(r'column "(\w+)"'),
    re.compile(r"(?:Table|Function) with name (\w+)"),
    re.compile(r'at or near "(\w+)"'),
)
_KEYWORDS = ("select", "from", "where", "group", "order", "by", "having", "limit", "join", "using", "and")


def mend_spelling(arguments: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Replace the word that the error names by the nearest keyword, or the nearest name in the schema."""
    query = str(arguments["query"])
    wrong = next((found[1] for named in _NAMED_BY if (found := named.search(problem.message))), None)
    known = _KEYWORDS if problem.kind == "syntax" else re.findall(r"[a-z_]+", problem.hint)
    if wrong is None or not (near := get_close_matches(wrong.lower(), known, n=1)):
        return dict(arguments)
    return {**arguments, "query": re.sub(rf"\b{re.escape(wrong)}\b", near[0], query, count=1)}


def change_nothing_that_matters(arguments: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Make another call of it that fails for the same reason."""
    return {**arguments, "query": f"{arguments['query']} -- {problem.kind}"}


def say_it_again(arguments: Mapping[str, Any], _: Problem) -> dict[str, Any]:
    """Propose the very call that failed."""
    return dict(arguments)
