"""The lesson `libraries` on the command line."""

from __future__ import annotations

import json

from test_commands import run


def test_only_the_libraries_asked_for_are_driven() -> None:
    """--case names libraries, --clients how many loops; the rows are printed as they are, or as a table."""
    asked = ["replay", "libraries", "--case", "Polly", "--case", "gRPC", "--clients", "20"]
    done = run(*asked, "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [(row["library"], row["driven"]) for row in rows] == [("gRPC", False), ("Polly", False)]
    shown = run(*asked)
    assert shown.exit_code == 0
    assert shown.stdout.count("formula") >= 2


def test_a_library_that_is_not_there_is_refused_in_one_sentence() -> None:
    """Whoever misspells a library is told which there are, without a traceback."""
    done = run("replay", "libraries", "--case", "nobody")
    assert done.exit_code != 0
    assert "There is no library called nobody" in done.output
    assert "Traceback" not in done.output
