"""`auth=` of a host application: its own function says who a caller is. Its answer is not kept."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from solocron.service.identity import HostAuth, KnownCaller, Via
from solocron.service.request import RequestHead
from solocron.service.roles import Identity, Role

__all__ = ["HostAuthentication"]

log = logging.getLogger("solocron.service")

_LONGEST_NAME = 200


class HostAuthentication:
    """Calls the function of the host application. Whatever it does but return an Identity, the caller is not known."""

    def __init__(self, auth: HostAuth) -> None:
        self._auth = auth

    async def find(
        self, head: RequestHead, in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> KnownCaller | None:
        """Call it: an async function here, any other in a thread, because it may ask a database."""
        headers, cookies = dict(head.headers), dict(head.cookies)
        try:
            if inspect.iscoroutinefunction(self._auth):
                found = await self._auth(headers, cookies)
            else:
                found = await in_thread(lambda: self._auth(headers, cookies))
                found = await found if inspect.isawaitable(found) else found
            return _caller(found)
        except Exception:
            log.exception("request %s: auth= failed, so its caller is not known", head.id)
            return None

    def find_now(self, head: RequestHead) -> KnownCaller | None:
        """Call it in this thread, for WSGI; an async function cannot be used there."""
        try:
            return _caller(self._auth(dict(head.headers), dict(head.cookies)))
        except Exception:
            log.exception("request %s: auth= failed, so its caller is not known", head.id)
            return None


def _caller(found: object) -> KnownCaller | None:
    if found is None:
        return None
    if not isinstance(found, Identity) or found.role not in set(Role):
        raise TypeError(f"auth= returned {type(found).__name__}; return solocron.service.Identity or None")
    if not isinstance(found.name, str) or not 0 < len(found.name) <= _LONGEST_NAME or not found.name.isprintable():
        raise TypeError(f"auth= returned an identity whose name is not 1 to {_LONGEST_NAME} printable characters")
    if found.namespaces is not None and not _are_names(found.namespaces):
        raise TypeError("auth= returned an identity whose namespaces are not a frozenset of names, or None for all")
    return KnownCaller(Identity(found.name, Role(found.role), found.namespaces), Via.HOST)


def _are_names(found: object) -> bool:
    """Return whether these are names: a text would let in whatever namespace is a part of it."""
    return isinstance(found, frozenset) and all(isinstance(one, str) for one in found)
