"""How are the events of a recovery said in words: trajectory, repair, memory, watchlist?

Chapter: 003, "Keep recovery in the execution record": a record that makes partial failure diagnosable has to
be readable.

Idea: one sentence for each kind, from its payload. Two kinds are recorded by a trajectory and by the loop
around one node, and are told apart by what they carry.

Always true:
  RW1. A sentence names what was decided and why, and never repeats a passage, a prompt or a memory's words.

Not here: actions and calls to a model (`show.event_words`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codeai_lab.show.words import say

Words = Callable[[Mapping[str, Any]], str]


def _checkpoint(said: Mapping[str, Any]) -> str:
    status = said.get("node_status") or {}
    verified = [node for node, state in status.items() if state == "verified"]
    held = f"; verified: {say(verified)}" if verified else "; it holds the request"
    return f"checkpoint v{say(said.get('version'))}{held}"


def _started(said: Mapping[str, Any]) -> str:
    again = "" if said.get("attempt") in (None, 1) else f", attempt {say(said['attempt'])}"
    query = (said.get("arguments") or {}).get("query")
    words = "" if query is None else f': "{say(query)}"'
    return (
        f"{say(said.get('call_id'))} asks {say(said.get('tool'))} for {say(said.get('node'))}{again}{words}"
    )


def _failed(said: Mapping[str, Any]) -> str:
    error = said.get("error") or {}
    known = "it is known" if error.get("definite") else "it is not known"
    return f"{say(said.get('call_id'))} failed ({say(error.get('code'))}); {known} what became of it"


def _decided(said: Mapping[str, Any]) -> str:
    if not said.get("accepted"):
        field = f", field {say(said['field'])}" if said.get("field") else ""
        return f"{say(said.get('node'))} is refused: {say(said.get('reason'))}{field}"
    under = said.get("acceptance")
    bound = f", under {say(under['minimum'])} of {say(under['method'])}" if under else ""
    return f"{say(said.get('node'))} is accepted{bound}"


def _reopened(said: Mapping[str, Any]) -> str:
    out = f"{say(said['film_id'])} is out; " if said.get("film_id") else ""
    return f"{out}{say(said.get('node'))} is searched for again: {say(said.get('reason'))}"


def _rejected(said: Mapping[str, Any]) -> str:
    proposed = said.get("proposal") or {}
    what = f"{say(proposed.get('tool'))} for {say(proposed.get('node'))}"
    return f"the proposal of {what} is rejected: {say(said.get('reason'))}"


def _recovery(said: Mapping[str, Any]) -> str:
    keeps, discards = said.get("keeps") or (), said.get("discards") or ()
    kept = f"keeps {say(keeps)}" if keeps else "keeps nothing"
    gone = f", discards {say([f'v{version}' for version in discards])}" if discards else ""
    return f"{say(said.get('policy'))} from checkpoint v{say(said.get('from_version'))}: {kept}{gone}"


def _fallback(said: Mapping[str, Any]) -> str:
    old, new = said.get("old") or {}, said.get("new") or {}
    bounds = said.get("acceptance_threshold") or {}
    changed = ""
    if bounds.get("old") and bounds.get("new"):
        least = [say(bounds[side].get("minimum")) for side in ("old", "new")]
        changed = f", threshold {' to '.join(least)}"
    paths = [f"{say(path.get('tool'))} of {say(path.get('provider'))}" for path in (old, new)]
    return f"{say(said.get('node'))} goes by another path: {' to '.join(paths)}{changed}"


def _unresolved(said: Mapping[str, Any]) -> str:
    ways = said.get("choices") or said.get("ways_on") or ()
    return f"{say(said.get('node'))} stays unresolved: {say(said.get('reason'))}; open: {say(ways)}"


def _way(said: Mapping[str, Any]) -> str:
    way = {
        "other_route": "another route is tried",
        "report_missing": "it is reported missing",
        "ask": "the reader is asked" + ("" if said.get("query") is None else " and gives other words"),
    }
    chosen = say(said.get("way"))
    return f"a person chose for {say(said.get('node'))}: {way.get(chosen, chosen)}"


def _asked(said: Mapping[str, Any]) -> str:
    sources = said.get("sources") or ()
    allowed = sum(bool(source.get("allowed")) for source in sources)
    return (
        f"saved sources are judged anew for {say(said.get('performer'))}: {allowed} of {len(sources)} allowed"
    )


def _finished(said: Mapping[str, Any]) -> str:
    how = f"{say(said.get('status'))} ({say(said.get('completion'))})"
    return f"{how}; recommended: {say(said.get('recommendation'))}"


def _node_failed(said: Mapping[str, Any]) -> str:
    kind, why = (said.get("problem") or {}).get("kind"), say(said.get("reason"))
    return f"{say(said.get('tool'))} failed ({say(kind)}); next: {say(said.get('move'))}, {why}"


def _repair_refused(said: Mapping[str, Any]) -> str:
    return f"the revision is refused: {say(said.get('refused_because'))}; next: {say(said.get('move'))}"


def _remembered(said: Mapping[str, Any]) -> str:
    terms = said.get("terms") or {}
    old = f", in place of {say(said['supersedes'])}" if said.get("supersedes") else ""
    return f"{say(said.get('memory_id'))} is kept, {say(terms.get('basis'))}{old}; its words lie elsewhere"


def _recalled(said: Mapping[str, Any]) -> str:
    answer = "used" if said.get("answer") is None else say(said["answer"])
    request, reason = say(said.get("request_id")), say(said.get("reason"))
    return f"{say(said.get('memory_id'))} is {answer} for {request}: {reason}"


def _received(said: Mapping[str, Any]) -> str:
    key = "without a key" if said.get("key") is None else f"under the key {say(said['key'])}"
    return f"request {say(said.get('n'))} came {key}"


def _entered(said: Mapping[str, Any]) -> str:
    body = said.get("body") or {}
    if body.get("entry") is None:
        return f"request {say(said.get('n'))} was not carried out: {say(said.get('status'))}"
    return f"request {say(said.get('n'))} is entry {say(body['entry'])}: {say(body.get('film'))}"


RECOVERY_WORDS: dict[str, Words] = {
    "trajectory.started": lambda said: f"asks: {say((said.get('request') or {}).get('goal'))}",
    "checkpoint.committed": _checkpoint,
    "call.started": _started,
    "call.succeeded": lambda said: f"{say(said.get('call_id'))} is answered",
    "call.failed": _failed,
    "validation.decided": _decided,
    "discovery.reopened": _reopened,
    "proposal.rejected": _rejected,
    "recovery.started": _recovery,
    "fallback.used": _fallback,
    "step.retried": lambda said: f"the whole step {say(said.get('node'))} is done again",
    "query.repaired": lambda said: (
        f"{say(said.get('node'))}, repair {say(said.get('repair'))}: asks {say(said.get('new'))}"
    ),
    "node.unresolved": _unresolved,
    "way.chosen": _way,
    "authority.asked": _asked,
    "evidence.withheld": lambda said: f"{say(said.get('source_id'))} is withheld: {say(said.get('reason'))}",
    "trajectory.completed": _finished,
    # --- the loop around one node
    "node.call_failed": _node_failed,
    "retry.attempted": lambda said: f"the same call is made again: {say(said.get('reason'))}",
    "repair.attempted": lambda said: (
        f"asks {say(said.get('arguments'))} instead, because of a problem of {say(said.get('because'))}"
    ),
    "repair.refused": _repair_refused,
    "repair.succeeded": lambda _: "the repaired call is answered",
    "node.answered": lambda said: f"{say(said.get('node'))} is answered, {say(said.get('how'))}",
    # --- memories
    "memory.recorded": _remembered,
    "memory.refused": lambda said: (
        f"{say(said.get('memory_id'))} is not kept ({say(said.get('gate'))}): {say(said.get('reason'))}"
    ),
    "memory.corrected": lambda said: (
        f"{say(said.get('memory_id'))} is corrected by {say(said.get('superseded_by'))}"
    ),
    "memory.deleted": lambda said: (
        f"{say(said.get('memory_id'))} is deleted with {say(said.get('because_of'))}; its words go"
    ),
    "memory.used": _recalled,
    "memory.withheld": _recalled,
    # --- the watchlist's own log
    "received": _received,
    "completed": _entered,
    "answered": lambda said: (
        f"request {say(said.get('n'))} is told {say(said.get('status'))}: {say(said.get('answer'))}"
    ),
}
