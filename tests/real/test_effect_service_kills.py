"""Effect and completion record under real kills and threads: both or neither, and no id acts twice."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from codeai_lab.decide.retention import Answer, RequestId, Verdict
from codeai_lab.store.effect_service import EffectService, Point

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

LEASE_US = 10**15

# A warm process that has opened nothing. For each line it forks a child, which asks for one request after the
# other, from a number on, and says where each stands; now and then it acknowledges what it was told.
CHILD = """
import os, signal, sys
from pathlib import Path
import duckdb
from codeai_lab.decide.retention import RequestId
from codeai_lab.store.effect_service import EffectService

def ask_until_killed(path, first, die_at, mouth):
    def say(*words):
        os.write(mouth, (" ".join(map(str, words)) + "\\n").encode())
    def stand_at(point):
        say(point)
        if point == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
    service = EffectService(Path(path), watch=stand_at)
    say("open")
    client = "c1"
    for number in range(first, first + 100_000):
        say("asked", number)
        verdict = service.submit(RequestId(client_id=client, sequence=number), f"line {number}",
                                 action_id=f"{client}/{number}", first_incomplete=max(1, number - 4))
        say("told", number, verdict.answer, verdict.result["effect"])

for line in sys.stdin:
    path, first, die_at = line.split()
    child = os.fork()
    if child == 0:
        try:
            ask_until_killed(path, int(first), die_at, int(sys.argv[1]))
        except BaseException as error:
            os.write(int(sys.argv[1]), f"failed {error!r}".encode())
        os._exit(1)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


class Killing:
    """Kills children that ask for effects, and looks at what each leaves in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.next = 1
        self.told: dict[int, int] = {}
        self.stood_at: Counter[str] = Counter()
        with EffectService(path) as service:
            assert service.open_client(lease_us=LEASE_US) == "c1"
        self._ears, mouth = os.pipe()
        os.set_blocking(self._ears, False)
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(mouth)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[mouth], text=True,
        )  # fmt: skip
        os.close(mouth)

    def kill_one(self, *, after_words: int = 0, after_s: float = 0.0, die_at: str = "never") -> None:
        """Let a child ask; kill it so long after so many of its words, or let it kill itself at a point."""
        child = self.begin(die_at)
        heard = b""
        while die_at == "never" and heard.count(b"\n") < after_words:
            select.select([self._ears], [], [], 30)
            heard += self._heard()
        time.sleep(after_s)
        if die_at == "never":
            os.kill(child, signal.SIGKILL)
        self.await_end()
        self._look([line.split() for line in (heard + self._heard()).decode().splitlines()])

    def begin(self, die_at: str = "never") -> int:
        """Let a child begin, and give its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self.path} {self.next} {die_at}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def await_end(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "gone\n"

    def _heard(self) -> bytes:
        heard = b""
        while True:
            try:
                heard += os.read(self._ears, 1 << 16)
            except BlockingIOError:
                return heard

    def _look(self, heard: list[list[str]]) -> None:
        asked = [int(rest[0]) for word, *rest in heard if word == "asked"]
        told = {int(rest[0]): int(rest[2]) for word, *rest in heard if word == "told"}
        assert "failed" not in {word for word, *_ in heard}, heard[-1]
        if not asked:
            return
        self.stood_at[heard[-1][0]] += 1
        self.told |= told
        mark, effects, records = self._rows()
        # Both or neither: above the mark every effect has its record, and there is no record without one.
        assert {number for number in effects if number > mark} == records
        assert len(effects) == len(set(effects))
        assert told.keys() <= set(effects)
        assert [effects.index(number) + 1 for number in told] == list(told.values())
        self._ask_again(asked[-1], mark, effects)
        self.next = asked[-1] + 1

    def _rows(self) -> tuple[int, list[int], set[int]]:
        database = duckdb.connect(str(self.path), read_only=True)
        ((mark,),) = database.execute("SELECT coalesce(max(up_to), 0) FROM collections").fetchall()
        effects = database.execute("SELECT sequence FROM effects ORDER BY n").fetchall()
        records = database.execute("SELECT sequence FROM completions").fetchall()
        database.close()
        return mark, [number for (number,) in effects], {number for (number,) in records}

    def _ask_again(self, last: int, mark: int, effects: list[int]) -> None:
        """Retry the last request: new where nothing is there, else answered with its result; one effect."""
        with EffectService(self.path) as service:
            verdict = service.submit(
                RequestId(client_id="c1", sequence=last), f"line {last}", action_id="again"
            )
            assert verdict.answer is (Answer.DUPLICATE if last in effects else Answer.NEW)
            if last in effects:
                assert verdict.result["effect"] == effects.index(last) + 1
            again = service.submit(RequestId(client_id="c1", sequence=last), "x", action_id="again")
            assert (again.answer, again.result) == (Answer.DUPLICATE, verdict.result)
            assert service.kept()["effects"] == len({*effects, last})
            if mark:
                stale = service.submit(RequestId(client_id="c1", sequence=mark), "x", action_id="again")
                assert stale.answer is Answer.STALE

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=30) == 0
        os.close(self._ears)


@pytest.fixture
def killing(tmp_path: Path) -> Iterator[Killing]:
    killing = Killing(tmp_path / "effects.duckdb")
    yield killing
    killing.close()


def test_forty_kills_at_random_moments_leave_both_or_neither(killing: Killing) -> None:
    """kill -9 whenever: effect and record are both there or both absent, what was told is there, and the
    request that was cut off is asked again and has one effect."""
    moment = random.Random(2015)
    for _ in range(40):
        killing.kill_one(after_words=moment.randint(1, 30), after_s=moment.uniform(0, 0.004))
    assert len(killing.told) > 20
    assert killing.stood_at.total() > 30
    inside = {str(point) for point in (Point.BEGUN, Point.EFFECT_WRITTEN, Point.RECORD_WRITTEN)}
    assert inside & killing.stood_at.keys(), killing.stood_at


@pytest.mark.parametrize("point", list(Point))
def test_a_kill_at_each_point_leaves_both_or_neither(killing: Killing, point: Point) -> None:
    """Between any two statements, twice in a row on the same file."""
    for _ in range(2):
        killing.kill_one(die_at=point)
    _, effects, _ = killing._rows()
    assert killing.stood_at == {str(point): 2}
    assert effects == [1, 2]
    assert killing.told == {}


def test_a_file_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    """kill -9 at random moments of a first opening: the next one finds a whole file or makes one."""
    moment = random.Random(7)
    killing = Killing(tmp_path / "unused.duckdb")
    try:
        for number in range(15):
            killing.path = tmp_path / f"{number}.duckdb"
            child = killing.begin()
            time.sleep(moment.uniform(0, 0.12))
            with contextlib.suppress(ProcessLookupError):  # it may have come to its end by itself
                os.kill(child, signal.SIGKILL)
            killing.await_end()
            with EffectService(killing.path) as service:
                assert service.open_client(lease_us=LEASE_US) == "c1"
                verdict = service.submit(RequestId(client_id="c1", sequence=1), "x", action_id="a")
                assert verdict.answer is Answer.NEW
    finally:
        killing.close()


def test_threads_that_ask_for_one_id_at_the_same_moment_have_one_effect(tmp_path: Path) -> None:
    """Each id is new to one thread; the others are told that it is in progress, or its result."""
    threads, ids = 8, 25
    gate = threading.Barrier(threads)

    def ask_for_all(service: EffectService) -> list[Verdict]:
        told = []
        for number in range(1, ids + 1):
            gate.wait(timeout=30)
            asked = RequestId(client_id="c1", sequence=number)
            told.append(service.submit(asked, f"line {number}", action_id=asked.key))
        return told

    with EffectService(tmp_path / "effects.duckdb") as service, ThreadPoolExecutor(threads) as pool:
        service.open_client(lease_us=LEASE_US)
        told = list(pool.map(ask_for_all, [service] * threads))
        assert service.kept() == {"effects": ids, "records": ids, "collections": 0}
    for number in range(ids):
        answers = Counter(one[number].answer for one in told)
        assert answers[Answer.NEW] == 1
        assert answers.keys() <= {Answer.NEW, Answer.DUPLICATE, Answer.IN_PROGRESS}
        results = {one[number].result["effect"] for one in told if one[number].result is not None}
        assert results == {number + 1}


# --- fork ----------------------------------------------------------------------------------------------

FORKING = """
import os, sys
from pathlib import Path
from codeai_lab.decide.retention import RequestId
from codeai_lab.errors import LedgerClosedError
from codeai_lab.store.effect_service import EffectService

def ask(number):
    request = RequestId(client_id=client, sequence=number)
    return service.submit(request, f"line {number}", action_id=f"a{number}").answer

service = EffectService(Path(sys.argv[1]))
client = service.open_client(lease_us=10**15)
for number, ending in enumerate(("exit", "_exit", "close"), start=1):
    print(ask(number), flush=True)
    child = os.fork()
    if child == 0:
        try:
            print(ask(number + 1))
        except LedgerClosedError:
            print("refused", flush=True)
        if ending == "_exit":
            os._exit(0)
        if ending == "close":
            service.close()
        sys.exit(0)
    os.waitpid(child, 0)
print(service.kept()["effects"])
try:
    EffectService(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__)
service.close()
"""


def test_a_forked_child_is_refused_and_does_its_parent_no_harm(tmp_path: Path) -> None:
    """ES5: however the child ends, the parent's file, lock and effects stay whole."""
    path = tmp_path / "effects.duckdb"
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING, str(path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert said.stderr == ""
    assert said.stdout.split() == [*["new", "refused"] * 3, "3", "LedgerInUseError"]
    with EffectService(path) as service:
        assert service.kept()["effects"] == 3
