"""Is everything printed that there is to say, whatever the width?"""

from __future__ import annotations

import json
import re

import pytest
from test_commands import run

from codeai_lab.cli import printing

WIDTHS = (10, 40, 60, 80, 100, 120, 200)
HEAD = ("case", "verdict and why", "n")
ROWS = [("manifest_recorded", "refused because of a manifest_recorded line", 3), ("b", None, 12_345)]
WORDS = {str(word) for row in ROWS for cell in row for word in str(cell or "-").split()}


def on_a_terminal(patched: pytest.MonkeyPatch, width: int) -> None:
    """Let rich take what it writes to for a terminal of so many columns."""
    for name, value in {
        "TTY_COMPATIBLE": "1",
        "NO_COLOR": "1",
        "TERM": "xterm",
        "COLUMNS": str(width),
    }.items():
        patched.setenv(name, value)


def words_in(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_value_is_lost_and_no_word_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    """PR2: every word of every cell is there as it is, in a table that fits or in blocks."""
    on_a_terminal(monkeypatch, width)
    printing.print_table("title", HEAD, ROWS)
    said = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert words_in(said) >= WORDS
    if "\u2500" in said:
        assert max(map(len, said.splitlines())) <= width
    else:
        assert "case: manifest_recorded\nverdict and why: refused because" in said
        assert width < 60


def test_where_a_table_does_not_fit_each_row_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """PR2: on forty columns `layers` still gives every number, by its name."""
    asked = ("replay", "layers", "--case", "four-owners-three-retries", "--seed", "3")
    wide = run(*asked).stdout
    on_a_terminal(monkeypatch, 40)
    narrow = run(*asked).stdout
    assert words_in(narrow) >= {"four-owners-three-retries", "4", "1", "256;", "sampled", "256"}
    assert "\nattempts: 4\nfailure: 1\ncalls: 256; sampled 256\nfailed: 1; sampled 1\n" in narrow
    assert words_in(narrow) >= words_in(wide.splitlines()[-1])


def test_three_witnesses_are_all_there_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """PR2: answers, bounds, world, summary and labels, a line each."""
    on_a_terminal(monkeypatch, 40)
    said = run("replay", "retry-effects", "--case", "D-fresh-key", "--revision", "lab").stdout
    names = ["case", "rules", "answers", "ledger", "world", "summary", "labels"]
    assert [line.partition(":")[0] for line in said.splitlines()[-7:]] == names
    assert said.endswith("ledger: 0 to 2\nworld: 2\nsummary: 2\nlabels: unknown, duplicate\n")


def test_a_pipe_gets_the_table_as_wide_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PR1, PR2: one line a row, the same whatever the terminal is, no colours, no blanks at the ends."""
    said, long = [], " ".join(["z"] * 90)
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        printing.print_table("a title that is longer than all of the table", ("a", "b"), [("x y", long)])
        said.append(capsys.readouterr().out)
    rule = "\u2500" * 187
    assert set(said) == {f"a title that is longer than all of the table\n a     b\n{rule}\n x y   {long}\n"}


def test_the_schedules_of_three_are_whole_numbers() -> None:
    """PR3: what scripts read as a number is one, exact, however large."""
    asked = ("replay", "schedules", "--submissions", "3", "--json", "--case", "lock", "--case", "lab")
    lock, lab = json.loads(run(*asked).stdout)["rows"]
    assert (lock["schedules"], lock["effects"]) == (324, {"1": 324})
    assert (lab["schedules"], lab["effects"]) == (165525666341241006, {"1": 165525666341241006})
