"""Is what `freeze` writes a bundle for everybody, and the same one every time?"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bagit
import pytest

from codeai_lab.errors import BundleError
from codeai_lab.prove import bundle, verify


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Any]:
    """What the smallest bundle is made of: one case, which never asked for anything."""
    (tmp_path / "world").mkdir()
    return {
        "protocol": {"lesson": "L", "revision": "lab", "cases": [{"case": "A", "question": "What of A?"}]},
        "ledger": b"{}\n",
        "world": tmp_path / "world",
        "results": {"rows": []},
        "environment": bundle.environment(),
        "readme": "read me\n",
        "producer": "codeai_lab 0",
    }


def test_any_bagit_tool_accepts_a_bundle(kept: Callable[..., Path], revision: str) -> None:
    """The library of another house finds the bag complete and every digest right."""
    bagit.Bag(str(kept(revision, rarer=True))).validate()


def test_the_same_parts_give_the_same_bytes(tmp_path: Path, parts: dict[str, Any]) -> None:
    """B2: two freezes differ in no byte and have one digest."""
    digests = {bundle.freeze(tmp_path / name, **parts) for name in ("one", "two")}

    assert len(digests) == 1
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_a_bundle_holds_the_files_of_the_format(tmp_path: Path, parts: dict[str, Any]) -> None:
    """The folder has the documented files and no other."""
    bundle.freeze(tmp_path / "b", **parts)

    assert sorted(bytes_of(tmp_path / "b")) == sorted(
        [
            "README.md", "bag-info.txt", "bagit.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt",
            "data/environment.json", "data/ledger.jsonl", "data/protocol.json", "data/results.json",
            "data/verify.py", "data/world/A/receipts.jsonl",
        ]
    )  # fmt: skip


def test_bag_info_depends_on_no_day_and_no_size(tmp_path: Path, parts: dict[str, Any]) -> None:
    """No Payload-Oxum and no Bagging-Date, so that the bytes are the same on another day and machine."""
    bundle.freeze(tmp_path / "b", **parts)

    labels = [line.partition(":")[0] for line in (tmp_path / "b" / "bag-info.txt").read_text().splitlines()]
    assert labels == ["Bag-Software-Agent", "External-Description"]


def test_the_verifier_inside_is_the_verifier(tmp_path: Path, parts: dict[str, Any]) -> None:
    """`data/verify.py` is a copy of the module that judges."""
    bundle.freeze(tmp_path / "b", **parts)

    assert (tmp_path / "b/data/verify.py").read_bytes() == Path(verify.__file__).read_bytes()


def test_the_ledger_is_copied_as_it_is(tmp_path: Path, parts: dict[str, Any]) -> None:
    """B3: bytes or a file, what goes in stands there unchanged, even what is no JSON at all."""
    raw = b"\x00 not a line\r\n" * 1000
    (tmp_path / "journal").write_bytes(raw)
    bundle.freeze(tmp_path / "b", **parts | {"ledger": tmp_path / "journal"})

    assert (tmp_path / "b/data/ledger.jsonl").read_bytes() == raw


def test_a_notebook_goes_in_with_its_outputs(tmp_path: Path, parts: dict[str, Any]) -> None:
    """The notebook that made the run is a part of the payload, byte by byte."""
    (tmp_path / "any.ipynb").write_bytes(b'{"cells": []}')
    bundle.freeze(tmp_path / "b", **parts, notebook=tmp_path / "any.ipynb")

    assert (tmp_path / "b/data/notebook.ipynb").read_bytes() == b'{"cells": []}'


def test_an_empty_folder_may_become_the_bundle(tmp_path: Path, parts: dict[str, Any]) -> None:
    """A folder that holds nothing is not in the way."""
    (tmp_path / "b").mkdir()
    bundle.freeze(tmp_path / "b", **parts)

    assert (tmp_path / "b" / "bagit.txt").is_file()


@pytest.mark.parametrize("what", ["full folder", "file", "link"])
def test_what_exists_is_never_overwritten(tmp_path: Path, parts: dict[str, Any], what: str) -> None:
    """B1: a name that is taken is refused in one sentence that names no path, and stays what it was."""
    taken = tmp_path / "taken"
    if what == "full folder":
        taken.mkdir()
        (taken / "mine.txt").write_bytes(b"mine")
    elif what == "file":
        taken.write_bytes(b"mine")
    else:
        taken.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BundleError) as refused:
        bundle.freeze(taken, **parts)

    assert "taken" in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken", "world"]


def test_a_bundle_is_not_made_inside_another(tmp_path: Path, parts: dict[str, Any]) -> None:
    """B1: a folder that has a bundle above it, near or far, is refused, and that bundle stays what it was."""
    bundle.freeze(tmp_path / "b", **parts)
    before = bytes_of(tmp_path / "b")
    for place in ("sub", "data/x", "data/new/x"):
        with pytest.raises(
            BundleError, match="would lie inside the bundle b; choose a place outside it"
        ) as error:
            bundle.freeze(tmp_path / "b" / place, **parts)
        assert str(tmp_path) not in str(error.value)
    assert bytes_of(tmp_path / "b") == before
    assert not (tmp_path / "b/data/new").exists()


def test_a_failed_freeze_leaves_nothing_behind(
    tmp_path: Path, parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: neither the name nor a scratch folder is there after a freeze that broke off in the middle."""

    def break_off(folder: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "seal", break_off)
    with pytest.raises(KeyboardInterrupt):
        bundle.freeze(tmp_path / "b", **parts)

    assert [path.name for path in tmp_path.iterdir()] == ["world"]


@pytest.mark.parametrize("part", ["ledger", "notebook"])
def test_a_missing_part_is_named_without_its_path(tmp_path: Path, parts: dict[str, Any], part: str) -> None:
    """What cannot be read stops the freeze with one sentence and leaves nothing."""
    with pytest.raises(BundleError, match=r"gone\.bin cannot go into a bundle") as refused:
        bundle.freeze(tmp_path / "b", **parts | {part: tmp_path / "gone.bin"})

    assert str(tmp_path) not in str(refused.value)
    assert not (tmp_path / "b").exists()


def test_a_link_in_the_world_is_refused(tmp_path: Path, parts: dict[str, Any]) -> None:
    """What a marker links to is not what the effect wrote."""
    markers = parts["world"] / "A" / "markers"
    markers.mkdir(parents=True)
    (parts["world"] / "A" / "receipts.jsonl").touch()
    (markers / "0001.txt").symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(BundleError, match=r"0001\.txt"):
        bundle.freeze(tmp_path / "b", **parts)


def test_seal_sorts_and_encodes_names(tmp_path: Path, parts: dict[str, Any]) -> None:
    """Manifests are sorted by name, with forward slashes, and CR, LF and % written as RFC 8493 wants."""
    bundle.freeze(tmp_path / "b", **parts)
    (tmp_path / "b/data/100%\r\n.txt").write_bytes(b"odd")
    bundle.seal(tmp_path / "b")

    lines = (tmp_path / "b/manifest-sha256.txt").read_bytes().decode().splitlines()
    assert [line[66:] for line in lines] == sorted(line[66:] for line in lines)
    assert f"{hashlib.sha256(b'odd').hexdigest()}  data/100%25%0D%0A.txt" in lines


def test_the_digest_is_that_of_the_tag_manifest(tmp_path: Path, parts: dict[str, Any]) -> None:
    """What `freeze` returns, `seal` returns and `digest_of` reads is SHA-256 of tagmanifest-sha256.txt."""
    frozen = bundle.freeze(tmp_path / "b", **parts)
    raw = (tmp_path / "b/tagmanifest-sha256.txt").read_bytes()

    assert frozen == bundle.seal(tmp_path / "b") == bundle.digest_of(tmp_path / "b")
    assert frozen == hashlib.sha256(raw).hexdigest()


def test_what_is_no_bundle_has_no_digest(tmp_path: Path) -> None:
    """A folder without a tag manifest is told apart in one sentence."""
    with pytest.raises(BundleError, match="is not a bundle"):
        bundle.digest_of(tmp_path)


def test_an_index_reads_back_what_was_written(tmp_path: Path) -> None:
    """Names and digests survive; the file is sorted, indented and ends in a newline."""
    bundles = {"b/2": "0" * 64, "a/1": "f" * 64}
    bundle.write_index(tmp_path / "index.json", bundles)

    assert bundle.read_index(tmp_path / "index.json") == bundles
    text = (tmp_path / "index.json").read_text()
    assert text.index('"a/1"') < text.index('"b/2"')
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"\xff", b"null", b'{"format": "codeai-lab-index-v2", "bundles": {}}',
        b'{"format": "codeai-lab-index-v1"}', b'{"format": "codeai-lab-index-v1", "bundles": {"a": "f00"}}',
        b'{"format": "codeai-lab-index-v1", "bundles": {"a": 1}}',
    ],
)  # fmt: skip
def test_what_is_no_index_is_refused(tmp_path: Path, content: bytes) -> None:
    """Another format or shape is refused in one sentence, never half read."""
    (tmp_path / "index.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"index\.json is not an index"):
        bundle.read_index(tmp_path / "index.json")


def test_a_missing_index_is_refused(tmp_path: Path) -> None:
    """There is nothing to compare with when the index is not there, and the sentence says so."""
    with pytest.raises(BundleError, match=r"no index named index\.json"):
        bundle.read_index(tmp_path / "index.json")


def test_the_environment_tells_versions_and_no_place() -> None:
    """Python, machine and packages are named; no path and no host is."""
    said = bundle.environment()

    assert said["python"] == platform.python_version()
    assert set(said["packages"]) <= set(bundle.PACKAGES)
    assert {"duckdb", "filelock", "rfc8785"} <= set(said["packages"])
    text = json.dumps(said)
    assert "/" not in text
    assert "\\" not in text
    assert platform.node() not in text


def test_the_readme_says_what_it_does_not_establish(parts: dict[str, Any]) -> None:
    """A reader learns of the producer, the cases, the limits and how to check."""
    text = bundle.describe(parts["protocol"], producer="codeai_lab 7.0")

    for words in (
        "Written by codeai_lab 7.0", "`A`: What of A?", "What it does not establish", '"not checked"',
        "cannot be told from inside", "python -I -S data/verify.py .",
    ):  # fmt: skip
        assert words in text
    assert "exactly once" not in text.replace("-", " ").lower()
