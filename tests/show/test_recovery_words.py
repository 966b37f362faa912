"""The words of what recovers: trajectories, repairs, memories and the watchlist's log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codeai_lab import decide, run
from codeai_lab.show.event_words import event_words
from codeai_lab.show.recovery_words import RECOVERY_WORDS

TIMEOUT = {"code": "timeout", "definite": False, "message": "not shown"}
BOUNDS = {
    "old": {"method": "vector_search", "minimum": 0.2}, "new": {"method": "lexical_search", "minimum": 0.1},
}  # fmt: skip
PATHS = {
    "old": {"tool": "vector_search", "provider": "primary"},
    "new": {"tool": "lexical_search", "provider": "primary"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("trajectory.started", {"request": {"goal": "Compare."}}, "asks: Compare."),
        ("checkpoint.committed", {"version": 1, "node_status": {}}, "checkpoint v1; it holds the request"),
        ("checkpoint.committed", {"version": 2, "node_status": {"a": "verified", "b": "open"}},
         "checkpoint v2; verified: a"),
        ("call.started", {"call_id": "call-5", "tool": "get_film", "node": "a", "attempt": 1},
         "call-5 asks get_film for a"),
        ("call.started", {"call_id": "call-6", "tool": "get_film", "node": "a", "attempt": 2},
         "call-6 asks get_film for a, attempt 2"),
        ("call.started",
         {"call_id": "call-7", "tool": "vector_search", "node": "a", "arguments": {"query": "x y"}},
         'call-7 asks vector_search for a: "x y"'),
        ("call.started",
         {"call_id": "call-8", "tool": "quote", "node": "a", "arguments": {"passages": ["not shown"]}},
         "call-8 asks quote for a"),
        ("call.succeeded", {"call_id": "call-1", "result": {"not": "shown"}}, "call-1 is answered"),
        ("call.failed", {"call_id": "call-5", "error": TIMEOUT},
         "call-5 failed (timeout); it is not known what became of it"),
        ("validation.decided", {"node": "a", "accepted": True, "acceptance": BOUNDS["old"]},
         "a is accepted, under 0.2 of vector_search"),
        ("validation.decided", {"node": "plan", "accepted": True, "acceptance": None}, "plan is accepted"),
        ("validation.decided",
         {"node": "a", "accepted": False, "reason": "that of another path", "field": "acceptance_threshold"},
         "a is refused: that of another path, field acceptance_threshold"),
        ("discovery.reopened", {"node": "a", "film_id": "memento", "reason": "contradiction: summary"},
         "memento is out; a is searched for again: contradiction: summary"),
        ("discovery.reopened", {"node": "a", "reason": "1 of 1 reopenings"},
         "a is searched for again: 1 of 1 reopenings"),
        ("proposal.rejected", {"proposal": {"tool": "get_film", "node": "a"}, "reason": "exceeds-budget"},
         "the proposal of get_film for a is rejected: exceeds-budget"),
        ("recovery.started", {"policy": "restart", "from_version": 1, "keeps": [], "discards": [2, 3]},
         "restart from checkpoint v1: keeps nothing, discards v2, v3"),
        ("recovery.started", {"policy": "resume", "from_version": 2, "keeps": ["a"], "discards": []},
         "resume from checkpoint v2: keeps a"),
        ("fallback.used", {"node": "a", **PATHS, "acceptance_threshold": BOUNDS},
         "a goes by another path: vector_search of primary to lexical_search of primary, "
         "threshold 0.2 to 0.1"),
        ("fallback.used", {"node": "a", **PATHS, "acceptance_threshold": {"old": None, "new": None}},
         "a goes by another path: vector_search of primary to lexical_search of primary"),
        ("step.retried", {"node": "a"}, "the whole step a is done again"),
        ("query.repaired", {"node": "a", "repair": 2, "new": {"query": "x"}}, "a, repair 2: asks query=x"),
        ("node.unresolved", {"node": "a", "reason": "spent", "choices": ["ask", "report_missing"]},
         "a stays unresolved: spent; open: ask, report_missing"),
        ("node.unresolved", {"node": "a", "reason": "spent", "ways_on": ["report_missing"]},
         "a stays unresolved: spent; open: report_missing"),
        ("way.chosen", {"node": "a", "way": "ask", "query": "x"},
         "a person chose for a: the reader is asked and gives other words"),
        ("way.chosen", {"node": "a", "way": "ask", "query": None},
         "a person chose for a: the reader is asked"),
        ("way.chosen", {"node": "a", "way": "of tomorrow", "query": None},
         "a person chose for a: of tomorrow"),
        ("authority.asked", {"performer": "reader", "sources": [{"allowed": True}, {"allowed": False}]},
         "saved sources are judged anew for reader: 1 of 2 allowed"),
        ("evidence.withheld", {"source_id": "film:a", "reason": "no grant"}, "film:a is withheld: no grant"),
        ("trajectory.completed",
         {"status": "complete", "completion": "recovered", "recommendation": "A", "comparison": "not shown"},
         "complete (recovered); recommended: A"),
        ("node.call_failed",
         {"tool": "sql", "problem": {"kind": "schema"}, "move": "repair", "reason": "1 of 3 repairs"},
         "sql failed (schema); next: repair, 1 of 3 repairs"),
        ("retry.attempted", {"reason": "1 of 2 retries"}, "the same call is made again: 1 of 2 retries"),
        ("repair.attempted", {"arguments": {"query": "x"}, "because": "syntax"},
         "asks query=x instead, because of a problem of syntax"),
        ("repair.refused", {"refused_because": "it failed before", "move": "give_up"},
         "the revision is refused: it failed before; next: give_up"),
        ("repair.succeeded", {}, "the repaired call is answered"),
        ("node.answered", {"node": "a", "how": "repaired"}, "a is answered, repaired"),
        ("memory.recorded", {"memory_id": "m2", "terms": {"basis": "stated"}, "supersedes": "m1"},
         "m2 is kept, stated, in place of m1; its words lie elsewhere"),
        ("memory.refused", {"memory_id": "m3", "gate": "provenance", "reason": "retrieved"},
         "m3 is not kept (provenance): retrieved"),
        ("memory.corrected", {"memory_id": "m1", "superseded_by": "m2"}, "m1 is corrected by m2"),
        ("memory.deleted", {"memory_id": "s1", "because_of": "m2"}, "s1 is deleted with m2; its words go"),
        ("memory.used", {"memory_id": "m1", "request_id": "r", "reason": "open"}, "m1 is used for r: open"),
        ("memory.withheld",
         {"memory_id": "m1", "request_id": "r", "answer": "outranked", "reason": "the request says it"},
         "m1 is outranked for r: the request says it"),
    ],
)  # fmt: skip
def test_says_what_each_event_records(kind: str, payload: dict[str, object], said: str) -> None:
    """Every kind has its sentence, which names what was decided and why and repeats no passage (RW1)."""
    assert event_words({"seq": 7, "kind": kind, "payload": payload}) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"kind": "received", "n": 1, "key": "k"}, "request 1 came under the key k"),
        ({"kind": "received", "n": 2, "key": None}, "request 2 came without a key"),
        ({"kind": "completed", "n": 1, "status": 201, "body": {"entry": 1, "film": "a"}},
         "request 1 is entry 1: a"),
        ({"kind": "completed", "n": 1, "status": 500, "body": {"detail": "x"}},
         "request 1 was not carried out: 500"),
        ({"kind": "answered", "n": 2, "status": 201, "answer": "replay"}, "request 2 is told 201: replay"),
    ],
)  # fmt: skip
def test_says_what_the_watchlist_wrote(line: dict[str, object], said: str) -> None:
    """A line of the service's own log has no payload, and is said as well."""
    assert event_words(line) == said


def test_every_kind_that_is_recorded_has_its_words() -> None:
    """No kind of a trajectory, a repair or a memory that the sources name is shown as bare fields."""
    named = re.compile(
        r'"((?:trajectory|checkpoint|validation|discovery|proposal|recovery|fallback|step|query|way|node'
        r'|authority|evidence|retry|repair|memory|call)\.[a-z_]+)"'
    )
    texts = [
        path.read_text(encoding="utf-8")
        for package in (run, decide)
        for path in Path(str(package.__file__)).parent.glob("*.py")
    ]
    kinds = {kind for text in texts for kind in named.findall(text)}
    capabilities = {"memory.manage", "memory.recall"}
    of_a_model = {kind for kind in kinds if kind.startswith("call.")} - set(RECOVERY_WORDS)
    of_a_log = {"received", "completed", "answered"}
    assert kinds - capabilities - of_a_model == set(RECOVERY_WORDS) - of_a_log
