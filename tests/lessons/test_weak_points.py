"""Does each of the eight weak points show what became of it?"""

from __future__ import annotations

import pytest

from codeai_lab.lessons.weak_points import WeakPoint, weak_points


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> tuple[WeakPoint, ...]:
    return weak_points(tmp_path_factory.mktemp("points"))


def test_there_are_eight_in_the_chapters_order(points: tuple[WeakPoint, ...]) -> None:
    """Each says what became of it, and none is called gone where file and ledger stay two steps."""
    assert [point.name[:2] for point in points] == [f"{number}." for number in range(1, 9)]
    assert [point.became for point in points] == [
        "repaired", "narrowed", "repaired", "repaired", "made visible", "repaired", "repaired", "narrowed",
    ]  # fmt: skip


def test_each_stands_beside_what_it_was(points: tuple[WeakPoint, ...]) -> None:
    """The first row is the chapter's rules, the second `lab`."""
    assert all([row["revision"] for row in point.run] == ["1b3c7a2", "lab"] for point in points)


@pytest.mark.parametrize(
    ("number", "was", "now"),
    [
        (1, (2, [None, "duplicate"]), (1, [None, "replay"])),
        (2, (2, ["unknown", "duplicate"]), (1, ["unknown", "unknown"])),
        (3, (1, ["unknown", "replay"]), (1, [None, "replay"])),
        (6, (1, [None]), (0, [None])),
        (7, (0, ["denied", "replay"]), (1, ["denied", "retry"])),
        (8, (2, ["unknown", "duplicate"]), (1, ["unknown", "unknown"])),
    ],
)
def test_the_numbers_are_the_evidence(
    points: tuple[WeakPoint, ...], number: int, was: tuple[int, list[str]], now: tuple[int, list[str]]
) -> None:
    """Effects in the world and labels, before and after."""
    rows = points[number - 1].run

    assert [(row["effects_world"], row["labels"]) for row in rows] == [was, now]


def test_a_refused_call_leaves_a_record_only_now(points: tuple[WeakPoint, ...]) -> None:
    """Point 4 is told by the kinds of events."""
    old, lab = points[3].run

    assert old["event_kinds"][-1] == "call.requested"
    assert lab["event_kinds"][-1] == "call.replay_refused"
