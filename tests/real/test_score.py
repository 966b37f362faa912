"""Do our own verifiers get the score that we claim, and does a script that misbehaves get an answer?"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from codeai_lab.lessons import RETRY_EFFECTS
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.prove import hash_only, verify
from codeai_lab.prove.corrupt import KINDS
from codeai_lab.prove.corruptions import CORRUPTIONS
from codeai_lab.prove.forgeries import FORGERIES
from codeai_lab.prove.scoring import Outcome, score
from codeai_lab.prove.strangers import MOST_BYTES, Answer, ask
from codeai_lab.run.revisions import LAB, R_7A0D43B

# Kinds that damage a chain of calls, a trajectory or a sample; everything else applies to the lab's bundle.
OF_OTHER_LESSONS = {
    "edit-answer", "ask-twice", "forge-stage", "hide-timeout", "hide-fallback", "lose-link", "edit-evidence",
    "claim-no-repeats", "edit-sample",
}  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Freeze retry-effects under the first rule set and the last."""
    folders = []
    for rules in (R_7A0D43B, LAB):
        folders.append(tmp_path_factory.mktemp("evidence") / rules.name)
        freeze_lesson(RETRY_EFFECTS, rules, folders[-1])
    return folders


def test_our_verifier_names_every_corruption_and_refuses_nothing_good(good: list[Path]) -> None:
    """All kinds, by a process of its own each; what does not apply is said and is not much."""
    found = score(Path(verify.__file__), good, expect={})

    assert [trial for trial in found.trials if trial.outcome not in (Outcome.ACCEPTED, Outcome.NAMED)] == []
    assert found.perfect
    assert len(found[Outcome.ACCEPTED]) == 4
    assert len(found[Outcome.NAMED]) + len(found.not_applicable) == 2 * len(KINDS)
    fits_nothing_here = {kind for bundle, kind in found.not_applicable if bundle.endswith("lab")}
    assert fits_nothing_here == OF_OTHER_LESSONS


def test_hashes_alone_miss_every_consistent_forgery(good: list[Path]) -> None:
    """And name what was done to bytes alone; with the outside digest also what fits in every way."""
    found = score(Path(hash_only.__file__), good[1:], expect={})

    inside = {kind.name for kind in FORGERIES if not kind.outside}
    missed = {trial.kind for trial in found[Outcome.MISSED]}
    named = {trial.kind for trial in found[Outcome.NAMED]}
    assert inside <= missed
    assert {kind.name for kind in CORRUPTIONS if kind.code in ("digest-differs", "missing-file")} <= named
    assert {kind.name for kind in KINDS if kind.outside} <= named
    assert found[Outcome.WRONGLY_REFUSED] == ()


def asked(folder: Path, source: str, timeout_s: float = 30.0) -> tuple[Answer, float]:
    """Ask a script; give its answer and how long that took, in seconds."""
    script = folder / "script.py"
    script.write_text(source)
    began = time.monotonic()
    answer = ask([sys.executable, "-I", "-S", str(script)], within=folder, timeout_s=timeout_s)
    return answer, time.monotonic() - began


def test_a_script_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """ST1: it ignores being asked to end, and its child holds the pipes open."""
    source = (
        "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(60)\n"
    )
    answer, took = asked(tmp_path, source, timeout_s=2.0)

    assert answer.timed_out
    assert answer.status < 0
    assert answer.said.strip().isdigit()
    assert took < 15


@pytest.mark.skipif(sys.platform == "win32", reason="a session of one's own is a thing of POSIX")
def test_a_child_that_left_the_group_keeps_nobody_waiting(tmp_path: Path) -> None:
    """ST1: the script ends at once, its child keeps the pipes for longer than we listen."""
    source = (
        "import subprocess, sys\nprint('{}', flush=True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(8)'], start_new_session=True)\n"
    )
    answer, took = asked(tmp_path, source)

    assert (answer.status, answer.said) == (0, b"{}\n")
    assert took < 7


def test_a_script_that_floods_is_ended_at_the_limit(tmp_path: Path) -> None:
    """ST2: on either stream, long before its time is over."""
    for stream in ("stdout", "stderr"):
        answer, took = asked(tmp_path, f"import sys\nwhile True: sys.{stream}.write('x' * 65536)\n")
        assert answer.said_too_much
        assert not answer.timed_out
        assert max(len(answer.said), len(answer.complained)) == MOST_BYTES
        assert took < 20


def test_a_script_reads_nothing_from_us(tmp_path: Path) -> None:
    """Its standard input is at its end from the start."""
    answer, _ = asked(tmp_path, "import sys; print(repr(sys.stdin.read()))")

    assert (answer.status, answer.said) == (
        0,
        b"''\n".replace(b"\n", b"\r\n" if sys.platform == "win32" else b"\n"),
    )
