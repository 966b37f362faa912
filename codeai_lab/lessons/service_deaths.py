"""What is found after a process died at each point of the effect service?

Chapter: 004, "Retry, replay, duplicate": neither visible without the other.

Idea: a process really ends, at a point that is told it, and its file is opened again. Inside the transaction
it leaves nothing, after it both; either way the same id is asked again and there is one effect. What the
transaction does not hold is another matter: a marker that is written while it is open stays.

Always true:
  SD1. The process ends without any clean-up: nothing is rolled back by anything of ours.
  SD2. The file is opened by another process than the one that died.

Not here: kills at moments that nobody chose, which are for the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from codeai_lab.clock import ManualClock
from codeai_lab.decide.retention import RequestId
from codeai_lab.errors import LabError
from codeai_lab.lessons.playing import FROZEN_AT_US
from codeai_lab.lessons.two_paths import KEY, LEASE_US, Stand, advance, ask_service, row_over, service_in
from codeai_lab.run.child import SAFE, surroundings
from codeai_lab.run.effects import MarkerWorld
from codeai_lab.run.revisions import R_1B3C7A2
from codeai_lab.store.effect_service import EffectService, Point

LONGEST_START_S = 120
ENDED = 86
IN_ANOTHER_PROCESS = "from codeai_lab.lessons.service_deaths import die_here; die_here()"


def died_at(folder: Path) -> tuple[dict[str, Any], ...]:
    """Let a process end at each point, each with a file of its own; look at what it left, and ask again.

    Raises: LabError when a process did not end where it should.
    """
    dying = []
    for point in Point:
        with service_in(folder, point) as service:
            client_id = service.open_client(lease_us=LEASE_US)
        dying.append((point, client_id, _start(folder, point, client_id)))
    rows = []
    for point, client_id, process in dying:  # they start together and are waited for one by one
        _wait_for(process)
        with service_in(folder, point) as service:
            found = service.kept()
            again = ask_service(service, client_id, 1)
        rows.append(
            {
                "the process died at": str(point),
                "effects found": found["effects"],
                "records found": found["records"],
                "the same id again": again["answer"],
                "effects then": again["effects"],
            }
        )
    return tuple(rows)


def die_here() -> None:
    """Be the other process: submit one request, and end at the point that the arguments name (SD1)."""
    path, stop_at, client_id = sys.argv[1:]

    def stop(point: Point) -> None:
        if point == stop_at:
            os._exit(ENDED)

    service = EffectService(Path(path), clock=ManualClock(start_us=FROZEN_AT_US), watch=stop)
    service.submit(RequestId(client_id=client_id, sequence=1), "one line", action_id=f"{client_id}/1")


def effect_outside(folder: Path) -> dict[str, Any]:
    """Write a marker while the transaction is open, and die before it is committed."""
    world, deaths = MarkerWorld(folder / "outside"), ["the process ended"]

    def write_outside(point: Point) -> None:
        if point is Point.EFFECT_WRITTEN:
            world.append_line(f"d{len(world.receipts()) + 1}", "one line")
        if point is Point.RECORD_WRITTEN and deaths:
            raise SystemExit(deaths.pop())

    with service_in(folder, "outside", watch=write_outside) as service:
        service.open_client(lease_us=LEASE_US)
        stand = Stand(R_1B3C7A2, service)
        dying = advance(stand.walk("d1", KEY), "perform")
        try:
            dying.step()
        except SystemExit:
            stand.raised["d1"] = "SystemExit"
        stand.ask("d2", KEY)
        inside = len(service.receipts())
    stand.effects = world
    row = row_over("effect-outside-the-transaction", stand)
    row["notes"].append(f"the service's own log holds {inside}")
    return row


def _start(folder: Path, point: Point, client_id: str) -> subprocess.Popen[bytes]:
    path = folder / f"{point}.duckdb"
    command = [sys.executable, SAFE, "-c", IN_ANOTHER_PROCESS, str(path), str(point), client_id]
    return subprocess.Popen(command, env=surroundings(), stderr=subprocess.DEVNULL)


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    if process.wait(timeout=LONGEST_START_S) != ENDED:
        raise LabError("A process did not end where it should; run the lesson again in an empty folder.")
