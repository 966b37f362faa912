"""A JupyterLab and a browser of the tests' own: nothing of the user's is read or touched, nothing is left.

The server runs on a free port, with a token and folders of its own, below a keeper that ends it with its
kernels when this process ends, in whatever way. The browser is the system's Chromium, driven by Playwright.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from live_kernel import HOME, wait_for
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

KEEPER = Path(__file__).with_name("keeper.py")
PATIENCE_MS = 40_000
MISSING = (
    "The browser tests need Chromium, and there is none; install it (on Debian and Ubuntu: apt-get install "
    "chromium) or leave these tests out with --ignore=tests/real/test_stepper_browser.py."
)
FOLDERS = (
    "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR", "MPLCONFIGDIR",
)  # fmt: skip
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A running server: its address, its token, the folder that it shows, the process that keeps it."""

    base: str
    token: str
    root: Path
    keeper: int

    def ask(self, method: str, path: str) -> Any:
        """Ask the server's own interface."""
        request = urllib.request.Request(
            f"{self.base}/api/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def is_up(self) -> bool:
        try:
            self.ask("GET", "status")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def end_sessions(self) -> None:
        """End every kernel, so that the next notebook has one of its own."""
        for session in self.ask("GET", "sessions"):
            self.ask("DELETE", f"sessions/{session['id']}")

    def write(self, name: str, *cells: str) -> Path:
        """Write a notebook of a title and some cells of code that were not run."""
        nb = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_markdown_cell("# A test", id="title"),
                *(nbformat.v4.new_code_cell(one, id=f"cell-{n}") for n, one in enumerate(cells)),
            ],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}},
        )
        path = self.root / name
        nbformat.write(nb, path)
        return path


def chromium() -> str:
    """Give the browser's program; where there is none the test fails, and says what to do."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return pytest.fail(MISSING, pytrace=False)


@contextmanager
def running_lab(scratch: Path) -> Iterator[Lab]:
    """Give a server, and end it with everything that it started; fails when something outlived it."""
    scratch.mkdir(parents=True, exist_ok=True)
    root = scratch / "notebooks"
    root.mkdir()
    settings = scratch / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(NO_NEWS))
    token, port = secrets.token_hex(16), _free_port()
    keeper = subprocess.Popen(
        [
            sys.executable, str(KEEPER), str(scratch / "server.txt"),
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
            f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
            f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True",
        ],
        env=_environment(scratch), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    lab = Lab(base=f"http://127.0.0.1:{port}", token=token, root=root, keeper=keeper.pid)
    try:
        wait_for(lab.is_up, "the server")
        yield lab
        lab.end_sessions()
        lab.ask("POST", "shutdown")
        wait_for(lambda: not _below(keeper.pid), "the end of the server and its kernels")
    finally:
        left, _ = keeper.communicate(timeout=30)
    assert left.split() == [], f"the server left something running: {left}"


@contextmanager
def running_browser(scratch: Path) -> Iterator[BrowserContext]:
    """Give a browser with a profile of its own, and wait until every process of it is gone."""
    program = chromium()
    before = set(psutil.Process().children(recursive=True))
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            scratch / "profile",
            executable_path=program,
            headless=True,
            viewport={"width": 1200, "height": 1000},
            args=["--no-sandbox", "--disable-gpu", "--disable-breakpad"],
        )
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        started = set(psutil.Process().children(recursive=True)) - before
        yield context
        context.close()
    wait_for(lambda: not any(map(_runs, started)), "the end of the browser")


# --- what a person does in it ----------------------------------------------------------------------------


def open_in_lab(page: Page, lab: Lab, name: str) -> None:
    """Open a notebook in JupyterLab and wait until its kernel is idle."""
    page.goto(f"{lab.base}/lab/workspaces/auto-t/tree/{name}?reset&token={lab.token}")
    page.wait_for_selector(".jp-Notebook")
    # The only sign that does not lie: the notebook's own says "idle" before there is a kernel.
    page.get_by_role("button", name="Python 3 (ipykernel) | Idle").wait_for()


def run_all(page: Page) -> None:
    """Run every cell; what runs is waited for by what it shows."""
    # Without `void` this would wait for a promise that may never be kept.
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")


def cells(page: Page) -> list[tuple[str, str]]:
    """Give the kind and the source of every cell of the open notebook, as the application holds them."""
    found: list[list[str]] = page.evaluate(
        """() => {
            const content = window.jupyterapp.shell.currentWidget.content;
            return [...content.model.cells].map((cell) => [cell.type, cell.sharedModel.getSource()]);
        }"""
    )
    return [(kind, source) for kind, source in found]


def mode(page: Page) -> str:
    """Give the notebook's mode, `command` or `edit`."""
    return str(page.evaluate("window.jupyterapp.shell.currentWidget.content.mode"))


def picture(page: Page | Locator, name: str) -> Path:
    """Keep a picture of what is seen, in the folder that CODEAI_LAB_ARTEFACTS names, or in build."""
    folder = Path(os.environ.get("CODEAI_LAB_ARTEFACTS") or HOME / "build" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    return path


# --- processes -------------------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _environment(scratch: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_"))}
    kept.pop("PYTHONWARNINGS", None)
    kept.pop("MPLBACKEND", None)
    search = [str(HOME), *filter(None, kept.get("PYTHONPATH", "").split(os.pathsep))]
    return kept | {name: str(scratch / name) for name in FOLDERS} | {"PYTHONPATH": os.pathsep.join(search)}


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _below(pid: int) -> list[psutil.Process]:
    return [process for process in psutil.Process(pid).children(recursive=True) if _runs(process)]
