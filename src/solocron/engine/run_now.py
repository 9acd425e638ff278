"""Claims one run by name, at once, and starts it: for a caller that waits for its end in this process."""

from __future__ import annotations

from typing import Any

from solocron.engine.attempts import Attempts
from solocron.engine.claim_pass import Starter
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.requirements import Requirements
from solocron.errors import StoreUnavailable
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.refusals import Refusal
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs
from solocron.model.transitions.run_now import claim_now
from solocron.stores.contract import Applied, Gate, Named, Verdict
from solocron.stores.until_known import update_until_known

__all__ = ["Answer", "RunNow"]

Answer = Hold | Needs | Refusal | None
"""The hold; a limit without a free permit; a refusal; None if the job is not there, or is another application's."""


class RunNow:
    """Requests and claims in one step under this node's session."""

    def __init__(
        self,
        context: NodeContext,
        attempts: Attempts,
        gate: NamespaceGate,
        requirements: Requirements,
        starter: Starter,
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._gate = gate
        self._requirements = requirements
        self._starter = starter

    def claim(self, job: str, payload: Any, shard: int | str | None) -> Answer:
        """Claim a new run of the job and start it; the answer says why not, if it could not be claimed."""
        session = self._attempts.lease.session
        if session is None or not self._gate.may_claim():
            raise StoreUnavailable(f"{job} was not run: this process has no session in the store. Try again.")
        request = self._context.runtime.rng.token()
        epoch, gate, pauses = self._gate.for_claims()
        by = self._requirements.claimant(session, alone=True, pauses=pauses)
        call = self._attempts.call_begins()
        try:
            applied = self._update(job, by, gate, request, payload, shard)
            answer: Answer = applied.results[0].answer
            if isinstance(answer, Needs):
                equipped = self._requirements.equip({job: answer}, {}, by)
                if equipped:
                    try:
                        applied = self._update(job, equipped[job], gate, request, payload, shard)
                    except BaseException:
                        self._requirements.doubt(equipped)
                        raise
                    self._requirements.use(applied, equipped, session)
                    answer = applied.results[0].answer
            self._starter.start(applied.results, session, epoch)
        finally:
            # Not before the claim is in the table: the keeper would take it for one whose reply was lost.
            self._attempts.call_ends(call)
        return answer

    def _update(
        self, job: str, by: Claimant, gate: Gate, request: str, payload: Any, shard: int | str | None
    ) -> Applied:
        def change(doc: Job | Absent, now: int) -> Change | None:
            return claim_now(
                doc, request=request, payload=payload, shard=shard, now=now, by=by, resolve=self._context.resolve
            )

        applied = update_until_known(
            self._context.store, Named(Kind.JOB, (job,)), change, session=by.session, gate=gate
        )
        open_or_refused = applied.shut or not applied.alive or not applied.results
        if open_or_refused or applied.results[0].verdict not in (Verdict.APPLIED, Verdict.DECLINED):
            raise StoreUnavailable(f"{job} was not run: the store did not acknowledge the claim. Try again.")
        return applied
