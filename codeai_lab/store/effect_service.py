"""What if the effect and the record of its completion were one step?

Chapter: 004, "Retry, replay, duplicate": neither is visible without the other. RIFL's hardest requirement,
and what an effect in a file beside a ledger cannot have.

Idea: a service whose effects are rows of a log in a file of its own. One transaction writes the effect's row
and its completion record; whoever asks again under the same id is answered from the record.

    taken -> begun -> effect_written -> record_written -> committed
            `------------- one transaction -------------'

Always true:
  ES1. Effect and record are both there or both absent, wherever the process is killed.
  ES2. An id has at most one effect in the file's whole life, also after its record was dropped.
  ES3. The answer is looked for before acting and once more inside the transaction (`decide.retention`).
  ES4. Acknowledging and collecting drop records and are themselves recorded; the log is never changed.
  ES5. One process has the file; what is under way is known to it alone and is gone with it. A forked child's
       copy refuses to be used, and letting go of it there lets go of nothing.

Not here: an effect outside this file: nothing of this reaches it, not even one that is made while the
transaction is open. Fingerprints: an id is trusted, the ledger's path compares. The tables
(`store.effect_file`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from codeai_lab.canonical import plain
from codeai_lab.clock import Clock, SystemClock
from codeai_lab.decide import retention
from codeai_lab.decide.retention import Answer, RequestId, Retained, Verdict
from codeai_lab.decide.witnesses import Receipt
from codeai_lab.errors import LedgerClosedError, RefusedValueError
from codeai_lab.records import ActionRequest
from codeai_lab.store.effect_file import EffectFile, digest_of


class Point(StrEnum):
    """Where a new request stands; between any two of them a process may die."""

    TAKEN = "taken"
    BEGUN = "begun"
    EFFECT_WRITTEN = "effect_written"
    RECORD_WRITTEN = "record_written"
    COMMITTED = "committed"


class NotDoneError(Exception):
    """The service did nothing now and has no result to give; `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"nothing was done now; the request is {answer}")
        self.answer = answer


class EffectService:
    """Appends lines to a log, each under a request id; also the look-up that reconciling needs.

    Args:
        path: the service's own file; made where it is missing.
        watch: is told where a new request stands; it may raise there, or end the process. It may ask this
            service something at TAKEN and COMMITTED only: in between the file is held.

    Raises: LedgerInUseError when it is open already; RefusedRequestError for another kind of file;
        LedgerError for a place where none can be. In a forked child every question raises LedgerClosedError.
    """

    def __init__(
        self, path: Path, *, clock: Clock | None = None, watch: Callable[[Point], object] | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._stand_at = watch or (lambda _: None)
        self._under_way: dict[RequestId, object] = {}
        self._file = EffectFile(path)
        self._pid = os.getpid()

    def submit(self, request: RequestId, line: str, *, action_id: str, first_incomplete: int = 1) -> Verdict:
        """Append a line to the log if the request is new; give the answer, with the result there is.

        Args:
            action_id: whose effect the log says this is.
            first_incomplete: the first number that the client still waits for; those below are acknowledged.

        Raises: RefusedRequestError for numbers that no client can mean and RefusedValueError for a line that
            is no text (both definite); LedgerFailedError (indefinite): ask again under the same id.
        """
        for name, text in (("line", line), ("action_id", action_id)):
            if not isinstance(plain(text, name), str):
                raise RefusedValueError(name, "this is no text")
        mine = object()
        try:
            with self._held():
                verdict = self._arrive(request, first_incomplete)
                if verdict.answer is not Answer.NEW:
                    return verdict
                self._under_way[request] = mine
            self._stand_at(Point.TAKEN)
            with self._held():
                self._stand_at(Point.BEGUN)
                known = self._retained(request.client_id, but_for=mine)
                verdict = retention.judge(known, request.sequence, now_us=self._clock.now_us())
                if verdict.answer is not Answer.NEW:
                    return verdict  # acknowledged, or its lease ran out, since it was taken
                result = self._act(request, line, action_id)
            self._stand_at(Point.COMMITTED)
            return replace(verdict, result=result)
        finally:
            if self._under_way.get(request) is mine:
                del self._under_way[request]

    # --- clients and what is kept for them ----------------------------------------------------------------

    def open_client(self, *, lease_us: int) -> str:
        """Give an id that no client had before, and a lease of this length."""
        with self._held():
            client_id = f"c{len(self._file.clients()) + 1}"
            self._file.add_lease(client_id, until_us=self._clock.now_us() + lease_us)
        return client_id

    def renew(self, client_id: str, *, lease_us: int) -> bool:
        """Let a lease end this long from now; False, and nothing changes, where it is over already."""
        with self._held():
            now_us = self._clock.now_us()
            if self._retained(client_id).lease_is_over(now_us=now_us):
                return False
            self._file.add_lease(client_id, until_us=now_us + lease_us)
        return True

    def acknowledge(self, client_id: str, *, up_to: int) -> None:
        """Drop a client's records up to a number; those numbers answer stale from now on."""
        with self._held():
            before = self._retained(client_id)
            if client_id in self._file.clients():
                self._file.note(client_id, before, retention.acknowledge(before, up_to=up_to))

    def collect(self) -> tuple[str, ...]:
        """Drop the records of each client whose lease is over and that has nothing under way; name them."""
        collected = []
        with self._held():
            for client_id in self._file.clients():
                before = self._retained(client_id)
                after = retention.collect(before, now_us=self._clock.now_us())
                if after is not before:
                    self._file.note(client_id, before, after)
                    collected.append(client_id)
        return tuple(collected)

    # --- what a witness, a reconciliation or a table asks -------------------------------------------------

    def receipts(self) -> tuple[Receipt, ...]:
        """Give the log as receipts of the world, in order."""
        with self._held():
            return self._file.receipts()

    def find(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Give references to the effects of a recorded request; the log keeps every one: () is certain."""
        return tuple(
            {"receipt": receipt.n, "marker": receipt.marker, "effect": receipt.effect}
            for receipt in self.receipts()
            if receipt.action_id == request["action_id"]
        )

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        """Say whether the row is there and holds what the reference says."""
        with self._held():
            line = self._file.line(int(reference["receipt"]))
        return line is not None and digest_of(line) == reference["effect"]

    def kept(self) -> dict[str, int]:
        """Count effects, the records kept of them, and the events of collection."""
        with self._held():
            return self._file.counts()

    def close(self) -> None:
        """Let go of the file; harmless when it was done before."""
        if os.getpid() == self._pid:
            self._file.close()

    def __enter__(self) -> EffectService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _held(self) -> AbstractContextManager[None]:
        """Hold the file, unless it is the parent's (ES5), whose guard would never be free here."""
        if os.getpid() != self._pid:
            raise LedgerClosedError(
                "The effect service belongs to the parent of this forked process; ask it there."
            )
        return self._file.held()

    # --- inside a transaction -----------------------------------------------------------------------------

    def _arrive(self, request: RequestId, first_incomplete: int) -> Verdict:
        before = self._retained(request.client_id)
        now_us = self._clock.now_us()
        verdict, after = retention.arrive(
            before, request.sequence, first_incomplete=first_incomplete, now_us=now_us
        )
        self._file.note(request.client_id, before, after)
        return verdict

    def _act(self, request: RequestId, line: str, action_id: str) -> dict[str, Any]:
        """Make the effect and save its result: the one step that the chapter's path lacks (ES1)."""
        receipt = self._file.write_effect(request, line, action_id=action_id)
        self._stand_at(Point.EFFECT_WRITTEN)
        result = {"effect": receipt.n, "marker": receipt.marker}
        self._file.write_record(request, result)
        self._stand_at(Point.RECORD_WRITTEN)
        return result

    def _retained(self, client_id: str, *, but_for: object = None) -> Retained:
        """Read what is remembered of a client, with what is under way here but for one request's own mark."""
        under_way = {
            request.sequence
            for request, whose in self._under_way.items()
            if request.client_id == client_id and whose is not but_for
        }
        return self._file.retained(client_id, in_progress=under_way)


class ServiceAdapter:
    """Carries out actions at an effect service; an action's key is its request id, as `c1/7`.

    Args:
        service: may be shared.
        after: called after the service answered; may raise, so that the effect is there and the reply is not.
    """

    def __init__(self, service: EffectService, *, after: Callable[[], object] | None = None) -> None:
        self.calls = 0
        self.effects = 0
        self._service = service
        self._after = after

    def execute(self, request: ActionRequest) -> Any:
        """Append the line that the payload names, and give the result, the saved one for a duplicate.

        Raises: NotDoneError unless the request is new or a duplicate; RefusedRequestError for a key that is
            no request id.
        """
        self.calls += 1
        line = str(request.payload.get("line", request.instruction))
        asked = RequestId.from_key(request.idempotency_key)
        verdict = self._service.submit(asked, line, action_id=request.action_id)
        if verdict.answer not in (Answer.NEW, Answer.DUPLICATE):
            raise NotDoneError(verdict.answer)
        self.effects += verdict.answer is Answer.NEW
        if self._after is not None:
            self._after()
        return verdict.result
