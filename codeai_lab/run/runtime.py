"""How does a program ask for an effect?

Chapter: 004, "What CodeAI does"; the chapter's own fragment runs against this class unchanged.

Idea: the front door. It binds a ledger, a clock, ids and a rule set, and offers the ordinary call. Everything
that it does is a walk along the rule set.

    runtime = Runtime(DuckDBLedger("lab.duckdb"))
    result = runtime.execute_action(request, authority=Authority.of("file.append"), adapter=adapter)

Always true: what is said in `run.stages`, `run.acting` and `run.walk`; nothing is added here.

Not here: deciding when trying again is wise; that is a policy's business, not the runtime's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from codeai_lab.clock import Clock, SystemClock
from codeai_lab.decide.authority import NO_AUTHORITY, Authority, PolicyEngine
from codeai_lab.decide.identity import action_fingerprint
from codeai_lab.errors import RefusedRequestError
from codeai_lab.records import ActionRequest, ActionResult, CallRequest, CallResult
from codeai_lab.run.calls import MAY_CALL, Provider, invoke_recorded_call
from codeai_lab.run.callwalk import CallAnswer, Settings
from codeai_lab.run.facts import Adapter, Bench, Facts, ReadState, Wait
from codeai_lab.run.provider import Transport
from codeai_lab.run.reconciling import EffectLookup, Reconciliation, reconcile_action
from codeai_lab.run.reconciling_calls import CallReconciliation, reconcile_call
from codeai_lab.run.recording import request_draft
from codeai_lab.run.resuming import resume_call
from codeai_lab.run.revisions import LAB, Revision, is_known_by_name
from codeai_lab.run.walk import Walk
from codeai_lab.store.protocol import Ledger

PRESENT_SETTINGS = Settings()


class Runtime:
    """Executes actions and calls under one rule set, on one ledger.

    Args:
        ledger: where everything is recorded.
        rules: the rule set, `lab` by default.
        clock, new_id: the machine's clock and random ids by default; hand in others to get the same bytes
            again.
        run_id, actor_id: under which names events are recorded.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        rules: Revision = LAB,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        policy: PolicyEngine | None = None,
        run_id: str = "run",
        actor_id: str = "runtime",
    ) -> None:
        self.rules = rules
        self._bench = Bench(
            ledger=ledger,
            clock=clock or SystemClock(),
            new_id=new_id or (lambda: str(uuid4())),
            policy=policy or PolicyEngine(),
            rules=rules.name,
            run_id=run_id,
            actor_id=actor_id,
            records_starts=None if is_known_by_name(rules) else rules.records_starts,
        )

    def execute_action(
        self,
        request: ActionRequest,
        *,
        authority: Authority = NO_AUTHORITY,
        adapter: Adapter,
        read_state: ReadState | None = None,
        wait: Wait | None = None,
    ) -> ActionResult:
        """Carry out an action at most as the rule set allows, and say what is recorded about it.

        Args:
            authority: what the caller may do now; nothing by default.
            adapter: carries out the effect; called at most one time by this call.
            read_state: reads the world that preconditions speak of; None when there is no reader.
            wait: asked while the key is in progress elsewhere, as `run.waiting` makes one; without it the
                answer is `in_progress` at once.

        Returns: the result; `status` is what was reported, `effect_state` what the record establishes. Under
            `lab` it may be `refused` (unknown effect: reconcile) or `in_progress`. A denial decides nothing
            for the key under `lab`: with authority, the same key is decided anew; under the chapter's rules
            the recorded denial is replayed.

        Raises: IdempotencyConflictError (definite); RefusedRequestError for an action id that is taken
            (definite); OutcomeNotRecordedError (indefinite); LedgerError; and whatever the adapter raises
            that the rule set does not record, KeyboardInterrupt always among it.
        Touches: the ledger, and through the adapter the world.
        """
        walk = self.walk(request, authority=authority, adapter=adapter, read_state=read_state, wait=wait)
        return walk.run()

    def walk(
        self,
        request: ActionRequest,
        *,
        authority: Authority = NO_AUTHORITY,
        adapter: Adapter,
        read_state: ReadState | None = None,
        wait: Wait | None = None,
    ) -> Walk:
        """Give the walk of a request, standing before its first stage; nothing has happened yet.

        Raises: RefusedRequestError (definite) for an adapter that cannot execute.
        """
        if not callable(getattr(adapter, "execute", None)):
            raise RefusedRequestError("The adapter must have a method execute(request).")
        request = replace(request)  # a copy: what anyone does to the caller's JSON later changes nothing here
        fingerprint = action_fingerprint(request)
        facts = Facts(
            request=request,
            authority=authority,
            adapter=adapter,
            read_state=read_state,
            wait=wait,
            fingerprint=fingerprint,
            requested=request_draft(self._bench, request, fingerprint),
        )
        return Walk(self._bench, self.rules, facts)

    def reconcile_action(
        self,
        action_id: str,
        *,
        authority: Authority = NO_AUTHORITY,
        effect_lookup: EffectLookup,
        performer: str = "operator",
    ) -> Reconciliation:
        """Ask the effect system what became of an action whose effect is unknown, and record the verdict.

        Args:
            authority: must grant `effect.reconcile` to the performer now.
            effect_lookup: the reading side of the effect system; it is never asked to act.

        Returns: the verdict (`effect_confirmed`, `no_effect_confirmed`, `still_unknown`), or why it was
            refused.
        Raises: RefusedRequestError for an action that is not recorded (definite); LedgerError.
        Touches: the ledger; the effect system, reading.
        """
        return reconcile_action(
            self._bench, action_id, authority=authority, effect_lookup=effect_lookup, performer=performer
        )

    def invoke_recorded_call(
        self,
        call: CallRequest,
        *,
        provider: Provider,
        authority: Authority = MAY_CALL,
        performer: str = "agent",
    ) -> CallResult:
        """Make a model call, or replay a recorded one with the same key and the same fingerprint.

        Args:
            authority: must grant `model.call` to the performer; who does not hand one in holds that grant.

        Returns: the result; `denied` is recorded as the completion of this request and asks nobody.
        Raises: IdempotencyConflictError (definite), before the provider is asked.
        """
        return invoke_recorded_call(
            self._bench, call, provider, record_conflict=self.rules.records_call_conflicts,
            authority=authority, performer=performer,
        )  # fmt: skip

    def resume_call(
        self,
        call_id: str,
        *,
        as_call_id: str,
        transport: Transport,
        settings: Settings = PRESENT_SETTINGS,
        authority: Authority = MAY_CALL,
        performer: str = "agent",
    ) -> CallAnswer:
        """Make a call of a work that was recorded as intended and of which no attempt started, or refuse.

        Args, returns and raises: as `run.resuming.resume_call` says.
        Touches: the ledger, and through the transport the provider.
        """
        return resume_call(
            self._bench, call_id, as_call_id=as_call_id, transport=transport, settings=settings,
            authority=authority, performer=performer,
        )  # fmt: skip

    def reconcile_call(
        self,
        call_id: str,
        *,
        authority: Authority = NO_AUTHORITY,
        receipt_lookup: EffectLookup,
        performer: str = "operator",
    ) -> CallReconciliation:
        """Look a call whose effect is unknown up in the provider's receipts, and record the verdict.

        Args:
            authority: must grant `effect.reconcile` to the performer now.

        Returns: the verdict, as for actions, or why it was refused.
        Raises: RefusedRequestError for a call that is not recorded (definite); LedgerError.
        Touches: the ledger; the provider's receipts, reading.
        """
        return reconcile_call(
            self._bench, call_id, authority=authority, receipt_lookup=receipt_lookup, performer=performer
        )


def counted_ids(prefix: str) -> Callable[[], str]:
    """Give a maker of ids that are the same on every run: `prefix-0001`, `prefix-0002`, ..."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers):04d}"
