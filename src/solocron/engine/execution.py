"""The execution of an attempt: prepare, start, call, outcome, hand over, in that order.

A claim that the store acknowledged becomes an `Execution`. It is the call that a dispatcher carries out, and it ends as
an `Outcome` for the finisher, or as a `HandBack` if nothing has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from solocron.dispatch import current
from solocron.dispatch.contract import NAME, Away, Elsewhere, RaisedElsewhere, Stop
from solocron.engine.attempts import Running
from solocron.errors import Cancelled, RunStopped, TimedOut
from solocron.jobs.registry import Handler
from solocron.jobs.results import NotKept, error_text, result_text
from solocron.jobs.retrying import RetryDecision
from solocron.jobs.unfinished import unfinished
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.transitions.finishing import Outcome
from solocron.stores.ward import Ward

if TYPE_CHECKING:
    from solocron.engine.runner import Runner

__all__ = ["Execution", "outcome_of"]

_SUCCEEDED = Outcome.succeeded()


class Execution:
    """One attempt on this node, as its dispatcher knows it.

    One object per pending call, to keep GC pressure low: a burst queues thousands of them. `Run` is built lazily.
    """

    __slots__ = ("_asks", "_handler", "_node", "_run", "job", "running")

    def __init__(self, node: Runner, job: Job, running: Running) -> None:
        self._node = node
        self.job = job
        self.running = running
        self._handler: Handler | None = None
        self._asks = False
        """True if the function to call next is `on_retry`, which decides whether the job's own follows."""
        self._run: Any = None

    # --- prepare: may this node run it? ----------------------------------------------------------------------------

    def prepare(self) -> bool:
        """Find the handler and check the claim against this node; False if it has been handed back."""
        node, hold, definition = self._node, self.running.hold, self.running.definition
        handler = node.calling.handlers.get(definition.handler)
        if handler is None:
            return self._refuse(f"this node has no handler {definition.handler!r}")
        if node.attempts.draining:
            return self._refuse("handed back: its node shuts down")
        # A claim may land long after it was sent. One that was cancelled meanwhile has an outcome without its permit.
        if hold.cancel is None and not node.permits.owns(hold):
            return self._refuse(f"the permit {hold.permit} is not this node's any more")
        # A handler that was registered for jobs added as data does not know where such a job runs.
        self._handler = handler.on_loop() if definition.run_in == "loop" else handler
        self._asks = hold.crashed and handler.on_retry is not None
        return True

    def _refuse(self, reason: str) -> bool:
        self._node.attempts.revoke(self.running)
        self._node.hand_back(self.running, reason)
        return False

    # --- start: give it to a dispatcher ----------------------------------------------------------------------------

    def start(self) -> bool:
        """Prepare and submit it; False if it has been handed back."""
        node, running = self._node, self.running
        node.context.runtime.failpoint("claimed")
        if not self.prepare():
            return False
        if running.hold.cancel is not None:
            node.hand_over(running, Outcome.cancelled(running.hold.cancel))
        else:
            # The claim of the attempt covers `on_retry` too: its deadline and its lease count from here.
            running.asking = self._asks
            self._submit()
        return True

    def _submit(self) -> None:
        definition = self.running.definition
        # What a carrier has brought here runs as it would run on a node.
        own = self._asks or definition.run_in == "auto" or definition.hand_over is not None
        where = self.handler.dispatcher if own else definition.run_in
        try:
            self.running.interrupt = self._node.calling.dispatchers[where].submit(self)
        except Exception as error:  # noqa: BLE001 - a dispatcher that cannot start a body has failed that run only
            what = "on_retry could not be called" if self._asks else "could not be started"
            self._node.hand_over(self.running, Outcome.failed(f"{what}: {error!r}"))

    # --- call: what the dispatcher asks for ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{NAME}{self.running.hold.run}"

    @property
    def handler(self) -> Handler:
        """The handler of the function to call next."""
        handler = self._handler
        assert handler is not None
        if self._asks:
            assert handler.on_retry is not None
            return handler.on_retry
        return handler

    def begin(self) -> bool:
        """Decide on the body's own thread, right before it, whether it may still start."""
        node, running = self._node, self.running
        if running.asking and not self._asks:
            return self._begin_repeat()
        if not node.attempts.begin(running):
            return False
        if not self._asks:
            self._begun(running.started_at)
        elif running.expires is not None:
            node.context.signals.watch.wake()
        return True

    def _begin_repeat(self) -> bool:
        """Start the body after its `on_retry`, unless a stop was requested meanwhile."""
        node, running = self._node, self.running
        stop = node.attempts.stopped(running)
        if stop is not None:
            node.hand_over(running, _stopped(stop))
            return False
        running.asking = False
        self._begun(node.attempts.lease.store_now())
        return True

    def _begun(self, at: int | None) -> None:
        node, running, hold = self._node, self.running, self.running.hold
        if running.expires is not None:
            node.context.signals.watch.wake()
        node.context.runtime.failpoint("begun")
        late = None if at is None else max(0, at - hold.slot) / 1_000_000
        node.context.events.emit(
            "started", job=running.job, handler=running.definition.handler, run=hold.run, slot=hold.slot,
            attempt=hold.attempt, fence=hold.fence, first=hold.tries == 0, origin=str(hold.origin),
            node=node.context.settings.node, lateness_s=late, trace=hold.trace,
        )  # fmt: skip

    def body(self) -> Callable[[], Any]:
        """Return the function to call: the job's inside its wrappers, or its `on_retry`."""
        if not self._asks:
            return self._node.calling.around(self.handler, self.run)
        return current.entered(self.run, self.handler.bind(self.run()), is_async=self.handler.is_async)

    def run(self) -> Any:
        """Return the run for the function, built when first needed: many functions take none."""
        if self._run is None:
            self._run = self._node.calling.make_run(self)
        return self._run

    def away(self) -> Away:
        """Describe the call for a dispatcher that leaves this process."""
        definition = self.running.definition
        return Away(
            handler=self.handler,
            run=self.run(),
            zone=self.zone,
            session=self.running.session,
            scope=self.scope,
            memory=definition.memory,
            cpu=definition.cpu,
            ward=self.ward,
            trusted_until=self._trusted_until,
            stopped=self.stopped,
            report=self.running.report,
            printed=self.running.printed,
        )

    def _trusted_until(self) -> float:
        return self._node.attempts.lease.trusted_until(self.running.session) or 0.0

    def stopped(self) -> Stop | None:
        """Return the reason for the body to stop, if there is one."""
        return self._node.attempts.stopped(self.running)

    @property
    def ward(self) -> Ward:
        """What the node of this attempt knows of its store going back: its effects are written under that."""
        return self._node.calling.ward

    @property
    def zone(self) -> str:
        """Zone in which people read the slots of the job."""
        return str((self.running.definition.schedule or {}).get("tz", "UTC"))

    @property
    def scope(self) -> str:
        """Scope in which fences are compared: job and shard, or the run if several slots of the job may run at once."""
        running, hold = self.running, self.running.hold
        if running.definition.overlap.kind == "allow":
            return hold.run
        return running.job if hold.shard is None else f"{running.job}#{hold.shard}"

    # --- outcome: from what the function returned or raised --------------------------------------------------------

    def end(self, value: Any, error: BaseException | None) -> None:
        """Take what the function returned or raised; after an `on_retry` that wants a repeat, submit the body."""
        if self._asks:
            self._answered(value, error)
        else:
            self._node.context.runtime.failpoint("body-ended")
            self.running.raised = error if _has_traceback(error) else None
            # A run that was never built, as for a function that takes none, has no steps.
            left = None if error is not None or self._run is None else self._run._unfinished()
            self._node.hand_over(self.running, outcome_of(self.running, value, error, left=left))

    def _answered(self, value: Any, error: BaseException | None) -> None:
        """Follow the result of `on_retry`. If it raised, the attempt has failed, and the next one calls it again."""
        node, running, hold = self._node, self.running, self.running.hold
        answer = None
        if error is None:
            try:
                answer = RetryDecision.read(value)
            except (Exception, RunStopped) as nonsense:  # noqa: BLE001 - a value may raise when it is looked at
                error = nonsense
        if answer is None:
            node.hand_over(running, outcome_of(running, None, error))
            return
        reason = answer.reason or "it gave no reason"
        node.context.events.emit(
            "retry asked", job=running.job, run=hold.run, attempt=hold.attempt, answer=answer.choice, reason=reason
        )
        if answer.choice == "repeat":
            self._asks, self._run = False, None
            self._submit()
            return
        running.asking = False
        if answer.choice == "done":
            node.hand_over(running, Outcome(status=Status.SUCCEEDED, reason=f"on_retry: done: {reason}"))
        else:
            node.hand_over(running, Outcome(status=Status.FAILED, reason=f"on_retry: given up: {reason}", final=True))


def outcome_of(running: Running, value: Any, error: BaseException | None, *, left: str | None = None) -> Outcome:
    """Return the outcome of an attempt whose function returned or raised this; a reason to stop takes precedence.

    `left` says what the function began and did not carry out.
    """
    try:
        return _outcome_of(running, value, error, left)
    except (Exception, RunStopped) as trouble:  # noqa: BLE001 - no memory for a traceback, a result that raises on access
        name = type(trouble).__name__
        if error is None:
            return Outcome(status=Status.SUCCEEDED, reason=f"its result could not be written down ({name})")
        return Outcome.failed(f"{type(error).__name__}; what it says could not be written down ({name})")


def _outcome_of(running: Running, value: Any, error: BaseException | None, left: str | None) -> Outcome:
    left = left if value is None else unfinished(value) or left
    stop = running.stop
    if stop is not None and (stop.kind == "timeout" or not (error is None or isinstance(error, Exception))):
        return _stopped(stop)
    if error is None:
        return _succeeded(value) if left is None else Outcome.failed(left)
    if isinstance(error, Cancelled):
        return Outcome.cancelled(str(error))
    if isinstance(error, TimedOut):
        return Outcome.timed_out(str(error))
    if type(error).__name__ == "CancelledError":
        return Outcome.cancelled("its event loop was closed, or the coroutine cancelled itself", again=True)
    text = error_text(str(error) if isinstance(error, Elsewhere) else error)
    if running.asking:
        text = f"on_retry returned no decision, so the run was not repeated:\n{text}"
    return Outcome.failed(text)


def _has_traceback(error: BaseException | None) -> bool:
    """Return whether the exception tells a log more than its message does; a killed process raised none."""
    return not isinstance(error, Elsewhere) or isinstance(error, RaisedElsewhere)


def _stopped(stop: Stop) -> Outcome:
    if stop.kind == "timeout":
        return Outcome.timed_out(stop.reason)
    return Outcome.cancelled(stop.reason, again=stop.kind == "shutdown")


def _succeeded(value: Any) -> Outcome:
    """Keep what the function returned with the run, if it is small JSON."""
    if value is None:
        return _SUCCEEDED
    text = value if isinstance(value, NotKept) else result_text(value)
    if isinstance(text, NotKept):
        return Outcome(status=Status.SUCCEEDED, reason=text.reason)
    return Outcome.succeeded(text)
