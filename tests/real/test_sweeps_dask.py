"""Does a sweep give the same bytes when dask runs its parts?

A local cluster of two worker processes, reached through dask's own `concurrent.futures` executor. Left out
where dask is not installed: it is an extra.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_kernel import wait_for

from codeai_lab.canonical import canonical_bytes
from codeai_lab.lessons.duplicates import duplicates_measured, ladder
from codeai_lab.lessons.measured import Progress, rows_of

distributed = pytest.importorskip("distributed")

DASK_LOCKS = {"global.lock", "purge.lock"}


@contextmanager
def cluster(folder: Path) -> Iterator[Executor]:
    """Start two worker processes on this machine and give the executor that reaches them."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=str(folder)
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client.get_executor()


def told(executor: Executor | None, keep: Path | None = None, progress: Progress | None = None) -> bytes:
    """Give the rows of eight cases, as bytes."""
    cases = ladder(attempts=4, response_loss=0.3, request_loss=0.2)[::3]
    measured = duplicates_measured(
        cases=cases, trials=20_000, executor=executor, keep=keep, progress=progress
    )
    return canonical_bytes(rows_of(measured))


def test_dask_gives_the_same_bytes_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through dask, in threads and in processes of our own: the same bytes; what dask kept is gone on with;
    afterwards there is no worker, no thread that would hold the process, and no file but the kept answers
    and dask's own empty locks in the folder that it was given.
    """
    monkeypatch.chdir(tmp_path)  # where a library that leaves something would leave it
    before = set(threading.enumerate())
    keep, folder = tmp_path / "kept.jsonl", tmp_path / "workers"
    said: list[tuple[str, int, int]] = []
    with cluster(folder) as dask:
        through_dask = told(dask, keep, lambda *what: said.append(what))
        assert len(multiprocessing.active_children()) == 2
    assert (said[0], said[-1][1:]) == (("starting", 0, 8), (8, 8))
    assert multiprocessing.active_children() == []
    wait_for(
        lambda: not [one for one in set(threading.enumerate()) - before if not one.daemon],
        "the threads of the cluster are gone",
    )
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in left if path.is_relative_to(folder)} <= DASK_LOCKS
    assert {path for path in left if not path.is_relative_to(folder)} == {keep}

    with ThreadPoolExecutor(2) as threads:
        assert told(threads) == told(None) == through_dask
        said.clear()
        assert told(threads, keep, lambda *what: said.append(what)) == through_dask
    assert said == [("kept from before", 8, 8)]
