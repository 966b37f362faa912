"""Retry, replay or duplicate: what do the five cases of the older demo give under each rule set?

Chapter: 004, "The executed demo, read exactly"; case D also "Failure is cached, and that is a decision".

Idea: seven rows, because B splits in two (another operation; no authority) and D has its naive half (a fresh
key).

Always true:
  - A, C, E give the same under every rule set; so does D, and D's fresh key always duplicates.
  - B is replayed in silence by 7a0d43b: the defect, kept as found. Every later rule set refuses or denies.

Not here: the edges that the chapter's later probes found (`lessons.retry_edges`).
"""

from __future__ import annotations

from codeai_lab.lessons.cases import Ask, AskCall, Case, Expected, Lesson, under

RETRY_EFFECTS = Lesson(
    name="retry-effects",
    chapter="004, The executed demo, read exactly",
    question="Which of two requests is a retry, a replay, a duplicate, or refused?",
    cases=(
        Case(
            name="A-exact-duplicate",
            question="The identical request comes twice.",
            asks=(Ask(id="a1", key="ka"), Ask(id="a2", key="ka")),
            otherwise=Expected(
                statuses=("succeeded", "succeeded"), reused_from=(None, "a1"), effects_world=1
            ),
        ),
        Case(
            name="B-other-operation",
            question="The key comes again with another instruction.",
            asks=(Ask(id="b1", key="kb"), Ask(id="b2", key="kb", instruction="remove the last line")),
            otherwise=Expected(
                statuses=("succeeded", None), raised=(None, "IdempotencyConflictError"), effects_world=1
            ),
            expected=under(
                "7a0d43b",
                gives=Expected(
                    statuses=("succeeded", "succeeded"), reused_from=(None, "b1"), effects_world=1
                ),
            ),
        ),
        Case(
            name="B-no-authority",
            question="The same request comes again from a caller without authority.",
            asks=(Ask(id="n1", key="kn"), Ask(id="n2", key="kn", permitted=False)),
            otherwise=Expected(statuses=("succeeded", "denied"), effects_world=1),
            expected=under(
                "7a0d43b",
                gives=Expected(
                    statuses=("succeeded", "succeeded"), reused_from=(None, "n1"), effects_world=1
                ),
            ),
        ),
        Case(
            name="C-call-conflict",
            question="A model call's key comes again with another prompt.",
            asks=(
                AskCall(id="c1", key="kc", prompt="Summarise the first chapter."),
                AskCall(id="c2", key="kc", prompt="Summarise the second chapter."),
            ),
            otherwise=Expected(
                statuses=("succeeded", None), raised=(None, "IdempotencyConflictError"), effects_world=0
            ),
        ),
        Case(
            name="D-crash-gap",
            question="The adapter writes, then raises; the same key is tried again.",
            asks=(
                Ask(id="d1", key="kd", raises=RuntimeError),
                Ask(id="d2", key="kd", raises=RuntimeError),
            ),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "d1"), effects_world=1),
        ),
        Case(
            name="D-fresh-key",
            question="The adapter writes, then raises; it is tried again with a fresh key.",
            asks=(
                Ask(id="f1", key="kf-1", raises=RuntimeError),
                Ask(id="f2", key="kf-2", raises=RuntimeError),
            ),
            otherwise=Expected(statuses=("failed", "failed"), effects_world=2),
        ),
        Case(
            name="E-drift",
            question="The world is no longer in the state that the request was planned against.",
            asks=(Ask(id="e1", key="ke", precondition="state-A", world="state-B"),),
            otherwise=Expected(statuses=("failed",), effects_world=0),
        ),
    ),
)
