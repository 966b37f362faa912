"""The lesson of the duplicates: each figure beside the number that it must match, and a sweep in parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.duplicates import Case, Model, Protection
from codeai_lab.decide.samples import Sample
from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons import duplicates
from codeai_lab.lessons.duplicates import duplicates_measured, ladder
from codeai_lab.lessons.measured import Measured, rows_of

PUBLISHED = {  # attempts, response loss, request loss -> effects, duplicates, P(duplicate) without protection
    (2, 0.1, 0.0): (1.10000, 0.10000, 0.10000),
    (3, 0.3, 0.0): (1.39000, 0.39000, 0.30000),
    (4, 0.5, 0.0): (1.87500, 0.87500, 0.50000),
    (6, 0.5, 0.0): (1.96875, 0.96875, 0.50000),
    (3, 0.1, 0.1): (1.10349, 0.10449, 0.09720),
    (3, 0.3, 0.2): (1.30688, 0.31488, 0.26880),
    (4, 0.3, 0.2): (1.37503, 0.37663, 0.29184),
    (4, 0.5, 0.5): (1.36719, 0.42969, 0.34375),
    (6, 0.5, 0.5): (1.64404, 0.65967, 0.44531),
}
FIELDS = ("effects_mean", "duplicates_mean", "p_duplicate")
LEFT = ("p_no_answer", "p_stuck", "effects_lost", "p_refused")
PROTECTED = {
    Model.LOSS: set(Protection) - {Protection.NONE},
    Model.CRASH: {
        Protection.CLAIM, Protection.CLAIM_RECONCILE, Protection.EFFECT_SIDE, Protection.ATOMIC,
    },
    Model.SLOW: {Protection.CLAIM, Protection.EFFECT_SIDE, Protection.ATOMIC},
}  # fmt: skip
TWO = ladder(attempts=3, response_loss=0.3, request_loss=0.1)[:2]


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    """The lesson as it is, 400,000 trials of each case."""
    with ThreadPoolExecutor(2) as threads:
        return duplicates_measured(executor=threads)


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "TRIALS_A_PART", 1_000)


class LastFirst(Executor):
    """Runs what it was given in the opposite order, and only once somebody asks for an answer."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Future[Any], Any, dict[str, Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, fn, kwargs))
        if len(self._waiting) == 5:
            for waiting, called, named in reversed(self._waiting):
                waiting.set_result(called(**named))
            self._waiting.clear()
        return future


def told(measured: list[Measured]) -> bytes:
    samples = [{name: one.recorded() for name, one in each.samples.items()} for each in measured]
    return canonical_bytes([rows_of(measured), samples])


def test_every_figure_is_within_four_standard_errors(measured: list[Measured]) -> None:
    """At 400,000 trials each of the seven figures of each row lies by its closed form."""
    far = [
        (one.case, name, found)
        for one in measured
        for name in (*FIELDS, *LEFT)
        if abs((found := one.row[name])["sampled"] - found["closed_form"]) > 4 * found["se"] + 1e-12
    ]
    assert far == []
    assert {one.row["trials"] for one in measured} == {400_000}


def test_the_published_counts_are_among_the_rows(measured: list[Measured]) -> None:
    """The nine rows without protection of the reference table are there, with its numbers."""
    rows = {
        (one.row["attempts"], one.row["response_loss"], one.row["request_loss"]): one.row
        for one in measured
        if (one.row["model"], one.row["protection"]) == ("loss", "none")
    }
    for numbers, expected in PUBLISHED.items():
        found = [rows[numbers][name]["closed_form"] for name in FIELDS]
        assert found == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize("p", [0.3, 0.5])
def test_the_probability_of_a_duplicate_is_the_response_loss(measured: list[Measured], p: float) -> None:
    """With no request lost, four numbers of attempts: P(duplicate) is p in each, and the mean still grows."""
    rows = [
        one.row
        for one in measured
        if (one.row["model"], one.row["protection"], one.row["response_loss"], one.row["request_loss"])
        == ("loss", "none", p, 0)
    ]
    rows.sort(key=lambda row: row["attempts"])
    assert len({row["attempts"] for row in rows}) == 4
    for row in rows:
        found = row["p_duplicate"]
        assert found["closed_form"] == pytest.approx(p, abs=1e-12)
        assert abs(found["sampled"] - p) <= 4 * found["se"]
    means = [row["duplicates_mean"]["sampled"] for row in rows]
    assert means == sorted(means)


def test_the_ladder_has_every_protection_under_every_cause(measured: list[Measured]) -> None:
    """What protects shows not one duplicate in 400,000 trials; what does not, shows many."""
    asked = {case.name: case for case in ladder(attempts=4, response_loss=0.3, request_loss=0.2)}
    rows = {one.case: one.row for one in measured if one.case in asked}
    assert len(asked) == len(rows) == 24
    for name, case in asked.items():
        sampled = rows[name]["p_duplicate"]["sampled"]
        assert (sampled == 0) == (case.protection in PROTECTED[case.model])
        assert sampled == 0 or sampled > 0.2


def test_what_protections_leave_is_shown(measured: list[Measured]) -> None:
    """Each kind of rest, stuck, lost, refused, without an answer, is more than 0 in some row."""
    for name in LEFT:
        assert any(one.row[name]["sampled"] > 0 for one in measured), name


def test_a_figure_follows_from_the_sample_of_its_name(measured: list[Measured]) -> None:
    """ME1: each object of a row is mean and standard error of the counts that travel with it."""
    assert len({one.case for one in measured}) == len(measured)
    for one in measured:
        objects = {name for name, value in one.row.items() if isinstance(value, dict)}
        assert objects == set(one.samples) == {*FIELDS, *LEFT}
        for name, sample in one.samples.items():
            assert set(sample.recorded()) == {"counts"}
            again = Sample.counted({int(n): times for n, times in sample.recorded()["counts"].items()})
            assert (again.mean, again.se) == (one.row[name]["sampled"], one.row[name]["se"])
            assert again.size == one.row["trials"]


@pytest.mark.usefixtures("_small_parts")
def test_who_runs_the_parts_and_in_which_order_changes_nothing(threads: Executor) -> None:
    """LD1: threads, or one after the other from the last: the same bytes."""
    expected = told(duplicates_measured(cases=TWO, trials=5_000, executor=threads))
    assert told(duplicates_measured(cases=TWO, trials=5_000, executor=LastFirst())) == expected
    assert told(duplicates_measured(cases=TWO, trials=5_000, executor=threads, seed=1)) != expected


def test_rows_beside_it_change_no_row(threads: Executor) -> None:
    """LD1: alone, in another order, or with another one added, a row is the same."""
    one, other = duplicates_measured(cases=TWO, trials=2_000, executor=threads)
    more = [*ladder(attempts=2, response_loss=0.5, request_loss=0)[8:9], TWO[1], TWO[0]]
    assert duplicates_measured(cases=more, trials=2_000, executor=threads)[1:] == [other, one]
    assert duplicates_measured(cases=TWO[:1], trials=2_000) == [one]


@pytest.mark.usefixtures("_small_parts")
def test_more_trials_go_on_from_those_that_were_kept(tmp_path: Path, threads: Executor) -> None:
    """LD2: whole parts are the same when more trials are asked for, so that only the rest is run."""
    keep = tmp_path / "kept.jsonl"
    duplicates_measured(cases=TWO, trials=3_000, executor=threads, keep=keep)
    said: list[tuple[str, int, int]] = []
    more = duplicates_measured(
        cases=TWO, trials=4_500, executor=threads, keep=keep, progress=lambda *what: said.append(what)
    )
    assert said[0] == ("kept from before", 6, 10)
    assert said[-1][1:] == (10, 10)
    assert {one.row["trials"] for one in more} == {4_500}
    assert told(more) == told(duplicates_measured(cases=TWO, trials=4_500, executor=threads))


COUNTS = {"effects": [2, 5, 3, 0], "no_answer": 1, "stuck": 0, "met_foreign": 0}


@pytest.mark.parametrize(
    ("kept", "right"),
    [
        (COUNTS, True),
        (5, False),
        (COUNTS | {"more": 1}, False),
        (COUNTS | {"effects": 5}, False),
        (COUNTS | {"effects": [10, 0, 0]}, False),
        (COUNTS | {"effects": [2, 5, 3, 1]}, False),
        (COUNTS | {"effects": [2, 5, 4, -1]}, False),
        (COUNTS | {"stuck": None}, False),
        (COUNTS | {"stuck": 11}, False),
    ],
)
def test_kept_counts_have_the_form_of_their_part(tmp_path: Path, kept: object, right: bool) -> None:
    """Whole numbers of no more than the part's trials are taken; anything else is refused by its file."""
    asked: dict[str, Any] = {"cases": TWO[:1], "trials": 10, "keep": tmp_path / "kept.jsonl"}
    duplicates_measured(**asked)
    line = json.loads(asked["keep"].read_text()) | {"answer": kept}
    asked["keep"].write_text(json.dumps(line) + "\n")
    if right:
        assert duplicates_measured(**asked)[0].row["effects_mean"]["sampled"] == 1.1
        return
    with pytest.raises(RefusedRequestError, match=r"^The file kept\.jsonl does not hold the answers"):
        duplicates_measured(**asked)


def test_one_trial_has_no_standard_error() -> None:
    """A single trial gives means, and None for how sure they are."""
    row = duplicates_measured(cases=TWO[:1], trials=1)[0].row
    assert row["effects_mean"]["sampled"] in range(4)
    assert {row[name]["se"] for name in (*FIELDS, *LEFT)} == {None}


def test_no_cases_are_no_rows() -> None:
    """An empty list of cases is answered by an empty list of rows."""
    assert duplicates_measured(cases=[]) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"trials": 0}, "number of trials"), ({"trials": False}, "number of trials"), ({"seed": 0.5}, "seed")],
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any], says: str) -> None:
    """Each wrong argument is refused in one sentence that names it."""
    case = Case(model=Model.LOSS, protection=Protection.NONE, attempts=1, response_loss=0.0)
    with pytest.raises(RefusedRequestError, match=says):
        duplicates_measured(cases=[case], **{"trials": 10, **wrong})
