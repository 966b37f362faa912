"""Does this bundle hold together?

Chapter: 004, "Checking it without trusting it".

Idea: the producer's summary is the last thing to believe. This file shares no code with what it checks: it
needs Python's standard library and nothing else, reads the raw lines, the world's own receipts and the marker
files, works every row out again and only then compares. It collects what is wrong, and does not stop at the
first of it.

    python -I -S verify.py BUNDLE [--expect DIGEST] [--json]     exit 0 valid, 1 findings, 2 could not run

Steps, named again at each block:
  1. names on disk       regular files only: no links, no devices
  2. the manifests       each file listed once, by a name that is plain, inside and the same on every system
  3. the outside digest  SHA-256 of tagmanifest-sha256.txt against --expect: the only word on completeness
  4. bytes               SHA-256 of every file against its manifest
  5. the ledger          chain over raw bytes, sequence, batches, and what each event may mean where it stands
  6. the world           receipts and markers one to one, each within what the ledger allows for its action
  7. the results         the rows of results.json against those that ledger and world give
  8. the protocol        the requests and expectations of protocol.json, fixed before the run, likewise

Always true:
  V1. If step 1 or 2 finds anything, no payload byte is read. Nothing outside the bundle is ever opened.
  V2. Whatever the bytes, the answer is findings, never a traceback. Nothing is written.
  V3. The ledger is read as a stream; what is kept grows with the requests, not with what the lines hold.
  V4. Findings name places, ids, dimensions and digests, never another recorded value.

Not checked: completeness without --expect; a success forged for a failure whose effect the world shows, when
chain, results and digests are all rewritten (only --expect catches it); who wrote the bundle, when and where;
clock readings; that event ids differ between streams; the canonical form of payloads, but for an action's
request; hard links; what README.md and notebook.ipynb say.

It is longer than a module should be because it has to be one file; the steps can be read one at a time.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import operator
import os
import re
import stat
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import lru_cache
from io import RawIOBase
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import Any, NoReturn

# --- what a bundle looks like ------------------------------------------------------------------------------

LEDGER, PROTOCOL, RESULTS = "data/ledger.jsonl", "data/protocol.json", "data/results.json"
ENVIRONMENT, VERIFIER = "data/environment.json", "data/verify.py"
MANIFEST, TAGMANIFEST = "manifest-sha256.txt", "tagmanifest-sha256.txt"
TAG_FILES = ("README.md", "bag-info.txt", "bagit.txt", MANIFEST, TAGMANIFEST)
REQUIRED = {LEDGER, PROTOCOL, RESULTS, ENVIRONMENT, VERIFIER, *TAG_FILES}
OPTIONAL = re.compile(r"data/(notebook\.ipynb|world/[^/]+/(receipts\.jsonl|markers/[^/]+))")
BAGIT_TXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
# A segment of a path that means one file, and the same one, on every system.
SEGMENT = re.compile(
    r"(?!~|(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))"
    r'[^\x00-\x1f\x7f\ud800-\udfff\\/:*?"<>|]*[^\x00-\x20\x7f\ud800-\udfff.\\/:*?"<>|]'
)
LONGEST_LINE = 2**20  # bytes
LISTED_OF_EACH_CODE = 20

# --- what a ledger may hold --------------------------------------------------------------------------------

ASKED, CLAIMED, STARTED = "action.requested", "action.claimed", "action.execution_started"
COMPLETED, REFUSED = "action.completed", "action.replay_refused"
CALLED, SENT, TRIED, OBSERVED = "call.requested", "call.manifest", "attempt.started", "attempt.observed"
CALL_COMPLETED, CALL_REFUSED = "call.completed", "call.replay_refused"

# Which kind may follow which in the history of one request, and as which place of which batch ("" is any).
_CALLS = {
    ("", CALLED): "", (CALLED, SENT): "", (SENT, TRIED): "", (TRIED, OBSERVED): "",
    (OBSERVED, TRIED): "", **{(kind, CALL_COMPLETED): "" for kind in (CALLED, SENT, TRIED, OBSERVED)},
}  # fmt: skip
_OLDEST = _CALLS | {("", ASKED): "1,1", (ASKED, COMPLETED): "1,1"}
_OLDER = _OLDEST | {(ASKED, REFUSED): "1,1"}
ORDER = {
    "7a0d43b": _OLDEST,
    "a1b562a": _OLDER,
    "1b3c7a2": _OLDER,
    "88d1291": _OLDER | {(ASKED, STARTED): "1,1", (STARTED, COMPLETED): "1,1"},
    "lab": _CALLS | {
        ("", ASKED): "1,2 or 1,3", (ASKED, CLAIMED): "2,3", (CLAIMED, STARTED): "3,3",
        (STARTED, COMPLETED): "1,1", (ASKED, COMPLETED): "2,2", (ASKED, REFUSED): "2,2",
        (CALLED, CALL_REFUSED): "",
    },
}  # fmt: skip
RECORD_STARTS = ("88d1291", "lab")
# (status, was an effect possible) of a completion -> the codes that its error may have; None is no error.
ERRORS: dict[tuple[str | None, bool], tuple[str | None, ...]] = {
    ("succeeded", True): (None, "output-not-recordable"),
    ("failed", True): ("adapter-raised", "adapter-not-driven"),
    ("failed", False): ("precondition-drift", "precondition-unreadable"),
    ("denied", False): ("not-authorised",),
}
REFUSED_STATUS = {"identity-conflict": None, "effect-unknown": "refused", "in-progress": "in_progress"}

# A line in canonical form, but for its payload: what fits needs no second look at its fields and their types.
_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*+)*+"'
_WHOLE = r"(?:0|[1-9][0-9]{0,15})"
EVENT = re.compile(
    rf'\{{"actor_id":{_TEXT},"batch":\[([1-9][0-9]{{0,8}},[1-9][0-9]{{0,8}})\],"causation_id":(null|{_TEXT}),'
    rf'"event_id":({_TEXT}),"idempotency_key":({_TEXT}),"kind":"([a-z_.]+)",'
    rf'"payload":\{{(?:"action_id":({_TEXT}))?(.*\}}),"prev":"([^"]*)","recorded_at_us":{_WHOLE},'
    rf'"run_id":({_TEXT}),"seq":({_WHOLE}),"stream_id":({_TEXT})\}}'
)
# The rest of a completion: what it says about its action, and around that what a replay has of its own.
COMPLETION = re.compile(
    rf',"effect_possible":(true|false),("error":.*,)"reused_from_action_id":(null|{_TEXT}),'
    r'"status":"(succeeded|failed|denied)"\}'
)
RECEIPT = re.compile(
    rf'\{{"action_id":({_TEXT}),"effect":"([0-9a-f]{{64}})","marker":"([0-9A-Za-z_][0-9A-Za-z_.-]*)",'
    rf'"n":({_WHOLE})\}}\n'
)
# Fields and types of payloads, sorted as in canonical JSON.
_MAYBE_TEXT, _MAYBE_OBJECT = (str, type(None)), (dict, type(None))
_CONTENT = {"error": _MAYBE_OBJECT, "observed": _MAYBE_OBJECT, "output": object}
_REFUSAL = {"dimensions": list, "fingerprint_version": str, "idempotency_key": str}
PAYLOADS: dict[str, dict[str, Any]] = {
    ASKED: {"action_id": str, "capability": str, "fingerprint": dict, "instruction": str, "payload": dict,
            "performer": str, "precondition": object, "rules": str},
    CLAIMED: {"action_id": str},
    STARTED: {"action_id": str},
    COMPLETED: {"action_id": str, "effect_possible": bool, **_CONTENT, "reused_from_action_id": _MAYBE_TEXT,
                "status": str},
    "content": _CONTENT,
    REFUSED: {"action_id": str, **_REFUSAL, "original_action_id": str, "reason": str},
    CALLED: {"call_id": str, "chamber": str, "context": dict, "fingerprint": dict, "prompt": str,
             "requested_model": str, "rules": str},
    SENT: {"call_id": str, "fingerprint": dict},
    TRIED: {"attempt": int, "call_id": str},
    OBSERVED: {"attempt": int, "call_id": str, "response": object},
    CALL_COMPLETED: {"call_id": str, "original_call_id": _MAYBE_TEXT, "replayed": bool, "response": object,
                     "status": str},
    CALL_REFUSED: {"call_id": str, **_REFUSAL, "original_call_id": str, "reason": str},
}  # fmt: skip
# Dimension of a fingerprint -> field of the recorded request, sorted as in canonical JSON.
DIMENSIONS = {
    ASKED: {name: name for name in ("capability", "instruction", "payload", "performer", "precondition")},
    CALLED: {"chamber": "chamber", "prompt_hash": "prompt", "rendered_context": "context",
             "requested_model": "requested_model"},
}  # fmt: skip
VERSIONS = {ASKED: "action-fingerprint-v1", CALLED: "call-fingerprint-v1"}
# The canonical form of an action's fingerprint without its digest, and of its request without its id.
UNSIGNED = (
    '{"dimensions":{"capability":"%s","instruction":"%s","payload":"%s","performer":"%s",'
    '"precondition":"%s"},"version":"action-fingerprint-v1"}'
)
REQUEST = (
    ',"capability":%s,"fingerprint":{"digest":"%s",' + UNSIGNED[1:] + ',"instruction":%s,"payload":%s,'
    '"performer":%s,"precondition":%s,"rules":%s}'
)

# --- what the documents look like --------------------------------------------------------------------------

# A shape is a type, a tuple of choices, a list of one shape, or a dict of exactly these keys. What
# steps 7 and 8 compare with what ledger and world give is only a list here.
DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    PROTOCOL: ("codeai-lab-protocol-v1", {
        "format": str, "ledger_id": str, "lesson": str, "revision": str, "seed": (int, str), "cases": [{
            "case": str, "question": str, "marked": [("threads", "processes")], "requests": list,
            "expected": {"requests": int, "statuses": list, "reused_from": list, "raised": list,
                         "effects_world": int},
        }],
    }),
    RESULTS: ("codeai-lab-results-v1", {
        "format": str, "lesson": str, "producer": {"name": str, "version": str}, "revision": str, "rows": [{
            "case": str, "revision": str, "requests": int, "statuses": list, "reused_from": list,
            "raised": list, "effects_ledger": [int], "effects_world": int, "effects_summary": int,
            "labels": list, "event_kinds": list, "provider_calls": int, "notes": [str],
            "evidence_label": ("source-inspected", "regression-tested", "demo", "pinned run"),
        }],
    }),
    ENVIRONMENT: ("codeai-lab-environment-v1", {
        "format": str, "implementation": str, "machine": str, "packages": dict, "platform": str,
        "python": str,
    }),
}  # fmt: skip
CREATED = {
    "kind": "ledger.created", "ledger_id": str, "recorded_at_us": int, "schema_version": int, "seq": int,
}  # fmt: skip


# --- the verdict -------------------------------------------------------------------------------------------


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
        """Give the form that `--json` prints."""
        findings = [asdict(finding) for finding in self.findings]
        return {"valid": self.valid, "complete": self.complete, "findings": findings}


def verify(bundle: str | os.PathLike[str], expect: str | None = None) -> Report:
    """Judge a bundle.

    Args:
        bundle: the folder that holds bagit.txt.
        expect: SHA-256 of its tagmanifest-sha256.txt as known from elsewhere, 64 hex digits.

    Raises: CannotVerify when there is no bundle to judge or `expect` is no digest.
    """
    if expect is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", expect):
        raise CannotVerify(f"The expected digest must be the SHA-256 of {TAGMANIFEST}, 64 hex digits.")
    root = os.fspath(bundle)
    if "\0" in root or not Path(root).is_dir():
        raise CannotVerify("There is no such folder. Name the bundle, the folder that holds bagit.txt.")
    found, collecting = _Findings(), gc.isenabled()
    gc.disable()  # nothing here makes cycles, and looking for them takes a tenth of the time
    try:
        _check(root, expect, found)
    except RecursionError:
        found.add("nested-too-deeply", "data", "a value is nested more deeply than any that we write")
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) else "it does not fit into memory"
        raise CannotVerify(f"The bundle cannot be read: {why}.") from None
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
        found.add("outside-digest-differs", TAGMANIFEST, f"its SHA-256 is {inside}, not {expect.lower()}")
    if not may_read_on:
        return

    # Step 4: bytes, but for those of the ledger, which are read once, in step 5.
    digests = {path: _digest(root, path) for path in listed if path != LEDGER}
    _compare_digests(root, digests, listed, found)
    if "line-endings" in found.count:
        return  # what is read on would only be found wrong for the same reason

    # Step 5: the ledger.
    ledger = _Ledger(found)
    with os.fdopen(_open(root, LEDGER), "rb", 0) as file:
        known = ledger.read(file)
    _compare_digests(root, {LEDGER: ledger.digest.hexdigest()}, listed, found)
    if not known or "line-endings" in found.count:
        return

    # Step 6: the world.
    _world(root, digests, ledger, found)

    # Step 7: the results, and what else is a document. One is let go before the next is read.
    truths = {run: _row(case) for run, case in ledger.cases.items()}
    _document(root, ENVIRONMENT, found)
    said = _compare_results(_document(root, RESULTS, found), truths, ledger, found)

    # Step 8: the protocol.
    _compare_protocol(_document(root, PROTOCOL, found), said, truths, ledger, found)


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


# --- step 1: names on disk ---------------------------------------------------------------------------------


def _names_on_disk(root: str, found: _Findings) -> set[str]:
    """Walk the bundle without following or opening anything; give its regular files, named with slashes."""
    files, folders = set(), [""]
    for folder in folders:
        with os.scandir(f"{root}/{folder}") as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = folder + entry.name
                if entry.is_symlink() or _is_junction(entry):
                    found.add("link", ascii(path), "a link")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False):
                    files.add(path)
                else:
                    found.add("special-file", ascii(path), "a device, pipe or socket")
    return files


def _is_junction(entry: os.DirEntry[str]) -> bool:
    return os.name == "nt" and getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == 0xA0000003


# --- step 2: the manifests ---------------------------------------------------------------------------------


def _manifests(tags: Mapping[str, bytes], files: set[str], found: _Findings) -> dict[str, str]:
    """Give the digest that a manifest lists for each path, and find what is wrong with the names."""
    for name, content in tags.items():
        if b"\r" in content:
            found.add("line-endings", name, "holds carriage returns: its line endings were converted")
        elif name == "bagit.txt" and content != BAGIT_TXT:
            found.add("bagit-declaration", name, "does not declare BagIt 1.0 in UTF-8 as RFC 8493 has it")
    listed: dict[str, str] = {}
    for name in (MANIFEST, TAGMANIFEST):
        for path, digest, where in _entries(name, tags.get(name, b""), found):
            if path in listed or path.startswith("data/") != (name == MANIFEST):
                found.add("duplicate-entry", where, f"{path!a} is listed before, or in the wrong manifest")
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
        text = line.decode("utf-8", "replace")
        match = re.fullmatch(r"([0-9a-f]{64})  ((?:[^%\n\ufffd]|%0A|%0D|%25)+)\n", text)
        if match is None:
            found.add("manifest-line", where, "not 64 hex digits, two spaces, a path in UTF-8 and a newline")
            continue
        path = match[2]
        if "%" in path:
            path = path.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        if _is_plain(path, where, found):
            yield path, match[1], where


def _is_plain(path: str, where: str, found: _Findings) -> bool:
    """Say whether a path names one file inside the bundle, and the same one on every system."""
    folder, slash, name = path.rpartition("/")
    if SEGMENT.fullmatch(name) and (_is_plain_folder(folder) or not slash):
        return True
    if re.match(r"[/\\~]|[A-Za-z]:", path):
        found.add("path-absolute", where, f"{path!a} starts outside the bundle")
    elif ".." in re.split(r"[/\\]", path):
        found.add("path-leaves-bundle", where, f"{path!a} climbs out of a folder")
    else:
        found.add("path-not-plain", where, f"{path!a} has a segment that is another on some system")
    return False


@lru_cache(maxsize=1024)
def _is_plain_folder(folder: str) -> bool:
    return all(map(SEGMENT.fullmatch, folder.split("/")))


def _collisions(files: set[str], listed: Set[str], found: _Findings) -> set[str]:
    """Find names that some system takes for one; give those that are there in another form than listed."""
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
        both = f"{other!a} and {path!a}"
        if unicodedata.normalize("NFC", path) != unicodedata.normalize("NFC", other):
            found.add("case-collision", both, "one name where case is ignored")
        elif {path, other} <= files ^ listed and (path in files) != (other in files):
            found.add("unicode-form", both, "listed in one Unicode form, there in another")
            forms |= {path, other}
        else:
            found.add("unicode-collision", both, "one name in two Unicode forms")
    return forms


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


# --- step 4: bytes -----------------------------------------------------------------------------------------


def _compare_digests(root: str, real: Mapping[str, str], listed: Mapping[str, str], found: _Findings) -> None:
    """Compare the digests that files really have with those that the manifests list."""
    for path, digest in real.items():
        if digest == listed[path]:
            continue
        if _digest(root, path, as_lf=True) == listed[path]:
            found.add("line-endings", path, "differs by CRLF for LF alone: its line endings were converted")
        else:
            found.add("digest-differs", path, f"its SHA-256 is {digest}, the manifest says {listed[path]}")


def _digest(root: str, path: str, *, as_lf: bool = False) -> str:
    digest = hashlib.sha256()
    descriptor = _open(root, path)
    try:
        while block := os.read(descriptor, 1 << 16):
            while as_lf and block.endswith(b"\r") and (more := os.read(descriptor, 1)):
                block += more
            digest.update(block.replace(b"\r\n", b"\n") if as_lf else block)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


_FLAGS = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)  # no system has them all


def _open(root: str, path: str) -> int:
    """Open what step 1 saw as a regular file; follow no link, wait for no pipe that was put there since."""
    descriptor = os.open(f"{root}/{path}", _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it changed while it was read")
    return descriptor


def _read(root: str, path: str) -> bytes:
    with os.fdopen(_open(root, path), "rb") as file:
        return file.read()


# --- reading JSON ------------------------------------------------------------------------------------------


class _Refused(ValueError):  # noqa: N818 - like CannotVerify
    """What was read is not what it should be; `code` says in which way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _document(root: str, path: str, found: _Findings) -> dict[str, Any]:
    """Read a document; empty when it is not what it should be."""
    name, shape = DOCUMENTS[path]
    try:
        value = _parse(_text(_read(root, path)))
        if isinstance(value, dict) and isinstance(value.get("format"), str) and value["format"] != name:
            raise _Refused("unknown-version", f"its format is not {name}: verify it with what wrote it")
        if not _shaped(value, shape):
            raise _Refused("document-shape", f"it does not have the fields and types of {name}")
    except _Refused as refused:
        found.add(refused.code, path, str(refused))
        return {}
    return dict(value)


def _shaped(value: Any, shape: Any) -> bool:
    kind = type(shape)
    if kind is dict:
        fits = type(value) is dict and value.keys() == shape.keys()
        return fits and all(_shaped(value[key], shape[key]) for key in shape)
    if kind is list:
        return type(value) is list and all(_shaped(item, shape[0]) for item in value)
    if kind is tuple:
        return any(_shaped(value, choice) for choice in shape)
    return bool(value == shape) and type(value) is str if kind is str else type(value) is shape


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _Refused("not-utf8", "not valid UTF-8") from None


def _parse(text: str) -> Any:
    """Read one JSON value and nothing else; strict where Python's own reader is generous."""
    try:
        value, end = _strict_decode(text)
    except _Refused:
        raise
    except (ValueError, RecursionError):
        if text.startswith("\ufeff"):
            raise _Refused("byte-order-mark", "begins with a byte order mark") from None
        raise _Refused("not-json", "not JSON") from None
    if text[end:] not in ("", "\n"):
        raise _Refused("not-json", "more than one JSON value")
    return value


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


_strict_decode = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite
).raw_decode
_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


# --- step 5: the ledger ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Case:
    """The requests and events of one run, in order."""

    run: str
    requests: list[_Request] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    provider_calls: int = 0
    receipts: int = 0


@dataclass(slots=True)
class _Request:
    """What the ledger says of one action or call, as far as later events, the world and the rows need it."""

    stream: str  # this, the event id and the key are kept as JSON text
    event_id: str
    key: str
    case: _Case
    rules: str
    call: bool
    words: str  # its payload without an action's id, as it stands there
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
    content: str = ""  # what its completion says about it, as it stands there
    receipts: int = 0
    duplicate: bool = False

    @property
    def asking(self) -> str:
        return CALLED if self.call else ASKED

    @property
    def conflict(self) -> bool:
        """A refused identity; the older rules leave no event behind when it is a call's."""
        silent_call = self.call and not self.answer and self.prior is not None
        return silent_call or self.answer == "identity-conflict"

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of effects that the record allows."""
        if self.call or self.reused_from is not None or self.answer in REFUSED_STATUS:
            return (0, 0)
        if not self.answer:
            return (0, int(self.started or self.rules not in RECORD_STARTS))
        return (1, 1) if self.status == "succeeded" else (0, int(self.entered))

    @property
    def label(self) -> str | None:
        if self.reused_from is not None or self.status == "denied":
            return "denied" if self.reused_from is None else "replay"
        if self.conflict or self.answer in REFUSED_STATUS:
            return "unknown" if self.answer == "effect-unknown" else "refused"
        if self.duplicate or self.retry:
            return "duplicate" if self.duplicate else "retry"
        return "unknown" if self.bounds == (0, 1) else None


class _Ledger:
    """One pass over the lines of a ledger."""

    def __init__(self, found: _Findings) -> None:
        self.found, self.line, self.digest = found, 0, hashlib.sha256()
        self.ledger_id = ""
        self.cases: dict[str, _Case] = {}  # by run
        self.requests: dict[str, _Request] = {}  # by stream
        self.decided: dict[bool, dict[str, _Request]] = {False: {}, True: {}}  # of actions, of calls; by key
        self.prev, self.seq, self.due, self.stream = "", 0, "", ""

    def add(self, code: str, message: str) -> None:
        self.found.add(code, f"{LEDGER} line {self.line}", message)

    def read(self, file: RawIOBase) -> bool:
        """Read to the end; False when the ledger is of an unknown version, so that no event was judged."""
        match, sha256, lines = EVENT.fullmatch, hashlib.sha256, self.lines(file)
        first = next(lines, b"")
        known, self.prev = self.created(first), sha256(first).hexdigest()
        for line in lines:
            try:
                if known:
                    self.event(*(match(line.decode()) or _no_event(line)).groups())
            except _Refused as refused:
                self.add(refused.code, str(refused))
            except UnicodeDecodeError:
                self.add("not-utf8", "not valid UTF-8")
            self.prev = sha256(line).hexdigest()
        if self.due:
            self.add("batch-torn", f"the ledger ends where {self.due} of a batch was due")
        self.look_for_silence()
        return known

    def lines(self, file: RawIOBase) -> Iterator[bytes]:
        """Give the lines without their newlines, and count them."""
        rest = b""
        while block := file.read(1 << 18):
            self.digest.update(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self.line += 1
                yield line
            if len(rest) > LONGEST_LINE:
                self.add("line-torn", "what follows this line is longer than 1 MiB")
                rest = b""
        if rest:
            self.add("line-torn", "what follows this line does not end in a newline")

    def created(self, line: bytes) -> bool:
        try:
            value = _parse_line(line)
            if isinstance(value, dict) and value.get("schema_version", 1) != 1:
                raise _Refused("unknown-version", "its schema version is not 1: verify it with what wrote it")
            if not _shaped(value, CREATED) or value["seq"] != 0:
                raise _Refused("event-shape", "not the line that creates a ledger")
            self.ledger_id = value["ledger_id"]
        except _Refused as refused:
            self.add(refused.code, str(refused))
            return refused.code != "unknown-version"
        return True

    def event(
        self, batch: str, cause: str, event_id: str, key: str, kind: str, own_id: str | None, text: str,
        prev: str, run: str, seq: str, stream: str,
    ) -> None:  # fmt: skip
        # Its place: the chain, the sequence, the batch.
        number, due = int(seq), self.due
        if prev != self.prev:
            self.add("chain-broken", "its prev is not the SHA-256 of the line before")
        if number != self.seq + 1:
            self.add("sequence-broken", f"its seq does not follow {self.seq}")
        if (batch != due or stream != self.stream) if due else batch[:2] != "1,":
            self.add("batch-torn", f"{batch} of a batch stands where {due or 'a new one'} was due")
        self.seq, self.stream, self.due = number, stream, _due_after(batch)

        # Its request, and its place in the history of that.
        if own_id != stream and (own_id is not None or kind.startswith("action.")):
            raise _Refused("stream-differs", "its payload does not begin with the id of its stream")
        request = self.requests.get(stream) or self.asked(event_id, key, kind, text, run, stream)
        request.case.kinds.append(sys.intern(kind))
        order = ORDER[request.rules].get((request.last, kind))
        if order is None:
            raise _Refused("out-of-order", f"{kind} cannot follow {request.last} under these rules")
        if order and batch not in order:
            self.add("batch-shape", f"under these rules it is {order} of a batch, not {batch}")
        if key != request.key or run != request.case.run:
            self.add("stream-differs", "its key or run is not that of its request")
        uncaused = cause != request.event_id and not request.call
        if request.last and (uncaused or event_id == request.event_id):
            self.add("causation-broken", "it does not name its request as its cause, or has its id")
        request.last = kind

        # What it means.
        if kind == COMPLETED:
            self.action_completed(request, text)
        elif kind in (CLAIMED, STARTED):
            if text != "}":
                _payload(kind, f'{{"action_id":""{text}')
            if kind == STARTED:
                self.execution_started(request)
        elif kind == REFUSED:
            self.replay_refused(request, _payload(kind, f'{{"action_id":""{text}'))
        elif request.call:
            self.call_event(request, kind, _payload(kind, f"{{{text}"))

    def asked(self, event_id: str, key: str, kind: str, text: str, run: str, stream: str) -> _Request:
        """Judge a request; one in the very words of the request that decided its key was judged before."""
        if kind not in (ASKED, CALLED):
            code = "request-missing" if kind in PAYLOADS else "unknown-kind"
            raise _Refused(code, f"{kind!a} without a request earlier in its stream")
        case = self.cases.get(run) or self.cases.setdefault(run, _Case(run))
        call = kind == CALLED
        prior, words = self.decided[call].get(key), text
        if prior is not None and prior.words == text:
            dimensions, rules, key, words = prior.dimensions, prior.rules, prior.key, prior.words
        else:
            again = None if call else _written_again(text)
            dimensions, rules, agrees = again or _judged(kind, text)
            if again is None and agrees and not call:
                self.add("event-shape", "what it asks for is not in canonical form")
            if not agrees:
                self.add("fingerprint-disagrees", "its stored fingerprint is not that of what it asks for")
            if rules not in ORDER:
                raise _Refused("unknown-version", "asked under a rule set that is not known here")
        retry = key in case.keys
        request = _Request(stream, event_id, key, case, rules, call, words, dimensions, prior, retry)
        self.requests[stream] = request
        case.keys.add(key)
        case.requests.append(request)
        return request

    def execution_started(self, request: _Request) -> None:
        request.started = True
        if request.rules == "lab" and self.decided[False].setdefault(request.key, request) is not request:
            self.add("second-start", "its key had started before, and these rules start a key once")

    def action_completed(self, request: _Request, text: str) -> None:
        """Status, error, start and possible effect go together; a replay is like its original."""
        answer = COMPLETION.fullmatch(text)
        if answer is None:
            _payload(COMPLETED, f'{{"action_id":""{text}')
            raise _Refused("event-shape", f"not a payload of {COMPLETED}: its form or status differs")
        entered, content, link, status = answer.groups()
        request.entered = entered == "true"
        if request.rules in RECORD_STARTS and request.started != request.entered:
            self.add("start-disagrees", "whether it started and whether its effect was possible disagree")
        is_replay = self.completed(request, status, None if link == "null" else link, content)
        if is_replay:  # its content was judged where the original said it
            possible = not request.entered
        else:
            possible = _error_code(content) in ERRORS.get((status, request.entered), ())
        if not possible:
            self.add("completion-impossible", "status, error, reuse and possible effect do not go together")
        if link == "null" and request.rules != "lab":
            self.decided[False].setdefault(request.key, request)

    def completed(self, request: _Request, status: str, link: str | None, content: str) -> bool:
        """Note a completion, and say whether it is a sound replay: of an original that recorded the same."""
        request.answer, request.status = "completed", status
        request.reused_from, request.content = link, content
        if link is None:
            if request.prior is not None and status != "denied":
                self.add("not-replayed", "its key was decided when it was asked, and it was carried out")
            return False
        original = self.requests.get(link)
        if (
            original is None
            or original is request
            or original.answer != "completed"
            or (original.call, original.key) != (request.call, request.key)
        ):
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
            # Only an original is compared with later events; V3 lets a replay go.
            request.reused_from, request.event_id, request.content = original.stream, "", ""
            return True
        return False

    def replay_refused(self, request: _Request, payload: dict[str, Any]) -> None:
        """A refusal names the request that has the key, and exactly the dimensions that differ."""
        reason = request.answer = payload["reason"]
        request.status = REFUSED_STATUS.get(reason)
        original = self.requests.get(_quoted(payload[f"original_{'call' if request.call else 'action'}_id"]))
        if (
            original is None
            or original is request
            or not (original.started or original.answer == "completed")
            or (original.call, original.key) != (request.call, request.key)
            or _quoted(payload["idempotency_key"]) != request.key
        ):
            return self.add("refusal-unresolved", "it names no earlier request that holds its key")
        other_reasons = REFUSED_STATUS if request.rules == "lab" and not request.call else {}
        if reason != "identity-conflict" and (original.answer or reason not in other_reasons):
            return self.add("refusal-unfounded", "these rules do not refuse for this reason, or it is not so")
        pairs = zip(DIMENSIONS[request.asking], request.dimensions, original.dimensions, strict=False)
        differing = [name for name, mine, other in pairs if mine != other]
        if (
            sorted(map(str, payload["dimensions"])) != differing
            or bool(differing) != (reason == "identity-conflict")
            or payload["fingerprint_version"] != VERSIONS[request.asking]
        ):
            self.add("dimensions-differ", f"the requests differ in {', '.join(differing) or 'nothing'}")
        return None

    def call_event(self, request: _Request, kind: str, payload: dict[str, Any]) -> None:
        if _quoted(payload["call_id"]) != request.stream:
            self.add("stream-differs", "its call is not that of its stream")
        if kind == SENT:
            request.manifest = True
            if payload["fingerprint"] != _fingerprint(request.dimensions, CALLED):
                self.add("fingerprint-disagrees", "the manifest's fingerprint is not that of its request")
        elif kind in (TRIED, OBSERVED):
            request.attempt += kind == TRIED
            if kind == OBSERVED:
                request.case.provider_calls += 1
                request.content = _dump(payload["response"])
            if repr(payload["attempt"]) != repr(request.attempt):
                self.add("out-of-order", "its attempts are not counted from 1")
        elif kind == CALL_COMPLETED:
            link, content = payload["original_call_id"], _dump(payload["response"])
            if payload["replayed"] != (link is not None):
                self.add("completion-impossible", "replayed and original_call_id do not go together")
            if link is None and payload["status"] == "succeeded" and request.content != content:
                self.add("observation-differs", "its response is not what was observed last")
            self.completed(request, payload["status"], link and _quoted(link), content)
            if link is None and request.manifest:
                self.decided[True].setdefault(request.key, request)
        elif kind == CALL_REFUSED:
            self.replay_refused(request, payload)

    def look_for_silence(self) -> None:
        """Who asks for a key that another operation decided is refused; `lab` leaves nobody unanswered."""
        for request in self.requests.values():
            if request.answer or request.prior is None:
                continue
            refused = (request.asking, CALL_REFUSED if request.call else REFUSED) in ORDER[request.rules]
            collides = request.prior.dimensions != request.dimensions
            if refused and (collides or (request.rules == "lab" and not request.started)):
                self.found.add("refusal-missing", LEDGER, f"{request.stream} asks for a decided key in vain")


def _parse_line(line: bytes) -> Any:
    if line.endswith(b"\r"):
        raise _Refused("line-endings", "ends in a carriage return: its line endings were converted")
    return _parse(_text(line))


def _no_event(line: bytes) -> NoReturn:
    """Say why a line is no event."""
    _parse_line(line)
    raise _Refused("event-shape", "not an event: its fields, their types or their form differ")


@lru_cache(maxsize=1024)
def _due_after(batch: str) -> str:
    """Give the place after a place of a batch, as "2,3"; empty after the last."""
    place, size = map(int, batch.split(","))
    return f"{place + 1},{size}" if place < size else ""


def _payload(kind: str, text: str) -> dict[str, Any]:
    """Read a payload; it has exactly the fields of its kind, in canonical order."""
    payload, shape = _parse(text), PAYLOADS[kind]
    fits = type(payload) is dict and [*payload] == [*shape]
    if not fits or not all(map(isinstance, payload.values(), shape.values())):
        raise _Refused("event-shape", f"not a payload of {kind}: its fields, types or form differ")
    return dict(payload)


@lru_cache(maxsize=64)
def _error_code(content: str) -> Any:
    """Read what a completion says about its action, and give the code of its error; None is no error."""
    error = _payload("content", f"{{{content[:-1]}}}")["error"]
    return None if error is None else str(error.get("code"))


def _judged(kind: str, text: str) -> tuple[tuple[str, ...], str, bool]:
    """Give a request's dimensions, its rules, and whether its fingerprint is that of what it asks for."""
    payload = _payload(kind, f'{{"action_id":""{text}' if kind == ASKED else f"{{{text}")
    try:
        dimensions = tuple([_sha256(_canonical(payload[name])) for name in DIMENSIONS[kind].values()])
    except (ValueError, RecursionError):
        raise _Refused("not-canonical", "what it asks for has no canonical form, so no fingerprint") from None
    return dimensions, payload["rules"], bool(payload["fingerprint"] == _fingerprint(dimensions, kind))


def _small(text: str) -> int:
    """Take a whole number that has one form in every encoder; ValueError for any other number."""
    if len(text) > 15:
        raise ValueError("not written again here")
    return int(text)


# What is left, ASCII text and small whole numbers, the encoder written in C spells as RFC 8785 does.
_plain_decode = json.JSONDecoder(parse_int=_small, parse_float=_small, parse_constant=_small).raw_decode
_plain_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode
_decode = json.JSONDecoder().raw_decode


def _written_again(text: str) -> tuple[tuple[str, ...], str, bool] | None:
    """Do the same quicker: what gives the same text has each field once, and the right fingerprint."""
    try:
        if text.isascii():
            return _spelled_again(text, _plain_decode, _plain_encode)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    try:
        return _spelled_again(text, _decode, _canonical)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None  # the slower way says what is wrong


def _spelled_again(
    text: str, decode: Callable[[str], tuple[Any, int]], spell: Callable[[Any], str]
) -> tuple[tuple[str, ...], str, bool] | None:
    payload, _ = decode(f'{{"action_id":""{text}')
    capability, first = _quoted_and_digest(payload["capability"])
    instruction, second = _quoted_and_digest(payload["instruction"])
    performer, fourth = _quoted_and_digest(payload["performer"])
    wanted, precondition = spell(payload["payload"]), spell(payload["precondition"])
    made = (first, second, _sha256(wanted), fourth, _sha256(precondition))
    rest = (instruction, wanted, performer, precondition, _quoted(payload["rules"]))
    same = text == REQUEST % (capability, _sha256(UNSIGNED % made), *made, *rest)
    return (made, payload["rules"], True) if same and wanted[0] == "{" else None


@lru_cache(maxsize=1024)
def _quoted_and_digest(text: str) -> tuple[str, str]:
    return _quoted(text), _sha256(_quoted(text))


def _fingerprint(dimensions: tuple[str, ...], kind: str) -> dict[str, Any]:
    named = dict(zip(DIMENSIONS[kind], dimensions, strict=False))
    unsigned = {"version": VERSIONS[kind], "dimensions": named}
    return unsigned | {"digest": _sha256(_canonical(unsigned))}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> str:
    """Give the RFC 8785 form of a parsed value; ValueError for what has none."""
    kind = type(value)
    if kind is str:
        return str(_quoted(value))
    if kind is dict:
        ascii_only = all(map(str.isascii, value))
        keys = sorted(value) if ascii_only else sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join([f"{_quoted(key)}:{_canonical(value[key])}" for key in keys]) + "}"
    if kind is list:
        return "[" + ",".join(map(_canonical, value)) + "]"
    if kind is bool or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if abs(value) > 2**53 - 1:
        raise ValueError("beyond 2^53 - 1")
    if value == int(value):
        return str(int(value))
    # Python finds the same shortest digits as ECMAScript, and lays them out differently below 1e-4.
    return format(Decimal(repr(value)), "f") if abs(value) >= 1e-6 else re.sub(r"e-0*", "e-", repr(value))


def _unquoted(text: str) -> str:
    return text[1:-1] if "\\" not in text else str(json.loads(text))


# --- step 6: the world -------------------------------------------------------------------------------------


def _world(root: str, digests: Mapping[str, str], ledger: _Ledger, found: _Findings) -> None:
    """Hold each case's receipts against its markers, and against what the ledger allows."""
    cases = {_unquoted(run).partition("/")[2]: case for run, case in ledger.cases.items()}
    markers: dict[str, set[str]] = {name: set() for name in cases}
    for path in digests:
        if path.startswith("data/world/"):
            _, _, name, *rest = path.split("/")
            markers.setdefault(name, set()).update(rest[1:])
    for name, left in markers.items():
        case = cases.get(name, _Case(""))
        _receipts(root, f"data/world/{name}", case, left, digests, ledger, found)
        for marker in sorted(left):
            found.add("receipt-missing", f"data/world/{name}/markers/{marker}", "no receipt names it")
    for request in ledger.requests.values():
        low, high = request.bounds
        if not low <= request.receipts <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            message = f"the ledger allows {allowed} effects, the world shows {request.receipts}"
            found.add("effects-outside-bounds", f"{request.case.run} {request.stream}", message)


def _receipts(
    root: str, folder: str, case: _Case, left: set[str], digests: Mapping[str, str], ledger: _Ledger,
    found: _Findings,
) -> None:  # fmt: skip
    """Read the receipts of one case, and take the markers that they name out of `left`."""
    path = f"{folder}/receipts.jsonl"
    if path not in digests:
        return found.add("missing-file", path, "a case without effects has an empty one")
    seen: set[str] = set()
    for n, raw in enumerate(_read(root, path).splitlines(keepends=True), 1):
        where = f"{path} line {n}"
        receipt = RECEIPT.fullmatch(raw.decode("utf-8", "replace"))
        if receipt is None or receipt[4] != str(n):
            found.add("receipt-shape", where, "not a receipt: its fields, types, form or n differ")
            continue
        action, effect, name, _ = receipt.groups()
        marker = digests.get(f"{folder}/markers/{name}")
        if marker is None:
            found.add("marker-missing", where, "the marker that it names is not there")
        elif name not in left:
            found.add("marker-shared", where, "the marker that it names belongs to an earlier receipt")
        elif marker != effect:
            found.add("marker-differs", where, "its effect is not the SHA-256 of the marker")
        left.discard(name)
        request = ledger.requests.get(action)
        if request is None or request.call or request.case is not case:
            found.add("receipt-unknown-action", where, "it names no action of this case")
        else:
            request.receipts += 1
            request.duplicate |= effect in seen
        seen.add(effect)
        case.receipts += 1
    return None


# --- step 7: the results -----------------------------------------------------------------------------------


def _row(case: _Case) -> dict[str, Any]:
    """Work the row of a case out from ledger and world."""
    bounds = [request.bounds for request in case.requests]
    return {
        "requests": len(case.requests),
        "statuses": [request.status for request in case.requests],
        "reused_from": [request.reused_from and _unquoted(request.reused_from) for request in case.requests],
        "effects_ledger": [sum(low for low, _ in bounds), sum(high for _, high in bounds)],
        "effects_world": case.receipts,
        "effects_summary": case.receipts,
        "labels": [request.label for request in case.requests],
        "event_kinds": case.kinds,
        "provider_calls": case.provider_calls,
    }


def _compare_results(
    results: dict[str, Any], truths: Mapping[str, dict[str, Any]], ledger: _Ledger, found: _Findings
) -> dict[str, Any]:
    """Compare each row with the one worked out; give what the protocol is compared with."""
    if not results:
        return {}
    lesson, revision = results["lesson"], results["revision"]
    if {request.rules for request in ledger.requests.values()} - {revision}:
        found.add("revision-differs", RESULTS, "the ledger's requests were asked under other rules")
    runs = {_quoted(f"{lesson}/{row['case']}"): row for row in results["rows"]}
    if len(runs) != len(results["rows"]) or runs.keys() != ledger.cases.keys():
        found.add("cases-differ", RESULTS, "its cases are not those of the ledger")
    for run, row in runs.items():
        case, where = ledger.cases.get(run, _Case(run)), f"{RESULTS} case {row['case']!a}"
        truth = {"revision": revision, **(truths.get(run) or _row(case))}
        for name, value in truth.items():
            if row[name] == value:
                continue
            if name == "event_kinds" and row[name][: len(value)] == value:
                found.add("tail-missing", where, "its event_kinds go on where the ledger ends")
            else:
                code = f"row-{name.replace('_', '-')}"
                found.add(code, where, f"its {name} is not what ledger and world show")
        pairs = zip(row["raised"], case.requests, strict=False)
        wrong = [  # only an orphan's exception cannot be known from the ledger
            (name == "IdempotencyConflictError") != request.conflict
            or (name is not None and request.status is not None)
            for name, request in pairs
        ]
        if len(row["raised"]) != len(case.requests) or any(wrong):
            found.add("row-raised", where, "its raised is not what the ledger shows")
    raised = {run: row["raised"] for run, row in runs.items()}
    return {"lesson": lesson, "revision": revision, "raised": raised}


# --- step 8: the protocol ----------------------------------------------------------------------------------


def _compare_protocol(
    protocol: dict[str, Any], said: dict[str, Any], truths: Mapping[str, dict[str, Any]], ledger: _Ledger,
    found: _Findings,
) -> None:  # fmt: skip
    """Compare what was planned and expected with what ledger, world and results show."""
    if not protocol or not said:
        return
    if (protocol["lesson"], protocol["revision"]) != (said["lesson"], said["revision"]):
        found.add("revision-differs", PROTOCOL, "its lesson or rules are not those of the results")
    if protocol["ledger_id"] != ledger.ledger_id:
        found.add("ledger-id-differs", PROTOCOL, "it names another ledger")
    runs = [_quoted(f"{protocol['lesson']}/{plan['case']}") for plan in protocol["cases"]]
    if runs != [*said["raised"]]:
        found.add("cases-differ", PROTOCOL, "its cases are not those of the results, in their order")
    for run, plan in zip(runs, protocol["cases"], strict=True):
        if run not in said["raised"]:
            continue
        case, where = ledger.cases.get(run, _Case(run)), f"{PROTOCOL} case {plan['case']!a}"
        seen = (truths.get(run) or _row(case)) | {"raised": said["raised"][run]}
        planned, expected = plan["requests"], plan["expected"]
        asked: Iterable[dict[str, Any]] = (
            {"id": _unquoted(one.stream), "kind": "call" if one.call else "action", "key": _unquoted(one.key)}
            for one in case.requests
        )
        if plan["marked"]:  # the order of threads and processes is nobody's promise
            asked, planned = sorted(asked, key=_dump), sorted(planned, key=_dump)
            allowed = all(status in expected["statuses"] for status in seen["statuses"])
            seen = {**expected, "requests": seen["requests"], "effects_world": seen["effects_world"]}
            seen["statuses"] = expected["statuses"] if allowed else None
        if len(planned) != len(case.requests) or any(map(operator.ne, asked, planned)):
            found.add("requests-differ", where, "the requests in the ledger are not those that were planned")
        for name, value in expected.items():
            if seen[name] != value:
                found.add(f"expected-{name.replace('_', '-')}", where, f"its {name} is not what was expected")


# --- the command -------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from a command line; give the exit status."""
    parser = argparse.ArgumentParser(prog="verify.py", description="Judge a bundle, trusting nothing in it.")
    parser.add_argument("bundle", help="the folder that holds bagit.txt")
    parser.add_argument("--expect", metavar="DIGEST", help=f"SHA-256 of {TAGMANIFEST}, known from outside")
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
            line = f"{finding.code}: {finding.where}: {finding.message}"
            print(line.encode("ascii", "backslashreplace").decode())
        print(f"valid: {'yes' if report.valid else 'no'}")
        print(f"complete: {report.complete}")
    return 0 if report.valid else 1


if __name__ == "__main__":
    sys.exit(main())
