"""Do the processes that a command starts end with it, without a word, and import nothing from its folder?

The command runs in a session of its own, which shows who is left of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from live_kernel import wait_for

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "working-state": ("working-state",),
    "watchlist": ("watchlist",),
    "contention": ("contention", "--clients", "100", "200", "--runs", "400"),
}
# Whoever runs the tests may ignore what is sent here, as `nohup` and a job in the background do.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from codeai_lab.cli import main
main()
"""
SHADOWS = (
    "duckdb", "json", "filelock", "pickle", "socket", "signal", "struct", "runpy", "tempfile", "codeai_lab",
)  # fmt: skip
INTERRUPTED = ["codeai-lab: Interrupted."]
SOON_S = 2.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and signals are others there")


def begun(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, as an installed one is started: without that folder in its path."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, "replay", *COMMANDS[command]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def session(of: int) -> list[int]:
    """List who runs in a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == of and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (OSError, psutil.Error):
            continue
    return found


def ended_by(command: str, folder: Path, *signals: signal.Signals, group: bool, after_s: float) -> list[str]:
    """Send signals so long after the first child was there; give what is said, once all are gone (soon)."""
    process = begun(command, folder)
    wait_for(lambda: len(session(process.pid)) > 1, "its first child is there")
    for one in signals:
        time.sleep(after_s)
        (os.killpg if group else os.kill)(process.pid, one)
    _, said = process.communicate(timeout=30)
    assert process.returncode in (130, *(-one for one in signals)), said
    wait_for(lambda: not session(process.pid), "its children are gone", seconds=SOON_S)
    return [line for line in said.splitlines() if line]


@pytest.mark.parametrize("after_s", [0.0, 0.4])
@pytest.mark.parametrize("group", [True, False])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupted_command_says_so_in_one_line(
    command: str, group: bool, after_s: float, tmp_path: Path
) -> None:
    """CH1, CH3, CH4: from a terminal, which reaches the children too, or alone; whenever it comes."""
    assert ended_by(command, tmp_path, signal.SIGINT, group=group, after_s=after_s) == INTERRUPTED


def test_an_impatient_second_interrupt_leaves_nobody(tmp_path: Path) -> None:
    """SW5: what was asked for twice is done once, and soon."""
    ended_by("contention", tmp_path, signal.SIGINT, signal.SIGINT, group=True, after_s=0.4)


@pytest.mark.parametrize("after_s", [0.6])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_ended_takes_its_children_along(
    command: str, name: str, after_s: float, tmp_path: Path
) -> None:
    """CH4, SW5: whoever ends it, in whatever way, is left with nobody, and is told nothing."""
    assert ended_by(command, tmp_path, signal.Signals[name], group=False, after_s=after_s) == []


@pytest.mark.parametrize("command", ["working-state", "watchlist"])
def test_children_import_nothing_from_the_current_folder(command: str, tmp_path: Path) -> None:
    """CH5: whatever lies there is called like a module, it is not run."""
    _lay_shadows(tmp_path)
    process = begun(command, tmp_path)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert not (tmp_path / "ran").exists()


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """CH5: nor do the workers of a sweep, which Python starts."""
    _lay_shadows(tmp_path)
    assert ended_by("contention", tmp_path, signal.SIGINT, group=True, after_s=1.0) == INTERRUPTED
    assert not (tmp_path / "ran").exists()


def _lay_shadows(folder: Path) -> None:
    for name in SHADOWS:
        text = f"open({str(folder / 'ran')!r}, 'a').write({name!r}); raise SystemExit('shadow')\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
