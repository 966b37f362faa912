"""Is every corruption of every pinned bundle named, whatever lesson and rules it is of?

Those of `lab` are in `tests/test_evidence.py`; the others take seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeai_lab.errors import CorruptionDoesNotApplyError
from codeai_lab.prove import corrupt
from codeai_lab.prove.bundle import read_index
from codeai_lab.prove.verify import verify

EVIDENCE = Path(__file__).parents[2] / "evidence"
PINNED = read_index(EVIDENCE / "index.json")


@pytest.mark.parametrize(
    "name", sorted(name for name in PINNED if not (name.startswith("retry-") and name.endswith("-lab")))
)
def test_every_corruption_of_a_pinned_bundle_is_named(name: str, tmp_path: Path) -> None:
    """Inside kinds by their own code, and no two alike; outside kinds by the outside digest alone."""
    seen: dict[frozenset[str], str] = {}
    applied = 0
    for kind in corrupt.KINDS:
        damaged = tmp_path / kind.name
        try:
            corrupt.corrupt(EVIDENCE / name, kind.name, damaged)
        except CorruptionDoesNotApplyError:
            continue
        applied += 1
        alone, expected = verify(damaged), verify(damaged, PINNED[name])
        assert not expected.valid
        assert alone.valid == kind.outside, kind.name
        if not kind.outside:
            codes = frozenset(finding.code for finding in alone.findings)
            assert kind.code in codes, kind.name
            assert codes not in seen, f"{kind.name} and {seen.get(codes)} are found alike"
            seen[codes] = kind.name
    assert applied > 20
