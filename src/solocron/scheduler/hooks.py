"""Doors for the command line, the simulator and tests; they are not part of the public interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from solocron.dispatch.contract import Dispatcher
from solocron.effects.locks.lock import LockPlace
from solocron.engine.node import Node
from solocron.runtime import Runtime
from solocron.scheduler.configuration import Configuration
from solocron.scheduler.core import Core
from solocron.scheduler.scheduler import Scheduler
from solocron.scheduler.serving import clients_of
from solocron.stores.contract import Store

if TYPE_CHECKING:
    from solocron.service.clients import ServiceClients
    from solocron.service.ticking import TickResult

__all__ = [
    "core_of",
    "lock_place_of",
    "make_node",
    "node_is_ready",
    "scheduler_on",
    "service_clients_of",
    "tick_once",
]


def core_of(scheduler: Scheduler) -> Core:
    """Return the parts of a scheduler."""
    return scheduler._core


def service_clients_of(scheduler: Scheduler) -> ServiceClients:
    """Return the clients of a service beside a scheduler, on stores of their own."""
    return clients_of(scheduler._core)


def tick_once(scheduler: Scheduler, *, claim_for: float | None = None) -> TickResult:
    """Do one pass; claim for so many seconds at most."""
    return scheduler._tick_once(claim_for)


def node_is_ready(scheduler: Scheduler) -> bool:
    """Return False only if a node runs in this process that cannot claim."""
    return scheduler._node_is_ready()


def scheduler_on(
    runtime: Runtime,
    store: str | Store,
    *,
    dispatchers: Mapping[str, Dispatcher] | None = None,
    **options: Any,
) -> Scheduler:
    """Make a scheduler on another clock, other threads and other dispatchers than the real ones."""
    scheduler = Scheduler.__new__(Scheduler)
    scheduler._assemble(Core(Configuration.make(store, **options), runtime=runtime, dispatchers=dispatchers))
    return scheduler


def make_node(scheduler: Scheduler) -> Node:
    """Assemble the node of a scheduler, for tests that drive its parts by hand."""
    return scheduler._core.make_node(scheduler._locks.make_verbs)


def lock_place_of(scheduler: Scheduler) -> LockPlace:
    """Return the place where a scheduler takes locks."""
    return scheduler._locks.place()
