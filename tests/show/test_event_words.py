"""The words of events of actions and calls."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from codeai_lab import run
from codeai_lab.show.event_words import event_words

RECORDING = (
    "recording", "stages", "acting", "reconciling", "calls", "callwalk", "working", "resuming",
    "reconciling_calls",
)  # fmt: skip
KIND = re.compile(r'"((?:action|call|attempt|directive|task|context)\.[a-z_]+)"')
CONFLICT = {"reason": "identity-conflict", "dimensions": ["capability", "payload"]}
DRIFT = {"code": "precondition-drift", "expected": "A", "observed": "B"}
RAISED = {"code": "adapter-raised", "type": "RuntimeError", "message": "not shown"}


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        ("ledger.created", {}, "the ledger begins; not an event"),
        ("action.requested", {"capability": "f.append", "instruction": "add"}, 'asks for f.append: "add"'),
        ("action.requested", {"capability": "f", "instruction": "add", "precondition": "A"},
         'asks for f: "add", planned against A'),
        ("action.claimed", {}, "claims the key; fencing number 7"),
        ("action.execution_started", {}, "the adapter is about to run; from here an effect is possible"),
        ("action.completed", {"status": "succeeded"}, "succeeded"),
        ("action.completed", {"status": "denied"}, "denied: nothing was done"),
        ("action.completed", {"status": "failed", "reused_from_action_id": "a1"},
         "replays what a1 recorded: failed; the world is not touched"),
        ("action.completed", {"status": "failed", "error": DRIFT, "effect_possible": False},
         "failed (precondition-drift: expected=A, observed=B); no effect was possible"),
        ("action.completed", {"status": "failed", "error": RAISED, "effect_possible": True},
         "failed (adapter-raised: type=RuntimeError); an effect is possible"),
        ("action.replay_refused", CONFLICT | {"original_action_id": "a1"},
         "refused: the key belongs to a1; this request differs in capability, payload"),
        ("action.replay_refused", {"reason": "effect-unknown", "original_action_id": "a1"},
         "refused: the effect of a1 is unknown; reconcile, do not repeat"),
        ("action.replay_refused", {"reason": "in-progress", "original_action_id": "a1"},
         "not started: a1 holds the key and is still at work"),
        ("call.requested", {"requested_model": "m"}, "asks the model m"),
        ("call.manifest", {}, "keeps what is really sent"),
        ("attempt.started", {"attempt": 1}, "attempt 1 starts"),
        ("attempt.observed", {"attempt": 1, "response": "not shown"}, "attempt 1 got a response"),
        ("call.completed", {"status": "succeeded", "replayed": False}, "succeeded"),
        ("call.completed", {"status": "succeeded", "replayed": True, "original_call_id": "c1"},
         "replays the response of c1; no new attempt"),
        ("call.replay_refused", CONFLICT | {"original_call_id": "c1"},
         "refused: the key belongs to c1; this request differs in capability, payload"),
        ("action.completed_late", {"status": "succeeded"},
         "late, after a verdict: succeeded; the verdict is not overwritten"),
        ("action.reconciled", {"verdict": "effect_confirmed", "evidence": [{"receipt": 1}]},
         "finds the effect there; it is not repeated (receipt=1)"),
        ("action.reconciled", {"verdict": "no_effect_confirmed", "evidence": []},
         "finds no effect; the key may be tried afresh"),
        ("action.reconciled", {"verdict": "still_unknown", "evidence": [{"lookup_failed": "OSError"}]},
         "cannot find out; the effect stays unknown (lookup_failed=OSError)"),
        ("action.reconciled", {"verdict": "of tomorrow"}, "of tomorrow"),
        ("action.reconcile_refused", {"reason": "not-authorised"},
         "not reconciled: the authority does not permit it"),
        ("action.reconcile_refused", {"reason": "in-progress"}, "not reconciled: it is still at work"),
        ("action.reconcile_refused", {"reason": "nothing-to-reconcile"},
         "not reconciled: the record leaves nothing open"),
        ("directive.opened", {"directive": "find out"}, 'opens the work: "find out"'),
        ("task.created", {"prompt": "Say.", "required": ["a", "b"]}, 'is to ask "Say."; must have a, b'),
        ("context.item_offered", {"name": "chapter", "content": "long"}, "offers the context chapter"),
        ("context.compilation_requested", {"offered": ["chapter"]}, "compiles the context of chapter"),
        ("context.compiled", {"context": {"chapter": "long"}}, "has the context chapter"),
        ("context.compilation_failed", {"missing": ["source"]}, "lacks the context source"),
        ("attempt.interpreted", {"status": "succeeded", "error": None}, "reads the response: succeeded"),
        ("attempt.interpreted", {"status": "failed", "error": "no JSON"},
         "reads the response: failed (no JSON)"),
        ("attempt.retry_decided", {"attempt": 1, "retry": False}, "attempt 1 is not tried again"),
        ("attempt.retry_decided", {"attempt": 1, "retry": True}, "attempt 1 is tried again"),
        ("attempt.completed", {"attempt": 1, "status": "failed"}, "attempt 1 is over: failed"),
        ("call.status_decided", {"status": "failed"}, "the call counts as failed"),
        ("call.completed", {"status": "denied"}, "denied: nobody was asked"),
        ("call.resumed", {"new_call_id": "d"}, "goes on as d; nobody was asked yet"),
        ("call.reconciled", {"verdict": "effect_confirmed", "evidence": [{"receipt": 1}, {"receipt": 2}]},
         "finds that the provider was asked; its answer is lost (receipt=1; receipt=2)"),
        ("call.reconciled", {"verdict": "no_effect_confirmed"},
         "finds that the provider was not asked; the call may be resumed"),
        ("call.reconciled", {"verdict": "still_unknown"},
         "cannot find out; the provider may have been asked"),
        ("call.reconcile_refused", {"reason": "in-progress"}, "not reconciled: it is still at work"),
        ("checkpoint.imagined", {"name": "v1", "held": {}}, "name=v1"),
    ],
)  # fmt: skip
def test_says_what_each_line_records(kind: str, payload: dict[str, object], said: str) -> None:
    """Every kind of line has its sentence, from object or mapping; an unknown kind shows its plain fields."""
    line = {"seq": 7, "kind": kind, "payload": payload}
    assert event_words(line) == event_words(SimpleNamespace(**line)) == said


def test_every_event_of_actions_and_calls_has_its_words() -> None:
    """What the runtime records about an action or a call is never shown as bare fields."""
    sources = [Path(run.__file__).with_name(f"{name}.py") for name in RECORDING]
    kinds = {kind for source in sources for kind in KIND.findall(source.read_text(encoding="utf-8"))}
    assert len(kinds) == 27
    for kind in kinds:
        assert "bare=field" not in event_words({"seq": 1, "kind": kind, "payload": {"bare": "field"}})
