"""The parts of one scheduler: configuration, registry, events, the client of its store, and its node while it runs.

The methods of `Scheduler` stand in several files; each works on this object and on nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from solocron.calendars.revisions import Calendars
from solocron.client import Client
from solocron.dispatch import current
from solocron.dispatch.carrier import Carriage, Message
from solocron.dispatch.contract import Dispatcher, LazyDispatcher, LoopBlock
from solocron.dispatch.inline import Inline
from solocron.dispatch.thread import ThreadDispatcher
from solocron.duration import parse_duration
from solocron.engine.alarms import AlarmSettings
from solocron.engine.node import Node, Parts
from solocron.engine.pulse import Vitals
from solocron.engine.settings import Settings
from solocron.errors import ConfigurationError
from solocron.events import Events
from solocron.jobs.address import FunctionAddress, address_of, find
from solocron.jobs.around import Wrapper, elsewhere, wrap
from solocron.jobs.registry import Handler, Registry
from solocron.runs.base import BaseRun
from solocron.runs.making import MakeVerbs, make_run
from solocron.runtime import Runtime, Threads
from solocron.scheduler.configuration import Configuration
from solocron.schedules import load_zone, zone_data_version
from solocron.stores.contract import Store
from solocron.stores.url import Secret, make_store
from solocron.telemetry.health_file import HealthFile
from solocron.telemetry.log import log_event
from solocron.views import HealthView

if TYPE_CHECKING:  # a program without coroutine jobs imports no asyncio, and one without tracing no spans
    from solocron.dispatch.eventloop import LoopDispatcher
    from solocron.telemetry.tracing import Tracing

__all__ = ["CallersPlace", "Core", "running_loop"]


class CallersPlace(Protocol):
    """A place of the caller's where bodies run: its thread, or its event loop."""

    @property
    def inline(self) -> Inline | None: ...
    @property
    def dispatchers(self) -> Mapping[str, Dispatcher]: ...


class Core:
    """The state of one scheduler. Making it opens nothing and starts nothing."""

    configuration: Configuration
    client: Client
    """Made with the configuration; its store is opened by `open`."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        runtime: Runtime | None = None,
        dispatchers: Mapping[str, Dispatcher] | None = None,
    ) -> None:
        self.runtime = runtime or Threads()
        self.registry = Registry()
        self.events = Events()
        self.events.on("*", log_event, wants=log_event.wants)
        self.wrappers: list[Wrapper] = []
        self.setup: FunctionAddress | None = None
        """The function that a process calls before it carries runs, where Solocron or a queue is its program."""
        self.prepared_process: int | None = None
        """The process that needs no call of it any more; a child of a fork is another one."""
        self.retiring: list[Callable[[], None]] = []
        """Called on a thread of bodies before it ends, to close what belongs to the thread."""
        self.carriers: dict[str, Carriage] = {}
        """The carriers that jobs may name as `run_in`."""
        self.tracing: Tracing | None = None
        """What makes spans of runs, where the program has tracing."""
        self.alarm_settings: AlarmSettings | None = None
        """The thresholds of alarms, where the scheduler looks for them."""
        self.node: Node | None = None
        self.leaving: Node | None = None
        """The node while it drains."""
        self.loop: Any = None
        """The caller's event loop, on which coroutine jobs run."""
        self.moved: list[Callable[[], None]] = []
        """Called after `configure` has changed the store."""
        self._loop_dispatcher: LoopDispatcher | None = None
        self._dispatchers = dispatchers
        self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take a configuration, the first one or another one before the start; the store is made, and not opened."""
        if self.alive:
            raise ConfigurationError(
                "this scheduler runs already, so nothing was changed; configure it before it starts."
            )
        settings = configuration.settings_of(os.getpid(), self.runtime.rng.token())
        place = configuration.store
        if isinstance(place, Secret):
            lease = parse_duration(settings.lease, what="lease")
            place = make_store(place, namespace=configuration.namespace, lease=lease)
        before = getattr(self, "client", None)
        if before is not None and before.store is not place:
            before.store.close()
        self.configuration, self._settings = configuration, settings
        self.client = Client(place, registry=self.registry, runtime=self.runtime, late_for=settings.late_for)
        self.client.changed.append(self.wake)
        for call in self.moved:
            call()

    @property
    def settings(self) -> Settings:
        """The settings of this process's node; the child of a fork is another node, under another name."""
        if self._settings.pid != os.getpid():
            self._settings = self.configuration.settings_of(os.getpid(), self.runtime.rng.token())
        return self._settings

    @property
    def store(self) -> Store:
        """The store, opened or not."""
        return self.client.store

    def open(self, *, read_only: bool = False) -> Client:
        """Open the store and return its client; opened for reading, nothing is created or migrated."""
        self.store.open(read_only=read_only)
        return self.client

    @property
    def alive(self) -> bool:
        """True if the node runs in this process."""
        return self.running_node is not None

    @property
    def running_node(self) -> Node | None:
        """The node that runs in this process; the child of a fork has none."""
        node = getattr(self, "node", None)
        return node if node is not None and node.process == self.runtime.process() else None

    def carrier_of(self, job: str) -> str | None:
        """Return the carrier that a job of this code names; None if it names none, or is not declared here."""
        declared = self.registry.jobs.get(job)
        return None if declared is None or declared.options.hand_over is None else declared.options.run_in

    def expression_of(self, job: str) -> str | None:
        """Return the cron expression of a job of this code; None if it has another schedule or is not declared here."""
        declared = self.registry.jobs.get(job)
        spec = None if declared is None else declared.spec
        return None if spec is None or spec.get("kind") != "cron" else str(spec["expression"])

    def message_dropped(self, message: Message, reason: str, remedy: str | None) -> None:
        """Tell that a message starts nothing, and what to do about it; None if it is in order."""
        self.events.emit(
            "message dropped", job=message.job, run=message.run, attempt=message.attempt,
            carrier=self.carrier_of(message.job), node=self.settings.node, reason=reason, remedy=remedy,
        )  # fmt: skip

    def wake(self) -> None:
        """Let the node look for work now."""
        if self.node is not None:
            self.node.wake()

    def no_node(self) -> HealthView:
        """Return the health of a process in which no node runs."""
        settings = self.settings
        return HealthView(
            node=settings.node, namespace=self.store.namespace, host=settings.host, pid=settings.pid,
            alive=False, ready=False, why=("no node runs in this process",), session=None, trusted_for_s=None,
            store_answers=False, loops={}, event_loop_lag_s=None, blocked_by=None, running=0, draining=False,
            lease_s=settings.lease, age_s=0.0,
        )  # fmt: skip

    # --- the node --------------------------------------------------------------------------------------------

    def make_node(self, verbs: MakeVerbs, *, ticking: bool = False, here: CallersPlace | None = None) -> Node:
        """Assemble the node as it runs in production; the simulator assembles the same from its own parts.

        With `here` the bodies run where the caller is, one after the other.
        """
        self.loop = running_loop() or self.loop
        settings, dispatchers = self.settings, self._dispatchers
        if here is not None:
            settings, dispatchers = replace(settings, max_running=1), here.dispatchers
        self.find_setup()
        if dispatchers is None and any(one.run_in == "process" for one in self.registry):
            for wrapper in map(elsewhere, self.wrappers):
                address_of(wrapper, f"around({wrapper!r:.60})")
        return Node(
            Parts(
                store=self.store,
                runtime=self.runtime,
                settings=settings,
                events=self.events,
                declared=dict(self.registry.jobs),
                handlers=dict(self.registry.handlers),
                dispatchers=dispatchers or self._make_dispatchers(),
                around=self._around,
                make_run=partial(make_run, verbs=verbs),
                resolve=self.registry.resolve,
                zone_data=zone_data_version(),
                alarms=self.alarm_settings,
                calendars=Calendars(self.store, self.registry),
                vitals=self._vitals() if dispatchers is None and not ticking else None,
                inline=None if here is None else here.inline,
                carriers=dict(self.carriers) if self.tracing is None else self.tracing.carriages(self.carriers),
            )
        )

    def find_setup(self) -> Callable[[], object] | None:
        """Return the function of `Scheduler.setup`; refuse an address at which there is none."""
        if self.setup is None:
            return None
        try:
            found: Callable[[], object] = find(self.setup)
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"setup({str(self.setup)!r}) was not found ({error}), so nothing was started; a process of its own "
                "could not call it."
            ) from error
        return found

    def prepare(self) -> None:
        """Call the function of `Scheduler.setup`, once in a process; what it raises passes through."""
        if self.prepared_process == os.getpid():
            return
        setup = self.find_setup()
        if setup is not None:
            setup()
        self.prepared_process = os.getpid()

    def make_guest(self, verbs: MakeVerbs, dispatchers: Mapping[str, Dispatcher]) -> Node:
        """Assemble a node that claims nothing by itself: it serves no pool and declares no job."""
        return Node(
            Parts(
                store=self.store,
                runtime=self.runtime,
                settings=replace(self.settings, pools=frozenset()),
                events=self.events,
                declared={},
                handlers=dict(self.registry.handlers),
                dispatchers=self._dispatchers or dispatchers,
                around=self._around,
                make_run=partial(make_run, verbs=verbs),
                resolve=self.registry.resolve,
                zone_data=zone_data_version(),
                calendars=Calendars(self.store, self.registry),
                guest=True,
            )
        )

    def _vitals(self) -> Vitals | None:
        """Return where this node's health is written, unless that is switched off."""
        settings = self.settings
        file = HealthFile.make(namespace=self.store.namespace, node=settings.node, host=settings.host, pid=settings.pid)
        return None if file is None else Vitals(file.write, file.remove, self._look_at_event_loop)

    def _look_at_event_loop(self) -> LoopBlock | None:
        return None if self._loop_dispatcher is None else self._loop_dispatcher.look()

    def _make_dispatchers(self) -> Mapping[str, Dispatcher]:
        """Import whatever runs need besides the engine before there are threads that would import it.

        A process may be forked at any moment. A module that a thread is importing at that moment stays locked in the
        child forever, because that thread does not exist there: the first import in the child would never return.
        """
        import solocron.dispatch.process.dispatcher
        import solocron.runs.remote

        load_zone("UTC")  # and with it `zoneinfo`
        if any(handler.needs_loop for handler in self.registry.handlers.values()):
            import solocron.dispatch.eventloop
            import solocron.dispatch.in_thread  # noqa: F401
        return {
            "thread": ThreadDispatcher(self._retire),
            "loop": LazyDispatcher(self._make_loop_dispatcher),
            "process": LazyDispatcher(self._make_process_dispatcher),
        }

    def _retire(self) -> None:
        for call in self.retiring:
            call()

    def _make_loop_dispatcher(self) -> Dispatcher:
        from solocron.dispatch.eventloop import LoopDispatcher

        self._loop_dispatcher = LoopDispatcher(self.loop)
        return self._loop_dispatcher

    def _make_process_dispatcher(self) -> Dispatcher:
        from solocron.dispatch.process.dispatcher import ProcessDispatcher
        from solocron.dispatch.process.order import Home
        from solocron.runs.remote import make_remote_run

        place = self.configuration.store
        url = place if isinstance(place, Secret) and self.store.capabilities.shared else None
        why = "a store in this process' memory" if isinstance(place, Secret) else "a store that was passed as an object"
        return ProcessDispatcher(
            Home(
                store=url,
                why=f"the scheduler has {why}, which a process of its own cannot open; give it a URL that it can.",
                namespace=self.store.namespace,
                lease=self.settings.lease,
                setup=self.setup,
                around=lambda: [elsewhere(wrapper) for wrapper in self.wrappers],
                make_run=make_remote_run,
                trace=lambda run: None if self.tracing is None else self.tracing.traceparent(run),
            )
        )

    def _around(self, handler: Handler, run: Callable[[], BaseRun]) -> Callable[[], Any]:
        if self.wrappers:
            made = run()
            body = wrap(self.wrappers, made, handler.bind(made), is_async=handler.is_async)
        else:
            body = handler.bind(run()) if handler.takes_run or handler.given else handler.function
        if self.tracing is not None:
            body = self.tracing.inside(run(), body, is_async=handler.is_async)
        return current.entered(run, body, is_async=handler.is_async)


def running_loop() -> Any:
    """Return the caller's event loop, if it has one; a program that has not imported asyncio has none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except (RuntimeError, AttributeError):  # no loop; or a thread, perhaps of a parent, is just importing it
        return None
