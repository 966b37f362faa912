"""What may happen to a bundle's bytes and names?

Chapter: 004, "Checking it without trusting it"; traps of frozen evidence: tools that convert, extract and
collide.

Idea: the ordinary ways in which a folder stops being what was frozen: a file too many or too few, a tail that
did not survive a copy, line endings that a checkout converted, and names that mean another file on another
system.

Always true:
  CR1. What a corruption of names points at is never made: no file outside the copy is written or read.

Not here: false statements with good digests (`prove.forgeries`).
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from codeai_lab.prove.copies import Copy, Corruption, kinds_in

MANIFEST = "manifest-sha256.txt"


CORRUPTIONS: list[Corruption] = []
kind = kinds_in(CORRUPTIONS)


@kind(code="digest-differs")
def cut_tail_old_digests(copy: Copy) -> None:
    """The last batch is gone, the digests are the old ones."""
    lines = copy.lines()
    copy.write_lines(lines[: -json.loads(lines[-1])["batch"][1]])


@kind(code="tail-missing")
def cut_tail_new_digests(copy: Copy) -> None:
    """The last batch is gone, every digest is new."""
    cut_tail_old_digests(copy)
    copy.seal()


@kind(code="unlisted-file")
def extra_file(copy: Copy) -> None:
    """A file that no manifest lists."""
    (copy.folder / "data" / "extra.txt").write_text("nobody listed this\n", encoding="utf-8")


@kind(code="unexpected-file")
def extra_file_new_digests(copy: Copy) -> None:
    """A file that is listed and belongs to no bundle."""
    extra_file(copy)
    copy.seal()


@kind(code="missing-file")
def missing_file(copy: Copy) -> None:
    """A listed file is gone."""
    (copy.folder / "data" / "environment.json").unlink()


@kind(code="fingerprint-disagrees")
def edit_payload_new_digests(copy: Copy) -> None:
    """A recorded request is edited, every digest is new, the chain is not."""
    events = copy.events()
    next(one for one in events if one["kind"] == "action.requested")["payload"]["performer"] += "-2"
    copy.write_events(events, rechain=False)
    copy.seal()


@kind(code="chain-broken")
def edit_clock_new_digests(copy: Copy) -> None:
    """One instant is moved, every digest is new, the chain is not."""
    events = copy.events()
    events[0]["recorded_at_us"] += 1
    copy.write_events(events, rechain=False)
    copy.seal()


@kind(code="sequence-broken")
def reorder_events(copy: Copy) -> None:
    """The last two lines have changed places."""
    lines = copy.lines()
    lines[-1], lines[-2] = lines[-2], lines[-1]
    copy.write_lines(lines)
    copy.seal()


@kind(code="marker-missing", needs="its world holds no marker")
def add_receipt(copy: Copy) -> None:
    """A receipt without a marker."""
    receipts = next(path.parent / "receipts.jsonl" for path in sorted(copy.world.glob("*/markers")))
    lines = receipts.read_bytes().splitlines(keepends=True)
    number = len(lines) + 1
    receipt = {**json.loads(lines[-1]), "n": number, "marker": f"{number:04d}.txt"}
    receipts.write_bytes(
        b"".join(lines) + json.dumps(receipt, separators=(",", ":"), sort_keys=True).encode() + b"\n"
    )
    copy.seal()


@kind(code="marker-differs")
def swap_marker(copy: Copy) -> None:
    """A marker holds another line than its receipt says."""
    marker = sorted(copy.world.glob("*/markers/*"))[0]
    marker.write_bytes(b"another line\n")
    copy.seal()


@kind(code="receipt-missing", needs="its world holds no marker")
def remove_receipt(copy: Copy) -> None:
    """A marker without a receipt."""
    next(path.parent / "receipts.jsonl" for path in sorted(copy.world.glob("*/markers"))).write_bytes(b"")
    copy.seal()


@kind(code="duplicate-key")
def duplicate_json_key(copy: Copy) -> None:
    """An object of the ledger has one key twice."""
    text = copy.ledger.read_bytes()
    copy.ledger.write_bytes(text.replace(b'"capability":', b'"capability":"hidden","capability":', 1))
    _require_change(text, copy.ledger.read_bytes())
    copy.seal()


@kind(code="number-not-finite")
def not_a_number(copy: Copy) -> None:
    """A number of the results is NaN."""
    path = copy.folder / "data" / "results.json"
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"effects_world": 1', b'"effects_world": NaN', 1))
    _require_change(text, path.read_bytes())
    copy.seal()


@kind(code="byte-order-mark")
def byte_order_mark(copy: Copy) -> None:
    """A document begins with a byte order mark."""
    path = copy.folder / "data" / "protocol.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    copy.seal()


@kind(code="unknown-version")
def future_version(copy: Copy) -> None:
    """The ledger says that a newer version wrote it."""
    lines = copy.lines()
    copy.write_lines([lines[0].replace(b'"schema_version":1', b'"schema_version":2'), *lines[1:]])
    copy.seal()


@kind(code="path-leaves-bundle")
def leave_bundle(copy: Copy) -> None:
    """A listed path climbs out of the bundle."""
    _list(copy, "data/../../outside.txt")


@kind(code="path-absolute")
def absolute_path(copy: Copy) -> None:
    """A listed path is absolute."""
    _list(copy, "/outside.txt")


@kind(code="path-not-plain")
def odd_segment(copy: Copy) -> None:
    """A listed path has an empty segment."""
    _list(copy, "data//outside.txt")


@kind(code="duplicate-entry")
def list_twice(copy: Copy) -> None:
    """A manifest lists one file twice."""
    manifest = copy.folder / MANIFEST
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join([*lines, lines[0]]))


@kind(code="link", needs="this system makes no links")
def link(copy: Copy) -> None:
    """A file is a link to another."""
    target = copy.folder / "data" / "environment.json"
    target.unlink()
    target.symlink_to("results.json")


@kind(code="line-endings")
def crlf(copy: Copy) -> None:
    """Line endings were converted to CRLF."""
    for path in _files(copy.folder):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@kind(code="unicode-collision", needs="this file system takes both names for one")
def unicode_collision(copy: Copy) -> None:
    """Two names that differ in Unicode form only."""
    composed = "data/world/caf\u00e9"
    for name in (composed, unicodedata.normalize("NFD", composed)):
        (copy.folder / name).mkdir(parents=True)
        (copy.folder / name / "receipts.jsonl").touch()
    if len(list(copy.world.glob("caf*"))) < 2:
        raise OSError("this file system takes both names for one")
    copy.seal()


@kind(code="case-collision", needs="this file system takes both names for one")
def case_collision(copy: Copy) -> None:
    """Two names that differ in case only."""
    twin = copy.folder / "data" / "Results.json"
    if twin.exists():
        raise OSError("this file system takes both names for one")
    twin.write_bytes((copy.folder / "data" / "results.json").read_bytes())
    copy.seal()


def _list(copy: Copy, path: str) -> None:
    manifest = copy.folder / MANIFEST
    manifest.write_bytes(manifest.read_bytes() + f"{'0' * 64}  {path}\n".encode())


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def _require_change(before: bytes, after: bytes) -> None:
    if before == after:
        raise ValueError("there was nothing to change")
