"""Does the verifier work the statistics of a simulation out again, from what was measured?"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.prove.copies import Copy
from codeai_lab.prove.verify import verify

CALLS = [3, 5, 8.5, 13, 0]
EFFECTS = {"0": 40, "1": 950, "2": 10}
Change = Callable[[Any], Any]


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify(folder).findings}


def honest() -> dict[str, Any]:
    """Give a row whose figures come from another implementation than the verifier's."""
    effects = Sample.counted({int(value): count for value, count in EFFECTS.items()})
    return {
        "case": "full-5",
        "strategy": "full",
        "clients": 5,
        "calls_mean": statistics.mean(CALLS),
        "calls_sd": statistics.stdev(CALLS),
        "effects": estimate(0.98, effects),
        "effects_sd": {"closed_form": None, "sampled": effects.sd, "se": effects.se_of_sd},
        "evidence_label": "pinned run",
    }


@pytest.fixture
def copy(script: Callable[[str], Any], tmp_path: Path) -> Copy:
    """Freeze one case of two measured quantities."""
    written = script("lab")
    written.begin("full-5")
    written.keys["sampling"] = None
    for quantity, measured in (("calls", {"values": CALLS}), ("effects", {"counts": EFFECTS})):
        payload = {"case": "full-5", "quantity": quantity, **measured}
        written.append(("sampling", "sample.recorded", payload))
    written.end([], [], [], [0, 0], [])
    written.rows[:] = [honest()]
    written.freeze(tmp_path / "samples")
    return Copy(tmp_path / "samples")


def with_row(copy: Copy, changes: dict[str, Any]) -> set[str]:
    results = copy.document("results")
    row = results["rows"][0] | changes
    results["rows"] = [{name: value for name, value in row.items() if value is not ...}]
    copy.write_document("results", results)
    copy.seal()
    return codes(copy.folder)


def with_sample(copy: Copy, changes: dict[str, Any], place: int = 0) -> set[str]:
    events = copy.events()
    payload = events[place]["payload"] | changes
    events[place]["payload"] = {name: value for name, value in payload.items() if value is not ...}
    copy.write_events(events)
    copy.seal()
    return codes(copy.folder)


def test_statistics_that_follow_from_their_samples_are_accepted(copy: Copy) -> None:
    """Mean and deviation, as a number or beside theory, of values or of counts, are those of the sample."""
    assert verify(copy.folder).findings == ()


def test_what_lies_within_rounding_is_accepted_and_nothing_beyond_it(copy: Copy) -> None:
    """The tolerance is 1e-9 of the figure itself."""
    mean = statistics.mean(CALLS)

    assert with_row(copy, {"calls_mean": mean * (1 + 5e-10)}) == set()
    assert with_row(copy, {"calls_mean": mean * (1 + 2e-9)}) == {"row-calls-mean"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"calls_mean": 6}, "row-calls-mean"),
        ({"calls_mean": None}, "row-calls-mean"),
        ({"calls_mean": True}, "row-calls-mean"),
        ({"calls_sd": statistics.pstdev(CALLS)}, "row-calls-sd"),
        ({"calls": 6}, "row-calls"),
        ({"effects": {"closed_form": 0.98, "sampled": 0.97, "se": 0.01}}, "row-effects"),
        ({"effects": {"sampled": 0.97}}, "row-effects"),
        ({"effects": 0.98}, "row-effects"),
        ({"effects_sd": 0.2}, "row-effects-sd"),
        ({"imagined_mean": 1}, "row-imagined-mean"),
        ({"imagined": {"closed_form": 1, "sampled": 1, "se": 0}}, "row-imagined"),
        ({"calls_mean": ..., "calls_sd": ...}, "row-calls"),
        ({"evidence_label": "rumour"}, "document-shape"),
        ({"Calls\n": 1}, "document-shape"),
        ({"case": "full-6"}, "cases-differ"),
    ],
)
def test_a_false_figure_is_named(copy: Copy, changes: dict[str, Any], code: str) -> None:
    """Each statistic is compared by its own name, and a quantity that was recorded is not passed over."""
    assert code in with_row(copy, changes)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"values": [*CALLS[1:], 4]}, "row-calls-mean"),
        ({"values": []}, "event-shape"),
        ({"values": [True]}, "event-shape"),
        ({"values": ["1"]}, "event-shape"),
        ({"values": [1.5e308, -1.5e308]}, "event-shape"),
        ({"counts": {"1": 2}}, "event-shape"),
        ({"values": ..., "counts": {"one": 2}}, "event-shape"),
        ({"values": ..., "counts": {"1": 0}}, "event-shape"),
        ({"values": ..., "counts": {"1": 1.5}}, "event-shape"),
        ({"values": ..., "counts": {"nan": 1}}, "event-shape"),
        ({"values": ..., "counts": {"1": 1, "1.0": 1}}, "event-shape"),
        ({"quantity": "Calls!"}, "event-shape"),
        ({"quantity": "effects"}, "out-of-order"),
        ({"case": "other"}, "stream-differs"),
    ],
)
def test_a_false_sample_is_named(copy: Copy, changes: dict[str, Any], code: str) -> None:
    """A sample is numbers, at least one, of a quantity that its case measured once."""
    assert code in with_sample(copy, changes)


def test_a_single_value_has_no_spread(copy: Copy) -> None:
    """One measurement has a mean, a deviation of 0 and no more."""
    with_sample(copy, {"values": [7]})

    assert with_row(copy, {"calls_mean": 7, "calls_sd": 0}) == set()


def test_samples_and_requests_do_not_share_a_form(copy: Copy) -> None:
    """A row of requests says nothing of what was measured, so it is not enough."""
    row = json.loads((copy.folder / "data/results.json").read_bytes())["rows"][0]
    assert math.isclose(row["calls_mean"], 5.9)
    empty: dict[str, Any] = {name: [] for name in ("statuses", "reused_from", "raised", "labels", "notes")}
    zero = dict.fromkeys(("requests", "effects_world", "effects_summary", "provider_calls"), 0)
    actions = (
        empty | zero | {"revision": "lab", "effects_ledger": [0, 0], "event_kinds": ["sample.recorded"] * 2}
    )

    assert {"row-calls", "row-effects"} <= with_row(
        copy, dict.fromkeys(row.keys() - {"case", "evidence_label"}, ...) | actions
    )
