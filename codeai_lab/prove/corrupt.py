"""Does the verifier find what it should, and name it?

Chapter: 004, "Checking it without trusting it": seeded corruptions, each rejected with the failure named.

Idea: a verifier that accepts everything passes every test made of good bundles. So each way of damaging a
bundle is a named function, and each has the finding that must name it. Most are written with every digest
made good again, so that meaning catches them and not a hash; a few can be caught by the digest alone that is
kept outside.

Always true:
  CO1. A corruption works on a copy; the bundle that it is given keeps every byte.
  CO2. Each inside kind is refused without an outside digest, with a finding of its own code.
  CO3. A kind that does not apply to a bundle says so and leaves nothing behind.

Not here: the ways themselves (`prove.corruptions`, `prove.forgeries`, `prove.forged_calls`,
`prove.forged_records`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from codeai_lab.errors import BundleError, CorruptionDoesNotApplyError
from codeai_lab.prove.copies import Copy, Corruption
from codeai_lab.prove.corruptions import CORRUPTIONS
from codeai_lab.prove.forged_calls import FORGED_CALLS
from codeai_lab.prove.forged_records import FORGED_RECORDS
from codeai_lab.prove.forgeries import FORGERIES

KINDS: tuple[Corruption, ...] = (*FORGERIES, *CORRUPTIONS, *FORGED_CALLS, *FORGED_RECORDS)


def corrupt(bundle: Path, kind: str, to: Path) -> Corruption:
    """Copy a bundle to the folder `to` and damage the copy in one named way; give the kind.

    Raises: BundleError for an unknown kind, a missing bundle or a folder in use, CorruptionDoesNotApplyError
        when the bundle lacks what would be damaged (all definite; nothing is left behind).
    """
    chosen = next((one for one in KINDS if one.name == kind), None)
    if chosen is None:
        raise BundleError(f"There is no corruption called {kind}; `codeai-lab corrupt --list` names them.")
    if not (bundle / "bagit.txt").is_file():
        raise BundleError(f"{bundle.name} is not a bundle: it holds no bagit.txt.")
    if to.is_symlink() or (to.exists() and (not to.is_dir() or any(to.iterdir()))):
        raise BundleError(f"{to.name} is taken and is not an empty folder; choose another name.")
    shutil.copytree(bundle, to, dirs_exist_ok=True, symlinks=True)
    try:
        chosen.apply(Copy(to))
    except BaseException as error:
        shutil.rmtree(to)
        if isinstance(error, (KeyError, IndexError, StopIteration, OSError, ValueError)):
            raise CorruptionDoesNotApplyError(
                f"{kind} does not apply to {bundle.name}: {chosen.needs}."
            ) from None
        raise
    return chosen
