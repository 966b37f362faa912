"""How long may the loser of a race wait for the winner?

Chapter: 004, retry rendezvous, the third of RIFL's four problems.

Idea: a wait looks at the key again and again until its history has moved or the winner's walk is gone, with a
pause in between that is handed in. It decides nothing: whoever waited goes back to look_up and is judged
again, so that a changed instruction or a lost permission never gets the winner's outcome.

Always true:
  WT1. A wait records nothing and ends: by a change, or by its deadline.

Not here: sleeping; the pause is the caller's (`time.sleep` in a program, a step of the clock in a test).
"""

from __future__ import annotations

from collections.abc import Callable

from codeai_lab.clock import Clock, Deadline
from codeai_lab.run.facts import Wait
from codeai_lab.store.protocol import Ledger


def waiting(*, clock: Clock, timeout_us: int, pause: Callable[[], object]) -> Wait:
    """Give a wait for one `execute_action`.

    Args:
        timeout_us: how long all waiting of that call may last, in microseconds from now on.
        pause: called between two looks at the key.
    """
    deadline = Deadline.after(timeout_us=timeout_us, now_us=clock.now_us())

    def wait(ledger: Ledger, idempotency_key: str, seen_seq: int) -> bool:
        while not deadline.has_passed(now_us=clock.now_us()):
            if _has_moved(ledger, idempotency_key, seen_seq):
                return True
            pause()
        return False

    return wait


def _has_moved(ledger: Ledger, idempotency_key: str, seen_seq: int) -> bool:
    history = ledger.find(idempotency_key)
    if history and history[-1].seq != seen_seq:
        return True
    return not any(event.event_id in ledger.live_actions for event in history)
