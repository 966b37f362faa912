"""Is a long sweep, in processes of its own, stopped by Ctrl-C, gone on with, and small all the time?

A sweep of duplicates in a real process, which spawns its workers. It is interrupted once its first answers
are on the disk, and then run again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live_kernel import wait_for

ROOT = Path(__file__).resolve().parents[2]
TRIALS, PARTS = 10_000_000, 40
SCRIPT = """
import json, resource, sys
from pathlib import Path
from codeai_lab.canonical import canonical_bytes
from codeai_lab.lessons import duplicates
from codeai_lab.lessons.duplicates import duplicates_measured, ladder
from codeai_lab.lessons.measured import rows_of

if __name__ == "__main__":
    duplicates.TRIALS_A_PART = 250_000  # so that there are many parts to stop between
    keep, trials = Path(sys.argv[1]), int(sys.argv[2])
    cases = ladder(attempts=4, response_loss=0.3, request_loss=0.2)[:1]
    started = []
    measured = duplicates_measured(
        cases=cases, trials=trials, keep=keep, progress=lambda *what: started.append(what)
    )
    print(canonical_bytes(rows_of(measured)).decode())
    sizes = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"kept": started[0][1], "of": started[0][2], "largest": max(sizes)}))
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stop key is another one there")


def begun(keep: Path, *, trials: int = TRIALS, hash_seed: str = "0") -> subprocess.Popen[str]:
    """Start a sweep in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(keep), str(trials)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, dict[str, int]]:
    """Wait for the end of a sweep that is let alone; give its rows, and what it says of itself."""
    said, complaints = process.communicate(timeout=90)
    assert (process.returncode, complaints) == (0, "")
    rows, itself = said.splitlines()
    return rows, json.loads(itself)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, int]]:
    """The rows of a sweep that nobody interrupted, and its size."""
    return ended(begun(tmp_path_factory.mktemp("sweep") / "kept.jsonl"))


def lines(keep: Path) -> int:
    return keep.read_bytes().count(b"\n") if keep.exists() else 0


def nobody_is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("whom", ["the sweep", "its workers too"])
def test_an_interrupted_sweep_gives_the_bytes_of_one_that_was_not(
    tmp_path: Path, whom: str, untouched: tuple[str, dict[str, int]]
) -> None:
    """Stopped by SIGINT, sent to it alone as by a script or to its workers too as by a terminal, it ends,
    leaves no process and keeps whole answers; the next run, under another hash seed, runs only the rest.
    """
    keep = tmp_path / "kept.jsonl"
    process = begun(keep)
    wait_for(lambda: lines(keep) > 0, "the first answer is kept")
    (os.kill if whom == "the sweep" else os.killpg)(process.pid, signal.SIGINT)
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in complaints
    wait_for(lambda: nobody_is_left(process.pid), "its workers are gone")
    kept = lines(keep)
    assert 0 < kept < PARTS

    rows, itself = ended(begun(keep, hash_seed="7"))
    assert (itself["kept"], itself["of"], lines(keep)) == (kept, PARTS, PARTS)
    assert rows == untouched[0]


def test_ten_times_the_trials_take_the_same_memory(
    tmp_path: Path, untouched: tuple[str, dict[str, int]]
) -> None:
    """The largest process of a sweep of ten million trials is no larger than that of one million."""
    _, few = ended(begun(tmp_path / "kept.jsonl", trials=TRIALS // 10))
    assert untouched[1]["largest"] <= few["largest"] * 1.1
