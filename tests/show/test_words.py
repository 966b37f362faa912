"""The words of rows."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from codeai_lab.decide.witnesses import Label, Receipt
from codeai_lab.show.words import agreement, answers, count, effects, labels, read, say


def test_reads_mappings_and_objects_alike() -> None:
    """A field is found in a mapping and on an object, and is the default where there is none."""
    receipt = Receipt(n=1, action_id="a1", marker="0001.txt", effect="ab")
    assert read({"n": 1}, "n") == read(receipt, "n") == 1
    assert read({}, "n") is read(receipt, "absent") is None
    assert read(None, "n", 0) == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "-"), (True, "yes"), (False, "no"), (3, "3"), (np.int64(3), "3"), (2.5, "2.5"), (2.0, "2"),
        (math.nan, "-"), (pd.NA, "-"), ("plain", "plain"), ([], "-"), ({}, "-"),
        ([None, "replay"], "-, replay"),
        ({"b": 1, "a": [2]}, "a=2, b=1"), ({"z", "a"}, "a, z"), (Label.REPLAY, "replay"), ("", ""),
    ],
)  # fmt: skip
def test_says_each_kind_of_value(value: object, said: str) -> None:
    """Every kind of value has one form, which depends on the value alone (S1)."""
    assert say(value) == said


def test_shows_control_signs_as_escapes() -> None:
    """A newline, an escape or a sign that turns the writing round reaches neither page nor terminal (S2)."""
    assert say("a\nb\x1b[2J\u202e") == r"a\nb\x1b[2J\u202e"
    assert all(sign.isprintable() for sign in say({"k\t": ["\r"]}))


def test_counts_effects_in_words() -> None:
    """No effect, one and several have their own words; a range names both ends."""
    assert [effects(0), effects(1), effects(2), effects(0, 1), effects(1, 1)] == [
        "no effect", "1 effect", "2 effects", "0 to 1 effects", "1 effect",
    ]  # fmt: skip
    assert (count(1, 1), count(0, 2)) == ("1", "0 to 2")


def test_says_what_each_request_got(make_row) -> None:
    """A replay names its original, an exception its type, and silence is said."""
    row = make_row(
        "X", "lab", ["succeeded", "succeeded", None, None, "in_progress"],
        reused_from=[None, "a1", None, None, None],
        raised=[None, None, "IdempotencyConflictError", None, None],
    )  # fmt: skip
    assert answers(row) == (
        "succeeded", "succeeded (recorded by a1)", "raised IdempotencyConflictError", "no answer",
        "in progress",
    )  # fmt: skip


def test_labels_without_a_word_are_a_dash(make_row) -> None:
    """A request that carries no label is shown, not left out."""
    assert labels(make_row("X", "lab", ["failed", "failed"], labels=[None, "replay"])) == ("-", "replay")


@pytest.mark.parametrize(
    ("ledger", "world", "summary", "said"),
    [
        ([1, 1], 1, 1, "agree"),
        ([0, 1], 1, 1, "agree; the ledger alone leaves it open"),
        ([0, 1], 2, 2, "disagree: the ledger allows 0 to 1, the world shows 2"),
        ([1, 1], 1, 2, "disagree: the summary says 2, the world shows 1"),
        (
            [0, 0],
            1,
            0,
            "disagree: the ledger allows 0, the world shows 1; the summary says 0, the world shows 1",
        ),
        ([1, 1], 1, None, "agree"),
    ],
)
def test_names_the_agreement(ledger: list[int], world: int, summary: int | None, said: str) -> None:
    """Witnesses that cannot all be true are named with their numbers, after the word "disagree" (S3)."""
    row = {"effects_ledger": ledger, "effects_world": world, "effects_summary": summary}
    assert agreement(row) == agreement(SimpleNamespace(**row)) == said
