"""The context of a node that stands alone: services are built with it one at a time."""

from __future__ import annotations

from typing import cast

from solocron.calendars.revisions import Calendars
from solocron.engine.attempts import Attempts
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.settings import Settings
from solocron.engine.signals import Signals
from solocron.events import Events
from solocron.jobs.registry import Registry
from solocron.lease.own import OwnLease
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.timetable import EMPTY
from solocron.runtime import Runtime, Threads
from solocron.stores.contract import Gate, Store

__all__ = ["OPEN", "attempts_of", "context_of", "settings_of"]


class Open:
    """A namespace that is open and stays so."""

    epoch = ""

    def may_claim(self) -> bool:
        return True

    def gate(self) -> Gate:
        return Gate(0, ("open",))

    def for_claims(self) -> tuple[str, Gate, tuple[ScopedPause, ...]]:
        return self.epoch, self.gate(), ()


OPEN = cast(NamespaceGate, Open())


def settings_of(max_running: int = 8, lease: str = "15s") -> Settings:
    return Settings.make(
        node="n1", host="h", pid=1, pools=("default",), lease=lease, beat=None, max_running=max_running, keep="30d",
        revision=None, version="",
    )  # fmt: skip


def context_of(store: object, *, runtime: Runtime | None = None, max_running: int = 8) -> NodeContext:
    runtime = runtime or Threads()
    return NodeContext(
        store=cast(Store, store), runtime=runtime, settings=settings_of(max_running), events=Events(),
        resolve=lambda spec: EMPTY, calendars=Calendars(cast(Store, store), Registry()), signals=Signals(runtime),
    )  # fmt: skip


def attempts_of(context: NodeContext) -> Attempts:
    """A table of attempts under a session that was just begun."""
    lease = OwnLease(context.runtime, context.settings, context.signals.claim.look_again)
    lease.begin("s", context.runtime.clock.boot())
    return Attempts(context, lease)
