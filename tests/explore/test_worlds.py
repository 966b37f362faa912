"""Does the world in memory count every effect, and can it be wound back?"""

from __future__ import annotations

from pathlib import Path

from codeai_lab.explore.worlds import CountedWorld, EffectSystem, FolderWorld
from codeai_lab.records import ActionRequest


def req(action_id: str, key: str = "k", line: str = "one") -> ActionRequest:
    return ActionRequest(
        action_id=action_id, idempotency_key=key, capability="c", instruction="i", payload={"line": line}
    )


def test_every_effect_has_a_receipt() -> None:
    """Receipts are numbered from 1, name their action, and equal effects have equal digests (CW1)."""
    world = CountedWorld()
    outputs = [world.execute(req("a")), world.execute(req("b")), world.execute(req("c", line="other"))]
    receipts = world.receipts()
    assert [(one.n, one.action_id) for one in receipts] == [(1, "a"), (2, "b"), (3, "c")]
    assert receipts[0].effect == receipts[1].effect != receipts[2].effect
    assert outputs == [{"done": True}] * 3


def test_a_remembered_key_acts_no_second_time() -> None:
    """An effect system that remembers keys gives the same output and leaves the world alone (CW1, CW2)."""
    world = CountedWorld(remembers_keys=True)
    assert world.execute(req("a")) == world.execute(req("b")) == {"done": True}
    assert len(world.receipts()) == 1
    world.execute(req("c", key="another"))
    assert len(world.receipts()) == 2


def test_an_effect_is_found_and_its_reference_leads_there() -> None:
    """The look-up gives references that resolve, none for what did not happen, and changes nothing (CW3)."""
    world = CountedWorld()
    assert world.find({"action_id": "a"}) == ()
    world.execute(req("a"))
    before = world.snapshot()
    assert world.find({"action_id": "a"}) == ({"receipt": 1},)
    assert world.resolve({"receipt": 1})
    assert not world.resolve({"receipt": 2})
    assert not world.resolve({})
    assert world.find({"action_id": "b"}) == ()
    assert world.snapshot() == before


def test_a_world_can_be_wound_back() -> None:
    """A snapshot holds receipts and remembered keys; later effects are gone after going back to it."""
    world = CountedWorld(remembers_keys=True)
    world.execute(req("a"))
    kept = world.snapshot()
    world.execute(req("b", key="another"))
    world.restore(kept)
    assert len(world.receipts()) == 1
    world.execute(req("c", key="another"))
    assert len(world.receipts()) == 2


def test_the_world_on_disk_says_the_same(tmp_path: Path) -> None:
    """Both worlds number the same effects for the same actions, find them and lead to them."""
    worlds: list[EffectSystem] = [CountedWorld(), FolderWorld(tmp_path / "world")]
    for world in worlds:
        for name in ("a", "b"):
            world.execute(req(name))
        assert [(one.n, one.action_id) for one in world.receipts()] == [(1, "a"), (2, "b")]
        (found,) = world.find({"action_id": "b"}) or ()
        assert found["receipt"] == 2
        assert world.resolve(found)
        assert world.find({"action_id": "c"}) == ()
    assert (tmp_path / "world" / "markers" / "0002.txt").read_bytes() == b"one\n"
