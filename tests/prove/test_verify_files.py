"""Does the verifier judge names and bytes before it believes any of them?"""

from __future__ import annotations

import os
import random
import socket
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.prove import bundle, verify

Good = Callable[..., Path]
MANIFEST = "manifest-sha256.txt"


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify.verify(folder).findings}


def add_line(folder: Path, line: bytes, name: str = MANIFEST) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + line)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths, relative to the bundle, that the verifier opens."""
    paths: list[str] = []
    original = verify._open

    def note(root: str, path: str) -> int:
        paths.append(path)
        return original(root, path)

    monkeypatch.setattr(verify, "_open", note)
    return paths


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("../outside.txt", "path-leaves-bundle"),
        ("data/../../outside.txt", "path-leaves-bundle"),
        ("data\\..\\outside.txt", "path-leaves-bundle"),
        ("/etc/hostname", "path-absolute"),
        ("\\\\server\\share\\x", "path-absolute"),
        ("C:\\x.txt", "path-absolute"),
        ("c:x.txt", "path-absolute"),
        ("~/x.txt", "path-absolute"),
        ("data/./x.txt", "path-not-plain"),
        ("data//x.txt", "path-not-plain"),
        ("data/x.txt/", "path-not-plain"),
        ("data/sub\\x.txt", "path-not-plain"),
        ("data/x.txt:stream", "path-not-plain"),
        ("data/NUL", "path-not-plain"),
        ("data/com1.txt", "path-not-plain"),
        ("data/x.", "path-not-plain"),
        ("data/x ", "path-not-plain"),
        ("data/a\tb", "path-not-plain"),
        ("data/a%0Ab", "path-not-plain"),
        ("data/a%41b", "manifest-line"),
        ("data/nowhere.txt", "missing-file"),
        ("README.md", "duplicate-entry"),
    ],
)
def test_a_bad_entry_is_refused_before_anything_is_read(
    good: Good, opened: list[str], entry: str, code: str
) -> None:
    """V1: the entry is named by its own code, and no payload byte was read by then."""
    folder = good("lab")
    add_line(folder, f"{'0' * 64}  {entry}\n".encode())

    assert code in codes(folder)
    assert set(opened) <= set(verify.TAG_FILES)


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b"# a comment\n", b"0" * 64 + b" data/x\n", b"0" * 63 + b"  data/x\n", b"no newline",
        b"0" * 64 + b" *data/x\n", b"F" * 64 + b"  data/x\n", b"0" * 64 + b"  data/\xff\n",
    ],
)  # fmt: skip
def test_a_manifest_has_one_form(good: Good, line: bytes) -> None:
    """What other tools tolerate in a manifest is refused: the bytes have one form."""
    folder = good("lab")
    add_line(folder, line)

    assert "manifest-line" in codes(folder)


def test_a_path_listed_twice_is_refused(good: Good) -> None:
    """One file has one digest, even when both lines say the same."""
    folder = good("lab")
    lines = (folder / MANIFEST).read_bytes().splitlines(keepends=True)
    add_line(folder, lines[0])

    assert codes(folder) == {"duplicate-entry"}


@pytest.mark.parametrize(
    "name", ["bagit.txt", MANIFEST, "tagmanifest-sha256.txt", "bag-info.txt", "README.md"]
)
def test_every_tag_file_is_required(good: Good, name: str) -> None:
    """A bundle without one of its tag files is refused with the file named."""
    folder = good("lab")
    (folder / name).unlink()

    assert "missing-file" in codes(folder)


def test_other_files_at_the_root_are_unlisted(good: Good) -> None:
    """A fetch list would make a tool read from elsewhere; it is no part of a bundle."""
    folder = good("lab")
    (folder / "fetch.txt").write_bytes(b"https://example.org/x - data/x\n")

    assert codes(folder) == {"unlisted-file"}


@pytest.mark.skipif(os.name == "nt", reason="the system makes links for administrators only")
@pytest.mark.parametrize("where", ["data/environment.json", "README.md", "data/world", "data"])
def test_a_link_is_refused_wherever_it_stands(
    good: Good, opened: list[str], tmp_path: Path, where: str
) -> None:
    """Neither a file nor a folder may be a link, even where what it leads to is right."""
    folder = good("lab")
    (folder / where).rename(tmp_path / "real")
    (folder / where).symlink_to(tmp_path / "real")

    assert "link" in codes(folder)
    assert not [path for path in opened if path.startswith("data/")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
@pytest.mark.parametrize("listed", [True, False])
def test_a_pipe_does_not_make_it_wait(good: Good, listed: bool) -> None:
    """Nobody writes into the pipe, and the verdict comes all the same."""
    folder = good("lab")
    name = "data/environment.json" if listed else "data/pipe"
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)

    assert "special-file" in codes(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_what_changes_while_it_is_read_is_not_opened(good: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe or a link put in place of a file after the names were judged cannot be judged."""
    folder = good("lab")
    original = verify._manifests

    def swap(*arguments: object) -> dict[str, str]:
        listed = original(*arguments)  # type: ignore[arg-type]
        (folder / "data/environment.json").unlink()
        os.mkfifo(folder / "data/environment.json")
        return listed

    monkeypatch.setattr(verify, "_manifests", swap)
    with pytest.raises(verify.CannotVerify, match="it changed while it was read"):
        verify.verify(folder)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="the system has no sockets in folders")
def test_a_socket_is_refused(good: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is neither file nor folder is no evidence."""
    folder = good("lab")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")

        assert codes(folder) == {"special-file"}


def test_a_name_in_another_unicode_form_is_told_apart(good: Good) -> None:
    """Composed in the manifest, decomposed on disk: both are shown escaped, and nothing is normalised."""
    folder = good("lab")
    composed, decomposed = (unicodedata.normalize(form, "data/world/é") for form in ("NFC", "NFD"))
    (folder / decomposed).mkdir()
    if [path for path in (folder / "data/world").iterdir() if path.name == composed[-1]]:
        pytest.skip("the file system composes names itself")
    (folder / decomposed / "receipts.jsonl").touch()
    bundle.seal(folder)
    text = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(text.replace(decomposed.encode(), composed.encode()))
    report = verify.verify(folder)

    assert "unicode-form" in {finding.code for finding in report.findings}
    assert "missing-file" not in {finding.code for finding in report.findings}
    where = next(finding.where for finding in report.findings if finding.code == "unicode-form")
    assert "\\xe9" in where
    assert "e\\u0301" in where


@pytest.mark.parametrize("name", ["data/protocol.json", "data/ledger.jsonl", "data/verify.py"])
def test_converted_line_endings_are_said_to_be_that(good: Good, name: str) -> None:
    """One converted file is told apart from any other change, and never silently taken for the original."""
    folder = good("lab")
    (folder / name).write_bytes((folder / name).read_bytes().replace(b"\n", b"\r\n"))

    assert codes(folder) == {"line-endings"}


def test_a_converted_checkout_is_said_to_be_that(good: Good) -> None:
    """When every file was converted, the manifests too, that is the one thing that is found."""
    folder = good("lab")
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert codes(folder) == {"line-endings"}


def test_another_declaration_is_refused(good: Good) -> None:
    """A bag of another version or encoding is not read as if it were ours."""
    folder = good("lab")
    (folder / "bagit.txt").write_bytes(verify.BAGIT_TXT.replace(b"1.0", b"2.0"))
    bundle.seal(folder)

    assert codes(folder) == {"bagit-declaration"}


def swap(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda raw: raw.replace(old, new, 1)


CALLS = b'"provider_calls": '


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("protocol", lambda raw: b"\xef\xbb\xbf" + raw, "byte-order-mark"),
        ("results", swap(b'"demo"', b'"demo\xff"'), "not-utf8"),
        ("results", swap(CALLS + b"0", CALLS + b"NaN"), "number-not-finite"),
        ("results", swap(CALLS + b"0", CALLS + b"1e999"), "number-not-finite"),
        ("results", swap(CALLS + b"0", CALLS + b"true"), "document-shape"),
        ("results", swap(CALLS + b"0", CALLS + b"0.0"), "document-shape"),
        ("results", swap(b'"notes": [', b'"notes": [1, '), "document-shape"),
        ("protocol", swap(b'"seed"', b'"seed": 1, "seed"'), "duplicate-key"),
        ("protocol", swap(b"protocol-v1", b"protocol-v2"), "unknown-version"),
        ("protocol", swap(b'"lesson"', b'"lesson_"'), "document-shape"),
        ("environment", lambda raw: raw + b"{}", "not-json"),
        ("environment", lambda raw: b"[" * 100_000, "not-json"),
        ("environment", lambda raw: b"", "not-json"),
        ("environment", lambda raw: b"null", "document-shape"),
        ("environment", lambda raw: b'"' + b"9" * 5000 + b'"', "document-shape"),
        ("environment", lambda raw: b"9" * 5000, "not-json"),
    ],
)  # fmt: skip
def test_documents_are_strict_json_of_a_known_shape(
    good: Good, name: str, change: Callable[[bytes], bytes], code: str
) -> None:
    """With every digest made good again, the form of a document is judged, and named."""
    folder = good("lab")
    path = folder / "data" / f"{name}.json"
    raw = path.read_bytes()
    path.write_bytes(change(raw))
    assert path.read_bytes() != raw
    bundle.seal(folder)

    assert code in codes(folder)


def test_findings_are_bounded(good: Good) -> None:
    """A thousand of one kind are listed as a few and a count, and hide no other kind."""
    folder = good("lab")
    for number in range(1000):
        (folder / "data" / f"extra-{number:04d}").touch()
    (folder / "data/results.json").unlink()
    report = verify.verify(folder)

    assert len(report.findings) == verify.LISTED_OF_EACH_CODE + 2
    assert {finding.code for finding in report.findings} == {"unlisted-file", "missing-file"}
    assert report.findings[-1].message == f"{1000 - verify.LISTED_OF_EACH_CODE} more of these"


def test_a_flipped_bit_is_always_found(good: Good) -> None:
    """V2: whatever single bit of whatever file differs, there is a finding and never a traceback."""
    folder = good("lab", rarer=True)
    dice = random.Random(22)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        for _ in range(12 if raw else 0):
            place, bit = dice.randrange(len(raw)), dice.randrange(8)
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :])
            assert not verify.verify(folder).valid, f"{path.name} byte {place} bit {bit}"
        path.write_bytes(raw)

    assert verify.verify(folder).valid


def test_a_cut_or_grown_file_is_always_found(good: Good) -> None:
    """V2: a file that ends early, is empty, or goes on is found too."""
    folder = good("88d1291")
    dice = random.Random(23)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        raw = path.read_bytes()
        for changed in (raw[: dice.randrange(len(raw))] if raw else b"x", b"" if raw else b"\n", raw + b"\n"):
            path.write_bytes(changed)
            assert not verify.verify(folder).valid, path.name
        path.write_bytes(raw)


def test_damage_with_good_digests_never_ends_in_a_traceback(good: Good) -> None:
    """V2: bytes changed at random with every manifest written anew give a verdict, whatever it is."""
    folder = good("lab", rarer=True)
    dice = random.Random(24)
    names = ["ledger.jsonl", "protocol.json", "results.json", "world/A-exact-duplicate/receipts.jsonl"]
    for name in names:
        path = folder / "data" / name
        raw = path.read_bytes()
        for _ in range(60):
            place, size = dice.randrange(len(raw)), dice.choice((0, 1, 1, 2, 40))
            stuff = dice.choice((b"", b"0", b"{", b'"', b"null", b"\xff", b"[]", b"-1e5", b"\\u0000", b"\n"))
            path.write_bytes(raw[:place] + stuff + raw[place + size :])
            bundle.seal(folder)
            verify.verify(folder)
        path.write_bytes(raw)
