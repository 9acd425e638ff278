"""Nodes of a simulated world: each a process that runs the very objects which `Scheduler.start` builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from solocron.model.timetable import EMPTY, Timetable
from solocron.scheduler import Scheduler
from solocron.schedules import load
from solocron.simulator.database import Database
from solocron.simulator.faults import Options
from solocron.simulator.kernel import EPOCH, Kernel, Process
from solocron.simulator.network import Network
from solocron.simulator.seams import SimDispatcher, SimRuntime
from solocron.simulator.wire import WireStore
from solocron.telemetry.log import log_event

__all__ = ["Member", "SimFleet"]

Declare = Callable[[Scheduler, Process], None]


@dataclass(slots=True)
class Member:
    """A node, as long as one process lives."""

    process: Process
    runtime: SimRuntime
    store: WireStore
    scheduler: Scheduler


class SimFleet:
    """A store, a network and numbered nodes; a number that comes back is a new process."""

    def __init__(self, options: Options, *, declare: Declare, epoch: float = EPOCH) -> None:
        self.options = options
        self.kernel = Kernel(options.seed, epoch)
        self.network = Network(self.kernel, options)
        self.database = Database(self.kernel, locking=options.locking, idle_timeout=options.lease / 5)
        self.members: dict[int, Member] = {}
        self.past: list[Member] = []
        self.failure: BaseException | None = None
        """The first exception that a loop of the engine raised: it survives them, a simulated world does not."""
        self._declare = declare
        self._starts = 0

    def start_node(self, number: int, *, rate: float = 1.0, skew: float = 0.0, **settings: Any) -> Member:
        """A new process: `settings` are those of `Scheduler`."""
        self._starts += 1
        name = f"n{number}.{self._starts}"
        process = Process(self.kernel, name)
        runtime = SimRuntime(process, rate=rate, skew=skew, number=self._starts)
        store = WireStore(self.database, process, self.network, timeout=self.options.lease / 4, rate=rate)
        settings = {"lease": self.options.lease, "max_running": self.options.max_running} | settings
        scheduler = Scheduler(
            store,
            node=name,
            enabled=True,
            runtime=runtime,
            dispatchers={
                "thread": SimDispatcher(process, interruptible=False),
                "loop": SimDispatcher(process, interruptible=True),
            },
            **settings,
        )
        scheduler.events.off("*", log_event)
        scheduler.events.on("loop error", lambda event: self.failed(event.exception))
        self._declare(scheduler, process)
        member = self.members[number] = Member(process, runtime, store, scheduler)
        process.spawn(lambda: self.guarded(scheduler.start), f"{name} start")
        return member

    def kill(self, number: int) -> None:
        """kill -9."""
        member = self.members.pop(number, None)
        if member is not None:
            member.process.kill()
            self.past.append(member)

    def stop_node(self, number: int, then: Callable[[], None] | None = None) -> None:
        """SIGTERM: drain and exit."""
        member = self.members.pop(number, None)
        if member is None:
            return
        self.past.append(member)

        def stop() -> None:
            self.guarded(lambda: member.scheduler.stop(self.options.lease))
            member.process.kill()
            if then is not None:
                self.kernel.after(0, then)

        member.process.spawn(stop, f"{member.process.name} stop")

    def run(self, seconds: float) -> None:
        """Let time pass; raises what a loop of the engine raised."""
        self.kernel.run(self.kernel.now + seconds)
        if self.failure is not None:
            raise self.failure

    def failed(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.kernel.halted = True

    def guarded(self, call: Callable[[], Any]) -> None:
        """Call something whose exception must come to light although nobody is there to catch it."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - raised again by `run`
            self.failed(error)

    def member_of(self, process: Process) -> Member:
        return next(m for m in (*self.members.values(), *self.past) if m.process is process)

    def resolve(self, spec: Mapping[str, Any] | None) -> Timetable:
        return EMPTY if spec is None else Timetable(load(spec))
