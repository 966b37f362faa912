"""The rows, counted a second time from the lines of the ledger, by nothing of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.lessons.film_recovery import EXPECTED, freeze_film_recovery

Line = dict[str, Any]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Line]]:
    """Give the lines of the three trajectories of a bundle, by policy."""
    bundle: Path = tmp_path_factory.mktemp("film") / "bundle"
    freeze_film_recovery(bundle)
    text = (bundle / "data" / "ledger.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    by_policy: dict[str, list[Line]] = {}
    for line in lines[1:]:
        by_policy.setdefault(line["run_id"].removeprefix("film-recovery/"), []).append(line)
    return by_policy


def said(lines: list[Line], kind: str) -> list[Line]:
    return [{"seq": line["seq"], **line["payload"]} for line in lines if line["kind"] == kind]


def count(lines: list[Line]) -> Line:
    """Count a row by the rules that stand beside the format, in plain Python."""
    started = said(lines, "call.started")
    done = {one["call_id"]: one["seq"] for one in said(lines, "call.succeeded")}
    [recovery] = said(lines, "recovery.started")
    [failed] = [one for one in said(lines, "call.failed") if one["call_id"] == recovery["failed_call_id"]]
    broken = next(one for one in started if one["call_id"] == failed["call_id"])
    before = [one for one in started if done.get(one["call_id"], failed["seq"]) < failed["seq"]]
    after = [one for one in started if one["seq"] > recovery["seq"]]
    repeated = sum(key(one) in map(key, before) for one in after)
    [base] = [
        one for one in said(lines, "checkpoint.committed") if one["version"] == recovery["from_version"]
    ]
    nodes = [one["node"] for one in (base["plan"] or {"nodes": []})["nodes"]]
    kept = [base["sources"][node]["film_id"] for node in nodes if base["node_status"][node] == "verified"]
    same = [(one["node"], one["role"]) == (broken["node"], broken["role"]) for one in after]
    answered = [one["call_id"] in done for one in after]
    node = broken["node"]
    accepted = max(
        one["seq"] for one in said(lines, "validation.decided") if one["node"] == node and one["accepted"]
    )
    changed = False
    for role in ("fetch", "search"):
        own = [one for one in started if (one["node"], one["role"]) == (node, role)]
        last = [one for one in own if one["call_id"] in done and one["seq"] < accepted][-1]
        changed |= (own[0]["tool"], own[0]["provider"]) != (last["tool"], last["provider"])
    [completed] = said(lines, "trajectory.completed")
    return {
        "policy": recovery["policy"],
        "verified_kept": kept,
        "repeated_calls": repeated,
        "additional_calls": 1 + [a and b for a, b in zip(same, answered, strict=True)].index(True),
        "skipped_calls": len(before) - repeated,
        "provenance_changed": changed,
        "source_of_second_film": last["tool"],
        "recommendation": completed["recommendation"],
        "timeout_in_record": any(one["error"]["code"] == "timeout" for one in said(lines, "call.failed")),
    }


def key(call: Line) -> tuple[str, str, str, str]:
    return call["node"], call["role"], call["tool"], json.dumps(call["arguments"], sort_keys=True)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["policy"])
def test_a_stranger_counts_the_same_row(row: Line, streams: dict[str, list[Line]]) -> None:
    """Whoever has the lines and the rules needs no program of ours."""
    assert count(streams[row["policy"]]) == row


@pytest.mark.parametrize("policy", [row["policy"] for row in EXPECTED])
def test_a_stranger_scores_the_films_alike(policy: str, streams: dict[str, list[Line]]) -> None:
    """The recommendation follows from the quoted passages and themes of the newest checkpoint."""
    lines = streams[policy]
    request = lines[0]["payload"]["request"]
    newest = said(lines, "checkpoint.committed")[-1]
    [completed] = said(lines, "trajectory.completed")
    scored = {}
    for sought in request["sought"]:
        source, result = (newest[name][sought["node"]] for name in ("sources", "tool_results"))
        told = " ".join([one["text"] for one in source["passages"]] + result["result"]["themes"]).lower()
        words = re.findall(r"[a-z]+", told)
        scored[source["film_id"]] = sum(
            any(word.startswith(term[:-1]) if term.endswith("*") else word == term for word in words)
            for term in request["criterion"]["terms"]
        )
    assert completed["scores"] == scored
    assert completed["recommended_film"] == max(scored, key=lambda film: scored[film])
    assert newest["budget"]["spent"] == len(said(lines, "call.started"))


def test_every_event_names_its_cause(streams: dict[str, list[Line]]) -> None:
    """Answers name their call, a recovery its failure, and everything else the start of the trajectory."""
    for lines in streams.values():
        by_id = {line["event_id"]: line for line in lines}
        for line in lines[1:]:
            cause = by_id[line["causation_id"]]
            in_recovery = line["kind"] in ("recovery.started", "fallback.used")
            expected = "call.failed" if in_recovery else "trajectory.started"
            if line["kind"] in ("call.succeeded", "call.failed"):
                expected = "call.started"
                assert cause["payload"]["call_id"] == line["payload"]["call_id"]
            assert cause["kind"] == expected
        assert lines[0]["causation_id"] is None
        assert all(line["idempotency_key"] is None for line in lines)
