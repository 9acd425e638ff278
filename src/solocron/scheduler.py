"""The public front: a registry of jobs, a client of the store, and a node while it is started."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from solocron import surroundings
from solocron.calendars import unknown_calendar
from solocron.client import Client
from solocron.client.front import ClientFront
from solocron.dispatch.contract import Dispatcher
from solocron.dispatch.lazy import LazyDispatcher
from solocron.dispatch.thread import ThreadDispatcher
from solocron.duration import parse_duration
from solocron.effects.front import EffectsFront
from solocron.engine.calendars import Calendars
from solocron.engine.context import Run
from solocron.engine.node import Node, Parts
from solocron.engine.settings import Settings
from solocron.errors import ConfigurationError, InvalidError, StoreUnavailable
from solocron.events import NAMES, Event, Events, Subscriber
from solocron.jobs import decorators
from solocron.jobs.address import address_of
from solocron.jobs.around import Wrapper, check_wrapper, wrap
from solocron.jobs.checks import check_name, check_names
from solocron.jobs.discovery import discover
from solocron.jobs.options import CronOptions, JobOptions
from solocron.jobs.registry import Declared, Handler, Registry
from solocron.model.policy import whole
from solocron.patched import check_threads
from solocron.runtime import Runtime, Threads
from solocron.schedules import Schedule, load_zone, zone_data_version
from solocron.stores.contract import Store
from solocron.stores.url import Secret, make_store
from solocron.telemetry.front import AlarmsFront
from solocron.telemetry.log import is_logged, log_event
from solocron.version import __version__
from solocron.views import RunView

if TYPE_CHECKING:
    from solocron.aio import Aio

__all__ = ["Scheduler", "configuration_of", "reconfigure"]

log = logging.getLogger("solocron")

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=Subscriber)
Span = timedelta | int | float | str


class Scheduler(ClientFront, EffectsFront, AlarmsFront):
    """Declares jobs, runs them while started, and answers what happened to them.

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
        keep: Span = "30d",
        runtime: Runtime | None = None,
        dispatchers: Mapping[str, Dispatcher] | None = None,
    ) -> None:
        self.enabled = surroundings.enabled() if enabled is None else enabled
        self._runtime = runtime or Threads()
        namespace = check_name(surroundings.namespace() if namespace is None else namespace, "namespace")
        if revision is not None and not whole(revision):
            raise ConfigurationError(f"revision={revision!r}: give a whole number. Nothing was started.")
        if node is not None:
            check_name(node, "node")
        host = os.uname().nodename
        self._node_given = node
        self._settings = Settings.make(
            node=node or surroundings.node_name(host, os.getpid(), self._runtime.rng.token()),
            host=host,
            pid=os.getpid(),
            pools=tuple(
                check_name(pool, "pool") for pool in check_names(pools, "pools", untouched="Nothing was started.")
            ),
            lease=lease,
            beat=beat,
            max_running=max_running,
            keep=keep,
            revision=revision,
            version=__version__,
        )
        self._store_given = store is not None or surroundings.store_url() is not None
        store = surroundings.store_url() or surroundings.DEFAULT_STORE if store is None else store
        self._store_url = Secret(store) if isinstance(store, str | Secret) else None
        self._store = self._make_store(store, namespace, parse_duration(lease, what="lease"))
        self.registry = Registry()
        self.events = Events()
        self.events.on("*", log_event, wants=is_logged)
        self._wrappers: list[Wrapper] = []
        self._client = self._make_client()
        self._dispatchers = dispatchers
        self._loop: Any = None
        self._node: Node | None = None
        self._said_off = False
        self._leaders = []
        self._aio: Aio | None = None

    def _make_client(self) -> Client:
        client = Client(self._store, registry=self.registry, runtime=self._runtime, late_for=self._settings.late_for)
        client.changed.append(self._wake)
        return client

    @staticmethod
    def _make_store(store: str | Secret | Store, namespace: str, lease: timedelta) -> Store:
        if isinstance(store, str | Secret):
            return make_store(store, namespace=namespace, lease=lease)
        return store

    # --- declaring -------------------------------------------------------------------------------------------

    def discover(self, *targets: object) -> list[str]:
        """Register the jobs of modules, packages, instances and classes; answers the names that are new."""
        found = discover(self.registry, *targets)
        for declared in found:
            self._registered(declared)
        return [declared.name for declared in found]

    def cron(self, expression: str | Schedule, **options: Unpack[CronOptions]) -> Callable[[F], F]:
        """`@cron`, registered with this scheduler at once."""
        return self._declaring(decorators.cron(expression, **options))

    def every(self, period: Span, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """`@every`, registered with this scheduler at once."""
        return self._declaring(decorators.every(period, **options))

    def at(self, when: datetime, **options: Unpack[JobOptions]) -> Callable[[F], F]:
        """`@at`, registered with this scheduler at once."""
        return self._declaring(decorators.at(when, **options))

    def register(self, function: F, *, name: str | None = None) -> F:
        """Make a function known as a handler for jobs that are added as data."""
        self.registry.add_handler(function, name)
        return function

    def around(self, wrapper: Wrapper) -> Wrapper:
        """Wrap every run: a function of the run that yields once, or of the run and the call."""
        self._wrappers.append(check_wrapper(wrapper))
        return wrapper

    @overload
    def on(self, event: str) -> Callable[[S], S]: ...

    @overload
    def on(self, event: str, subscriber: S) -> S: ...

    def on(self, event: str, subscriber: Subscriber | None = None) -> Subscriber | Callable[[S], S]:
        """Hear of an event (`"*"`: of all); usable as a decorator. `solocron.events.NAMES` lists them."""
        if event != "*" and event not in NAMES:
            raise InvalidError(f"there is no event {event!r}; known are {', '.join(sorted(NAMES))}.")
        if subscriber is None:

            def subscribe(function: S) -> S:
                return self.on(event, function)

            return subscribe
        self.events.on(event, subscriber)
        return subscriber

    # --- running ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run a node in the background of this process; coroutine jobs run on the caller's event loop if it has one."""
        if self._alive():
            return
        surroundings.refuse_node()
        if self._switched_off():
            return
        check_threads()
        self._refuse_store_per_replica()
        self._start(ticking=False)

    def stop(self, grace: Span = "30s") -> bool:
        """Drain: stop claiming, let runs end within the grace, hand back the rest; True when nothing was left."""
        self._let_go()
        node, self._node = self._node, None
        clean = True
        if node is not None and node.process == self._runtime.process():
            clean = node.drain(parse_duration(grace, what="grace").total_seconds())
        self._deliver_the_rest()
        if self._aio is not None:
            self._aio.close()
        self._store.close()
        return clean

    def run_forever(self, grace: Span = "30s") -> None:
        """Start, and drain at SIGTERM or the first SIGINT; a second signal ends at once."""
        from solocron.process import run_until_signalled

        run_until_signalled(self, grace)

    def tick(self) -> list[RunView]:
        """One pass, for an external trigger: sweep, claim what is due, wait for it; answers the runs.

        Safe beside running nodes and other ticks. Never waits for a backoff.
        """
        surroundings.refuse_node(passing=True)
        if self._switched_off():
            return []
        check_threads(passing=True)
        if self._alive():
            raise InvalidError(
                "this scheduler runs a node already, which does what tick() would; call one or the other."
            )
        self._refuse_store_per_replica()
        self._store.open()
        finished: list[tuple[str, int]] = []

        def note(event: Event) -> None:
            finished.append((event.run, event.attempt))

        self.events.on("finished", note)
        node = self._start(ticking=True)
        try:
            node.sweeper.sweep_for_tick()
            node.intake.step()
            node.claim_and_wait()
            if node.alarms is not None:
                node.alarms.step(self._runtime.clock.boot())
        finally:
            self.events.off("finished", note)
            self.stop("30s")
        views = [view for run in dict.fromkeys(run for run, _ in finished) for view in self._client.attempts(run)]
        return [view for view in views if (view.run, view.attempt) in set(finished)]

    def _switched_off(self) -> bool:
        """Whether nothing may run here; said once."""
        if not self.enabled and not self._said_off:
            self._said_off = True
            log.warning(
                "scheduling is switched off here: nothing is registered or claimed", extra={"event": "disabled"}
            )
        return not self.enabled

    def _start(self, *, ticking: bool) -> Node:
        self._refuse_unknown_calendars()
        node = self._build()
        self._node = node
        try:
            node.start(ticking=ticking)
        except BaseException:
            self._node = None
            node.drain(0)
            raise
        return node

    def _refuse_unknown_calendars(self) -> None:
        """A job under a calendar that nobody has made would never run: said at start, not found out later."""
        wanted = {name: job.calendar for name, job in self.registry.jobs.items() if job.calendar is not None}
        if not wanted:
            return
        try:
            self._store.open()
            known = Calendars(self._store, self.registry).latest()
        except StoreUnavailable:
            return  # a node is patient; its registrar looks again
        for job, calendar in wanted.items():
            if calendar not in known:
                raise unknown_calendar(calendar, known, job=job, untouched="Nothing was started.")

    def _build(self) -> Node:
        """The node as it runs in production; the simulator builds the very same from its own parts."""
        if self._settings.pid != os.getpid():  # a fork: another process is another node
            token = self._runtime.rng.token()
            name = self._node_given or surroundings.node_name(self._settings.host, os.getpid(), token)
            self._settings = self._settings.renamed(name, os.getpid())
        self._loop = _running_loop() or self._loop
        if not self._dispatchers and any(one.run_in == "process" for one in self.registry):
            for wrapper in self._wrappers:
                address_of(wrapper, f"around({wrapper!r:.60})")
        return Node(
            Parts(
                store=self._store,
                runtime=self._runtime,
                settings=self._settings,
                events=self.events,
                declared=dict(self.registry.jobs),
                handlers=dict(self.registry.handlers),
                dispatchers=self._dispatchers or self._make_dispatchers(),
                around=self._around,
                resolve=self.registry.resolve,
                zone_data=zone_data_version(),
                verbs=self._make_verbs,
                alarms=self._bounds,
                calendars=Calendars(self._store, self.registry),
            )
        )

    def _make_dispatchers(self) -> Mapping[str, Dispatcher]:
        """What runs need besides the engine, imported before there are threads that would import it.

        A process may be forked at any moment. A module that a thread is just importing stays locked in the child for
        ever, for that thread does not exist there: the first who needs it would wait without end.
        """
        import solocron.dispatch.process

        load_zone("UTC")  # and with it `zoneinfo`
        if any(handler.needs_loop for handler in self.registry.handlers.values()):
            import solocron.dispatch.eventloop
            import solocron.effects.locks.aio  # noqa: F401
        return {
            "thread": ThreadDispatcher(),
            "loop": LazyDispatcher(self._make_loop_dispatcher),
            "process": LazyDispatcher(self._make_process_dispatcher),
        }

    def _make_loop_dispatcher(self) -> Dispatcher:
        from solocron.dispatch.eventloop import LoopDispatcher

        return LoopDispatcher(self._loop)

    def _make_process_dispatcher(self) -> Dispatcher:
        from solocron.dispatch.order import Home
        from solocron.dispatch.process import ProcessDispatcher

        url = self._store_url if self._store.capabilities.shared else None
        why = "a store in this process' memory" if self._store_url else "a store that was handed over as an object"
        return ProcessDispatcher(
            Home(
                store=url,
                why=f"the scheduler has {why}, which a process of its own cannot open; give it a URL that it can.",
                namespace=self._store.namespace,
                lease=self._settings.lease,
                around=lambda: self._wrappers,
            )
        )

    def _around(self, handler: Handler, run: Callable[[], Run]) -> Callable[[], Any]:
        if self._wrappers:
            made = run()
            return wrap(self._wrappers, made, handler.bind(made), is_async=handler.is_async)
        return handler.bind(run()) if handler.takes_run else handler.function

    def _refuse_store_per_replica(self) -> None:
        """A file per replica would run everything once per replica: the very thing that this is for."""
        if self._store_given:
            return
        if surroundings.in_container():
            raise ConfigurationError(
                "no store was given, and in a container every replica would get a file of its own and run everything. "
                "Nothing was started; set SOLOCRON_STORE or hand Scheduler(...) a URL that all replicas share."
            )
        if not surroundings.is_terminal():
            log.warning(
                "no store was given: using ./solocron.db, which only processes in this folder of this machine share",
                extra={"event": "default store"},
            )

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
        if self._alive():
            log.warning("a job was declared after start; it runs from the next start on", extra={"job": declared.name})

    def _alive(self) -> bool:
        return self._node is not None and self._node.process == self._runtime.process()

    def _wake(self) -> None:
        if self._node is not None:
            self._node.wake()

    # --- awaited ---------------------------------------------------------------------------------------------

    @property
    def aio(self) -> Aio:
        """The same methods, awaited: none of them blocks the caller's event loop."""
        if self._aio is None:
            from solocron.aio import Aio

            self._aio = Aio(self)
        return self._aio

    # --- with ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Scheduler:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Scheduler:
        await self.aio.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aio.stop()


def configuration_of(scheduler: Scheduler) -> tuple[Settings, Store]:
    """The numbers that a scheduler's node will live by, and its store, as it is."""
    return scheduler._settings, scheduler._store


def reconfigure(
    scheduler: Scheduler,
    settings: Settings,
    *,
    node: str | None = None,
    place: tuple[str, Store] | None = None,
    store_given: bool = False,
) -> None:
    """For the command line, before the start: other settings, another name, another store with its URL."""
    if scheduler._alive():
        raise ConfigurationError("this scheduler runs already, so nothing was changed; configure it before it starts.")
    scheduler._settings = settings
    scheduler._node_given = node or scheduler._node_given
    if place is not None:
        url, store = place
        scheduler._store.close()
        scheduler._store = store
        scheduler._store_url = Secret(url)
        scheduler._store_given = scheduler._store_given or store_given
    scheduler._client = scheduler._make_client()


def _running_loop() -> Any:
    """The caller's event loop, if it has one; a program that has not imported asyncio has none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except (RuntimeError, AttributeError):  # no loop; or a thread, perhaps of a parent, is just importing it
        return None
