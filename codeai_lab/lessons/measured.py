"""What is one measured case: its row, and the samples that the row follows from?

Chapter: 000, section 15.7.

Idea: a simulation's row is a summary. It travels with the samples that it summarises, so that a bundle can
hold both and a verifier can work the summary out again.

Always true:
  ME1. A field of the row that is named after a sample gives its mean, as `{closed_form, sampled, se}`; one
       named `<sample>_mean` or `<sample>_sd` gives that statistic. What one value cannot tell is None.

Not here: the statistics (`decide.samples`), writing a bundle (`lessons.freezing_samples`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from codeai_lab.decide.samples import Sample

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A case that was measured.

    Args:
        case: its name, one of a kind within the lesson.
        row: parameters and statistics, plain JSON.
        samples: what was measured, by the name of the quantity.
    """

    case: str
    row: Mapping[str, Any]
    samples: Mapping[str, Sample]


def are_numbers(value: object, count: int | None = None) -> bool:
    """Say whether a kept value is a list of finite numbers, at least one, and of so many where it is said."""
    return (
        isinstance(value, list)
        and (len(value) > 0 if count is None else len(value) == count)
        and all(type(one) in (int, float) and math.isfinite(one) for one in value)
    )


def rows_of(measured: Iterable[Measured]) -> list[dict[str, Any]]:
    """Give the rows alone."""
    return [dict(one.row) for one in measured]
