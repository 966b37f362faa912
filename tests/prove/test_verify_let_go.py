"""Is nothing overlooked that concerns a request of which the verifier keeps the name alone?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.lessons.film_recovery import freeze_film_recovery
from codeai_lab.prove import bundle, verify

Making = Callable[[str], Any]
DENIED = {"status": "denied", "error": {"code": "not-authorised", "message": "no grant permits it"}}
DONE = {"status": "succeeded", "output": None}
CRASHED = {
    "status": "failed", "error": {"code": "adapter-raised", "message": "it raised", "type": "RuntimeError"},
}  # fmt: skip
CONFLICT = "IdempotencyConflictError"


def codes(script: Any, to: Path) -> list[str]:
    script.freeze(to)
    return sorted({finding.code for finding in verify.verify(to).findings})


@pytest.mark.parametrize("what", ["replay", "denial", "refusal"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("cause", ["right", "wrong", "of the other"])
def test_the_cause_of_what_follows_is_checked(
    script: Making, tmp_path: Path, what: str, which: int, cause: str
) -> None:
    """Who refuses to reconcile names the request as its cause, be it the one that is kept or another."""
    written = script("lab")
    written.begin("A")
    written.carried_out(written.asked("action", "a", "k"), "line\n", **DONE)
    for name in ("one", "two"):
        if what == "replay":
            written.completed_at_once(written.asked("action", name, "k"), reused_from_action_id="a", **DONE)
        elif what == "denial":
            written.completed_at_once(written.asked("action", name, "other"), **DENIED)
        else:
            other = written.asked("action", name, "k", instruction="delete the file")
            written.refused(other, "a", ["instruction"], "identity-conflict")
    name, other_name = ("one", "two") if which == 0 else ("two", "one")
    if cause != "right":
        written.causes[name] = "nobody" if cause == "wrong" else written.causes[other_name]
    reason = {"action_id": name, "reason": "nothing-to-reconcile"}
    written.append((name, "action.reconcile_refused", reason))
    status = {"replay": "succeeded", "denial": "denied", "refusal": None}[what]
    label = {"replay": "replay", "denial": "denied", "refusal": "refused"}[what]
    written.end(
        ["succeeded", status, status],
        [None] + ["a" if what == "replay" else None] * 2,
        [None] + [CONFLICT if what == "refusal" else None] * 2,
        [1, 1],
        [None, label, label],
    )

    assert codes(written, tmp_path / "b") == ([] if cause == "right" else ["causation-broken"])


def test_a_sample_has_a_stream_of_its_own(script: Making, tmp_path: Path) -> None:
    """The name of a replay that was let go is no name for what is measured."""
    written = script("lab")
    written.begin("A")
    written.carried_out(written.asked("action", "a", "k"), "line\n", **DONE)
    for name in ("one", "two"):
        written.completed_at_once(written.asked("action", name, "k"), reused_from_action_id="a", **DONE)
    written.end(["succeeded"] * 3, [None, "a", "a"], [None] * 3, [1, 1], [None, "replay", "replay"])
    written.begin("S")
    written.keys["two"] = written.causes["two"] = None
    written.append(("two", "sample.recorded", {"case": "S", "quantity": "x", "values": [1, 2, 3]}))
    written.end([], [], [], [0, 0], [])
    written.rows[-1] = {"case": "S", "evidence_label": "demo", "x_mean": 2.0, "x_sd": 1.0}

    assert "out-of-order" in codes(written, tmp_path / "b")


@pytest.mark.parametrize(("effects", "found"), [(3, []), (2, ["effects-outside-bounds"])])
@pytest.mark.parametrize("outcome", [DONE, CRASHED])
def test_an_effect_without_a_recorded_start_stays(
    script: Making, tmp_path: Path, effects: int, found: list[str], outcome: dict[str, Any]
) -> None:
    """Where starts are not recorded a completion alone says that there was an effect, each its own."""
    written = script("lab")
    written.begin("A")
    for number in range(3):
        name, kind, payload = written.asked("action", f"a{number}", "k")
        completed = {"action_id": name, "effect_possible": True, "output": None, "error": None}
        completed |= {"observed": None, "reused_from_action_id": None} | outcome
        written.append(
            (name, kind, payload | {"records_starts": False}), (name, "action.completed", completed)
        )
        if number < effects:
            written.effect(name, f"{number}\n")
    done = outcome is DONE
    written.end(
        [outcome["status"]] * 3, [None] * 3, [None] * 3, [3 if done else 0, 3],
        [None if done else "unknown", "retry", "retry"],
    )  # fmt: skip

    assert codes(written, tmp_path / "b") == (found if done else [])


def test_a_call_with_the_key_of_an_action_is_a_retry(script: Making, tmp_path: Path) -> None:
    """A key that was asked for in this case is asked for again, whatever decided it."""
    written = script("88d1291")
    written.begin("A")
    written.carried_out(written.asked("action", "a", "k"), "line\n", **DONE)
    written.append(written.asked("call", "c", "k"))
    written.end(["succeeded", None], [None, None], [None, "RuntimeError"], [1, 1], [None, "retry"])

    assert codes(written, tmp_path / "b") == []


@pytest.mark.parametrize("quantity", ["event_kinds", "events_after"])
@pytest.mark.parametrize("value", [5, None, "x", [1], {"sampled": 1, "se": 2}, ..., 10**400])
def test_a_quantity_may_have_any_name_and_a_row_any_value(
    script: Making, tmp_path: Path, quantity: str, value: Any
) -> None:
    """V2: it is compared as what was measured, and what cannot be compared is not the same."""
    written = script("lab")
    written.begin("S")
    written.keys["s"] = None
    written.append(("s", "sample.recorded", {"case": "S", "quantity": quantity, "values": [1, 2, 3]}))
    written.end([], [], [], [0, 0], [])
    written.rows[-1] = {"case": "S", "evidence_label": "demo"} | ({} if value is ... else {quantity: value})

    assert codes(written, tmp_path / "b") == ["row-sample"]


@pytest.mark.parametrize("values", [[8.8e76, -8.8e76], [1e300, -1e300]])
def test_a_sample_beyond_reckoning_is_refused(script: Making, tmp_path: Path, values: list[float]) -> None:
    """V2: numbers whose fourth powers no double holds are no sample."""
    written = script("lab")
    written.begin("S")
    written.keys["s"] = None
    written.append(("s", "sample.recorded", {"case": "S", "quantity": "x", "values": [1, 2, 3]}))
    written.end([], [], [], [0, 0], [])
    written.rows[-1] = {"case": "S", "evidence_label": "demo", "x_mean": 0, "x_sd": 1}
    try:
        written.lines.pop()
        written.append(("s", "sample.recorded", {"case": "S", "quantity": "x", "values": values}))
    except ValueError:
        pytest.skip("there is no canonical line of it")

    assert "event-shape" in codes(written, tmp_path / "b")


def test_a_trajectory_has_no_row_of_requests(tmp_path: Path) -> None:
    """V2: a row of the form that requests have is no row of a recovery, and is named."""
    freeze_film_recovery(tmp_path / "film")
    path = tmp_path / "film/data/results.json"
    value = json.loads(path.read_bytes())
    names = ("statuses", "reused_from", "raised", "labels", "event_kinds", "notes")
    lists: dict[str, Any] = {name: [] for name in names}
    numbers = dict.fromkeys(("requests", "effects_world", "effects_summary", "provider_calls"), 0)
    row = {"case": value["rows"][0]["policy"], "revision": "film", "effects_ledger": [0, 0]}
    value["rows"][0] = row | lists | numbers | {"evidence_label": "demo"}
    path.write_text(json.dumps(value), encoding="utf-8")
    bundle.seal(tmp_path / "film")

    assert "document-shape" in {finding.code for finding in verify.verify(tmp_path / "film").findings}
