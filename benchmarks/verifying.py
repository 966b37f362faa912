"""What does it cost to verify a large bundle, and how much memory does it take?

Chapter: 004, "Checking it without trusting it".

Idea: a verifier has to hash every byte and to read every line. The floor is exactly that: SHA-256 of every
file of the bundle and `json.loads` of each line of its ledger. Memory is that of a child process that does
nothing else.

Always true: the bundle is a good one; a verifier that stopped at a finding would be quick for the wrong
reason.

Not here: what the verifier finds.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.rounds import Row, judged, side_by_side
from benchmarks.scratch import Made, freeze
from codeai_lab.prove import verify

_PEAK = r"""
import re, sys
sys.path.insert(0, sys.argv[1])
import verify
assert verify.verify(sys.argv[2]).valid
print(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1])
"""


def verifying(scratch: Path, small: Made, large: Made, *, rounds: int) -> list[Row]:
    """Verify a large bundle against the floor; compare the memory with that of a small one."""
    bundle = freeze(large, scratch / "large-bundle")
    ledger = bundle / "data" / "ledger.jsonl"

    def ours() -> None:
        report = verify.verify(bundle)
        assert report.valid, report.findings

    def floor() -> None:
        for path in bundle.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    hashlib.file_digest(file, "sha256").hexdigest()
        with ledger.open("rb") as file:
            for line in file:
                json.loads(line)

    times = side_by_side({"verify": lambda: ours, "floor": lambda: floor}, rounds=rounds)
    name = f"verify a bundle of {large.events:,} events / (sha256 of the bytes + json.loads of each line)"
    remark = f"{times.of('verify').median:.1f} s / {times.of('floor').median:.1f} s"
    rows = [judged(name, times.ratio("verify", "floor"), at_most=2, remark=remark)]
    if Path("/proc/self/status").exists():
        rows.append(_memory(freeze(small, scratch / "small-bundle"), small, bundle, large))
    return rows


def _memory(small_bundle: Path, small: Made, large_bundle: Path, large: Made) -> Row:
    few, many = (_peak_kb(bundle) for bundle in (small_bundle, large_bundle))
    requests = sum(len(case.asked) for case in large.cases) - sum(len(case.asked) for case in small.cases)
    each = (many - few) * 1024 / requests if requests else 0
    size = (large_bundle / "data" / "ledger.jsonl").stat().st_size / 2**20
    return Row(
        name="  memory of the verifier",
        ratio=None,
        remark=f"{few / 1024:.0f} MB for {small.events:,} events, {many / 1024:.0f} MB for {large.events:,} "
        f"({size:.0f} MB of lines): {each:.0f} bytes a request more",
    )


def _peak_kb(bundle: Path) -> int:
    """Give the peak memory in kB of a process that verifies a bundle, its interpreter included."""
    command = [sys.executable, "-I", "-S", "-c", _PEAK, str(Path(verify.__file__).parent), str(bundle)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
