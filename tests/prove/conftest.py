"""Small good bundles, written from the format alone.

Nothing of the runtime, the ledger or the projections is used: the rows are literal.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from codeai_lab.canonical import encoded
from codeai_lab.prove import bundle, verify
from codeai_lab.prove.copies import Copy, Event
from codeai_lab.prove.corrupt import corrupt

RULE_SETS = ("7a0d43b", "a1b562a", "1b3c7a2", "88d1291", "lab")
LESSON = "retry-effects"
CONFLICT = "IdempotencyConflictError"
RAISED = {"code": "adapter-raised", "message": "the adapter raised", "type": "RuntimeError"}
DENIED = {"code": "not-authorised", "message": "no grant permits it"}
DRIFTED = {
    "code": "precondition-drift", "message": "the world moved", "expected": "state-A", "observed": "state-B",
}  # fmt: skip
DONE = {"status": "succeeded", "output": {"bytes": 6}, "observed": {"readable": True, "state": "v1"}}
CRASHED = {"status": "failed", "error": RAISED, "observed": {"readable": True, "state": "v1"}}
UNTOUCHED: dict[str, Any] = {
    "effect_possible": False, "output": None, "error": None, "observed": None, "reused_from_action_id": None,
}  # fmt: skip
Request = tuple[str, str, dict[str, Any]]  # stream, kind, payload


def line_of(value: Any) -> bytes:
    return rfc8785.dumps(value)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fingerprint(version: str, meaning: dict[str, Any]) -> dict[str, Any]:
    dimensions = {name: sha256(line_of(value)) for name, value in meaning.items()}
    digest = sha256(line_of({"version": version, "dimensions": dimensions}))
    return {"version": version, "digest": digest, "dimensions": dimensions}


class Script:
    """Writes a run as a rule set would have recorded it, and keeps the rows that a reader would expect."""

    def __init__(self, folder: Path, revision: str) -> None:
        self.world, self.revision = folder / "world", revision
        self.compares = revision != "7a0d43b"
        self.starts, self.claims = revision in ("88d1291", "lab"), revision == "lab"
        created = {"kind": "ledger.created", "ledger_id": "L1", "recorded_at_us": 1, "schema_version": 1}
        self.lines = [line_of(created | {"seq": 0})]
        self.causes: dict[str, str] = {}
        self.cases: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.begin("")

    # --- the chain writer

    def append(self, *events: Request) -> None:
        for place, (stream, kind, payload) in enumerate(events, 1):
            seq = len(self.lines)
            event = {
                "seq": seq, "event_id": f"e{seq}", "run_id": f"{LESSON}/{self.case}", "stream_id": stream,
                "kind": kind, "actor_id": "alice", "idempotency_key": self.keys[stream], "payload": payload,
                "recorded_at_us": 1_000_000 + seq, "causation_id": self.causes.get(stream),
                "batch": [place, len(events)], "prev": sha256(self.lines[-1]),
            }  # fmt: skip
            self.causes.setdefault(stream, event["event_id"])
            self.kinds.append(kind)
            self.lines.append(line_of(event))

    # --- what a rule set records of one request

    def asked(self, kind: str, name: str, key: str, **meaning: Any) -> Request:
        self.keys[name] = key
        self.requests.append({"id": name, "kind": kind, "key": key})
        if kind == "call":
            usual = {
                "prompt": "Say hello.",
                "chamber": "small",
                "requested_model": "m1",
                "context": {"n": 1.5},
            }
            payload = usual | meaning
            dimensions = {
                "prompt_hash": payload["prompt"], "chamber": payload["chamber"],
                "requested_model": payload["requested_model"], "rendered_context": payload["context"],
            }  # fmt: skip
            own = {"call_id": name, "fingerprint": fingerprint("call-fingerprint-v1", dimensions)}
        else:
            usual = {"capability": "file.append", "instruction": "append one line", "performer": "agent"}
            payload = usual | {"payload": {"ligne": "é", "n": 1}, "precondition": None} | meaning
            own = {"action_id": name, "fingerprint": fingerprint("action-fingerprint-v1", payload)}
        return name, f"{kind}.requested", payload | own | {"rules": self.revision}

    def answered_at_once(self, request: Request, kind: str, **payload: Any) -> None:
        answer = (request[0], kind, {"call_id" if kind[0] == "c" else "action_id": request[0], **payload})
        if self.claims:
            self.append(request, answer)
        else:
            self.append(request)
            self.append(answer)

    def completed_at_once(self, request: Request, **payload: Any) -> None:
        self.answered_at_once(request, "action.completed", **UNTOUCHED | payload)

    def carried_out(self, request: Request, marker: str | None, **payload: Any) -> None:
        """Start, act, complete; without a payload the completion never came."""
        name = request[0]
        claim: Request = (name, "action.claimed", {"action_id": name})
        start: Request = (name, "action.execution_started", {"action_id": name})
        if self.claims:
            self.append(request, claim, start)
        else:
            self.append(request)
            if self.starts:
                self.append(start)
        if marker is not None:
            self.effect(name, marker)
        if payload:
            self.complete(name, **payload)

    def complete(self, name: str, **payload: Any) -> None:
        usual = UNTOUCHED | {"action_id": name, "effect_possible": True}
        self.append((name, "action.completed", usual | payload))

    def refused(self, request: Request, original: str, dimensions: list[str], reason: str) -> None:
        what = request[1].partition(".")[0]
        self.answered_at_once(
            request, f"{what}.replay_refused", reason=reason, dimensions=dimensions,
            fingerprint_version=f"{what}-fingerprint-v1", idempotency_key=self.keys[request[0]],
            **{f"original_{what}_id": original},
        )  # fmt: skip

    def effect(self, name: str, marker: str) -> None:
        self.receipts.append(
            {"n": len(self.receipts) + 1, "action_id": name, "marker": f"{len(self.receipts) + 1:04d}.txt",
             "effect": sha256(marker.encode())}
        )  # fmt: skip
        markers = self.world / self.case / "markers"
        markers.mkdir(parents=True, exist_ok=True)
        (markers / self.receipts[-1]["marker"]).write_bytes(marker.encode())

    # --- cases and documents

    def begin(self, case: str) -> None:
        self.case = case
        self.requests: list[dict[str, Any]] = []
        self.kinds: list[str] = []
        self.receipts: list[dict[str, Any]] = []
        self.keys: dict[str, str] = {}
        (self.world / case).mkdir(parents=True, exist_ok=True)

    def end(
        self, statuses: list[Any], reused: list[Any], raised: list[Any], bounds: list[int],
        labels: list[Any], calls: int = 0, marked: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        text = b"".join(line_of(receipt) + b"\n" for receipt in self.receipts)
        (self.world / self.case / "receipts.jsonl").write_bytes(text)
        expected = {
            "requests": len(self.requests), "statuses": statuses, "reused_from": reused,
            "raised": raised, "effects_world": len(self.receipts),
        }  # fmt: skip
        self.cases.append({"case": self.case, "question": f"What of {self.case}?", "requests": self.requests,
                           "marked": list(marked), "expected": expected})  # fmt: skip
        self.rows.append(expected | {
            "case": self.case, "revision": self.revision, "effects_ledger": bounds, "labels": labels,
            "effects_summary": len(self.receipts), "event_kinds": self.kinds, "evidence_label": "demo",
            "provider_calls": calls, "notes": ["A note with ü."],
        })  # fmt: skip

    def protocol(self) -> dict[str, Any]:
        return {"format": "codeai-lab-protocol-v1", "lesson": LESSON, "revision": self.revision, "seed": 22,
                "ledger_id": "L1", "cases": self.cases}  # fmt: skip

    def results(self) -> dict[str, Any]:
        return {"format": "codeai-lab-results-v1", "lesson": LESSON, "revision": self.revision,
                "producer": {"name": "codeai_lab", "version": "0.1.0"}, "rows": self.rows}  # fmt: skip

    def freeze(self, to: Path) -> str:
        return bundle.freeze(
            to, protocol=self.protocol(), ledger=b"".join(line + b"\n" for line in self.lines),
            world=self.world, results=self.results(), environment=bundle.environment(),
            producer="codeai_lab 0.1.0",
            readme=bundle.describe(self.protocol(), producer="codeai_lab 0.1.0"),
        )  # fmt: skip


def the_seven_cases(script: Script) -> None:
    script.begin("A-exact-duplicate")
    script.carried_out(script.asked("action", "a1", "ka"), "hello\n", **DONE)
    script.completed_at_once(script.asked("action", "a2", "ka"), reused_from_action_id="a1", **DONE)
    script.end(["succeeded"] * 2, [None, "a1"], [None, None], [1, 1], [None, "replay"])

    script.begin("B-other-operation")
    script.carried_out(script.asked("action", "b1", "kb"), "hello\n", **DONE)
    other = script.asked("action", "b2", "kb", instruction="delete the file")
    if script.compares:
        script.refused(other, "b1", ["instruction"], "identity-conflict")
        script.end(["succeeded", None], [None, None], [None, CONFLICT], [1, 1], [None, "refused"])
    else:
        script.completed_at_once(other, reused_from_action_id="b1", **DONE)
        script.end(["succeeded"] * 2, [None, "b1"], [None, None], [1, 1], [None, "replay"])

    script.begin("B-no-authority")
    script.carried_out(script.asked("action", "n1", "kn"), "hello\n", **DONE)
    again = script.asked("action", "n2", "kn")
    if script.compares:
        script.completed_at_once(again, status="denied", error=DENIED)
        script.end(["succeeded", "denied"], [None, None], [None, None], [1, 1], [None, "denied"])
    else:
        script.completed_at_once(again, reused_from_action_id="n1", **DONE)
        script.end(["succeeded"] * 2, [None, "n1"], [None, None], [1, 1], [None, "replay"])

    script.begin("C-call-conflict")
    call = script.asked("call", "c1", "kc")
    script.append(call)
    script.append(("c1", "call.manifest", {"call_id": "c1", "fingerprint": call[2]["fingerprint"]}))
    script.append(("c1", "attempt.started", {"call_id": "c1", "attempt": 1}))
    script.append(("c1", "attempt.observed", {"call_id": "c1", "attempt": 1, "response": "hello"}))
    answer = {"status": "succeeded", "response": "hello"}
    fresh = {"call_id": "c1", "replayed": False, "original_call_id": None}
    script.append(("c1", "call.completed", fresh | answer))
    script.answered_at_once(
        script.asked("call", "c2", "kc"), "call.completed", replayed=True, original_call_id="c1", **answer
    )
    conflict = script.asked("call", "c3", "kc", prompt="Say goodbye.")
    if script.claims:
        script.refused(conflict, "c1", ["prompt_hash"], "identity-conflict")
    else:
        script.append(conflict)
    script.end(["succeeded", "succeeded", None], [None, "c1", None], [None, None, CONFLICT], [0, 0],
               [None, "replay", "refused"], calls=1)  # fmt: skip

    script.begin("D-crash-gap")
    script.carried_out(script.asked("action", "d1", "kd"), "hello\n", **CRASHED)
    script.completed_at_once(script.asked("action", "d2", "kd"), reused_from_action_id="d1", **CRASHED)
    script.end(["failed"] * 2, [None, "d1"], [None, None], [0, 1], ["unknown", "replay"])

    script.begin("D-fresh-key")
    script.carried_out(script.asked("action", "f1", "kf1"), "hello\n", **CRASHED)
    script.carried_out(script.asked("action", "f2", "kf2"), "hello\n", **CRASHED)
    script.end(["failed"] * 2, [None, None], [None, None], [0, 2], ["unknown", "duplicate"])

    script.begin("E-drift")
    drift = script.asked("action", "g1", "kg", precondition="state-A")
    seen = {"readable": True, "state": "state-B"}
    script.completed_at_once(drift, status="failed", error=DRIFTED, observed=seen)
    script.end(["failed"], [None], [None], [0, 0], [None])


def rarer_cases(script: Script) -> None:
    """What the seven do not show: orphans, a denial first, the reasons of refusal, threads."""
    script.begin("F-orphan")
    numbers = {"tiny": 1e-7, "small": 0.00001, "\ufb33": 0.1, "\U0001f600": -2.5}
    script.carried_out(script.asked("action", "o1", "ko", precondition=numbers), "line\n")
    again = script.asked("action", "o2", "ko", precondition=numbers)
    if script.claims:
        script.refused(again, "o1", [], "effect-unknown")
        raised = ["KeyboardInterrupt", None]
        script.end([None, "refused"], [None, None], raised, [0, 1], ["unknown", "unknown"])
    else:
        script.carried_out(again, "line\n", **DONE)
        raised = ["ConnectionError", None]
        script.end([None, "succeeded"], [None, None], raised, [1, 2], ["unknown", "duplicate"])

    script.begin("G-denied-first")
    script.completed_at_once(script.asked("action", "h1", "kh"), status="denied", error=DENIED)
    again = script.asked("action", "h2", "kh")
    if script.claims:
        script.carried_out(again, "line\n", **DONE)
        script.end(["denied", "succeeded"], [None, None], [None, None], [1, 1], ["denied", "retry"])
    else:
        script.completed_at_once(again, status="denied", error=DENIED, reused_from_action_id="h1")
        script.end(["denied", "denied"], [None, "h1"], [None, None], [0, 0], ["denied", "replay"])

    script.begin("H-threads")
    if script.claims:
        script.carried_out(script.asked("action", "t1", "kt"), "one\n")
        script.refused(script.asked("action", "t2", "kt"), "t1", [], "in-progress")
        script.complete("t1", **DONE)
        script.end(["succeeded", "in_progress"], [None, None], [None, None], [1, 1], [None, "refused"],
                   marked=("threads",))  # fmt: skip
    else:
        script.carried_out(script.asked("action", "t1", "kt"), "one\n")
        script.carried_out(script.asked("action", "t2", "kt"), "one\n")
        script.complete("t2", **DONE)
        script.complete("t1", **DONE)
        script.end(["succeeded"] * 2, [None, None], [None, None], [2, 2], [None, "duplicate"],
                   marked=("threads",))  # fmt: skip


@pytest.fixture(params=RULE_SETS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Script]:
    """Make a script of one rule set, with its world in a scratch folder."""
    return lambda revision: Script(tmp_path / f"run-{revision}", revision)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """Give the bundle of a rule set, frozen one time for all tests that only read it.

    The seven cases, and on request the rarer ones before them. It stands in `NAME/good`.
    """
    digests: dict[Path, str] = {}

    @cache
    def made(revision: str, rarer: bool) -> Path:
        folder = tmp_path_factory.mktemp(f"kept-{revision}")
        written = Script(folder / "run", revision)
        if rarer:
            rarer_cases(written)
        the_seven_cases(written)
        digests[folder / "good"] = written.freeze(folder / "good")
        return folder / "good"

    yield lambda revision, *, rarer=False: made(revision, rarer)
    for folder, digest in digests.items():
        assert verify.verify(folder, digest).valid, "a test changed what others read; it needs a copy"


@pytest.fixture
def good(tmp_path: Path, kept: Callable[..., Path]) -> Callable[..., Path]:
    """Give a copy of such a bundle, for a test that changes it."""

    def build(revision: str, *, rarer: bool = False, name: str = "good") -> Path:
        shutil.copytree(kept(revision, rarer=rarer), tmp_path / name, copy_function=shutil.copyfile)
        return tmp_path / name

    return build


@pytest.fixture(scope="session")
def damaged(kept: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give a bundle of `kept` as one kind of corruption leaves it, damaged one time for all that read it.

    Raises: CorruptionDoesNotApplyError, as `corrupt` does.
    """
    folder = tmp_path_factory.mktemp("damaged")

    @cache
    def made(kind: str, revision: str, rarer: bool) -> Path:
        to = folder / f"{revision}-{'rarer' if rarer else 'seven'}-{kind}"
        corrupt(kept(revision, rarer=rarer), kind, to)
        return to

    return lambda kind, revision, *, rarer=False: made(kind, revision, rarer)


@pytest.fixture
def rewriting() -> Callable[[Copy, list[Event]], Callable[[int], None]]:
    """Give what writes a ledger back after one event was changed: the bytes of `Copy.write_events`, sooner.

    Only that event is encoded anew; of those behind it nothing changes but the digest of the line before.
    """

    def of(copy: Copy, events: list[Event]) -> Callable[[int], None]:
        copy.write_events(events)
        lines = [line.removesuffix(b"\n") for line in copy.lines()]
        digests = [sha256(line).encode() for line in lines]

        def rewrite(place: int) -> None:
            seq, changed = place + 1, lines[: place + 1]
            changed.append(encoded({**events[place], "seq": seq, "prev": digests[place].decode()}))
            for known, line in zip(digests[seq:], lines[seq + 1 :], strict=False):
                prev = sha256(changed[-1]).encode()
                changed.append(line.replace(b'"prev":"' + known, b'"prev":"' + prev))
            copy.write_lines([line + b"\n" for line in changed])

        return rewrite

    return of
