"""Whether what was saved may still be used: performer, policy and authority are asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from codeai_lab.decide.authority import NO_AUTHORITY, Authority, Grant
from codeai_lab.errors import NotPermittedError
from codeai_lab.lessons.film_play import STARTED_AT_US, Play
from codeai_lab.lessons.film_recovery import STORY
from codeai_lab.lessons.film_rows import row_of_recovery
from codeai_lab.records import Event
from codeai_lab.run.films import FILMS
from codeai_lab.run.sources import capability_of, may_read
from codeai_lab.store.memory import MemoryLedger

WITHOUT_EX_MACHINA = may_read(film.film_id for film in FILMS if film.film_id != "ex-machina")
NAMELESS = STORY.seeking("ai-film", title=None)


def said(events: tuple[Event, ...], kind: str) -> list[Mapping[str, Any]]:
    return [event.payload for event in events if event.kind == kind]


def to_the_failure() -> MemoryLedger:
    ledger = MemoryLedger()
    Play(NAMELESS, "resume", ledger).to_the_failure()
    return ledger


def later(ledger: MemoryLedger, authority: Authority) -> Play:
    return Play(NAMELESS, "resume", ledger, process="later", authority=authority)


def test_saved_evidence_is_judged_again_before_it_is_used() -> None:
    """A resumed trajectory asks for each saved source, and the judgement is recorded before any call."""
    play = later(to_the_failure(), may_read(film.film_id for film in FILMS))
    play.recover()
    kinds = [event.kind for event in play.events]
    assert kinds[kinds.index("recovery.started") + 1] == "authority.asked"
    [asked] = said(play.events, "authority.asked")
    assert asked["performer"] == "reader"
    assert [(one["source_id"], one["allowed"]) for one in asked["sources"]] == [("film:ex-machina", True)]
    assert said(play.events, "evidence.withheld") == []


def test_a_source_revoked_in_between_is_withheld_and_its_branch_reopened() -> None:
    """The branch is searched again, another film is found, and the revoked one is not looked up."""
    play = later(to_the_failure(), WITHOUT_EX_MACHINA)
    before = len(play.events)
    assert play.recover() == "completed"
    [withheld] = said(play.events, "evidence.withheld")
    assert withheld == {
        "node": "ai-film", "source_id": "film:ex-machina", "film_id": "ex-machina",
        "reason": "no grant names this capability",
    }  # fmt: skip
    after = play.events[before:]
    looked_up = [one["arguments"] for one in said(after, "call.started") if one["role"] == "fetch"]
    assert {"film_id": "ex-machina"} not in looked_up
    [completed] = said(play.events, "trajectory.completed")
    assert completed["status"] == "complete"
    assert "ex-machina" not in completed["scores"]
    assert len(completed["scores"]) == 2
    assert row_of_recovery(play.events)["verified_kept"] == []
    final = said(play.events, "checkpoint.committed")[-1]
    assert final["sources"]["ai-film"]["source_id"] != "film:ex-machina"


def test_a_title_that_was_asked_for_is_missing_once_its_source_is_withheld() -> None:
    """Where the request names the film, no other one takes its place."""
    ledger = MemoryLedger()
    Play(STORY, "resume", ledger).to_the_failure()
    play = Play(STORY, "resume", ledger, process="later", authority=WITHOUT_EX_MACHINA)
    play.recover()
    [completed] = said(play.events, "trajectory.completed")
    assert (completed["status"], completed["missing"]) == ("partial", ["ai-film", "compare"])


def test_what_needed_the_withheld_source_is_open_again() -> None:
    """A comparison rests on both films: with one withheld it is made anew, or not at all."""
    ledger = MemoryLedger()
    play = Play(replace(NAMELESS, fails=()), "resume", ledger)
    walk = play.harness.walk(play.name)
    while said(play.events, "checkpoint.committed")[-1]["node_status"].get("compare") != "verified":
        walk.step()
    play = Play(replace(NAMELESS, fails=()), "resume", ledger, process="l", authority=WITHOUT_EX_MACHINA)
    play.harness.run(play.name)
    compared = [one for one in said(play.events, "call.started") if one["role"] == "compare"]
    assert len(compared) == 2
    assert "Ex Machina" not in said(play.events, "trajectory.completed")[0]["comparison"]


def test_a_record_that_was_read_and_not_committed_is_judged_too() -> None:
    """Saved is what is in the record, verified or not."""
    ledger = MemoryLedger()
    play = Play(NAMELESS, "resume", ledger)
    walk = play.harness.walk(play.name)
    while [one["role"] for one in said(play.events, "call.started")][-1:] != ["quote"]:
        walk.step()
    play = later(ledger, WITHOUT_EX_MACHINA)
    play.harness.walk(play.name).step()
    assert [one["film_id"] for one in said(play.events, "evidence.withheld")] == ["ex-machina"]
    assert play.harness.state(play.name).candidate("ai-film") is None


def test_a_grant_that_expired_in_between_permits_nothing() -> None:
    """The judgement is that of the moment: an expired grant withholds the source."""
    grants = tuple(
        Grant(capability=capability_of(f"film:{film.film_id}"), expires_at_us=STARTED_AT_US + 1)
        for film in FILMS
    )
    play = later(to_the_failure(), Authority(grants=grants))
    play.harness.walk(play.name).step()
    assert [one["reason"] for one in said(play.events, "evidence.withheld")] == ["the grant has expired"]


def test_without_authority_no_record_is_looked_up() -> None:
    """Each candidate is rejected as not permitted, until none is left."""
    play = Play(replace(STORY, fails=()), "resume", MemoryLedger(), authority=NO_AUTHORITY)
    play.harness.run(play.name)
    assert {one["reason"] for one in said(play.events, "proposal.rejected")} == {"not-permitted"}
    assert [one for one in said(play.events, "call.started") if one["role"] == "fetch"] == []
    assert said(play.events, "trajectory.completed")[0]["status"] == "partial"


def test_another_performer_is_refused_before_anything_is_recorded() -> None:
    """Neither walking nor recovering is for anybody but the performer of the request."""
    ledger = to_the_failure()
    stranger = replace(NAMELESS, request=replace(NAMELESS.request, performer="stranger"))
    play = Play(stranger, "resume", ledger, process="stranger")
    before = ledger.snapshot()
    with pytest.raises(NotPermittedError, match="another performer"):
        play.harness.run(play.name)
    with pytest.raises(NotPermittedError, match="another performer"):
        play.harness.recover(play.name, "resume")
    assert ledger.snapshot() == before


def test_a_restart_uses_nothing_that_was_saved() -> None:
    """From the request alone there is no saved source to ask about."""
    ledger = MemoryLedger()
    play = Play(STORY, "restart", ledger)
    play.to_the_failure()
    play.recover()
    assert said(play.events, "authority.asked") == []
