"""The node: its loops wired together, its start and its drain. Everything it does is in the loops' own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solocron.dispatch.contract import Dispatcher, Stop
from solocron.engine.alarms import Alarms
from solocron.engine.attempts import Board, Phase, Standing
from solocron.engine.calendars import Calendars
from solocron.engine.claimer import Claimer
from solocron.engine.durable import MakeVerbs
from solocron.engine.finisher import Finisher
from solocron.engine.keeper import Keeper
from solocron.engine.loop import Loop
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.engine.recovery import Recovery
from solocron.engine.registrar import Registrar
from solocron.engine.runner import Around, Runner
from solocron.engine.settings import Settings
from solocron.engine.sweeper import Sweeper
from solocron.engine.transactional_triggers import Intake
from solocron.engine.watchdog import Watchdog
from solocron.errors import StoreUnavailable
from solocron.events import Events
from solocron.jobs.registry import Declared, Handler
from solocron.model.applications import Fleet, advertised
from solocron.model.change import Kind
from solocron.model.documents.alarm import Bounds
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session, end, swept
from solocron.model.pools import TICKED
from solocron.model.timetable import Resolve
from solocron.runtime import Runtime
from solocron.stores.contract import Named, Store, Verdict

__all__ = ["Node", "Parts"]


HANDLERS_LISTED = 2_000
"""A session lists what it can run up to here; beyond, its document would weigh more than it tells."""

HEARING = 0.5
"""Seconds after which a node that could not listen for changes tries again, at the latest."""

GOODBYES = 3
"""How often a session that others write at the same moment is told its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a node is made of; the simulator supplies its own of each."""

    store: Store
    runtime: Runtime
    settings: Settings
    events: Events
    declared: Mapping[str, Declared]
    handlers: Mapping[str, Handler]
    dispatchers: Mapping[str, Dispatcher]
    around: Around
    resolve: Resolve
    zone_data: str
    verbs: MakeVerbs | None = None
    alarms: Bounds | None = None
    calendars: Calendars | None = None


class Node:
    """One running engine. `start` returns at once; `drain` ends it politely."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        store, runtime, settings, events = parts.store, parts.runtime, parts.settings, parts.events
        self.settings = settings
        self.process = runtime.process()
        self.board = Board(runtime, settings)
        self.registrar = Registrar(
            store=store, settings=settings, events=events, declared=parts.declared, resolve=parts.resolve,
            zone_data=parts.zone_data, calendars=parts.calendars, handlers=parts.handlers,
        )  # fmt: skip
        self.memory = Memory(runtime)
        self.recovery = Recovery(
            store=store, board=self.board, runtime=runtime, settings=settings, events=events, memory=self.memory,
            resolve=parts.resolve, changed=self._namespace_changed, checked=self._register,
            put_back_permits=lambda session, update_all: self.permits.put_back(session, update_all),
        )  # fmt: skip
        self.permits = Permits(store=store, runtime=runtime, node=settings.node, gate=self.recovery.gate)
        self.finisher = Finisher(
            store=store, board=self.board, runtime=runtime, settings=settings, events=events, resolve=parts.resolve,
            wake_claimer=self._look_at, flooded=lambda: self.claimer.flooded, permits=self.permits, memory=self.memory,
        )  # fmt: skip
        self.runner = Runner(
            board=self.board, runtime=runtime, settings=settings, events=events, handlers=parts.handlers,
            dispatchers=parts.dispatchers, around=parts.around, ended=self.finisher.add,
            permits=self.permits, verbs=parts.verbs,
        )  # fmt: skip
        self.claimer = Claimer(
            store=store, board=self.board, runtime=runtime, settings=settings, events=events, handlers=parts.handlers,
            resolve=parts.resolve, runner=self.runner, permits=self.permits, recovery=self.recovery, memory=self.memory,
            wake_keeper=self._attend, calendars=parts.calendars,
        )  # fmt: skip
        self.keeper = Keeper(
            store=store, board=self.board, runtime=runtime, settings=settings, events=events, runner=self.runner,
            permits=self.permits, recovery=self.recovery, memory=self.memory, resolve=parts.resolve,
            describe=self._describe, begun=self._session_begun, lost=self.lose,
        )  # fmt: skip
        self.watchdog = Watchdog(
            board=self.board, runtime=runtime, settings=settings, events=events, runner=self.runner, lost=self.lose,
            rest=self.keeper.rest,
        )  # fmt: skip
        self.sweeper = Sweeper(
            store=store, board=self.board, runtime=runtime, settings=settings, events=events, resolve=parts.resolve,
            recovery=self.recovery, wake_claimer=self._look_at, fleet_changed=self._review, calendars=parts.calendars,
        )  # fmt: skip
        self.intake = Intake(
            store=store, board=self.board, runtime=runtime, events=events, resolve=parts.resolve,
            wake_claimer=self._look_at,
        )  # fmt: skip
        self._listening = True
        self._ticking = False
        self._loops = {
            name: Loop(name, step, runtime=runtime, events=events, patience=HEARING if name == "listener" else 1.0)
            for name, step in (
                ("keeper", self.keeper.step),
                ("watchdog", self.watchdog.step),
                ("claimer", self.claimer.step),
                ("finisher", self.finisher.step),
                ("sweeper", self.sweeper.step),
                ("listener", self._listen),
            )
        }
        self.alarms: Alarms | None = None
        if parts.alarms is not None:
            self.alarms = Alarms(
                store=store, board=self.board, runtime=runtime, settings=settings, events=events, bounds=parts.alarms
            )
            self._loops["alarms"] = Loop("alarms", self.alarms.step, runtime=runtime, events=events)
        for name, loop in self._loops.items():
            if name != "claimer":  # of what a step that raised had done, the claimer was perhaps not told
                loop.recovered = self.claimer.look_again
        self.claimer.wake = self._loops["claimer"].wake
        self.board.replan = self.claimer.look_again
        self.claimer.unsettled = self._unsettled
        self.permits.freed = self.claimer.look_again
        self.finisher.wake = self._loops["finisher"].wake
        self.claimer.calmed = self._loops["finisher"].wake
        self.runner.watch = self._loops["watchdog"].wake
        self.runner.freed = self._freed

    # --- life ----------------------------------------------------------------------------------------------------

    def start(self, *, ticking: bool = False) -> None:
        """Begin a session, write the definitions, run the loops. A store that is away is waited for in the background.

        `ticking`: only what keeps the session alive and records outcomes; the caller claims.
        """
        self._ticking = ticking
        try:
            self.keeper.step(self._parts.runtime.clock.boot())
        except StoreUnavailable as error:
            # A node is patient: the keeper's loop goes on trying, and nothing is claimed before it succeeds.
            self._parts.events.emit("store error", loop="keeper", error=str(error), failures=1)
        if ticking:
            self.recovery.claim_at_once()
        loops = ("keeper", "watchdog", "finisher") if ticking else tuple(self._loops)
        for name in loops:
            self._loops[name].start()
        self._parts.events.emit(
            "node started", node=self.settings.node, jobs=len(self._parts.declared), session=self.board.session
        )

    def wake(self) -> None:
        """Something changed that this node should look at now."""
        self.claimer.look_again()

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs here and every outcome is in the store."""
        clock = self._parts.runtime.clock
        until = None if timeout is None else clock.boot() + timeout
        while True:
            self.board.ended.clear()
            if not self.board.running() and not self.finisher.waiting():
                return True
            left = None if until is None else until - clock.boot()
            if left is not None and left <= 0:
                return False
            self.board.ended.wait(left)

    def claim_and_wait(self) -> None:
        """For an external trigger: run what is due, and what that makes due, then return.

        Claims end after a lease, or a job that is due every second would keep one pass going for ever.
        """
        clock = self._parts.runtime.clock
        until = clock.boot() + self.settings.lease
        while True:
            self.board.ended.clear()
            # Before the claim: what ends after it may have made something due that it could not see.
            idle = not self.board.running() and not self.finisher.waiting()
            if clock.boot() < until and self.claimer.claim_once():
                continue
            if idle:
                if clock.boot() < until and self.registrar.noted and self._review(()):
                    continue
                return
            if self.board.running() or self.finisher.waiting():
                self.board.ended.wait(self.settings.beat)

    def drain(self, grace: float) -> bool:
        """Stop claiming, let runs end within the grace, hand back what never started; True when nothing is left."""
        self.board.draining = True
        for name, loop in self._loops.items():
            if name not in ("keeper", "watchdog", "finisher"):
                loop.stop()
        self._listening = False
        try:
            self._parts.store.signal()  # the listener sits in a wait of its own
        except Exception as error:  # noqa: BLE001 - whatever it is, the node leaves
            self._parts.events.emit("store error", loop="drain", error=str(error) or repr(error), failures=1)
        clock = self._parts.runtime.clock
        until = clock.boot() + grace
        # A claim under way may still bring something: that is handed back.
        self._loops["claimer"].join(timeout=min(grace, self.settings.beat))
        for running in self.board.running():
            if running.phase is Phase.CLAIMED:
                self.runner.stop(running, Stop("shutdown", "handed back: its node shuts down"))
        if not self.wait_idle(max(0.0, until - clock.boot())):
            for running in self.board.running():
                self.runner.stop(running, Stop("shutdown", "cut off: its node shuts down"))
            self.wait_idle(min(5.0, self.settings.lease / 3))
        self._loops["keeper"].stop()
        self._loops["keeper"].join(timeout=2.0)
        clean, session = self.board.leave()
        if session is not None:
            self._say_goodbye(session)
        for loop in self._loops.values():
            loop.stop()
        for loop in self._loops.values():
            loop.join(timeout=2.0)
        for dispatcher in self._parts.dispatchers.values():
            dispatcher.close()
        self._parts.events.emit("node stopped", node=self.settings.node, clean=clean)
        return clean

    def _say_goodbye(self, session: str) -> None:
        """End the session, now that no body is left. If the store is away, its lease simply runs out."""
        try:
            which = Named(Kind.SESSION, (session,))
            over, why = False, TICKED if self._ticking else "its node stopped"
            for _ in range(GOODBYES):
                ended = self._parts.store.update(which, lambda doc, at: end(doc, now=at, reason=why))
                if over := ended.results[0].verdict in (Verdict.APPLIED, Verdict.DECLINED):
                    break
            # What it holds is free only once it has ended: while it lives, a claim under way may still be granted.
            if over and self.sweeper.take_from(session, f"{self.settings.node} stopped"):
                self._parts.store.update(which, lambda doc, at: swept(doc, now=at))
        except Exception as error:  # noqa: BLE001 - whatever it is, the node leaves
            self._parts.events.emit("store error", loop="drain", error=str(error) or repr(error), failures=1)

    def lose(self, reason: str) -> None:
        """The session is gone: stop every body, write nothing more under it, begin anew."""
        session, bodies = self.board.lose()
        if session is None:
            return
        self._parts.events.emit(
            "session lost", session=session, node=self.settings.node, reason=reason, bodies=len(bodies)
        )
        self.memory.session_lost(session)
        for running in bodies:
            self.runner.stop(running, Stop("lost", f"this node lost its lease: {reason}"))
        self._loops["finisher"].wake()
        self._loops["keeper"].wake()

    # --- wiring --------------------------------------------------------------------------------------------------

    def _describe(self, name: str) -> Session:
        settings = self.settings
        from_where = {name: handler.application for name, handler in self._parts.handlers.items()}
        handlers, applications = advertised(from_where, most=HANDLERS_LISTED)
        return Session(
            name=name,
            node=settings.node,
            host=settings.host,
            pid=settings.pid,
            pools=tuple(sorted(settings.pools)),
            handlers=handlers,
            applications=applications,
            version=settings.version,
            fingerprint=self.registrar.fingerprint,
            revision=settings.revision,
            zone_data=self._parts.zone_data,
            lease=settings.lease_us,
            keep=settings.keep,
        )

    def _session_begun(self) -> None:
        # First, and whatever the store answers next: without it nobody would notice that this session is over.
        self._loops["watchdog"].wake()
        try:
            self._register()
        finally:
            self._loops["claimer"].wake()

    def _register(self) -> None:
        """Write the definitions; again after the store went back, for it may have lost them."""
        self.registrar.register(self._fleet(self.sweeper.sessions()), between=self.keeper.keep)

    def _attend(self) -> None:
        """A claim was refused because of the namespace or the session: the keeper finds out why, at once."""
        self._loops["keeper"].wake()

    def _namespace_changed(self) -> None:
        """The namespace opened, shut, or was checked: claims and takeovers may go on, or must not."""
        self.claimer.look_again()
        self._loops["sweeper"].wake()

    def _freed(self) -> None:
        """A body of a lost session has ended: its job may be claimed here again, and the session be buried."""
        self._loops["keeper"].wake()
        self._loops["claimer"].wake()

    def _look_at(self, due_at: int | None) -> None:
        self.claimer.look_at(due_at)

    def _fleet(self, sessions: Sequence[Session]) -> Fleet:
        return Fleet.seen(sessions, besides=self.board.session, now=self.board.store_now() or 0)

    def _review(self, sessions: Sequence[Session]) -> bool:
        """Propose again what the fleet, or a due job, gives cause for; True when something was proposed."""
        names = self.registrar.take_notes()
        if names:  # who may write them depends on who lives now that they were noted, not before
            sessions = self.sweeper.sessions()
        if not self.registrar.review(self._fleet(sessions), names):
            return False
        self.claimer.settled()
        return True

    def _unsettled(self, job: Job) -> None:
        if self.registrar.note(job):
            self._loops["sweeper"].wake()

    def _listen(self, now: float) -> float:
        """Wait for other nodes' changes; each one makes the claimer look, and the holder of a run too.

        Here, and in no loop that others depend on, requests are taken in: after each change, and after each wait.
        """
        self.intake.step()
        if self._listening and self._parts.store.wait(self.settings.poll):
            self.claimer.look_again()
            self._loops["sweeper"].wake()
            if self.board.running() and self.board.standing() is not Standing.NONE:
                self._loops["keeper"].wake()
        return self._parts.runtime.clock.boot()
