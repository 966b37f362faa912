"""All schedules of two submissions, played."""

from __future__ import annotations

from collections import Counter

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.lessons.schedule_squares import square_rows


def test_seventy_schedules_sixty_bad_and_the_probes_all_among_them() -> None:
    """Without a claim 10 have one effect and 60 two; 36 look before they act, each with two (SQ1)."""
    told = []
    rows = square_rows(progress=lambda name, done, of: told.append((name, done, of)))
    assert Counter(row["effects"] for row in rows) == {1: 10, 2: 60}
    assert Counter(row["effects"] for row in rows if row["marked"]) == {2: 36}
    assert len({tuple(row["schedule"]) for row in rows}) == 70
    assert told[-1] == ("unguarded", 69, 70)


def test_too_many_to_draw_are_refused_before_they_are_played() -> None:
    """One sentence names how many there are (SQ2)."""
    with pytest.raises(RefusedRequestError, match=r"lab has 1,045,716 schedules; up to 400"):
        square_rows(revision="lab")
