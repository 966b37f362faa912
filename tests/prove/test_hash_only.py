"""Does the example that checks hashes alone see bytes, and nothing but bytes?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.prove import hash_only
from codeai_lab.prove.bundle import digest_of
from codeai_lab.prove.corruptions import CORRUPTIONS
from codeai_lab.prove.forgeries import FORGERIES

Good = Callable[..., Path]
OF_BYTES = {"cut-tail-old-digests", "extra-file", "missing-file", "list-twice"}


def codes(bundle: Path, expect: str | None = None) -> set[str]:
    return {finding["code"] for finding in hash_only.verify(bundle, expect)}


def test_a_good_bundle_passes(kept: Good) -> None:
    """Also with the digest that is kept outside."""
    bundle = kept("lab")

    assert hash_only.verify(bundle, None) == []
    assert hash_only.verify(bundle, digest_of(bundle).upper()) == []


def test_every_consistent_forgery_passes_without_the_outside_digest(damaged: Good) -> None:
    """Manifests that were written anew say nothing about what they cover."""
    for kind in FORGERIES:
        assert hash_only.verify(damaged(kind.name, "lab", rarer=True), None) == [], kind.name


def test_the_outside_digest_catches_every_forgery(kept: Good, damaged: Good) -> None:
    """It tells that something is another, and not what."""
    digest = digest_of(kept("lab", rarer=True))
    for kind in FORGERIES:
        found = codes(damaged(kind.name, "lab", rarer=True), digest)
        assert found == {"outside-digest-differs"}, kind.name


def test_what_was_done_to_bytes_alone_is_named(damaged: Good) -> None:
    """The four kinds whose own finding is one about files and digests."""
    named = set()
    for kind in CORRUPTIONS:
        try:
            found = codes(damaged(kind.name, "lab"))
        except CorruptionDoesNotApplyError:
            continue
        if kind.code in found:
            named.add(kind.name)
    assert named == OF_BYTES


def test_nothing_outside_the_bundle_is_opened(good: Good, tmp_path: Path) -> None:
    """H1: a listed path that climbs out is missing, even where there is such a file with that digest."""
    bundle = good("lab")
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"outside\n")
    manifest = bundle / "manifest-sha256.txt"
    for path in ("data/../../outside.txt", outside.as_posix()):
        line = f"{hash_only._sha256(outside)}  {path}\n"
        manifest.write_bytes(manifest.read_bytes() + line.encode())

    assert [one["code"] for one in hash_only.verify(bundle, None)].count("missing-file") == 2


def test_it_has_the_command_line_of_the_verifier(
    good: Good, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 valid, 1 findings, 2 could not run; --json prints one object."""
    bundle = good("lab")

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["hash_only.py", *map(str, arguments)])
        return hash_only.main(), capsys.readouterr().out

    assert run(bundle) == (0, "valid: yes\ncomplete: not checked\n")
    status, said = run(bundle, "--expect", "0" * 64, "--json")
    assert (status, json.loads(said)["complete"]) == (1, "no")
    (bundle / "data" / "ligne-\u00e9.txt").touch()
    status, said = run(bundle)
    assert (status, said.splitlines()[0]) == (
        1,
        "unlisted-file: data/ligne-\\xe9.txt: there and in no manifest",
    )
    assert run(tmp_path / "missing")[0] == 2
