"""The common first argument of every service of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solocron.calendars.revisions import Calendars
from solocron.dispatch.carrier import Carriage
from solocron.dispatch.inline import Inline
from solocron.engine.settings import Settings
from solocron.engine.signals import Signals
from solocron.events import Events
from solocron.model.timetable import Resolve
from solocron.runtime import Runtime
from solocron.stores.contract import Store

__all__ = ["NodeContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The first argument of every service: the store, the seams to the outside, and the wake-ups of the other loops."""

    store: Store
    runtime: Runtime
    settings: Settings
    events: Events
    resolve: Resolve
    calendars: Calendars
    signals: Signals
    carriers: Mapping[str, Carriage] = field(default_factory=dict)
    """The carriers that this node publishes with, by the name that `run_in` uses."""
    guest: bool = False
    """True for a process that runs bodies only for the messages that it gets."""
    inline: Inline | None = None
    """The calls that the caller's thread carries out itself; None: dispatchers carry all of them out."""
