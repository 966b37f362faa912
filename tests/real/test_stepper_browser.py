"""A person steps in a real JupyterLab, by mouse and by keyboard; the notebook around it stays as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from browser import (
    MISSING,
    Lab,
    cells,
    chromium,
    mode,
    open_in_lab,
    picture,
    run_all,
    running_browser,
    running_lab,
)
from live_kernel import HOME, wait_for
from playwright.sync_api import BrowserContext, Locator, Page, expect

pytestmark = pytest.mark.timeout(300)  # a server, a browser and a kernel, on a machine that others use

HERE = Path(__file__).parent
TITLE = "A trace that fails"
IMPORTS = "from trace_to_step import Trace\nfrom codeai_lab.show.steppers import stepper"
SCRIPT = 'script=[["restart"], ["resume"], ["fallback"]]'
LIVE = f"stepper(Trace(), {SCRIPT})"
IN_HOME = os.environ | {"PYTHONPATH": str(HOME)}
WITH_STEPPERS = sorted(
    path.name
    for path in (HOME / "notebooks").glob("*.ipynb")
    if "stepper(" in path.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        shutil.copy(HERE / "trace_to_step.py", lab.root)
        yield lab


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with running_browser(tmp_path_factory.mktemp("browser")) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, lab: Lab) -> Iterator[Page]:
    page = context.new_page()
    yield page
    page.close()
    lab.end_sessions()


@pytest.fixture
def group(page: Page, lab: Lab) -> Locator:
    """Give the stepper of a notebook that was run in JupyterLab."""
    lab.write("trace.ipynb", IMPORTS, LIVE, "1 + 1")
    open_in_lab(page, lab, "trace.ipynb")
    run_all(page)
    group = page.get_by_role("group", name=TITLE)
    expect(button(group, "Step")).to_be_visible()
    return group


def button(group: Locator, name: str) -> Locator:
    return group.get_by_role("button", name=name, exact=True)


def came_to(group: Locator, mark: str) -> None:
    """Wait until the status says so, and look whether the time line says the same."""
    expect(group.get_by_role("status")).to_have_text(f"Came to: {mark}.")
    expect(group.locator("li[aria-current=step]")).to_contain_text(mark)


def compared(group: Locator) -> list[list[str]]:
    return [row.locator("th, td").all_text_contents() for row in table_of(group).locator("tbody tr").all()]


# --- stepping --------------------------------------------------------------------------------------------


def test_by_click_to_the_failure_and_along_each_policy(group: Locator) -> None:
    """Step comes to the failure, each policy is chosen there, and the finished runs stand side by side."""
    for mark in ("search drama", "look up film", "search memory"):
        button(group, "Step").click()
        came_to(group, mark)
        expect(button(group, "Step")).to_be_focused()
    expect(group.get_by_role("radio")).to_have_count(4)
    expect(button(group, "Step")).to_have_attribute("aria-disabled", "true")
    picture(group.page, "lab-1-at-the-failure")
    for number, (policy, calls) in enumerate((("Restart", 7), ("Resume", 5), ("Fallback", 5)), start=1):
        group.get_by_role("radio", name=policy).check()
        expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
        for _ in range(calls - 3):
            button(group, "Step").click()
            expect(button(group, "Step")).to_be_focused()
        came_to(group, "answer")
        expect(group.locator("tbody tr").filter(has_text=f"{number} {policy.lower()}")).to_be_visible()
        for _ in range(calls - 3):
            button(group, "Back").click()
            expect(button(group, "Back")).to_be_focused()
        came_to(group, "search memory")
    assert compared(group) == [
        ["1 restart", "restart", "7"], ["2 resume", "resume", "5"], ["3 fallback", "fallback", "5"],
    ]  # fmt: skip
    picture(group.page, "lab-2-compared")


def test_by_keyboard_alone(group: Locator, page: Page) -> None:
    """Space, Enter and arrows press, Tab reaches the policies, arrows choose among them, Enter goes on."""
    button(group, "Step").focus()
    for key, mark in (
        ("Space", "search drama"),
        ("Enter", "look up film"),
        ("ArrowLeft", "search drama"),
        ("ArrowRight", "look up film"),
        ("ArrowRight", "search memory"),
    ):
        page.keyboard.press(key)
        came_to(group, mark)
        expect(button(group, "Step")).to_be_focused()
    page.keyboard.press("Tab")
    expect(button(group, "Play")).to_be_focused()
    page.keyboard.press("Tab")
    expect(group.get_by_role("radio", name="Restart")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(group.get_by_role("radio", name="Resume")).to_be_focused()
    expect(group.get_by_role("radio", name="Resume")).to_be_checked()
    expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("Enter")
    came_to(group, "search memory again")
    # The policies are gone, and with them the control that had the focus; the next one to press has it.
    expect(button(group, "Step")).to_be_focused()
    page.keyboard.press("Enter")
    came_to(group, "answer")
    assert compared(group) == [["1 resume", "resume", "5"]]


def test_play_stops_where_a_policy_is_needed_and_at_the_end(group: Locator) -> None:
    """Play goes by itself to the failure and from the choice to the end; Pause holds it in between."""
    button(group, "Play").click()
    came_to(group, "search drama")
    button(group, "Pause").click()
    expect(button(group, "Play")).to_be_focused()
    button(group, "Play").click()
    came_to(group, "search memory")
    expect(button(group, "Play")).to_have_attribute("aria-disabled", "true")
    group.get_by_role("radio", name="Fallback").check()
    button(group, "Play").click()
    came_to(group, "answer")
    expect(button(group, "Play")).to_be_focused()


def test_what_cannot_be_done_is_said_and_keeps_the_focus(group: Locator, page: Page) -> None:
    """A press too much, a missing choice and a step that breaks are each one sentence, without a path."""
    button(group, "Back").focus()
    page.keyboard.press("Enter")
    expect(group.get_by_role("alert")).to_have_text("This is the beginning; there is nothing before it.")
    expect(button(group, "Back")).to_be_focused()
    for mark in ("search drama", "look up film", "search memory"):
        button(group, "Step").click()
        came_to(group, mark)
    expect(group.get_by_role("alert")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(group.get_by_role("alert")).to_contain_text("Choose first")
    group.get_by_role("radio", name="Break").check()
    expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
    button(group, "Step").click()
    expect(group.get_by_role("alert")).to_have_text(
        "The step ended in OSError; everything is as it was before it."
    )
    came_to(group, "search memory")
    assert "some/secret" not in page.content()
    picture(page, "lab-3-a-step-that-breaks")
    group.get_by_role("radio", name="Resume").check()
    expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
    button(group, "Step").click()
    came_to(group, "search memory again")
    expect(group.get_by_role("alert")).to_be_hidden()


def test_the_notebooks_own_keys_do_nothing_from_inside(group: Locator, page: Page) -> None:
    """Wherever the focus is in the stepper, keys that insert, delete, cut, merge or enter a cell do not."""
    before = cells(page)
    places = [".cls-line", "button >> nth=0", "button >> nth=1", "button >> nth=2", "input >> nth=0",
              "input >> nth=2", ".cls-table >> nth=0"]  # fmt: skip
    for place in (None, *places):
        for keys in (("b", "a", "d", "d", "x", "m", "Shift+M", "z", "Shift+Enter"), ("Enter",), ("Space",)):
            _go_to_the_failure(group)
            inside = group if place is None else group.locator(place)
            # What takes no focus by itself is given one, as a click into a scrolling area does.
            inside.evaluate("node => { if (node.tabIndex < 0) node.tabIndex = -1; node.focus() }")
            expect(inside).to_be_focused()
            for key in keys:
                page.keyboard.press(key)
            settled(group)
            assert (mode(page), cells(page)) == ("command", before), f"{keys} in {place}"
    # A click on what cannot be pressed stays inside as well.
    group.locator(".cls-title").click()
    for key in ("b", "d", "d"):
        page.keyboard.press(key)
    assert cells(page) == before
    # And the keys do work outside: this test would see it if they did inside.
    page.locator(".jp-InputPrompt").last.click()
    page.keyboard.press("b")
    wait_for(lambda: len(cells(page)) == len(before) + 1, "a new cell")


def _go_to_the_failure(group: Locator) -> None:
    """Step or go back until the policies are offered."""
    if button(group, "Pause").is_visible():
        button(group, "Pause").click()
    settled(group)
    for _ in range(10):
        at = group.locator("li").evaluate_all("marks => marks.findIndex((mark) => mark.ariaCurrent)")
        if at == 3:
            break
        step(group, "Step" if at < 3 else "Back")
    expect(group.get_by_role("radio")).to_have_count(4)


def test_a_widget_that_is_opened_again_shows_the_whole_line(group: Locator, page: Page) -> None:
    """A page that is loaded anew while the kernel lives shows every mark and stands where it stood."""
    for mark in ("search drama", "look up film", "search memory"):
        button(group, "Step").click()
        came_to(group, mark)
    button(group, "Back").click()
    came_to(group, "look up film")
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.reload()
    came_to(group, "look up film")
    expect(group.locator("ol li")).to_have_count(4)
    button(group, "Step").click()
    came_to(group, "search memory")


def test_without_a_kernel_a_press_is_not_lost_in_silence(group: Locator, lab: Lab) -> None:
    """When nobody answers, the stepper says so, and what to do."""
    lab.end_sessions()
    button(group, "Step").click()
    expect(group.get_by_role("alert")).to_contain_text("The kernel has not answered yet.")
    expect(button(group, "Step")).to_be_focused()


def test_the_plain_view_steps_too(page: Page, lab: Lab) -> None:
    """The built-in controls come to the failure, choose, and compare."""
    lab.write("plain.ipynb", IMPORTS, 'stepper(Trace(), view="plain")')
    open_in_lab(page, lab, "plain.ipynb")
    run_all(page)
    shown = page.locator(".jp-OutputArea-output").filter(has_text=TITLE)
    button(shown, "Play").click()
    expect(shown).to_contain_text("Came to: search memory.")
    button(shown, "Step").click()
    expect(shown).to_contain_text("Choose first")
    shown.get_by_role("radio", name="Resume").check()
    button(shown, "Play").click()
    expect(shown).to_contain_text("Finished runs, side by side")
    expect(shown).to_contain_text("1 resume")
    picture(page, "lab-4-plain-view")


def test_in_notebook_7(page: Page, lab: Lab) -> None:
    """The same stepper works in Jupyter Notebook."""
    lab.write("classic.ipynb", IMPORTS, LIVE)
    page.goto(f"{lab.base}/notebooks/classic.ipynb?token={lab.token}")
    expect(page.locator(".jp-NotebookKernelStatus, .jp-Notebook-ExecutionIndicator").first).to_be_visible()
    wait_for(lambda: _is_idle(lab), "an idle kernel")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    group = page.get_by_role("group", name=TITLE)
    for mark in ("search drama", "look up film", "search memory"):
        button(group, "Step").click()
        came_to(group, mark)
    group.get_by_role("radio", name="Resume").check()
    button(group, "Play").click()
    came_to(group, "answer")
    assert compared(group) == [["1 resume", "resume", "5"]]
    picture(page, "notebook-7")


# --- without a kernel ------------------------------------------------------------------------------------


def test_reopened_untrusted_without_a_kernel(page: Page, lab: Lab) -> None:
    """What sync stores shows every branch and the comparison, where nothing runs and nothing is trusted."""
    path = lab.write("stored.ipynb", IMPORTS, LIVE)
    # In a process of its own: in this one the browser's event loop is under way.
    subprocess.run(
        [sys.executable, "-m", "codeai_lab", "sync", path.name], cwd=lab.root, env=IN_HOME, check=True
    )
    _forget_the_kernel(path)
    _open_without_a_kernel(page, lab, path.name)
    assert page.evaluate("window.jupyterapp.shell.currentWidget.content.model.cells.get(2).trusted") is False
    shown = page.locator(".jp-OutputArea-output").filter(has_text=TITLE)
    _reads_as_played(shown)
    picture(page, "lab-5-without-a-kernel")


def test_reopened_as_jupyterlab_itself_saved_it(group: Locator, page: Page, lab: Lab) -> None:
    """A notebook saved with its widgets by JupyterLab falls back to the same page without a kernel."""
    button(group, "Step").click()
    came_to(group, "search drama")
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.goto("about:blank")
    path = lab.root / "trace.ipynb"
    assert "widget-view" in path.read_text(encoding="utf-8")
    lab.end_sessions()
    _forget_the_kernel(path)
    _open_without_a_kernel(page, lab, path.name)
    _reads_as_played(page.locator(".jp-OutputArea-output").filter(has_text=TITLE))
    picture(page, "lab-6-saved-by-lab-without-a-kernel")


def _reads_as_played(shown: Locator) -> None:
    expect(shown.get_by_role("table")).to_contain_text("3 fallback")
    expect(shown.locator("ol li")).to_have_count(12)
    expect(shown).to_contain_text("search memory (failure): Came to: search memory.")
    expect(shown).to_contain_text("To choose from: Restart, Resume, Fallback")


def _forget_the_kernel(path: Path) -> None:
    nb = nbformat.read(path, 4)
    # A language that no kernel here speaks: for another name JupyterLab would take one that speaks it.
    nb.metadata["kernelspec"] = {"name": "none-such", "display_name": "None such", "language": "none-such"}
    nb.metadata["language_info"] = {"name": "none-such"}
    nbformat.write(nb, path)


def _open_without_a_kernel(page: Page, lab: Lab, name: str) -> None:
    page.goto(f"{lab.base}/lab/workspaces/auto-t/tree/{name}?reset&token={lab.token}")
    dialog = page.locator(".jp-Dialog").filter(has_text="Select Kernel")
    dialog.get_by_role("button", name="No Kernel").click()
    expect(dialog).to_be_hidden()
    assert lab.ask("GET", "sessions") == []


def _is_idle(lab: Lab) -> bool:
    sessions = lab.ask("GET", "sessions")
    return bool(sessions) and sessions[0]["kernel"]["execution_state"] == "idle"


# --- the notebooks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_STEPPERS)
def test_the_steppers_of_the_notebooks(name: str, page: Page, lab: Lab) -> None:
    """A notebook is run as it is; each stepper comes to its end along every policy that it stops for."""
    shutil.copy(HOME / "notebooks" / name, lab.root)
    open_in_lab(page, lab, name)
    run_all(page)
    groups = page.locator(".codeai-lab-stepper")
    expect(groups).to_have_count((lab.root / name).read_text(encoding="utf-8").count("stepper("))
    for number, group in enumerate(groups.all()):
        _along_each_way(group, f"{name.partition('-')[0]}-stepper-{number + 1}")


def test_the_film_comparison_along_each_policy(page: Page, lab: Lab) -> None:
    """Restart repeats four calls, resume and fallback none; only fallback changes the source of an answer."""
    lab.write(
        "film.ipynb",
        "from codeai_lab.lessons.film_steps import FilmSteps\nfrom codeai_lab.show.steppers import stepper",
        "stepper(FilmSteps())",
    )
    open_in_lab(page, lab, "film.ipynb")
    run_all(page)
    group = page.locator(".codeai-lab-stepper")
    expect(group).to_be_visible()
    _along_each_way(group, "film")
    head = table_of(group).locator("thead th").all_text_contents()
    rows = [dict(zip(head, row, strict=True)) for row in compared(group)]
    assert [(row["policy"], row["repeated calls"], row["additional calls"]) for row in rows] == [
        ("restart", "4", "5"),
        ("resume", "0", "1"),
        ("fallback", "0", "1"),
    ]
    assert [row["provenance changed"] for row in rows] == ["no", "no", "yes"]
    assert len({row["recommendation"] for row in rows}) == 1


def _along_each_way(group: Locator, name: str) -> None:
    """Step to the first choice and, where that is not at the beginning, along each of its ways to the end."""
    while not offered(group):
        step(group)
    ways = offered(group) if group.locator("li").count() > 1 else offered(group)[:1]
    for finished, way in enumerate(ways, start=1):
        group.get_by_role("radio", name=way).check()
        expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
        step(group)
        _step_to_the_end(group)
        expect(table_of(group).locator("tbody tr")).to_have_count(finished)
        picture(group.page, f"{name}-{finished}")
        while offered(group) != ways and finished < len(ways):
            step(group, "Back")


def settled(group: Locator) -> None:
    """Wait until everything that was pressed has been answered."""
    expect(group).not_to_have_attribute("aria-busy", "true")


def offered(group: Locator) -> list[str]:
    return group.locator("label span:first-of-type").all_text_contents()


def table_of(group: Locator) -> Locator:
    return group.get_by_role("table", name="Finished runs, side by side")


def step(group: Locator, way: str = "Step") -> None:
    """Press Step or Back by keyboard, and wait until the line has moved by one; the focus stays."""
    marks = group.locator("li")
    at: int = marks.evaluate_all("marks => marks.findIndex((mark) => mark.ariaCurrent)")
    button(group, way).press("Enter")
    expect(marks.nth(at + (1 if way == "Step" else -1))).to_have_attribute("aria-current", "step")
    expect(button(group, way)).to_be_focused()


def _step_to_the_end(group: Locator) -> None:
    """Step on, taking the first way where one must be chosen, until the run is over."""
    for _ in range(80):
        if button(group, "Step").get_attribute("aria-disabled") == "true":
            if not offered(group):
                return
            group.get_by_role("radio").first.check()
            expect(button(group, "Step")).to_have_attribute("aria-disabled", "false")
        step(group)
    raise AssertionError("the stepper did not come to an end")


# --- what is left behind ---------------------------------------------------------------------------------


KILLED = """
import json, sys, time
from pathlib import Path
import psutil
sys.path.insert(0, sys.argv[1])
from browser import running_browser, running_lab
scratch = Path(sys.argv[2])
with running_lab(scratch / "lab") as lab, running_browser(scratch) as context:
    lab.ask("POST", "kernels")
    context.new_page().goto(f"{lab.base}/lab?token={lab.token}")
    print(json.dumps([one.pid for one in psutil.Process().children(recursive=True)]), flush=True)
    time.sleep(600)
"""


def test_a_test_run_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    """Server, kernel, browser and keeper end by themselves when the tests are killed outright."""
    command = [sys.executable, "-c", KILLED, str(HERE), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        started = [psutil.Process(pid) for pid in json.loads(tests.stdout.readline())]
        names = " ".join(" ".join(one.cmdline()) for one in started)
        tests.send_signal(signal.SIGKILL)
        assert all(part in names for part in ("jupyterlab", "ipykernel", "keeper.py", "--headless"))
    wait_for(lambda: not any(map(_runs, started)), "the end of everything that was started")


def test_without_a_browser_the_tests_fail_and_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing Chromium is no reason to pass: it is a failure of one sentence."""
    monkeypatch.setenv("PATH", str(HERE))
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium") as failure:
        chromium()
    assert str(failure.value) == MISSING


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
