"""What does a verifier miss that checks hashes and nothing else?

Chapter: 004, "Checking it without trusting it": digests tell what was changed later, not what was false
from the start.

Idea: an example to be scored, no part of a bundle. It does what any BagIt tool does: every file that the
manifests list is there with that SHA-256, and no other file is. Whoever writes the manifests anew passes.

    python -I -S hash_only.py BUNDLE [--expect DIGEST] [--json]     exit 0 valid, 1 findings, 2 could not run

Always true:
  H1. Only regular files found inside the bundle are opened, whatever a manifest lists.

Not here: chain, events, receipts, rows, what anything means (`prove.verify`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

TAGMANIFEST = "tagmanifest-sha256.txt"
MANIFESTS = ("manifest-sha256.txt", TAGMANIFEST)
Finding = dict[str, str]


def verify(bundle: Path, expect: str | None) -> list[Finding]:
    """Compare the files of a bundle with its manifests, and its digest with the one known from outside."""
    files = {
        path.relative_to(bundle).as_posix(): path
        for path in bundle.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    findings: list[Finding] = []
    seen: set[str] = set()
    for name in MANIFESTS:
        content = files[name].read_text(encoding="utf-8", errors="replace") if name in files else ""
        for line in content.splitlines():
            digest, _, path = line.partition("  ")
            if path in seen:
                findings.append(_finding("duplicate-entry", path, "listed before"))
            elif path not in files:
                findings.append(_finding("missing-file", path, "listed and not there"))
            elif digest != _sha256(files[path]):
                findings.append(_finding("digest-differs", path, "its SHA-256 is another"))
            seen.add(path)
    findings += [
        _finding("unlisted-file", path, "there and in no manifest")
        for path in sorted(files.keys() - seen - {TAGMANIFEST})
    ]
    if expect is not None and (TAGMANIFEST not in files or expect.lower() != _sha256(files[TAGMANIFEST])):
        findings.append(_finding("outside-digest-differs", TAGMANIFEST, "its SHA-256 is another"))
    return findings


def main() -> int:
    """Run from a command line; give the exit status."""
    parser = argparse.ArgumentParser(prog="hash_only.py", description="Compare a bundle with its manifests.")
    parser.add_argument("bundle", type=Path, help="the folder that holds bagit.txt")
    parser.add_argument("--expect", metavar="DIGEST", help=f"SHA-256 of {TAGMANIFEST}, known from outside")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if not (options.bundle / MANIFESTS[0]).is_file():
        print("This is not a bundle: it holds no manifest-sha256.txt.", file=sys.stderr)
        return 2
    findings = verify(options.bundle, options.expect)
    complete = "not checked" if options.expect is None else "no" if findings else "yes"
    if options.json:
        print(json.dumps({"valid": not findings, "complete": complete, "findings": findings}, indent=2))
    else:
        for one in findings:
            print(ascii(f"{one['code']}: {one['where']}: {one['message']}")[1:-1])
        print(f"valid: {'no' if findings else 'yes'}\ncomplete: {complete}")
    return 1 if findings else 0


def _finding(code: str, where: str, message: str) -> Finding:
    return {"code": code, "where": where, "message": message}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
