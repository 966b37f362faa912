"""Which lessons can become evidence, and that each one's bundle is accepted and the same every time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from codeai_lab.errors import BundleError, RefusedRequestError
from codeai_lab.lessons import LESSONS, ROWS_OF_THEIR_OWN
from codeai_lab.lessons.freezable import SAMPLED, freezable
from codeai_lab.lessons.rerunning import rerun
from codeai_lab.prove.verify import verify

# Throttling takes longer and is in tests/real; the others are pinned, and held by the tests of that.
QUICK = ("layers", "hedging")


def test_every_lesson_but_those_that_count_can_be_frozen() -> None:
    """Schedules and crash points are exact counts, memory and watchlist leave their own records."""
    counted = {"schedules", "crash-points", "durable-memory", "watchlist"}
    for name in [*LESSONS, *set(ROWS_OF_THEIR_OWN) - counted]:
        assert freezable(name).name == name
    for name in [*counted, "nonesuch"]:
        with pytest.raises(RefusedRequestError, match=r"can be frozen; there are: retry-effects"):
            freezable(name)


@pytest.mark.parametrize("name", [*LESSONS, "working-state", "film-recovery", *SAMPLED])
def test_a_protocol_is_known_before_anything_is_played(name: str) -> None:
    """The plan of each lesson is the same every time, and names its cases once each."""
    lesson = freezable(name)
    rules = lesson.rules_named(None)
    planned = lesson.protocol(rules)
    assert json.dumps(planned) == json.dumps(lesson.protocol(rules))
    assert (planned["lesson"], planned["revision"]) == (name, rules)
    cases = [case["case"] for case in planned["cases"]]
    assert cases
    assert len(set(cases)) == len(cases)


def test_rules_that_a_lesson_is_not_played_under_are_refused() -> None:
    """The usual rules where nobody says, the named ones where there are such, a sentence otherwise."""
    assert freezable("retry-effects").rules_named(None) == "lab"
    assert freezable("retry-effects").rules_named("7a0d43b") == "7a0d43b"
    with pytest.raises(RefusedRequestError, match=r"backoff is not frozen under lab; .* one of: sampled"):
        freezable("backoff").rules_named("lab")


@pytest.fixture(scope="module")
def hedging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the bundle of `hedging`, frozen one time; change a copy."""
    to = tmp_path_factory.mktemp("hedging") / "bundle"
    freezable("hedging").freeze("sampled", to, None, None)
    return to


@pytest.mark.parametrize("name", QUICK)
def test_samples_become_evidence(name: str, tmp_path: Path) -> None:
    """A bundle of samples is accepted, is the same bytes again, and its rerun is the same in every case."""
    lesson = freezable(name)
    told: list[tuple[str, int, int]] = []
    digests = [
        lesson.freeze("sampled", tmp_path / place, None, lambda *said: told.append(said))
        for place in ("one", "two")
    ]
    assert told
    assert digests[0] == digests[1]
    report = verify(tmp_path / "one", digests[0])
    assert (report.valid, report.complete, report.findings) == (True, "yes", ())
    assert rerun(tmp_path / "one").same


def test_a_changed_sample_is_found(hedging: Path, tmp_path: Path) -> None:
    """A figure of the results that its sample does not give is a finding of its field."""
    shutil.copytree(hedging, tmp_path / "bundle")
    results = tmp_path / "bundle" / "data" / "results.json"
    said = json.loads(results.read_text())
    said["rows"][2]["extra_load"]["sampled"] += 0.01
    results.write_text(json.dumps(said))
    codes = {finding.code for finding in verify(tmp_path / "bundle").findings}
    assert any(code.startswith("row-") for code in codes), codes


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    """A folder with something in it is refused, and nothing of it is lost."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    with pytest.raises(BundleError):
        freezable("hedging").freeze("sampled", tmp_path / "taken", None, None)
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["mine.txt"]
