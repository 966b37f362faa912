"""What does a service look like from outside that may be asked for the same write again?

Chapter: 003, "Make repeated writes idempotent": retrying the watchlist call after its response is lost could
add the film twice.

Idea: a watchlist over HTTP, in a process of its own. What it is asked and what it answers is in its log
(`run.watchlist_log`) before anyone is told. Faults are planned by request number, so that every run loses the
same answer, and nothing sleeps: what is slow is held until it is released.

    POST /entries            {"film": ...}, with Idempotency-Key    201, or a problem
    GET  /entries?key=...    reads only: the entries of a key, and whether a request of it is under way
    POST /control/release    {"request": n}                         lets a held request go on
    GET  /problems/NAME      what a problem's type means

Always true:
  WS1. A lost response is lost after the commit; a failed request failed before it; a slow one is held before.
  WS2. What is not a request that it can read gets a status and one sentence, has no receipt and no effect.
  WS3. It ends when its input is closed: with whoever started it.
  WS4. Looking up never adds to the list.

Not here: which of the five answers is due (`decide.idempotency_key`); starting it (`run.watchlist`). Who may
ask: whoever reaches the port of this machine may.
Sources: RFC 9110, RFC 9457 (problem details); draft-ietf-httpapi-idempotency-key-header-07.
"""

from __future__ import annotations

import argparse
import socketserver
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from codeai_lab.decide.idempotency_key import FIELD, Answer, Rule, read_key
from codeai_lab.errors import LabError, RefusedRequestError
from codeai_lab.run.child import attached, say
from codeai_lab.run.watchlist_log import LogFailedError, Watchlist
from codeai_lab.run.watchlist_problems import PROBLEMS, TurnedAwayError
from codeai_lab.run.watchlist_wire import Conversation

LONGEST_FILM = 200
METHODS = {"/entries": ("GET", "HEAD", "POST"), "/control/release": ("POST",)}
READING = ("GET", "HEAD")


class FaultKind(StrEnum):
    """What goes wrong with a request; what is held goes on when it is released."""

    LOST = "lost"  # committed, and the connection is closed without an answer
    ERROR = "error"  # fails before anything is added
    SLOW = "slow"  # held before the commit
    WITHHELD = "withheld"  # committed, and the answer is held


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, of the request with this number.

    Example:
        >>> Fault.parse("lost:2")
        Fault(kind=<FaultKind.LOST: 'lost'>, request=2)
    """

    kind: FaultKind
    request: int

    @classmethod
    def parse(cls, text: str) -> Fault:
        kind, _, number = text.partition(":")
        if kind not in set(FaultKind) or not number.isdecimal() or int(number) < 1:
            raise RefusedRequestError(f"A fault is one of {', '.join(FaultKind)} and a number, as lost:1.")
        return cls(kind=FaultKind(kind), request=int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.request}"


class Service(ThreadingHTTPServer):
    """A watchlist on a port of this machine that the system chooses."""

    request_queue_size = 64

    def __init__(self, watchlist: Watchlist, faults: Sequence[Fault] = ()) -> None:
        self.watchlist = watchlist
        self.faults = {fault.request: fault.kind for fault in faults}
        self._held: dict[int, threading.Event] = {}
        super().__init__(("127.0.0.1", 0), WatchlistConversation)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # without asking anyone for this machine's name
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def hold(self, number: int) -> None:
        """Say that a request is held, and return when it is released."""
        held = self._held[number] = threading.Event()
        say(f"held {number}")
        held.wait()

    def release(self, number: object) -> bool:
        """Let a held request go on; False where there is none of that number."""
        held = self._held.pop(number, None) if type(number) is int else None
        if held is not None:
            held.set()
        return held is not None

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say in one line what went wrong, unless it is only that whoever asked is gone."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"the watchlist service failed at a request: {type(error).__name__}", file=sys.stderr)


class WatchlistConversation(Conversation):
    """One request to the watchlist."""

    server: Service

    def answer(self) -> None:
        try:
            address = urlsplit(self.path)
            asked = parse_qs(address.query, keep_blank_values=True)
        except ValueError:
            raise TurnedAwayError("malformed") from None
        allowed = METHODS.get(address.path, READING)
        if self.command not in allowed:
            raise TurnedAwayError("method-not-allowed", Allow=", ".join(allowed))
        if address.path == "/control/release":
            self._release()
        elif address.path != "/entries":
            self._explain(address.path)
        elif self.command == "POST":
            with suppress(LogFailedError):  # no answer: what is on the disk is not known here
                self._add()
        else:
            self._look_up(asked.get("key", []))

    def _add(self) -> None:
        payload = self.json_body()
        film = payload.get("film")
        if set(payload) != {"film"} or not isinstance(film, str) or not 1 <= len(film) <= LONGEST_FILM:
            raise TurnedAwayError("not-an-entry")
        try:
            key = read_key(self.headers.get_all(FIELD, []))
        except RefusedRequestError as refused:
            raise TurnedAwayError("key-malformed", detail=str(refused)) from None
        watchlist = self.server.watchlist
        taken = watchlist.take(payload, key=key)
        fault = self.server.faults.get(taken.n)
        if fault is FaultKind.SLOW:
            self.server.hold(taken.n)
        result = taken.kept
        if taken.answer is Answer.RUN:
            result = watchlist.complete(taken, fails=fault is FaultKind.ERROR)
        if fault is FaultKind.WITHHELD:
            self.server.hold(taken.n)
        if fault is FaultKind.LOST:
            return
        if result is None:
            raise TurnedAwayError(taken.answer.replace("_", "-"))
        self.send(result.status, result.body)

    def _look_up(self, keys: Sequence[str]) -> None:
        found, under_way = self.server.watchlist.entries(key=keys[0] if keys else None)
        self.send(200, {"entries": found, "under_way": under_way})

    def _release(self) -> None:
        if not self.server.release(self.json_body().get("request")):
            raise TurnedAwayError("nothing-held")
        self.send(200, {"released": True})

    def _explain(self, path: str) -> None:
        problem = PROBLEMS.get(path.removeprefix("/problems/")) if path.startswith("/problems/") else None
        if problem is None:
            raise TurnedAwayError("not-found")
        self.send(200, {"title": problem.title, "status": problem.status, "detail": problem.detail})


def serve(folder: Path, *, rule: Rule, key_required: bool, faults: Sequence[Fault]) -> None:
    """Answer requests on a port of this machine, say which, and go on until the input is closed."""
    with (
        attached() as let_go,
        Watchlist(folder, rule=rule, key_required=key_required) as watchlist,
        Service(watchlist, faults) as server,
    ):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        say(f"port {server.server_port}")
        let_go.wait()
        server.shutdown()


def main() -> None:
    """Be the service; what keeps it from starting is said in one sentence."""
    parser = argparse.ArgumentParser(prog="python -m codeai_lab.run.watchlist_service")
    parser.add_argument("--folder", type=Path, required=True, help="where its log is kept")
    parser.add_argument("--rule", choices=list(Rule), default=Rule.DRAFT, help="which results are kept")
    parser.add_argument("--key-optional", action="store_true", help="take requests without a key")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND:N", help="as lost:1")
    given = parser.parse_args()
    try:
        faults = [Fault.parse(text) for text in given.fault]
        serve(given.folder, rule=Rule(given.rule), key_required=not given.key_optional, faults=faults)
    except LabError as error:
        say(f"refused {error}")
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
