"""How is it all run?

    python -m benchmarks [--quick] [--only NAME ...] [--rounds N] [--scratch DIR] [--dbos-python PYTHON]

Idea: one command makes what it needs in a scratch folder, measures question by question, and prints one
table. Exit status 0: every judged row holds; 1: one does not.

Not here: the measuring (a module for each question), its arithmetic (`rounds`).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import (
    acting,
    contention,
    duplicates,
    old_keys,
    opening,
    overload,
    scratch,
    sliders,
    starting,
    stepping,
    verifying,
)
from benchmarks.peer import Peer, has_dbos
from benchmarks.rounds import Row

QUESTIONS = (
    "acting",
    "old-keys",
    "opening",
    "rebuilding",
    "verifying",
    "starting",
    "stepping",
    "sliders",
    "contention",
    "duplicates",
    "overload",
)
MANY_REPLAYS = 224  # a block: five times the events of the usual one, and as many keys
NEEDS_MANY_EVENTS = {"old-keys", "opening", "rebuilding", "verifying"}


def main() -> int:
    chosen = _arguments()
    asked = chosen.only or list(QUESTIONS)
    many = 100_000 if chosen.quick else 1_000_000
    short, long = (200, 3) if chosen.quick else (600, 5)
    short = chosen.rounds or short
    machine = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"
    print(f"{machine}; {short} rounds of what is short, {long} of what is long.\n", flush=True)
    logging.getLogger("codeai_lab").setLevel(logging.ERROR)  # rebuilding an index is no news here
    rows: list[Row] = []
    with _folder(chosen.scratch) as folder, contextlib.ExitStack() as stack:
        peer = _peer(chosen.dbos_python, folder, stack) if "acting" in asked else None
        made = _made(folder, many) if NEEDS_MANY_EVENTS & set(asked) else None
        for question in QUESTIONS:
            if question not in asked:
                continue
            place = folder / question
            place.mkdir()
            if question == "acting":
                rows += _shown(acting.fresh_and_replay(place, rounds=short, peer=peer))
            elif question == "starting":
                rows += _shown(starting.starting(rounds=max(5, short // 20)))
                rows += _shown(starting.importing(rounds=max(5, short // 40)))
            elif question == "stepping":
                rows += _shown(stepping.stepping(rounds=max(5, short // 20)))
            elif question == "sliders":
                rows += _shown(sliders.sliders(rounds=max(5, short // 40)))
            elif question == "contention":
                rows += _shown(contention.contention(rounds=max(3, short // 100)))
            elif question == "overload":
                rows += _shown(overload.overload(rounds=max(5, short // 40)))
            elif question == "duplicates":
                rows += _shown(duplicates.duplicates(rounds=max(5, short // 20)))
            elif made is not None and question == "old-keys":
                rows += _shown(old_keys.old_keys(place, made, rounds=short))
            elif made is not None and question == "opening":
                rows += _shown(opening.intact(place, made, rounds=max(9, short // 10)))
            elif made is not None and question == "rebuilding":
                rows += _shown(opening.missing(place, made, rounds=long))
            elif made is not None and question == "verifying":
                few = scratch.make(place / "few", events=many // 10)
                again = scratch.make(place / "again", events=many // 2, replays=MANY_REPLAYS)
                rows += _shown(verifying.verifying(place, few, again, made, rounds=long))
            shutil.rmtree(place)
    judged = [row for row in rows if row.held is not None]
    failing = [row for row in judged if not row.held]
    print(f"\n{len(judged)} rows judged, {len(failing)} not held")
    for row in failing:
        print(f"  not held: {row.name}")
    return 1 if failing else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="ledgers of 100,000 events; minutes, not an hour"
    )
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, metavar="NAME", help=", ".join(QUESTIONS))
    parser.add_argument("--rounds", type=int, help="rounds of what is short (200 when quick, else 600)")
    parser.add_argument("--scratch", type=Path, help="a folder on a real disk; a temporary one by default")
    parser.add_argument("--dbos-python", default=sys.executable, help="an interpreter that has DBOS")
    return parser.parse_args()


@contextlib.contextmanager
def _folder(where: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="benchmarks-", dir=where, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _peer(python: str, folder: Path, stack: contextlib.ExitStack) -> Peer | None:
    if not has_dbos(python):
        print("DBOS is not installed here, so the rows against it are left out (see benchmarks/README.md).\n")
        return None
    peer = stack.enter_context(Peer(python, folder / "dbos"))
    print(f"DBOS {peer.version} in a process of its own.\n")
    return peer


def _made(folder: Path, events: int) -> scratch.Made:
    print(f"making a journal of {events:,} events ...", end=" ", flush=True)
    made = scratch.make(folder / "made", events=events)
    print(f"{made.journal.stat().st_size / 2**20:.0f} MB\n", flush=True)
    return made


def _shown(rows: list[Row]) -> list[Row]:
    for row in rows:
        ratio = row.ratio
        figure = f"{ratio.median:6.2f} x  ({ratio.p10:.2f} to {ratio.p90:.2f})" if ratio else ""
        verdict = {True: "held", False: "NOT HELD", None: "not judged" if row.bound else ""}[row.held]
        said = "  ".join(filter(None, (figure, row.bound, verdict, row.remark)))
        print(f"{row.name}\n    {said}", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
