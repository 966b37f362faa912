"""What a figure becomes: page, text and files."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from codeai_lab.errors import RefusedValueError
from codeai_lab.show.shown import Shown, show_figure

ALT = 'A line from 0 to 1, "rising" <steadily>'


def drawn() -> Shown:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], label="$x$")
    return show_figure(
        figure, alt=ALT, caption="One line & no more", numbers=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]
    )


@cache
def shown() -> Shown:
    """Give one drawing to all tests that only look at it."""
    return drawn()


def test_page_holds_picture_sentence_and_numbers() -> None:
    """The picture is an image source with its alternative text escaped, and the numbers stand below (F2)."""
    figure = shown()
    html = figure._repr_html_()
    assert 'alt="A line from 0 to 1, &quot;rising&quot; &lt;steadily&gt;"' in html
    assert "<figcaption>One line &amp; no more</figcaption></figure>" in html
    assert html.index("</figure>") < html.index("<table")
    found = re.search(r'src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"', html)
    assert found is not None
    assert base64.b64decode(found[1]) == figure.svg
    assert "<svg" not in html


def test_text_is_the_sentence_and_the_numbers() -> None:
    """What a rerun compares has no address and holds every number."""
    assert repr(shown()).splitlines() == [
        ALT, "", "The numbers behind the picture", "", "x  y", "-  -", "0  0", "1  1",
    ]  # fmt: skip


def test_picture_has_no_date_and_no_maker() -> None:
    """Nothing in the picture depends on the day or on the version; its title is the alternative text."""
    svg = shown().svg.decode()
    assert "dc:date" not in svg
    assert "dc:creator" not in svg
    assert "<title>A line from 0 to 1" in svg
    assert "<text" not in svg


def test_same_figure_same_bytes() -> None:
    """Drawing twice gives the same picture, byte for byte, as SVG and as PNG (F1)."""
    first, second = shown(), drawn()
    assert first.svg == second.svg
    assert first.png == second.png


def test_users_settings_change_nothing_and_survive() -> None:
    """The user's own matplotlib settings neither reach the picture nor are lost (F1)."""
    plain = shown().svg
    with mpl.rc_context(
        {"svg.hashsalt": "other", "svg.fonttype": "none", "font.size": 30, "savefig.dpi": 10}
    ):
        figure = Figure(figsize=(3, 2))
        assert show_figure(figure, alt="a", caption="c", numbers=[{"x": 1}]).svg
        assert mpl.rcParams["svg.hashsalt"] == "other"
        assert mpl.rcParams["font.size"] == 30
    assert drawn().svg == plain


def test_a_pyplot_figure_is_closed() -> None:
    """A figure that pyplot made is closed, so that a cell does not show it a second time (F3)."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    before = plt.get_fignums()
    figure = plt.figure(figsize=(2, 1))
    show_figure(figure, alt="a", caption="c", numbers=[{"x": 1}])
    assert plt.get_fignums() == before


def test_saves_picture_and_numbers(tmp_path: Path) -> None:
    """The ending chooses the form; the same figure gives the same file."""
    figure = shown()
    assert figure.save(tmp_path / "f.svg").read_bytes() == figure.svg
    assert figure.save(str(tmp_path / "f.png")).read_bytes().startswith(b"\x89PNG")
    assert figure.save(tmp_path / "f.csv").read_bytes() == b"x,y\n0,0\n1,1\n"


def test_another_ending_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """An ending that is not offered is named with what is, and no folder of the machine is shown."""
    with pytest.raises(RefusedValueError) as refused:
        shown().save(tmp_path / "f.pdf")
    assert str(refused.value) == "f.pdf: a figure is saved as .svg, .png or .csv; choose one of these."
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """A folder that is not there is said without its path."""
    with pytest.raises(RefusedValueError) as refused:
        shown().save(tmp_path / "absent" / "f.svg")
    said = "f.svg: it could not be written (no such file or directory); choose another place."
    assert str(refused.value) == said


@pytest.mark.parametrize("there", [False, True])
def test_half_a_file_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """What the system stopped writing is taken away, unless a file stood there before."""
    if there:
        (tmp_path / "f.svg").touch()
    write = Path.write_bytes

    def half(path: Path, content: bytes) -> int:
        write(path, content[:10])
        raise OSError(28, "No space left on device")

    figure = shown()
    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(RefusedValueError, match="no space left on device"):
        figure.save(tmp_path / "f.svg")
    assert (tmp_path / "f.svg").exists() == there


@pytest.mark.parametrize(("alt", "numbers"), [(" ", [{"x": 1}]), ("a", []), ("a", pd.DataFrame({"x": []}))])
def test_alt_and_numbers_cannot_be_left_out(alt: str, numbers: list[dict[str, int]] | pd.DataFrame) -> None:
    """A figure without its sentence or its numbers is refused (F2)."""
    with pytest.raises(RefusedValueError):
        show_figure(Figure(), alt=alt, caption="c", numbers=numbers)


def test_later_changes_of_the_frame_do_not_reach_the_figure() -> None:
    """The numbers are those of the drawing, whatever happens to the caller's frame."""
    frame = pd.DataFrame({"x": [1]})
    figure = show_figure(Figure(), alt="a", caption="c", numbers=frame)
    frame.loc[0, "x"] = 9
    assert figure.numbers["x"].tolist() == [1]
