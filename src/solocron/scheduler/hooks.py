"""Doors for the command line, the simulator and tests; they are not part of the public interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solocron.dispatch.contract import Dispatcher
from solocron.effects.locks.lock import LockPlace
from solocron.engine.node import Node
from solocron.runtime import Runtime
from solocron.scheduler.configuration import Configuration
from solocron.scheduler.core import Core
from solocron.scheduler.scheduler import Scheduler
from solocron.stores.contract import Store

__all__ = ["core_of", "lock_place_of", "make_node", "scheduler_on"]


def core_of(scheduler: Scheduler) -> Core:
    """Return the parts of a scheduler."""
    return scheduler._core


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
    return scheduler._core.make_node(scheduler._make_verbs)


def lock_place_of(scheduler: Scheduler) -> LockPlace:
    """Return the place where a scheduler takes locks."""
    return scheduler._locks.place()
