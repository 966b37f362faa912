"""How is a request read, and how is one that cannot be read turned away?

Chapter: 003, "Make repeated writes idempotent".

Idea: one connection, one request, and one answer or none. A body is read only when its form and length are
known to be fit; whatever is not is answered with a problem and one sentence.

Always true:
  WW1. What cannot be read is turned away before it is looked at: no receipt, no effect.
  WW2. An answer reaches also whoever is still sending: the rest is read and thrown away, up to a bound.
  WW3. A body is one JSON object in UTF-8, without a name that comes two times.

Not here: what is asked and done (`run.watchlist_service`); the sentences (`run.watchlist_problems`).
Sources: RFC 9110, RFC 9112; RFC 9457 (problem details).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from typing import Any

from codeai_lab.canonical import canonical_bytes, plain
from codeai_lab.errors import RefusedValueError
from codeai_lab.run.watchlist_problems import BY_STATUS, TurnedAwayError

LARGEST_BODY = 64 * 1024
MOST_DISCARDED = 16 * 1024 * 1024


class Conversation(BaseHTTPRequestHandler):
    """One request and its answer, or none; `answer` is what a service makes of it."""

    protocol_version = default_request_version = "HTTP/1.1"
    server_version, sys_version = "watchlist", ""
    timeout = 10  # seconds that a peer may keep silent in the middle of a request
    _is_read = False

    def answer(self) -> None:
        """Answer the request that was read, or return without an answer."""
        raise NotImplementedError

    def _converse(self) -> None:
        self.close_connection = True
        try:
            self.answer()
        except TurnedAwayError as turned:
            self._turn_away(turned)

    do_GET = do_HEAD = do_POST = do_PUT = _converse  # noqa: N815
    do_PATCH = do_DELETE = do_OPTIONS = _converse  # noqa: N815

    def json_body(self) -> dict[str, Any]:
        """Read the body as a JSON object.

        Raises: TurnedAwayError.
        """
        if self.headers.get_content_type() != "application/json":
            raise TurnedAwayError("not-json-type")
        length = self._length()
        if length > LARGEST_BODY:
            raise TurnedAwayError("too-large")
        self._is_read = True
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            raise TurnedAwayError("incomplete") from None
        if len(body) < length:
            raise TurnedAwayError("incomplete")
        try:
            said = plain(json.loads(body.decode(), object_pairs_hook=_unlike_names), "body")
        except (ValueError, RecursionError, RefusedValueError):
            raise TurnedAwayError("not-json") from None
        if not isinstance(said, dict):
            raise TurnedAwayError("not-json")
        return said

    def send(self, status: int, body: Any, *, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Answer with a JSON body, a problem from 400 on, and close."""
        said = canonical_bytes(body)
        kind = "application/json" if status < 400 else "application/problem+json"
        self.close_connection = True
        self.send_response(status)
        always = {"Content-Type": kind, "Content-Language": "en", "Content-Length": str(len(said))}
        for name, value in {**always, **headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else said)
        self._discard()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what the library turns away by itself; its own words would repeat what was sent."""
        self._turn_away(TurnedAwayError(BY_STATUS.get(int(code), "malformed")))

    def log_message(self, *_: Any) -> None:
        """Say nothing: what is worth keeping is in the service's log."""

    def _turn_away(self, turned: TurnedAwayError) -> None:
        self.send(turned.problem.status, turned.body(), headers=turned.headers)

    def _length(self) -> int:
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths or "Transfer-Encoding" in self.headers:
            raise TurnedAwayError("length-required")
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdecimal()) or len(lengths[0]) > 18:
            raise TurnedAwayError("malformed")
        return int(lengths[0])

    def _discard(self) -> None:
        """Let whoever is still sending come to an end: closing at once could cut the answer off (WW2)."""
        if self._is_read:
            return
        left = MOST_DISCARDED
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while left > 0 and (read := self.rfile.read1(LARGEST_BODY)):
                left -= len(read)


def _unlike_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name comes two times")
    return dict(pairs)
