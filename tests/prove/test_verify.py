"""Does the verifier accept what is good, and stand on its own?"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.prove import bundle, verify
from codeai_lab.prove.verify import CannotVerify

Good = Callable[..., Path]


def codes(folder: Path, expect: str | None = None) -> set[str]:
    return {finding.code for finding in verify.verify(folder, expect).findings}


def isolated(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a copy of the verifier as a stranger would: another folder, no site-packages, nothing of ours."""
    copy = cwd / "verify.py"
    shutil.copyfile(verify.__file__, copy)
    command = [sys.executable, "-I", "-S", str(copy), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


# --- good bundles


def test_a_good_bundle_is_valid(good: Good, revision: str) -> None:
    """Every rule set's seven cases, and the rarer ones, are accepted; completeness is left open."""
    report = verify.verify(good(revision, rarer=True))

    assert (report.valid, report.complete, report.findings) == (True, "not checked", ())


def test_the_outside_digest_answers_completeness(good: Good) -> None:
    """With the right digest from outside, in either case of letters, the bundle is complete."""
    folder = good("lab")
    digest = bundle.digest_of(folder)

    assert verify.verify(folder, digest).complete == "yes"
    assert verify.verify(folder, digest.upper()).complete == "yes"


def test_another_outside_digest_is_a_finding(good: Good) -> None:
    """A digest that is not the bundle's makes it neither valid nor complete, and both are named."""
    report = verify.verify(good("lab"), "0" * 64)

    assert (report.valid, report.complete) == (False, "no")
    assert [finding.code for finding in report.findings] == ["outside-digest-differs"]


def test_verifying_changes_nothing(good: Good) -> None:
    """V2: not a byte, not a name and no time of change differs after the verdict."""
    folder = good("lab")
    before = {path: path.lstat() for path in folder.rglob("*")}
    verify.verify(folder)

    after = {path: path.lstat() for path in folder.rglob("*")}
    assert {path: (one.st_mtime_ns, one.st_size) for path, one in after.items()} == {
        path: (one.st_mtime_ns, one.st_size) for path, one in before.items()
    }


# --- standing alone


def test_the_verifier_imports_the_standard_library_alone() -> None:
    """Nothing of the package and nothing that pip installs is imported."""
    tree = ast.parse(Path(verify.__file__).read_text(encoding="utf-8"))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert names <= sys.stdlib_module_names


def test_a_copy_alone_says_the_same(good: Good, tmp_path: Path) -> None:
    """Run isolated from another folder, the script prints the very report that the function returns."""
    folder = good("lab", rarer=True)
    (tmp_path / "elsewhere").mkdir()
    run = isolated(folder, "--json", "--expect", bundle.digest_of(folder), cwd=tmp_path / "elsewhere")

    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == verify.verify(folder, bundle.digest_of(folder)).as_json()


def test_findings_exit_with_one(good: Good, tmp_path: Path) -> None:
    """The script lists what it found, one a line and in ASCII, and exits with 1."""
    folder = good("lab")
    (folder / "data" / "extra-é.txt").touch()
    (tmp_path / "elsewhere").mkdir()
    run = isolated(folder, cwd=tmp_path / "elsewhere")

    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.isascii()
    assert run.stdout.splitlines() == [
        "unlisted-file: 'data/extra-\\xe9.txt': there, and in no manifest",
        "valid: no",
        "complete: not checked",
    ]


@pytest.mark.parametrize("what", ["missing", "a file", "empty", "another folder", "zero byte", "malformed"])
def test_what_cannot_be_judged_exits_with_two(good: Good, tmp_path: Path, what: str) -> None:
    """No bundle and no digest are one sentence without a path of the machine, and exit status 2."""
    folder, expect = tmp_path / "thing", "0" * 64
    if what == "a file":
        folder.touch()
    elif what in ("empty", "another folder"):
        folder.mkdir()
        if what == "another folder":
            (folder / "notes.txt").touch()
    elif what == "zero byte":
        folder = tmp_path / "a\0b"
    elif what == "malformed":
        folder, expect = good("lab"), "abc"
    with pytest.raises(CannotVerify) as refused:
        verify.verify(folder, expect)

    assert str(tmp_path) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def test_the_script_exits_with_two(tmp_path: Path) -> None:
    """The sentence goes to standard error, and no traceback with it."""
    run = isolated(tmp_path / "missing", cwd=tmp_path)

    assert (run.returncode, run.stdout) == (2, "")
    assert len(run.stderr.splitlines()) == 1


def test_an_unreadable_file_cannot_be_judged(good: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not let us read is no finding about the bundle."""
    folder = good("lab")

    def forbidden(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(verify.os, "open", forbidden)
    with pytest.raises(CannotVerify, match="cannot be read: Permission denied") as refused:
        verify.verify(folder)

    assert str(folder) not in str(refused.value)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who can be refused")
def test_a_read_only_bundle_is_judged(good: Good) -> None:
    """Nothing needs to be written where the bundle lies."""
    folder = good("lab")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    assert verify.verify(folder).valid


# --- its own canonical form

_SCALARS = st.none() | st.booleans() | st.text() | st.integers(-(2**53) + 1, 2**53 - 1)
_NUMBERS = st.floats(-(2.0**53) + 1, 2.0**53 - 1)
_VALUES = st.recursive(
    _SCALARS | _NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(_VALUES)
def test_its_canonical_form_is_that_of_rfc_8785(value: Any) -> None:
    """Forty lines of our own give the same bytes as the library that the producer uses."""
    text = rfc8785.dumps(value).decode()

    assert verify._canonical(json.loads(text)) == text


@pytest.mark.parametrize("text", ["9007199254740992", "-9007199254740993", "1e300", "[1e16]"])
def test_numbers_beyond_the_safe_range_have_no_canonical_form(text: str) -> None:
    """A number that two readers may read differently is refused."""
    with pytest.raises(ValueError, match="beyond"):
        verify._canonical(json.loads(text))
