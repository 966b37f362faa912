"""Does the source keep to its plan: who imports whom, how long a module is, what no file may say?

Idea: the plan is a table, and the table is read here against every import statement of the package.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "codeai_lab"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_notebooks" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))

VOCABULARY = {"errors": 0, "canonical": 1, "clock": 1, "records": 2}  # each may import what ranks below it
LEDGER_SIDE = {"vocabulary", "decide", "store"}
ROOMS = {
    "decide": {"vocabulary"},
    "store": {"vocabulary", "decide"},
    "run": LEDGER_SIDE,
    "explore": LEDGER_SIDE | {"run"},
    "prove": LEDGER_SIDE,
    "show": {"vocabulary", "decide"},
    "lessons": LEDGER_SIDE | {"run", "explore", "prove"},
}
LIBRARIES = {
    "vocabulary": {"rfc8785"},
    "store": {"duckdb", "filelock"},
    "explore": {"numpy"},
    "show": {"pandas", "matplotlib", "ipywidgets", "anywidget", "traitlets"},
}
RETRY_LIBRARIES = {  # whose own loops are driven; only these modules may import them, and only in a function
    "lessons/library_loops.py": {"backoff", "google", "stamina", "tenacity"},
    "lessons/library_requests.py": {
        "aiohttp_retry", "botocore", "httpx", "httpx2", "httpx_retries", "requests", "urllib3",
    },
}  # fmt: skip
STAND_ALONE = PACKAGE / "prove" / "verify.py"
LONGEST = 300
LONGER = {STAND_ALONE: 2_550}  # one file, since it is copied into every bundle and must need nothing there


@cache
def tree(path: Path) -> ast.Module:
    """Parse a file, one time for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(parts: tuple[str, ...]) -> str:
    """Name the room of a dotted name below codeai_lab: a folder, `vocabulary`, or `front` for the top."""
    if not parts:
        return "front"
    return "vocabulary" if parts[0] in VOCABULARY else parts[0]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Walk through a file, one time for all tests."""
    return tuple(ast.walk(tree(path)))


def imports(path: Path) -> set[tuple[str, ...]]:
    """List every module that a file imports, as the parts of its dotted name, wherever it says so."""
    found: set[tuple[str, ...]] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = tuple((node.module or "").split("."))
            if node.level:
                package = path.relative_to(ROOT).parent.parts
                base = package[: len(package) + 1 - node.level] + (base if node.module else ())
            # `from codeai_lab import errors` names a module only in its second half
            found |= {(*base, alias.name) for alias in node.names} if base == ("codeai_lab",) else {base}
    return found


def test_imports_are_read_in_every_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading of imports itself misses no spelling."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "codeai_lab" / "run" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import os.path, duckdb as d\nfrom codeai_lab import show\nfrom codeai_lab.cli.sync import sync\n"
        "def f():\n    from ..store import ledger\n    from . import y\n    from .. import errors\n"
    )
    assert imports(path) == {
        ("os", "path"),
        ("duckdb",),
        ("codeai_lab", "show"),
        ("codeai_lab", "cli", "sync"),
        ("codeai_lab", "store"),
        ("codeai_lab", "run"),
        ("codeai_lab", "errors"),
    }


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_room_allows(path: Path) -> None:
    """Imports point one way: each room knows its own modules and those of the rooms that its row names."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    own = room_of(tuple(part for part in parts if part != "__init__"))
    if own == "cli":
        return
    assert own in {*ROOMS, "vocabulary", "front", "__main__"}, f"{own} is no room of the plan"
    for name in imports(path) - {("__future__",), ("codeai_lab", "__version__")}:
        if name[0] != "codeai_lab":
            driven = RETRY_LIBRARIES.get(path.relative_to(PACKAGE).as_posix(), set())
            allowed = name[0] in sys.stdlib_module_names or name[0] in LIBRARIES.get(own, set()) | driven
            assert allowed, f"{own} may not import {name[0]}"
            continue
        other = room_of(name[1:])
        if own == "__main__":
            assert other == "cli"
        elif own == other == "vocabulary":
            assert VOCABULARY[name[1]] < VOCABULARY[parts[0]], f"{parts[0]} may not import {name[1]}"
        elif own == "front":
            assert other in {"vocabulary", *ROOMS} - {"show"}, f"the front door may not import {other}"
        else:
            assert other == own or other in ROOMS.get(own, set()), f"{own} may not import {other}"


@pytest.mark.parametrize("module", RETRY_LIBRARIES)
def test_a_retry_library_is_imported_where_its_loop_is_driven(module: str) -> None:
    """What is an extra, and slow to import, is imported in the function that needs it and never above."""
    above = [node for node in tree(PACKAGE / module).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        alias.name.split(".")[0] for node in above for alias in node.names if isinstance(node, ast.Import)
    }
    names |= {(node.module or "").split(".")[0] for node in above if isinstance(node, ast.ImportFrom)}
    assert names & RETRY_LIBRARIES[module] == set()


def test_the_verifier_stands_alone() -> None:
    """The verifier shares no code with the producer: it imports the standard library and nothing else."""
    assert STAND_ALONE.is_file()
    assert {name[0] for name in imports(STAND_ALONE)} <= sys.stdlib_module_names


def test_nothing_is_nested_deeper_than_one_package() -> None:
    """A folder of the package holds modules and no folders of modules."""
    assert [name_of(path) for path in MODULES if len(path.relative_to(PACKAGE).parts) > 2] == []


def test_no_module_outgrows_its_question() -> None:
    """A module over the limit has two questions in it."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    too_long = {name_of(path): n for path, n in lengths.items() if n > LONGER.get(path, LONGEST)}
    assert too_long == {}


def test_a_module_begins_with_its_question() -> None:
    """The first line of every module asks the question that the module answers."""
    begins = {name_of(path): (ast.get_docstring(tree(path)) or "").partition("\n")[0] for path in MODULES}
    assert {name: line for name, line in begins.items() if "?" not in line} == {}


# --- the tests themselves ------------------------------------------------------------------------------


def test_every_test_states_its_law() -> None:
    """Each test has a docstring, and no two test files share a name."""
    nameless = [
        f"{name_of(path)}: {node.name}"
        for path in TESTS
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert nameless == []
    names = Counter(path.name for path in TESTS if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_unit_test_waits_or_asks_the_time() -> None:
    """Sleeping and the wall clock belong to tests/real."""
    waits = {
        ("time", "sleep"),
        ("time", "time"),
        ("time", "monotonic"),
        ("datetime", "now"),
        ("date", "today"),
    }
    found = [
        (name_of(path), node.value.id, node.attr)
        for path in TESTS
        if "real" not in path.parts
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in waits
    ]
    assert found == []


# --- what no file may say ------------------------------------------------------------------------------


def project_files() -> list[Path]:
    """List the files of the project: those that git knows or would add, or all where there is no git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
            "\0"
        )
    except (OSError, subprocess.CalledProcessError):
        folders = [ROOT / name for name in ("codeai_lab", "notebooks", "evidence", "tests")]
        found = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
        listed = [name_of(path) for path in (*found, *ROOT.iterdir())]
    return sorted(ROOT / name for name in set(listed) if name and (ROOT / name).is_file())


def test_no_file_names_a_registry_or_a_folder_of_a_machine() -> None:
    """What the project contains works anywhere: no address of a registry, no absolute path of a machine."""
    hosts = [
        "py" + "pi.org",
        "python" + "hosted.org",
        "npm" + "js.org",
        "npm" + "js.com",
        "deb." + "debian.org",
    ]
    forbidden = re.compile("|".join([*map(re.escape, hosts), r"(?<![\w.])/(?:work|root|home)/"]).encode())
    found = {name_of(path): m[0] for path in project_files() if (m := forbidden.search(path.read_bytes()))}
    assert found == {}


def test_no_text_promises_that_something_happens_once() -> None:
    """An effect may be prevented from being repeated; nobody here claims a delivery of that kind."""
    claim = re.compile(r"exactly[- ]once", re.IGNORECASE)
    denial = re.compile(r"\b(?:not|never|no)\b", re.IGNORECASE)
    texts = [*MODULES, *sorted((ROOT / "notebooks").glob("*.ipynb")), *sorted(ROOT.glob("*.md"))]
    claims = [
        f"{name_of(path)}:{number}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := claim.search(line)) and not denial.search(line[: match.start()])
    ]
    assert claims == []


# --- the lock ------------------------------------------------------------------------------------------


def locked() -> dict[str, tuple[str, int]]:
    """Read the lock: for each package its version and the number of its hashes."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins: dict[str, tuple[str, int]] = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        match = re.match(r"([a-z0-9-]+)==([^\s;]+)", entry)
        assert match, f"not a pinned package: {entry.splitlines()[0]}"
        pins[match[1]] = (match[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}", entry)))
    return pins


def test_the_lock_pins_everything_by_hash_and_names_no_place() -> None:
    """Every package has a version and hashes; there is no address and no option that says where to look."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", text.replace("--hash=", ""), re.MULTILINE)
    pins = locked()
    assert [name for name, (_, hashes) in pins.items() if not hashes] == []
    assert pins["nbval"][0] == "0.11.0"
    assert pins["duckdb"][0] == "2.0.1"


def test_the_lock_covers_running_testing_and_building() -> None:
    """What pyproject asks for, to run, to test and to build, is in the lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["test"],
        *project["dependency-groups"]["build"],
    ]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-") for requirement in asked}
    assert names - locked().keys() == set()
