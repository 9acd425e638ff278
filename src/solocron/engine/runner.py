"""Turns a claim into a call: builds the run, hands it to a dispatcher, and turns how it ended into an outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

from solocron.clock import from_us
from solocron.dispatch.contract import Away, Dispatcher, Stop
from solocron.engine.attempts import Board, Running
from solocron.engine.context import AsyncRun, Previous, Run
from solocron.engine.durable import MakeVerbs
from solocron.engine.outcomes import outcome_of
from solocron.engine.permits import Permits
from solocron.engine.settings import Settings
from solocron.errors import InvalidError
from solocron.events import Events
from solocron.jobs.registry import Handler
from solocron.jobs.retrying import RetryDecision
from solocron.model._fast.values import replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status, key_of
from solocron.model.transitions.finishing import HandBack, Outcome
from solocron.runtime import Runtime
from solocron.schedules.zone import load_zone

__all__ = ["Runner"]

Ended = Callable[[Running, Outcome | HandBack], None]
Around = Callable[[Handler, Callable[[], Run]], Callable[[], Any]]
"""The call of a handler inside its wrappers; the run is made if anybody there wants it."""


class Runner:
    """Starts bodies and asks them to stop."""

    def __init__(
        self,
        *,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        handlers: Mapping[str, Handler],
        dispatchers: Mapping[str, Dispatcher],
        around: Around,
        ended: Ended,
        permits: Permits,
        verbs: MakeVerbs | None = None,
    ) -> None:
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._handlers = handlers
        self._dispatchers = dispatchers
        self._around = around
        self._ended = ended
        self._permits = permits
        self._verbs = verbs
        self.watch: Callable[[], None] = lambda: None
        """Called when a body has got a moment at which someone must look after it."""
        self.freed: Callable[[], None] = lambda: None
        """Called when an old body has ended whose job this node could not claim until then."""

    def start(self, job: Job, hold: Hold, session: str) -> bool:
        """Start the body of an acknowledged claim; False when the claim is known already or cannot be trusted."""
        running = self._board.add(job, hold, session)
        if running is None:
            return False
        try:
            return self._start(job, hold, running)
        except Exception as error:
            if self._board.revoke(running):
                self._hand_back(running, f"could not be started: {error!r}")
            raise

    def _start(self, job: Job, hold: Hold, running: Running) -> bool:
        self._runtime.failpoint("claimed")
        handler = self._handlers.get(job.definition.handler)
        if handler is None:
            self._board.revoke(running)
            self._hand_back(running, f"this node has no handler {job.definition.handler!r}")
            return False
        if job.definition.run_in == "loop":  # a handler that was registered for jobs added as data knows of no choice
            handler = handler.on_loop()
        if self._board.draining:
            self._board.revoke(running)
            self._hand_back(running, "handed back: its node shuts down")
            return False
        if hold.cancel is not None:
            self._settle(running, Outcome.cancelled(hold.cancel))
            return True
        if not self._permits.owns(hold):  # a claim that landed long after it was sent
            self._board.revoke(running)
            self._hand_back(running, f"the permit {hold.permit} is not this node's any more")
            return False
        if hold.crashed and handler.on_retry is not None:
            self._ask(_Question(_Repeat(self, job, running, handler), handler.on_retry))
        else:
            self._submit(_Body(self, job, running, handler))
        return True

    def _submit(self, call: _Body) -> None:
        """Hand the body to its dispatcher."""
        running, run_in = call.running, call.running.definition.run_in
        where = call.handler.dispatcher if run_in == "auto" else run_in
        try:
            running.interrupt = self._dispatchers[where].submit(call)
        except Exception as error:  # noqa: BLE001 - a dispatcher that cannot start a body has failed that run only
            self._settle(running, Outcome.failed(f"could not be started: {error!r}"))

    # --- before a run is repeated after a crash ------------------------------------------------------------------

    def _ask(self, question: _Question) -> None:
        """Ask `on_retry` first, under the very claim of the attempt: its deadline and its lease count from here."""
        running = question.running
        running.asking = True
        try:
            running.interrupt = self._dispatchers[question.handler.dispatcher].submit(question)
        except Exception as error:  # noqa: BLE001 - as for bodies
            self._settle(running, Outcome.failed(f"on_retry could not be asked: {error!r}"))

    def _begin_asking(self, running: Running) -> bool:
        if not self._board.begin(running):
            return False
        if running.expires is not None:
            self.watch()
        return True

    def _asked(self, running: Running, value: Any, error: BaseException | None, repeat: _Repeat) -> None:
        """Do as it answered; without an answer the attempt has failed, and the next one asks again."""
        try:
            answer = None if error is not None else RetryDecision.read(value)
        except InvalidError as nonsense:
            answer, error = None, nonsense
        if answer is None:
            self._settle(running, outcome_of(running, None, error))
            return
        hold, reason = running.hold, answer.reason or "it gave no reason"
        self._events.emit(
            "retry asked", job=running.job, run=hold.run, attempt=hold.attempt, answer=answer.choice, reason=reason
        )
        if answer.choice == "repeat":
            self._submit(repeat)
            return
        running.asking = False
        if answer.choice == "done":
            self._settle(running, Outcome(status=Status.SUCCEEDED, reason=f"on_retry: done: {reason}"))
        else:
            self._settle(running, Outcome(status=Status.FAILED, reason=f"on_retry: given up: {reason}", final=True))

    def _go_on(self, running: Running) -> bool:
        """The body starts after its `on_retry`, unless someone has asked it to stop meanwhile."""
        stop = self._board.stopped(running)
        if stop is None:
            running.asking = False
            self._started(running, self._board.store_now())
            return True
        outcome = Outcome.cancelled(stop.reason, again=stop.kind == "shutdown")
        self._settle(running, Outcome.timed_out(stop.reason) if stop.kind == "timeout" else outcome)
        return False

    def _away(self, running: Running, handler: Handler, run: Run) -> Away:
        """The same call for a dispatcher that leaves this process."""
        definition = running.definition

        def trusted_until() -> float:
            until = self._board.trusted_until()
            return until if until is not None and self._board.session == running.session else 0.0

        return Away(
            handler=handler,
            run=run,
            zone=_zone(definition),
            session=running.session,
            scope=_scope(running),
            memory=definition.memory,
            cpu=definition.cpu,
            trusted_until=trusted_until,
            stopped=lambda: self._board.stopped(running),
            report=running.report,
        )

    def stop(self, running: Running, stop: Stop) -> None:
        """Ask a body to stop; one that has not begun never does."""
        if self._board.revoke(running):
            if stop.kind == "shutdown":
                self._hand_back(running, stop.reason)
            else:
                self._settle(running, Outcome.cancelled(stop.reason))
            return
        if not self._board.ask_to_stop(running, stop):
            return
        self.watch()
        self._events.emit("cancelling", job=running.job, run=running.hold.run, why=stop.kind, reason=stop.reason)
        keep = stop.kind == "lost" and running.definition.on_lost == "finish"
        if running.interrupt is not None and not keep:
            running.interrupt()

    def abandon(self, running: Running) -> None:
        """End the claim of a body that will not end (on_stuck="abandon")."""
        if self._board.abandon(running):
            stop = running.stop or Stop("cancel", "asked to stop")
            reason = f"{stop.reason}; it did not end and was let go"
            outcome = Outcome.timed_out(reason) if stop.kind == "timeout" else Outcome.cancelled(reason)
            self._ended(running, self._timed(running, outcome))

    def _begin(self, running: Running) -> bool:
        if not self._board.begin(running):
            return False
        self._started(running, running.started_at)
        return True

    def _started(self, running: Running, at: int | None) -> None:
        if running.expires is not None:
            self.watch()
        self._runtime.failpoint("begun")
        hold = running.hold
        late = None if at is None else max(0, at - hold.slot) / 1_000_000
        self._events.emit(
            "started", job=running.job, run=hold.run, slot=hold.slot, attempt=hold.attempt, fence=hold.fence,
            node=self._settings.node, lateness_s=late,
        )  # fmt: skip

    def _end(self, running: Running, value: Any, error: BaseException | None) -> None:
        self._runtime.failpoint("body-ended")
        self._settle(running, outcome_of(running, value, error))

    def _settle(self, running: Running, outcome: Outcome) -> None:
        """Pass the outcome on, if the claim is still ours; what a body of a lost session did is refused anyway."""
        outcome = self._timed(running, outcome)
        if self._board.body_ended(running):
            self._ended(running, outcome)
        else:
            self.freed()
            self._events.emit(
                "refused", job=running.job, run=running.hold.run, fence=running.hold.fence, outcome=outcome.status,
                reason="its lease was lost before it ended",
            )  # fmt: skip

    def _hand_back(self, running: Running, reason: str) -> None:
        """A claim that never started goes back at once, on nobody's retry budget."""
        if self._board.body_ended(running):
            self._ended(running, HandBack(reason))

    def _timed(self, running: Running, outcome: Outcome) -> Outcome:
        progress = None
        with suppress(Exception):  # how far it came is worth less than how it ended
            progress = json.dumps(running.progress) if running.progress is not None else None
        return replace(outcome, started_at=running.started_at, progress=progress, unasked=running.asking)

    def _run(self, job: Job, hold: Hold, handler: Handler, running: Running) -> Run:
        zone = _zone(job.definition)
        last = job.last
        cls = AsyncRun if handler.is_async else Run
        run = cls(
            id=hold.run,
            job=job.name,
            slot=_moment(hold.slot, zone),
            attempt=hold.attempt,
            fence=hold.fence,
            key=key_of(job.name, hold.origin, hold.slot, hold.request, hold.shard),
            node=hold.node,
            deadline=None if hold.deadline is None else _moment(hold.deadline, zone),
            payload=job.definition.payload if hold.payload is None else hold.payload,
            previous=None
            if last is None
            else Previous(
                last.run,
                _moment(last.slot, zone),
                last.attempt,
                last.status,
                _moment(last.finished_at, zone),
                last.error,
            ),
            stopped=lambda: self._board.stopped(running),
            report=running.report,
            shard=hold.shard,
            shards=hold.shards,
        )
        if self._verbs is not None:
            run._bind(self._verbs, session=running.session, scope=_scope(running))
        return run


class _Call:
    """A claim on its way into a function, as dispatchers know it.

    One object for all that they may ask: a burst makes thousands that wait, and what waits is what the collector of
    the language looks through. The run is made when somebody wants it; many functions take none.
    """

    __slots__ = ("_run", "handler", "job", "runner", "running")

    def __init__(self, runner: Runner, job: Job, running: Running, handler: Handler) -> None:
        self.runner = runner
        self.job = job
        self.running = running
        self.handler = handler
        self._run: Run | None = None

    @property
    def name(self) -> str:
        return f"solocron {self.running.hold.run}"

    def run(self) -> Run:
        if self._run is None:
            self._run = self.runner._run(self.job, self.running.hold, self.handler, self.running)
        return self._run

    def away(self) -> Away:
        return self.runner._away(self.running, self.handler, self.run())


class _Body(_Call):
    """The job's function."""

    __slots__ = ()

    def begin(self) -> bool:
        return self.runner._begin(self.running)

    def body(self) -> Callable[[], Any]:
        return self.runner._around(self.handler, self.run)

    def end(self, value: Any, error: BaseException | None) -> None:
        self.runner._end(self.running, value, error)


class _Repeat(_Body):
    """The same after `on_retry` has said so."""

    __slots__ = ()

    def begin(self) -> bool:
        return self.runner._go_on(self.running)


class _Question(_Call):
    """Its `on_retry`, and what is to follow if that says so."""

    __slots__ = ("_repeat",)

    def __init__(self, repeat: _Repeat, hook: Handler) -> None:
        super().__init__(repeat.runner, repeat.job, repeat.running, hook)
        self._repeat = repeat

    def begin(self) -> bool:
        return self.runner._begin_asking(self.running)

    def body(self) -> Callable[[], Any]:
        return self.handler.bind(self.run())

    def end(self, value: Any, error: BaseException | None) -> None:
        self.runner._asked(self.running, value, error, self._repeat)


def _zone(definition: Definition) -> str:
    """The zone in which people read the slots of a job."""
    return str((definition.schedule or {}).get("tz", "UTC"))


@lru_cache(maxsize=256)  # jobs that fall due together share their slot
def _moment(us: int, zone: str) -> datetime:
    return from_us(us).astimezone(load_zone(zone).info)


def _scope(running: Running) -> str:
    """Fences are compared per job and shard; where several slots of it may run at once, per run."""
    if running.definition.overlap.kind == "allow":
        return running.hold.run
    return running.job if running.hold.shard is None else f"{running.job}#{running.hold.shard}"
