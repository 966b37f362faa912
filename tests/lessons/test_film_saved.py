"""What an answer, a checkpoint and a transcript can say, and what goes wrong with each kind of state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codeai_lab.decide.checkpoints import LINKS
from codeai_lab.lessons.film_play import Fails
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_saved import SAVED_COLUMNS, saved_rows

ROWS = {row["saved"]: row for row in saved_rows()}


def test_the_rows_have_their_columns() -> None:
    """Three forms, one set of columns."""
    assert [tuple(row) for row in ROWS.values()] == [SAVED_COLUMNS] * 3


def test_an_answer_says_nothing_that_could_be_tested() -> None:
    """No request, no source, no decision: refused by all eight links, and the four calls are made again."""
    row = ROWS["answer"]
    assert (row["loads"], row["lacks"]) == (False, list(LINKS))
    assert (row["which_request"], row["which_source"], row["validated"]) == ("not said",) * 3
    assert (row["verified_kept"], row["repeated_calls"]) == ([], 4)


def test_a_checkpoint_says_all_of_it_and_repeats_nothing() -> None:
    """Request, source and decision are named, and no call is made again."""
    row = ROWS["checkpoint"]
    assert (row["loads"], row["lacks"]) == (True, [])
    assert (row["which_request"], row["which_source"]) == ("named", "named")
    assert (row["verified_kept"], row["repeated_calls"]) == (["ex-machina"], 0)


def test_a_transcript_is_the_longest_and_names_nothing() -> None:
    """What is somewhere in its words is no link: it is longer, and as much is repeated as from nothing."""
    row = ROWS["transcript"]
    assert (row["loads"], row["lacks"]) == (False, list(LINKS))
    assert row["which_source"] == "somewhere in its words"
    assert row["validated"] == "not said"
    assert row["repeated_calls"] == 4
    assert ROWS["answer"]["bytes"] < ROWS["checkpoint"]["bytes"] < row["bytes"]


def test_a_story_without_a_verified_branch_has_nothing_to_compare() -> None:
    """With checkpoint v1 alone there is no answer that was saved."""
    with pytest.raises(ValueError, match="verified branch"):
        saved_rows(replace(STORY, fails=(Fails(tool="get_film", nth=1),)))
