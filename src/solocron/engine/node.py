"""The node: a list of services, the loops that run them, its start and its drain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.calendars.revisions import Calendars
from solocron.dispatch.carrier import Carriage
from solocron.dispatch.contract import Dispatcher
from solocron.dispatch.inline import Inline
from solocron.engine.alarms import Alarms, AlarmSettings
from solocron.engine.attempts import Attempts
from solocron.engine.claim_pass import ClaimPass, Starter
from solocron.engine.claimer import Claimer
from solocron.engine.draining import OF_A_TICK, Departure, Drain
from solocron.engine.finisher import Finisher
from solocron.engine.keeper import Keeper
from solocron.engine.listener import LONGEST_PAUSE, ChangeListener
from solocron.engine.memory import Memory
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.pick_up import PickedUp, PickUp
from solocron.engine.pulse import Pulse, Vitals
from solocron.engine.put_back import PutBack
from solocron.engine.reconciler import Reconciler
from solocron.engine.recovery import Recovery
from solocron.engine.registrar import Registrar
from solocron.engine.requirements import Requirements
from solocron.engine.run_now import Answer, RunNow
from solocron.engine.runner import Around, Calling, MakeRun, Runner
from solocron.engine.session_loss import SessionLoss
from solocron.engine.settings import Settings
from solocron.engine.signals import Signals
from solocron.engine.sweeper import Sweeper
from solocron.engine.takeover import Takeover
from solocron.engine.ticking import OnDemand, Tick
from solocron.engine.transactional_triggers import TransactionalTriggers
from solocron.engine.watchdog import Watchdog
from solocron.errors import StoreUnavailable
from solocron.events import Events
from solocron.jobs.registry import Declared, Handler
from solocron.lease.holder import Holder
from solocron.lease.own import OwnLease
from solocron.loop import Loop, Signal
from solocron.model.pools import TICKED
from solocron.model.timetable import Resolve
from solocron.model.transitions.offering import NotPickedUp
from solocron.runtime import Runtime
from solocron.stores.contract import Store

__all__ = ["Node", "Parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a node; the simulator supplies its own."""

    store: Store
    runtime: Runtime
    settings: Settings
    events: Events
    declared: Mapping[str, Declared]
    handlers: Mapping[str, Handler]
    dispatchers: Mapping[str, Dispatcher]
    around: Around
    make_run: MakeRun
    resolve: Resolve
    zone_data: str
    calendars: Calendars
    alarms: AlarmSettings | None = None
    vitals: Vitals | None = None
    """Where the node's health is written; None: nowhere."""
    inline: Inline | None = None
    """The calls that the caller of `tick` carries out itself, where it does."""
    carriers: Mapping[str, Carriage] = field(default_factory=dict)
    guest: bool = False
    """True for a process that runs bodies only for the messages that it gets."""


class Node:
    """One running engine. `start` returns at once; `drain` ends it in an orderly way."""

    def __init__(self, parts: Parts) -> None:
        signals = Signals(parts.runtime)
        context = NodeContext(
            store=parts.store, runtime=parts.runtime, settings=parts.settings, events=parts.events,
            resolve=parts.resolve, calendars=parts.calendars, signals=signals, carriers=parts.carriers,
            guest=parts.guest, inline=parts.inline,
        )  # fmt: skip
        lease = OwnLease(parts.runtime, parts.settings, signals.claim.look_again)
        holder = Holder(parts.store, parts.runtime, lease, parts.settings)
        memory = Memory(parts.runtime)
        attempts = Attempts(context, lease)
        gate = NamespaceGate(context, holder, memory)
        permits = Permits(context, gate)
        # A guest claims nothing by itself, so its session lists no handlers.
        advertised = {} if parts.guest else parts.handlers
        registrar = Registrar(context, lease, parts.declared, advertised, parts.zone_data)
        finisher = Finisher(context, attempts, permits, memory)
        calling = Calling(
            handlers=parts.handlers, dispatchers=parts.dispatchers, around=parts.around, make_run=parts.make_run,
            ward=gate,
        )  # fmt: skip
        runner = Runner(context, attempts, permits, finisher.add, calling)
        recovery = Recovery(context, gate, holder, PutBack(context, memory, permits, registrar))
        requirements = Requirements(context, parts.handlers, permits, registrar)
        starter = Starter(context, memory, runner)
        claim_pass = ClaimPass(context, attempts, gate, requirements, starter)
        claimer = Claimer(context, attempts, gate, claim_pass)
        loss = SessionLoss(context, attempts, runner, memory)
        keeper = Keeper(context, attempts, recovery, Reconciler(context, attempts, runner, permits, memory), loss)
        watchdog = Watchdog(context, attempts, runner, loss)
        takeover = Takeover(context, lease.boot_of)
        sweeper = Sweeper(context, lease, gate, takeover, registrar)
        triggers = TransactionalTriggers(context, attempts, gate)
        listener = ChangeListener(context, attempts, triggers)
        alarms = None if parts.alarms is None else Alarms(context, attempts, parts.alarms)

        self.process = parts.runtime.process()
        self.context = context
        self.attempts = attempts
        self.gate = gate
        self.finisher = finisher
        self.sweeper = sweeper
        self.alarms = alarms
        self.pulse = Pulse(context, attempts, keeper, parts.vitals)
        self._jobs = len(parts.declared)
        self._on_demand = OnDemand(
            Tick(context, claimer, finisher, sweeper, triggers),
            RunNow(context, attempts, gate, requirements, starter),
            PickUp(context, attempts, gate, requirements, starter),
        )
        self._drain = Drain(
            context, attempts, runner, finisher, Departure(context, recovery, takeover, listener, parts.dispatchers)
        )
        steps = {
            "keeper": (keeper.step, signals.keep),
            "watchdog": (watchdog.step, signals.watch),
            "claimer": (claimer.step, signals.claim),
            "finisher": (finisher.step, signals.finish),
            "sweeper": (sweeper.step, signals.sweep),
            "listener": (listener.step, Signal(parts.runtime)),
        }
        if alarms is not None:
            steps["alarms"] = (alarms.step, Signal(parts.runtime))
        if parts.vitals is not None:
            steps["pulse"] = (self.pulse.step, Signal(parts.runtime))
        self._loops = {
            name: Loop(
                name, step, runtime=parts.runtime, events=parts.events, signal=signal,
                # What a step had done before it raised was perhaps not reported to the claimer.
                recovered=None if name == "claimer" else signals.claim.look_again,
                longest_pause=LONGEST_PAUSE if name == "listener" else 1.0,
            )
            for name, (step, signal) in steps.items()
        }  # fmt: skip

    @property
    def lease(self) -> OwnLease:
        return self.attempts.lease

    @property
    def keeper(self) -> Keeper:
        return self.pulse.keeper

    def start(self, *, ticking: bool = False) -> None:
        """Begin a session, write the definitions, run the loops. An unavailable store is waited for in the background.

        `ticking`: only what keeps the session alive and records outcomes; the caller then calls `tick`.
        """
        events, settings = self.context.events, self.context.settings
        try:
            self.keeper.step(self.context.runtime.clock.boot())
        except StoreUnavailable as error:
            # Do not raise: the keeper's loop keeps trying, and nothing is claimed before it succeeds.
            events.emit("store error", loop="keeper", error=str(error), failures=1)
        if ticking:
            self.gate.newcomer.claim_at_once()
            self._drain.reason = "no message came for a while" if self.context.guest else TICKED
        self._drain.started = True
        started = {name: loop for name, loop in self._loops.items() if name in OF_A_TICK or not ticking}
        self.pulse.loops = started
        for loop in started.values():
            loop.start()
        session = self.attempts.lease.session
        events.emit("node started", node=settings.node, jobs=self._jobs, session=session)

    def wake(self) -> None:
        """Look now: something changed in this process."""
        self.context.signals.claim.look_again()

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs here and every outcome is in the store."""
        return self.finisher.wait_idle(timeout)

    def tick(self, claim_for: float | None = None, *, only: str | None = None) -> None:
        """Make one pass for an external trigger: sweep, claim what is due and what that makes due, wait for it.

        It claims for a lease, or for fewer seconds where its time is bounded; with `only`, of that one job.
        """
        self._on_demand.tick.run(claim_for, only)
        if self.alarms is not None:
            self.alarms.step(self.context.runtime.clock.boot(), ticking=True)

    def run_now(self, job: str, payload: Any, shard: int | str | None) -> Answer:
        """Claim a new run of a job and start it; the answer says why not, if it could not be claimed."""
        return self._on_demand.run_now.claim(job, payload, shard)

    def pick_up(self, job: str, run: str, attempt: int) -> PickedUp | NotPickedUp:
        """Claim the run of a message and start it; the answer says why not, if the message starts nothing."""
        return self._on_demand.pick_up.claim(job, run, attempt)

    def drain(self, grace: float) -> bool:
        """Stop claiming, let runs end within the grace, hand back what never started; True if nothing is left."""
        try:
            return self._drain.run(self._loops, grace)
        finally:
            self.pulse.end()
