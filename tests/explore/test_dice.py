"""Random streams that depend on a seed and on names, and on nothing else."""

from __future__ import annotations

import pytest

from codeai_lab.errors import RefusedRequestError
from codeai_lab.explore.dice import stream


def test_a_stream_is_its_seed_and_names() -> None:
    """The same seed and names give the same numbers; any other seed, name or order gives others."""
    same = stream(1, "full", 100).random(4).tolist()
    assert stream(1, "full", "100").random(4).tolist() == same
    others = [stream(2, "full", 100), stream(1, "equal", 100), stream(1, 100, "full"), stream(1, "full")]
    assert all(other.random(4).tolist() != same for other in others)


def test_the_numbers_are_for_ever() -> None:
    """The stream of seed 0 and no names starts with these numbers, on every machine."""
    assert stream(0, "for ever").integers(0, 1_000, 5).tolist() == [409, 27, 472, 444, 207]


@pytest.mark.parametrize("bad", [-1, True, 1.0, "1", None])
def test_a_seed_is_a_whole_number(bad: object) -> None:
    """What is no whole number from 0 is no seed."""
    with pytest.raises(RefusedRequestError, match="seed is a whole number"):
        stream(bad)  # type: ignore[arg-type]
