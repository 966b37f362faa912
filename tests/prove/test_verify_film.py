"""Does the verifier know what a trajectory records, and count its row again from that alone?"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.trajectory import TrajectoryLimits
from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.lessons.film_play import STARTED_AT_US, Fails, Play, Story
from codeai_lab.lessons.film_recovery import STORY, freeze_film_recovery, protocol
from codeai_lab.lessons.film_rows import row_of_recovery
from codeai_lab.prove import bundle
from codeai_lab.prove.copies import Copy, Event
from codeai_lab.prove.corrupt import KINDS, corrupt
from codeai_lab.prove.verify import verify
from codeai_lab.run.sources import may_read
from codeai_lab.store.ledger import DuckDBLedger


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("film") / "film"
    freeze_film_recovery(to)
    return to


@pytest.fixture
def copy(frozen: Path, tmp_path: Path) -> Copy:
    shutil.copytree(frozen, tmp_path / "copy")
    return Copy(tmp_path / "copy")


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify(folder).findings}


def rewrite(copy: Copy, change: Callable[[list[Event]], Any]) -> set[str]:
    events = copy.events()
    change(events)
    copy.write_events(events)
    copy.seal()
    return codes(copy.folder)


def pick(events: list[Event], kind: str, which: int = 0, case: str = "fallback") -> Event:
    return [one for one in events if (one["kind"], one["stream_id"]) == (kind, f"film-{case}")][which]


def test_a_recovery_is_accepted(frozen: Path, tmp_path: Path) -> None:
    """The three policies verify, and so they do with a notebook beside them."""
    notebook = tmp_path / "executed.ipynb"
    notebook.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    freeze_film_recovery(tmp_path / "with", notebook=notebook)

    assert verify(frozen).findings == ()
    assert verify(tmp_path / "with").findings == ()


def test_every_corruption_that_fits_is_named_and_told_from_every_other(frozen: Path, tmp_path: Path) -> None:
    """A cut tail, an edit, another order, a false summary; a hidden timeout, path or link."""
    found = defaultdict(list)
    for kind in KINDS:
        try:
            corrupt(frozen, kind.name, tmp_path / kind.name)
        except CorruptionDoesNotApplyError:
            continue
        said = codes(tmp_path / kind.name)
        assert said == set() if kind.outside else kind.code in said, kind.name
        found[kind.outside, frozenset(said)].append(kind.name)

    names = {name for kinds in found.values() for name in kinds}
    assert [kinds for kinds in found.values() if len(kinds) > 1] == []
    assert names >= {
        "cut-tail-new-digests", "reorder-events", "edit-clock-new-digests", "hide-timeout", "hide-fallback",
        "lose-link", "edit-evidence", "claim-no-repeats", "truncate-consistently",
    }  # fmt: skip


# --- stories ---------------------------------------------------------------------------------------------


def told(story: Story, to: Path, play: Callable[[Play], Any], **options: Any) -> Path:
    """Play one story as the case `fallback` and freeze what came of it."""
    clock = ManualClock(start_us=STARTED_AT_US)
    with DuckDBLedger(to / "lab.duckdb", ledger_id="film-recovery", clock=clock) as ledger:
        played = Play(story, "fallback", ledger)
        play(played)
        if options:
            again = Play(story, "fallback", ledger, process="again", **options)
            again.harness.run(again.name)
        row = row_of_recovery(played.events)
        row |= {"policy": "fallback"} if row["policy"] == "none" else {}
        plan = protocol()
        plan["cases"] = [case | {"expected": row} for case in plan["cases"] if case["case"] == "fallback"]
        results = {
            "format": "codeai-lab-results-v1", "lesson": "film-recovery", "revision": "film",
            "producer": {"name": "codeai_lab", "version": "0"}, "rows": [row],
        }  # fmt: skip
        bundle.freeze(
            to / "bundle", protocol=plan, ledger=ledger.journal, world=to / "world", results=results,
            environment=bundle.environment(), producer="codeai_lab 0", readme="A story.\n",
        )  # fmt: skip
    return to / "bundle"


def to_its_end(played: Play) -> None:
    if played.to_the_failure():
        played.recover()


def choosing(*ways: str) -> Callable[[Play], None]:
    def play(played: Play) -> None:
        played.to_the_failure()
        for way in ways:
            played.choose_way(way)
            played.harness.run(played.name)

    return play


def limited(**limits: Any) -> TrajectoryLimits:
    return replace(STORY.limits, **limits)


MISSING = replace(STORY, fails=(), limits=limited(repairs=0, asks=True)).seeking("memory-film", query="")
ANSWERED = replace(MISSING, answers={"memory-film": "erased memories former relationship"})
STORIES: dict[str, tuple[Story, Callable[[Play], Any]]] = {
    "nothing fails": (replace(STORY, fails=()), to_its_end),
    "a record is late": (replace(STORY, fails=(Fails(tool="get_film", nth=2),)), to_its_end),
    "the planner is late": (replace(STORY, fails=(Fails(tool="quote", nth=1),)), to_its_end),
    "the call again": (replace(STORY, limits=limited(call_retries=1)), to_its_end),
    "the step again": (replace(STORY, limits=limited(step_retries=1)), to_its_end),
    "the standby": (replace(STORY, limits=limited(switches=1)), to_its_end),
    "a contradiction": (
        replace(STORY, fails=(Fails(tool="get_film", nth=2, kind="contradiction"),)),
        to_its_end,
    ),
    "a repair": (replace(STORY, fails=()).seeking("memory-film", query=""), to_its_end),
    "another route": (MISSING, choosing("other_route")),
    "an answer": (ANSWERED, choosing("ask")),
    "no answer, then a report": (MISSING, choosing("ask", "report_missing")),
    "nobody chose yet": (MISSING, choosing()),
}


@pytest.mark.parametrize("name", STORIES)
def test_other_stories_are_accepted(tmp_path: Path, name: str) -> None:
    """Retries, repairs, standbys, contradictions and choices fit together; only a policy is missing."""
    story, play = STORIES[name]
    found = codes(told(story, tmp_path, play))

    assert found <= {"row-policy", "expected-policy"}


def test_evidence_that_was_withheld_is_followed(tmp_path: Path) -> None:
    """A source that may not be read any more opens its branch, and the answer does without it."""
    nobody = may_read([])
    found = told(STORY, tmp_path, lambda played: played.to_the_failure(), authority=nobody)

    assert "evidence.withheld" in {event["kind"] for event in Copy(found).events()}
    assert codes(found) <= {"row-policy", "expected-policy"}


# --- what is false ---------------------------------------------------------------------------------------

FALSE: tuple[tuple[str, int, dict[str, Any], str], ...] = (
    ("trajectory.started", 0, {"trajectory_id": "film-other"}, "stream-differs"),
    ("trajectory.started", 0, {"limits": {}}, "event-shape"),
    ("checkpoint.committed", 0, {"version": 2}, "checkpoint-differs"),
    ("checkpoint.committed", 1, {"node_status": {}}, "checkpoint-incomplete"),
    ("checkpoint.committed", 1, {"plan": None}, "checkpoint-incomplete"),
    ("checkpoint.committed", 1, {"validations": {}}, "checkpoint-incomplete"),
    ("checkpoint.committed", 2, {"failures": []}, "checkpoint-incomplete"),
    ("checkpoint.committed", 2, {"budget": {"calls": 24, "spent": 1}}, "checkpoint-differs"),
    ("checkpoint.committed", 2, {"memory_refs": ["m-1"]}, "checkpoint-differs"),
    ("checkpoint.committed", 2, {"schema": 2}, "checkpoint-differs"),
    ("checkpoint.committed", 2, {"more": 1}, "event-shape"),
    ("call.started", 1, {"call_id": "call-9"}, "out-of-order"),
    ("call.started", 1, {"attempt": 2}, "out-of-order"),
    ("call.started", 1, {"tool": "lexical_search"}, "provenance-hidden"),
    ("call.started", 1, {"role": "guess"}, "event-shape"),
    ("call.started", 8, {"node": "ai-film"}, "call-unfounded"),
    ("call.started", 1, {"node": "compare"}, "call-unfounded"),
    ("call.succeeded", 1, {"call_id": "call-1"}, "out-of-order"),
    ("call.succeeded", 1, {"call_id": "call-99"}, "call-unresolved"),
    ("call.succeeded", 1, {"result": []}, "decision-unfounded"),
    ("call.succeeded", 1, {"result": {}}, "event-shape"),
    ("call.succeeded", 0, {"result": {"nodes": []}}, "decision-unfounded"),
    ("call.failed", 0, {"error": {"class": "transient", "code": "unavailable", "definite": False,
                                  "message": "no"}}, "row-timeout-in-record"),
    ("validation.decided", 1, {"film_id": "memento"}, "decision-unfounded"),
    ("validation.decided", 1, {"acceptance": None}, "decision-unfounded"),
    ("validation.decided", 2, {"call_ids": ["call-6", "call-7"]}, "decision-unfounded"),
    ("validation.decided", 2, {"accepted": False}, "checkpoint-differs"),
    ("recovery.started", 0, {"keeps": []}, "recovery-unfounded"),
    ("recovery.started", 0, {"from_version": 1}, "recovery-unfounded"),
    ("recovery.started", 0, {"failed_call_id": "call-4"}, "recovery-unfounded"),
    ("recovery.started", 0, {"policy": "resume"}, "batch-shape"),
    ("fallback.used", 0, {"original_error": None}, "fallback-unfounded"),
    ("fallback.used", 0, {"acceptance_threshold": {"new": None, "old": None}}, "fallback-unfounded"),
    ("fallback.used", 0, {"role": "fetch"}, "fallback-unfounded"),
    ("authority.asked", 0, {"performer": "somebody"}, "authority-differs"),
    ("authority.asked", 0, {"sources": [{
        "allowed": False, "film_id": "ex-machina", "node": "ai-film", "reason": "granted",
        "source_id": "film:ex-machina"}]}, "batch-shape"),
    ("trajectory.completed", 0, {"recommendation": "Ex Machina"}, "answer-differs"),
    ("trajectory.completed", 0, {"scores": {}}, "answer-differs"),
    ("trajectory.completed", 0, {"completion": "first-attempt"}, "answer-differs"),
    ("trajectory.completed", 0, {"intended_write": None}, "answer-differs"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "which", "changes", "code"), FALSE)
def test_a_false_word_is_named(copy: Copy, kind: str, which: int, changes: dict[str, Any], code: str) -> None:
    """Each event is held against those before it."""
    found = rewrite(copy, lambda events: pick(events, kind, which)["payload"].update(changes))

    assert code in found


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"causation_id": None}, "causation-broken"),
        ({"run_id": "film-recovery/restart"}, "stream-differs"),
        ({"idempotency_key": "k"}, "stream-differs"),
        ({"kind": "trajectory.started"}, "event-shape"),
        ({"kind": "trajectory.paused"}, "unknown-kind"),
    ],
)
def test_a_false_place_is_named(copy: Copy, change: dict[str, Any], code: str) -> None:
    """Cause, run, key and kind of an event are those of its trajectory."""
    assert code in rewrite(copy, lambda events: pick(events, "validation.decided").update(change))


def test_nothing_comes_before_the_start_or_after_the_end(copy: Copy) -> None:
    """A trajectory begins with its start and its first checkpoint, and its answer is the last word."""

    def again(events: list[Event]) -> None:
        events.append(pick(events, "authority.asked"))

    def late(events: list[Event]) -> None:
        events.remove(pick(events, "trajectory.started"))

    assert "out-of-order" in rewrite(copy, again)
    assert "out-of-order" in rewrite(copy, late)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verified_kept", []), ("repeated_calls", 1), ("additional_calls", 2), ("skipped_calls", 3),
        ("provenance_changed", False), ("source_of_second_film", "vector_search"),
        ("recommendation", "Ex Machina"), ("timeout_in_record", False),
    ],
)  # fmt: skip
def test_a_false_row_and_a_false_expectation_are_named(copy: Copy, field: str, value: Any) -> None:
    """Every field of the row is counted again, and compared with the summary and with the protocol."""
    name = field.replace("_", "-")
    results, planned = copy.document("results"), copy.document("protocol")
    results["rows"][2][field] = value
    copy.write_document("results", results)
    copy.seal()
    assert codes(copy.folder) == {f"row-{name}"}

    planned["cases"][2]["expected"][field] = value
    copy.write_document("protocol", planned)
    copy.seal()
    assert codes(copy.folder) == {f"row-{name}", f"expected-{name}"}


def test_the_protocol_names_the_trajectory_and_expects_its_row(copy: Copy) -> None:
    """Another request, and the expectations of another form, are findings."""
    planned = copy.document("protocol")
    planned["cases"][0]["requests"][0]["kind"] = "action"
    planned["cases"][1]["expected"] = {
        "requests": 0, "statuses": [], "reused_from": [], "raised": [], "effects_world": 0,
    }  # fmt: skip
    copy.write_document("protocol", planned)
    copy.seal()

    assert codes(copy.folder) == {"requests-differ", "document-shape"}


def test_a_row_of_another_form_is_named(copy: Copy) -> None:
    """A field too few or too many, or of another type, is a finding; the protocol is compared even so."""
    results = copy.document("results")
    results["rows"][0]["more"] = 1
    results["rows"][1]["repeated_calls"] = "0"
    copy.write_document("results", results)
    copy.seal()
    assert codes(copy.folder) == {"document-shape"}

    del results["rows"][2]["policy"]
    copy.write_document("results", results)
    copy.seal()
    assert codes(copy.folder) == {"document-shape"}


def test_values_of_any_type_end_in_a_verdict(copy: Copy, rewriting: Callable[..., Any]) -> None:
    """V2 for trajectories: whatever stands in a field, the answer is findings."""
    strange: list[Any] = [None, -1, "x", [[]], {"a": [1]}]
    events = copy.events()
    events = [one for one in events if one["stream_id"] == "film-fallback"]
    rewrite = rewriting(copy, events)
    for place, event in enumerate(events):
        for name, value in list(event["payload"].items()):
            for other in strange:
                event["payload"][name] = other
                rewrite(place)
                copy.seal()
                assert codes(copy.folder)
            event["payload"][name] = value
        event["payload"], kept = {"call_ids": 5, "node": [], "failed_call_id": {}}, event["payload"]
        rewrite(place)
        sooner = copy.ledger.read_bytes()
        copy.write_events(events)
        assert copy.ledger.read_bytes() == sooner
        copy.seal()
        assert codes(copy.folder)
        event["payload"] = kept
