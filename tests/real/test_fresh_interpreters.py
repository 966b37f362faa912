"""Does another interpreter, with another hash seed, give the same bytes, and load no more than it must?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import codeai_lab
from codeai_lab.lessons import LESSONS
from codeai_lab.run.revisions import REVISIONS

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


def test_a_picture_does_not_depend_on_the_hash_seed() -> None:
    """Processes with different hash seeds draw the same bytes (F1)."""
    assert len({said_by(DRAWING, PYTHONHASHSEED=seed) for seed in ("1", "2", "3")}) == 1


def test_pyplot_is_not_loaded() -> None:
    """Showing a figure does not load pyplot (F3)."""
    code = "import sys, codeai_lab.show; print('matplotlib.pyplot' in sys.modules)"
    assert said_by(code) == "False\n"
