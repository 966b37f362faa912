"""Is what the service says of itself sound: its faults, its problems, its refusal to start?"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeai_lab.decide.idempotency_key import REFUSALS
from codeai_lab.errors import RefusedRequestError
from codeai_lab.run import watchlist_service
from codeai_lab.run.watchlist_problems import BY_STATUS, PROBLEMS, TurnedAwayError
from codeai_lab.run.watchlist_service import Fault, FaultKind


@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_fault_is_read_as_it_is_written(kind: FaultKind) -> None:
    """A kind and the number of a request."""
    fault = Fault(kind=kind, request=3)
    assert Fault.parse(str(fault)) == fault


@pytest.mark.parametrize(
    "text", ["", "lost", "lost:", "lost:0", "lost:-1", "lost:x", "lost:1:2", "gone:1", ":1"]
)
def test_a_fault_of_another_form_is_refused(text: str) -> None:
    """One sentence names the kinds that there are."""
    with pytest.raises(RefusedRequestError, match="one of lost, error, slow, withheld and a number"):
        Fault.parse(text)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_one_sentence_under_an_error_status(name: str) -> None:
    """WP1: type, title, status and detail, and the detail is one sentence."""
    body = TurnedAwayError(name).body()
    assert set(body) == {"type", "title", "status", "detail"}
    assert body["type"] == f"/problems/{name}"
    assert 400 <= body["status"] <= 599
    assert body["detail"].endswith(".")
    assert ". " not in body["detail"]


def test_the_refusals_of_the_rules_are_problems_of_the_same_status() -> None:
    """What `decide` turns away has a sentence here, and the draft's status; so has the library's."""
    assert all(PROBLEMS[answer.replace("_", "-")].status == status for answer, status in REFUSALS.items())
    assert all(PROBLEMS[name].status == status for status, name in BY_STATUS.items() if status != 408)


def test_what_keeps_it_from_starting_goes_to_whoever_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on the output, no traceback, and no folder is made."""
    folder = tmp_path / "list"
    monkeypatch.setattr("sys.argv", ["watchlist", "--folder", str(folder), "--fault", "gone:1"])
    with pytest.raises(SystemExit) as end:
        watchlist_service.main()
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (2, "")
    assert said.out.startswith("refused A fault is one of lost")
    assert not folder.exists()
