"""Where is one request on its way, and what if it never goes on?

Chapter: 004, the two time lines of "Where the cache stops": between two steps anything may happen.

Idea: a walk stands before a stage. Run to its end it is an ordinary call; moved by a person it is a stepper;
dropped it is a crash; with another walk moved in between it is a race. Nothing else is needed for any of
them.

Always true:
  M1. One `step` runs one stage; an exception from a stage ends the walk and is raised.
  M2. An admitted walk is registered as alive until it ends, is closed or is dropped; what it leaves then is
      an orphan.
  M3. After LOOK_AGAIN the walk stands before its look-up, and everything that it had judged is judged again.

Not here: what the stages do (`run.stages`, `run.acting`), which there are (`run.revisions`).
"""

from __future__ import annotations

import weakref

from codeai_lab.records import ActionResult
from codeai_lab.run.facts import Bench, Ended, Facts, Next, Raised
from codeai_lab.run.revisions import Revision


class Walk:
    """One request under way along a rule set."""

    def __init__(self, bench: Bench, revision: Revision, facts: Facts) -> None:
        self.revision = revision
        self.facts = facts
        self.position = 0
        self._bench = bench
        self._end: ActionResult | BaseException | None = None
        # Set up before anything can be admitted, so that no interrupt leaves a dead walk registered (M2).
        self._alive = bench.ledger.live_actions
        weakref.finalize(self, self._alive.discard, facts.requested.event_id)

    @property
    def next_stage(self) -> str | None:
        """The name of the stage that `step` would run; None when the walk is over."""
        return None if self.is_over else self.revision.stage_names[self.position]

    @property
    def is_over(self) -> bool:
        return self._end is not None

    @property
    def result(self) -> ActionResult:
        """What the caller is told.

        Raises: the exception that ended the walk; ValueError while it is not over.
        """
        if self._end is None:
            raise ValueError("the walk is not over")
        if isinstance(self._end, ActionResult):
            return self._end
        raise self._end

    def run(self) -> ActionResult:
        """Take every stage that is left and give the result, or raise what ended the walk."""
        try:
            while not self.is_over:
                self.step()
        except BaseException as interrupt:
            self._finish(interrupt)
            raise
        return self.result

    def step(self) -> str:
        """Run the next stage and give its name.

        Raises: whatever the stage lets escape, KeyboardInterrupt included; the walk is over then.
        """
        if self.is_over:
            raise ValueError("the walk is over")
        stage = self.revision.stages[self.position]
        try:
            self._take(stage(self._bench, self.facts))
        except BaseException as error:
            self._finish(error)
            raise
        return stage.__name__

    def close(self) -> None:
        """Give the walk up where it stands, as a crash would; harmless on one that is over."""
        if not self.is_over:
            self._finish(ValueError("the walk was closed before its end"))

    def disown(self) -> None:
        """Count this walk as dead though it may go on: a process that was taken for dead and is late."""
        self._alive.discard(self.facts.requested.event_id)

    def __repr__(self) -> str:
        where = "over" if self.is_over else f"before {self.next_stage}"
        return f"Walk({self.facts.request.action_id!r}, rules {self.revision.name}, {where})"

    def _take(self, after: Next) -> None:
        """Stand where a stage's answer says."""
        if isinstance(after, Facts):
            self.facts = after
            self.position += 1
        elif isinstance(after, Ended):
            self._finish(after.result)
        elif isinstance(after, Raised):
            self._finish(after.error)
        else:
            self.position = next(
                place for place, name in enumerate(self.revision.stage_names) if name.startswith("look_up")
            )

    def _finish(self, end: ActionResult | BaseException) -> None:
        """Be over, for the first reason given, and no longer registered as alive."""
        if self._end is None:
            self._end = end
        self._alive.discard(self.facts.requested.event_id)
