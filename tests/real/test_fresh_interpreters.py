"""Does another interpreter, with another hash seed, give the same bytes, and load no more than it must?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import codeai_lab
from codeai_lab.decide.authority import Authority
from codeai_lab.decide.duplicates import Case
from codeai_lab.explore.contention import contend
from codeai_lab.explore.duplicates import retry
from codeai_lab.explore.overload import simulate
from codeai_lab.explore.systems import Closed, System
from codeai_lab.lessons import LESSONS
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import LineAdapter, MarkerWorld
from codeai_lab.run.revisions import REVISIONS
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger

HEAVY = {"matplotlib", "ipywidgets", "pandas", "duckdb", "numpy", "IPython", "jupyterlab", "nbclient"}

FOUND = {"PYTHONPATH": str(Path(codeai_lab.__file__).parents[1]), "PYTHONIOENCODING": "utf-8"}

PLAYING = """
import sys
from pathlib import Path
from codeai_lab.lessons import LESSONS
from codeai_lab.lessons.playing import play
from codeai_lab.run.revisions import REVISIONS

for lesson in LESSONS.values():
    for rules in REVISIONS.values():
        alone = [case.name for case in lesson.cases if not case.marked]
        play(lesson, rules, Path(sys.argv[1]) / f"{lesson.name}-{rules.name}", only=alone)
"""
IDENTIFYING = r"""
import sys
from codeai_lab.decide.identity import action_fingerprint
from codeai_lab.records import ActionRequest
payload = {"a": 1, "b": {"x": 1, "y": 2, "\u20ac": 0, "\U0001f600": 0, "\ufb33": 0}}
if sys.argv[1] == "backwards":
    payload = {"b": dict(reversed(payload["b"].items())), "a": 1}
names = {"action_id": sys.argv[1], "idempotency_key": "k", "capability": "c", "instruction": "i"}
request = ActionRequest(**names, payload=payload)
print(action_fingerprint(request).digest)
"""
SIMULATING = """
from codeai_lab.decide.duplicates import Case
from codeai_lab.explore.contention import contend
from codeai_lab.explore.duplicates import retry
from codeai_lab.explore.overload import simulate
from codeai_lab.explore.systems import Closed, System
case = Case(model='loss', protection='none', attempts=4, response_loss=0.3, request_loss=0.2)
print(retry(case, trials=9_999, seed=3, part=1))
print(contend('full', clients=9, runs=9, seed=3).time_ms.tolist())
print(simulate(System(demand=Closed(clients=30), horizon_s=40), seed=3, name='z').load.tolist())
"""
REPLAYING = r"""
import sys
from pathlib import Path
from codeai_lab.decide.authority import Authority
from codeai_lab.records import ActionRequest
from codeai_lab.run.effects import LineAdapter, MarkerWorld
from codeai_lab.run.revisions import revision_named
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.ledger import DuckDBLedger

path, world, action_id, rules = sys.argv[1:]
request = ActionRequest(action_id=action_id, idempotency_key="k", capability="file.append",
                        instruction="append one line",
                        payload={"line": "one", "n": 1, "\u00e9": {"b": 1, "a": 2}})
with DuckDBLedger(path) as ledger:
    result = Runtime(ledger, rules=revision_named(rules)).execute_action(
        request, authority=Authority.of("file.append"), adapter=LineAdapter(MarkerWorld(Path(world))))
print(result.status, result.reused_from_action_id, result.findings)
"""
DRAWING = """
import hashlib
from matplotlib.figure import Figure
from codeai_lab.show.shown import show_figure
f = Figure(figsize=(3, 2)); a = f.subplots(); a.plot([0, 1]); a.bar([0, 1], [1, 2], hatch='//')
s = show_figure(f, alt='a', caption='c', numbers=[{'x': 1}])
print(hashlib.sha256(s.svg + s.png + s._repr_html_().encode()).hexdigest())
"""


def said_by(code: str, *arguments: str, **environment: str) -> str:
    """Give what a program prints in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | FOUND | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def everything(folder: Path) -> dict[str, bytes]:
    """Give the journals, markers and receipts under a folder, by their names."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".jsonl", ".txt")
    }


def test_two_processes_play_the_same_bytes(tmp_path: Path) -> None:
    """Y1: other hash seeds, other time zones, other folders: the same journal, markers and receipts."""
    plays = [
        subprocess.Popen(
            [sys.executable, "-c", PLAYING, tmp_path / name],
            env=os.environ | FOUND | {"PYTHONHASHSEED": seed, "TZ": zone},
        )
        for name, seed, zone in (("one", "1", "UTC"), ("two", "2", "Pacific/Auckland"))
    ]
    assert [process.wait(timeout=60) for process in plays] == [0, 0]
    one, two = everything(tmp_path / "one"), everything(tmp_path / "two")
    assert one == two
    journals = [name for name in one if name.endswith(".journal.jsonl")]
    assert len(journals) == len(LESSONS) * len(REVISIONS)
    assert all(one[name] for name in journals)


def test_the_order_of_keys_and_the_process_change_no_fingerprint() -> None:
    """I1: processes with other hash seeds and another order of keys give one digest."""
    digests = {
        said_by(IDENTIFYING, order, PYTHONHASHSEED=seed).strip()
        for seed, order in (("0", "forwards"), ("1", "backwards"), ("4242", "backwards"))
    }
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_another_process_and_hash_seed_give_the_same_samples() -> None:
    """DU2: counts of duplicates, contending clients and an overload are those of this process."""
    case = Case(model="loss", protection="none", attempts=4, response_loss=0.3, request_loss=0.2)
    here = (
        retry(case, trials=9_999, seed=3, part=1),
        contend("full", clients=9, runs=9, seed=3).time_ms.tolist(),
        simulate(System(demand=Closed(clients=30), horizon_s=40), seed=3, name="z").load.tolist(),
    )
    assert {said_by(SIMULATING, PYTHONHASHSEED=seed) for seed in ("1", "2")} == {
        "".join(f"{one}\n" for one in here)
    }


def test_another_process_replays_after_reopening(tmp_path: Path) -> None:
    """The ledger is closed and opened again, by another process with another hash seed, between the two."""
    path, world = tmp_path / "lab.duckdb", MarkerWorld(tmp_path / "world")
    request = ActionRequest(
        action_id="a1", idempotency_key="k", capability="file.append", instruction="append one line",
        payload={"é": {"a": 2, "b": 1.0}, "n": 1.0, "line": "one"},
    )  # fmt: skip
    with DuckDBLedger(path) as ledger:
        Runtime(ledger).execute_action(
            request, authority=Authority.of("file.append"), adapter=LineAdapter(world)
        )
    for action_id, rules in (("a2", "lab"), ("a3", "1b3c7a2")):
        asked = (str(path), str(world.folder), action_id, rules)
        assert said_by(REPLAYING, *asked, PYTHONHASHSEED="77") == "succeeded a1 ()\n"
    assert world.marker_count() == 1


def test_a_picture_does_not_depend_on_the_hash_seed() -> None:
    """Processes with different hash seeds draw the same bytes (F1)."""
    assert len({said_by(DRAWING, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")}) == 1


def test_pyplot_is_not_loaded() -> None:
    """Showing a figure does not load pyplot (F3)."""
    code = "import sys, codeai_lab.show; print('matplotlib.pyplot' in sys.modules)"
    assert said_by(code) == "False\n"


@pytest.mark.parametrize(
    "script",
    [
        "import codeai_lab",
        "import sys; sys.argv = ['codeai-lab', '--help']\nfrom codeai_lab.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code",
    ],
    ids=["import", "help"],
)
def test_the_front_door_is_light(script: str) -> None:
    """Importing the package, and asking for help, loads no database, no table, no picture and no widget."""
    script += "\nimport sys\nprint('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(said_by(script).splitlines()[-1].split()[1:])
    assert "codeai_lab" in loaded
    assert loaded & HEAVY == set()
