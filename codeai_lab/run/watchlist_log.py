"""What has the watchlist promised, and what is still true of it after a kill?

Chapter: 003, "Make repeated writes idempotent"; 004, "Retry, replay, duplicate": the record of a result must
come into being with the effect.

Idea: an append-only log, and a list that is nothing but the log's completed lines. The entry and the result
that is kept for its retries are one line, so that neither is ever there without the other.

    received    {"n": 1, "key": ..., "fingerprint": ...}              a receipt of every request that was read
    completed   {"n": 1, ..., "status": 201, "body": {"entry": 1, "film": ...}}      this line is the entry
    answered    {"n": 2, "answer": "replay", "status": 201}           what a request was told that did not run

Always true:
  WG1. A line is on the disk before anyone is told what it says.
  WG2. A request that was cut off before its completed line did nothing; one after it is replayed.
  WG3. Requests are numbered by their receipts, from 1, and go on being so after a start anew.
  WG4. One process has the log. A last line that was torn off is taken away at opening; any other damage is
       refused.
  WG5. After a write that failed nothing is taken or completed until the log is opened again.

Not here: which answer a request gets (`decide.idempotency_key`), HTTP (`run.watchlist_service`).
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from codeai_lab.canonical import canonical_bytes, digest
from codeai_lab.decide.idempotency_key import REFUSALS, Answer, Kept, Result, Rule, judge, keeps
from codeai_lab.errors import LedgerError, LedgerInUseError, RefusedRequestError
from codeai_lab.run.provider import receipts
from codeai_lab.run.watchlist_problems import TurnedAwayError
from codeai_lab.store.files import Files, lock_files

LOG = "watchlist.jsonl"
ADDED = 201


class LogFailedError(Exception):
    """The log could not be written; what is on the disk is known when it is opened again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A request that has its receipt: its number, what it is, and the result that is kept for it already."""

    n: int
    key: str | None
    payload: dict[str, Any]
    fingerprint: str
    answer: Answer
    kept: Result | None = None


class Watchlist:
    """A watchlist on disk that keeps results under idempotency keys.

    Args:
        folder: where its log is; made where it is missing.
        rule: which results are kept.
        key_required: whether a request without a key is turned away.

    Raises: LedgerInUseError when another process has it; RefusedRequestError for a folder that cannot be one
        and for a damaged log (both definite).
    """

    def __init__(self, folder: Path, *, rule: Rule, key_required: bool = True) -> None:
        self._rule = rule
        self._key_required = key_required
        self._one_at_a_time = threading.Lock()
        self._under_way: dict[str, Kept] = {}
        self._kept: dict[str, Kept] = {}
        self._entries: list[tuple[str | None, dict[str, Any]]] = []
        self._requests = 0
        self._failed = False
        self._lock = _locked(folder)
        try:
            _make_whole(folder / LOG)
            for line in log_of(folder):
                self._know(line)
            self._file = (folder / LOG).open("ab")
        except BaseException:
            self._lock.release()
            raise

    def take(self, payload: dict[str, Any], *, key: str | None) -> Taken:
        """Give a request its receipt and say what it is; a new one is under way from here on.

        Raises: LogFailedError (indefinite).
        """
        fingerprint = digest(payload)
        with self._one_at_a_time:
            receipt = {"kind": "received", "n": self._requests + 1, "key": key, "fingerprint": fingerprint}
            self._append(receipt)
            n = self._requests
            kept = None if key is None else self._under_way.get(key) or self._kept.get(key)
            answer = judge(kept, key=key, fingerprint=fingerprint, key_required=self._key_required)
            result = kept.result if kept is not None and answer is Answer.REPLAY else None
            if answer is Answer.RUN and key is not None:
                self._under_way[key] = Kept(fingerprint=fingerprint)
            if answer is not Answer.RUN:
                status = REFUSALS[answer] if result is None else result.status
                self._append({"kind": "answered", "n": n, "answer": str(answer), "status": status})
        return Taken(n=n, key=key, payload=payload, fingerprint=fingerprint, answer=answer, kept=result)

    def complete(self, taken: Taken, *, fails: bool = False) -> Result:
        """Carry out a request that is to run: add the entry, or fail before adding anything.

        Raises: LogFailedError (indefinite).
        """
        with self._one_at_a_time:
            body = {"entry": len(self._entries) + 1, **taken.payload}
            result = Result(status=ADDED, body=body)
            if fails:
                failure = TurnedAwayError("not-added")
                result = Result(status=failure.problem.status, body=failure.body())
            self._append(
                {
                    "kind": "completed", "n": taken.n, "key": taken.key, "fingerprint": taken.fingerprint,
                    "status": result.status, "body": result.body,
                }
            )  # fmt: skip
            if taken.key is not None:
                del self._under_way[taken.key]
        return result

    def entries(self, *, key: str | None = None) -> tuple[list[dict[str, Any]], bool]:
        """Give the entries, those of a key where one is named, and whether a request of it is under way."""
        with self._one_at_a_time:
            found = [dict(entry) for own, entry in self._entries if key is None or own == key]
            return found, key in self._under_way

    def close(self) -> None:
        """Let go of the log; harmless when it was done before."""
        with self._one_at_a_time:
            self._failed = True
            with suppress(OSError):  # of a write that failed; what came of it is seen at opening
                self._file.close()
            self._lock.release()

    def __enter__(self) -> Watchlist:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, line: dict[str, Any]) -> None:
        """Write a line to the disk, and only then know of it (WG1, WG5)."""
        if self._failed:
            raise LogFailedError("the log takes no lines until it is opened again")
        try:
            self._file.write(canonical_bytes(line) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            self._failed = True
            raise LogFailedError(type(error).__name__) from None
        self._know(line)

    def _know(self, line: dict[str, Any]) -> None:
        if line["kind"] == "received":
            self._requests = line["n"]
        if line["kind"] != "completed":
            return
        key, result = line["key"], Result(status=line["status"], body=line["body"])
        if result.status == ADDED:
            self._entries.append((key, result.body))
        if key is not None and keeps(self._rule, result):
            self._kept[key] = Kept(fingerprint=line["fingerprint"], result=result)


# --- what anyone can read -------------------------------------------------------------------------------

_NAMES = {
    "received": {"kind", "n", "key", "fingerprint"},
    "completed": {"kind", "n", "key", "fingerprint", "status", "body"},
    "answered": {"kind", "n", "answer", "status"},
}


def log_of(folder: Path) -> list[dict[str, Any]]:
    """Read a watchlist's log, in order.

    Raises: RefusedRequestError (definite) for one that is damaged.
    """
    try:
        lines = receipts(folder / LOG)
        sound = all(line.keys() == _NAMES[line["kind"]] for line in lines)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        sound = False
    if not sound:
        raise RefusedRequestError(f"{LOG} in {folder.name} is no watchlist's log; name another folder.")
    return lines


def entry_count(folder: Path) -> int:
    """Count the entries by the service's own receipts."""
    return sum(line["kind"] == "completed" and line["status"] == ADDED for line in log_of(folder))


def answers_in(folder: Path) -> list[str]:
    """Say of each request, by its number, what the service took it for; `run` where it was to run."""
    lines = log_of(folder)
    told = {line["n"]: str(line["answer"]) for line in lines if line["kind"] == "answered"}
    return [told.get(line["n"], "run") for line in lines if line["kind"] == "received"]


# --- opening --------------------------------------------------------------------------------------------


def _locked(folder: Path) -> Any:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return lock_files(Files.of(folder / LOG))
    except LedgerInUseError:
        raise LedgerInUseError(
            f"Another watchlist service has {folder.name}; end it first, or name another folder."
        ) from None
    except (OSError, LedgerError):
        raise RefusedRequestError(
            f"{folder.name} is no folder that can be written to; name another."
        ) from None


def _make_whole(log: Path) -> None:
    """Make a log where there is none, and take away a last line that was torn off: nobody was told of it."""
    log.touch()
    written = log.read_bytes()
    whole = written[: written.rfind(b"\n") + 1]
    if whole != written:
        with log.open("r+b") as file:
            file.truncate(len(whole))
            os.fsync(file.fileno())
