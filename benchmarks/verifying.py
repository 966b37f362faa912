"""What does it cost to verify a large bundle, and how much memory does it take?

Chapter: 004, "Checking it without trusting it".

Idea: a verifier has to hash every byte and to read every line. The floor is exactly that: SHA-256 of every
file of the bundle and `json.loads` of each line of its ledger. Memory is that of a child process that does
nothing else; what a key takes and what a replay takes is told from bundles that differ in these alone.

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


def verifying(scratch: Path, few_keys: Made, replayed: Made, large: Made, *, rounds: int) -> list[Row]:
    """Verify a large bundle against the floor, and show what of it takes memory.

    Args:
        few_keys: a tenth of the large one, with a tenth of its keys.
        replayed: as many keys as `few_keys`, and many more replays of them.
    """
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
        peaks = [
            _peak_kb(freeze(made, scratch / name))
            for name, made in (("few-keys", few_keys), ("replayed", replayed))
        ]
        rows.append(_memory((few_keys, peaks[0]), (replayed, peaks[1]), (large, _peak_kb(bundle))))
    return rows


def _memory(*peaks: tuple[Made, int]) -> Row:
    (few_keys, few), (replayed, again), (large, many) = peaks
    said = ", ".join(
        f"{peak / 1024:.0f} MB for {made.events:,} events of {made.keys:,} keys" for made, peak in peaks
    )
    a_replay = (again - few) * 1024 / (replayed.requests - few_keys.requests)
    replays = (large.requests - large.keys) - (few_keys.requests - few_keys.keys)
    a_key = ((many - few) * 1024 - replays * a_replay) / (large.keys - few_keys.keys)
    remark = f"{said}: {a_key:,.0f} bytes a key, {a_replay:,.0f} a replay"
    return Row(name="  memory of the verifier", ratio=None, remark=remark)


def _peak_kb(bundle: Path) -> int:
    """Give the peak memory in kB of a process that verifies a bundle, its interpreter included."""
    command = [sys.executable, "-I", "-S", "-c", _PEAK, str(Path(verify.__file__).parent), str(bundle)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
