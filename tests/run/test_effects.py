"""Does every effect leave a marker and a receipt, whatever the adapter says afterwards?"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from codeai_lab.decide.witnesses import Receipt
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, CallRequest
from codeai_lab.run.effects import (
    CountingProvider,
    LineAdapter,
    MarkerWorld,
    MovableState,
    lost_acknowledgement,
    raising,
)

Req = Callable[..., ActionRequest]


def test_an_effect_leaves_one_marker_and_one_receipt(world: MarkerWorld) -> None:
    """F1: the receipt names the marker and the digest of its bytes, as canonical JSON."""
    receipt = world.append_line("a1", "é")
    content = (world.folder / "markers" / "0001.txt").read_bytes()
    assert content == "é\n".encode()
    effect = hashlib.sha256(content).hexdigest()
    assert receipt == Receipt(n=1, action_id="a1", marker="0001.txt", effect=effect)
    assert (world.folder / "receipts.jsonl").read_bytes() == (
        f'{{"action_id":"a1","effect":"{effect}","marker":"0001.txt","n":1}}\n'.encode()
    )


def test_the_receipts_are_the_markers(world: MarkerWorld) -> None:
    """F1: in order, and each with the digest of its own marker."""
    for action_id, line in (("a1", "one"), ("a2", "two"), ("a1", "one")):
        world.append_line(action_id, line)
    assert [(one.n, one.action_id) for one in world.receipts()] == [(1, "a1"), (2, "a2"), (3, "a1")]
    assert world.marker_count() == 3
    for receipt in world.receipts():
        content = (world.folder / "markers" / receipt.marker).read_bytes()
        assert receipt.effect == hashlib.sha256(content).hexdigest()
    first, second, third = world.receipts()
    assert first.effect == third.effect != second.effect


def test_a_world_without_effects_has_an_empty_receipt_log(world: MarkerWorld) -> None:
    """Nothing happened is also something that the world says."""
    assert (world.folder / "receipts.jsonl").read_bytes() == b""
    assert (world.receipts(), world.marker_count()) == ((), 0)


def test_no_marker_is_written_over(world: MarkerWorld) -> None:
    """F3: where a marker of the next number is there already, the effect fails and leaves no receipt."""
    world.append_line("a1", "one")
    other = world.folder / "markers" / "0003.txt"
    other.write_text("somebody else's")
    with pytest.raises(FileExistsError):
        world.append_line("a2", "two")
    assert other.read_text() == "somebody else's"
    assert [one.action_id for one in world.receipts()] == ["a1"]


def test_a_world_is_come_back_to(world: MarkerWorld) -> None:
    """Opened again it goes on counting; nothing is emptied."""
    world.append_line("a1", "one")
    again = MarkerWorld(world.folder)
    again.append_line("a2", "two")
    assert [one.n for one in world.receipts()] == [1, 2]


def test_a_folder_that_cannot_be_written_to_is_no_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with the reason, whether the folder or its receipts cannot be made."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("touch", "mkdir"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, name, refused)
            with pytest.raises(
                RefusedRequestError, match=r"^w cannot be a world \(Permission denied\); name a"
            ):
                MarkerWorld(tmp_path / "w")
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedRequestError, match=r"^w cannot be a world \(Not a directory\)"):
        MarkerWorld(tmp_path / "file" / "w")


def test_a_file_is_no_world(tmp_path: Path) -> None:
    """One sentence, with the last part of the name alone."""
    (tmp_path / "taken").write_text("x")
    with pytest.raises(RefusedRequestError) as refused:
        MarkerWorld(tmp_path / "taken")
    assert str(refused.value) == "taken is a file; a world needs a folder."


def test_an_adapter_writes_the_line_that_was_asked_for(world: MarkerWorld, req: Req) -> None:
    """The payload's line, or the instruction where there is none."""
    adapter = LineAdapter(world)
    assert adapter.execute(req("a1")) == {"marker": "0001.txt"}
    assert adapter.execute(req("a2", payload={})) == {"marker": "0002.txt"}
    lines = [(world.folder / "markers" / f"000{n}.txt").read_text() for n in (1, 2)]
    assert lines == ["one\n", "append one line\n"]
    assert (adapter.calls, adapter.effects) == (2, 2)


@pytest.mark.parametrize("error", [RuntimeError, ConnectionError, TimeoutError, KeyboardInterrupt])
def test_an_adapter_that_raises_afterwards_has_acted(
    world: MarkerWorld, req: Req, error: type[BaseException]
) -> None:
    """F1, F2: marker, receipt and the producer's own count are there, the reply is not."""
    adapter = LineAdapter(world, after=raising(error("lost")))
    with pytest.raises(error, match="lost"):
        adapter.execute(req("a1"))
    assert (adapter.calls, adapter.effects, world.marker_count(), len(world.receipts())) == (1, 1, 1, 1)


def test_an_adapter_that_raises_before_has_not_acted(world: MarkerWorld, req: Req) -> None:
    """F2: a call that was counted is not an effect that was counted."""
    adapter = LineAdapter(world, before=raising(RuntimeError("no")))
    with pytest.raises(RuntimeError, match="no"):
        adapter.execute(req("a1"))
    assert (adapter.calls, adapter.effects, world.marker_count(), world.receipts()) == (1, 0, 0, ())


def test_a_lost_acknowledgement_is_a_timeout_after_the_effect(world: MarkerWorld, req: Req) -> None:
    """The effect happened and its reply did not come."""
    with pytest.raises(TimeoutError, match="no acknowledgement"):
        LineAdapter(world, after=lost_acknowledgement()).execute(req("a1"))
    assert world.marker_count() == 1


def test_a_state_is_where_it_was_moved_to() -> None:
    """There and back again."""
    state = MovableState("state-A")
    seen = [state.read()]
    for place in ("state-B", "state-A"):
        state.move(place)
        seen.append(state.read())
    assert seen == ["state-A", "state-B", "state-A"]


def test_a_provider_counts_and_does_not_chat() -> None:
    """Its answer depends on the prompt alone, and each asking is counted."""
    provider = CountingProvider()
    call = CallRequest(call_id="c", idempotency_key="k", prompt="hello", chamber="x", requested_model="m")
    assert [provider.respond(call) for _ in range(2)] == [{"text": "a response to 5 characters"}] * 2
    assert provider.calls == 2
    json.dumps(provider.respond(call))


def test_a_draft_that_was_left_behind_is_no_way_into_a_marker(
    world: MarkerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, F4: interrupted right after the marker appeared, the next effect leaves that marker as it is."""
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", interrupted_when_there)
        with pytest.raises(KeyboardInterrupt):
            world.append_line("a1", "one")
    world.append_line("a2", "two")

    markers = sorted((world.folder / "markers").iterdir())
    assert [marker.read_text() for marker in markers] == ["one\n", "two\n"]
    assert [receipt.action_id for receipt in world.receipts()] == ["a1", "a2"]


def interrupted_when_there(path: Path, missing_ok: bool = False) -> None:
    """Stand in for unlink: Ctrl-C arrives before it takes anything away."""
    if path.exists() or not missing_ok:
        raise KeyboardInterrupt
