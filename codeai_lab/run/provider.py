"""Who answers a model call, and who says how often it was asked?

Chapter: 004, "Checking it without trusting it": effects are counted where they happen, not by who caused
them.

Idea: a synthetic provider in a process of its own. It writes a receipt of each request to a log of its own
and flushes it before it answers, so that the count is right also when whoever asked is killed while waiting.
For that moment it can be told to hold: receipt written, no answer.

    producer --- request ---> provider
       |                         | receipt, on disk
       x killed                  | "held 1"        (told to whoever started it)

Always true:
  PV1. A receipt is on disk before the answer leaves; a request that is held leaves one too.
  PV2. The answer is a function of the request's bytes.
  PV3. The provider knows nothing of the ledger, and does not keep a key from being asked twice.
  PV4. It ends when whoever started it lets go or is gone.

Not here: what is recorded about a call (`run.working`).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from codeai_lab.canonical import canonical_bytes, plain
from codeai_lab.errors import RefusedValueError
from codeai_lab.records import ActionStatus, CallRequest
from codeai_lab.run.child import ChildService, attached, end_if, say

NO_ANSWER = "The provider gave no answer; it may have been asked."


class Transport(Protocol):
    """Carries a request's bytes to a provider and brings the answer's bytes back, or raises."""

    def send(self, body: bytes, *, key: str) -> bytes:
        """Send one request; its key is only ever a label."""
        ...


# --- the words that are sent, and what is read from the answer -----------------------------------------


def request_body(call: CallRequest) -> bytes:
    """Give the bytes that are sent for a call: the same call, the same bytes, whatever its id and its key."""
    return canonical_bytes(
        {
            "model": call.requested_model,
            "chamber": call.chamber,
            "context": dict(call.context),
            "prompt": call.prompt,
        }
    )


def body_hash(body: bytes) -> str:
    """Give the request body hash: SHA-256, 64 hex digits."""
    return hashlib.sha256(body).hexdigest()


def kept(reply: bytes) -> dict[str, str]:
    """Give the form in which an answer's bytes are recorded, whole, whatever they are."""
    try:
        return {"encoding": "utf-8", "body": reply.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "body": base64.b64encode(reply).decode()}


def kept_bytes(recorded: dict[str, str]) -> bytes:
    """Give back the bytes that `kept` recorded."""
    body = recorded["body"]
    return base64.b64decode(body) if recorded["encoding"] == "base64" else body.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """What an answer's bytes say: a response, or why they are none."""

    status: ActionStatus
    response: Any = None
    error: str | None = None


def interpret(reply: bytes) -> Interpretation:
    """Read an answer's bytes; the same bytes say the same, now and later."""
    try:
        said = plain(json.loads(reply), "reply")
    except (ValueError, RecursionError, RefusedValueError):
        return Interpretation(status=ActionStatus.FAILED, error="the answer is not JSON")
    if not isinstance(said, dict) or said.get("finish") != "stop" or not isinstance(said.get("text"), str):
        return Interpretation(status=ActionStatus.FAILED, error="the answer is not finished")
    return Interpretation(status=ActionStatus.SUCCEEDED, response={"text": said["text"]})


# --- the provider --------------------------------------------------------------------------------------


class SyntheticProvider:
    """Answers requests and keeps a receipt of each; by itself it is the stand-in within a process.

    Args:
        log: where receipts are written, one JSON line each; made when it is not there.
        hold: so many requests, the first ones, are received and never answered.
    """

    def __init__(self, log: Path, *, hold: int = 0) -> None:
        self._log = log
        self._hold = hold
        self._one_at_a_time = threading.Lock()
        log.touch()

    def send(self, body: bytes, *, key: str) -> bytes:
        """Receive a request and answer it.

        Raises: ConnectionError for one that is held.
        """
        if self.holds(self.receive(body, key=key)):
            raise ConnectionError(NO_ANSWER)
        return self.answer(body)

    def receive(self, body: bytes, *, key: str) -> int:
        """Write the receipt of a request, to the disk, and give its number."""
        with self._one_at_a_time:
            number = len(receipts(self._log)) + 1
            receipt = {"n": number, "key": key, "request_body_hash": body_hash(body)}
            with self._log.open("ab") as file:
                file.write(canonical_bytes(receipt) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        return number

    def holds(self, number: int) -> bool:
        """Say whether the request with this number gets no answer."""
        return number <= self._hold

    def answer(self, body: bytes) -> bytes:
        """Give the answer to a request; the same bytes, the same answer."""
        return canonical_bytes({"finish": "stop", "text": f"a response to {len(body)} bytes"})


def receipts(log: Path) -> list[dict[str, Any]]:
    """Read what the provider says that it was asked, in order."""
    return [json.loads(line) for line in log.read_bytes().splitlines()]


class ReceiptLookup:
    """The reading side of a provider's log, by key and request body (`run.reconciling_calls`)."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def find(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Give a reference to each receipt of a recorded request's key and body."""
        names = ("key", "request_body_hash")
        wanted = (request["idempotency_key"], request["request_body_hash"])
        return tuple(
            {"receipt": one["n"]}
            for one in receipts(self._log)
            if tuple(one[name] for name in names) == wanted
        )

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether a reference leads to a receipt that is there."""
        return reference.get("receipt") in {one["n"] for one in receipts(self._log)}


# --- in a process of its own ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """A line to a provider that listens on a port of this machine."""

    port: int

    def send(self, body: bytes, *, key: str) -> bytes:
        """Send one request.

        Raises: ConnectionError when the provider goes without an answer; whether it was asked is unknown.
        """
        with socket.create_connection(("127.0.0.1", self.port)) as peer, peer.makefile("rb") as answer:
            peer.sendall(canonical_bytes({"key": key, "body": body.decode()}) + b"\n")
            reply = answer.readline()
        if not reply.endswith(b"\n"):
            raise ConnectionError(NO_ANSWER)
        return reply.removesuffix(b"\n")


class ProviderProcess(ChildService):
    """A synthetic provider in a child process, from `with` to the end of it."""

    def __init__(self, log: Path, *, hold: int = 0) -> None:
        super().__init__("codeai_lab.run.provider", str(log), "--hold", str(hold), name="synthetic provider")
        self.log = log

    @property
    def line(self) -> Line:
        """A line to it."""
        return Line(self.port)


class _Server(socketserver.ThreadingTCPServer):
    """Hands each conversation to a thread."""

    daemon_threads = True

    def __init__(self, provider: SyntheticProvider, let_go: threading.Event) -> None:
        self.provider = provider
        self._let_go = let_go
        super().__init__(("127.0.0.1", 0), _Conversation)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say in one line what went wrong, unless it came of our parent's end."""
        error = sys.exc_info()[1]
        end_if(self._let_go)
        print(f"the synthetic provider failed at a request: {type(error).__name__}", file=sys.stderr)


class _Conversation(socketserver.StreamRequestHandler):
    """One request to the provider."""

    server: _Server

    def handle(self) -> None:
        provider = self.server.provider
        asked = json.loads(self.rfile.readline())
        body = asked["body"].encode()
        number = provider.receive(body, key=asked["key"])
        if not provider.holds(number):
            self.wfile.write(provider.answer(body) + b"\n")
            return
        say(f"held {number}")
        with suppress(OSError):
            self.rfile.read()  # returns when whoever asked is gone


def serve(log: Path, *, hold: int) -> None:
    """Answer requests on a port of this machine, say which, and go on until the input is closed."""
    with attached() as let_go, _Server(SyntheticProvider(log, hold=hold), let_go) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        say(f"port {server.server_address[1]}")
        let_go.wait()
        server.shutdown()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("log", type=Path)
    arguments.add_argument("--hold", type=int, default=0)
    given = arguments.parse_args()
    serve(given.log, hold=given.hold)
