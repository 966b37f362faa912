"""The arrows of a time line, compared with literal lists."""

from __future__ import annotations

from types import SimpleNamespace

from codeai_lab.show.sequence import arrows


def told(story) -> list[str]:
    """Write each arrow as one line: from, to, what, evidence, and a cross where it is lost."""
    return [
        f"{one.source} > {one.target}: {one.says} [{one.evidence}]{' X' if one.lost else ''}"
        for one in arrows(story.events, story.receipts)
    ]


def test_recorded_completion_replays(record) -> None:
    """The chapter's left time line: one effect, its completion, and the same key answered from the record."""
    story = record("88d1291")
    story.request("a1")
    story.start("a1")
    story.effect("a1")
    story.complete("a1")
    story.request("a2")
    story.replay("a2", "a1")
    assert told(story) == [
        "Caller > Runtime: execute_action a1, key K [line 1]",
        "Runtime > Ledger: append action.requested [line 1]",
        "Runtime > Ledger: append action.execution_started [line 2]",
        "Runtime > Adapter: execute [line 2]",
        "Adapter > World: effect happens (0001.txt) [receipt 1]",
        "Adapter > Runtime: returns [line 3]",
        "Runtime > Ledger: append action.completed: succeeded [line 3]",
        "Runtime > Caller: succeeded [line 3]",
        "Caller > Runtime: a2: same key K again [line 4]",
        "Runtime > Ledger: append action.requested [line 4]",
        "Runtime > Ledger: look up K: the record of a1 [line 5]",
        "Runtime > Ledger: append action.completed: succeeded [line 5]",
        "Runtime > Caller: succeeded, recorded by a1 [line 5]",
    ]


def test_orphaned_request_repeats(record) -> None:
    """The chapter's right time line: the record stops after the receipt, and the same key acts again (A3)."""
    story = record("1b3c7a2")
    story.request("a1")
    story.effect("a1")
    story.request("a2")
    story.effect("a2")
    story.complete("a2")
    assert told(story) == [
        "Caller > Runtime: execute_action a1, key K [line 1]",
        "Runtime > Ledger: append action.requested [line 1]",
        "Runtime > Adapter: execute [receipt 1]",
        "Adapter > World: effect happens (0001.txt) [receipt 1]",
        "Adapter > Runtime: STOPS: no completion of a1 [inferred] X",
        "Caller > Runtime: a2: same key K again [line 2]",
        "Runtime > Ledger: append action.requested [line 2]",
        "Runtime > Ledger: look up K: nothing to replay [inferred]",
        "Runtime > Adapter: execute [receipt 2]",
        "Adapter > World: the same effect AGAIN (0002.txt) [receipt 2]",
        "Adapter > Runtime: returns [line 3]",
        "Runtime > Ledger: append action.completed: succeeded [line 3]",
        "Runtime > Caller: succeeded [line 3]",
    ]


def lab_orphan(record):
    story = record("lab")
    story.request("a1", batch=(1, 3))
    story.line("action.claimed", "a1", batch=(2, 3), action_id="a1")
    story.start("a1", batch=(3, 3))
    story.effect("a1")
    story.request("a2", batch=(1, 2))
    story.line("action.replay_refused", "a2", batch=(2, 2), reason="effect-unknown", original_action_id="a1")
    story.line("action.reconciled", "a1", action_id="a1", verdict="effect_confirmed")
    return story


LAB_ORPHAN = [
    "Caller > Runtime: execute_action a1, key K [line 1]",
    "Runtime > Ledger: append action.requested + claimed + execution_started [lines 1 to 3]",
    "Runtime > Adapter: execute [line 3]",
    "Adapter > World: effect happens (0001.txt) [receipt 1]",
    "Adapter > Runtime: STOPS: no completion of a1 [inferred] X",
    "Caller > Runtime: a2: same key K again [line 4]",
    "Runtime > Ledger: look up K: the record of a1 [line 5]",
    "Runtime > Ledger: append action.requested + replay_refused [lines 4 to 5]",
    "Runtime > Caller: refused: the effect of a1 is unknown [line 5]",
    "Runtime > Ledger: append action.reconciled: effect_confirmed [line 6]",
]


def test_lab_looks_up_before_its_one_append(record) -> None:
    """Under lab the request and what is decided about it are one append, after the look-up."""
    assert told(lab_orphan(record)) == LAB_ORPHAN


def test_events_without_a_batch_are_grouped_by_their_rules(record) -> None:
    """An event object carries no batch; the same arrows come out."""
    story = lab_orphan(record)
    for line in story.events:
        del line["batch"]
    story.events = [SimpleNamespace(**line) for line in story.events]
    story.receipts = [SimpleNamespace(**receipt) for receipt in story.receipts]
    assert told(story) == LAB_ORPHAN


def test_a_lab_completion_is_an_append_of_its_own(record) -> None:
    """Without a batch, what follows an execution start is not part of the admission."""
    story = record("lab")
    story.request("a1")
    story.line("action.claimed", "a1", action_id="a1")
    story.start("a1")
    story.effect("a1")
    story.complete("a1")
    for line in story.events:
        del line["batch"]
    assert told(story)[-3:] == [
        "Adapter > Runtime: returns [line 4]",
        "Runtime > Ledger: append action.completed: succeeded [line 4]",
        "Runtime > Caller: succeeded [line 4]",
    ]


def test_a_denial_shows_no_look_up(record) -> None:
    """A denied caller learns nothing of the record, and the picture shows none."""
    story = record("1b3c7a2")
    story.request("a1")
    story.effect("a1")
    story.complete("a1")
    story.request("a2")
    story.complete("a2", "denied", effect_possible=False)
    assert told(story)[7:] == [
        "Caller > Runtime: a2: same key K again [line 3]",
        "Runtime > Ledger: append action.requested [line 3]",
        "Runtime > Ledger: append action.completed: denied [line 4]",
        "Runtime > Caller: denied [line 4]",
    ]


def test_a_conflict_reaches_the_caller_as_an_exception(record) -> None:
    """A refusal for another identity names the dimension; the adapter is not entered."""
    story = record("1b3c7a2")
    story.request("a1")
    story.effect("a1")
    story.complete("a1")
    story.request("a2")
    story.line("action.replay_refused", "a2", reason="identity-conflict", original_action_id="a1",
               dimensions=["instruction"])  # fmt: skip
    assert told(story)[-3:] == [
        "Runtime > Ledger: look up K: the record of a1 [line 4]",
        "Runtime > Ledger: append action.replay_refused [line 4]",
        "Runtime > Caller: raises IdempotencyConflictError: instruction [line 4]",
    ]


def test_a_raise_after_the_effect_is_an_answer_of_the_adapter(record) -> None:
    """A FAILED after the effect shows receipt, raise and completion in this order."""
    story = record("1b3c7a2")
    story.request("a1")
    story.effect("a1")
    story.complete("a1", "failed", error={"code": "adapter-raised", "type": "ConnectionError"})
    assert told(story)[2:] == [
        "Runtime > Adapter: execute [receipt 1]",
        "Adapter > World: effect happens (0001.txt) [receipt 1]",
        "Adapter > Runtime: raises ConnectionError [line 2]",
        "Runtime > Ledger: append action.completed: failed [line 2]",
        "Runtime > Caller: failed [line 2]",
    ]


def test_a_failure_before_the_start_does_not_enter_the_adapter(record) -> None:
    """Drift is refused before the effect: no arrow to or from the adapter."""
    story = record("7a0d43b")
    story.request("a1")
    story.complete("a1", "failed", effect_possible=False, error={"code": "precondition-drift"})
    assert not any("Adapter" in line for line in told(story))


def test_an_orphan_that_left_no_receipt_claims_no_adapter(record) -> None:
    """Older rules without a receipt: only that no answer is on record is drawn, not what the adapter did."""
    story = record("a1b562a")
    story.request("a1")
    assert told(story)[2:] == ["Runtime > Caller: STOPS: no answer to a1 on record [inferred] X"]


def test_two_walks_at_once_keep_the_worlds_order(record) -> None:
    """Receipts keep their own order and each stands between its request and its completion."""
    story = record("1b3c7a2")
    story.request("a1")
    story.request("a2")
    story.effect("a2")
    story.effect("a1")
    story.complete("a1")
    story.complete("a2")
    assert [line for line in told(story) if "World" in line or "append" in line] == [
        "Runtime > Ledger: append action.requested [line 1]",
        "Runtime > Ledger: append action.requested [line 2]",
        "Adapter > World: effect happens (0001.txt) [receipt 1]",
        "Adapter > World: the same effect AGAIN (0002.txt) [receipt 2]",
        "Runtime > Ledger: append action.completed: succeeded [line 3]",
        "Runtime > Ledger: append action.completed: succeeded [line 4]",
    ]


def test_an_orphan_that_owes_a_receipt_stops_after_it(record) -> None:
    """A lost arrow waits for its action's receipt, also when another action's comes first (A3)."""
    story = record("1b3c7a2")
    story.request("a1")
    story.request("a2")
    story.effect("a2")
    story.effect("a1")
    story.complete("a2")
    lines = told(story)
    assert lines.index("Adapter > Runtime: STOPS: no completion of a1 [inferred] X") == 1 + lines.index(
        "Adapter > World: the same effect AGAIN (0002.txt) [receipt 2]"
    )


def test_a_receipt_of_no_known_action_is_told_last(record) -> None:
    """A receipt whose action the ledger does not know is shown and said (A2)."""
    story = record("1b3c7a2")
    story.effect("zz", "another line")
    story.request("a1")
    story.effect("a1")
    story.complete("a1")
    lines = told(story)
    assert lines[-1] == "Adapter > World: effect happens (0001.txt); zz is not in the ledger [receipt 1]"
    assert "Adapter > World: effect happens (0002.txt) [receipt 2]" in lines


def test_every_line_and_receipt_is_evidence(record) -> None:
    """Nothing that is handed in is left out of the picture (A2)."""
    story = lab_orphan(record)
    evidence = {one.evidence for one in arrows(story.events, story.receipts)}
    assert {"lines 1 to 3", "lines 4 to 5", "line 6", "receipt 1"} <= evidence


def test_the_first_line_of_a_ledger_is_no_event(record) -> None:
    """The line that creates the ledger is not told."""
    story = record("lab")
    story.events.append({"kind": "ledger.created", "seq": 0})
    assert told(story) == []


def test_a_call_conflict_kept_in_memory_names_the_earlier_call(record) -> None:
    """Historical rules leave only the request behind; the look-up still found the earlier completion."""
    story = record("7a0d43b")
    story.line("call.requested", "c1", call_id="c1")
    story.line("call.manifest", "c1", call_id="c1")
    story.line("attempt.started", "c1", call_id="c1", attempt=1)
    story.line("attempt.observed", "c1", call_id="c1", attempt=1, response="r")
    story.line(
        "call.completed", "c1", call_id="c1", status="succeeded", replayed=False, original_call_id="c1"
    )
    story.line("call.requested", "c2", call_id="c2")
    assert told(story) == [
        "Caller > Runtime: invoke_recorded_call c1, key K [line 1]",
        "Runtime > Ledger: append call.requested [line 1]",
        "Runtime > Ledger: append call.manifest [line 2]",
        "Runtime > Ledger: append attempt.started [line 3]",
        "Runtime > Adapter: attempt 1 [line 3]",
        "Adapter > Runtime: responds [line 4]",
        "Runtime > Ledger: append attempt.observed [line 4]",
        "Runtime > Ledger: append call.completed: succeeded [line 5]",
        "Runtime > Caller: succeeded [line 5]",
        "Caller > Runtime: c2: same key K again [line 6]",
        "Runtime > Ledger: append call.requested [line 6]",
        "Runtime > Ledger: look up K: the record of c1 [inferred]",
        "Runtime > Caller: STOPS: no answer to c2 on record [inferred] X",
    ]
