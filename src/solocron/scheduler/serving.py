"""`Scheduler.asgi()` and `.wsgi()`: the HTTP service as an application that another one mounts."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from solocron.client import Client
from solocron.clock import from_us
from solocron.duration import parse_duration
from solocron.events import Event
from solocron.scheduler.core import Core
from solocron.scheduler.inline import Here
from solocron.stores.contract import Due
from solocron.stores.memory import MemoryStore
from solocron.stores.url import Secret, make_store

if TYPE_CHECKING:  # a program that serves nothing imports nothing of it
    from solocron.service.asgi import AsgiService
    from solocron.service.call import Values
    from solocron.service.clients import ServiceClients
    from solocron.service.identity import HostAuth
    from solocron.service.oidc import Oidc
    from solocron.service.ticking import TickResult
    from solocron.service.wsgi import WsgiService
    from solocron.views import RunView

__all__ = ["ServiceOperations", "clients_of"]


class ServiceOperations:
    """The methods of `Scheduler` that serve its namespace over HTTP."""

    _core: Core

    def asgi(
        self,
        *,
        auth: HostAuth | None = None,
        tokens: str | os.PathLike[str] | None = None,
        allowed_hosts: Collection[str] | None = None,
        read_only: bool = False,
        edit: bool = False,
        tick: bool = False,
        oidc: Oidc | None = None,
        values: Values = "operate",
        live: bool = True,
    ) -> AsgiService:
        """Return the HTTP service as an ASGI application to mount. It starts no node, and opens nothing by itself.

        Without `auth` and `tokens` it serves health checks, and 401 for all else. Without `live` there are no streams:
        open pages ask again every 5 s.
        """
        from solocron.service.asgi import AsgiService
        from solocron.service.mounting import make_service

        service, host = make_service(
            clients_of(self._core), what="scheduler.asgi()", auth=auth, tokens=tokens, allowed_hosts=allowed_hosts,
            read_only=read_only, edit=edit, tick=self._tick_once if tick else None, oidc=oidc, values=values,
            live=live, runs_node=lambda: self._core.alive, node_is_ready=self._node_is_ready,
        )  # fmt: skip
        return AsgiService(service, auth=host)

    def wsgi(
        self,
        *,
        auth: HostAuth | None = None,
        tokens: str | os.PathLike[str] | None = None,
        allowed_hosts: Collection[str] | None = None,
        read_only: bool = False,
        edit: bool = False,
        tick: bool = False,
        oidc: Oidc | None = None,
        values: Values = "operate",
    ) -> WsgiService:
        """Return the HTTP service as a WSGI application to mount; as `asgi`, but `auth` may not be a coroutine."""
        from solocron.service.mounting import make_service
        from solocron.service.wsgi import WsgiService

        service, host = make_service(
            clients_of(self._core), what="scheduler.wsgi()", auth=auth, tokens=tokens, allowed_hosts=allowed_hosts,
            read_only=read_only, edit=edit, tick=self._tick_once if tick else None, oidc=oidc, values=values,
            runs_node=lambda: self._core.alive, node_is_ready=self._node_is_ready, may_await=False,
        )  # fmt: skip
        return WsgiService(service, auth=host)

    def _tick_once(self, claim_for: float | None = None) -> TickResult:
        """Do a pass; see what it did, and when something is due next."""
        from solocron.service.ticking import TickResult

        core, handed_over = self._core, list[str]()

        def count(event: Event) -> None:
            handed_over.append(event.run)

        core.events.on("handed over", count)
        try:
            runs = self._tick(None, claim_for)
        finally:
            core.events.off("handed over", count)
        wanted = Due(handlers=frozenset(core.registry.handlers), pools=core.settings.pools, limit=1)
        applied = core.store.update(wanted, lambda document, now: None)
        core.store.close()
        due = applied.now if applied.results else applied.next_due
        return TickResult(runs, None if due is None else from_us(due), len(handed_over))

    def _tick(self, here: Here | None, claim_for: float | None = None) -> list[RunView]:
        raise NotImplementedError

    def _node_is_ready(self) -> bool:
        """Return False only if a node runs in this process that cannot claim."""
        node = self._core.running_node
        return node is None or node.pulse.look().ready


def clients_of(core: Core) -> ServiceClients:
    """Return the clients of a service beside a scheduler: on stores of their own, which the first request opens."""
    from solocron.service.clients import ServiceClients

    stores = _Stores(core)
    core.moved.append(stores.close)
    return ServiceClients(stores.reading, stores.writing, stores.close)


class _Stores:
    """Makes the stores when they are first asked for: until then the scheduler may be configured anew."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._made: tuple[Client, Client] | None = None

    def reading(self) -> Client:
        client = self._clients()[0]
        client.store.open(read_only=True)
        return client

    def writing(self) -> Client:
        return self._clients()[1]

    def close(self) -> None:
        """End the connections, and forget the stores."""
        with self._lock:
            made, self._made = self._made, None
        for client in made or ():
            if client.store is not self._core.store:
                client.store.close()

    def _clients(self) -> tuple[Client, Client]:
        with self._lock:
            if self._made is None:
                self._made = self._client(), self._client()
            return self._made

    def _client(self) -> Client:
        core, place = self._core, self._core.configuration.store
        if not isinstance(place, Secret) or isinstance(core.store, MemoryStore):
            return core.client  # what the caller made, or what is only in this process
        lease = parse_duration(core.settings.lease, what="lease")
        store = make_store(place, namespace=core.configuration.namespace, lease=lease)
        client = Client(store, registry=core.registry, runtime=core.runtime, late_for=core.settings.late_for)
        client.changed.append(core.wake)
        return client
