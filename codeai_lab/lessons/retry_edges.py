"""Where does a rule set end: what do the chapter's later probes give, under each?

Chapter: 004, "Where the cache stops" (an escaping exception), "Where it is still weak" 6 and 7, and "The
precondition rule, stated plainly" (the world moves by the action's own success, or moves back).

Idea: the same row as everywhere, for the requests that sit on an edge. Here the rule sets really differ.

Always true: defects of the historical rule sets are kept as found and stand beside what `lab` gives.

Not here: two threads, a killed process, reconciling; what is unknown here stays unknown.
"""

from __future__ import annotations

from codeai_lab.lessons.cases import Ask, Case, Expected, Lesson, under

RETRY_EDGES = Lesson(
    name="retry-edges",
    chapter="004, Where the cache stops; Where it is still weak",
    question="What happens to the same key when the first attempt ended on an edge?",
    cases=(
        Case(
            name="escaping-exception",
            question="The adapter writes, then raises ConnectionError; the same key is tried again.",
            asks=(
                Ask(id="x1", key="kx", raises=ConnectionError),
                Ask(id="x2", key="kx", raises=ConnectionError),
            ),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "x1"), effects_world=1),
            expected=under(
                "7a0d43b",
                "a1b562a",
                gives=Expected(
                    statuses=(None, None), raised=("ConnectionError", "ConnectionError"), effects_world=2
                ),
            ),
        ),
        Case(
            name="lost-acknowledgement",
            question="The effect happens and no reply comes back in time; the same key is tried again.",
            asks=(Ask(id="l1", key="kl", raises=TimeoutError), Ask(id="l2", key="kl")),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "l1"), effects_world=1),
            expected=under(
                "7a0d43b",
                "a1b562a",
                gives=Expected(statuses=(None, "succeeded"), raised=("TimeoutError", None), effects_world=2),
            ),
        ),
        Case(
            name="interrupt-inside",
            question="Ctrl-C arrives after the effect and before the record; the same key is tried again.",
            asks=(Ask(id="i1", key="ki", raises=KeyboardInterrupt), Ask(id="i2", key="ki")),
            otherwise=Expected(
                statuses=(None, "succeeded"), raised=("KeyboardInterrupt", None), effects_world=2
            ),
            expected=under(
                "lab",
                gives=Expected(
                    statuses=(None, "refused"), raised=("KeyboardInterrupt", None), effects_world=1
                ),
            ),
        ),
        Case(
            name="denied-then-permitted",
            question="The key is first denied; then the caller has authority and asks again with it.",
            asks=(Ask(id="p1", key="kp", permitted=False), Ask(id="p2", key="kp")),
            otherwise=Expected(statuses=("denied", "denied"), reused_from=(None, "p1"), effects_world=0),
            expected=under("lab", gives=Expected(statuses=("denied", "succeeded"), effects_world=1)),
        ),
        Case(
            name="drift-then-back",
            question="The key first fails because the world drifted; the world moves back; it comes again.",
            asks=(
                Ask(id="w1", key="kw", precondition="state-A", world="state-B"),
                Ask(id="w2", key="kw", precondition="state-A", world="state-A"),
            ),
            otherwise=Expected(statuses=("failed", "failed"), reused_from=(None, "w1"), effects_world=0),
            expected=under("lab", gives=Expected(statuses=("failed", "succeeded"), effects_world=1)),
        ),
        Case(
            name="moved-by-its-own-success",
            question="The action moves the world from A to B; the request comes again at B, and again at A.",
            asks=(
                Ask(id="m1", key="km", precondition="state-A", world="state-A", moves="state-B"),
                Ask(id="m2", key="km", precondition="state-A"),
                Ask(id="m3", key="km", precondition="state-A", world="state-A"),
            ),
            otherwise=Expected(
                statuses=("succeeded", "succeeded", "succeeded"),
                reused_from=(None, "m1", "m1"),
                effects_world=1,
            ),
        ),
        Case(
            name="precondition-unreadable",
            question="A precondition is supplied and nobody can read the state of the world.",
            asks=(Ask(id="u1", key="ku", precondition="state-A", blind=True),),
            otherwise=Expected(statuses=("succeeded",), effects_world=1),
            expected=under("lab", gives=Expected(statuses=("failed",), effects_world=0)),
        ),
    ),
)
