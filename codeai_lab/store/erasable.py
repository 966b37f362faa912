"""Where are words kept that a person may ask to have erased, when a ledger never forgets?

Chapter: 003, "Keep durable memory under a separate policy": something that the reader can inspect, correct or
delete.

Idea: apart. Each text lies in one small file beside the ledger, together with a salt; the ledger's line holds
the SHA-256 of both. While the file is there the digest proves that the text is the one that was recorded;
once it is gone the digest says nothing, since nobody can guess a salt of 32 random bytes.

    lab.duckdb.journal.jsonl   ... "text_digest":"5e1c..." ...     stays
    lab.duckdb.texts/5e1c...   {"salt":"...","text":"..."}         is erased

The order is always the same: the text is durable before the event that names it; the event of a deletion is
durable before the text goes. Whatever a crash leaves in between is a file that no living line names, and
the next opening erases it (`keep_only`).

Always true:
  ER1. What `put` returned for is on disk, whole; a crash leaves it there or not, and never half of it.
  ER2. What `erase` returned for is gone, also after a crash; erasing again does nothing.
  ER3. The name of a file is its digest; nothing that anybody wrote becomes a name.
  ER4. A text that is not what was recorded is refused, not read.
  ER5. The texts of another ledger are never taken for one's own, and never swept away.

Not here: which texts are still wanted (`run.remembering`); a ledger that is put back from an older copy wants
fewer, and the others go. Making a disk forget what it once held: erasing
removes the file; copies, backups and the worn cells of a solid-state disk are the business of whoever runs
them. One writer at a time: that of the ledger beside it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from codeai_lab.canonical import canonical_bytes
from codeai_lab.errors import LedgerDamagedError, LedgerError, LedgerFullError, LedgerReadOnlyError
from codeai_lab.store.journal import flush_folder

SALT_BYTES = 32
OWNER = "ledger.json"
_DRAFT = ".new"
_OURS = re.compile(r"[0-9a-f]{64}(\.new)?")
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class TextNotErasedError(LedgerError):
    """A text is to go and is still there; it goes at the next opening that the system lets it."""

    definite = False

    def __init__(self, why: str) -> None:
        super().__init__(
            f"A text that was deleted could not be removed yet ({why}); open the ledger again to finish it."
        )


def texts_beside(ledger: Path) -> Path:
    """Give the folder for the texts of a ledger in a file."""
    return ledger.with_name(f"{ledger.name}.texts")


class ErasableTexts:
    """The texts of one ledger, in a folder that is made where it is missing.

    Args:
        ledger_id: the ledger whose lines name these texts.
        new_salt: gives 32 bytes that nobody can guess; only a test or a lesson hands in another maker.
    Raises: LedgerError when the folder belongs to another ledger, LedgerReadOnlyError where none can be.
    """

    def __init__(self, folder: Path, *, ledger_id: str, new_salt: Callable[[], bytes] | None = None) -> None:
        self.folder = folder
        self._new_salt = new_salt or (lambda: secrets.token_bytes(SALT_BYTES))
        try:
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)
            self._claim(ledger_id)
        except OSError as error:
            raise _unusable(error) from None

    def put(self, text: str) -> str:
        """Keep a text durably and give its digest.

        Raises: LedgerFullError, LedgerReadOnlyError (definite: nothing was kept); ValueError for a salt that
            is too short or was used before.
        """
        salt = self._new_salt()
        if len(salt) != SALT_BYTES:
            raise ValueError(f"a salt has {SALT_BYTES} bytes")
        digest = salted_digest(salt, text)
        if (self.folder / digest).exists():
            raise ValueError("a salt is used once")
        try:
            self._write(self.folder / digest, canonical_bytes({"salt": salt.hex(), "text": text}))
        except OSError as error:
            raise _unusable(error) from None
        return digest

    def read(self, digest: str) -> str | None:
        """Give the text that a digest was recorded for; None once it was erased.

        Raises: LedgerDamagedError when the file holds another one (ER4).
        """
        try:
            kept = (self.folder / _checked(digest)).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(error) from None
        try:
            said = json.loads(kept)
            text = str(said["text"])
            is_ours = salted_digest(bytes.fromhex(said["salt"]), text) == digest
        except (ValueError, TypeError, KeyError, RecursionError):
            is_ours = False
        if not is_ours:
            raise LedgerDamagedError(
                "A text beside the ledger is not the one that was recorded; it is not used.",
                line=-1,
            )
        return text

    def erase(self, *digests: str) -> None:
        """Remove texts durably; those that are gone already are no matter.

        Raises: TextNotErasedError (indefinite) after trying them all.
        """
        self._remove([name for digest in map(_checked, digests) for name in (digest, f"{digest}{_DRAFT}")])

    def keep_only(self, digests: Collection[str]) -> int:
        """Erase every text but these, what an earlier process left half done included; give how many.

        Raises: as `erase`.
        """
        doomed = [name for name in self._names() if name not in digests]
        if doomed:
            self._remove(doomed)
        return len({name.removesuffix(_DRAFT) for name in doomed})

    def digests(self) -> tuple[str, ...]:
        """Name the texts that are there, in order."""
        return tuple(name for name in self._names() if not name.endswith(_DRAFT))

    def _remove(self, names: Iterable[str]) -> None:
        failure = None
        for name in names:
            try:
                (self.folder / name).unlink(missing_ok=True)
            except OSError as error:
                failure = error
        try:
            flush_folder(self.folder)
        except OSError as error:
            failure = error
        if failure is not None:
            raise TextNotErasedError(failure.strerror or "no reason given") from None

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if _OURS.fullmatch(path.name))

    def _claim(self, ledger_id: str) -> None:
        """Write down whose texts these are, or find out that they are somebody else's (ER5)."""
        sign, own = self.folder / OWNER, canonical_bytes({"ledger_id": ledger_id})
        if not sign.exists() and not self.digests():
            self._write(sign, own)
        if not sign.exists() or sign.read_bytes() != own:
            raise LedgerError(
                f"The folder {self.folder.name} holds the texts of another ledger; nothing was changed. "
                "Open it with the ledger that it belongs to."
            )

    def _write(self, path: Path, content: bytes) -> None:
        """Make a file that appears under its name whole and durable, readable by its owner alone (ER1)."""
        draft = path.with_name(f"{path.name}{_DRAFT}")
        try:
            with open(draft, "wb", opener=_for_the_owner_alone) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            flush_folder(path.parent)
        except BaseException:
            for half in (draft, path):
                with suppress(OSError):
                    half.unlink(missing_ok=True)
            raise


def salted_digest(salt: bytes, text: str) -> str:
    """Give the SHA-256 of salt and text, 64 lower-case hex digits; the salt's length is fixed."""
    return hashlib.sha256(salt + text.encode()).hexdigest()


def _for_the_owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _checked(digest: str) -> str:
    """Return a digest; anything else never becomes a path (ER3)."""
    if not _OURS.fullmatch(digest) or digest.endswith(_DRAFT):
        raise ValueError("a text is named by its digest")
    return digest


def _unusable(error: OSError) -> LedgerError:
    if error.errno in _NO_SPACE:
        return LedgerFullError("There is no space left for a text; nothing was kept. Free some space.")
    return LedgerReadOnlyError(
        f"The texts beside the ledger cannot be read or written ({error.strerror}); check the permissions."
    )
