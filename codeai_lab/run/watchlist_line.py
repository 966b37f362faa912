"""How is the watchlist service started, asked one time, and ended?

Chapter: 003, "Make repeated writes idempotent".

Idea: a child process, from `with` to the end of it, and a line to it. Each call on the line is one request:
an answer comes back, or an exception that says that none did.

    with WatchlistProcess(folder, faults=[Fault.parse("lost:1")]) as service:
        service.line.add({"film": "..."}, key="...")      ConnectionError: whether it was added is unknown
        service.line.add({"film": "..."}, key="...")      201, the entry that is there

Always true:
  WN1. The line tries nothing a second time.
  WN2. An answer that was cut off is none.
  WN3. The service ends with the process that started it, however that ends.

Not here: trying again (`run.watchlist`), what the service does (`run.watchlist_service`).
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codeai_lab.canonical import canonical_bytes
from codeai_lab.decide.idempotency_key import FIELD, Result, Rule, key_field
from codeai_lab.run.child import ChildService
from codeai_lab.run.watchlist_log import LOG
from codeai_lab.run.watchlist_service import Fault

NO_ANSWER = "no answer"
SILENCE_US = 30_000_000


@dataclass(frozen=True, slots=True)
class WatchlistLine:
    """A line to a watchlist service on a port of this machine."""

    port: int

    def add(self, payload: Mapping[str, Any], *, key: str | None, silence_us: int = SILENCE_US) -> Result:
        """Ask for an entry, one time.

        Raises: ConnectionError or TimeoutError when no answer came; whether it was added is unknown.
        """
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers[FIELD] = key_field(key)
        return self._ask("POST", "/entries", canonical_bytes(dict(payload)), headers, silence_us)

    def entries(self, *, key: str | None = None) -> dict[str, Any]:
        """Look up, reading only: `entries`, and `under_way`, whether a request with the key is."""
        query = "" if key is None else f"?key={quote(key, safe='')}"
        body: dict[str, Any] = self._ask("GET", f"/entries{query}").body
        return body

    def release(self, request: int) -> bool:
        """Let a request that is held go on; False where there is none of that number."""
        headers = {"Content-Type": "application/json"}
        body = canonical_bytes({"request": request})
        return self._ask("POST", "/control/release", body, headers).is_success

    def _ask(
        self,
        method: str,
        address: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        silence_us: int = SILENCE_US,
    ) -> Result:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=silence_us / 1_000_000)
        try:
            connection.request(method, address, body, dict(headers or {}))
            answer = connection.getresponse()
            return Result(status=answer.status, body=json.loads(answer.read()))
        except (http.client.HTTPException, ValueError):  # an answer that was cut off is none
            raise ConnectionError(NO_ANSWER) from None
        finally:
            connection.close()


class WatchlistProcess(ChildService):
    """A watchlist service in a child process, from `with` to the end of it; the child ends with its parent.

    Args:
        folder: where its log is; the same folder again is the same watchlist.
        key_required: False takes requests without a key.
        faults: what goes wrong, by request number, as `Fault.parse("lost:1")`.

    Raises: RefusedRequestError (definite) on entering, for a folder that cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rule: Rule = Rule.DRAFT,
        key_required: bool = True,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__(
            "codeai_lab.run.watchlist_service",
            *("--folder", str(folder), "--rule", str(rule)),
            *([] if key_required else ["--key-optional"]),
            *(part for fault in faults for part in ("--fault", str(fault))),
            name="watchlist service",
        )
        self.folder = folder
        self.log = folder / LOG

    @property
    def line(self) -> WatchlistLine:
        """A line to it."""
        return WatchlistLine(self.port)
