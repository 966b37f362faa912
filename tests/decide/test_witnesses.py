"""Do labels, bounds and disagreements follow from ledger and world alone?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeai_lab.decide.witnesses import Label, Receipt, disagreements, hear, receipt_from_json
from codeai_lab.records import Event

RULE_SETS = ("7a0d43b", "a1b562a", "1b3c7a2", "88d1291", "lab")
BEFORE_STARTS = ("7a0d43b", "a1b562a", "1b3c7a2")

Part = tuple[str, str, str, dict[str, Any]]


def asked(name: str, *, rules: str = "lab", key: str = "k") -> Part:
    return name, key, "action.requested", {"action_id": name, "rules": rules}


def begun(name: str, key: str = "k") -> Part:
    return name, key, "action.execution_started", {}


def done(name: str, status: str, possible: bool, reused: str | None = None, key: str = "k") -> Part:
    told = {"status": status, "effect_possible": possible, "reused_from_action_id": reused}
    return name, key, "action.completed", told


def turned_away(name: str, reason: str, key: str = "k") -> Part:
    return name, key, "action.replay_refused", {"reason": reason}


def called(name: str, key: str = "k") -> Part:
    return name, key, "call.requested", {"call_id": name}


def answered(name: str, original: str | None, key: str = "k") -> Part:
    told = {"status": "succeeded", "replayed": original is not None, "original_call_id": original}
    return name, key, "call.completed", told


def call_denied(name: str, key: str = "k") -> Part:
    return name, key, "call.completed", {"status": "denied", "replayed": False, "original_call_id": None}


def call_turned_away(name: str, key: str = "k") -> Part:
    return name, key, "call.replay_refused", {"reason": "identity-conflict"}


def events(*parts: Part) -> tuple[Event, ...]:
    return tuple(
        Event(
            seq=seq, event_id=f"e{seq}", run_id="r", stream_id=stream, kind=kind, actor_id="t",
            idempotency_key=key, recorded_at_us=seq, causation_id=None, payload=payload,
        )
        for seq, (stream, key, kind, payload) in enumerate(parts, start=1)
    )  # fmt: skip


def receipts(*effects: tuple[str, str]) -> tuple[Receipt, ...]:
    return tuple(
        Receipt(n=n, action_id=action, marker=f"{n:04d}.txt", effect=effect)
        for n, (action, effect) in enumerate(effects, start=1)
    )


SUCCESS = (asked("a"), begun("a"), done("a", "succeeded", True))
FAILURE = (asked("a"), begun("a"), done("a", "failed", True))
AGAIN = (asked("b"), begun("b"))

# history, receipts, the label of the last request
LABELS: dict[str, tuple[tuple[Part, ...], tuple[tuple[str, str], ...], str | None]] = {
    "an ordinary first attempt": (SUCCESS, (("a", "x"),), None),
    "a replay": ((*SUCCESS, asked("b"), done("b", "succeeded", False, "a")), (("a", "x"),), "replay"),
    "a replay of a denial": (
        (asked("a"), done("a", "denied", False), asked("b"), done("b", "denied", False, "a")), (), "replay",
    ),
    "a replay that acted all the same": (
        (*SUCCESS, asked("b"), done("b", "succeeded", False, "a")), (("a", "x"), ("b", "x")), "replay",
    ),
    "a denial": ((asked("a"), done("a", "denied", False)), (), "denied"),
    "a denial of a used key": ((*SUCCESS, asked("b"), done("b", "denied", False)), (("a", "x"),), "denied"),
    "refused: effect unknown": (
        (asked("a"), begun("a"), asked("b"), turned_away("b", "effect-unknown")), (("a", "x"),), "unknown",
    ),
    "refused: in progress": (
        (asked("a"), begun("a"), asked("b"), turned_away("b", "in-progress")), (), "refused",
    ),
    "refused: conflict": (
        (*SUCCESS, asked("b"), turned_away("b", "identity-conflict")), (("a", "x"),), "refused",
    ),
    "a duplicate under one key": (
        (*SUCCESS, *AGAIN, done("b", "succeeded", True)), (("a", "x"), ("b", "x")), "duplicate",
    ),
    "a duplicate by its effect, not by its key": (
        (*SUCCESS, asked("b", key="fresh"), begun("b", "fresh"), done("b", "failed", True, key="fresh")),
        (("a", "x"), ("b", "x")),
        "duplicate",
    ),
    "a duplicate whose outcome is unknown": ((*SUCCESS, *AGAIN), (("a", "x"), ("b", "x")), "duplicate"),
    "one action that acted twice": (SUCCESS, (("a", "x"), ("a", "x")), "duplicate"),
    "another effect under one key": (
        (*FAILURE, *AGAIN, done("b", "succeeded", True)), (("a", "x"), ("b", "y")), "retry",
    ),
    "a retry that left nothing": ((*FAILURE, *AGAIN, done("b", "failed", True)), (("a", "x"),), "retry"),
    "a retry after a denial": (
        (asked("a"), done("a", "denied", False), *AGAIN, done("b", "succeeded", True)),
        (("b", "x"),),
        "retry",
    ),
    "a failure after the start": (FAILURE, (("a", "x"),), "unknown"),
    "a failure before the start": ((asked("a"), done("a", "failed", False)), (), None),
    "an orphan that started": ((asked("a"), begun("a")), (("a", "x"),), "unknown"),
    "an orphan that did not": ((asked("a"),), (), None),
    "an orphan of rules without starts": ((asked("a", rules="1b3c7a2"),), (), "unknown"),
    "a fresh key after a failure, nothing left": (
        (*FAILURE, asked("b", key="fresh"), begun("b", "fresh"), done("b", "failed", True, key="fresh")),
        (("a", "x"),),
        "unknown",
    ),
    "a first call": ((called("c"), answered("c", None)), (), None),
    "a replayed call": ((called("c"), answered("c", None), called("d"), answered("d", "c")), (), "replay"),
    "a call's conflict, recorded": (
        (called("c"), answered("c", None), called("d"), call_turned_away("d")), (), "refused",
    ),
    "a call's conflict, not recorded": ((called("c"), answered("c", None), called("d")), (), "refused"),
    "a denied call": ((called("c"), call_denied("c")), (), "denied"),
    "a call after a denied one, not back yet": ((called("c"), call_denied("c"), called("d")), (), "retry"),
    "a call that never came back": ((called("c"),), (), None),
    "a call again after one that never came back": ((called("c"), called("d")), (), "retry"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "effects", "label"), LABELS.values(), ids=LABELS.keys())
def test_the_labels_by_row(
    parts: Sequence[Part], effects: Sequence[tuple[str, str]], label: str | None
) -> None:
    """The first name that applies, from the surest to the least sure."""
    heard = hear(events(*parts), receipts(*effects), summary=0)
    assert heard.labels[-1] == label


def test_a_duplicate_is_the_later_one() -> None:
    """W3: of two equal effects the one that came second is the duplicate, and nobody else is."""
    heard = hear(
        events(*SUCCESS, *AGAIN, done("b", "succeeded", True), asked("c"), done("c", "denied", False)),
        receipts(("a", "x"), ("b", "x")),
        summary=2,
    )
    assert heard.labels == (None, "duplicate", "denied")
    bystander = (asked("c", key="k3"), begun("c", "k3"), done("c", "succeeded", True, key="k3"))
    heard = hear(
        events(*SUCCESS, *AGAIN, done("b", "succeeded", True), *bystander),
        receipts(("a", "x"), ("b", "x"), ("c", "y")),
        summary=3,
    )
    assert heard.labels == (None, "duplicate", None)


def test_the_labels_are_six() -> None:
    """Six words, spelled as in every row."""
    assert [*Label] == ["retry", "replay", "duplicate", "refused", "denied", "unknown"]


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize(
    ("rest", "bounds"),
    [
        ((begun("a"), done("a", "succeeded", True)), (1, 1)),
        ((begun("a"), done("a", "failed", True)), (0, 1)),
        ((done("a", "failed", False),), (0, 0)),
        ((done("a", "denied", False),), (0, 0)),
        ((done("a", "succeeded", False, "x"),), (0, 0)),
        ((done("a", "failed", False, "x"),), (0, 0)),
        ((turned_away("a", "effect-unknown"),), (0, 0)),
        ((turned_away("a", "identity-conflict"),), (0, 0)),
        ((begun("a"),), (0, 1)),
    ],
)
def test_what_the_record_allows(rules: str, rest: Sequence[Part], bounds: tuple[int, int]) -> None:
    """A FAILED after the start is nought or one; only a success is one; all else is nought."""
    assert hear(events(asked("a", rules=rules), *rest), (), summary=0).effects_ledger == bounds


@pytest.mark.parametrize("rules", RULE_SETS)
def test_an_orphan_allows_what_its_rules_could_not_tell(rules: str) -> None:
    """Without a start on record nothing happened, unless the rules recorded no starts."""
    allowed = hear(events(asked("a", rules=rules)), (), summary=0).effects_ledger
    assert allowed == ((0, 1) if rules in BEFORE_STARTS else (0, 0))


def test_bounds_add_up_and_calls_add_nothing() -> None:
    """A case's bounds are the sums over its requests."""
    heard = hear(
        events(
            *SUCCESS, asked("b", key="k2"), begun("b", "k2"),
            asked("c", key="k3"), done("c", "denied", False, key="k3"),
            called("m", "k4"), answered("m", None, "k4"), asked("d", key="k5"), begun("d", "k5"),
            done("d", "failed", True, key="k5"),
        ),
        receipts(("a", "x"), ("d", "y")),
        summary=2,
    )  # fmt: skip
    assert heard.effects_ledger == (1, 3)
    assert heard.requests == 5
    assert heard.statuses == ("succeeded", None, "denied", "succeeded", "failed")
    assert heard.disagreements == ()


def test_statuses_and_reuse_are_read_in_ledger_order() -> None:
    """One entry a request, in the order in which the requests were recorded, whatever came in between."""
    heard = hear(
        events(
            asked("a"), begun("a"), asked("b"), turned_away("b", "in-progress"), asked("c"),
            turned_away("c", "identity-conflict"), done("a", "succeeded", True), asked("d"),
            done("d", "succeeded", False, "a"), asked("e", key="k2"), begun("e", "k2"),
            asked("f", key="k2"), turned_away("f", "effect-unknown", "k2"),
        ),
        receipts(("a", "x")),
        summary=1,
    )  # fmt: skip
    assert heard.statuses == ("succeeded", "in_progress", None, "succeeded", None, "refused")
    assert heard.reused_from == (None, None, None, "a", None, None)
    assert heard.labels == (None, "refused", "refused", "replay", "unknown", "unknown")


@pytest.mark.parametrize(
    ("ledger", "world", "summary", "said"),
    [
        ((0, 0), 0, 0, ()),
        ((0, 1), 0, 0, ()),
        ((0, 1), 1, 1, ()),
        ((1, 3), 3, 3, ()),
        ((0, 0), 1, 1, ("the ledger allows 0, the world shows 1",)),
        ((0, 1), 2, 2, ("the ledger allows 0 to 1, the world shows 2",)),
        ((1, 1), 0, 0, ("the ledger allows 1, the world shows 0",)),
        ((2, 4), 1, 1, ("the ledger allows 2 to 4, the world shows 1",)),
        ((1, 1), 1, 2, ("the summary says 2, the world shows 1",)),
        ((1, 1), 2, 1, ("the ledger allows 1, the world shows 2", "the summary says 1, the world shows 2")),
    ],
)
def test_a_disagreement_is_said_in_words(
    ledger: tuple[int, int], world: int, summary: int, said: tuple[str, ...]
) -> None:
    """W2: which witness, which number."""
    assert disagreements(ledger, world=world, summary=summary) == said


@given(summary=st.integers(0, 9), row=st.sampled_from([*LABELS.values()]))
def test_the_summary_changes_no_label_and_no_bound(summary: int, row: Any) -> None:
    """W1: the producer's count is only ever compared."""
    parts, effects, _ = row
    one = hear(events(*parts), receipts(*effects), summary=len(effects))
    other = hear(events(*parts), receipts(*effects), summary=summary)
    assert (one.labels, one.effects_ledger, one.effects_world, one.statuses) == (
        other.labels, other.effects_ledger, other.effects_world, other.statuses
    )  # fmt: skip
    assert other.effects_summary == summary
    assert (one.disagreements == other.disagreements) == (summary == len(effects))


def test_nothing_asked_is_an_empty_row() -> None:
    """A case without requests has no labels, and an effect in it is one that the record does not know."""
    heard = hear((), receipts(("ghost", "x")), summary=1)
    assert (heard.requests, heard.labels, heard.effects_ledger) == (0, (), (0, 0))
    assert heard.disagreements == ("the ledger allows 0, the world shows 1",)


def test_a_receipt_is_read_from_its_line() -> None:
    """The world's own words, field by field."""
    line = {"n": 2, "action_id": "a", "marker": "0002.txt", "effect": "ff"}
    assert receipt_from_json(line) == Receipt(n=2, action_id="a", marker="0002.txt", effect="ff")
