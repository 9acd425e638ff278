"""Starts the executions of a node, asks them to stop, and passes their outcomes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from solocron.dispatch.contract import Dispatcher, Stop
from solocron.engine.attempts import Attempts, Running
from solocron.engine.execution import Execution
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.publication import Publication
from solocron.jobs.registry import Handler
from solocron.model._fast.values import replace
from solocron.model.documents.job import Hold, Job
from solocron.model.transitions.finishing import HandBack, HandOver, NotPublished, Outcome
from solocron.stores.ward import Ward

__all__ = ["Around", "Calling", "MakeRun", "Runner"]

Ended = Callable[[Running, Outcome | HandBack | HandOver | NotPublished], None]
MakeRun = Callable[[Execution], Any]
"""Builds the run that the function of an execution gets."""
Around = Callable[[Handler, Callable[[], Any]], Callable[[], Any]]
"""Wraps the call of a handler. The run is built only if the handler or a wrapper takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """Everything needed to call a function of the user: the handlers, their dispatchers, and their wrappers."""

    handlers: Mapping[str, Handler]
    dispatchers: Mapping[str, Dispatcher]
    around: Around
    make_run: MakeRun
    ward: Ward
    """What the node knows of its store going back: the effects of its runs are written under that."""


class Runner:
    """The executions of one node, and what all of them need."""

    def __init__(
        self, context: NodeContext, attempts: Attempts, permits: Permits, ended: Ended, calling: Calling
    ) -> None:
        self.context = context
        self.attempts = attempts
        self.permits = permits
        self._ended = ended
        self.calling = calling

    def start(self, job: Job, hold: Hold, session: str) -> bool:
        """Start the body of an acknowledged claim; False if the claim is known already or cannot be trusted."""
        running = self.attempts.add(job, hold, session)
        if running is None:
            return False
        try:
            if hold.offer is not None:
                return Publication(self, job, running, hold.offer).start()
            return Execution(self, job, running).start()
        except Exception as error:
            if self.attempts.revoke(running):
                self.hand_back(running, f"could not be started: {error!r}")
            raise

    def give_back(self, job: Job, hold: Hold, session: str, reason: str) -> None:
        """Hand back a claim of this session that no caller waits for."""
        running = self.attempts.add(job, hold, session)
        if running is not None and self.attempts.revoke(running):
            self.hand_back(running, reason)

    def stop(self, running: Running, stop: Stop) -> None:
        """Ask a body to stop; one that has not begun never does."""
        if self.attempts.revoke(running):
            if stop.kind == "shutdown" or running.hold.handing:
                self.hand_back(running, stop.reason)
            else:
                self.hand_over(running, Outcome.cancelled(stop.reason))
            return
        if not self.attempts.ask_to_stop(running, stop):
            return
        self.context.signals.watch.wake()
        self.context.events.emit("cancelling", job=running.job, run=running.hold.run, why=stop.kind, reason=stop.reason)
        keep = stop.kind == "lost" and running.definition.on_lost == "finish"
        if running.interrupt is not None and not keep:
            running.interrupt()

    def abandon(self, running: Running) -> None:
        """End the claim of a body that does not end (on_stuck="abandon")."""
        if self.attempts.abandon(running):
            stop = running.stop or Stop("cancel", "asked to stop")
            reason = f"{stop.reason}; it did not end and was let go"
            outcome = Outcome.timed_out(reason) if stop.kind == "timeout" else Outcome.cancelled(reason)
            self._ended(running, _complete(running, outcome))

    # --- hand over -------------------------------------------------------------------------------------------------

    def hand_over(self, running: Running, outcome: Outcome) -> None:
        """Give the outcome to the finisher if the claim is still ours; the store refuses that of a lost session."""
        outcome = _complete(running, outcome)
        if self.attempts.body_ended(running):
            self._ended(running, outcome)
        else:
            # The job may be claimed here again, and the lost session be closed.
            self.context.signals.keep.wake()
            self.context.signals.claim.wake()
            # The store would refuse it, so it is not even asked; to those who look it is the same.
            self.attempts.lease.refused(running.hold.run, running.hold.fence, str(outcome.status))
            self.context.events.emit(
                "refused", job=running.job, run=running.hold.run, fence=running.hold.fence, outcome=outcome.status,
                reason="its lease was lost before it ended",
            )  # fmt: skip

    def handed_over(self, running: Running, end: Outcome | HandOver | NotPublished) -> None:
        """Give the end of a publication to the finisher. That of a lost session is dropped: the sweeper sees to it."""
        if self.attempts.body_ended(running):
            self._ended(running, end)
        else:
            self.context.signals.keep.wake()
            self.context.signals.claim.wake()

    def hand_back(self, running: Running, reason: str) -> None:
        """Return a claim whose body never started to the store at once; that costs no retry."""
        if self.attempts.body_ended(running):
            self._ended(running, HandBack(reason))


def _complete(running: Running, outcome: Outcome) -> Outcome:
    """Return the outcome with its start, its progress, and whether the `on_retry` is still open."""
    progress = None
    with suppress(Exception):  # a fault in the progress must not hide the outcome
        progress = json.dumps(running.progress) if running.progress is not None else None
    return replace(outcome, started_at=running.started_at, progress=progress, unasked=running.asking)
