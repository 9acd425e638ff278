"""`Scheduler`: declare jobs, run a node, stop it. Queries, commands, locks and alarms have files of their own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from solocron import surroundings
from solocron.duration import parse_duration
from solocron.engine.node import Node
from solocron.errors import InvalidError
from solocron.events import NAMES, Event, Subscriber
from solocron.jobs import decorators
from solocron.jobs.address import address_of, read_address
from solocron.jobs.around import Wrapper, check_wrapper
from solocron.jobs.discovery import discover
from solocron.jobs.options import CronOptions, JobOptions, Span
from solocron.jobs.registry import Declared
from solocron.near import did_you_mean
from solocron.patched import check_threads
from solocron.scheduler.alarms import AlarmOperations
from solocron.scheduler.carrying import CarryingOperations, refuse_unknown_carriers
from solocron.scheduler.configuration import Configuration
from solocron.scheduler.core import Core
from solocron.scheduler.effects import EffectOperations
from solocron.scheduler.inline import Here, InlineOperations, refuse_loop
from solocron.scheduler.locks import LockOperations, LockRoom
from solocron.scheduler.operations import Operations
from solocron.scheduler.serving import ServiceOperations
from solocron.scheduler.starting import refuse_store_per_replica, refuse_unknown_calendars
from solocron.scheduler.telemetry import TelemetryOperations
from solocron.schedules import Schedule
from solocron.stores.contract import Store
from solocron.stores.url import Secret
from solocron.views import HealthView, RunView

if TYPE_CHECKING:
    from solocron.scheduler.aio import AsyncScheduler

__all__ = ["Scheduler"]

log = logging.getLogger("solocron")

_LIFESPAN_GRACE = 25.0

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=Subscriber)
W = TypeVar("W", bound=Wrapper)


class Scheduler(
    Operations,
    InlineOperations,
    CarryingOperations,
    LockOperations,
    EffectOperations,
    AlarmOperations,
    ServiceOperations,
    TelemetryOperations,
):
    """Declares jobs, runs them while it is started, and returns what became of them.

    Making one opens nothing and starts nothing. Any number of replicas may do the same on the same store: each slot
    is claimed by one of them.
    """

    def __init__(
        self,
        store: str | Secret | Store | None = None,
        *,
        namespace: str | None = None,
        pools: Iterable[str] = ("default",),
        node: str | None = None,
        enabled: bool | None = None,
        lease: Span = "15s",
        beat: Span | None = None,
        max_running: int = 32,
        revision: int | None = None,
        keep: Span | None = None,
        grace: Span = "30s",
    ) -> None:
        self._assemble(
            Core(
                Configuration.make(
                    store,
                    namespace=namespace,
                    pools=pools,
                    node=node,
                    enabled=enabled,
                    lease=lease,
                    beat=beat,
                    max_running=max_running,
                    revision=revision,
                    keep=keep,
                    grace=grace,
                )
            )
        )

    def _assemble(self, core: Core) -> None:
        self._core = core
        self._locks = LockRoom(core)
        self._aio: AsyncScheduler | None = None
        self._block: AbstractAsyncContextManager[None] | None = None
        self._warned_disabled = False
        self.enabled = core.configuration.enabled
        self.registry = core.registry
        self.events = core.events

    # --- declaring -------------------------------------------------------------------------------------------

    def discover(self, *targets: object, prefix: str = "") -> list[str]:
        """Register the jobs of modules, packages, instances and classes; return the names that are new.

        `prefix` goes before each name, so that two instances of a class can be told apart.
        """
        found = discover(self.registry, *targets, prefix=prefix)
        for target in found.empty:
            log.warning(
                "no job is declared in %s: nothing was registered from it", _shown(target), extra={"event": "no jobs"}
            )
        for declared in found.new:
            self._registered(declared)
        return [declared.name for declared in found.new]

    def cron(self, expression: str | Schedule, **options: Unpack[CronOptions]) -> Callable[[F], F]:
        """Declare a job as `solocron.cron` does, and register it with this scheduler at once."""
        return self._declaring(decorators.cron(expression, **options))

    def every(self, period: Span, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """Declare a job as `solocron.every` does, and register it with this scheduler at once."""
        return self._declaring(decorators.every(period, **options))

    def at(self, when: datetime, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """Declare a job as `solocron.at` does, and register it with this scheduler at once."""
        return self._declaring(decorators.at(when, **options))

    def register(self, function: F, *, name: str | None = None) -> F:
        """Register a function as a handler for jobs that are added as data."""
        self.registry.add_handler(function, name)
        return function

    def around(self, wrapper: W) -> W:
        """Wrap every run: a function of the run that yields once, or of the run and the call."""
        check_wrapper(wrapper)
        self._core.wrappers.append(wrapper)
        return wrapper

    def setup(self, function: str | Callable[[], object]) -> None:
        """Name the function that prepares a process, as `"module:function"` or by itself.

        It is called before anything is run in the processes whose program is Solocron or a queue: children of
        `run_in="process"`, the commands `run`, `tick` and `run-slot`, and workers of a carrier, once in each process.
        An application that starts a node has prepared itself.
        """
        if self._core.alive:
            raise InvalidError("this scheduler runs already, so nothing was changed; call setup() before it starts.")
        if isinstance(function, str):
            self._core.setup = read_address(function, "setup()")
        else:
            self._core.setup = address_of(function, f"setup({function!r:.60})")

    @overload
    def on(self, event: str) -> Callable[[S], S]: ...

    @overload
    def on(self, event: str, subscriber: S) -> S: ...

    def on(self, event: str, subscriber: Subscriber | None = None) -> Subscriber | Callable[[S], S]:
        """Subscribe to an event (`"*"`: to all); usable as a decorator. `solocron.events.NAMES` lists them."""
        if event != "*" and event not in NAMES:
            hint = did_you_mean(event, NAMES, f"known are {', '.join(sorted(NAMES))}.")
            raise InvalidError(f"there is no event {event!r}; {hint}")
        if subscriber is None:

            def subscribe(function: S) -> S:
                return self.on(event, function)

            return subscribe
        self.events.on(event, subscriber)
        return subscriber

    def _declaring(self, decorate: Callable[[F], F]) -> Callable[[F], F]:
        def mark(function: F) -> F:
            decorate(function)
            declared = self.registry.add(function, decorators.declarations(function)[-1])
            if declared is not None:
                self._registered(declared)
            return function

        return mark

    def _registered(self, declared: Declared) -> None:
        schedule, spec = declared.schedule, declared.spec or {}
        when = f"{spec['expression']} {spec['tz']}" if spec.get("kind") == "cron" else schedule.describe()
        self.events.emit("registered", job=declared.name, schedule=when, place=declared.place)
        if self._core.alive:
            log.warning("a job was declared after start; it runs from the next start on", extra={"job": declared.name})

    # --- running ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run a node in the background of this process; coroutine jobs run on the caller's event loop if it has one."""
        if self._core.alive:
            return
        surroundings.refuse_node()
        if self._disabled() or self._declined():
            return
        surroundings.check_platform()
        check_threads()
        refuse_store_per_replica(self._core)
        self._start_node(ticking=False)

    def stop(self, grace: Span | None = None) -> bool:
        """Drain: stop claiming, let runs end within the grace, hand back the rest; return True if nothing was left."""
        core, clean = self._core, True
        seconds = None if grace is None else parse_duration(grace, what="grace").total_seconds()
        self._locks.release()
        node, core.node = core.running_node, None
        if node is not None:
            core.leaving = node
            try:
                clean = node.drain(core.configuration.grace if seconds is None else seconds)
            finally:
                core.leaving = None
        if self._guest is not None:
            self._guest.close(core.configuration.grace if seconds is None else seconds)
        for carriage in core.carriers.values():
            carriage.close()
        self._deliver_the_rest(node)
        if self._aio is not None:
            self._aio._close()
        if self._close_fleet is not None:
            self._close_fleet()
        core.store.close()
        return clean

    def run_forever(self, grace: Span | None = None) -> None:
        """Start, and drain at SIGTERM or the first SIGINT; a second signal ends the process at once."""
        from solocron.process import run_until_signalled

        run_until_signalled(self, grace)

    def tick(self, *, inline: bool = False) -> list[RunView]:
        """Do one pass, for an external trigger: sweep, claim what is due, wait for it; return the runs.

        Safe beside running nodes and other ticks. Never waits for a backoff. `inline` runs the bodies where the caller
        is, one after the other: on its thread, with `aio` on its event loop.
        """
        if inline:
            refuse_loop(self._core)
        return self._tick(Here.on_thread() if inline else None)

    def _tick(self, here: Here | None, claim_for: float | None = None) -> list[RunView]:
        surroundings.refuse_node(passing=True)
        if self._disabled():
            return []
        with self._ticking(here) as (node, finished):
            node.tick(claim_for)
        attempts = self._core.client.attempts
        views = [view for run in dict.fromkeys(run for run, _ in finished) for view in attempts(run)]
        return [view for view in views if (view.run, view.attempt) in set(finished)]

    @contextmanager
    def _ticking(self, here: Here | None) -> Iterator[tuple[Node, list[tuple[str, int]]]]:
        """Run a node that claims when it is told to; yield it with the attempts that it finishes."""
        core = self._core
        check_threads(passing=True)
        if core.alive:
            raise InvalidError(
                "this scheduler runs a node already, which does what tick() would; call one or the other."
            )
        refuse_store_per_replica(core)
        core.open()
        finished: list[tuple[str, int]] = []

        def collect(event: Event) -> None:
            finished.append((event.run, event.attempt))

        self.events.on("finished", collect)
        node = self._start_node(ticking=True, here=here)
        try:
            yield node, finished
        finally:
            self.events.off("finished", collect)
            self.stop("30s")
            if here is not None:
                here.close()

    def health(self) -> HealthView:
        """Return whether the node of this process is alive and ready, and why not; the store is not asked."""
        node = self._core.running_node or self._core.leaving
        return self._core.no_node() if node is None else node.pulse.look()

    def _disabled(self) -> bool:
        """Return whether nothing may run here; logged once."""
        if not self.enabled and not self._warned_disabled:
            self._warned_disabled = True
            log.info("scheduling is switched off here: nothing is registered or claimed", extra={"event": "disabled"})
        return not self.enabled

    def _declined(self) -> bool:
        """Return whether this process is a reloader, whose child is the node; logged."""
        command = surroundings.reloader()
        if command is not None:
            log.info(
                "no node is started in the reloader of `%s`: its child, which serves, has one", command,
                extra={"event": "reloader"},
            )  # fmt: skip
        return command is not None

    def _start_node(self, *, ticking: bool, here: Here | None = None) -> Node:
        core = self._core
        refuse_unknown_calendars(core)
        refuse_unknown_carriers(core)
        core.node = node = core.make_node(self._locks.make_verbs, ticking=ticking, here=here)
        try:
            node.start(ticking=ticking)
        except BaseException:
            core.node = None
            node.drain(0)
            raise
        return node

    # --- awaited ---------------------------------------------------------------------------------------------

    @property
    def aio(self) -> AsyncScheduler:
        """The same methods, awaited: none of them blocks the caller's event loop."""
        if self._aio is None:
            from solocron.scheduler.aio import AsyncScheduler

            self._aio = AsyncScheduler(self)
        return self._aio

    # --- with ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Scheduler:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Scheduler:
        block = self._running(None)
        await block.__aenter__()
        self._block = block
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            await block.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[dict[str, Scheduler]]:
        """Run a node for as long as an application serves: pass the method itself as the application's `lifespan`.

        It drains within 25 s, because servers kill what has not ended after 30 s. Its state has the scheduler as
        `solocron`.
        """
        async with self._running(min(self._core.configuration.grace, _LIFESPAN_GRACE)):
            yield {"solocron": self}

    @asynccontextmanager
    async def _running(self, grace: float | None) -> AsyncIterator[None]:
        from solocron.process import draining_block

        await self.aio.start()
        async with draining_block(partial(self.aio.stop, grace)):
            yield


def _shown(target: object) -> str:
    """Return a target of `discover` as its writer knows it."""
    if isinstance(target, str):
        return f"module {target}"
    if isinstance(target, ModuleType):
        return f"module {target.__name__}"
    return f"{target!r:.80}"
