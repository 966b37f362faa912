"""Does the verifier know what reconciling records, and what a verdict leaves of an effect?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codeai_lab.decide.authority import NO_AUTHORITY, Authority
from codeai_lab.lessons.cases import Ask, Case, Expected, Lesson
from codeai_lab.lessons.freezing import freeze_lesson
from codeai_lab.lessons.playing import Table
from codeai_lab.prove.copies import Copy, Event
from codeai_lab.prove.verify import verify
from codeai_lab.run.effects import WorldLookup, raising
from codeai_lab.run.reconciling import RECONCILE
from codeai_lab.run.revisions import REVISIONS

JUDGE = Authority.of(RECONCILE)
DIED = "KeyboardInterrupt"


class CannotTell:
    """An effect system that knows nothing."""

    def find(self, request: Mapping[str, Any]) -> None:
        del request

    def resolve(self, reference: Mapping[str, Any]) -> bool:
        del reference
        return False


def confirm(table: Table, case: Case) -> None:
    """The effect happened and nobody was told; the verdict answers the key."""
    first, again = case.asks
    table.ask(first)
    judge(table, first, NO_AUTHORITY)
    judge(table, first)
    judge(table, first)  # there is nothing left to reconcile
    table.ask(again)
    judge(table, again)


def find_absent(table: Table, case: Case) -> None:
    """The walk died before its effect; the verdict lets the key be tried afresh."""
    first, again = case.asks
    with table.hearing(first):
        table.walk(first, before=raising(KeyboardInterrupt())).run()
    judge(table, first)
    table.ask(again)


def cannot_tell(table: Table, case: Case) -> None:
    """Nobody knows; the key stays as it was, and may be asked about again."""
    first, again = case.asks
    table.ask(first)
    for _ in range(2):
        table.runtime.reconcile_action(first.id, authority=JUDGE, effect_lookup=CannotTell())
    table.ask(again)


def come_late(table: Table, case: Case) -> None:
    """A walk is taken for dead, judged as without effect, and goes on: a contradiction."""
    [late] = case.asks
    walk = table.walk(late)
    while walk.next_stage != "perform(Exception)":
        walk.step()
    table.ledger.live_actions.clear()
    judge(table, late)
    with table.hearing(late):
        walk.run()


def judge(table: Table, ask: Ask, authority: Authority = JUDGE) -> None:
    table.runtime.reconcile_action(ask.id, authority=authority, effect_lookup=WorldLookup(table.world))


def two(name: str, **first: Any) -> tuple[Ask, Ask]:
    return Ask(id=f"{name}1", key=f"k{name}", **first), Ask(id=f"{name}2", key=f"k{name}")


VERDICTS = Lesson(
    name="verdicts",
    chapter="004",
    question="What does a verdict leave?",
    cases=(
        Case(
            name="confirmed", question="It happened.",
            asks=two("c", raises=KeyboardInterrupt), script=confirm,
            otherwise=Expected(
                statuses=(None, "reconciled"), reused_from=(None, "c1"), raised=(DIED, None), effects_world=1
            ),
        ),
        Case(
            name="absent", question="It did not.", asks=two("a"), script=find_absent,
            otherwise=Expected(statuses=(None, "succeeded"), raised=(DIED, None), effects_world=1),
        ),
        Case(
            name="unknown", question="Nobody knows.", asks=two("u", raises=KeyboardInterrupt),
            script=cannot_tell,
            otherwise=Expected(statuses=(None, "refused"), raised=(DIED, None), effects_world=1),
        ),
        Case(
            name="failed", question="It failed after the effect.", asks=two("f", raises=RuntimeError),
            script=confirm,
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "f1"), effects_world=1),
        ),
        Case(
            name="late", question="It was not dead.",
            asks=(Ask(id="l1", key="kl"),), script=come_late,
            otherwise=Expected(statuses=(None,), effects_world=1),
        ),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("verdicts") / "verdicts"
    freeze_lesson(VERDICTS, REVISIONS["lab"], to)
    return to


@pytest.fixture
def copy(frozen: Path, tmp_path: Path) -> Copy:
    shutil.copytree(frozen, tmp_path / "copy")
    return Copy(tmp_path / "copy")


def codes(folder: Path) -> set[str]:
    return {finding.code for finding in verify(folder).findings}


def test_what_reconciling_leaves_is_accepted(frozen: Path) -> None:
    """Verdicts, refusals to judge, a replayed verdict, a fresh attempt and a late completion fit together."""
    report = verify(frozen)
    kinds = {event["kind"] for event in Copy(frozen).events()}

    assert report.findings == ()
    assert kinds >= {"action.reconciled", "action.reconcile_refused", "action.completed_late"}


def rewrite(copy: Copy, change: Callable[[list[Event]], Any]) -> set[str]:
    events = copy.events()
    change(events)
    copy.write_events(events)
    copy.seal()
    return codes(copy.folder)


def pick(events: list[Event], stream: str, kind: str) -> Event:
    return next(one for one in events if (one["stream_id"], one["kind"]) == (stream, f"action.{kind}"))


@pytest.mark.parametrize(
    ("stream", "kind", "changes", "code"),
    [
        ("c1", "reconciled", {"verdict": "imagined"}, "verdict-unfounded"),
        ("c1", "reconciled", {"evidence": []}, "verdict-unfounded"),
        ("c1", "reconciled", {"verdict": "no_effect_confirmed", "evidence": []}, "effects-outside-bounds"),
        ("c1", "reconciled", {"verdict": "still_unknown"}, "reuse-unresolved"),
        ("c1", "reconciled", {"evidence": [{"effect": "0", "marker": "0001.txt", "receipt": 1}]},
         "evidence-unresolved"),
        ("c1", "reconciled", {"evidence": "none"}, "event-shape"),
        ("c1", "reconcile_refused", {"reason": "tired"}, "verdict-unfounded"),
        ("c1", "reconcile_refused", {"reason": "nothing-to-reconcile"}, "verdict-unfounded"),
        ("a1", "reconciled", {"verdict": "still_unknown"}, "second-start"),
        ("a1", "reconciled", {"evidence": [{}]}, "verdict-unfounded"),
        ("a1", "reconciled", {"verdict": "effect_confirmed", "evidence": [{}]}, "effects-outside-bounds"),
        ("c2", "completed", {"status": "succeeded"}, "replay-differs"),
        ("c2", "completed", {"reused_from_action_id": None}, "completion-impossible"),
        ("l1", "completed_late", {"effect_possible": False}, "completion-impossible"),
        ("l1", "completed_late", {"status": "denied"}, "completion-impossible"),
        ("l1", "completed_late", {"status": "late"}, "event-shape"),
        ("l1", "completed_late", {"reused_from_action_id": "c1"}, "completion-impossible"),
        ("l1", "reconciled", {"verdict": "effect_confirmed", "evidence": []}, "verdict-unfounded"),
    ],
)  # fmt: skip
def test_a_false_verdict_is_named(
    copy: Copy, stream: str, kind: str, changes: dict[str, Any], code: str
) -> None:
    """A verdict is about an effect that is open, rests on what the world shows, and binds the key."""
    assert code in rewrite(copy, lambda events: pick(events, stream, kind)["payload"].update(changes))


def test_a_late_completion_comes_after_a_verdict(copy: Copy) -> None:
    """Without one it would have been the completion itself."""
    assert "out-of-order" in rewrite(copy, lambda events: events.remove(pick(events, "l1", "reconciled")))


def test_what_is_settled_is_not_judged_again(copy: Copy) -> None:
    """A second verdict on a confirmed effect has nothing to speak for it."""

    def again(events: list[Event]) -> None:
        verdict = pick(events, "c1", "reconciled")
        events.insert(events.index(verdict) + 1, verdict | {"event_id": "again"})

    assert "verdict-unfounded" in rewrite(copy, again)


def test_a_fresh_attempt_needs_a_verdict_of_absence(copy: Copy) -> None:
    """A key starts once more only when its effect was found absent."""
    found = rewrite(copy, lambda events: events.remove(pick(events, "a1", "reconciled")))

    assert {"second-start", "not-replayed"} <= found


def test_values_of_any_type_end_in_a_verdict(copy: Copy) -> None:
    """V2 for verdicts: whatever stands in a field, and in an evidence, the answer is findings."""
    strange: list[Any] = [None, True, -1, 0.5, "", "x", [], [[]], {}, {"a": [1]}]
    events = copy.events()
    verdict = pick(events, "c1", "reconciled")
    [reference] = verdict["payload"]["evidence"]
    for holder in (verdict["payload"], reference, pick(events, "l1", "completed_late")["payload"]):
        for name, value in list(holder.items()):
            for other in strange:
                holder[name] = other
                copy.write_events(events)
                copy.seal()
                verify(copy.folder)
            holder[name] = value
    copy.write_events(events)
    copy.seal()

    assert verify(copy.folder).valid
