"""`codeai-lab plot`: the question of `replay`, drawn into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest
from test_commands import run

from codeai_lab.cli.plotting import ENDINGS, FIGURES
from codeai_lab.lessons import ROWS_OF_THEIR_OWN

SMALL = {
    ("backoff", "means"): ("--clients", "40", "--case", "full"),
    ("backoff", "distributions"): ("--clients", "40", "--case", "full"),
    ("contention", "calls-and-time"): ("--clients", "3", "5", "--runs", "2", "--case", "full"),
    ("contention", "ranking"): ("--clients", "3", "5", "--runs", "2"),
    ("overload", "rescues"): None,  # None: takes seconds; rows and picture have tests of their own
    ("overload", "trace"): ("--case", "120-one-retry"),
    ("overload", "phase"): (),
    ("overload", "layers"): ("--seed", "3"),
    ("overload", "throttling"): ("--seed", "3"),
    ("overload", "hedging"): ("--seed", "3"),
    ("duplicates", "attempts"): None,
    ("duplicates", "protections"): None,
    ("libraries", "busiest-second"): None,
    ("schedules", "mosaic"): ("--revision", "claim-busy"),
    ("crash-points", "strips"): ("--case", "unguarded"),
}


def test_every_figure_is_of_a_lesson_and_is_listed_here() -> None:
    """What is offered is what is tested."""
    assert set(FIGURES) <= set(ROWS_OF_THEIR_OWN)
    assert [(lesson, name) for lesson, figures in FIGURES.items() for name in figures] == list(SMALL)


@pytest.fixture
def one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw one SVG and no further picture: for a test that asks for the numbers twice."""
    save, saved = matplotlib.figure.Figure.savefig, []

    def save_one(figure: matplotlib.figure.Figure, to: Any, *, format: str, **given: Any) -> None:
        if format == "svg" and not saved:
            saved.append(to)
            save(figure, to, format=format, **given)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", save_one)


@pytest.mark.usefixtures("one_picture")
@pytest.mark.parametrize(("lesson", "figure"), [key for key, options in SMALL.items() if options is not None])
def test_a_figures_numbers_are_written_twice_alike(tmp_path: Path, lesson: str, figure: str) -> None:
    """The same question gives the same bytes (PT3)."""
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    options = SMALL[lesson, figure]
    for file in files:
        said = run("plot", lesson, "--figure", figure, "--to", file, *(options or ()))
        assert said.exit_code == 0, said.stderr
        assert said.stdout.startswith(f"{file.name} has the numbers of {lesson}: {figure}.\n")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_text(encoding="utf-8").count("\n") > 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_chooses_picture_or_numbers(tmp_path: Path, ending: str) -> None:
    """A single figure needs no name, and what is seen is said."""
    file = tmp_path / f"strips{ending}"
    said = run("plot", "crash-points", "--case", "atomic", "--to", file)
    assert said.exit_code == 0
    assert "atomic: safe everywhere" in said.stdout
    begins = {".svg": b"<?xml", ".png": b"\x89PNG", ".csv": b"rule_set,"}[ending]
    assert file.read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("backoff", "--to", "x.svg"), "several figures; name one with --figure: means, distributions."),
        (
            ("backoff", "--to", "x.svg", "--figure", "pie"),
            "no figure called pie; it has means, distributions.",
        ),
        (("watchlist", "--to", "x.svg"), "There is no figure of watchlist; there are some of backoff,"),
        (("crash-points", "--to", "x.gif"), "A figure ends in .svg, .png or .csv; x.gif does not."),
        (("crash-points", "--to", "x"), "A figure ends in .svg, .png or .csv; x does not."),
        (("crash-points", "--to", "none/x.svg"), "There is no folder for x.svg; make it first."),
        (("crash-points", "--to", "there.svg"), "there.svg is there already, and is not written over"),
        (("overload", "--to", "x.svg", "--figure", "phase", "--seed", "1"), "takes no --seed"),
        (("crash-points", "--to", "x.svg", "--trials", "1"), "crash-points takes no --trials"),
        (("backoff", "--to", "x.svg", "--figure", "distributions", "--clients", "3", "4"), "one number of"),
        (("crash-points", "7", "--to", "x.svg"), "Numbers stand after --clients only"),
        (("overload", "--to", "x.svg", "--figure", "trace", "--case", "x"), "There is no case called x"),
        (("schedules", "--to", "x.svg", "--revision", "lab"), "lab has 1,045,716 schedules"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    """Status 2, the reason, no traceback, and the folder as it was (PT1, PT2)."""
    monkeypatch.chdir(tmp_path)
    Path("there.svg").write_text("mine", encoding="utf-8")
    said = run("plot", *arguments)
    assert said.exit_code == 2
    assert says in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there.svg"]
    assert Path("there.svg").read_text(encoding="utf-8") == "mine"
