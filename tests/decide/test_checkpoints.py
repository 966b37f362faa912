"""From which recorded state execution may go on, and which is refused, by name."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeai_lab.decide.checkpoints import LINKS, Checkpoint, Loaded, newest_valid_checkpoint
from codeai_lab.decide.states import Lifetime, RequestState, WorkingState
from codeai_lab.lessons.film_play import Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.records import Event
from codeai_lab.store.memory import MemoryLedger


def recorded() -> tuple[Event, ...]:
    """Give the events up to the timeout: v1 holds the request, v2 the verified branch as well."""
    run = Play(STORY, "resume", MemoryLedger())
    run.to_the_failure()
    return run.events


JSON = st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3)
EVENTS = recorded()
V2 = next(event for event in EVENTS if event.payload.get("version") == 2)


def with_v2(change: Callable[[dict[str, Any]], object]) -> Loaded:
    """Load after the payload of v2 was changed."""
    payload = deepcopy(dict(V2.payload))
    change(payload)
    return newest_valid_checkpoint([replace(e, payload=payload) if e is V2 else e for e in EVENTS])


def test_the_newest_valid_checkpoint_is_loaded_after_a_timeout() -> None:
    """The failed call made no checkpoint: v2 stays the newest, and holds request, plan and branch."""
    loaded = newest_valid_checkpoint(EVENTS)
    assert EVENTS[-1].kind == "call.failed"
    assert loaded.refused == ()
    assert loaded.checkpoint is not None
    assert (loaded.checkpoint.version, loaded.seq) == (2, V2.seq)
    assert loaded.checkpoint.request == STORY.request
    assert loaded.checkpoint.working.open_questions == ("memory-film", "compare")
    assert [item.film_id for item in loaded.checkpoint.evidence.items] == ["ex-machina"]


def test_a_checkpoint_comes_back_from_its_json() -> None:
    """What is loaded has the JSON form that was recorded."""
    loaded = newest_valid_checkpoint(EVENTS)
    assert loaded.checkpoint is not None
    assert loaded.checkpoint.as_json() == V2.payload


@pytest.mark.parametrize("link", LINKS)
def test_a_checkpoint_that_lacks_a_link_is_refused_by_its_name(link: str) -> None:
    """Take away one link and the older checkpoint is loaded, with the link named and the original kept."""
    loaded = with_v2(lambda payload: payload.pop(link))
    assert loaded.checkpoint is not None
    assert loaded.checkpoint.version == 1
    [refused] = loaded.refused
    assert refused.code == "missing-link"
    assert refused.links == (link,)
    assert refused.original == {name: said for name, said in V2.payload.items() if name != link}
    assert link in str(refused)


@pytest.mark.parametrize(
    ("change", "links"),
    [
        (lambda p: p["tool_results"].pop("ai-film"), ("tool_results",)),
        (lambda p: p["tool_results"]["ai-film"].update(call_ids=["call-77"]), ("tool_results",)),
        (lambda p: p["tool_results"]["ai-film"].update(call_ids=[]), ("tool_results",)),
        (lambda p: p["sources"].pop("ai-film"), ("sources",)),
        (lambda p: p["sources"]["ai-film"].pop("method"), ("sources",)),
        (lambda p: p["sources"]["ai-film"].update(source_id=""), ("sources",)),
        (lambda p: p["validations"].pop("ai-film"), ("validations",)),
        (lambda p: p["validations"]["ai-film"].update(seq=1), ("validations",)),
        (lambda p: p["node_status"].pop("compare"), ("node_status",)),
        (lambda p: p["node_status"].clear(), ("node_status",)),
        (lambda p: p.update(plan=None), ("plan",)),
        (lambda p: p.update(plan={"nodes": [{"node": "ai-film"}]}), ("plan",)),
        (lambda p: p.update(request={"goal": "two films"}), ("request",)),
        (lambda p: p["request"].update(goal="two films"), ("request",)),
        (lambda p: p["tool_results"]["ai-film"]["result"].update(title="Heat"), ("tool_results",)),
        (lambda p: p["tool_results"].update({"ai-film": "Ex Machina"}), ("tool_results",)),
        (lambda p: p.update(budget={"calls": 1}), ("budget",)),
    ],
)
def test_a_link_that_leads_nowhere_is_a_missing_link(
    change: Callable[[dict[str, Any]], object], links: tuple[str, ...]
) -> None:
    """A verified node needs a result of recorded calls, a source, and a decision that is on record."""
    loaded = with_v2(change)
    assert [refused.links for refused in loaded.refused] == [links]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    link=st.sampled_from(LINKS),
    nonsense=st.recursive(JSON, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
)
def test_no_nonsense_in_a_link_is_loaded_or_raised(link: str, nonsense: Any) -> None:
    """Whatever stands in the place of a link, the checkpoint is refused with a reason, and v1 is loaded."""
    loaded = with_v2(lambda payload: payload.update({link: nonsense}))
    if loaded.refused:
        assert loaded.checkpoint is not None
        assert loaded.checkpoint.version == 1
        assert loaded.refused[0].code in ("missing-link", "unreadable")
    else:
        assert link == "failures"
        assert nonsense == []


def test_a_sentence_is_no_checkpoint() -> None:
    """An answer alone lacks all eight links, and each of them is named."""
    sentence = {"type": "checkpoint", "schema": 1, "version": 2, "answer": "Ex Machina is a good choice."}

    def say(payload: dict[str, Any]) -> None:
        payload.clear()
        payload.update(sentence)

    [refused] = with_v2(say).refused
    assert refused.links == LINKS
    assert refused.original == sentence


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("schema", 2, "newer-schema"),
        ("schema", None, "newer-schema"),
        ("type", "trajectory-checkpoint", "unknown-type"),
        ("type", None, "unknown-type"),
    ],
)
def test_a_newer_schema_or_a_renamed_type_is_refused_unread(name: str, value: object, code: str) -> None:
    """What this program cannot know the meaning of is kept as it was and not loaded."""
    loaded = with_v2(lambda payload: payload.update({name: value}))
    assert loaded.checkpoint is not None
    assert loaded.checkpoint.version == 1
    [refused] = loaded.refused
    assert (refused.code, refused.links) == (code, ())
    assert refused.original == {**V2.payload, name: value}


def test_every_refused_checkpoint_is_named_where_none_is_valid() -> None:
    """Without a valid checkpoint nothing is loaded, and each refusal is there, the newest first."""
    events = [
        replace(event, payload={**event.payload, "schema": 9})
        if event.kind == "checkpoint.committed"
        else event
        for event in EVENTS
    ]
    loaded = newest_valid_checkpoint(events)
    assert loaded.checkpoint is None
    assert [refused.original["version"] for refused in loaded.refused] == [2, 1]


def test_a_restart_discards_checkpoints_for_good() -> None:
    """After a restart the discarded checkpoint is passed over, and is no finding."""
    ledger = MemoryLedger()
    run = Play(STORY, "restart", ledger)
    run.to_the_failure()
    run.harness.recover(run.name, "restart")
    loaded = newest_valid_checkpoint(run.events)
    assert loaded.refused == ()
    assert loaded.checkpoint is not None
    assert loaded.checkpoint.version == 1


def test_each_kind_of_state_says_its_lifetime() -> None:
    """Request, working and evidence state are records of their own with lifetimes of their own."""
    loaded = newest_valid_checkpoint(EVENTS)
    checkpoint = loaded.checkpoint
    assert isinstance(checkpoint, Checkpoint)
    assert RequestState.lifetime is Lifetime.TRAJECTORY
    assert WorkingState.lifetime is Lifetime.CHECKPOINT
    assert checkpoint.evidence.lifetime is Lifetime.WHILE_VERIFIABLE
    assert len({RequestState, WorkingState, type(checkpoint.evidence)}) == 3


def test_a_checkpoint_names_memories_and_holds_none() -> None:
    """What a checkpoint says of durable memory is ids."""
    run = Play(replace(STORY, memory_refs=("memory-7",)), "resume", MemoryLedger())
    run.to_the_failure()
    loaded = newest_valid_checkpoint(run.events)
    assert loaded.checkpoint is not None
    assert loaded.checkpoint.memory_refs == ("memory-7",)
