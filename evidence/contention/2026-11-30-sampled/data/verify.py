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
  6. the world           receipts and markers one to one, each within what the ledger allows for its request
  7. the results         the rows of results.json against those that ledger and world give
  8. the protocol        the requests and expectations of protocol.json, fixed before the run, likewise

A row has one of these forms (`FORMS`, at step 7, is where another is added):
  actions  what came of each request of a case, and how many effects ledger, world and summary count
  work     how far a chain of work and call had come when its process died, and what the next process did
  samples  statistics of a simulation. A quantity Q of a case is recorded by one event `sample.recorded` of
           the run LESSON/CASE, {"case", "quantity", "values": [numbers]} or {"case", "quantity", "counts":
           {"number": how often}}. The fields `Q_mean` (or just `Q`) and `Q_sd` (divided by n - 1) give its
           statistics, as a number or as {"closed_form", "sampled", "se"}, within 1e-9 of their size. The
           standard error is sd / sqrt(n) of a mean, and sqrt((m4 - sd^4) / n) / (2 sd) of a deviation, with
           m4 the fourth central moment; of a single value all but the mean is null. What else such a row
           says is not checked: parameters, closed forms.
  film     what a recovery kept, repeated, spent and changed, counted from the events of one trajectory; its
           policy is the name of its case. The protocol expects the whole row

Always true:
  V1. If step 1 or 2 finds anything, no payload byte is read. Nothing outside the bundle is ever opened.
  V2. Whatever the bytes, the answer is findings, never a traceback. Nothing is written.
  V3. The ledger and the two long documents are read in pieces, and what is kept grows with the keys. Of a
      request that decides nothing, a replay or a refusal, it is the name and some bytes, of an event a
      byte, its kind; of a trajectory what its calls answered. Where requests come from threads, the names
      of a case are sorted, and who asks for one that was let go has all of them looked through.
  V4. Findings name places, ids, dimensions and digests, never another recorded value.

Not checked: completeness without --expect; a success forged for a failure whose effect the world shows, when
chain, results and digests are all rewritten (only --expect catches it); who wrote the bundle, when and where;
clock readings; that event ids differ between streams; what a
trajectory's calls ask and what a tool answers, why a candidate was refused, and how often a trajectory may
try again by itself; the canonical form of payloads, but for an action's request; references to effect systems
other than the world in the bundle; hard links; what README.md and notebook.ipynb say.

It is longer than a module should be because it has to be one file; the steps can be read one at a time.
"""

from __future__ import annotations

import argparse
import base64
import codecs
import gc
import hashlib
import heapq
import json
import math
import os
import re
import stat
import sys
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import lru_cache
from io import RawIOBase
from itertools import chain, islice, pairwise, repeat
from json.encoder import encode_basestring as _quoted
from operator import attrgetter
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
BLOCK = 2**17  # bytes that are read at once
LISTED_OF_EACH_CODE = 20

# A shape is a type (`object` is any), a word, a tuple of choices, a list of one shape, or a dict of exactly
# these keys, or of any keys where its key is `str`.
FILM_ROW = {
    "policy": ("restart", "resume", "fallback", "none"), "verified_kept": [str], "repeated_calls": int,
    "additional_calls": int, "skipped_calls": int, "provenance_changed": bool, "source_of_second_film": str,
    "recommendation": str, "timeout_in_record": bool,
}  # fmt: skip
PLAN_OF_A_CASE = {
    "case": str, "question": str, "marked": [("threads", "processes")], "requests": list,
    "expected": (FILM_ROW, {"requests": int, "statuses": list, "reused_from": list, "raised": list,
                            "effects_world": int}),
}  # fmt: skip
# What the three documents look like. Their rows are read and judged one at a time, by forms of their own.
DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    PROTOCOL: ("codeai-lab-protocol-v1", {
        "format": str, "ledger_id": str, "lesson": str, "revision": str, "seed": (int, str), "cases": list,
    }),
    RESULTS: ("codeai-lab-results-v1", {
        "format": str, "lesson": str, "producer": {"name": str, "version": str}, "revision": str,
        "rows": list,
    }),
    ENVIRONMENT: ("codeai-lab-environment-v1", {
        "format": str, "implementation": str, "machine": str, "packages": dict, "platform": str,
        "python": str,
    }),
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
    _World(root, digests, ledger, found).check()

    # Step 7: the results, and what else is a document.
    truths = {_case_of(run): _facts(case) for run, case in ledger.cases.items()}
    _document(root, ENVIRONMENT, found)
    said = _compare_results(root, truths, ledger, found)

    # Step 8: the protocol.
    _compare_protocol(root, said, truths, ledger, found)


class _Findings:
    """Collects findings; of each code the first few are listed and the rest is counted."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.count: Counter[str] = Counter()

    def add(self, code: str, where: str, message: str) -> None:
        self.count[code] += 1
        if self.count[code] <= LISTED_OF_EACH_CODE:
            self.kept.append(Finding(code, where, message))

    def take(self, other: _Findings) -> None:
        self.kept += other.kept
        self.count += other.count

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
                status = entry.stat(follow_symlinks=False) if os.name == "nt" else None
                if entry.is_symlink() or getattr(status, "st_reparse_tag", 0) == 0xA0000003:  # a junction
                    found.add("link", ascii(path), "a link")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                elif entry.is_file(follow_symlinks=False):
                    files.add(path)
                else:
                    found.add("special-file", ascii(path), "a device, pipe or socket")
    return files


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


def _document(
    root: str, path: str, found: _Findings, *, rows: str = "", row: Callable[[_Pieces], str] = lambda _: ""
) -> dict[str, Any]:
    """Read a document; empty when it is not what it should be.

    `row` reads each item of its list `rows`, and says what shape that lacks; of another version it may.
    """
    name, shape = DOCUMENTS[path]
    value: dict[str, Any] = {}
    try:
        with os.fdopen(_open(root, path), "rb", 0) as file:
            pieces = _Pieces(file)
            if pieces.next() != "{":
                pieces.value()
                pieces.end()
                raise _Refused("document-shape", "it is not an object")
            for key in pieces.fields():
                listed = key == rows and pieces.next() == "["
                value[key] = [row(pieces) for _ in pieces.places()] if listed else pieces.value()
            pieces.end()
        if isinstance(value.get("format"), str) and value["format"] != name:
            raise _Refused("unknown-version", f"its format is not {name}: verify it with what wrote it")
        fits = _shaped(value, shape)
        lacks = next(filter(None, value[rows] if fits and rows else ()), "")
        if not fits or lacks:
            raise _Refused("document-shape", lacks or f"it does not have the fields and types of {name}")
    except _Refused as refused:
        found.add(refused.code, path, str(refused))
        return {}
    return value


class _Pieces:
    """A JSON document that is read in pieces, as strictly as `_parse` reads a text: only one piece is kept.

    Whoever iterates over fields or places reads the value at each before asking for the next.
    """

    def __init__(self, file: RawIOBase) -> None:
        self.file, self.decode = file, codecs.getincrementaldecoder("utf-8")().decode
        self.text, self.at, self.quick = "", 0, True
        while not self.text and self.more():
            pass  # a block may end within the first character
        if self.text[:1] in ("\ufeff", " ", "\t", "\n", "\r"):
            _parse(self.text)  # which says what is wrong with such a beginning

    def more(self) -> bool:
        """Read on, by as much again as is at hand when that is much; False at the end of the file."""
        block = self.file.read(max(BLOCK, len(self.text) - self.at)) or b""
        try:
            self.text, self.at = self.text[self.at :] + self.decode(block, not block), 0
        except UnicodeDecodeError:
            raise _Refused("not-utf8", "not valid UTF-8") from None
        self.quick = True
        return bool(block)

    def next(self) -> str:
        """Give the next character that is no white space, and stay there; empty at the end."""
        while True:
            if spaces := _spaces(self.text, self.at):
                self.at = spaces.end()
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def take(self, *characters: str) -> str:
        if (character := self.next()) not in characters:
            raise _Refused("not-json", "not JSON")
        self.at += 1
        return character

    def value(self) -> Any:
        """Read a value whole."""
        self.next()
        while True:
            try:
                value, end = _strict_decode(self.text, self.at)
            except _Refused:
                raise
            except (ValueError, RecursionError):  # perhaps only because it goes on
                if not self.more():
                    raise _Refused("not-json", "not JSON") from None
                continue
            size = end - self.at
            if self.text[end : end + 1] not in _MORE_OF_A_NUMBER or not self.more():
                self.at += size
                return value

    def fields(self) -> Iterator[str]:
        """Give the keys of an object."""
        seen = set[str]()
        self.take("{")
        while self.next() != "}" or seen:
            key = self.value()
            if type(key) is not str:
                raise _Refused("not-json", "not JSON")
            if key in seen:
                raise _Refused("duplicate-key", "an object has one key twice")
            seen.add(key)
            self.take(":")
            yield key
            if self.take(",", "}") == "}":
                return
        self.take("}")

    def places(self) -> Iterator[None]:
        """Stand before each item of a list."""
        self.take("[")
        if self.next() == "]":
            self.take("]")
            return
        while True:
            yield None
            if self.take(",", "]") == "]":
                return

    def items(self) -> Iterator[list[Any]]:
        """Give the items of a list, as many at once as the text at hand has whole."""
        for _ in self.places():
            if many := self.many() if self.quick else []:
                yield many
            else:  # no end of an item was found: they are read singly, then, up to the next block
                self.quick = False
                yield [self.value()]

    def many(self) -> list[Any]:
        """Read the items up to the last comma at hand, or to the end of the list; none where that is none."""
        comma, more = ("},", 1) if self.next() == "{" else (",", 0)
        end = self.text.find("]", self.at)
        end = end if end >= 0 else self.text.rfind(comma, self.at) + more
        piece = f"[{self.text[self.at : max(self.at, end)]}]"
        try:
            items, used = _quick_decode(piece)
        except _Refused:
            raise
        except (ValueError, RecursionError):
            return []
        # As many keys as the text may have: none stood there twice.
        keys = len(_may_be_keys(piece)) if "{" in piece else 0
        once = sum(len(item) for item in items if type(item) is dict) == keys
        if not items or used < len(piece) or not once:
            return []
        self.at = end
        return list(items)

    def row(self, due: Callable[[Row, str], Any], around: Row | None = None) -> Any:
        """Read a row. `due` says, by what was read of it and by a field's name, what a list should be."""
        if self.next() != "{":
            return self.value()
        read: Row = {}
        for key in self.fields():
            if self.next() == "{" and around is None:
                read[key] = self.row(due, read)
            else:
                read[key] = self.held(due(read if around is None else around, key))
        return read

    def held(self, due: Any) -> Any:
        """Read a value; a list that does not end in this block is held against what it should be."""
        if not isinstance(due, (_Long, _Column)) or self.next() != "[":
            return self.value()
        batches = self.items()
        first, second = next(batches, []), next(batches, None)
        return first if second is None else _Long(chain((first, second), batches), due)

    def end(self) -> None:
        while len(self.text) - self.at < 2 and self.more():
            pass
        if self.text[self.at :] not in ("", "\n"):
            raise _Refused("not-json", "more than one JSON value")


class _Long:
    """A long list, kept as what in it differs from the list that it should be, which holds no number."""

    def __init__(self, batches: Iterable[list[Any]], due: Iterable[Any]) -> None:
        self.due, self.size, self.other, wanted = due, 0, dict[int, Any](), iter(due)
        for batch in batches:
            if batch != (here := [*islice(wanted, len(batch))]):
                both = enumerate(zip(batch, chain(here, repeat(_Long)), strict=False), self.size)
                self.other |= {place: said for place, (said, truth) in both if said != truth}
            self.size += len(batch)
        self.same = not self.other and next(wanted, _Long) is _Long

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        due: Iterator[Any] = chain(self.due, repeat(None))
        if self.other:
            due = (self.other.get(place, truth) for place, truth in enumerate(due))
        return islice(due, self.size)


class _Column:
    """A list that is made anew whenever it is gone through, so that a long one takes no memory."""

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return iter(self.make())


def _others(said: Any, truth: _Column) -> dict[int, Any]:
    """Give what in a list differs from what it should be, by its place, as far as there should be any."""
    if isinstance(said, _Long) and said.due is truth:
        return said.other
    both = enumerate(zip(said, truth, strict=False))
    return {place: one for place, (one, other) in both if one != other}


def _is(said: Any, truth: Any) -> bool:
    """Say whether a value of a document is what it should be."""
    if said is truth or (isinstance(said, _Long) and said.due is truth):
        return said is truth or bool(said.same)
    if isinstance(truth, (list, _Long, _Column)):
        return isinstance(said, (list, _Long)) and [*said] == [*truth]
    return bool(said == truth)


def _shaped(value: Any, shape: Any) -> bool:
    kind = type(shape)
    if kind is type:
        return shape is object or type(value) is shape or (shape is list and type(value) is _Long)
    if kind is dict:
        if str in shape:  # any keys
            return type(value) is dict and all(_shaped(item, shape[str]) for item in value.values())
        fits = type(value) is dict and value.keys() == shape.keys()
        return fits and all(_shaped(value[key], shape[key]) for key in shape)
    if kind is list:
        return type(value) is list and all(_shaped(item, shape[0]) for item in value)
    if kind is tuple:
        return type(value) in shape or any(_shaped(value, choice) for choice in shape)
    return type(value) is str and bool(value == shape)


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


_MORE_OF_A_NUMBER = ("", ".", "e", "E")
_may_be_keys = re.compile(r'"[ \t\n\r]*+:').findall
_spaces = re.compile(r"[ \t\n\r]*+").match
_strict_decode = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite
).raw_decode
_quick_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).raw_decode
_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


# --- step 5: the ledger: what it may hold ------------------------------------------------------------------

ASKED, CLAIMED, STARTED = "action.requested", "action.claimed", "action.execution_started"
COMPLETED, REFUSED, LATE = "action.completed", "action.replay_refused", "action.completed_late"
JUDGED, CALL_JUDGED = "action.reconciled", "call.reconciled"
NOT_JUDGED = ("action.reconcile_refused", "call.reconcile_refused")
CALLED, SENT, TRIED, OBSERVED = "call.requested", "call.manifest", "attempt.started", "attempt.observed"
CALL_COMPLETED, CALL_REFUSED, RESUMED = "call.completed", "call.replay_refused", "call.resumed"
READ, NOT_RETRIED = "attempt.interpreted", "attempt.retry_decided"
ATTEMPT_OVER, STATUS_DECIDED = "attempt.completed", "call.status_decided"
OPENED, TASK, OFFERED = "directive.opened", "task.created", "context.item_offered"
COMPILING, COMPILED = "context.compilation_requested", "context.compiled"
NOT_COMPILED = "context.compilation_failed"
SAMPLE = "sample.recorded"
BEGUN, SAVED, ANSWERED = "trajectory.started", "checkpoint.committed", "trajectory.completed"
MADE, SUCCEEDED, FAILED, RECOVERY = "call.started", "call.succeeded", "call.failed", "recovery.started"
ACCEPTED, DETOUR = "validation.decided", "fallback.used"
CLOCK = re.compile(r'"recorded_at_us":\d+')
PLAN = "plan"  # the node that the call for the plan serves
TRIED_AGAIN = {FAILED, "step.retried", "query.repaired", "discovery.reopened"}
PAUSED = "none; the trajectory is paused"  # what a trajectory recommends that was not completed

# Which kind may follow which in the history of one request, and as which place of which batch ("" is any).
_CALLS = {
    ("", CALLED): "", (CALLED, SENT): "", (SENT, TRIED): "", (TRIED, OBSERVED): "",
    (OBSERVED, TRIED): "", **{(kind, CALL_COMPLETED): "" for kind in (CALLED, SENT, TRIED, OBSERVED)},
    (TRIED, CALL_JUDGED): "1,1", (CALL_JUDGED, CALL_JUDGED): "1,1", (CALL_JUDGED, OBSERVED): "",
}  # fmt: skip
_VERDICTS = {(kind, JUDGED): "1,1" for kind in (STARTED, COMPLETED, JUDGED, LATE)} | {(JUDGED, LATE): "1,1"}
_OLDEST = _CALLS | _VERDICTS | {("", ASKED): "1,1", (ASKED, COMPLETED): "1,1", (ASKED, JUDGED): "1,1"}
_OLDER = _OLDEST | {(ASKED, REFUSED): "1,1"}
_A_CALL_OF_A_WORK = (
    CALLED, SENT, TRIED, OBSERVED, READ, NOT_RETRIED, ATTEMPT_OVER, STATUS_DECIDED, CALL_COMPLETED,
)  # fmt: skip
ORDER = {
    "7a0d43b": _OLDEST,
    "a1b562a": _OLDER,
    "1b3c7a2": _OLDER,
    "88d1291": _OLDER | {(ASKED, STARTED): "1,1", (STARTED, COMPLETED): "1,1"},
    "lab": _CALLS | _VERDICTS | {
        ("", ASKED): "1,2 or 1,3", (ASKED, CLAIMED): "2,3", (CLAIMED, STARTED): "3,3",
        (STARTED, COMPLETED): "1,1", (ASKED, COMPLETED): "2,2", (ASKED, REFUSED): "2,2",
        (CALLED, CALL_REFUSED): "",
    },
    "a call of a work": dict.fromkeys(pairwise(_A_CALL_OF_A_WORK), "1,1") | {
        ("", CALLED): "1,1 or 2,2", (CALLED, CALL_COMPLETED): "1,1", (CALLED, CALL_REFUSED): "1,1",
        (CALLED, RESUMED): "1,2", (SENT, RESUMED): "1,2", (SENT, CALL_COMPLETED): "1,1",
        (TRIED, CALL_JUDGED): "1,1", (CALL_JUDGED, CALL_JUDGED): "1,1", (CALL_JUDGED, RESUMED): "1,2",
    },
    "a work": dict.fromkeys(
        [*pairwise(("", OPENED, TASK, OFFERED, COMPILING, COMPILED)), (COMPILING, NOT_COMPILED)], "1,1"
    ),
}  # fmt: skip
RULES = ORDER.keys() - {"a call of a work", "a work"}
OLDER, COMPARE = RULES - {"lab"}, RULES - {"7a0d43b"}
# Of rules that go by another name nothing is known but what any rules do.
ORDER["other rules"] = dict.fromkeys(ORDER["lab"] | ORDER["88d1291"], "")
# The same, by what came last: rules -> last kind -> next kind -> place.
NEXT = {
    rules: {
        last: {kind: place for (before, kind), place in pairs.items() if before == last}
        for last in {"", *(kind for _, kind in pairs)}
    }
    for rules, pairs in ORDER.items()
}
RECORD_STARTS = ("88d1291", "lab")  # of those that do not say it in the request
SAYS_STARTS = ',"records_starts":'
SAID = (SAYS_STARTS + "true", SAYS_STARTS + "false")
# (status, was an effect possible) of a completion -> the codes that its error may have; None is no error.
ERRORS: dict[tuple[str | None, bool], tuple[str | None, ...]] = {
    ("succeeded", True): (None, "output-not-recordable"),
    ("failed", True): ("adapter-raised", "adapter-not-driven"),
    ("failed", False): ("precondition-drift", "precondition-unreadable"),
    ("denied", False): ("not-authorised",),
}
REFUSED_STATUS = {"identity-conflict": None, "effect-unknown": "refused", "in-progress": "in_progress"}
# What a verdict leaves of the bounds on the number of effects; None leaves them as they were.
VERDICTS = {"effect_confirmed": (1, 1), "no_effect_confirmed": (0, 0), "still_unknown": None}
CONFIRMED = '"error":null,"observed":null,"output":null,'  # what a replay returns where nothing was completed

# A line in canonical form, but for its payload: what fits needs no second look at its fields and their types.
_PLAIN = r'"[^"\\\x00-\x1f]*+"'
_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|u00(?:0[0-7be-f]|1[0-9a-f]))[^"\\\x00-\x1f]*+)*+"'
_WHOLE = r"(?:0|[1-9][0-9]{0,15})"


def _event(text: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(
        rf'\{{"actor_id":({text}),"batch":\[([1-9][0-9]{{0,8}},[1-9][0-9]{{0,8}})\],'
        rf'"causation_id":(null|{text}),"event_id":({text}),"idempotency_key":(null|{text}),'
        rf'"kind":"([a-z_.]+)","payload":\{{(?:"action_id":({text}))?(.*\}}),"prev":"([^"]*)",'
        rf'"recorded_at_us":{_WHOLE},"run_id":({text}),"seq":({_WHOLE}),"stream_id":({text})\}}'
    ).fullmatch


PLAIN_EVENT, EVENT = _event(_PLAIN), _event(_TEXT)  # the first is quicker, and nearly always enough
# The rest of a completion: what it says about its action, and around that what a replay has of its own.
COMPLETION = re.compile(
    rf',"effect_possible":(true|false),("error":.*,)"reused_from_action_id":(null|{_TEXT}),'
    r'"status":"(succeeded|failed|denied|reconciled)"\}'
).fullmatch
# The rest of an action's request, with the five digests of its fingerprint.
_HEX = "([0-9a-f]{64})"
UNSIGNED = (
    '{"dimensions":{"capability":"%s","instruction":"%s","payload":"%s","performer":"%s",'
    '"precondition":"%s"},"version":"action-fingerprint-v1"}'
)
_SIGNED = re.escape(UNSIGNED[1:]).replace("%s", _HEX)
REQUEST = re.compile(
    rf',"capability":({_TEXT}),"fingerprint":\{{"digest":"{_HEX}",{_SIGNED},"instruction":({_TEXT}),'
    rf'"payload":(\{{.*\}}),"performer":({_TEXT}),"precondition":(.*),'
    rf'"rules":({_TEXT})\}}'
).fullmatch
# A number, a word, or an object of such: canonical when its keys are in order. ASCII sorts as UTF-16 does.
_SCALAR = r'(?:"[ !#-\[\]-~]*+"|0|-?[1-9][0-9]{0,14}|null|true|false)'
FLAT = re.compile(rf'{_SCALAR}|\{{(?:"[ !#-\[\]-~]*+":{_SCALAR}(?:,(?=")|(?=\}})))*+\}}').fullmatch
KEYS = re.compile(r'("[^"]*+"):').findall
RECEIPT = re.compile(
    rf'\{{"action_id":(?P<action>{_TEXT}),"effect":"(?P<effect>[0-9a-f]{{64}})",'
    rf'"marker":"(?P<marker>[0-9A-Za-z_][0-9A-Za-z_.-]*)","n":(?P<n>{_WHOLE})\}}\n'
).fullmatch
PROVIDED = re.compile(
    rf'\{{"key":(?P<key>{_TEXT}),"n":(?P<n>{_WHOLE}),"request_body_hash":"(?P<hash>[0-9a-f]{{64}})"\}}\n'
).fullmatch

# Fields and types of payloads, sorted as in canonical JSON; those with a ? may be missing.
_MAYBE_TEXT, _MAYBE_OBJECT = (str, type(None)), (dict, type(None))
_CONTENT = {"error": _MAYBE_OBJECT, "observed": _MAYBE_OBJECT, "output": object}
_REFUSAL = {"dimensions": list, "fingerprint_version": str, "idempotency_key": str}
_OUTCOME = {"action_id": str, "effect_possible": bool, **_CONTENT, "reused_from_action_id": _MAYBE_TEXT,
            "status": str}  # fmt: skip
PAYLOADS: dict[str, dict[str, Any]] = {
    ASKED: {"action_id": str, "capability": str, "fingerprint": dict, "instruction": str, "payload": dict,
            "performer": str, "precondition": object, "records_starts?": bool, "rules": str},
    CLAIMED: {"action_id": str},
    STARTED: {"action_id": str},
    COMPLETED: _OUTCOME,
    LATE: _OUTCOME,
    "content": _CONTENT,
    REFUSED: {"action_id": str, **_REFUSAL, "original_action_id": str, "reason": str},
    JUDGED: {"action_id": str, "evidence": list, "verdict": str},
    NOT_JUDGED[0]: {"action_id": str, "reason": str},
    CALL_JUDGED: {"call_id": str, "evidence": list, "verdict": str},
    NOT_JUDGED[1]: {"call_id": str, "reason": str},
    CALLED: {"call_id": str, "chamber": str, "context": dict, "fingerprint": dict, "prompt": str,
             "requested_model": str, "rules": str},
    SENT: {"call_id": str, "fingerprint": dict},
    SENT + " of a work": {"call_id": str, "fingerprint": dict, "request_body_hash": str},
    TRIED: {"attempt": int, "call_id": str},
    OBSERVED: {"attempt": int, "call_id": str, "response": object},
    READ: {"attempt": int, "call_id": str, "error": _MAYBE_TEXT, "response": object, "status": str},
    NOT_RETRIED: {"attempt": int, "call_id": str, "retry": bool},
    ATTEMPT_OVER: {"attempt": int, "call_id": str, "status": str},
    STATUS_DECIDED: {"call_id": str, "status": str},
    CALL_COMPLETED: {"call_id": str, "error?": dict, "original_call_id": _MAYBE_TEXT, "replayed": bool,
                     "response": object, "status": str},
    CALL_REFUSED: {"call_id": str, **_REFUSAL, "original_call_id": str, "reason": str},
    RESUMED: {"call_id": str, "new_call_id": str, "request_body_hash": str, "stage": str},
    OPENED: {"directive": str, "work_id": str},
    TASK: {"prompt": str, "required": list, "work_id": str},
    OFFERED: {"content": object, "name": str, "work_id": str},
    COMPILING: {"offered": list, "work_id": str},
    COMPILED: {"context": dict, "work_id": str},
    NOT_COMPILED: {"missing": list, "work_id": str},
}  # fmt: skip
# The same of a trajectory. A checkpoint has no shape: it is compared with what it should be.
_ROLE, _NUMBER = ("plan", "search", "fetch", "quote", "compare"), (int, float)
_ROUTE = {"arguments": dict, "provider": str, "tool": str}
_PROPOSAL = {"arguments": dict, "node": str, "provider": str, "role": _ROLE, "tool": str}
_ERROR = {"class": ("transient", "input", "unknown"), "code": str, "definite": bool, "message": str}
_LEAST = ({"method": str, "minimum": _NUMBER, "provider": str}, type(None))
_SOUGHT = {"about": [str], "node": str, "query": str, "rewritten": str, "title": _MAYBE_TEXT}
_FOUND = {"film_id": str, "node": str, "reason": str, "source_id": str}
TRAJECTORY: dict[str, dict[str, Any]] = {
    BEGUN: {
        "limits": {"acceptance": {str: _NUMBER}, "asks": bool, "standby": {str: str}} | dict.fromkeys(
            ("calls", "call_retries", "other_routes", "repairs", "step_retries", "switches"), int),
        "request": {"approvals": list, "constraints": [str], "criterion": {"name": str, "terms": [str]},
                    "goal": str, "performer": str, "request_id": str, "sought": [_SOUGHT]},
        "trajectory_id": str},
    SAVED: {},
    MADE: {"arguments": dict, "attempt": int, "call_id": str, "node": str, "provider": str, "role": _ROLE,
           "tool": str},
    SUCCEEDED: {"call_id": str, "result": object},
    FAILED: {"call_id": str, "error": _ERROR},
    ACCEPTED: {"acceptance": _LEAST, "accepted": bool, "call_ids": [str], "field": _MAYBE_TEXT,
               "film_id": _MAYBE_TEXT, "node": str, "reason": _MAYBE_TEXT},
    "discovery.reopened": {"film_id": str, "node": str, "reason": str},
    "proposal.rejected": {"proposal": _PROPOSAL, "reason": (
        "repeats-verified-branch", "serves-no-open-node", "exceeds-budget", "breaks-dependency",
        "repeats-refused-input", "not-permitted")},
    RECOVERY: {"discards": [int], "failed_call_id": str, "from_version": int, "keeps": [str],
               "original_error": _ERROR, "policy": ("restart", "resume", "fallback")},
    DETOUR: {"acceptance_threshold": {"new": _LEAST, "old": _LEAST}, "new": _ROUTE, "node": str,
             "old": _ROUTE, "original_error": (_ERROR, type(None)), "role": _ROLE, "rule": str},
    "step.retried": {"failed_call_id": str, "node": str},
    "query.repaired": {"failed_call_id": str, "new": dict, "node": str, "old": dict, "repair": object},
    "node.unresolved": {"choices": [("other_route", "ask", "report_missing")], "node": str, "reason": str},
    "way.chosen": {"node": str, "query": _MAYBE_TEXT, "way": ("other_route", "ask", "report_missing")},
    "authority.asked": {"performer": str, "sources": [_FOUND | {"allowed": bool}]},
    "evidence.withheld": _FOUND,
    ANSWERED: {"comparison": object, "completion": str, "intended_write": object, "missing": list,
               "recommendation": str, "recommended_film": object, "scores": dict, "status": str},
}  # fmt: skip
PAYLOADS |= TRAJECTORY
_NODE = {"kind": ("film", "compare"), "needs": [str], "node": str} | _ROUTE
# What a tool answers, by the role of the call; the first and the last are judged, so they may be anything.
SAYS = {
    "plan": {"nodes": [_NODE]},
    "search": [{"film_id": str, "score": _NUMBER, "title": str}],
    "fetch": {"director": str, "film_id": str, "passages": [{"passage_id": str, "text": str}], "summary": str,
              "source_id": str, "themes": [str], "title": str, "year": int},
    "quote": {"passages": [str]},
    "compare": {"recommended": str, "text": str},
}  # fmt: skip
# Dimension of a fingerprint -> field of the recorded request, sorted as in canonical JSON.
DIMENSIONS = {
    ASKED: {name: name for name in ("capability", "instruction", "payload", "performer", "precondition")},
    CALLED: {"chamber": "chamber", "prompt_hash": "prompt", "rendered_context": "context",
             "requested_model": "requested_model"},
}  # fmt: skip
SAMPLES = (
    {"case": str, "quantity": str, "values": [(int, float)]},
    {"case": str, "quantity": str, "counts": dict},
)
MAY_LACK = (ASKED, CALL_COMPLETED)
BEGIN = {ASKED, CALLED, SAMPLE, *NEXT["a work"], *TRAJECTORY}  # may stand in a stream that had no request
KINDS = ["", *sorted({SAMPLE, *PAYLOADS, *(kind for kinds in NEXT.values() for kind in kinds)} - {""})]
CODES = {kind: place for place, kind in enumerate(KINDS)}  # a byte each
SORTED_AT_ONCE, IN_ONE_TEXT = 2**16, 2**10
VERSIONS = {ASKED: "action-fingerprint-v1", CALLED: "call-fingerprint-v1"}
CREATED = {
    "kind": "ledger.created", "ledger_id": str, "recorded_at_us": int, "schema_version": int, "seq": int,
}  # fmt: skip


# --- step 5: what is kept of it ----------------------------------------------------------------------------


Statistics = dict[str, tuple[float | None, float | None]]  # "mean" and "sd", each with its standard error


@dataclass(slots=True)
class _Case:
    """What one run recorded, as far as its row needs it."""

    run: str
    names: list[str] = field(default_factory=list)  # streams of its requests, a line each of long texts
    newest: list[str] = field(default_factory=list)  # those that follow
    requests: list[_Request] = field(default_factory=list)  # in the same order; one may stand for many
    kinds: bytearray = field(default_factory=bytearray)  # places in KINDS
    keys: set[str] = field(default_factory=set)
    provider_calls: int = 0
    receipts: int = 0
    trace: list[tuple[str, str, str]] = field(default_factory=list)  # actor, kind, stream of works and calls
    samples: dict[str, Statistics] = field(default_factory=dict)  # by quantity
    trajectories: list[_Trajectory] = field(default_factory=list)
    asked: _Column = field(init=False)  # the requests as a protocol names them

    def __post_init__(self) -> None:
        self.asked = _Column(lambda: _asked(self))

    def name(self, stream: str) -> None:
        """Note a name; as a line of a long text it takes half the memory of a text of its own."""
        self.newest.append(stream)
        if len(self.newest) == IN_ONE_TEXT:
            self.names.append("\n".join(self.newest))
            self.newest.clear()

    def named(self) -> Iterator[str]:
        return chain(chain.from_iterable(text.split("\n") for text in self.names), self.newest)


@dataclass(slots=True)
class _Work:
    """A directive, its task and its context, up to the call that it comes to."""

    run: str
    key: str
    last: str = ""
    last_id: str = "null"
    said: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Request:
    """What the ledger says of one action or call, as far as later events, the world and the rows need it."""

    stream: str  # this, the event id and the key are kept as JSON text
    event_id: str
    key: str
    case: _Case
    place: int  # among the requests of its case
    rules: str
    starts: bool  # whether these rules record every start
    call: bool
    words: str | bytes  # its payload without an action's id, in brief
    dimensions: tuple[str, ...]
    prior: _Request | None  # what had decided the key when this was asked
    retry: bool
    work: _Work | None  # of a call alone, like `body` and what follows it
    order: dict[str, dict[str, str]]
    last: str = ""  # the kind of its last event
    started: bool = False
    answer: str = ""  # "completed", or the reason of a refusal
    status: str | None = None
    reused_from: str | None = None
    entered: bool = False
    told: tuple[str, str | bytes] | None = None  # status and content, in brief, that a replay of it returns
    echo: _Request | None = None  # the newest replay of it that is kept
    verdict: str | None = None
    evidence: tuple[Any, ...] = ()
    duplicate: bool = False
    body: str = ""  # the SHA-256 of what a call of a work sends
    manifest: bool = False
    attempt: int = 0
    observed: int = 0
    reading: tuple[str | None, str, str | None] = (None, "", None)  # status, response and error of its answer

    @property
    def asking(self) -> str:
        return CALLED if self.call else ASKED

    @property
    def is_open(self) -> bool:
        """Whether it may have had an effect, or not: then there is something to reconcile."""
        if not self.call:
            return self.bounds == (0, 1)
        unsettled = self.verdict in (None, "still_unknown") and not self.answer
        return unsettled and self.attempt > self.observed

    @property
    def raised(self) -> str | None:
        """What a refused identity raises; the older rules leave no event behind when it is a call's."""
        if self.answer:
            return CONFLICT if self.answer == "identity-conflict" else None
        return CONFLICT if self.call and self.prior is not None else None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of effects that the record allows."""
        if self.call or self.reused_from is not None or self.answer in REFUSED_STATUS:
            return (0, 0)
        if self.verdict and (judged := VERDICTS[self.verdict]):
            return judged
        if not self.answer:
            return (0, int(self.started or not self.starts))
        return (1, 1) if self.status == "succeeded" else (0, int(self.entered))

    @property
    def label(self) -> str | None:
        if self.reused_from is not None or self.status == "denied":
            return "denied" if self.reused_from is None else "replay"
        if self.raised or self.answer in REFUSED_STATUS:
            return "unknown" if self.answer == "effect-unknown" else "refused"
        if self.duplicate or self.retry:
            return "duplicate" if self.duplicate else "retry"
        return "unknown" if self.bounds == (0, 1) else None


# --- step 5: one pass over its lines -----------------------------------------------------------------------


class _Ledger:
    """The lines in order: each in its place, and each as what may stand there."""

    def __init__(self, found: _Findings) -> None:
        self.found, self.line, self.digest = found, 0, hashlib.sha256()
        self.ledger_id = ""
        self.cases: dict[str, _Case] = {}  # by run
        self.requests: dict[str, _Request] = {}  # by stream
        self.decided: dict[bool, dict[str, _Request]] = {False: {}, True: {}}  # of actions, of calls; by key
        self.answered: dict[tuple[Any, ...], _Request] = {}  # what stands for all of which the same is kept
        self.let_go_by_name: dict[str, _Request] | None = None  # made when one is asked for
        self.hashes = array("q")  # of all names that were new
        self.causes = array("q")  # hashes of name and first event of requests that were let go
        self.causes_seen: tuple[int, frozenset[int]] = (0, frozenset())  # how many of them, made into a set
        self.rules: set[str] = set()
        self.works: dict[str, _Work] = {}  # by stream
        self.sampled: set[str] = set()  # streams of samples
        self.trajectories: dict[str, _Trajectory] = {}  # by stream
        # Event id -> what a call that it causes is of, how that is named, and dimensions that it has.
        self.intentions: dict[str, tuple[_Work | None, str | None, dict[str, str]]] = {}
        self.prev, self.seq, self.due, self.stream = "", 0, "", ""
        self.request: _Request | None = None  # whose event came last; mostly the next is its too
        self.latest = _Case("")

    def add(self, code: str, message: str) -> None:
        self.found.add(code, f"{LEDGER} line {self.line}", message)

    def read(self, file: RawIOBase) -> bool:
        """Read to the end; False when the ledger is of an unknown version, so that no event was judged."""
        plain, match, sha256, lines = PLAIN_EVENT, EVENT, hashlib.sha256, self.lines(file)
        first = next(lines, b"")
        known, self.prev = self.created(first), sha256(first).hexdigest()
        for line in lines:
            try:
                if known:
                    text = line.decode()
                    self.event(*(plain(text) or match(text) or _no_event(line)).groups())
            except _Refused as refused:
                self.add(refused.code, str(refused))
            except UnicodeDecodeError:
                self.add("not-utf8", "not valid UTF-8")
            self.prev = sha256(line).hexdigest()
        if self.due:
            self.add("batch-torn", f"the ledger ends where {self.due} of a batch was due")
        self.close()
        return known

    def lines(self, file: RawIOBase) -> Iterator[bytes]:
        """Give the lines without their newlines, and count them."""
        rest = b""
        while block := file.read(BLOCK):
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
        self, actor: str, batch: str, cause: str, event_id: str, key: str, kind: str, own_id: str | None,
        text: str, prev: str, run: str, seq: str, stream: str,
    ) -> None:  # fmt: skip
        # Its place: the chain, the sequence, the batch.
        number, due = int(seq), self.due
        if prev != self.prev:
            self.add("chain-broken", "its prev is not the SHA-256 of the line before")
        if number != self.seq + 1:
            self.add("sequence-broken", f"its seq does not follow {self.seq}")
        if (batch != due or stream != self.stream) if due else batch[:2] != "1,":
            self.add("batch-torn", f"{batch} of a batch stands where {due or 'a new one'} was due")
        request = self.request if stream == self.stream else self.requests.get(stream)
        if request is None and kind not in BEGIN:
            request = self.find(stream)
        self.seq, self.stream, self.request = number, stream, request
        self.due = "" if batch == "1,1" else _due_after(batch)

        # Its request, and its place in the history of that.
        if own_id != stream and (own_id is not None or kind.startswith("action.")):
            raise _Refused("stream-differs", "its payload does not begin with the id of its stream")
        if request is None:
            if kind not in (ASKED, CALLED):
                return self.without_request(actor, batch, cause, event_id, key, kind, text, run, stream)
            request = self.asked(cause, event_id, key, kind, text, run, stream)
        self.request, case = request, request.case
        case.kinds.append(CODES.get(kind, 0))
        place, newest = request.order[request.last].get(kind), kind
        if place is None:
            if kind not in NOT_JUDGED:
                raise _Refused("out-of-order", f"{kind} cannot follow {request.last} under these rules")
            place, newest = "1,1", request.last
        if place and batch not in place:
            self.add("batch-shape", f"under these rules it is {place} of a batch, not {batch}")
        if key != request.key or run != case.run:
            self.add("stream-differs", "its key or run is not that of its request")
        if stream != request.stream:  # it was let go
            caused = self.is_cause(stream, cause)
        else:
            caused = not request.last or cause == request.event_id != event_id
        if not caused:
            self.add("causation-broken", "it does not name its request as its cause, or has its id")

        # What it means.
        request.last = newest
        if kind == COMPLETED:
            self.action_completed(request, text)
        elif kind in (CLAIMED, STARTED):
            if text != "}":
                _payload(kind, f'{{"action_id":""{text}')
            request.started |= kind == STARTED
            free = request.rules != "lab" or not request.started
            if not free and self.decide(request) is not request:
                self.add("second-start", "its key had started before, and these rules start a key once")
        elif request.call:
            self.call_event(request, actor, kind, event_id, text)
        elif kind != ASKED:
            self.later_on(request, kind, text)
        return None

    def without_request(
        self, actor: str, batch: str, cause: str, event_id: str, key: str, kind: str, text: str, run: str,
        stream: str,
    ) -> None:  # fmt: skip
        """Judge an event that belongs to no request; its stream has a name of its own, like every other."""
        if kind != SAMPLE and kind not in NEXT["a work"] and kind not in TRAJECTORY:
            code = "request-missing" if kind in PAYLOADS else "unknown-kind"
            raise _Refused(code, f"{kind!a} without a request earlier in its stream")
        case = self.case(run)
        case.kinds.append(CODES[kind])
        if kind == SAMPLE:
            if stream not in self.sampled:
                self.sampled.add(stream)
                self.hashes.append(hash(stream))
            return self.sample(case, _parse(f"{{{text}"))
        if kind in TRAJECTORY:
            trajectory = self.trajectories.get(stream)
            if trajectory is None:
                trajectory = self.trajectories[stream] = _Trajectory(self.add, stream, run)
                self.hashes.append(hash(stream))
                case.trajectories.append(trajectory)
            said = _payload(kind, f"{{{text}") if kind != SAVED else _parse(f"{{{text}")
            if (key, run) != ("null", trajectory.run):
                self.add("stream-differs", "its run is not that of its trajectory, or it has a key")
            return trajectory.take(self.seq, batch, cause, event_id, kind, said)
        case.trace.append((actor, kind, stream))
        return self.work_event(batch, cause, event_id, key, kind, _payload(kind, f"{{{text}"), run, stream)

    def case(self, run: str) -> _Case:
        if run != self.latest.run:
            self.latest = self.cases.get(run) or self.cases.setdefault(run, _Case(run))
        return self.latest

    def asked(
        self, cause: str, event_id: str, key: str, kind: str, text: str, run: str, stream: str
    ) -> _Request:
        """Judge a request; one in the very words of the request that decided its key was judged before."""
        call = kind == CALLED
        prior, words = self.decided[call].get(key), _brief(text)
        if prior is not None and prior.words == words:
            dimensions, rules, starts = prior.dimensions, prior.rules, prior.starts
            key, words = prior.key, prior.words
        else:
            dimensions, rules, starts = self.fingerprinted(kind, text)
            self.rules.add(rules)
            if key == "null":
                raise _Refused("event-shape", "a request without a key")
        work = self.intended(cause, key, run, stream, dimensions) if call and cause != "null" else None
        order = NEXT["a call of a work"] if work else NEXT.get(rules, NEXT["other rules"])
        case = self.case(run)
        retry = (prior is not None and prior.case is case) or key in case.keys
        request = _Request(
            stream, event_id, key, case, len(case.requests), rules, starts, call, words, dimensions, prior,
            retry, work, order,
        )  # fmt: skip
        self.requests[stream] = request
        self.hashes.append(hash(stream))
        if not retry:
            case.keys.add(key)
        case.requests.append(request)
        case.name(stream)
        return request

    def decide(self, request: _Request) -> _Request:
        """Let a request decide its key, unless another did; give the one that does."""
        return self.decided[request.call].setdefault(request.key, request)

    def let_go(self, request: _Request, kept: _Request) -> None:
        """Keep but the name of a request that is answered and decides nothing; one stands for all alike."""
        if kept is not request:
            del self.requests[request.stream]
            self.causes.append(hash((request.stream, request.event_id)))
            if self.let_go_by_name is not None:
                self.let_go_by_name[request.stream] = kept
            self.request = request.case.requests[request.place] = kept

    def settled(self, request: _Request) -> None:
        """Let go of a request that was refused, or that came to its end before it started."""
        like = (request.case.run, request.key, request.rules, request.call, request.answer, request.status,
                request.label)  # fmt: skip
        self.let_go(request, self.answered.setdefault(like, request))

    def find(self, stream: str) -> _Request | None:
        """Find a request by its name, also one that was let go: seldom is one asked for that was."""
        if stream in self.requests:
            return self.requests[stream]
        if self.let_go_by_name is None:
            pairs = [
                pair for case in self.cases.values() for pair in zip(case.named(), case.requests, strict=True)
            ]
            self.let_go_by_name = {name: kept for name, kept in pairs if name not in self.requests}
        return self.let_go_by_name.get(stream)

    def is_cause(self, stream: str, event_id: str) -> bool:
        """Say whether this event asked for a request that was let go."""
        cause = hash((stream, event_id))
        seen, known = self.causes_seen
        if cause not in known and seen < len(self.causes):
            known |= {*self.causes[seen:]}
            self.causes_seen = len(self.causes), known
        return cause in known

    def named_twice(self) -> list[str]:
        """Find names that were given again after they were let go: by equal hashes first."""
        sizes = range(0, len(self.hashes), SORTED_AT_ONCE)
        blocks = [array("q", sorted(self.hashes[at : at + SORTED_AT_ONCE])) for at in sizes]
        equal = {one for one, other in pairwise(heapq.merge(*blocks)) if one == other}
        if not equal:
            return []
        names = chain(
            self.works, self.trajectories, self.sampled, *(case.named() for case in self.cases.values())
        )
        count = Counter(name for name in names if hash(name) in equal)
        return [name for name, times in count.items() if times > 1]

    def fingerprinted(self, kind: str, text: str) -> tuple[tuple[str, ...], str, bool]:
        """Give a request's dimensions and rules; its fingerprint must be that of what it asks for."""
        quick = REQUEST(text) if kind == ASKED else None
        if quick is not None:
            capability, digest, *stored, instruction, payload, performer, precondition, rules = quick.groups()
            starts = ""
            if precondition.endswith(SAID):  # it stands between the two
                precondition, _, starts = precondition.rpartition(SAYS_STARTS)
            made = (
                _digest_again(capability), _digest_again(instruction), _sha256(payload),
                _digest_again(performer), _sha256(precondition),
            )  # fmt: skip
            if (
                made == (*stored,)
                and digest == _sha256(UNSIGNED % made)
                and _is_canonical(payload)
                and _is_canonical(precondition)
            ):
                rules = _unquoted(rules)
                return made, rules, starts == "true" if starts else rules in RECORD_STARTS
        asked = _payload(kind, f'{{"action_id":""{text}' if kind == ASKED else f"{{{text}")
        dimensions = tuple([_digest_of(asked[name]) for name in DIMENSIONS[kind].values()])
        if asked["fingerprint"] != _fingerprint(dimensions, kind):
            self.add("fingerprint-disagrees", "its stored fingerprint is not that of what it asks for")
        elif kind == ASKED:
            self.add("event-shape", "what it asks for is not in canonical form")
        return dimensions, asked["rules"], asked.get("records_starts", asked["rules"] in RECORD_STARTS)

    # --- actions

    def action_completed(self, request: _Request, text: str) -> None:
        """Status, error, start and possible effect go together; a replay is like its original."""
        prior = request.prior
        if prior is not None and prior.words is request.words and prior.told and not request.started:
            status, content = prior.told
            returned = f'"reused_from_action_id":{prior.stream},"status":"{status}"}}'
            if isinstance(content, str) and text == f',"effect_possible":false,{content}{returned}':
                return self.replayed(request, prior, status)
        entered, content, link, status = _completion(COMPLETED, text)
        request.entered = entered == "true"
        if (
            request.starts
            and request.started != request.entered
            and (request.entered or request.rules in RULES)
        ):
            self.add("start-disagrees", "whether it started and whether its effect was possible disagree")
        if self.completed(request, status, None if link == "null" else link, content):
            possible = not request.entered  # its content was judged where the original said it
        else:
            possible = _error_code(content) in ERRORS.get((status, request.entered), ())
        if not possible:
            self.add("completion-impossible", "status, error, reuse and possible effect do not go together")
        if link == "null" and request.rules != "lab":
            self.decide(request)
        elif link == "null" and not (request.started or request.entered):
            self.settled(request)
        return None

    def completed(self, request: _Request, status: str, link: str | None, content: str) -> bool:
        """Note a completion, and say whether it is a sound replay: of an original that recorded the same."""
        request.answer, request.status = "completed", status
        if link is None:
            request.told = (status, _brief(content))
            if request.prior is not None and status != "denied" and request.rules in RULES:
                self.add("not-replayed", "its key was decided when it was asked, and it was carried out")
            return False
        request.reused_from, original = _unquoted(link), self.find(link)
        if (
            original is None
            or original is request
            or not (original.told or original.reused_from is not None)
            or (original.call, original.key) != (request.call, request.key)
        ):
            self.add("reuse-unresolved", "its reuse link names no earlier completion of the same key")
        elif original.reused_from is not None:
            self.add("replay-of-replay", "its reuse link names a replay instead of the original")
        elif original.told != (status, _brief(content)):
            self.add("replay-differs", "what it returns is not what the original recorded")
        elif original.dimensions != request.dimensions and (request.call or request.rules in COMPARE):
            self.add("replay-of-another", "it replays another operation that had the same key")
        elif request.rules == "lab" and not (request.call or original.started):
            self.add("reuse-undecided", "its reuse link names a completion that decides nothing for the key")
        else:
            self.replayed(request, original, status)
            return True
        return False

    def replayed(self, request: _Request, original: _Request, status: str) -> None:
        """Note a sound replay; one of those in one case, under one rule set, stands for all."""
        echo = original.echo
        if request.work or echo is None or echo.case is not request.case or echo.rules != request.rules:
            request.answer, request.status = "completed", status
            request.reused_from = _unquoted(original.stream)
            if request.work:
                return
            like = (request.case.run, request.rules, request.call, original.stream)
            echo = original.echo = self.answered.setdefault(like, request)
        self.let_go(request, echo)

    def later_on(self, request: _Request, kind: str, text: str) -> None:
        """Judge what may come of an action beside a completion: a refusal, a verdict, a late completion."""
        if kind == LATE:
            return self.completed_late(request, text)
        payload = _payload(kind, f'{{"action_id":""{text}')
        if kind == REFUSED:
            return self.replay_refused(request, payload)
        return self.judged(request, payload)

    def judged(self, request: _Request, payload: dict[str, Any]) -> None:
        """Judge a verdict, or the refusal of one, on an effect that is open, by its evidence."""
        if "reason" in payload:
            fits = {"not-authorised": True, "in-progress": True, "nothing-to-reconcile": not request.is_open}
            if not fits.get(payload["reason"]):
                self.add("verdict-unfounded", "nothing speaks for refusing to reconcile for this reason")
            return None
        verdict, evidence = payload["verdict"], payload["evidence"]
        # A receipt of a call may be that of another one with its key; it confirms nothing then.
        fits = {"effect_confirmed": bool(evidence), "no_effect_confirmed": request.call or not evidence}
        if not request.is_open or verdict not in VERDICTS or not fits.get(verdict, True):
            return self.add("verdict-unfounded", "its effect was not open, or the evidence says otherwise")
        holds = self.decided[False].get(request.key) is request
        request.verdict, request.evidence = verdict, tuple(evidence) if VERDICTS[verdict] else ()
        if verdict == "effect_confirmed":
            request.told = request.told or ("reconciled", CONFIRMED)
        elif verdict == "no_effect_confirmed" and request.rules == "lab" and holds:
            del self.decided[False][request.key]  # it may be tried afresh
        return None

    def completed_late(self, request: _Request, text: str) -> None:
        """A completion after a verdict stands beside it, and takes its word from a verdict of absence."""
        entered, content, link, status = _completion(LATE, text)
        possible = entered == "true" and link == "null" and not request.answer
        if not possible or _error_code(content) not in ERRORS.get((status, True), ()):
            self.add("completion-impossible", "status, error, reuse and possible effect do not go together")
        if request.verdict == "no_effect_confirmed":
            request.verdict = "still_unknown"
            if request.rules == "lab":
                self.decide(request)

    def replay_refused(self, request: _Request, payload: dict[str, Any]) -> None:
        """A refusal names the request that has the key, and exactly the dimensions that differ."""
        reason = request.answer = payload["reason"]
        request.status = REFUSED_STATUS.get(reason)
        original = self.find(_quoted(payload[f"original_{'call' if request.call else 'action'}_id"]))
        if (
            original is None
            or original is request
            or not (original.started or original.answer == "completed")
            or (original.call, original.key) != (request.call, request.key)
            or _quoted(payload["idempotency_key"]) != request.key
        ):
            return self.add("refusal-unresolved", "it names no earlier request that holds its key")
        other_reasons = {} if request.call or request.rules in OLDER else REFUSED_STATUS
        decided = original.answer or original.told
        if reason != "identity-conflict" and (decided or reason not in other_reasons):
            return self.add("refusal-unfounded", "these rules do not refuse for this reason, or it is not so")
        pairs = zip(DIMENSIONS[request.asking], request.dimensions, original.dimensions, strict=False)
        differing = [name for name, mine, other in pairs if mine != other]
        if (
            sorted(map(str, payload["dimensions"])) != differing
            or bool(differing) != (reason == "identity-conflict")
            or payload["fingerprint_version"] != VERSIONS[request.asking]
        ):
            self.add("dimensions-differ", f"the requests differ in {', '.join(differing) or 'nothing'}")
        elif not request.work:
            self.settled(request)
        return None

    # --- works and calls

    def work_event(
        self, batch: str, cause: str, event_id: str, key: str, kind: str, payload: dict[str, Any], run: str,
        stream: str,
    ) -> None:  # fmt: skip
        """Judge a step towards a call: each is caused by the one before it, and goes by what that said."""
        work = self.works.get(stream)
        if work is None:
            work = self.works[stream] = _Work(run, key)
            self.hashes.append(hash(stream))
        if kind not in NEXT["a work"][work.last]:
            raise _Refused("out-of-order", f"{kind} cannot follow {work.last} in a work")
        if batch != "1,1":
            self.add("batch-shape", f"under these rules it is 1,1 of a batch, not {batch}")
        if (work.key, work.run, _quoted(payload["work_id"])) != (key, run, stream):
            self.add("stream-differs", "its key, run or work is not that of its stream")
        if cause != work.last_id:
            self.add("causation-broken", "it does not name the step before it as its cause")
        work.last, work.last_id = kind, event_id
        work.said |= payload  # no two kinds have a field in common that a later step needs
        if kind in (COMPILING, COMPILED, NOT_COMPILED):
            self.compiled(work, kind, payload)
        if kind == COMPILED:
            of_task = {"prompt_hash": _digest_of(work.said["prompt"])}
            of_task["rendered_context"] = _digest_of(payload["context"])
            self.intentions[event_id] = (work, None, of_task)

    def compiled(self, work: _Work, kind: str, payload: dict[str, Any]) -> None:
        name, content = work.said["name"], work.said["content"]
        missing = [other for other in work.said["required"] if other != name]
        fits = {
            COMPILING: payload.get("offered") == [name],
            COMPILED: not missing and _dump(payload.get("context")) == _dump({name: content}),
            NOT_COMPILED: bool(missing) and payload.get("missing") == missing,
        }
        if not fits[kind]:
            self.add("intention-differs", "it is not what was offered and what the task cannot do without")

    def intended(
        self, cause: str, key: str, run: str, stream: str, dimensions: tuple[str, ...]
    ) -> _Work | None:
        """Find the work that a call is of: what its task and context, or the call it resumes, had in mind."""
        work, name, wanted = self.intentions.pop(cause, (None, None, {}))
        if work is None:
            self.add("causation-broken", "it names no compiled context and no resumed call as its cause")
            return None
        mine = dict(zip(DIMENSIONS[CALLED], dimensions, strict=True))
        same_work = (work.key, work.run) == (key, run) and name in (None, stream)
        if not same_work or wanted.items() - mine.items():
            self.add("intention-differs", "it does not ask what was intended, or under another name")
        return work

    def call_event(self, request: _Request, actor: str, kind: str, event_id: str, text: str) -> None:
        of_work = request.work is not None
        payload = _payload(kind + " of a work" if of_work and kind == SENT else kind, f"{{{text}")
        if _quoted(payload["call_id"]) != request.stream:
            self.add("stream-differs", "its call is not that of its stream")
        if of_work:
            denied = " denied" if payload.get("status") == "denied" and kind == CALL_COMPLETED else ""
            step = f"{kind} {payload['verdict']}" if kind == CALL_JUDGED else kind + denied
            request.case.trace.append((actor, step, request.stream))
        if kind == CALLED:
            if of_work:
                sent = {name: payload[name] for name in ("chamber", "context", "prompt")}
                request.body = _digest_of(sent | {"model": payload["requested_model"]})
        elif kind == SENT:
            request.manifest = True
            if payload["fingerprint"] != _fingerprint(request.dimensions, CALLED):
                self.add("fingerprint-disagrees", "the manifest's fingerprint is not that of its request")
        elif kind == TRIED:
            request.attempt += 1
        elif kind == OBSERVED:
            request.case.provider_calls += 1
            request.observed += 1
            request.reading = (None, _dump(payload["response"]), None)
            if of_work:
                request.reading = _reading(payload["response"])
        elif kind == CALL_COMPLETED:
            self.call_completed(request, payload)
        elif kind == CALL_REFUSED:
            self.replay_refused(request, payload)
        elif kind in (CALL_JUDGED, NOT_JUDGED[1]):
            self.judged(request, payload)
        elif kind == RESUMED:
            stage = "manifest_recorded" if request.manifest else "requested"
            if request.verdict:
                stage = "reconciled" if request.verdict == "no_effect_confirmed" else ""
            if payload["stage"] != stage:
                self.add("intention-differs", "the call that is resumed had not come so far, or further")
            self.stream = _quoted(payload["new_call_id"])  # the batch goes on with the call that is new
            self.request = self.requests.get(self.stream)
            same = dict(zip(DIMENSIONS[CALLED], request.dimensions, strict=True))
            self.intentions[event_id] = (request.work, self.stream, same)
        else:
            self.interpreted(request, payload)
        if repr(payload.get("attempt", request.attempt)) != repr(request.attempt):
            self.add("out-of-order", "its attempts are not counted from 1")
        if payload.get("request_body_hash", request.body) != request.body:
            self.add("body-hash-differs", "the hash is not that of the words which the call sends")

    def interpreted(self, request: _Request, payload: dict[str, Any]) -> None:
        """What is made of an answer is a function of its bytes, and asks for no second attempt."""
        status, response, error = request.reading
        follows = {"status": _dump(status), "response": response, "error": _dump(error), "retry": "false"}
        if any(_dump(payload[name]) != follows[name] for name in follows.keys() & payload.keys()):
            self.add("interpretation-differs", "it does not follow from the bytes that were observed")

    def call_completed(self, request: _Request, payload: dict[str, Any]) -> None:
        link, content, status = payload["original_call_id"], _dump(payload["response"]), payload["status"]
        denied, fresh = status == "denied" and link is None, request.attempt == 0 and content == "null"
        if payload["replayed"] != (link is not None) or ("error" in payload) != denied or denied > fresh:
            self.add(
                "completion-impossible", "status, error, replayed and original_call_id do not go together"
            )
        read, response, _ = request.reading
        differs = not denied and (response != content or read not in (None, status))
        if differs and link is None and (request.work or status == "succeeded"):
            self.add("observation-differs", "its response is not what was observed last")
        self.completed(request, status, link and _quoted(link), content)
        if link is None and request.manifest:
            self.decide(request)
        elif link is None and denied and not request.work:
            self.settled(request)

    # --- samples

    def sample(self, case: _Case, payload: Any) -> None:
        """Note size, mean and deviation of what was measured of one quantity."""
        if not _shaped(payload, SAMPLES) or not re.fullmatch("[a-z][a-z0-9_]*", payload["quantity"]):
            raise _Refused("event-shape", "not a sample: its fields or types differ")
        if payload["case"] != _case_of(case.run):
            self.add("stream-differs", "its case is not that of its run")
        if payload["quantity"] in case.samples:
            self.add("out-of-order", "its quantity was recorded before")
        case.samples[payload["quantity"]] = _statistics(payload)

    def close(self) -> None:
        """Look for silence, and let go of what only later events could have asked for.

        Who asks for a key that another operation decided is refused; `lab` leaves nobody unanswered.
        """
        for request in self.requests.values():
            if request.answer or request.prior is None or request.work:
                continue
            refused = (CALL_REFUSED if request.call else REFUSED) in request.order[request.asking]
            collides = request.prior.dimensions != request.dimensions
            if request.rules not in RULES:
                continue
            if refused and (collides or (request.rules == "lab" and not request.started)):
                self.found.add("refusal-missing", LEDGER, f"{request.stream} asks for a decided key in vain")
        for name in self.named_twice():
            self.found.add("out-of-order", LEDGER, f"{name} is the name of an earlier one")


# --- step 5: trajectories ----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Made:
    """A call of a trajectory; its key is what makes two calls the same: node, role, tool, arguments."""

    key: tuple[str, str, str, str]
    path: tuple[str, str]  # tool and provider
    seq: int
    event_id: str
    outcome: str = ""  # its kind; then seq and event id, and what it says: a result or an error
    outcome_at: int = 0
    outcome_id: str = ""
    said: Any = None


class _Trajectory:
    """One trajectory: each event is held against those before it, and the row is counted from the same."""

    def __init__(self, add: Callable[[str, str], None], stream: str, run: str) -> None:
        self.add, self.stream, self.run, self.first_id, self.last = add, stream, run, "null", ""
        self.kinds: set[str] = set()
        self.request: Row = {}
        self.limits: Row = {}
        self.calls: dict[str, _Made] = {}
        self.attempts: Counter[tuple[str, ...]] = Counter()
        self.refused: set[tuple[str, ...]] = set()  # keys of calls that failed by their input
        self.plan: dict[str, Row] = {}  # nodes by name, like all that follows up to `due`
        self.status: dict[str, str] = {}
        self.paths: dict[str, set[tuple[str, str]]] = {}  # those of the plan and of fallbacks
        self.evidence: dict[str, dict[str, Row]] = {}  # what a checkpoint says of it, by link
        self.decided: dict[str, int] = {}  # the seq of its last acceptance
        self.due: str | None = None  # the node that was accepted, for the next checkpoint
        self.films: list[list[str]] = []  # that each version verified
        self.base = 0  # the version that is gone on from
        self.memory: Any = None
        self.asked: list[Row] = []  # sources, as authority judged them last
        self.withheld: set[str] = set()
        self.failed: _Made | None = None  # what the recovery answers whose batch this is
        self.recovery: tuple[int, Row, _Made] | None = None
        self.answer = PAUSED

    def take(self, seq: int, batch: str, cause: str, event_id: str, kind: str, said: Row) -> None:
        """Judge an event: its place, its cause and what it names; then what it says."""
        last, begins = self.last, {"": BEGUN, BEGUN: SAVED}.get(self.last, kind)
        if kind != begins or (kind == BEGUN and last) or ANSWERED in self.kinds:
            raise _Refused("out-of-order", f"{kind} cannot follow {last or 'nothing'} in a trajectory")
        self.last, self.seq, self.event_id, names = kind, seq, event_id, {} if kind == SAVED else said
        self.kinds.add(kind)
        calls = names.keys() & {"failed_call_id"} | ({"call_id"} if kind in (SUCCEEDED, FAILED) else set())
        named: list[Any] = [*map(self.calls.get, [*map(said.get, calls), *names.get("call_ids", ())])]
        if None in named or names.get("node", PLAN) not in (PLAN, *self.plan):
            raise _Refused("call-unresolved", "it names no earlier call, or no node of the plan")
        place, due = batch, self.first_id
        if kind == BEGUN or last == BEGUN:
            place, due = ("1,2", "null") if kind == BEGUN else ("2,2", due)
        elif kind in (SUCCEEDED, FAILED):
            due = named[0].event_id
        elif kind == RECOVERY:
            place, due = f"1,{1 + (said['policy'] == 'fallback')}", named[0].outcome_id
        elif kind == DETOUR and self.failed:
            due = self.failed.outcome_id
        elif kind == "authority.asked":
            place = f"1,{1 + sum(not one['allowed'] for one in said['sources'])}"
        if batch != place:
            self.add("batch-shape", f"{kind} is {place} of a batch here, not {batch}")
        if cause != due:
            self.add("causation-broken", "it does not name what it answers as its cause")
        if self.failed and kind != DETOUR:
            self.add("provenance-hidden", "a fallback was chosen, and none is recorded")
        getattr(self, kind.replace(".", "_"), dict)(said)
        self.failed = named[0] if kind == RECOVERY and said["policy"] == "fallback" else None

    def trajectory_started(self, said: Row) -> None:
        self.first_id, self.request, self.limits = self.event_id, said["request"], said["limits"]
        if _quoted(said["trajectory_id"]) != self.stream:
            self.add("stream-differs", "its trajectory is not that of its stream")

    def call_started(self, said: Row) -> None:
        """A call is counted, serves a node that is open, and goes by a path that is on record."""
        node, role, path = said["node"], said["role"], (said["tool"], said["provider"])
        key = (node, role, said["tool"], _dump(said["arguments"]))
        self.attempts[*key, path[1]] += 1
        number = f"call-{len(self.calls) + 1}"
        if (said["call_id"], said["attempt"]) != (number, self.attempts[*key, path[1]]):
            self.add("out-of-order", "its calls, or the attempts at this one, are not counted from 1")
        needs = self.plan.get(node, {}).get("needs", ())
        ready = self.status.get(node) == "open" and all(self.status.get(need) == "verified" for need in needs)
        is_open = role == PLAN and not self.plan if node == PLAN else role != PLAN and ready
        if not is_open or len(self.calls) >= self.limits["calls"] or key in self.refused:
            self.add("call-unfounded", "it serves no open node, is over the budget or was refused before")
        if role == "search" and path not in self.paths.get(node, ()):
            self.add("provenance-hidden", "its path is not the plan's, and no fallback says so")
        self.calls[said["call_id"]] = _Made(key, path, self.seq, self.event_id)

    def call_succeeded(self, said: Row) -> None:
        call = self.calls[said["call_id"]]
        if call.outcome or call is not next(reversed(self.calls.values())):
            self.add("out-of-order", "its call has an outcome, or is not the last that was started")
        call.outcome, call.outcome_at, call.outcome_id = self.last, self.seq, self.event_id
        call.said = said["error" if self.last == FAILED else "result"]
        if self.last == FAILED:
            self.refused |= {call.key} if call.said["class"] == "input" else set()
        elif call.key[1] not in (PLAN, "compare") and not _shaped(call.said, SAYS[call.key[1]]):
            raise _Refused("event-shape", f"not what a tool answers to a {call.key[1]}")

    call_failed = call_succeeded

    def validation_decided(self, said: Row) -> None:
        """What is accepted follows from the answers that the decision names."""
        node, self.due = said["node"], None
        made = [self.calls[name] for name in said["call_ids"]]
        roles = {PLAN: [PLAN], "film": ["search", "fetch", "quote"], "compare": ["compare"]}
        kind = PLAN if node == PLAN else self.plan[node]["kind"]
        if not said["accepted"]:
            return
        fits = [call.key[:2] for call in made] == [(node, role) for role in roles[kind]] and all(
            call.outcome == SUCCEEDED and _shaped(call.said, SAYS[call.key[1]]) for call in made
        )
        accepts = {PLAN: self.accepts_plan, "film": self.accepts_film, "compare": self.accepts_comparison}
        if not fits or not accepts[kind](node, said, made):
            raise _Refused("decision-unfounded", "what it accepts does not follow from the answers it names")
        self.decided[node], self.due = self.seq, None if node == PLAN else node

    def accepts_plan(self, _: str, __: Row, made: list[_Made]) -> bool:
        says = made[0].said["nodes"]
        nodes, sought = {one["node"]: one for one in says}, {one["node"] for one in self.request["sought"]}
        if len(nodes) != len(says) or {one["node"] for one in says if one["kind"] == "film"} != sought:
            return False
        self.plan, self.status = nodes, dict.fromkeys(nodes, "open")
        self.paths = {name: {(one["tool"], one["provider"])} for name, one in nodes.items()}
        return True

    def accepts_film(self, node: str, said: Row, made: list[_Made]) -> bool:
        search, fetch, quote = made
        record, quoted, least = fetch.said, quote.said["passages"], self.least(search.path)
        sought = next(one for one in self.request["sought"] if one["node"] == node)
        score = next((hit["score"] for hit in search.said if hit["film_id"] == record["film_id"]), -math.inf)
        passages = [one for one in record["passages"] if one["passage_id"] in quoted]
        told = " ".join([record["summary"], *record["themes"]])
        self.saves(node, said, record, {
            "source_id": record["source_id"], "film_id": record["film_id"], "method": search.path[0],
            "provider": search.path[1], "passages": passages, "confidence": score,
        })  # fmt: skip
        return (
            (said["film_id"], said["acceptance"]) == (record["film_id"], least)
            and score >= least["minimum"]
            and set(quoted) == {one["passage_id"] for one in passages} != set()
            and sought["title"] in (None, record["title"])
            and _mentioned(told, sought["about"]) > 0
        )

    def accepts_comparison(self, node: str, said: Row, made: list[_Made]) -> bool:
        says, films = made[0].said, self.plan[node]["needs"]
        self.saves(node, said, says, {
            "source_id": f"comparison:{self.request['request_id']}", "film_id": None, "passages": [],
            "method": made[0].path[0], "provider": made[0].path[1], "confidence": None,
        })  # fmt: skip
        titles = self.titles()
        scores = self.scores(films)
        return says["recommended"] == _best(scores) and all(titles[film] in says["text"] for film in scores)

    def saves(self, node: str, said: Row, result: Row, source: Row) -> None:
        called = {"call_ids": said["call_ids"], "result": result}
        self.evidence[node] = {
            "tool_results": called, "sources": source | {"recorded_at_us": 0},
            "validations": {"accepted": True, "seq": self.seq},
        }  # fmt: skip

    def checkpoint_committed(self, said: Row) -> None:
        """A checkpoint is all that is known so far, link by link; there is one for each acceptance."""
        if self.due:
            self.status[self.due] = "verified"
        elif self.films:
            self.add("checkpoint-differs", "nothing was accepted since the last one")
        else:
            self.memory = said.get("memory_refs")
        verified, self.due = self.verified(), None
        films = [self.evidence[node]["sources"]["film_id"] for node in verified]
        self.films.append([film for film in films if film is not None])
        self.base = len(self.films)
        truth: Row = {
            "type": "checkpoint", "schema": 1, "version": self.base, "request": self.request,
            "plan": {"nodes": [*self.plan.values()]} if self.plan else None, "node_status": self.status,
            **{link: {node: self.evidence[node][link] for node in verified}
               for link in ("tool_results", "sources", "validations")},
            "budget": {"calls": self.limits["calls"], "spent": len(self.calls)},
            "failures": [{"call_id": name, "node": call.key[0], "error": call.said}
                         for name, call in self.calls.items() if call.outcome == FAILED],
            "memory_refs": self.memory if _shaped(self.memory, [str]) else [],
        }  # fmt: skip
        if said.keys() - truth.keys():
            self.add("event-shape", "it has a link too many")
        for link, due in truth.items():
            held: Any = said.get(link)
            shorter = type(held) is type(due) in (dict, list) and len(held) < len(due)
            if shorter or type(held) is not type(due) or link not in said:
                self.add("checkpoint-incomplete", f"it lacks its {link}, or a part of it")
            elif CLOCK.sub("", _dump(held)) != CLOCK.sub("", _dump(due)):
                self.add("checkpoint-differs", f"its {link} is not what was recorded before it")

    def recovery_started(self, said: Row) -> None:
        """A recovery answers the newest call, which failed, and names what it keeps and what it discards."""
        call, again = self.calls[said["failed_call_id"]], said["policy"] == "restart"
        truth = {
            "original_error": call.said, "from_version": 1 if again else self.base,
            "keeps": [] if again else self.verified(),
            "discards": [*range(2, len(self.films) + 1)] if again else [],
        }  # fmt: skip
        newest = call is next(reversed(self.calls.values())) and call.outcome == FAILED
        if not newest or said | truth != said:
            self.add("recovery-unfounded", "the failure that it answers, or what it keeps, is not on record")
        self.recovery = self.recovery or (self.seq, said, call)
        if again:
            self.plan, self.status, self.paths, self.evidence, self.due, self.base = {}, {}, {}, {}, None, 1

    def fallback_used(self, said: Row) -> None:
        """A fallback names the error, the old path and the new one, and the threshold of each."""
        old, new = ((said[name]["tool"], said[name]["provider"]) for name in ("old", "new"))
        search, node = said["role"] == "search", said["node"]
        errors = [call.said for call in self.calls.values() if call.outcome == FAILED]
        errors = [self.failed.said] if self.failed else [None, *errors]
        least = {"old": self.least(old), "new": self.least(new)} if search else dict.fromkeys(("old", "new"))
        paths = self.paths.setdefault(node, set()) if search else {old}
        if said["acceptance_threshold"] != least or said["original_error"] not in errors or old not in paths:
            self.add("fallback-unfounded", "its error, its old path or its thresholds are not on record")
        paths.add(new)

    def node_unresolved(self, said: Row) -> None:
        self.status[said["node"]] = "unresolved"

    def way_chosen(self, said: Row) -> None:
        if self.status.get(said["node"]) != "unresolved":
            self.add("out-of-order", "there was no way to choose: its node is not unresolved")
        if said["way"] == "other_route" or said["query"] is not None:
            self.status[said["node"]] = "open"

    def authority_asked(self, said: Row) -> None:
        self.asked = said["sources"]
        if said["performer"] != self.request["performer"]:
            self.add("authority-differs", "it was asked for another performer than the request's")

    def evidence_withheld(self, said: Row) -> None:
        if said | {"allowed": False} not in self.asked:
            self.add("authority-differs", "authority did not refuse this source")
        reached = {said["node"]}
        for name, one in self.plan.items():
            if name in reached or not reached.isdisjoint(one["needs"]):
                reached.add(name)
                self.status[name] = "open"
                self.evidence.pop(name, None)
        self.due = None if self.due in reached else self.due
        self.withheld.add(said["film_id"])

    def trajectory_completed(self, said: Row) -> None:
        """The answer is the one that the evidence supports, and names what is missing."""
        missing = [node for node, status in self.status.items() if status != "verified"]
        missing = missing or ([] if self.plan else [PLAN])
        scores = self.scores([one["node"] for one in self.request["sought"]])
        best = None if missing else _best(scores)
        short = "-".join((best or "").split("-")[:2])
        compared = [one["tool_results"]["result"] for one in self.evidence.values()]
        again = self.kinds & TRIED_AGAIN or not all(call.outcome for call in self.calls.values())
        truth = {
            "status": "partial" if missing else "complete", "missing": missing, "scores": scores,
            "recommended_film": best,
            "comparison": next((one["text"] for one in compared if "text" in one), None),
            "recommendation": self.titles()[best] if best else f"none; unresolved: {', '.join(missing)}",
            "intended_write": best and {"idempotency_key": f"{self.request['request_id']}/add-{short}"},
            "completion": "recovered" if self.kinds & {RECOVERY, DETOUR} else
                          "retried" if again else "first-attempt",
        }  # fmt: skip
        self.answer = said["recommendation"]
        for name, value in truth.items():
            if said[name] != value:
                self.add("answer-differs", f"its {name} is not what the evidence supports")

    def row(self) -> Row:
        """Count the calls before the failure and after the recovery, and compare the paths."""
        calls: list[_Made] = [*self.calls.values()]
        at, said, failed = self.recovery or (math.inf, {}, None)
        good = [call for call in calls if call.outcome == SUCCEEDED]
        before = [call.key for call in good if failed and call.outcome_at < failed.outcome_at]
        after, known = [call for call in calls if call.seq > at], {*before}
        repeated = sum(call.key in known for call in after)
        same = failed and failed.key[:2]
        answers = [n for n, call in enumerate(after, 1) if call.key[:2] == same and call.outcome == SUCCEEDED]
        searched = [call.key[0] for call in calls if call.key[1] == "search"] or [""]
        node = failed.key[0] if failed and failed.key[0] in searched else searched[-1]
        paths = []
        for role in ("search", "fetch"):
            first = [call.path for call in calls if call.key[:2] == (node, role)]
            last = [call.path for call in good if call.key[:2] == (node, role)
                    and call.seq < self.decided.get(node, 0)]  # fmt: skip
            paths += [(first[0], last[-1])] if last else []
        found = len(paths) == 2
        films = dict(enumerate(self.films, 1)).get(said.get("from_version", 0), [])
        return {
            "policy": said.get("policy", "none"), "recommendation": self.answer,
            "verified_kept": [film for film in films if film not in self.withheld],
            "repeated_calls": repeated, "additional_calls": (answers or [len(after)])[0],
            "skipped_calls": len(before) - repeated,
            "provenance_changed": found and any(first != last for first, last in paths),
            "source_of_second_film": paths[0][1][0] if found else "",
            "timeout_in_record": any(c.outcome == FAILED and c.said["code"] == "timeout" for c in calls),
        }  # fmt: skip

    def least(self, path: tuple[str, str]) -> Row:
        return {"method": path[0], "minimum": self.limits["acceptance"].get(path[0], 0), "provider": path[1]}

    def verified(self) -> list[str]:
        return [node for node, status in self.status.items() if status == "verified"]

    def titles(self) -> dict[str, str]:
        records = [one["tool_results"]["result"] for one in self.evidence.values()]
        return {one["film_id"]: one["title"] for one in records if "film_id" in one}

    def scores(self, nodes: Sequence[str]) -> dict[str, int]:
        """Count how many words of the criterion the quoted passages and the themes of each film have."""
        held = [self.evidence[node] for node in nodes if self.status.get(node) == "verified"]
        told = {
            one["sources"]["film_id"]: " ".join(
                [*(passage["text"] for passage in one["sources"]["passages"]),
                 *one["tool_results"]["result"].get("themes", ())])
            for one in held if one["sources"]["film_id"] is not None
        }  # fmt: skip
        return {film: _mentioned(text, self.request["criterion"]["terms"]) for film, text in told.items()}


def _mentioned(text: str, terms: Sequence[str]) -> int:
    """Count the terms that a text has as a word, or as the beginning of one where they end in `*`."""
    words = set(re.findall("[a-z]+", text.lower()))
    ends = [(term.removesuffix("*"), term.endswith("*")) for term in terms]
    return sum(any(word.startswith(term) for word in words) if more else term in words for term, more in ends)


def _best(scores: Mapping[str, int]) -> str | None:
    return max(scores, key=scores.__getitem__, default=None)


# --- step 5: what a line says ------------------------------------------------------------------------------


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
    if kind in MAY_LACK:
        shape = {
            name.rstrip("?"): part for name, part in shape.items() if name[-1] != "?" or name[:-1] in payload
        }
    fits = type(payload) is dict and [*payload] == [*shape]
    if not fits or not all(map(_shaped, payload.values(), shape.values())):
        raise _Refused("event-shape", f"not a payload of {kind}: its fields, types or form differ")
    return dict(payload)


def _completion(kind: str, text: str) -> Sequence[str]:
    """Give possible effect, content, reuse link and status of a completion."""
    match = COMPLETION(text)
    if match is None:
        _payload(kind, f'{{"action_id":""{text}')
        raise _Refused("event-shape", f"not a payload of {kind}: its form or status differs")
    return match.groups()


def _error_code(content: str) -> Any:
    """Read what a completion says about its action, and give the code of its error; None is no error."""
    return _error_code_again(content) if len(content) < 256 else _error_code_of(content)


def _error_code_of(content: str) -> Any:
    error = _payload("content", f"{{{content[:-1]}}}")["error"]
    return None if error is None else str(error.get("code"))


_error_code_again = lru_cache(maxsize=1024)(_error_code_of)


def _reading(kept: Any) -> tuple[str, str, str | None]:
    """Read an answer's bytes once more: status, response as text, error."""
    if not _shaped(kept, {"body": str, "encoding": ("utf-8", "base64")}):
        raise _Refused("event-shape", "what was observed is not kept as bytes in utf-8 or base64")
    try:
        body = kept["body"].encode()
        said = json.loads(base64.b64decode(body, validate=True) if kept["encoding"] == "base64" else body)
        _canonical(said).encode()
    except (ValueError, RecursionError):
        return "failed", "null", "the answer is not JSON"
    if not isinstance(said, dict) or said.get("finish") != "stop" or not isinstance(said.get("text"), str):
        return "failed", "null", "the answer is not finished"
    return "succeeded", _dump({"text": said["text"]}), None


def _statistics(payload: Mapping[str, Any]) -> Statistics:
    """Give mean and standard deviation (n - 1) of what was measured, each with its standard error."""
    try:
        pairs = Counter(payload["values"]) if "values" in payload else payload["counts"]
        weights = {float(value): count for value, count in pairs.items()}
        n = sum(weights.values())
        mean = math.fsum(value * count for value, count in weights.items()) / n
        squares = math.fsum(count * (value - mean) ** 2 for value, count in weights.items())
        fourth = math.fsum(count * (value - mean) ** 4 for value, count in weights.items()) / n
        fits = math.isfinite(fourth) and all(type(count) is int and count > 0 for count in weights.values())
        sd = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
        sd_se = math.sqrt(max(0.0, fourth - sd**4) / n) / (2 * sd) if sd else 0.0
    except (ValueError, TypeError, ArithmeticError):
        fits = False
    if not fits or len(weights) != len(pairs):
        raise _Refused("event-shape", "not a sample: nothing was measured, or not in numbers")
    if n == 1:
        return {"mean": (mean, None), "sd": (None, None)}
    return {"mean": (mean, sd / math.sqrt(n)), "sd": (sd, sd_se)}


def _is_canonical(text: str) -> bool:
    """Say whether a value that stands in a line is JSON, and in the one form of RFC 8785."""
    if FLAT(text):
        return _ascend((*KEYS(text),)) if text[0] == "{" else True
    try:
        return _canonical(_parse(text)) == text
    except (_Refused, ValueError, RecursionError):
        return False


@lru_cache(maxsize=1024)
def _ascend(keys: tuple[str, ...]) -> bool:
    return all(map(str.__lt__, keys, keys[1:]))


def _fingerprint(dimensions: tuple[str, ...], kind: str) -> dict[str, Any]:
    named = dict(zip(DIMENSIONS[kind], dimensions, strict=False))
    unsigned = {"version": VERSIONS[kind], "dimensions": named}
    return unsigned | {"digest": _sha256(_canonical(unsigned))}


def _digest_of(value: Any) -> str:
    try:
        return _sha256(_canonical(value))
    except (ValueError, RecursionError):
        raise _Refused("not-canonical", "what it asks for has no canonical form, so no fingerprint") from None


def _brief(text: str) -> str | bytes:
    """Give a text that is only to be compared, or in place of a long one its SHA-256."""
    return text if len(text) < 256 else hashlib.sha256(text.encode()).digest()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_digest_again = lru_cache(maxsize=1024)(_sha256)


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


def _case_of(run: str) -> str:
    return _unquoted(run).partition("/")[2]


# --- step 6: the world -------------------------------------------------------------------------------------


class _World:
    """The receipts of all cases, each a line of who keeps it: of an effect, or of a call at its provider."""

    def __init__(self, root: str, digests: Mapping[str, str], ledger: _Ledger, found: _Findings) -> None:
        self.root, self.digests, self.ledger, self.found = root, digests, ledger, found
        self.effects: Counter[str] = Counter()  # by stream of an action
        self.answers: Counter[tuple[str, str]] = Counter()  # by run and key of calls
        self.shown: set[tuple[str, ...]] = set()  # what verdicts may rest on

    def check(self) -> None:
        """Hold each case's receipts against its markers, and against what the ledger allows."""
        cases = {_case_of(run): case for run, case in self.ledger.cases.items()}
        markers: dict[str, set[str]] = {name: set() for name in cases}
        for path in self.digests:
            if path.startswith("data/world/"):
                _, _, name, *rest = path.split("/")
                markers.setdefault(name, set()).update(rest[1:])
        for name, left in markers.items():
            self.receipts(f"data/world/{name}", cases.get(name, _Case("")), left)
            for marker in sorted(left):
                where = f"data/world/{name}/markers/{marker}"
                self.found.add("receipt-missing", where, "no receipt names it")
        self.bounds()

    def receipts(self, folder: str, case: _Case, left: set[str]) -> None:
        """Read the receipts of one case, and take the markers that they name out of `left`."""
        path = f"{folder}/receipts.jsonl"
        if path not in self.digests:
            return self.found.add("missing-file", path, "a case without effects has an empty one")
        seen: set[str] = set()
        asked = {(call.key, call.body) for call in case.requests if call.work}
        for n, raw in enumerate(_read(self.root, path).splitlines(keepends=True), 1):
            where, text = f"{path} line {n}", raw.decode("utf-8", "replace")
            receipt = RECEIPT(text) or PROVIDED(text)
            if receipt is None or receipt["n"] != str(n):
                self.found.add("receipt-shape", where, "not a receipt: its fields, types, form or n differ")
                continue
            case.receipts += 1
            if "hash" in receipt.groupdict():
                if (receipt["key"], receipt["hash"]) not in asked:
                    self.found.add(
                        "receipt-unknown-call", where, "it names key and words of no call of its case"
                    )
                self.answers[case.run, receipt["key"]] += 1
                self.shown.add((case.run, str(n), receipt["key"], receipt["hash"]))
                continue
            action, effect, name = receipt["action"], receipt["effect"], receipt["marker"]
            marker = self.digests.get(f"{folder}/markers/{name}")
            if marker is None:
                self.found.add("marker-missing", where, "the marker that it names is not there")
            elif name not in left:
                self.found.add("marker-shared", where, "the marker that it names is an earlier receipt's")
            elif marker != effect:
                self.found.add("marker-differs", where, "its effect is not the SHA-256 of the marker")
            left.discard(name)
            request = self.ledger.find(action)
            if request is None or request.call or request.case is not case:
                self.found.add("receipt-unknown-action", where, "it names no action of this case")
            else:
                self.effects[action] += 1
                request.duplicate |= effect in seen
                if request.evidence:
                    self.shown.add((action, str(n), name, effect))
            seen.add(effect)
        return None

    def bounds(self) -> None:
        """Hold what the world shows against what the ledger allows: of an action, of the calls of a key."""
        calls: dict[tuple[str, str], tuple[int, int]] = {}
        outside: list[tuple[int, int, int, str]] = []
        for stream, request in self.ledger.requests.items():
            for one in request.evidence:
                named = {name: str(value) for name, value in one.items()} if isinstance(one, dict) else {}
                if request.work and named.keys() == {"receipt"}:
                    wanted = (request.case.run, named["receipt"], request.key, request.body)
                elif not request.call and named.keys() == {"effect", "marker", "receipt"}:
                    wanted = (stream, named["receipt"], named["marker"], named["effect"])
                else:
                    continue  # of another effect system
                if wanted not in self.shown:
                    message = "its evidence names no receipt of it"
                    self.found.add("evidence-unresolved", f"{LEDGER} {stream}", message)
            if request.work:
                low, high = calls.get(at := (request.case.run, request.key), (0, 0))
                low += request.observed + (request.verdict == "effect_confirmed")
                calls[at] = low, high + request.attempt - (request.verdict == "no_effect_confirmed")
            elif not request.call:
                low, high = request.bounds
                if not low <= self.effects.get(stream, 0) <= high:
                    outside.append((low, high, self.effects[stream], f"{request.case.run} {stream}"))
        outside += [(*pair, self.answers[at], " ".join(at)) for at, pair in calls.items()]
        others = self.effects.keys() - self.ledger.requests.keys()  # those that were let go had none
        outside += [(0, 0, self.effects[stream], stream) for stream in sorted(others)]
        for low, high, shown, where in outside:
            if not low <= shown <= high:
                allowed = f"{low}" if low == high else f"{low} to {high}"
                message = f"the ledger allows {allowed} effects, the world shows {shown}"
                self.found.add("effects-outside-bounds", where, message)


# --- step 7: the results: the forms of rows ----------------------------------------------------------------

Row = dict[str, Any]
TINY = 1e-12
CONFLICT = "IdempotencyConflictError"
LABELS = ("source-inspected", "regression-tested", "demo", "pinned run")
ACTIONS_ROW = {
    "case": str, "revision": str, "requests": int, "statuses": list, "reused_from": list, "raised": list,
    "effects_ledger": [int], "effects_world": int, "effects_summary": int, "labels": list,
    "event_kinds": list, "provider_calls": int, "notes": [str], "evidence_label": LABELS,
}  # fmt: skip
WORK_ROW = {
    "case": str, "stage": _MAYBE_TEXT, "provider_effect": _MAYBE_TEXT, "next_operation": str,
    "duplicate_risk": (bool, type(None)), "receipts": int, "events": int, "then": _MAYBE_TEXT,
    "outcome": _MAYBE_TEXT, "receipts_after": int, "events_after": int, "evidence_label": LABELS,
}  # fmt: skip


def _facts(case: _Case) -> Row:
    """Work out what ledger and world say of the requests of any case, or of its trajectory."""
    if len(case.trajectories) == 1:
        return case.trajectories[0].row()

    def each(name: str) -> _Column:
        return _Column(lambda: map(attrgetter(name), case.requests))

    return {
        "requests": len(case.requests), "statuses": each("status"), "reused_from": each("reused_from"),
        "raised": each("raised"), "labels": each("label"),
        "event_kinds": _Column(lambda: map(KINDS.__getitem__, case.kinds)),
        "effects_ledger": [sum(request.bounds[n] for request in case.requests) for n in (0, 1)],
        "effects_world": case.receipts, "effects_summary": case.receipts,
        "provider_calls": case.provider_calls,
    }  # fmt: skip


def _actions_row(row: Row, case: _Case, facts: Row) -> Row:
    """Add what reached the callers; of an orphan the ledger cannot know it."""
    raised, known = row["raised"], facts["raised"]
    fits = len(raised) == len(case.requests) and all(
        (case.requests[place].raised, case.requests[place].status) == (None, None) and name != CONFLICT
        for place, name in _others(raised, known).items()
    )
    return facts | {"raised": raised if fits else None}


# The newest of these events of a call says how far it came, what the provider did, and what is in order.
STAGES = {
    CALLED: ("requested", "none", "start_call"),
    SENT: ("manifest_recorded", "none", "start_call"),
    TRIED: ("effect_unknown", "unknown", "reconcile_effect"),
    **dict.fromkeys((OBSERVED, READ, NOT_RETRIED, ATTEMPT_OVER, STATUS_DECIDED),
                    ("observed", "observed", "reinterpret")),
    CALL_COMPLETED: ("completed", "observed", "none"),
    CALL_COMPLETED + " denied": ("denied", "none", "none"),
    CALL_JUDGED + " effect_confirmed": ("reconciled", "observed", "none"),
    CALL_JUDGED + " no_effect_confirmed": ("reconciled", "none", "start_call"),
    CALL_JUDGED + " still_unknown": ("effect_unknown", "unknown", "none"),
    CALL_REFUSED: ("refused", "none", "none"),
}  # fmt: skip
BEFORE_A_CALL = {NOT_COMPILED: "fix_inputs", COMPILED: "start_call"}  # anything else: recompile
FOLLOW_UPS = {RESUMED: "resume", OPENED: "naive-restart"}  # by the next process's first event
IN_ORDER = {"resume": "start_call", "reinterpret": "reinterpret"}


def _work_row(row: Row, case: _Case, _: Row) -> Row:
    """Work out how far the first process came (what was recorded by its actor), and what the next one did."""
    here = next((n for n, step in enumerate(case.trace) if step[0] != case.trace[0][0]), len(case.trace))
    before, after = case.trace[:here], case.trace[here:]
    calls = [step[2] for step in before if step[1] == CALLED]
    requests = {request.stream: request for request in case.requests}
    if calls:
        last = next(kind for _, kind, stream in reversed(before) if stream == calls[-1] and kind in STAGES)
        stage, effect, then = STAGES[last]
        if last == CALL_COMPLETED and requests[calls[-1]].reused_from:
            effect = "none"  # it was answered from the record
    else:
        stage, effect, then = None, None, BEFORE_A_CALL.get(before[-1][1], "recompile")
    if after:
        follow_up: str | None = FOLLOW_UPS.get(after[0][1], "reinterpret")
        outcome = getattr(requests.get(after[-1][2]), "status", None)
    else:  # nothing was done, or it was refused, which leaves no trace but has a reason
        follow_up = row["then"] if row["then"] in IN_ORDER else None
        in_order = IN_ORDER.get(follow_up or "", then) == then
        refused = f"refused: {'request_body_hash' if in_order else then}"
        outcome = refused if follow_up and not (in_order and follow_up == "reinterpret") else None
    risky = effect == "unknown" or (stage, effect) == ("reconciled", "observed")
    return {
        "stage": stage, "provider_effect": effect, "next_operation": then,
        "duplicate_risk": None if stage is None else risky,
        "receipts": case.receipts - sum(kind == OBSERVED for _, kind, _ in after),
        "events": len(before), "then": follow_up, "outcome": outcome,
        "receipts_after": case.receipts, "events_after": len(case.kinds),
    }  # fmt: skip


def _near(said: Any, wanted: float | None) -> bool:
    if wanted is None:
        return said is None
    number = type(said) in (int, float) and abs(said) <= sys.float_info.max
    return number and math.isclose(said, wanted, rel_tol=1e-9, abs_tol=TINY)


def _samples_row(row: Row, case: _Case, _: Row) -> Row:
    """Work the statistics out that a row gives; a quantity that was recorded has to be in it."""
    truth: Row = {}
    missing = dict(case.samples)
    for name, said in row.items():
        quantity, statistic = name.rpartition("_")[::2]
        if name in case.samples:
            quantity, statistic = name, "mean"
        elif not isinstance(said, dict) and statistic not in ("mean", "sd"):
            continue  # a parameter
        value, se = case.samples.get(quantity, {}).get(statistic, (math.nan, math.nan))
        known = {"sampled": value, "se": se} if isinstance(said, dict) else {"": value}
        given = said if isinstance(said, dict) else {"": said}
        near = given.keys() - {"closed_form"} == known.keys() and all(
            _near(given[part], wanted) for part, wanted in known.items()
        )
        truth[name] = said if near else known
        missing.pop(quantity, None)
    return truth | missing


# To add a form, add it here: does a row of a case have it, and what should its fields be (from the row as it
# is, the case, and the facts of any case). Where it needs events of no request: `_Ledger.without_request`.
FORMS: dict[str, tuple[Callable[[Row, _Case], bool], Callable[[Row, _Case, Row], Row]]] = {
    "actions": (lambda row, case: _shaped(row, ACTIONS_ROW) and not case.samples and not case.trajectories,
                _actions_row),
    "work": (lambda row, case: _shaped(row, WORK_ROW) and bool(case.trace), _work_row),
    "samples": (lambda row, case: bool(case.samples) and row.get("evidence_label") in LABELS
                and all(re.fullmatch("[a-z0-9_]+", name) for name in row), _samples_row),
    "film": (lambda row, case: _shaped(row, FILM_ROW) and len(case.trajectories) == 1,
             lambda _, case, __: _facts(case)),
}  # fmt: skip


def _compare_results(root: str, truths: Mapping[str, Row], ledger: _Ledger, found: _Findings) -> Row:
    """Compare each row with what it should be; give what the protocol is compared with."""
    cases = {_case_of(run): case for run, case in ledger.cases.items()}
    raised: dict[str, Any] = {}
    revisions: dict[str, Any] = {}
    rows, differing = 0, _Findings()

    def take(pieces: _Pieces) -> str:
        nonlocal rows
        row = pieces.row(lambda read, name: truths.get(str(read.get("case")), {}).get(name))
        name = row.get("case", row.get("policy")) if isinstance(row, dict) else None
        if type(name) is not str:  # a trajectory's is its policy
            return "it has a row without a case"
        rows += 1
        if name in raised:
            return ""  # which makes the cases differ
        raised[name], where = row.get("raised"), f"{RESULTS} case {name!a}"
        case = cases.get(name, _Case(_quoted(f"/{name}")))
        truth = next((truth for fits, truth in FORMS.values() if fits(row, case)), None)
        if truth is None and name not in cases and [*cases] == [*islice(raised, len(cases))]:
            differing.add("tail-missing", where, "the ledger ends before it")
        elif truth is None:
            differing.add("document-shape", where, "it has the fields and types of no form of row")
        else:
            revisions[where] = row["revision"] if truth is _actions_row else None
            for field_of_it, value in truth(row, case, truths.get(name) or _facts(case)).items():
                _compare(field_of_it, row.get(field_of_it), value, case, where, differing)
        return ""

    results = _document(root, RESULTS, found, rows="rows", row=take)
    if not results:
        return {}
    lesson, revision = results["lesson"], results["revision"]
    if ledger.rules - {revision}:
        found.add("revision-differs", RESULTS, "the ledger's requests were asked under other rules")
    if len(raised) != rows or {_quoted(f"{lesson}/{name}") for name in raised} != ledger.cases.keys():
        found.add("cases-differ", RESULTS, "its cases are not those of the ledger")
    found.take(differing)
    for where in [where for where, said in revisions.items() if said not in (None, revision)]:
        found.add("row-revision", where, "its revision is not that of the results")
    return {"lesson": lesson, "revision": revision, "raised": raised}


def _compare(name: str, said: Any, value: Any, case: _Case, where: str, found: _Findings) -> None:
    if _is(said, value):
        return
    goes_on = False
    if not case.samples:  # whose quantities may have any name
        longer = name == "event_kinds" and [*islice(said, len(case.kinds))] == [*value]
        goes_on = longer or (name == "events_after" and said > value)
    if goes_on or value == PAUSED:
        found.add("tail-missing", where, f"its {name} go on where the ledger ends")
    else:
        code = "row-sample" if case.samples else f"row-{name.replace('_', '-')}"
        found.add(code, where, f"its {name} is not what ledger and world show")


# --- step 8: the protocol ----------------------------------------------------------------------------------


def _compare_protocol(
    root: str, said: Row, truths: Mapping[str, Row], ledger: _Ledger, found: _Findings
) -> None:
    """Compare what was planned and expected with what ledger, world and results show."""
    cases = {_case_of(run): case for run, case in ledger.cases.items()}
    planned, differing = Counter[str](), _Findings()

    def due(plan: Row, name: str) -> Any:
        case = str(plan.get("case"))
        if name == "requests":
            in_order = type(marked := plan.get("marked")) is list and "threads" not in marked
            return cases[case].asked if in_order and case in cases else None
        return said["raised"].get(case) if name == "raised" else truths.get(case, {}).get(name)

    def take(pieces: _Pieces) -> str:
        plan = pieces.row(due if said else lambda _, __: None)
        if not _shaped(plan, PLAN_OF_A_CASE):
            return "it has a case with other fields or types than a protocol's"
        planned[plan["case"]] += 1
        if said and plan["case"] in said["raised"] and planned[plan["case"]] == 1:
            case = cases.get(plan["case"], _Case(""))
            _compare_plan(plan, case, truths.get(plan["case"]) or _facts(case), said, differing)
        return ""

    protocol = _document(root, PROTOCOL, found, rows="cases", row=take)
    if not protocol or not said:
        return
    if (protocol["lesson"], protocol["revision"]) != (said["lesson"], said["revision"]):
        found.add("revision-differs", PROTOCOL, "its lesson or rules are not those of the results")
    if protocol["ledger_id"] != ledger.ledger_id:
        found.add("ledger-id-differs", PROTOCOL, "it names another ledger")
    if [*planned.elements()] != [*said["raised"]] or protocol["lesson"] != said["lesson"]:
        found.add("cases-differ", PROTOCOL, "its cases are not those of the results, in their order")
    found.take(differing)


def _compare_plan(plan: Row, case: _Case, facts: Row, said: Row, found: _Findings) -> None:
    where, expected = f"{PROTOCOL} case {plan['case']!a}", plan["expected"]
    raised, planned = said["raised"][plan["case"]], plan["requests"]
    asked: Iterable[Row] = case.asked
    if (len(case.trajectories) == 1) != ("policy" in expected):
        return found.add("document-shape", where, "what it expects has another form than the row")
    marked = () if "policy" in expected else plan["marked"]
    seen = facts | {"raised": expected.get("raised") if raised is None else raised}  # not every form says it
    if marked:
        allowed = [*expected["statuses"]]
        fits = all(status in allowed for status in {*seen["statuses"]})
        seen |= {"raised": expected["raised"], "statuses": expected["statuses"] if fits else None}
    if "threads" in marked:  # their order is nobody's promise, nor which of them is replayed
        asked, planned = sorted(asked, key=_dump), sorted(planned, key=_dump)
        seen["reused_from"] = expected["reused_from"]
    if not _is(planned, asked):
        found.add("requests-differ", where, "the requests in the ledger are not those that were planned")
    for name, value in expected.items():
        if not _is(value, seen[name]):
            found.add(f"expected-{name.replace('_', '-')}", where, f"its {name} is not what was expected")
    return None


def _asked(case: _Case) -> Iterator[Row]:
    """Give the requests of a case as a protocol names them."""
    for name, request in zip(case.named(), case.requests, strict=True):
        key = request.key
        yield {
            "id": name[1:-1] if "\\" not in name else _unquoted(name),
            "kind": "call" if request.call else "action",
            "key": key[1:-1] if "\\" not in key else _unquoted(key),
        }
    for trajectory in case.trajectories:
        yield {"id": _unquoted(trajectory.stream), "kind": "trajectory", "key": None}


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
