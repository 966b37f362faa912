"""What a planner without a model says."""

from __future__ import annotations

import pytest

from codeai_lab.decide.plan import Plan, fault_of_plan
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.run.film_tools import ToolInputError, ToolTimeoutError
from codeai_lab.run.planner import ScriptedPlanner

REQUEST = {"request": STORY.request.as_json()}


def test_a_plan_follows_from_the_request() -> None:
    """One branch a film that is sought, and a comparison that needs them all; the plan can be taken."""
    plan = Plan.from_json(ScriptedPlanner().call("plan", REQUEST))
    assert fault_of_plan(plan) is None
    assert plan.names == ("ai-film", "memory-film", "compare")
    assert plan.node("compare").needs == ("ai-film", "memory-film")
    assert [node.route.tool for node in plan.nodes] == ["vector_search", "vector_search", "compare"]
    preferred = Plan.from_json(ScriptedPlanner(tool="lexical_search").call("plan", REQUEST))
    assert preferred.node("ai-film").route.tool == "lexical_search"


def test_quotes_are_those_that_speak_of_most() -> None:
    """At most three passages are quoted, those with the most terms, in the record's order."""
    texts = ["a robot", "nothing", "a mind and a robot", "a mind", "nothing more"]
    passages = [{"passage_id": str(number), "text": text} for number, text in enumerate(texts)]
    said = ScriptedPlanner().call("quote", {"passages": passages, "terms": ["robot", "mind"]})
    assert said == {"passages": ["0", "2", "3"]}


def test_a_comparison_repeats_what_it_was_handed() -> None:
    """The script knows no film: titles, passages and the recommendation are the arguments'."""
    films = [
        {"film_id": "a", "title": "A", "passage": "One."},
        {"film_id": "b", "title": "B", "passage": "Two."},
    ]
    said = ScriptedPlanner().call("compare", {"films": films, "recommended": "b", "criterion": "doubt"})
    assert said == {
        "text": "A: One. B: Two. The treatment with more doubt is that of B.", "recommended": "b",
    }  # fmt: skip


def test_the_named_call_times_out_and_no_other() -> None:
    """A timeout is one call of one tool; the next has its answer."""
    planner = ScriptedPlanner(timeouts=(("plan", 2),))
    first = planner.call("plan", REQUEST)
    with pytest.raises(ToolTimeoutError):
        planner.call("plan", REQUEST)
    assert planner.call("plan", REQUEST) == first
    with pytest.raises(ToolInputError):
        planner.call("vector_search", {"query": "x"})
