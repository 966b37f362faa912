"""The watchlist service under real kills, threads and bad requests: one key, one entry, one sentence."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.clock import ManualClock
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.idempotency_key import Result, Rule
from codeai_lab.errors import LedgerInUseError, RefusedRequestError
from codeai_lab.lessons import watchlist, watchlist_recoveries
from codeai_lab.records import ActionRequest
from codeai_lab.run.watchlist import (
    CAPABILITY,
    KEY,
    Attempts,
    Caller,
    TurnedDownError,
    WatchlistAdapter,
    WatchlistLookup,
)
from codeai_lab.run.watchlist_line import WatchlistProcess
from codeai_lab.run.watchlist_log import LOG, Watchlist, answers_in, entry_count
from codeai_lab.run.watchlist_problems import PROBLEMS
from codeai_lab.run.watchlist_service import Fault

FILM = {"film": "eternal-sunshine-of-the-spotless-mind"}
ADDED = Result(status=201, body={"entry": 1, **FILM})
JSON = b"Content-Type: application/json\r\n"
NEEDS_SIGKILL = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")


def faults(*texts: str) -> list[Fault]:
    return [Fault.parse(text) for text in texts]


# --- the lessons ----------------------------------------------------------------------------------------


def test_one_entry_with_the_key_and_as_many_as_attempts_without() -> None:
    """WA1, WA2: every row as it was written down by hand, 1 to 5 retries and the draft's table."""
    told: list[tuple[str, int, int]] = []
    rows = watchlist.rows(progress=lambda *said: told.append(said))
    assert rows == list(watchlist.EXPECTED)
    assert [(done, of) for _, done, of in told] == [(done, 6) for done in range(6)]
    lost = [row for row in rows if row["case"] == "response-lost"]
    assert [row["retries"] for row in lost] == [1, 2, 3, 4, 5] * 4
    for row in lost:
        assert row["entries"] == (1 if row["with_key"] else row["attempts"])
    other = [[row for row in rows if row["rule"] == rule] for rule in Rule]
    apart = [a["case"] for a, b in zip(*other, strict=True) if {**a, "rule": None} != {**b, "rule": None}]
    assert apart == ["error-again"]


def test_what_nobody_answered_is_unknown_until_it_is_looked_up() -> None:
    """WV1, WV2, WV3: every row as it was written down by hand."""
    rows = watchlist_recoveries.rows()
    assert rows == list(watchlist_recoveries.EXPECTED)
    for row in rows:
        assert row["entries_after"] <= max(len(row["answers"]), 1)


# --- kills ----------------------------------------------------------------------------------------------


def killed_while_held(folder: Path, fault: str) -> None:
    """Ask, and kill the service where the fault holds the request."""
    with WatchlistProcess(folder, faults=faults(fault)) as service, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(service.line.add, FILM, key=KEY)
        service.wait_until_held()
        service.kill()
        with pytest.raises(ConnectionError):
            asked.result()


@pytest.mark.parametrize(("fault", "entries", "answers"), [("withheld:1", 1, "replay"), ("slow:1", 0, "run")])
def test_a_service_killed_around_the_commit_has_one_entry_after_the_retry(
    tmp_path: Path, fault: str, entries: int, answers: str
) -> None:
    """Killed between commit and answer the entry is there and is replayed; before the commit it runs anew."""
    killed_while_held(tmp_path, fault)
    assert entry_count(tmp_path) == entries
    with WatchlistProcess(tmp_path) as service:
        assert service.line.add(FILM, key=KEY) == ADDED
        assert service.line.add(FILM, key=KEY) == ADDED
    assert answers_in(tmp_path) == ["run", answers, "replay"]
    assert entry_count(tmp_path) == 1


def test_kills_at_random_moments_leave_one_entry_for_each_key(tmp_path: Path) -> None:
    """kill -9 whenever: what was answered is there, and every request that was cut off is retried."""
    moment = random.Random(42)
    told: dict[int, int] = {}
    for _ in range(6):
        enough = len(told) + moment.randint(1, 6)
        with WatchlistProcess(tmp_path) as service:
            killer = threading.Timer(moment.uniform(0, 0.01), service.kill)
            with suppress(OSError):
                while True:
                    number = len(told)
                    if number == enough:
                        killer.start()
                    told[number] = service.line.add({"film": f"film-{number}"}, key=f"k{number}").body[
                        "entry"
                    ]
            killer.join()
    number = len(told)
    with WatchlistProcess(tmp_path) as service:
        told[number] = service.line.add({"film": f"film-{number}"}, key=f"k{number}").body["entry"]
        listed = service.line.entries()["entries"]
    assert [entry["film"] for entry in listed] == [f"film-{n}" for n in range(number + 1)]
    assert list(told.values()) == [entry["entry"] for entry in listed]


PARENT = """
import sys, threading
from pathlib import Path
from codeai_lab.run.watchlist_line import WatchlistProcess
from codeai_lab.run.watchlist_service import Fault
service = WatchlistProcess(Path(sys.argv[1]), faults=[Fault.parse("slow:1")]).__enter__()
threading.Thread(target=service.line.add, args=({"film": "f"},), kwargs={"key": "k"}, daemon=True).start()
service.wait_until_held()
print(service._child.pid, service.line.port, flush=True)
sys.stdin.read()
"""


def is_gone(process_id: int) -> bool:
    """Say whether a process has ended; one that nobody has asked how it ended has too."""
    try:
        os.kill(process_id, 0)
        state = Path(f"/proc/{process_id}/stat")
        return state.exists() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@NEEDS_SIGKILL
def test_the_service_is_gone_when_its_parent_was_killed(tmp_path: Path) -> None:
    """WS3: also while it holds a request; nothing is left listening, and its folder is free."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        child, port = map(int, parent.stdout.readline().split())
        assert not is_gone(child)
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while not is_gone(child):
        assert time.monotonic() < until, "the service outlived its parent"
        time.sleep(0.01)
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass
    Watchlist(tmp_path, rule=Rule.DRAFT).close()


@NEEDS_SIGKILL
def test_an_interrupt_of_the_group_leaves_the_service_alone(tmp_path: Path) -> None:
    """Whoever interrupts a notebook's cell does not end its services."""
    with WatchlistProcess(tmp_path) as service:
        for _ in range(2):
            os.kill(service._child.pid, signal.SIGINT)
            assert service.line.add(FILM, key=KEY) == ADDED


def test_what_keeps_it_from_starting_is_said_in_one_sentence(tmp_path: Path) -> None:
    """A folder in use, and a file where a folder should be; no process is left."""
    (tmp_path / "file").touch()
    with pytest.raises(
        RefusedRequestError, match=r"^file is no folder that can be written to; name another\.$"
    ):
        WatchlistProcess(tmp_path / "file").__enter__()
    with WatchlistProcess(tmp_path / "list"):
        with pytest.raises(RefusedRequestError, match=r"^Another watchlist service has list; end it first"):
            WatchlistProcess(tmp_path / "list").__enter__()
        with pytest.raises(LedgerInUseError):
            Watchlist(tmp_path / "list", rule=Rule.DRAFT)


# --- threads --------------------------------------------------------------------------------------------


def test_threads_that_ask_with_one_key_at_the_same_moment_have_one_entry(tmp_path: Path) -> None:
    """Each key runs for one thread; the others are told 409, or the same entry."""
    threads, keys = 8, 10
    gate = threading.Barrier(threads)

    def ask_for_all(_: int) -> list[Result]:
        told = []
        for number in range(keys):
            gate.wait(timeout=30)
            told.append(shared.line.add({"film": f"film-{number}"}, key=f"k{number}"))
        return told

    with WatchlistProcess(tmp_path) as shared, ThreadPoolExecutor(threads) as pool:
        told = list(pool.map(ask_for_all, range(threads)))
    for number in range(keys):
        answers = Counter(one[number].status for one in told)
        assert answers[201] >= 1
        assert answers.keys() <= {201, 409}
        assert {one[number].body["entry"] for one in told if one[number].status == 201} == {number + 1}
    assert entry_count(tmp_path) == keys
    assert answers_in(tmp_path).count("run") == keys


def test_threads_without_a_key_have_as_many_entries_as_requests(tmp_path: Path) -> None:
    """Without a key nothing holds them together, and no entry is lost either."""
    with WatchlistProcess(tmp_path, key_required=False) as service, ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda _: service.line.add(FILM, key=None).body["entry"], range(12)))
    assert sorted(told) == list(range(1, 13))
    assert entry_count(tmp_path) == 12


def test_a_slow_answer_is_not_claimed_and_not_repeated(tmp_path: Path) -> None:
    """The first attempt waits too long, the second is told 409; nothing is settled until it is released."""
    request = ActionRequest(
        action_id="w", idempotency_key=KEY, capability=CAPABILITY, instruction="add", payload=FILM
    )
    with WatchlistProcess(tmp_path, faults=faults("slow:1")) as service:
        adapter = WatchlistAdapter(
            service.line,
            attempts=Attempts(at_most=2, silence_us=300_000),
            caller=lambda: Caller(performer="agent", authority=Authority.of(CAPABILITY)),
            clock=ManualClock(),
        )
        with pytest.raises(TurnedDownError) as turned:
            adapter.execute(request)
        assert (turned.value.answers, turned.value.definite) == (("no answer", "409"), False)
        lookup = WatchlistLookup(line=service.line, key=KEY)
        assert lookup.find({"payload": FILM}) is None
        service.wait_until_held()
        assert service.line.release(1)
        assert not service.line.release(1)
        while (found := lookup.find({"payload": FILM})) is None:
            time.sleep(0.01)
        assert found == ({"entry": 1, **FILM},)
        assert adapter.execute(request) == {"entry": 1, **FILM, "answers": ["201"]}
    assert entry_count(tmp_path) == 1


# --- on the wire ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchlistProcess]:
    """One service for all requests that it turns away."""
    with WatchlistProcess(tmp_path_factory.mktemp("list")) as service:
        yield service


def say(service: WatchlistProcess, *sent: bytes, ends: bool = False) -> tuple[int, dict[str, str], Any]:
    """Send bytes as they are, and give the status, the headers and the body of what comes back."""
    with socket.create_connection(("127.0.0.1", service.line.port), timeout=20) as peer:
        for part in sent:
            peer.sendall(part)
        if ends:
            peer.shutdown(socket.SHUT_WR)
        with peer.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if not sent[0].startswith(b"HEAD"):
        assert int(headers["Content-Length"]) == len(body)
    return int(first.split()[1]), headers, json.loads(body) if body else None


def post(body: bytes, *more: bytes, kind: bytes = JSON) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST /entries HTTP/1.1\r\nHost: x\r\n" + kind + length + b"".join(more) + b"\r\n" + body


GOOD = json.dumps(FILM).encode()
KEYED = b'Idempotency-Key: "wire"\r\n'
TURNED_AWAY = {
    "garbage": (b"\x16\x03\x01\x02\x00\r\n\r\n", "malformed"),
    "no HTTP at all": (b"hello\r\n\r\n", "malformed"),
    "bad version": (b"GET /entries HTTQ/1.1\r\n\r\n", "malformed"),
    "newer version": (b"GET /entries HTTP/2.0\r\n\r\n", "unknown-version"),
    "long address": (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", "path-too-long"),
    "long header": (b"GET /entries HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "headers-too-large"),
    "many headers": (b"GET /entries HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", "headers-too-large"),
    "address of no form": (b"GET http://[ HTTP/1.1\r\n\r\n", "malformed"),
    "elsewhere": (b"GET /secrets HTTP/1.1\r\n\r\n", "not-found"),
    "no such problem": (b"GET /problems/none HTTP/1.1\r\n\r\n", "not-found"),
    "delete": (b"DELETE /entries HTTP/1.1\r\n\r\n", "method-not-allowed"),
    "put": (b"PUT /entries HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "method-not-allowed"),
    "post elsewhere": (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "method-not-allowed"),
    "get control": (b"GET /control/release HTTP/1.1\r\n\r\n", "method-not-allowed"),
    "unheard method": (b"BREW /entries HTTP/1.1\r\n\r\n", "unknown-method"),
    "form": (post(b"film=x", KEYED, kind=b"Content-Type: text/plain\r\n"), "not-json-type"),
    "no type": (post(GOOD, KEYED, kind=b""), "not-json-type"),
    "two types": (post(GOOD, KEYED, kind=b"Content-Type: application/json, text/html\r\n"), "not-json-type"),
    "no length": (b"POST /entries HTTP/1.1\r\n" + JSON + b"\r\n", "length-required"),
    "chunked": (
        b"POST /entries HTTP/1.1\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "length-required",
    ),
    "length of no form": (
        b"POST /entries HTTP/1.1\r\n" + JSON + b"Content-Length: -1\r\n\r\n", "malformed",
    ),
    "two lengths": (post(GOOD, b"Content-Length: 1\r\n", KEYED), "malformed"),
    "huge": (post(b'{"film": "' + b"x" * 8_000_000 + b'"}', KEYED), "too-large"),
    "huge by its word": (
        b"POST /entries HTTP/1.1\r\n" + JSON + b"Content-Length: 99999999999999\r\n\r\n", "too-large",
    ),
    "not JSON": (post(b"{film: x}", KEYED), "not-json"),
    "not UTF-8": (post(b'{"film": "\xff"}', KEYED), "not-json"),
    "not a number": (post(b'{"film": NaN}', KEYED), "not-json"),
    "a name two times": (post(b'{"film": "a", "film": "b"}', KEYED), "not-json"),
    "deep": (post(b"[" * 60_000, KEYED), "not-json"),
    "empty": (post(b"", KEYED), "not-json"),
    "list": (post(b"[]", KEYED), "not-json"),
    "no film": (post(b"{}", KEYED), "not-an-entry"),
    "more than a film": (post(b'{"film": "a", "note": 1}', KEYED), "not-an-entry"),
    "film of another kind": (post(b'{"film": 1}', KEYED), "not-an-entry"),
    "empty film": (post(b'{"film": ""}', KEYED), "not-an-entry"),
    "long film": (post(b'{"film": "' + b"x" * 201 + b'"}', KEYED), "not-an-entry"),
    "bare key": (post(GOOD, b"Idempotency-Key: wire\r\n"), "key-malformed"),
    "two keys": (post(GOOD, KEYED, KEYED), "key-malformed"),
    "nothing held": (
        post(b'{"request": 1}').replace(b"/entries", b"/control/release"), "nothing-held",
    ),
    "held in words": (
        post(b'{"request": [1]}').replace(b"/entries", b"/control/release"), "nothing-held",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TURNED_AWAY)
def test_what_it_cannot_take_is_turned_away_with_one_sentence(service: WatchlistProcess, case: str) -> None:
    """WS2, WP1, WP2: a status, problem details, a sentence; no receipt, and no word of what was sent."""
    sent, name = TURNED_AWAY[case]
    before = service.log.read_bytes()
    status, headers, body = say(service, sent)
    problem = PROBLEMS[name]
    assert (status, headers["Content-Type"]) == (problem.status, "application/problem+json")
    assert (body["type"], body["title"], body["status"]) == (f"/problems/{name}", problem.title, status)
    assert body["detail"].count(". ") == 0
    assert body["detail"].endswith(".")
    assert service.log.read_bytes() == before
    assert ("Allow" in headers) is (status == 405)


def test_a_body_that_ends_early_is_turned_away(service: WatchlistProcess) -> None:
    """WS2: whoever goes away in the middle of a body has not asked."""
    before = service.log.read_bytes()
    status, _, body = say(service, post(GOOD, KEYED)[:-5], ends=True)
    assert (status, body["type"]) == (400, "/problems/incomplete")
    assert service.log.read_bytes() == before


@pytest.mark.parametrize("sent", [b"", b"GET", post(GOOD, KEYED)[:40], b"POST /entries HTTP/1.1\r\n"])
def test_whoever_leaves_in_the_middle_leaves_nothing(service: WatchlistProcess, sent: bytes) -> None:
    """WS2: connections that are dropped at any place are forgotten, and the next one is answered."""
    before = service.log.read_bytes()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", service.line.port)) as peer:
            peer.sendall(sent)
    assert service.line.entries()["under_way"] is False
    assert service.log.read_bytes() == before


def test_looking_up_adds_nothing(service: WatchlistProcess) -> None:
    """WS4: with a key, without one, by HEAD; and a problem's type leads to what it means."""
    before = service.log.read_bytes()
    assert service.line.entries(key="nobody's / key") == {"entries": [], "under_way": False}
    assert say(service, b"HEAD /entries HTTP/1.1\r\n\r\n")[2] is None
    status, _, body = say(service, b"GET /problems/key-reused HTTP/1.1\r\n\r\n")
    assert (status, body["status"]) == (200, 422)
    assert service.log.read_bytes() == before


@pytest.mark.parametrize(
    ("more", "status", "title"),
    [
        ((), 400, "Idempotency-Key is missing"),
        ((KEYED,), 201, None),
        ((b'idempotency-key:"wire" \r\n',), 201, None),
    ],
)
def test_the_key_on_the_wire(tmp_path: Path, more: tuple[bytes, ...], status: int, title: str | None) -> None:
    """The field's name in any case, its value as an sf-string; one connection is one request."""
    with WatchlistProcess(tmp_path) as service:
        got, headers, body = say(service, post(GOOD, *more))
        assert (got, body.get("title")) == (status, title)
        assert headers["Connection"] == "close"
        answered = say(service, post(json.dumps({"film": "other"}).encode(), KEYED))
        assert answered[0] == (201 if title else 422)
    assert (tmp_path / LOG).is_file()
