"""Compares what the store says this session holds with what the node runs, with every renewal.

A claim whose reply was lost is adopted, a request to stop reaches its body, and a hold of an earlier time that came
back with the store is ended.
"""

from __future__ import annotations

from solocron.dispatch.contract import Stop
from solocron.engine.attempts import Attempts
from solocron.engine.memory import Memory
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.runner import Runner
from solocron.model.change import Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status
from solocron.model.transitions.finishing import Outcome, finish
from solocron.model.transitions.untold import WENT_BACK
from solocron.stores.contract import HeldBy, Named

__all__ = ["Reconciler"]


class Reconciler:
    """One complete comparison of the holds of the node's session."""

    def __init__(
        self, context: NodeContext, attempts: Attempts, runner: Runner, permits: Permits, memory: Memory
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._runner = runner
        self._permits = permits
        self._memory = memory
        self.looked_at = 0
        """Store time of the renewal before the last complete comparison."""

    def nothing_held(self, session: str, seen_at: int) -> None:
        """Note that the renewal at store time `seen_at` observed that the session holds nothing: that was the look."""
        self.looked_at = seen_at
        self._permits.reconcile(session, ())

    def reconcile(self, session: str, epoch: str, seen_at: int) -> None:
        """Compare, after a renewal at store time `seen_at`."""
        asked = self._context.runtime.clock.boot()
        held = self._context.store.read(HeldBy(session))
        holds = [(job, hold) for job in held if isinstance(job, Job) for hold in job.active if hold.session == session]
        ours = {running.key: running for running in self._attempts.running()}
        for _, hold in holds:
            running = ours.get((hold.run, hold.fence))
            if running is not None and hold.cancel is not None:
                self._runner.stop(running, Stop("cancel", hold.cancel))
        for job, hold in self._attempts.unknown(holds):
            if self._can_be_new(hold):
                self._adopt(job, hold, session, epoch)
            else:
                self._end_old(job, hold)
        for running in self._attempts.vanished({(hold.run, hold.fence) for _, hold in holds}, asked):
            if not running.hold.handing:  # one that hands over may have been overtaken by a worker, and ends soon
                self._runner.stop(running, Stop("lost", "its claim is no longer in the store"))
        self.looked_at = seen_at
        self._permits.reconcile(session, [hold for _, hold in holds])

    def _can_be_new(self, hold: Hold) -> bool:
        """Return whether a hold that this node does not know can be a claim whose reply was lost.

        Then it was committed since the last complete comparison, and this process never knew it. The time of a claim is
        read before its commit, which may follow as late as a statement may take: less than a lease. This process
        remembers its own claims for two.
        """
        recent = hold.claimed_at > self.looked_at - self._context.settings.lease_us
        return recent and not self._memory.knows((hold.run, hold.fence))

    def _adopt(self, job: Job, hold: Hold, session: str, epoch: str) -> None:
        if self._context.guest:
            self._runner.give_back(job, hold, session, "its worker had given the message up")
        elif self._memory.claimed(epoch, [(job, hold)]):
            node = self._context.settings.node
            self._context.events.emit("adopted", job=job.name, run=hold.run, fence=hold.fence, node=node)
            self._runner.start(job, hold, session)

    def _end_old(self, job: Job, hold: Hold) -> None:
        """End a hold of an earlier time that has come back: as it ended then, or as lost if that is not remembered."""
        resolve = self._context.resolve
        outcome = self._memory.outcome((hold.run, hold.fence)) or Outcome(status=Status.LOST, reason=WENT_BACK)
        self._context.store.update(
            Named(Kind.JOB, (job.name,)),
            lambda doc, at: finish(doc, run=hold.run, fence=hold.fence, outcome=outcome, now=at, resolve=resolve),
        )
        self._context.events.emit(
            "ended anew", job=job.name, run=hold.run, fence=hold.fence, node=self._context.settings.node,
            outcome=outcome.status,
        )  # fmt: skip
