"""The laws of store.erasable: a text is there whole, or gone, and its digest alone tells nothing."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.errors import LabError, LedgerDamagedError, LedgerError, LedgerFullError, LedgerReadOnlyError
from codeai_lab.store.erasable import (
    OWNER,
    SALT_BYTES,
    ErasableTexts,
    TextNotErasedError,
    salted_digest,
    texts_beside,
)

WORDS = "I prefer films that stay ambiguous."


@pytest.fixture
def texts(tmp_path: Path) -> ErasableTexts:
    return ErasableTexts(tmp_path / "t", ledger_id="L")


def reopened(texts: ErasableTexts) -> ErasableTexts:
    return ErasableTexts(texts.folder, ledger_id="L")


def fails(number: int) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    return call


def test_a_text_comes_back_as_it_was_kept(texts: ErasableTexts) -> None:
    """ER1: any text, also after another opening; a digest that was never given has none."""
    kept = {texts.put(text): text for text in (WORDS, "", "\u00e9\u4e16\U0001f3ac\n\x00", "x" * 100_000)}
    assert {digest: reopened(texts).read(digest) for digest in kept} == kept
    assert reopened(texts).read("0" * 64) is None


def test_the_text_is_flushed_before_it_has_its_name_and_the_name_before_put_returns(
    texts: ErasableTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ER1: write, flush, rename, flush the folder, in this order."""
    calls = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("flush folder" if is_folder else "flush file")
        real_sync(descriptor)

    def replace(old: Path, new: Path) -> None:
        calls.append("rename")
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    digest = texts.put(WORDS)
    assert calls == ["flush file", "rename", "flush folder"]
    calls.clear()
    texts.erase(digest)
    assert calls == ["flush folder"]


def test_erasing_is_for_good_and_may_be_repeated(texts: ErasableTexts) -> None:
    """ER2: what was erased is gone with its salt; erasing again, or what never was, does nothing."""
    digest, other = texts.put(WORDS), texts.put("another")
    for _ in range(2):
        texts.erase(digest, "0" * 64)
        assert texts.read(digest) is None
    assert [path.name for path in sorted(texts.folder.iterdir())] == sorted([other, OWNER])
    assert reopened(texts).read(other) == "another"


def test_the_digest_alone_does_not_tell_the_text(texts: ErasableTexts) -> None:
    """The same text has another digest each time, none of them its own; the salt is as long as promised."""
    digests = {texts.put(WORDS) for _ in range(20)}
    salts = {json.loads((texts.folder / digest).read_bytes())["salt"] for digest in digests}
    assert len(digests) == len(salts) == 20
    assert {len(bytes.fromhex(salt)) for salt in salts} == {SALT_BYTES}
    assert all(salted_digest(bytes.fromhex(salt), WORDS) in digests for salt in salts)
    assert salted_digest(b"", WORDS) not in digests


@pytest.mark.parametrize("text", ["../../escape", "a/b", "CON", ".", "\x00", "x" * 5_000, OWNER])
def test_no_name_of_a_file_comes_from_a_text(texts: ErasableTexts, text: str) -> None:
    """ER3: whatever is kept lies in the folder under 64 hex digits."""
    digest = texts.put(text)
    assert {path.name for path in texts.folder.iterdir()} == {digest, OWNER}
    assert [path.name for path in texts.folder.parent.iterdir()] == ["t"]
    assert len(digest) == 64
    assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize("name", ["../x", OWNER, "", "A" * 64, "0" * 63, "0" * 64 + ".new", "0" * 64 + "\n"])
def test_only_a_digest_names_a_text(texts: ErasableTexts, name: str) -> None:
    """ER3: anything else is refused before it becomes a path."""
    for act in (texts.read, texts.erase):
        with pytest.raises(ValueError, match="named by its digest"):
            act(name)
    assert (texts.folder / OWNER).exists()


def test_a_text_that_was_changed_is_refused(texts: ErasableTexts) -> None:
    """ER4: another text, another salt, no JSON, another text's file: none is read as the recorded one."""
    digest, other = texts.put(WORDS), texts.put("another")
    path = texts.folder / digest
    said = json.loads(path.read_bytes())
    swapped = (texts.folder / other).read_bytes()
    for content in (
        json.dumps({**said, "text": "I prefer action."}).encode(),
        json.dumps({**said, "salt": "00" * SALT_BYTES}).encode(),
        json.dumps({"text": WORDS}).encode(), json.dumps([1]).encode(), b"", b"\xff{", swapped,
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(LedgerDamagedError):
            texts.read(digest)
        assert path.read_bytes() == content


def test_the_texts_of_another_ledger_are_left_alone(texts: ErasableTexts) -> None:
    """ER5: they are not opened, so they cannot be swept; texts without a sign are somebody's too."""
    digest = texts.put(WORDS)
    with pytest.raises(LedgerError, match="another ledger"):
        ErasableTexts(texts.folder, ledger_id="M")
    (texts.folder / OWNER).unlink()
    with pytest.raises(LedgerError, match="another ledger"):
        reopened(texts)
    assert (texts.folder / digest).exists()


def test_what_no_line_names_is_swept_and_nothing_else(texts: ErasableTexts) -> None:
    """`keep_only` erases unnamed texts and half-made ones, of kept texts too; strange files stay."""
    wanted, unwanted = texts.put("wanted"), texts.put("unwanted")
    for name in (f"{wanted}.new", "1" * 64 + ".new", "notes.txt"):
        (texts.folder / name).write_text("half")
    assert texts.keep_only([wanted]) == 3
    assert {path.name for path in texts.folder.iterdir()} == {wanted, OWNER, "notes.txt"}
    assert texts.digests() == (wanted,)
    assert texts.keep_only([wanted]) == 0
    assert texts.read(unwanted) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_text_that_could_not_be_kept_leaves_nothing(
    texts: ErasableTexts, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """ER1: the refusal is definite, says no path, and there is no half text."""
    with monkeypatch.context() as broken:
        broken.setattr(os, call, fails(number))
        with pytest.raises(LedgerFullError if number == errno.ENOSPC else LedgerReadOnlyError) as raised:
            texts.put(WORDS)
    assert raised.value.definite
    assert "secret" not in str(raised.value)
    assert [path.name for path in texts.folder.iterdir()] == [OWNER]


def test_a_text_that_cannot_be_removed_is_said_and_the_others_go(
    texts: ErasableTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ER2: the error is indefinite and names no path; the next sweep finishes what it can."""
    stuck, other = texts.put("stuck"), texts.put("other")
    real = os.unlink

    def unlink(path: Path, **options: object) -> None:
        if Path(path).name == stuck:
            fails(errno.EACCES)()
        real(path)

    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", unlink)
        with pytest.raises(TextNotErasedError) as raised:
            texts.erase(stuck, other)
    assert not raised.value.definite
    assert "secret" not in str(raised.value)
    assert texts.digests() == (stuck,)
    assert reopened(texts).keep_only([]) == 1


@pytest.mark.skipif(os.name == "nt", reason="modes of files are a matter of this system")
def test_only_the_owner_of_a_file_may_read_it(texts: ErasableTexts) -> None:
    """A text is a person's; others on the machine do not read it."""
    assert stat.S_IMODE((texts.folder / texts.put(WORDS)).stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("salt", [b"", b"x" * 31, b"x" * 33])
def test_a_salt_that_hides_too_little_is_refused(tmp_path: Path, salt: bytes) -> None:
    """A salt has 32 bytes, so that where salt ends and text begins is never in doubt."""
    with pytest.raises(ValueError, match="32 bytes"):
        ErasableTexts(tmp_path / "t", ledger_id="L", new_salt=lambda: salt).put(WORDS)


def test_a_salt_is_used_once(tmp_path: Path) -> None:
    """The same salt for the same text would make two memories one file, and erasing one would erase both."""
    texts = ErasableTexts(tmp_path / "t", ledger_id="L", new_salt=lambda: b"x" * SALT_BYTES)
    texts.put(WORDS)
    with pytest.raises(ValueError, match="used once"):
        texts.put(WORDS)


def test_a_folder_that_cannot_be_is_one_clear_sentence(tmp_path: Path) -> None:
    """No traceback of the system's: a file in the way, or no folder around it."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "missing" / "t"):
        with pytest.raises(LabError) as raised:
            ErasableTexts(folder, ledger_id="L")
        assert str(tmp_path) not in str(raised.value)


def test_the_folder_lies_beside_the_ledger(tmp_path: Path) -> None:
    """Who copies or deletes a ledger sees its texts next to it."""
    assert texts_beside(tmp_path / "lab.duckdb") == tmp_path / "lab.duckdb.texts"
