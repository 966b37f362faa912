"""Does the watchlist keep what it promised, and nothing that it did not do?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.canonical import canonical_bytes, digest
from codeai_lab.decide.idempotency_key import Answer, Result, Rule
from codeai_lab.errors import LedgerInUseError, RefusedRequestError
from codeai_lab.run.watchlist_log import (
    LOG,
    LogFailedError,
    Watchlist,
    answers_in,
    entry_count,
    log_of,
)

FILM = {"film": "eternal-sunshine-of-the-spotless-mind"}


def ask(watchlist: Watchlist, key: str | None, film: dict[str, Any] = FILM, **how: bool) -> Result | Answer:
    """Ask to the end: the result, or what the request was taken for instead."""
    taken = watchlist.take(film, key=key)
    if taken.answer is Answer.RUN:
        return watchlist.complete(taken, **how)
    return taken.kept or taken.answer


def test_the_log_tells_the_whole_story(tmp_path: Path) -> None:
    """WG1, WG3: a receipt of each request, one completed line for the entry, one answer for the rest."""
    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        for key in ("k", "k", None):
            ask(watchlist, key)
    own = {"key": "k", "fingerprint": digest(FILM)}
    assert log_of(tmp_path) == [
        {"kind": "received", "n": 1, **own},
        {"kind": "completed", "n": 1, **own, "status": 201, "body": {"entry": 1, **FILM}},
        {"kind": "received", "n": 2, **own},
        {"kind": "answered", "n": 2, "answer": "replay", "status": 201},
        {"kind": "received", "n": 3, **own, "key": None},
        {"kind": "answered", "n": 3, "answer": "key_missing", "status": 400},
    ]
    assert answers_in(tmp_path) == ["run", "replay", "key_missing"]
    assert entry_count(tmp_path) == 1


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("rule", "second", "entries"), [(Rule.DRAFT, 500, 0), (Rule.CHAPTER, 201, 1)])
def test_an_error_is_replayed_by_one_rule_and_run_anew_by_the_other(
    tmp_path: Path, rule: Rule, second: int, entries: int, reopened: bool
) -> None:
    """The rules part at an error, and a start anew changes nothing of it."""
    watchlist = Watchlist(tmp_path, rule=rule)
    ask(watchlist, "k", fails=True)
    if reopened:
        watchlist.close()
        watchlist = Watchlist(tmp_path, rule=rule)
    again = ask(watchlist, "k")
    watchlist.close()
    assert isinstance(again, Result)
    assert (again.status, entry_count(tmp_path)) == (second, entries)


@pytest.mark.parametrize("rule", list(Rule))
def test_a_success_is_replayed_as_it_was_after_a_start_anew(tmp_path: Path, rule: Rule) -> None:
    """WG2: entry and result are one line, so both are there; another payload is told so."""
    with Watchlist(tmp_path, rule=rule) as watchlist:
        first = ask(watchlist, "k")
    with Watchlist(tmp_path, rule=rule) as watchlist:
        assert ask(watchlist, "k") == first
        assert ask(watchlist, "k", {"film": "ex-machina"}) is Answer.KEY_REUSED
        assert watchlist.entries(key="k") == ([{"entry": 1, **FILM}], False)
    assert [line["n"] for line in log_of(tmp_path) if line["kind"] == "received"] == [1, 2, 3]


def test_what_was_cut_off_before_its_line_did_nothing(tmp_path: Path) -> None:
    """WG2: taken and not completed, then opened anew: the key is new, and the list empty."""
    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        assert watchlist.take(FILM, key="k").answer is Answer.RUN
        assert watchlist.entries(key="k") == ([], True)
        assert watchlist.take(FILM, key="k").answer is Answer.OUTSTANDING
    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        assert watchlist.entries(key="k") == ([], False)
        assert watchlist.take(FILM, key="k").answer is Answer.RUN


def test_the_entry_is_there_at_every_cut_of_the_log_or_its_retry_makes_it(tmp_path: Path) -> None:
    """WG2, WG4: cut the log anywhere, open it, ask again: one entry, and the log is whole."""
    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        ask(watchlist, "k")
    written = (tmp_path / LOG).read_bytes()
    ends = [written.index(b"\n"), len(written) - 1]
    around = {end + step for end in ends for step in (-1, 0, 1)}
    for length in sorted({*range(0, len(written), 11), *around}):
        (tmp_path / LOG).write_bytes(written[:length])
        with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
            assert ask(watchlist, "k") == Result(status=201, body={"entry": 1, **FILM})
        assert entry_count(tmp_path) == 1
        assert (tmp_path / LOG).read_bytes().endswith(b"\n")


def test_requests_without_a_key_are_as_many_entries(tmp_path: Path) -> None:
    """Where no key is asked for, nothing tells a retry from another request."""
    with Watchlist(tmp_path, rule=Rule.DRAFT, key_required=False) as watchlist:
        for _ in range(3):
            ask(watchlist, None)
        assert [entry["entry"] for entry in watchlist.entries()[0]] == [1, 2, 3]
        assert watchlist.entries(key="k") == ([], False)


@pytest.mark.parametrize("failing", [1, 2])
def test_after_a_write_that_failed_it_takes_nothing_until_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """WG5: the receipt's write or the entry's; opened again, the retry has one entry."""
    flushes = iter(range(1, 100))
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        if next(flushes) == failing:
            raise OSError("no space left")
        flush(descriptor)

    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(LogFailedError):
            ask(watchlist, "k")
        with pytest.raises(LogFailedError):
            ask(watchlist, "other")
    with Watchlist(tmp_path, rule=Rule.DRAFT) as watchlist:
        ask(watchlist, "k")
    assert entry_count(tmp_path) == 1


def test_one_process_has_the_log(tmp_path: Path) -> None:
    """WG4: whoever comes second is told so in one sentence, and may come when the first has closed."""
    with Watchlist(tmp_path / "list", rule=Rule.DRAFT) as watchlist:
        with pytest.raises(LedgerInUseError, match="Another watchlist service has list"):
            Watchlist(tmp_path / "list", rule=Rule.DRAFT)
        watchlist.close()
        Watchlist(tmp_path / "list", rule=Rule.DRAFT).close()


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"not json", b"\xff", canonical_bytes({"kind": "received", "n": 1}), b'{"kind":"x"}'],
)
def test_a_damaged_log_is_refused_and_left_as_it_is(tmp_path: Path, line: bytes) -> None:
    """WG4: only a torn end is taken away; the folder is free again afterwards."""
    (tmp_path / LOG).write_bytes(line + b"\n")
    for _ in range(2):
        with pytest.raises(RefusedRequestError, match="no watchlist's log"):
            Watchlist(tmp_path, rule=Rule.DRAFT)
    assert (tmp_path / LOG).read_bytes() == line + b"\n"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """One sentence that names the last part of the path and no more."""
    (tmp_path / "file").touch()
    with pytest.raises(RefusedRequestError) as refused:
        Watchlist(tmp_path / "file", rule=Rule.DRAFT)
    assert str(refused.value) == "file is no folder that can be written to; name another."
