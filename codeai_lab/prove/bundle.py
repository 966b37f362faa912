"""How does a run become evidence that outlives the process?

Chapter: 004, "Checking it without trusting it".

Idea: a bundle is a folder that any BagIt 1.0 tool accepts. What was planned, what the ledger recorded, what
the world kept, what the producer says, where it ran, and the verifier itself lie side by side, each file
under a digest and the digests under one more. That last digest is the bundle's name for the outside world.

Always true:
  B1. A half-written bundle never stands under the final name; nothing that exists is overwritten.
  B2. The same parts give the same bytes: sorted, LF, no date, no size, no path, no host.
  B3. The ledger's bytes are copied as they are, never parsed and written again.

Not here: what a bundle may say (`verify`), how to damage one (`corrupt`).
Source: RFC 8493, The BagIt File Packaging Format (V1.0).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codeai_lab.errors import BundleError
from codeai_lab.prove import verify

INDEX_FORMAT = "codeai-lab-index-v1"
ENVIRONMENT_FORMAT = "codeai-lab-environment-v1"
PACKAGES = ("codeai_lab", "duckdb", "rfc8785", "filelock", "numpy")
TAG_FILES = ("README.md", "bag-info.txt", "bagit.txt", "manifest-sha256.txt")
DIGEST = re.compile(r"[0-9a-f]{64}")


def freeze(
    to: Path,
    *,
    protocol: Mapping[str, Any],
    ledger: bytes | Path,
    world: Path,
    results: Mapping[str, Any],
    environment: Mapping[str, Any],
    readme: str,
    producer: str,
    notebook: Path | None = None,
) -> str:
    """Write a bundle and give its digest.

    Args:
        to: the folder that becomes the bundle; it must not exist, or be empty.
        protocol: what was fixed before the run, the content of protocol.json.
        ledger: the journal's lines, or the file that holds them.
        world: a folder with CASE/receipts.jsonl and CASE/markers/; a case without a folder had no effect.
        results: what the producer says, the content of results.json.
        environment: where it ran, as `environment` gives it.
        readme: the text of README.md, as `describe` gives it.
        producer: who wrote the bundle, a name and a version.
        notebook: the executed notebook that made the run.

    Raises: BundleError (definite) when `to` is taken or in a bundle, or a part is missing; nothing is left.
    """
    to = Path(to)
    require_outside(to)
    _require_free(to)
    with _beside(to) as draft:
        data = draft / "data"
        data.mkdir()
        for name, content in (("protocol", protocol), ("results", results), ("environment", environment)):
            (data / f"{name}.json").write_bytes(_document(content))
        if isinstance(ledger, bytes):
            (data / "ledger.jsonl").write_bytes(ledger)
        else:
            _copy(ledger, data / "ledger.jsonl")
        for case in protocol["cases"]:
            _copy_world(world / case["case"], data / "world" / case["case"])
        # A checkout may have converted the line endings of our own source; evidence has one form.
        source = Path(verify.__file__).read_bytes().replace(b"\r\n", b"\n")
        (data / "verify.py").write_bytes(source)
        if notebook is not None:
            _copy(notebook, data / "notebook.ipynb")
        (draft / "README.md").write_bytes(readme.encode())
        (draft / "bagit.txt").write_bytes(verify.BAGIT_TXT)
        (draft / "bag-info.txt").write_bytes(_bag_info(protocol, producer))
        return seal(draft)


def require_outside(to: Path) -> None:
    """Raise BundleError (definite) where `to` would lie inside a bundle: one more file makes it invalid."""
    parent = to.parent.resolve()
    around = next((one for one in (parent, *parent.parents) if (one / "bagit.txt").is_file()), None)
    if around is not None:
        raise BundleError(f"{to.name} would lie inside the bundle {around.name}; choose a place outside it.")


def seal(folder: Path) -> str:
    """Write both manifests of a bundle anew, whatever its files say, and give the bundle's digest."""
    payload = sorted(path.relative_to(folder).as_posix() for path in _files(folder / "data"))
    _write_manifest(folder, "manifest-sha256.txt", payload)
    _write_manifest(
        folder, "tagmanifest-sha256.txt", [name for name in TAG_FILES if (folder / name).is_file()]
    )
    return digest_of(folder)


def digest_of(bundle: Path) -> str:
    """Give a bundle's digest: SHA-256 of its tagmanifest-sha256.txt, 64 hex digits.

    Raises: BundleError (definite) when there is no bundle.
    """
    try:
        return sha256_of(Path(bundle) / "tagmanifest-sha256.txt")
    except OSError:
        raise BundleError(f"{Path(bundle).name} is not a bundle: it has no tagmanifest-sha256.txt.") from None


def read_index(path: Path) -> dict[str, str]:
    """Give the digests that an index holds, by the bundle's name as LESSON/NAME.

    Raises: BundleError (definite) when it is not there or not an index of ours.
    """
    try:
        index = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise BundleError(f"There is no index named {Path(path).name}.") from None
    except (OSError, ValueError):
        index = None
    bundles = (
        index.get("bundles") if isinstance(index, dict) and index.get("format") == INDEX_FORMAT else None
    )
    if not isinstance(bundles, dict) or not all(DIGEST.fullmatch(str(digest)) for digest in bundles.values()):
        raise BundleError(f"{Path(path).name} is not an index of bundles in the format {INDEX_FORMAT}.")
    return bundles


def write_index(path: Path, bundles: Mapping[str, str]) -> None:
    """Write an index; the one kept outside the bundles is what makes their completeness checkable."""
    Path(path).write_bytes(_document({"format": INDEX_FORMAT, "bundles": dict(bundles)}))


def environment(*others: str) -> dict[str, Any]:
    """Say where this runs: versions and the kind of machine, no path and no host.

    Args:
        others: packages that the run depends on besides the usual ones; left out where not installed.
    """
    packages = {}
    for name in (*PACKAGES, *others):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return {
        "format": ENVIRONMENT_FORMAT,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.system(),
        "machine": platform.machine(),
        "packages": packages,
    }


OF_EFFECTS = (
    "What the world itself kept of each effect (`data/world/`): receipts and marker files that the effect "
    "wrote, not the ledger."
)


def describe(
    protocol: Mapping[str, Any], *, producer: str, world: str = OF_EFFECTS, limits: str | None = None
) -> str:
    """Write the README of a bundle: what it establishes, what it does not, and how to check it.

    Args:
        world: what is said of the world in it, in one sentence or two.
        limits: what else the bundle does not establish.
    """
    more = "" if limits is None else f"- {limits}\n"
    cases = "\n".join(f"- `{case['case']}`: {case['question']}" for case in protocol["cases"])
    return f"""\
# Evidence: {protocol["lesson"]} under the rules `{protocol["revision"]}`

Written by {producer}. The cases, fixed before the run in `data/protocol.json`:

{cases}

## What it establishes

- What the ledger recorded, line by line (`data/ledger.jsonl`), each line chained to the one before.
- {world}
- That the summary (`data/results.json`) follows from these two, and is what was expected.

## What it does not establish

- That it is complete or unchanged as a whole. The digests inside could have been written again \
together with what
  they cover; only the bundle's digest, kept outside it, can say. Without it the verifier says "not checked".
- That a recorded success is true. A success forged for a failure whose effect the world \
shows, with chain, results
  and digests all rewritten, cannot be told from inside.
- When it ran, on whose machine, and that whoever wrote it is who they say.
{more}
## Check it

    python -I -S data/verify.py .
    python -I -S data/verify.py . --expect DIGEST

The verifier needs Python's standard library and nothing else. It is a part of this bundle, so take a \
copy from a place
that you trust if you do not trust the bundle. DIGEST is the SHA-256 of `tagmanifest-sha256.txt`, taken \
from outside.
Any BagIt 1.0 tool can check the digests too.
"""


def sha256_of(path: Path) -> str:
    """Give the SHA-256 of a file, read as a stream."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _document(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _bag_info(protocol: Mapping[str, Any], producer: str) -> bytes:
    # No Payload-Oxum and no Bagging-Date: the first depends on environment.json, the second on the day.
    lines = {
        "Bag-Software-Agent": producer,
        "External-Description": f"Evidence of {protocol['lesson']} under the rules {protocol['revision']}",
    }
    return "".join(f"{label}: {' '.join(value.split())}\n" for label, value in lines.items()).encode()


def _write_manifest(folder: Path, name: str, paths: list[str]) -> None:
    lines = [f"{sha256_of(folder / path)}  {_percent_encoded(path)}\n" for path in paths]
    (folder / name).write_bytes("".join(lines).encode())


def _percent_encoded(path: str) -> str:
    return path.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path


def _copy_world(source: Path, target: Path) -> None:
    (target / "markers").mkdir(parents=True)
    receipts = source / "receipts.jsonl"
    if source.is_dir():
        _copy(receipts, target / "receipts.jsonl")
    else:
        (target / "receipts.jsonl").touch()
    if (source / "markers").is_dir():
        for marker in (source / "markers").iterdir():
            _copy(marker, target / "markers" / marker.name)
    if not any((target / "markers").iterdir()):
        (target / "markers").rmdir()


def _copy(source: Path, target: Path) -> None:
    if source.is_symlink() or not source.is_file():
        raise BundleError(f"{source.name} cannot go into a bundle: it is missing, or not a regular file.")
    shutil.copyfile(source, target)


def _require_free(to: Path) -> None:
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise BundleError(f"{to.name} is there already and is no folder; choose another name for the bundle.")
    if to.is_dir() and any(to.iterdir()):
        raise BundleError(f"The folder {to.name} is not empty; choose another name for the bundle.")


@contextlib.contextmanager
def _beside(to: Path) -> Iterator[Path]:
    """Give a scratch folder beside `to` that takes its name when all went well and vanishes otherwise."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    except OSError as error:
        raise BundleError(f"The folder {to.name} cannot be written: {error.strerror}.") from None
    try:
        yield draft
        draft.chmod(0o755)  # mkdtemp makes a private folder; evidence is to be read
        if to.is_dir():
            to.rmdir()  # an empty one stands in the way on Windows
        draft.rename(to)
    except OSError as error:
        raise BundleError(f"The bundle {to.name} could not be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
