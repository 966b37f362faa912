"""What the other process does in the tests of the ledger: it appends, it is killed, it forks.

Run as a script. `template` imports everything, opens nothing, and forks a child for each line that it is
told, so that a kill costs no new interpreter; the other words are one scene each. Whatever was acknowledged
goes out through the pipe at once, a line a time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401  # before the fork, so that a child need not

from codeai_lab.errors import LedgerError
from codeai_lab.records import EventDraft
from codeai_lab.store import core
from codeai_lab.store.ledger import DuckDBLedger


def draft(event_id: str, **payload: Any) -> EventDraft:
    return EventDraft(
        event_id=event_id, run_id="lesson/A", stream_id=event_id, kind="action.requested", actor_id="child",
        idempotency_key=event_id[-1], recorded_at_us=1, causation_id=None, payload=payload,
    )  # fmt: skip


def say(out: int, *words: object) -> None:
    os.write(out, (" ".join(map(str, words)) + "\n").encode())


def append_batch(ledger: DuckDBLedger, out: int, name: str, size: int) -> None:
    """Append a batch, each event saying which of how many it is, and acknowledge it."""
    events = ledger.append(*(draft(f"{name}.{n}", n=n, of=size) for n in range(1, size + 1)))
    say(out, "acknowledged", *(f"{event.seq}={event.event_id}" for event in events))


# --- what a forked child does until it is killed -------------------------------------------------------


def appending(path: Path, name: str, out: int) -> None:
    ledger = DuckDBLedger(path)
    say(out, "open", len(ledger.notices))
    for number in range(100_000):
        append_batch(ledger, out, f"{name}-{number}", 1 + number % 3)


def flushing(path: Path, name: str, out: int) -> None:
    core.FLUSH_AT = 4
    appending(path, name, out)


def closing(path: Path, name: str, out: int) -> None:
    for number in range(100_000):
        with DuckDBLedger(path) as ledger:
            say(out, "open", len(ledger.notices))
            append_batch(ledger, out, f"{name}-{number}", 1 + number % 3)


CHILDREN: dict[str, Callable[[Path, str, int], None]] = {
    "appending": appending,
    "flushing": flushing,
    "closing": closing,
}


def template(path: Path, out: int) -> None:
    """Fork a child for each line `KIND NAME`, say its process id, and wait until it is gone."""
    for line in sys.stdin:
        kind, name = line.split()
        child = os.fork()
        if child == 0:
            try:
                CHILDREN[kind](path, name, out)
            except BaseException as error:  # said to whoever listens
                say(out, "failed", repr(error))
            os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


# --- scenes ---------------------------------------------------------------------------------------------


def hold(path: Path, out: int) -> None:
    """Open, append one event, and hold the ledger until the input ends."""
    with DuckDBLedger(path) as ledger:
        append_batch(ledger, out, "held", 1)
        sys.stdin.read()


def write_many(path: Path, out: int) -> None:
    """Append 5,000 events in batches of one to three, then wait to be killed."""
    ledger, number, written = DuckDBLedger(path), 0, 0
    while written < 5_000:
        size = min(1 + number % 3, 5_000 - written)
        ledger.append(*(draft(f"e-{number}.{n}", n=n, of=size) for n in range(1, size + 1)))
        number, written = number + 1, written + size
        if number == 1:
            say(out, "begun")
    say(out, "written")
    signal.pause()


def interrupted(path: Path, out: int) -> None:
    """Append while SIGINT comes in; after each, look whether the event is recorded, and go on from there."""
    core.FLUSH_AT = 4
    ledger = DuckDBLedger(path)
    armed = [False]

    def interrupt(*_: object) -> None:
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    say(out, "open")
    number = interrupts = 0
    while not Path(f"{path}.enough").exists():
        try:
            armed[0] = True
            if not ledger.read(f"i-{number}"):
                ledger.append(draft(f"i-{number}"))
            if number % 5 == 0:
                ledger.sql("SELECT count(*) FROM events")
            number += 1
        except KeyboardInterrupt:
            interrupts += 1
        armed[0] = False
    if not ledger.read(f"i-{number}"):
        ledger.append(draft(f"i-{number}"))
    say(out, "appended", number + 1, "interrupted", interrupts)
    ledger.close()


def leave(path: Path, out: int) -> None:
    """End in the middle, without closing anything, by an exception that nobody catches."""
    ledger = DuckDBLedger(path)
    append_batch(ledger, out, "left", 2)
    raise SystemExit(f"{len(ledger.notices)} notices")


def fork_and_use(path: Path, out: int) -> None:
    """Use the parent's ledger in a forked child in every way, let the child end in every way, and go on."""
    ledger = DuckDBLedger(path)
    append_batch(ledger, out, "before", 2)
    ledger.sql("SELECT 1")
    for ending in ("exit", "_exit", "exception", "close-and-exit"):
        child = os.fork()
        if child == 0:
            uses: dict[str, Callable[[], object]] = {
                "append": lambda: ledger.append(draft("from the child")),
                "find": lambda: ledger.find("1"),
                "read": lambda: ledger.read("s"),
                "read_all": lambda: ledger.read_all(),
                "sql": lambda: ledger.sql("SELECT 1"),
                "open": lambda: DuckDBLedger(path),
            }
            for name, use in uses.items():
                try:
                    use()
                    say(out, "used", name)
                except LedgerError as error:
                    say(out, "refused", ending, name, type(error).__name__, str(error))
            if ending == "_exit":
                os._exit(0)
            if ending == "exception":
                raise RuntimeError("nobody catches this")
            if ending == "close-and-exit":
                ledger.close()
            sys.exit(0)
        os.waitpid(child, 0)
        append_batch(ledger, out, f"after-{ending}", 2)
        say(out, "counted", ledger.sql("SELECT count(*) FROM events").rows[0][0])
    say(out, "ready")
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)


def fork_and_die(path: Path, out: int) -> None:
    """Open, fork a child that lives on until the input ends, and be killed."""
    ledger = DuckDBLedger(path)
    append_batch(ledger, out, "parents", 3)
    ledger.sql("SELECT 1")
    append_batch(ledger, out, "unflushed", 1)
    child = os.fork()
    if child == 0:
        say(out, "child", os.getpid())
        sys.stdin.read()
        say(out, "child ends")
        sys.exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


SCENES = {
    scene.__name__: scene
    for scene in (template, hold, write_many, interrupted, leave, fork_and_use, fork_and_die)
}

if __name__ == "__main__":
    SCENES[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
