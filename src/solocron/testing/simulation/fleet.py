"""Nodes of a simulated world: each a process that runs the very objects which `Scheduler.start` builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from solocron.errors import StoreError
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import scheduler_on
from solocron.telemetry.log import log_event
from solocron.testing.simulation.chain_wire import ChainDatabase, ChainWireStore
from solocron.testing.simulation.conditions import Conditions
from solocron.testing.simulation.database import Database, Past
from solocron.testing.simulation.kernel import EPOCH, Kernel, Process
from solocron.testing.simulation.key_database import KeyDatabase
from solocron.testing.simulation.key_wire import KeyWireStore
from solocron.testing.simulation.network import Network
from solocron.testing.simulation.seams import SimDispatcher, SimRuntime
from solocron.testing.simulation.wire import WireStore

__all__ = ["Member", "SimFleet"]

Declare = Callable[[Scheduler, Process], None]


@dataclass(slots=True)
class Member:
    """A node for the lifetime of one process."""

    process: Process
    runtime: SimRuntime
    store: WireStore | KeyWireStore
    scheduler: Scheduler


class SimFleet:
    """A store, a network and numbered nodes; a number that comes back is a new process."""

    def __init__(
        self, conditions: Conditions, *, declare: Declare, epoch: float = EPOCH, past: Past | None = None
    ) -> None:
        self.conditions = conditions
        self.kernel = Kernel(conditions.seed, epoch)
        self.network = Network(self.kernel, conditions)
        self.database: Database
        if conditions.keys or conditions.chain:
            assert past is None, "a store of keys does not go back"
            self.database = ChainDatabase(self.kernel) if conditions.chain else KeyDatabase(self.kernel)
        else:
            self.database = Database(
                self.kernel, locking=conditions.locking, idle_timeout=conditions.patience * 0.8, past=past
            )
        self.members: dict[int, Member] = {}
        self.past: list[Member] = []
        self.others: dict[str, Member] = {}
        """Processes that run no node: clients and external triggers."""
        self.failure: BaseException | None = None
        """First exception that a loop of the engine raised: the loops survive it, a simulated world does not."""
        self._declare = declare
        self._starts = 0
        self._by_process: dict[Process, Member] = {}

    @property
    def starts(self) -> int:
        """Number of processes that were started so far; the next one is another."""
        return self._starts

    def start_node(self, number: int, *, rate: float = 1.0, skew: float = 0.0, **settings: Any) -> Member:
        """Start a process that runs a node: `settings` are those of `Scheduler`."""
        self._starts += 1
        member = self.members[number] = self._make(f"n{number}.{self._starts}", rate=rate, skew=skew, **settings)
        self._declare(member.scheduler, member.process)
        member.process.spawn(lambda: self.guarded(member.scheduler.start), f"{member.process.name} start")
        return member

    def join(self, name: str, *, declare: bool = False, **settings: Any) -> Member:
        """Make a process with a scheduler that is not started."""
        self._starts += 1
        member = self.others[name] = self._make(name, rate=1.0, skew=0.0, **settings)
        if declare:
            self._declare(member.scheduler, member.process)
        return member

    def _make(self, name: str, *, rate: float, skew: float, **settings: Any) -> Member:
        process = Process(self.kernel, name)
        runtime = SimRuntime(process, rate=rate, skew=skew, number=self._starts)
        store = self._store(process, rate)
        settings = {"lease": self.conditions.lease, "max_running": self.conditions.max_running} | settings
        scheduler = scheduler_on(
            runtime,
            store,
            node=name,
            enabled=True,
            dispatchers={
                "thread": SimDispatcher(process, interruptible=False),
                "loop": SimDispatcher(process, interruptible=True),
                "process": SimDispatcher(process, interruptible=True),
            },
            **settings,
        )
        scheduler.events.off("*", log_event)
        scheduler.events.on("loop error", lambda event: self.failed(event.exception))
        member = Member(process, runtime, store, scheduler)
        self._by_process[process] = member
        return member

    def _store(self, process: Process, rate: float) -> WireStore | KeyWireStore:
        patience = self.conditions.patience
        if isinstance(self.database, KeyDatabase):
            lease = self.conditions.lease
            kind = ChainWireStore if isinstance(self.database, ChainDatabase) else KeyWireStore
            return kind(self.database, process, self.network, timeout=patience, rate=rate, lease=lease)
        return WireStore(self.database, process, self.network, timeout=patience, rate=rate)

    def kill(self, number: int) -> None:
        """Kill a node, as by kill -9."""
        member = self.members.pop(number, None)
        if member is not None:
            member.process.kill()
            self.past.append(member)

    def stop_node(self, number: int, then: Callable[[], None] | None = None) -> None:
        """Send SIGTERM: drain and exit."""
        member = self.members.pop(number, None)
        if member is None:
            return
        self.past.append(member)

        def stop() -> None:
            clean: list[bool] = []
            self.guarded(lambda: clean.append(member.scheduler.stop(self.conditions.lease)))
            self.stopped(member.process.name, member.process, clean=any(clean))
            member.process.kill()
            if then is not None:
                self.kernel.after(0, then)

        member.process.spawn(stop, f"{member.process.name} stop")

    def stopped(self, name: str, process: Process, *, clean: bool) -> None:
        """Record that a node has drained; the checkers look at what it left."""

    def run(self, seconds: float) -> None:
        """Let time pass; raise what a loop of the engine raised."""
        self.kernel.run(self.kernel.now + seconds)
        if self.failure is not None:
            raise self.failure

    def failed(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.kernel.halted = True

    def guarded(self, call: Callable[[], Any]) -> None:
        """Call a function whose exception `run` must raise, because it runs in a task of its own."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - raised again by `run`
            self.failed(error)

    def patient(self, call: Callable[[], Any]) -> None:
        """Call something that may find the store unavailable: that is counted, not raised."""
        try:
            call()
        except StoreError:
            self.network.seen["store away"] += 1

    def process_named(self, name: str) -> Process:
        """Return the process of a node, dead or alive."""
        return next(process for process in self._by_process if process.name == name)

    def member_of(self, process: Process) -> Member:
        return self._by_process[process]
