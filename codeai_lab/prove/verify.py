"""Does this bundle hold together?

Chapter: 004, "Checking it without trusting it".

Idea: the producer's summary is the last thing to believe. This file shares no code with what it checks: it needs
Python's standard library and nothing else, reads the raw lines, the world's own receipts and the marker files,
works every row out again and only then compares. It collects what is wrong instead of stopping at the first.

    python -I -S verify.py BUNDLE [--expect DIGEST] [--json]       exit 0 valid, 1 findings, 2 could not run

Steps, named again at each block:
  1. names on disk       regular files only: no links, no devices
  2. the manifests       each file listed once under a name that is plain, inside and the same on every system
  3. the outside digest  SHA-256 of tagmanifest-sha256.txt against --expect: the only word on completeness
  4. bytes               SHA-256 of every file against its manifest
  5. documents           protocol, results, environment: strict JSON of a known format
  6. the ledger          chain over raw bytes, sequence, batches, and what each event may mean where it stands
  7. the world           receipts and markers one to one, each within what the ledger allows for its action
  8. the rows            worked out from 6 and 7, against results.json and against the protocol's expectations

Always true:
  V1. If step 1 or 2 finds anything, no payload byte is read. Nothing outside the bundle is ever opened.
  V2. Whatever the bytes, the answer is findings, never a traceback. Nothing is written.
  V3. The ledger is read as a stream; what is kept grows with the requests, not with what the lines hold.
  V4. Findings name places, names and digests, never a recorded value.

Not checked: completeness without --expect; a success forged for a failure whose effect the world shows, when chain,
results and digests are all rewritten (only --expect catches it); who wrote the bundle, when and where; clock readings;
that event ids differ between streams; that a payload is in canonical form; hard links; what README.md and
notebook.ipynb say.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import re
import stat
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import lru_cache, partial
from json.encoder import encode_basestring as _quoted
from typing import Any

LEDGER, PROTOCOL, RESULTS = "data/ledger.jsonl", "data/protocol.json", "data/results.json"
ENVIRONMENT = "data/environment.json"
MANIFEST, TAGMANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
TAG_FILES = ("README.md", "bag-info.txt", "bagit.txt", MANIFEST, TAGMANIFEST)
REQUIRED = {LEDGER, PROTOCOL, RESULTS, ENVIRONMENT, "data/verify.py", *TAG_FILES}
OPTIONAL = re.compile(r"data/(notebook\.ipynb|world/[^/]+/(receipts\.jsonl|markers/[^/]+))")
BAGIT_TXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
# What a segment of a path must be in order to mean one file, and the same one, on every system.
SEGMENT = re.compile(r'(?!~|(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[^\x00-\x1f\x7f\ud800-\udfff\\/:*?"<>|]*[^\x00-\x20.\\/:*?"<>|]')
OPENING = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
LONGEST_LINE = 2**20 + 1  # bytes, with the newline
LISTED_OF_EACH_CODE = 20

# What may follow what in the history of one request, and as which place in which batch ("" is any).
ASKED, CLAIMED, STARTED = "action.requested", "action.claimed", "action.execution_started"
COMPLETED, REFUSED = "action.completed", "action.replay_refused"
CALLED, CALL_COMPLETED, CALL_REFUSED = "call.requested", "call.completed", "call.replay_refused"
CALLS = {
    ("", CALLED): "", (CALLED, "call.manifest"): "", ("call.manifest", "attempt.started"): "",
    ("attempt.started", "attempt.observed"): "", ("attempt.observed", "attempt.started"): "",
    **{(before, CALL_COMPLETED): "" for before in (CALLED, "call.manifest", "attempt.started", "attempt.observed")},
}  # fmt: skip
OLDEST = CALLS | {("", ASKED): "1,1", (ASKED, COMPLETED): "1,1"}
OLDER = OLDEST | {(ASKED, REFUSED): "1,1"}
ORDER = {
    "7a0d43b": OLDEST,
    "a1b562a": OLDER,
    "1b3c7a2": OLDER,
    "88d1291": OLDER | {(ASKED, STARTED): "1,1", (STARTED, COMPLETED): "1,1"},
    "lab": CALLS | {
        ("", ASKED): "1,2 or 1,3", (ASKED, CLAIMED): "2,3", (CLAIMED, STARTED): "3,3", (STARTED, COMPLETED): "1,1",
        (ASKED, COMPLETED): "2,2", (ASKED, REFUSED): "2,2", (CALLED, CALL_REFUSED): "",
    },
}  # fmt: skip
RECORD_STARTS = ("88d1291", "lab")
# (status, was an effect possible) of a completion -> the codes of its error; None is no error.
ERRORS: dict[tuple[str | None, bool], tuple[str | None, ...]] = {
    ("succeeded", True): (None,),
    ("failed", True): ("adapter-raised",),
    ("failed", False): ("precondition-drift", "precondition-unreadable"),
    ("denied", False): ("not-authorised",),
}
REFUSAL_STATUS = {"identity-conflict": None, "effect-unknown": "refused", "in-progress": "in_progress"}

# An event in canonical form but for its payload: what fits needs no second look at its fields and their types.
_TEXT = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*)*"'
_WHOLE = r"(?:0|[1-9][0-9]{0,15})"
EVENT = re.compile(
    rf'\{{"actor_id":{_TEXT},"batch":\[([1-9][0-9]*,[1-9][0-9]*)\],"causation_id":(null|{_TEXT}),"event_id":({_TEXT}),'
    rf'"idempotency_key":({_TEXT}),"kind":"([a-z_.]+)","payload":\{{(?:"action_id":({_TEXT}))?(.*\}}),"prev":"([^"]*)",'
    rf'"recorded_at_us":{_WHOLE},"run_id":({_TEXT}),"seq":({_WHOLE}),"stream_id":({_TEXT})\}}'
)

# What a completion says about its action, and around it what changes between an original and its replay.
COMPLETION = re.compile(
    rf',"effect_possible":(true|false),("error":.*,)"reused_from_action_id":(null|{_TEXT}),'
    r'"status":"(succeeded|failed|denied)"\}'
)
# Fields and types of payloads, sorted as in canonical JSON; of a completion only what COMPLETION leaves to be parsed.
MAYBE_TEXT, MAYBE_OBJECT = (str, type(None)), (dict, type(None))
REFUSAL = {"dimensions": list, "fingerprint_version": str, "idempotency_key": str}
PAYLOADS: dict[str, dict[str, Any]] = {
    ASKED: {"action_id": str, "capability": str, "fingerprint": dict, "instruction": str, "payload": dict,
            "performer": str, "precondition": object, "rules": str},
    CLAIMED: {"action_id": str},
    STARTED: {"action_id": str},
    COMPLETED: {"error": MAYBE_OBJECT, "observed": MAYBE_OBJECT, "output": object},
    REFUSED: {"action_id": str, **REFUSAL, "original_action_id": str, "reason": str},
    CALLED: {"call_id": str, "chamber": str, "context": dict, "fingerprint": dict, "prompt": str,
             "requested_model": str, "rules": str},
    "call.manifest": {"call_id": str, "fingerprint": dict},
    "attempt.started": {"attempt": int, "call_id": str},
    "attempt.observed": {"attempt": int, "call_id": str, "response": object},
    CALL_COMPLETED: {"call_id": str, "original_call_id": MAYBE_TEXT, "replayed": bool, "response": object, "status": str},
    CALL_REFUSED: {"call_id": str, **REFUSAL, "original_call_id": str, "reason": str},
}  # fmt: skip
# Dimension of a fingerprint -> field of the recorded request; sorted as in canonical JSON.
DIMENSIONS = {
    ASKED: {name: name for name in ("capability", "instruction", "payload", "performer", "precondition")},
    CALLED: {"chamber": "chamber", "prompt_hash": "prompt", "rendered_context": "context",
             "requested_model": "requested_model"},
}  # fmt: skip
VERSIONS = {ASKED: "action-fingerprint-v1", CALLED: "call-fingerprint-v1"}
# The canonical form of an action's fingerprint without its digest, and of its request without its id.
UNSIGNED = (
    '{"dimensions":{"capability":"%s","instruction":"%s","payload":"%s","performer":"%s","precondition":"%s"},'
    '"version":"action-fingerprint-v1"}'
)
REQUEST = '{"action_id":"","capability":%s,"fingerprint":{"digest":"%s",' + UNSIGNED[1:] + (
    ',"instruction":%s,"payload":%s,"performer":%s,"precondition":%s,"rules":%s}'
)

# Shapes of documents: a type, a tuple of choices, a list of one shape, a dict of exactly these keys. What step 8
# compares with what it works out is only a list here.
DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    PROTOCOL: ("codeai-lab-protocol-v1", {
        "format": str, "ledger_id": str, "lesson": str, "revision": str, "seed": (int, str), "cases": [{
            "case": str, "question": str, "marked": [("threads", "processes")], "requests": list,
            "expected": {"requests": int, "statuses": list, "reused_from": list, "raised": list, "effects_world": int},
        }],
    }),
    RESULTS: ("codeai-lab-results-v1", {
        "format": str, "lesson": str, "producer": {"name": str, "version": str}, "revision": str, "rows": [{
            "case": str, "revision": str, "requests": int, "statuses": list, "reused_from": list, "raised": list,
            "effects_ledger": [int], "effects_world": int, "effects_summary": int, "labels": list, "event_kinds": list,
            "evidence_label": ("source-inspected", "regression-tested", "demo", "pinned run"), "provider_calls": int,
            "notes": [str],
        }],
    }),
    ENVIRONMENT: ("codeai-lab-environment-v1", {
        "format": str, "implementation": str, "machine": str, "packages": dict, "platform": str, "python": str,
    }),
}  # fmt: skip
CREATED = {"kind": "ledger.created", "ledger_id": str, "recorded_at_us": int, "schema_version": int, "seq": int}
RECEIPT = re.compile(
    rf'\{{"action_id":({_TEXT}),"effect":"([0-9a-f]{{64}})","marker":"([A-Za-z0-9_][A-Za-z0-9_.-]*)","n":({_WHOLE})\}}\n'
)


class CannotVerify(Exception):  # noqa: N818 - nothing is known to be wrong with the bundle
    """There is nothing to judge: no such folder, no bundle, not readable. The text is one sentence."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: `code` for programs, `where` in the bundle, `message` for people."""

    code: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict; `complete` is "yes", "no" or, without an outside digest, "not checked"."""

    valid: bool
    complete: str
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        return {"valid": self.valid, "complete": self.complete, "findings": [asdict(one) for one in self.findings]}


def verify(bundle: str | os.PathLike[str], expect: str | None = None) -> Report:
    """Judge a bundle.

    Args:
        bundle: the folder that holds bagit.txt.
        expect: SHA-256 of its tagmanifest-sha256.txt as known from elsewhere, 64 hex digits.

    Raises: CannotVerify when there is no bundle to judge or `expect` is no digest.
    """
    if expect is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", expect):
        raise CannotVerify("The expected digest must be 64 hexadecimal digits, the SHA-256 of tagmanifest-sha256.txt.")
    found, collecting = _Findings(), gc.isenabled()
    gc.disable()  # nothing here makes cycles, and looking for them takes a tenth of the time
    try:
        _check(os.fspath(bundle) or ".", expect, found)
    except (OSError, ValueError, MemoryError) as error:  # ValueError: a name with a zero byte
        reason = error.strerror if isinstance(error, OSError) else "it does not fit into memory or is no name"
        raise CannotVerify(f"The bundle cannot be read: {reason}.") from None
    finally:
        if collecting:
            gc.enable()
    findings = found.all()
    complete = "not checked" if expect is None else "no" if findings else "yes"
    return Report(not findings, complete, findings)


def _check(root: str, expect: str | None, found: _Findings) -> None:
    # Step 1: names on disk.
    files = _names_on_disk(root, found)
    if not found.kept and not files & {"bagit.txt", MANIFEST}:
        raise CannotVerify("This folder is not a bundle: it holds no bagit.txt. Name the folder that does.")

    # Step 2: the manifests.
    tags = {name: _read(root, name) for name in TAG_FILES if name in files}
    listed = _manifests(tags, files, found)
    may_read_on = not found.kept  # V1

    # Step 3: the outside digest.
    inside = hashlib.sha256(tags.get(TAGMANIFEST, b"")).hexdigest()
    if expect is not None and expect.lower() != inside:
        found.add("outside-digest-differs", TAGMANIFEST, f"its SHA-256 is {inside}, expected was {expect.lower()}")
    if not may_read_on:
        return

    # Step 4: bytes.
    digests = _bytes(root, listed, found)
    if "line-endings" in found.count:
        return  # each line's own digest would only say so again

    # Step 5: documents.
    protocol, results, _ = (_document(root, path, found) for path in DOCUMENTS)

    # Step 6: the ledger.
    ledger = _Ledger(found)
    if not ledger.read(root):
        return

    # Step 7: the world.
    _world(root, digests, ledger, found)

    # Step 8: the rows.
    if protocol and results:
        _rows(protocol, results, ledger, found)


class _Findings:
    """Collects findings; of each code the first few are listed and the rest is counted."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.count: Counter[str] = Counter()

    def add(self, code: str, where: str, message: str) -> None:
        self.count[code] += 1
        if self.count[code] <= LISTED_OF_EACH_CODE:
            self.kept.append(Finding(code, where, message))

    def all(self) -> tuple[Finding, ...]:
        more = {code: n - LISTED_OF_EACH_CODE for code, n in self.count.items() if n > LISTED_OF_EACH_CODE}
        return (*self.kept, *(Finding(code, "elsewhere", f"{n} more of these") for code, n in more.items()))


# --- step 1: names on disk ------------------------------------------------------------------------------------


def _names_on_disk(root: str, found: _Findings) -> set[str]:
    """Walk the bundle without following or opening anything; give its regular files, named with slashes."""
    files, folders = set(), [""]
    for folder in folders:
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = folder + entry.name
                if entry.is_symlink() or _is_junction(entry):
                    found.add("link", ascii(path), "a link; a bundle holds regular files only")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False):
                    files.add(path)
                else:
                    found.add("special-file", ascii(path), "a device, pipe or socket; a bundle holds regular files only")
    return files


def _is_junction(entry: os.DirEntry[str]) -> bool:
    return os.name == "nt" and getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == 0xA0000003


# --- step 2: the manifests ------------------------------------------------------------------------------------


def _manifests(tags: Mapping[str, bytes], files: set[str], found: _Findings) -> dict[str, str]:
    """Give the digest that a manifest lists for each path, and find what is wrong with the names."""
    for name, content in tags.items():
        if b"\r" in content:
            found.add("line-endings", name, "holds carriage returns: its line endings were converted")
        elif name == "bagit.txt" and content != BAGIT_TXT:
            found.add("bagit-declaration", name, "does not declare BagIt 1.0 and UTF-8 in the form of RFC 8493")
    listed: dict[str, str] = {}
    for name in (MANIFEST, TAGMANIFEST):
        for path, digest, where in _entries(name, tags.get(name, b""), found):
            if path in listed or path.startswith("data/") != (name == MANIFEST):
                found.add("duplicate-entry", where, f"{ascii(path)} is listed before, or belongs into the other manifest")
            listed[path] = digest
    for path in sorted(files - listed.keys()):
        _is_plain(path, "on disk", found)
    forms = _collisions(files, listed.keys(), found)
    for path in sorted((listed.keys() | REQUIRED) - files - forms):
        found.add("missing-file", ascii(path), "listed or required, and not there as a regular file")
    for path in sorted(files - listed.keys() - forms - {TAGMANIFEST}):
        found.add("unlisted-file", ascii(path), "there, and in no manifest")
    for path in sorted(path for path in listed if path not in REQUIRED and not OPTIONAL.fullmatch(path)):
        found.add("unexpected-file", ascii(path), "listed, and no part of a bundle")
    return listed


def _entries(name: str, content: bytes, found: _Findings) -> Iterator[tuple[str, str, str]]:
    """Give path, digest and place of each line of a manifest whose path is plain."""
    for number, line in enumerate(content.replace(b"\r\n", b"\n").splitlines(keepends=True), 1):
        where = f"{name} line {number}"
        match = re.fullmatch(r"([0-9a-f]{64})  ((?:[^%\n\ufffd]|%0A|%0D|%25)+)\n", line.decode("utf-8", "replace"))
        if match is None:
            found.add("manifest-line", where, "not 64 hex digits, two spaces, a path in UTF-8 and a newline")
            continue
        path = match[2].replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        if _is_plain(path, where, found):
            yield path, match[1], where


def _is_plain(path: str, where: str, found: _Findings) -> bool:
    """Say whether a path names one file inside the bundle, and the same one on every system."""
    folder, slash, name = path.rpartition("/")
    if SEGMENT.fullmatch(name) and (_is_plain_folder(folder) or not slash):
        return True
    if re.match(r"[/\\~]|[A-Za-z]:", path):
        found.add("path-absolute", where, f"{ascii(path)} starts outside the bundle")
    elif ".." in re.split(r"[/\\]", path):
        found.add("path-leaves-bundle", where, f"{ascii(path)} climbs out of a folder")
    else:
        found.add("path-not-plain", where, f"{ascii(path)} has a segment that means something else on some system")
    return False


@lru_cache(maxsize=1024)
def _is_plain_folder(folder: str) -> bool:
    return all(map(SEGMENT.fullmatch, folder.split("/")))


def _collisions(files: set[str], listed: Set[str], found: _Findings) -> set[str]:
    """Find names that some file system takes for one; give those listed in one Unicode form and there in another."""
    names, forms, seen = files | listed, set[str](), dict[str, str]()
    for path in files | listed:
        while (path := path.rpartition("/")[0]) and path not in names:
            names.add(path)
    if len({_folded(path) for path in names}) == len(names):
        return forms
    for path in sorted(names):
        other = seen.setdefault(_folded(path), path)
        if other is path:
            continue
        both = f"{ascii(other)} and {ascii(path)}"
        if unicodedata.normalize("NFC", path) != unicodedata.normalize("NFC", other):
            found.add("case-collision", both, "one name where case is ignored")
        elif {path, other} <= files ^ listed and (path in files) != (other in files):
            found.add("unicode-form", both, "listed in one Unicode form, there in another")
            forms |= {path, other}
        else:
            found.add("unicode-collision", both, "one name in two Unicode forms")
    return forms


def _folded(path: str) -> str:
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


# --- step 4: bytes --------------------------------------------------------------------------------------------


def _bytes(root: str, listed: Mapping[str, str], found: _Findings) -> dict[str, str]:
    """Compare every file with its manifest; give the digest that each file really has."""
    digests = {}
    for path, expected in listed.items():
        digests[path] = _digest(root, path)
        if digests[path] == expected:
            continue
        if _digest(root, path, as_lf=True) == expected:
            found.add("line-endings", path, "content differs, by CRLF for LF alone: its line endings were converted")
        else:
            found.add("digest-differs", path, f"its SHA-256 is {digests[path]}, the manifest says {expected}")
    return digests


def _digest(root: str, path: str, *, as_lf: bool = False) -> str:
    digest = hashlib.sha256()
    descriptor = _open(root, path)
    try:
        # Asking for no more than there is keeps a small file small: a buffer is taken for all that is asked for.
        while block := os.read(descriptor, min(os.fstat(descriptor).st_size + 1, 1 << 20)):
            while as_lf and block.endswith(b"\r") and (more := os.read(descriptor, 1)):
                block += more
            digest.update(block.replace(b"\r\n", b"\n") if as_lf else block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def _open(root: str, path: str) -> int:
    """Open what step 1 saw as a regular file; follow no link and wait for no pipe that was put there since."""
    descriptor = os.open(f"{root}/{path}", OPENING)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it changed while it was read")
    return descriptor


def _read(root: str, path: str) -> bytes:
    with os.fdopen(_open(root, path), "rb") as file:
        return file.read()


# --- step 5: documents ----------------------------------------------------------------------------------------


class _Refused(ValueError):
    """What was read is not what it should be; `code` says in which way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Refused("duplicate-key", "an object has one key twice")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("number-not-finite", "a number is NaN, infinite or too large")
    return value


_decode = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite).raw_decode


_plain_decode = json.JSONDecoder().raw_decode


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _Refused("not-utf8", "not valid UTF-8") from None


def _parse(text: str) -> Any:
    """Read the one JSON value of a text; strict where Python's own reader is generous."""
    try:
        value, end = _decode(text)
    except _Refused:
        raise
    except (ValueError, RecursionError):
        code = "byte-order-mark" if text.startswith("\ufeff") else "not-json"
        raise _Refused(code, "starts with a byte order mark" if code != "not-json" else "not JSON") from None
    if text[end:] not in ("", "\n"):
        raise _Refused("not-json", "not one JSON value")
    return value


def _shaped(value: Any, shape: Any) -> bool:
    """Say whether a parsed value has a shape (see SHAPES)."""
    kind = type(shape)
    if kind is dict:
        return type(value) is dict and value.keys() == shape.keys() and all(_shaped(value[key], shape[key]) for key in shape)
    if kind is list:
        return type(value) is list and all(_shaped(item, shape[0]) for item in value)
    if kind is tuple:
        return any(_shaped(value, choice) for choice in shape)
    if kind is str or shape is None:
        return type(value) is type(shape) and bool(value == shape)
    return shape is object or type(value) is shape


def _document(root: str, path: str, found: _Findings) -> dict[str, Any]:
    """Read a document; empty when it is not what it should be."""
    name, shape = DOCUMENTS[path]
    try:
        value = _parse(_decoded(_read(root, path)))
        if isinstance(value, dict) and isinstance(value.get("format"), str) and value["format"] != name:
            raise _Refused("unknown-version", f"its format is not {name}: verify it with the version that wrote it")
        if not _shaped(value, shape):
            raise _Refused("document-shape", f"it does not have the fields and types of {name}")
    except _Refused as refused:
        found.add(refused.code, path, str(refused))
        return {}
    return dict(value)


# --- step 6: the ledger ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Request:
    """What the ledger says of one action or call, as far as later events, the world and the rows need it."""

    stream: str  # this, the event id and the key are kept as JSON text
    event_id: str
    key: str
    case: _Case
    rules: str
    order: Mapping[tuple[str, str], str]
    call: bool
    dimensions: tuple[str, ...]
    prior: _Request | None  # what had decided the key when this was asked
    retry: bool
    last: str = ""  # the kind of its last event
    started: bool = False
    manifest: bool = False
    attempt: int = 0
    answer: str = ""  # "completed", or the reason of a refusal
    status: str | None = None
    reused_from: str | None = None
    entered: bool = False
    content: str = ""
    receipts: int = 0
    duplicate: bool = False

    @property
    def conflict(self) -> bool:
        """A refused identity; the older rules leave no event behind when it is a call's."""
        return self.answer == "identity-conflict" or (self.call and not self.answer and self.prior is not None)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of effects that the record allows."""
        if self.call or self.reused_from is not None or self.answer in REFUSAL_STATUS:
            return (0, 0)
        if not self.answer:
            return (0, int(self.started or self.rules not in RECORD_STARTS))
        return (1, 1) if self.status == "succeeded" else (0, int(self.entered))

    @property
    def label(self) -> str | None:
        if self.status == "denied":
            return "denied"
        if self.conflict or self.answer in REFUSAL_STATUS:
            return "unknown" if self.answer == "effect-unknown" else "refused"
        if self.reused_from is not None:
            return "replay"
        if self.duplicate or self.retry:
            return "duplicate" if self.duplicate else "retry"
        return "unknown" if self.bounds == (0, 1) else None


@dataclass(slots=True)
class _Case:
    run: str
    requests: list[_Request] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    provider_calls: int = 0
    receipts: int = 0


class _Ledger:
    """One pass over the lines of a ledger."""

    def __init__(self, found: _Findings) -> None:
        self.found, self.line = found, 1
        self.ledger_id = ""
        self.cases: dict[str, _Case] = {}  # by run
        self.requests: dict[str, _Request] = {}  # by stream
        self.decided: dict[bool, dict[str, _Request]] = {False: {}, True: {}}  # of actions and of calls, by key
        self.prev, self.seq, self.due, self.stream = "", 0, "", ""

    def add(self, code: str, message: str) -> None:
        self.found.add(code, f"{LEDGER} line {self.line}", message)

    def read(self, root: str) -> bool:
        """Read to the end; False when the ledger is of an unknown version and stays unread."""
        with os.fdopen(_open(root, LEDGER), "rb", 1 << 20) as file:
            for raw in iter(partial(file.readline, LONGEST_LINE), b""):
                line = raw[:-1]
                try:
                    if raw[-1] != 10:
                        raise _Refused("line-torn", "does not end in a newline, or is longer than 1 MiB")
                    event = EVENT.fullmatch(_decoded(line)) if self.line > 1 else None
                    if event is not None:
                        self.event(*event.groups())
                    elif self.line > 1:
                        _parse(_decoded(line))
                        raise _Refused("event-shape", "not an event: fields, their types or their form differ")
                    elif not self.created(_parse(_decoded(line))):
                        return False
                except _Refused as refused:
                    self.add(refused.code, str(refused))
                self.prev = hashlib.sha256(line).hexdigest()
                self.line += 1
        if self.due or self.line == 1:
            self.add("batch-torn", f"the ledger ends where {self.due or 'its first line'} was due")
        for request in self.requests.values():
            if not request.answer and request.prior and request.prior.dimensions != request.dimensions:
                if (CALLED, CALL_REFUSED) in request.order if request.call else (ASKED, REFUSED) in request.order:
                    self.found.add("refusal-missing", LEDGER, f"{request.stream} collides with its key, and no refusal says so")
        return True

    def created(self, line: Any) -> bool:
        if isinstance(line, dict) and line.get("schema_version", 1) != 1:
            self.add("unknown-version", "its schema version is not 1: verify it with the version that wrote it")
            return False
        if not _shaped(line, CREATED) or line["seq"] != 0:
            raise _Refused("event-shape", "not the line that creates a ledger")
        self.ledger_id = line["ledger_id"]
        return True

    def event(
        self, batch: str, cause: str, event_id: str, key: str, kind: str, own_id: str | None, text: str, prev: str,
        run: str, seq: str, stream: str,
    ) -> None:  # fmt: skip
        # Its place: the chain, the sequence, the batch.
        place, due = int(seq), self.due
        if prev != self.prev:
            self.add("chain-broken", "its prev is not the SHA-256 of the line before")
        if place != self.seq + 1:
            self.add("sequence-broken", f"its seq does not follow {self.seq}")
        if (batch != due or stream != self.stream) if due else batch[:2] != "1,":
            self.add("batch-torn", f"{batch} of a batch stands where {due or 'a new one'} was due")
        self.seq, self.stream, self.due = place, stream, _due_after(batch)

        # Its request, and its place in the history of that.
        if own_id != stream and (own_id is not None or kind.startswith("action.")):
            raise _Refused("stream-differs", "its payload does not begin with the id of its stream")
        if kind == COMPLETED:
            payload = made = None
        else:
            payload, made = self.judge(kind, text, stream)
        request = self.requests.get(stream) or self.asked(payload, made, event_id, key, kind, run)
        order = request.order.get((request.last, kind))
        if order is None:
            raise _Refused("out-of-order", f"{kind} cannot follow {request.last or 'nothing'} under these rules")
        if order and batch not in order:
            self.add("batch-shape", f"under these rules it is appended as {order} of a batch, not as {batch}")
        if key != request.key or run != request.case.run:
            self.add("stream-differs", "its key or run is not that of its request")
        if request.last and (event_id == request.event_id or (cause != request.event_id and not request.call)):
            self.add("causation-broken", "it does not name its request as its cause, or bears its id")
        request.last = kind
        request.case.kinds.append(sys.intern(kind))

        # What it means.
        if kind == COMPLETED:
            self.action_completed(request, text)
        elif kind == STARTED:
            request.started = True
            if request.rules == "lab" and self.decided[False].setdefault(key, request) is not request:
                self.add("second-start", "its key had started before, and these rules start a key once")
        elif kind in (REFUSED, CALL_REFUSED):
            self.refused(request, payload)
        elif request.call:
            self.called(request, kind, payload, made)

    def judge(self, kind: str, text: str, stream: str) -> tuple[dict[str, Any], Any]:
        """Give a payload, and what is made of it: the dimensions of a request, the digest of a response."""
        payload, made, agrees = (_judged if len(text) < 4096 else _judged.__wrapped__)(kind, text)
        if not agrees:
            self.add("fingerprint-disagrees", "its stored fingerprint is not that of what it asks for")
        if "call_id" in payload and _quoted(payload["call_id"]) != stream:
            raise _Refused("stream-differs", "its call is not that of its stream")
        return payload, made

    def asked(
        self, payload: dict[str, Any], dimensions: tuple[str, ...], event_id: str, key: str, kind: str, run: str
    ) -> _Request:
        if kind not in (ASKED, CALLED):
            raise _Refused("request-missing", f"{kind} without a request earlier in its stream")
        if payload["rules"] not in ORDER:
            raise _Refused("unknown-version", "asked under a rule set that is not known here")
        case = self.cases.get(run) or self.cases.setdefault(run, _Case(run))
        rules, call = payload["rules"], kind == CALLED
        request = self.requests[self.stream] = _Request(
            self.stream, event_id, key, case, rules, ORDER[rules], call, dimensions, self.decided[call].get(key), key in case.keys
        )
        case.keys.add(key)
        case.requests.append(request)
        return request

    def action_completed(self, request: _Request, text: str) -> None:
        """Status, error, start and possible effect of an action go together, and a replay is like its original."""
        answer = COMPLETION.fullmatch(text)
        if answer is None:
            _parse(f'{{"action_id":""{text}')
            raise _Refused("event-shape", f"not a payload of {COMPLETED}: fields, their types or their form differ")
        request.entered, content, reused, status = answer[1] == "true", answer[2], answer[3], answer[4]
        if request.rules in RECORD_STARTS and request.started != request.entered:
            self.add("start-disagrees", "whether it started and whether its effect was possible disagree")
        replayed = reused != "null" and self.completed(request, status, reused, _sha256(content))
        if replayed:  # what it says was judged where the original said it
            impossible = request.entered
        else:
            payload, _, _ = _judged(COMPLETED, content)
            code = payload["error"] and payload["error"].get("code")
            impossible = code not in ERRORS.get((status, request.entered), ())
        if impossible:
            self.add("completion-impossible", "status, error, reuse and possible effect do not go together")
        if reused == "null":
            self.completed(request, status, None, _sha256(content))
            if request.rules != "lab":
                self.decided[False].setdefault(request.key, request)

    def completed(self, request: _Request, status: str, original_id: str | None, content: str) -> bool:
        """A completion is the request's own, or the replay of an original that recorded the same; say if it is that."""
        request.answer, request.status, request.reused_from, request.content = "completed", status, original_id, content
        if original_id is None:
            if request.prior is not None and status != "denied":
                self.add("not-replayed", "its key was decided when it was asked, and it was carried out")
            return False
        original = self.requests.get(original_id)
        if original is None or original is request or (original.call, original.key) != (request.call, request.key) \
                or original.answer != "completed":
            self.add("reuse-unresolved", "its reuse link names no earlier completion of the same key")
        elif original.reused_from is not None:
            self.add("replay-of-replay", "its reuse link names a replay instead of the original")
        elif (original.status, original.content) != (status, content):
            self.add("replay-differs", "what it returns is not what the original recorded")
        elif original.dimensions != request.dimensions and (request.call or request.rules != "7a0d43b"):
            self.add("replay-of-another", "it replays another operation that had the same key")
        elif request.rules == "lab" and not (request.call or original.started):
            self.add("reuse-undecided", "its reuse link names a completion that decides nothing for the key")
        else:
            return True
        return False

    def refused(self, request: _Request, payload: dict[str, Any]) -> None:
        """A refusal names the request that has the key, and exactly the dimensions that differ."""
        reason, call = payload["reason"], request.call
        request.answer, request.status = reason, REFUSAL_STATUS.get(reason)
        original = self.requests.get(_quoted(payload["original_call_id" if call else "original_action_id"]))
        if original is None or original is request or (original.call, original.key) != (call, request.key) \
                or _quoted(payload["idempotency_key"]) != request.key \
                or not (original.started or original.answer == "completed"):
            return self.add("refusal-unresolved", "it names no earlier request that holds its key")
        if reason != "identity-conflict" and (request.rules != "lab" or call or original.answer or reason not in REFUSAL_STATUS):
            return self.add("refusal-unfounded", "what it says of the earlier request is not so, or no reason under these rules")
        pairs = zip(DIMENSIONS[CALLED if call else ASKED], request.dimensions, original.dimensions, strict=False)
        differing = [name for name, mine, other in pairs if mine != other]
        if sorted(map(str, payload["dimensions"])) != differing or bool(differing) != (reason == "identity-conflict") \
                or payload["fingerprint_version"] != VERSIONS[CALLED if call else ASKED]:
            self.add("dimensions-differ", f"the requests differ in {', '.join(differing) or 'nothing'}, and it says otherwise")
        return None

    def called(self, request: _Request, kind: str, payload: dict[str, Any], made: Any) -> None:
        """The rest of a call: manifest, attempts, completion."""
        if kind == "call.manifest":
            request.manifest = True
            if payload["fingerprint"] != _fingerprint(request.dimensions, CALLED):
                self.add("fingerprint-disagrees", "the manifest's fingerprint is not that of its request")
        elif kind == CALL_COMPLETED:
            original = payload["original_call_id"]
            if payload["replayed"] != (original is not None):
                self.add("completion-impossible", "replayed and original_call_id do not go together")
            self.completed(request, payload["status"], original and _quoted(original), made)
            if original is None and request.manifest:
                self.decided[True].setdefault(request.key, request)
        elif kind != CALLED:
            request.attempt += kind == "attempt.started"
            request.case.provider_calls += kind == "attempt.observed"
            if repr(payload["attempt"]) != repr(request.attempt):
                self.add("out-of-order", "its attempts are not counted from 1")


@lru_cache(maxsize=1024)
def _due_after(batch: str) -> str:
    """Give what follows a place in a batch, as "2,3"; empty after the last."""
    place, size = map(int, batch.split(","))
    return f"{place + 1},{size}" if place < size else ""


@lru_cache(maxsize=2048)
def _judged(kind: str, text: str) -> tuple[dict[str, Any], Any, bool]:
    """Judge a payload's text without its action id; a retry asks and a replay returns what was judged before.

    Gives the payload, what is made of it, and whether its stored fingerprint is that of what it asks for.
    """
    if kind not in PAYLOADS:
        raise _Refused("unknown-kind", "an event of a kind that no rule set records")
    text = f"{{{text[:-1]}}}" if kind == COMPLETED else (f'{{"action_id":""{text}' if kind.startswith("action.") else f"{{{text}")
    again = _asked_in_canonical_form(text) if kind == ASKED else None
    if again is not None:
        return (*again, True)
    payload, shape = _parse(text), PAYLOADS[kind]
    if type(payload) is not dict or [*payload] != [*shape] or not all(map(isinstance, payload.values(), shape.values())):
        raise _Refused("event-shape", f"not a payload of {kind}: fields, their types or their order differ")
    if kind == CALL_COMPLETED:
        return payload, _sha256(_dump(payload["response"])), True
    if kind not in DIMENSIONS:
        return payload, None, True
    try:
        dimensions = tuple([_sha256(_canonical(payload[name])) for name in DIMENSIONS[kind].values()])
    except (ValueError, RecursionError):
        raise _Refused("not-canonical", "what it asks for has no canonical form, so it has no fingerprint") from None
    return payload, dimensions, bool(payload["fingerprint"] == _fingerprint(dimensions, kind))


def _asked_in_canonical_form(text: str) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """Judge a request by writing it again: the same text has each field once, and the right fingerprint."""
    try:
        payload, _ = _plain_decode(text)
        capability, a = _quoted_and_digest(payload["capability"])
        instruction, b = _quoted_and_digest(payload["instruction"])
        performer, d = _quoted_and_digest(payload["performer"])
        what, precondition = _canonical(payload["payload"]), _canonical(payload["precondition"])
        made = (a, b, _sha256(what), d, _sha256(precondition))
        again = (capability, _sha256(UNSIGNED % made), *made, instruction, what, performer, precondition, _quoted(payload["rules"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None  # the slower way says what is wrong
    return (payload, made) if what[0] == "{" and text == REQUEST % again else None


@lru_cache(maxsize=1024)
def _quoted_and_digest(text: str) -> tuple[str, str]:
    return _quoted(text), _sha256(_quoted(text))


_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def _fingerprint(dimensions: tuple[str, ...], kind: str) -> dict[str, Any]:
    unsigned = {"version": VERSIONS[kind], "dimensions": dict(zip(DIMENSIONS[kind], dimensions, strict=False))}
    return unsigned | {"digest": _sha256(_canonical(unsigned))}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> str:
    """Give the RFC 8785 form of a parsed value; ValueError for what has none."""
    kind = type(value)
    if kind is str:
        text: str = _quoted(value)
        return text
    if kind is dict:
        keys = sorted(value) if all(map(str.isascii, value)) else sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join([f"{_quoted(key)}:{_canonical(value[key])}" for key in keys]) + "}"
    if kind is list:
        return "[" + ",".join(map(_canonical, value)) + "]"
    if kind is bool or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if abs(value) > 2**53 - 1:
        raise ValueError("beyond 2^53 - 1")
    if value == int(value):
        return str(int(value))
    # The shortest digits are Python's too; ECMAScript only lays small numbers out differently.
    return format(Decimal(repr(value)), "f") if abs(value) >= 1e-6 else re.sub(r"e-0*", "e-", repr(value))


def _unquoted(text: str) -> str:
    return text[1:-1] if "\\" not in text else str(json.loads(text))


# --- step 7: the world ----------------------------------------------------------------------------------------


def _world(root: str, digests: Mapping[str, str], ledger: _Ledger, found: _Findings) -> None:
    """Read each case's receipts and hold them against its markers and against what the ledger allows."""
    runs = {json.loads(run).partition("/")[2]: run for run in ledger.cases}
    markers: dict[str, set[str]] = {case: set() for case in runs}
    for path in digests:
        if path.startswith("data/world/"):
            _, _, case, *name = path.split("/")
            markers.setdefault(case, set()).update(name[1:])
    for case, left in markers.items():
        _receipts(root, case, runs.get(case, ""), left, digests, ledger, found)
        for name in sorted(left):
            found.add("receipt-missing", f"data/world/{case}/markers/{name}", "a marker that no receipt names")
    for request in ledger.requests.values():
        low, high = request.bounds
        if not low <= request.receipts <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            found.add("effects-outside-bounds", f"{request.case.run} {request.stream}",
                      f"the ledger allows {allowed} effects, the world shows {request.receipts}")  # fmt: skip


def _receipts(
    root: str, case: str, run: str, left: set[str], digests: Mapping[str, str], ledger: _Ledger, found: _Findings
) -> None:
    """Read the receipts of one case, and take the markers that they name out of `left`."""
    path = f"data/world/{case}/receipts.jsonl"
    if path not in digests:
        return found.add("missing-file", path, "a case without effects has an empty one")
    seen: set[str] = set()
    with os.fdopen(_open(root, path), "rb") as file:
        for n, raw in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
            where = f"{path} line {n}"
            try:
                text = _decoded(raw)
                receipt = RECEIPT.fullmatch(text)
                if receipt is None or receipt[4] != str(n):
                    _parse(text)
                    raise _Refused("receipt-shape", "not a receipt: its fields, their types, form or n differ")
            except _Refused as refused:
                found.add(refused.code, where, str(refused))
                continue
            action, effect, name, _ = receipt.groups()
            if (digest := digests.get(f"data/world/{case}/markers/{name}")) is None:
                found.add("marker-missing", where, "the marker that it names is not there")
            elif name not in left:
                found.add("marker-shared", where, "the marker that it names belongs to an earlier receipt")
            elif digest != effect:
                found.add("marker-differs", where, "its effect is not the SHA-256 of the marker")
            left.discard(name)
            request = ledger.requests.get(action)
            if request is None or request.call or request.case.run != run:
                found.add("receipt-unknown-action", where, "it names no action of this case")
            else:
                request.receipts += 1
                request.duplicate |= effect in seen
            seen.add(effect)
            if run:
                ledger.cases[run].receipts += 1
    return None


# --- step 8: the rows -----------------------------------------------------------------------------------------


def _rows(protocol: dict[str, Any], results: dict[str, Any], ledger: _Ledger, found: _Findings) -> None:
    lesson, revision = protocol["lesson"], protocol["revision"]
    asked_under = {request.rules for request in ledger.requests.values()}
    if (results["lesson"], results["revision"]) != (lesson, revision) or asked_under - {revision}:
        found.add("revision-differs", RESULTS, "lesson or rule set differ between protocol, ledger and results")
    if protocol["ledger_id"] != ledger.ledger_id:
        found.add("ledger-id-differs", PROTOCOL, "it names another ledger")
    planned = [case["case"] for case in protocol["cases"]]
    runs = [_quoted(f"{lesson}/{case}") for case in planned]
    if planned != [row["case"] for row in results["rows"]] or sorted(runs) != sorted(ledger.cases):
        found.add("cases-differ", RESULTS, "the cases differ between protocol, ledger and results")
    rows = {row["case"]: row for row in results["rows"]}
    for plan, run in zip(protocol["cases"], runs, strict=True):
        case, row = ledger.cases.get(run), rows.get(plan["case"])
        if case is not None and row is not None:
            truth = _row(case, revision)
            _compare_row(row, truth, case, f"{RESULTS} case {ascii(plan['case'])}", found)
            _compare_plan(plan, truth | {"raised": row["raised"]}, case, f"{PROTOCOL} case {ascii(plan['case'])}", found)


def _row(case: _Case, revision: str) -> dict[str, Any]:
    """Work the row of a case out from ledger and world."""
    bounds = [request.bounds for request in case.requests]
    return {
        "revision": revision,
        "requests": len(case.requests),
        "statuses": [request.status for request in case.requests],
        "reused_from": [one.reused_from and _unquoted(one.reused_from) for one in case.requests],
        "effects_ledger": [sum(low for low, _ in bounds), sum(high for _, high in bounds)],
        "effects_world": case.receipts,
        "effects_summary": case.receipts,
        "labels": [request.label for request in case.requests],
        "event_kinds": case.kinds,
        "provider_calls": case.provider_calls,
    }


def _compare_row(row: dict[str, Any], truth: dict[str, Any], case: _Case, where: str, found: _Findings) -> None:
    for name, value in truth.items():
        if row[name] != value:
            cut = name == "event_kinds" and row[name][: len(value)] == value
            code = "tail-missing" if cut else f"row-{name.replace('_', '-')}"
            found.add(code, where, f"its {name} {'go on where the ledger ends' if cut else 'is not what ledger and world show'}")
    said = row["raised"]
    if len(said) != len(case.requests) or any(
        (name == "IdempotencyConflictError") != request.conflict or (name is not None and request.answer == "completed")
        for name, request in zip(said, case.requests, strict=False)
    ):
        found.add("row-raised", where, "its raised is not what the ledger shows")


def _compare_plan(plan: dict[str, Any], seen: dict[str, Any], case: _Case, where: str, found: _Findings) -> None:
    asked = [
        {"id": _unquoted(one.stream), "kind": "call" if one.call else "action", "key": _unquoted(one.key)}
        for one in case.requests
    ]
    planned, expected = plan["requests"], plan["expected"]
    if plan["marked"]:  # the order of threads and processes is nobody's promise
        asked, planned = sorted(asked, key=_dump), sorted(planned, key=_dump)
        allowed = all(status in expected["statuses"] for status in seen["statuses"])
        seen = expected | {"requests": seen["requests"], "effects_world": seen["effects_world"]}
        seen["statuses"] = expected["statuses"] if allowed else None
    if asked != planned:
        found.add("requests-differ", where, "the requests in the ledger are not those that were planned")
    for name, value in expected.items():
        if seen[name] != value:
            found.add(f"expected-{name.replace('_', '-')}", where, f"its {name} is not what was expected before the run")


# --- the command ----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="verify.py", description="Judge a bundle with the standard library alone.")
    parser.add_argument("bundle", help="the folder that holds bagit.txt")
    parser.add_argument("--expect", metavar="DIGEST", help="SHA-256 of tagmanifest-sha256.txt, known from outside")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        report = verify(options.bundle, options.expect)
    except CannotVerify as reason:
        print(reason, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.as_json(), indent=2, sort_keys=True))
    else:
        for finding in report.findings:
            print(f"{finding.code}: {finding.where}: {finding.message}".encode("ascii", "backslashreplace").decode())
        print(f"valid: {'yes' if report.valid else 'no'}")
        print(f"complete: {report.complete}")
    return 0 if report.valid else 1


if __name__ == "__main__":
    sys.exit(main())
