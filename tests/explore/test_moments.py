"""Is a moment kept unchanged, and are two taken for alike only when they go on alike?"""

from __future__ import annotations

import pytest

from codeai_lab.explore.moments import Moment, Race, like, submit, told
from codeai_lab.explore.protocols import composed, rules_named
from codeai_lab.explore.worlds import CountedWorld
from codeai_lab.run.revisions import LAB, R_1B3C7A2
from codeai_lab.run.runtime import Runtime
from codeai_lab.store.memory import MemoryLedger


def go(race: Race, *schedule: int) -> Moment:
    moment = race.start()
    for number in schedule:
        moment = race.after(moment, number)
    return moment


def test_moving_a_walk_gives_another_moment() -> None:
    """A moment that one went on from is as it was, and the same step from it gives the same again (MO1)."""
    race = Race(composed(R_1B3C7A2), 2)
    before = go(race, 0, 0, 1)
    kept = (before.events, before.alive, before.world, [walk.position for walk in before.walks])
    one, other = race.after(before, 1), race.after(before, 1)
    assert kept == (before.events, before.alive, before.world, [walk.position for walk in before.walks])
    assert race.likeness(one) == race.likeness(other)
    assert race.likeness(one) != race.likeness(before)


def test_going_back_revives_who_was_alive() -> None:
    """A claim that a later moment completed is open again, and its walk alive."""
    race = Race(composed(LAB), 2)
    claimed = go(race, *(0,) * 8)
    go(race, *(0,) * 11)
    race.go_to(claimed)
    assert len(race.ledger.live_actions) == 1
    assert race.after(claimed, 0).effects == 1


@pytest.mark.parametrize("name", ["unguarded", "claim-busy", "lab"])
def test_numbering_does_not_matter(name: str) -> None:
    """A race with its walks' numbers exchanged is alike at every step, its order exchanged (MO2)."""
    race, mirror = [0, 0, 1, 0], [1, 1, 0, 1]
    table = Race(rules_named(name), 2)
    for length in range(len(race) + 1):
        one, other = go(table, *race[:length]), go(table, *mirror[:length])
        assert table.likeness(one)[0] == table.likeness(other)[0]
    order, mirrored = table.likeness(go(table, *race))[1], table.likeness(go(table, *mirror))[1]
    assert mirrored == tuple(1 - number for number in order)


def test_what_a_walk_saw_makes_a_difference() -> None:
    """Equal events and equal places differ where one walk looked before the other completed, or after."""
    table = Race(composed(R_1B3C7A2), 2)
    before, after = go(table, 0, 1, 1, *(0,) * 8), go(table, 0, 1, *(0,) * 8, 1)
    for moment in (before, after):
        assert [event.kind for event in moment.events] == ["action.requested"] * 2 + ["action.completed"]
        assert (moment.walks[0].is_over, moment.walks[1].next_stage) == (True, "require_authority")
    assert table.likeness(before) != table.likeness(after)


def test_ids_make_no_difference() -> None:
    """Gone twice, the same way gives other event ids and moments that are alike."""
    table = Race(composed(LAB), 2)
    one, other = go(table, *(0,) * 11), go(table, *(0,) * 11)
    assert [event.event_id for event in one.events] != [event.event_id for event in other.events]
    assert table.likeness(one) == table.likeness(other)


def test_what_is_unknown_is_refused() -> None:
    """A value that has no likeness is an error, never passed over (MO3)."""
    with pytest.raises(TypeError, match="object has no likeness"):
        like({"deep": [object()]}, {})


def test_names_become_places() -> None:
    """An action's id is the seq at which it begins; other text stays."""
    assert like({"b": "r1", "a": ["x", None, 2]}, {"r1": 3}) == (("a", ("x", None, 2)), ("b", 3))


def test_an_answer_is_one_word() -> None:
    """A result by its status or as replayed, an exception by its type."""
    ledger, world = MemoryLedger(), CountedWorld()
    runtime = Runtime(ledger)
    assert submit(runtime, "a", world).run().status == "succeeded"
    second = submit(runtime, "b", world)
    second.run()
    assert told(second) == "replayed"
    third = submit(runtime, "c", world)
    third.close()
    assert told(third) == "ValueError"
