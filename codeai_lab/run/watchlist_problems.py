"""What may the watchlist service say when it does not do what it was asked?

Chapter: 003, "Make repeated writes idempotent".

Idea: one table. Each problem has a name that programs go by, a status, a title and one sentence that says
what is wrong and what to do. Its type is the address of that sentence at the service itself.

Always true:
  WP1. A problem is an object as RFC 9457 has it: type, title, status, detail.
  WP2. No sentence repeats what was sent.

Not here: when each is due (`run.watchlist_service`, `decide.idempotency_key`).
Sources: RFC 9457; the titles of the first three are the draft's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A status, a title, and a sentence for a person."""

    status: int
    title: str
    detail: str


PROBLEMS: Mapping[str, Problem] = MappingProxyType(
    {
        "key-missing": Problem(
            400,
            "Idempotency-Key is missing",
            "Adding an entry needs an Idempotency-Key; send one for each action, the same at retries.",
        ),
        "key-reused": Problem(
            422,
            "Idempotency-Key is already used",
            "This key came with another payload before; use a new key for a new action.",
        ),
        "outstanding": Problem(
            409,
            "A request is outstanding for this Idempotency-Key",
            "A request with this key is still under way; ask again later, with the same key.",
        ),
        "key-malformed": Problem(
            400, "Idempotency-Key is malformed", "The Idempotency-Key must be a text in double quotes."
        ),
        "not-added": Problem(500, "Entry not added", "The entry could not be added; nothing was changed."),
        "not-an-entry": Problem(
            400,
            "Not an entry",
            "The body must be a JSON object with a film, a text of 1 to 200 characters, and nothing else.",
        ),
        "not-json": Problem(400, "Not JSON", "The body must be one JSON object, each name in it one time."),
        "not-json-type": Problem(
            415, "Wrong content type", "Send the body as Content-Type application/json."
        ),
        "length-required": Problem(411, "No length", "Send the body whole, with its Content-Length."),
        "incomplete": Problem(
            400, "Incomplete body", "The body ended before its Content-Length; send it whole."
        ),
        "too-large": Problem(413, "Body too large", "The body may have 65536 bytes at most."),
        "nothing-held": Problem(404, "Nothing held", "No request of that number is held; name one that is."),
        "not-found": Problem(404, "Not found", "There is no such place here; ask for /entries."),
        "method-not-allowed": Problem(
            405, "Method not allowed", "Use one of the methods that the Allow header names."
        ),
        "malformed": Problem(400, "Not HTTP", "The request is not in the form of HTTP/1.1; correct it."),
        "path-too-long": Problem(414, "Address too long", "The request line is too long; shorten it."),
        "headers-too-large": Problem(
            431, "Headers too large", "The headers are too many or too long; send fewer."
        ),
        "unknown-method": Problem(501, "Unknown method", "The method is not known here; use GET or POST."),
        "unknown-version": Problem(505, "Unknown version", "Only HTTP/1.1 is spoken here."),
    }
)
BY_STATUS = MappingProxyType(
    {
        414: "path-too-long",
        431: "headers-too-large",
        501: "unknown-method",
        505: "unknown-version",
        408: "incomplete",
    }
)


class TurnedAwayError(Exception):
    """A request is turned away, with the problem of this name."""

    def __init__(self, name: str, *, detail: str | None = None, **headers: str) -> None:
        super().__init__(name)
        self.name = name
        self.problem = PROBLEMS[name]
        self.headers = headers
        self._detail = detail or self.problem.detail

    def body(self) -> dict[str, Any]:
        """Give the problem details."""
        return {
            "type": f"/problems/{self.name}",
            "title": self.problem.title,
            "status": self.problem.status,
            "detail": self._detail,
        }
