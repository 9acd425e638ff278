"""Several namespaces behind one address: the first at its root, each further one below `/ns/NAME`.

Each is a service of its own, with its own connections and its own watch. None asks its store for anything before the
first request for it. They share the tokens, so that a login counts for all of them, and the guard of each decides who
may enter it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from solocron.errors import ConfigurationError
from solocron.service.asgi import AsgiService, Receive, Scope, Send

__all__ = ["BELOW", "NamespacesApp", "paths_of"]

BELOW = "/ns/"
_MOST = 50
_NAMED = re.compile(rf"{BELOW}([^/]+)(?:/|$)")


def paths_of(names: Sequence[str], untouched: str) -> dict[str, str]:
    """Return the path of each namespace below the address of the service; the first one has none."""
    first, *others = names
    if len(set(names)) < len(names):
        raise ConfigurationError(f"a namespace is named twice: {', '.join(names)}. {untouched}")
    if len(names) > _MOST:
        raise ConfigurationError(f"{len(names)} namespaces are too many for one service: at most {_MOST}. {untouched}")
    for name in others:
        if not name.strip("."):
            raise ConfigurationError(f"namespace {name!r} cannot be a part of an address. {untouched}")
    return {first: "", **{name: f"{BELOW}{name}" for name in others}}


class NamespacesApp:
    """An ASGI application that hands each request to the service of its namespace.

    A namespace that is not served is left to the first service, whose guard comes before "there is nothing here".
    """

    def __init__(self, first: AsgiService, others: Mapping[str, AsgiService], *, base: str = "") -> None:
        self._first = first
        self._others = others
        self._base = base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._service_of(scope)(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        for one in (self._first, *self._others.values()):
            one.shut()
        await send({"type": "lifespan.shutdown.complete"})

    def end_streams(self) -> None:
        """End every open stream of every namespace."""
        for one in (self._first, *self._others.values()):
            one.end_streams()

    def _service_of(self, scope: Scope) -> AsgiService:
        path: str = scope["path"]
        below = path.removeprefix(self._base) if path.startswith(f"{self._base}/") else path
        named = _NAMED.match(below)
        return self._first if named is None else self._others.get(unquote(named[1]), self._first)
