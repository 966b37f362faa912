"""Does the verifier work the statistics of a simulation out again, from what was measured?"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.samples import Sample, estimate
from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.prove.copies import Copy
from codeai_lab.prove.corrupt import KINDS, corrupt
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


def test_of_a_single_value_the_mean_alone_is_known(copy: Copy) -> None:
    """Its deviation and its standard error are null, here as where the sample is worked out: none is 0."""
    single = Sample.of([3])
    row = {"calls": estimate(3.5, single), "calls_sd": single.sd, "calls_mean": 3}
    with_sample(copy, {"values": [3]})

    assert row["calls"] == {"closed_form": 3.5, "sampled": 3, "se": None}
    assert with_row(copy, row) == set()
    assert with_row(copy, row | {"calls_sd": 0}) == {"row-sample"}
    assert with_row(copy, row | {"calls": {"closed_form": 3.5, "sampled": 3, "se": 0}}) == {"row-sample"}


def test_what_lies_within_rounding_is_accepted_and_nothing_beyond_it(copy: Copy) -> None:
    """The tolerance is 1e-9 of the figure itself."""
    mean = statistics.mean(CALLS)

    assert with_row(copy, {"calls_mean": mean * (1 + 5e-10)}) == set()
    assert with_row(copy, {"calls_mean": mean * (1 + 2e-9)}) == {"row-sample"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"calls_mean": 6}, "row-sample"),
        ({"calls_mean": None}, "row-sample"),
        ({"calls_mean": True}, "row-sample"),
        ({"calls_sd": statistics.pstdev(CALLS)}, "row-sample"),
        ({"calls": 6}, "row-sample"),
        ({"effects": {"closed_form": 0.98, "sampled": 0.97, "se": 0.01}}, "row-sample"),
        ({"effects": {"sampled": 0.97}}, "row-sample"),
        ({"effects": 0.98}, "row-sample"),
        ({"effects_sd": 0.2}, "row-sample"),
        ({"imagined_mean": 1}, "row-sample"),
        ({"imagined": {"closed_form": 1, "sampled": 1, "se": 0}}, "row-sample"),
        ({"calls_mean": ..., "calls_sd": ...}, "row-sample"),
        ({"evidence_label": "rumour"}, "document-shape"),
        ({"Calls\n": 1}, "document-shape"),
        ({"case": "full-6"}, "cases-differ"),
    ],
)
def test_a_false_figure_is_named(copy: Copy, changes: dict[str, Any], code: str) -> None:
    """Each statistic is compared, and a quantity that was recorded is not passed over."""
    assert code in with_row(copy, changes)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"values": [*CALLS[1:], 4]}, "row-sample"),
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


def test_samples_and_requests_do_not_share_a_form(copy: Copy) -> None:
    """A row of requests says nothing of what was measured, so it is not enough."""
    row = json.loads((copy.folder / "data/results.json").read_bytes())["rows"][0]
    assert math.isclose(row["calls_mean"], 5.9)
    empty: dict[str, Any] = {name: [] for name in ("statuses", "reused_from", "raised", "labels", "notes")}
    zero = dict.fromkeys(("requests", "effects_world", "effects_summary", "provider_calls"), 0)
    actions = (
        empty | zero | {"revision": "lab", "effects_ledger": [0, 0], "event_kinds": ["sample.recorded"] * 2}
    )

    assert {"row-sample"} <= with_row(
        copy, dict.fromkeys(row.keys() - {"case", "evidence_label"}, ...) | actions
    )


@pytest.mark.parametrize("counted", [False, True])
def test_an_edited_sample_is_named(copy: Copy, tmp_path: Path, counted: bool) -> None:
    """A value is changed, or one of those that were counted, and every digest is made good again."""
    if counted:
        events = copy.events()[1:]
        copy.write_events([{**events[0], "batch": [1, 1]}])
        with_row(copy, {"calls_mean": ..., "calls_sd": ...})
    assert verify(copy.folder).valid

    corrupt(copy.folder, "edit-sample", tmp_path / "damaged")

    assert codes(tmp_path / "damaged") == {"row-sample"}


def test_every_corruption_that_fits_a_simulation_is_named(
    script: Callable[[str], Any], tmp_path: Path
) -> None:
    """Two cases, the last of which can be cut off: each kind by its code, and no two alike."""
    written = script("lab")
    for case in ("full-5", "full-6"):
        written.begin(case)
        written.keys["sampling"] = None
        payload = {"case": case, "quantity": "calls", "values": CALLS}
        written.append(("sampling", "sample.recorded", payload))
        written.end([], [], [], [0, 0], [])
    mean = {"calls_mean": statistics.mean(CALLS), "evidence_label": "demo"}
    written.rows[:] = [mean | {"case": case} for case in ("full-5", "full-6")]
    written.freeze(tmp_path / "good")

    found = defaultdict(list)
    for kind in KINDS:
        try:
            corrupt(tmp_path / "good", kind.name, tmp_path / kind.name)
        except CorruptionDoesNotApplyError:
            continue
        said = codes(tmp_path / kind.name)
        assert said == set() if kind.outside else kind.code in said, kind.name
        found[kind.outside, frozenset(said)].append(kind.name)

    assert [names for names in found.values() if len(names) > 1] == []
    assert ["edit-sample"] in found.values()
    assert ["cut-tail-new-digests"] in found.values()
