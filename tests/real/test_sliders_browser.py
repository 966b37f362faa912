"""A person moves a slider in a real JupyterLab, with the keyboard; the text follows, then the full run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Lab, cells, open_in_lab, picture, run_all, running_browser, running_lab
from playwright.sync_api import BrowserContext, Page, expect

pytestmark = pytest.mark.timeout(300)  # a server, a browser and a kernel, on a machine that others use

IMPORTS = """
from codeai_lab.lessons.what_if import QUESTIONS
from codeai_lab.show import with_sliders
from codeai_lab.show.duplicate_figures import attempts_drawn
"""
LIVE = """
question = QUESTIONS["duplicates"]
with_sliders(
    question.values, preview=question.preview, full=question.full, numbers=question.numbers,
    draw=attempts_drawn, title="Duplicates against attempts.",
)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
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


def test_arrow_keys_move_a_slider_and_the_full_run_follows_by_itself(page: Page, lab: Lab) -> None:
    """The status says what each number became, the picture changes, and the notebook around it does not."""
    lab.write("sliders.ipynb", IMPORTS.strip(), LIVE.strip())
    open_in_lab(page, lab, "sliders.ipynb")
    run_all(page)
    status = page.locator("p[role=status]")
    expect(status).to_contain_text("full run: expected effects")
    before, shown = cells(page), page.locator(".jp-OutputArea img[alt^='Duplicates']")
    first = shown.get_attribute("src")

    loss = page.get_by_role("slider").first
    loss.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")

    expect(status).to_contain_text("full run: loss 0.3 to 0.5.")
    expect(status).to_contain_text("probability of a duplicate 0.296 to 0.504")
    assert shown.get_attribute("src") != first
    assert cells(page) == before
    picture(page, "sliders")


def test_a_value_can_be_typed_and_the_button_reached(page: Page, lab: Lab) -> None:
    """The number beside a slider takes what is typed, and the button runs it at once."""
    lab.write("typed.ipynb", IMPORTS.strip(), LIVE.strip())
    open_in_lab(page, lab, "typed.ipynb")
    run_all(page)
    status = page.locator("p[role=status]")
    expect(status).to_contain_text("full run: expected effects")

    number = page.locator(".widget-readout").nth(2)
    number.click()
    number.fill("8")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Full run").press("Enter")

    expect(status).to_contain_text("full run: attempts 4 to 8.")
