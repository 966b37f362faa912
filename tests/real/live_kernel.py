"""A kernel that is really there, for tests: cells are run in it and interrupted, and it is killed.

It is the running interpreter, whatever kernels are registered here, and keeps its files in a folder of the
test's. Every wait has an end.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager

HOME = Path(__file__).resolve().parents[2]
PATIENCE_S = 40.0


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = PATIENCE_S) -> None:
    """Look again and again until something is so, and fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come in time: {what}"
        time.sleep(0.002)


class ThisInterpreter(KernelSpecManager):
    """Knows one kernel, the running interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, name=kernel_name, display_name="this one", language="python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a cell gave: what it printed, and the exception that ended it, if one did."""

    printed: str
    error: str | None
    message: str | None

    def told(self) -> Any:
        """Give what the cell printed as JSON; the cell must have run to its end."""
        assert self.error is None, f"{self.error}: {self.message}"
        return json.loads(self.printed)


class LiveKernel:
    """One kernel and its client."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir()
        self._scratch = scratch
        self._manager = KernelManager(
            kernel_name="python3",
            kernel_spec_manager=ThisInterpreter(),
            connection_file=str(scratch / "kernel.json"),
        )
        self._output = (scratch / "output.txt").open("wb")
        self._manager.start_kernel(
            cwd=str(scratch), env=_environment(scratch), stdout=self._output, stderr=self._output
        )
        self._client = self._manager.client()
        self._client.start_channels()

    @property
    def process(self) -> int:
        return int(self._manager.provisioner.pid)  # type: ignore[union-attr]

    def is_ready(self) -> None:
        self._client.wait_for_ready(timeout=PATIENCE_S)

    def start(self, code: str) -> str:
        """Send a cell off and give its name; `finish` waits for its end."""
        return str(self._client.execute(code, allow_stdin=False, stop_on_error=False))

    def finish(self, name: str, *, seconds: float = PATIENCE_S) -> Cell:
        """Wait for the end of a cell and give what it gave."""
        deadline = time.monotonic() + seconds
        printed = ""
        while True:
            kind, content = _heard(self._client.get_iopub_msg, name, deadline)
            if kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
            elif kind == "status" and content["execution_state"] == "idle":
                break
        # Not from what is shown: where IPython cannot format an interrupt's traceback, it shows no error.
        _, reply = _heard(self._client.get_shell_msg, name, deadline)
        return Cell(printed=printed, error=reply.get("ename"), message=reply.get("evalue"))

    def run(self, code: str) -> Cell:
        """Run a cell to its end."""
        return self.finish(self.start(code))

    def stop(self, name: str) -> Cell:
        """Press the stop button and give what the cell gave.

        Python ignores an interrupt that falls into a finalizer; whoever sees the cell go on presses again.
        """
        for _ in range(3):
            self._manager.interrupt_kernel()
            try:
                return self.finish(name, seconds=PATIENCE_S / 4)
            except TimeoutError:
                continue
        raise AssertionError("a cell went on after three interrupts")

    def kill(self) -> None:
        """Kill the kernel where it stands, and wait until it is gone."""
        os.kill(self.process, signal.SIGKILL)
        wait_for(lambda: not self._manager.is_alive(), "the end of a killed kernel")

    def used_s(self) -> float:
        """Give the processor time that the kernel has used, in seconds."""
        times = psutil.Process(self.process).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        with ExitStack() as last:
            last.callback(self._output.close)
            last.callback(self._manager.cleanup_resources)
            last.callback(self._manager.shutdown_kernel, now=True)
            last.callback(self._client.stop_channels)


@contextmanager
def kernels(*scratches: Path) -> Iterator[tuple[LiveKernel, ...]]:
    """Give kernels, started side by side, and end them in whatever way the test ends."""
    with ExitStack() as stack:
        started = []
        for scratch in scratches:
            kernel = LiveKernel(scratch)
            stack.callback(kernel.close)
            started.append(kernel)
        for kernel in started:
            kernel.is_ready()
        yield tuple(started)


def _heard(hear: Callable[..., dict[str, Any]], name: str, deadline: float) -> tuple[str, dict[str, Any]]:
    """Give the kind and the content of the next message about a cell."""
    while True:
        try:
            heard = hear(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError("a cell did not end in time") from None
        if heard["parent_header"].get("msg_id") == name:
            return heard["msg_type"], heard["content"]


def _environment(scratch: Path) -> dict[str, str]:
    env = dict(os.environ)
    env.pop("PYTHONWARNINGS", None)
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        env[variable] = str(scratch / variable.lower())
    search = [str(HOME), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    return env | {"PYTHONPATH": os.pathsep.join(search)}
