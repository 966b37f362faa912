"""A query that is wrong in three places, and who repairs it."""

from __future__ import annotations

from codeai_lab.decide.repair import Limits
from codeai_lab.lessons.film_repairs import WRONG, repair_rows, repaired

WAYS = ["other_route", "ask", "report_missing"]


def test_each_reviser_comes_to_its_end() -> None:
    """Read from the error, three repairs are enough; otherwise three failures end it, and three ways open."""
    reads, changes, repeats = repair_rows()
    assert (reads["errors"], reads["calls"]) == (["syntax", "schema", "schema"], 4)
    assert (reads["ended"], reads["because"], reads["ways_on"]) == ("answered", "repaired", [])
    assert reads["answer"] == [["Random Harvest"]]
    assert (changes["errors"], changes["calls"]) == (["syntax"] * 4, 4)
    assert (repeats["errors"], repeats["calls"], repeats["refused"]) == (["syntax"], 1, 3)
    for row in (changes, repeats):
        assert (row["ended"], row["because"]) == ("unresolved", "all repairs are spent: 3 of 3")
        assert (row["answer"], row["ways_on"]) == (None, WAYS)


def test_a_bound_of_two_is_one_too_few() -> None:
    """The same query, the same reviser, one repair less: the node stays unresolved (RR2)."""
    ended, events = repaired(WRONG, limits=Limits(repairs=2))
    assert (str(ended.status), ended.reason) == ("unresolved", "all repairs are spent: 2 of 2")
    assert [event.kind for event in events].count("node.call_failed") == 3


def test_the_errors_are_the_databases_own() -> None:
    """What is recorded is what the database said of the query (RR1)."""
    messages = [e.payload["problem"]["message"] for e in repaired()[1] if e.kind == "node.call_failed"]
    named = ('at or near "WERE"', "Table with name film", 'column "titel"')
    assert all(name in said for name, said in zip(named, messages, strict=True))


def test_a_query_that_is_right_needs_no_repair() -> None:
    """The first call is answered, and the record says so."""
    ended, events = repaired("SELECT count(*) FROM films WHERE year > 2010")
    assert (str(ended.status), ended.how) == ("answered", "first_attempt")
    assert [event.kind for event in events] == ["node.answered"]
