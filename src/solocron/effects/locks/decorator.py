"""`@locked("name")`: any function, under any scheduler (Celery beat, APScheduler, cron), one caller at a time."""

from __future__ import annotations

import functools
import inspect
import logging
import string
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from solocron.effects.locks.lock import Lock, LockPlace
from solocron.errors import InvalidError
from solocron.stores.contract import Store
from solocron.stores.url import Secret

__all__ = ["MakesLocks", "locked"]

log = logging.getLogger("solocron")

F = TypeVar("F", bound=Callable[..., Any])


class MakesLocks(Protocol):
    """A scheduler, as far as locks are concerned."""

    def lock(self, name: str, **options: Any) -> Lock: ...


def locked(
    name: str,
    *,
    store: str | Secret | Store | MakesLocks | None = None,
    busy: str = "skip",
    **options: Any,
) -> Callable[[F], F]:
    """Run the function only while holding the lock; `"tenant-{id}"` takes the name from the call's arguments.

    While another caller has the lock the call does nothing and returns None (`busy="raise"`: raises `LockBusy`).
    `store` is a URL, a store or a scheduler (default: $SOLOCRON_STORE); the other options are those of `Lock`.
    """
    if busy not in ("skip", "raise"):
        raise InvalidError(f'locked({name!r}, busy={busy!r}): choose "skip" or "raise".')
    fields = [field for _, field, _, _ in string.Formatter().parse(name) if field is not None]
    make = _maker(store, options)
    make_once = functools.lru_cache(maxsize=1)(lambda: make(name))
    if not fields and store is not None:
        make_once()  # a mistake in the store or the options is reported where it is written

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        for field in fields:
            root = field.partition(".")[0].partition("[")[0]
            if root not in signature.parameters:
                raise InvalidError(f"locked({name!r}): {function.__qualname__} has no parameter {root!r}.")

        def lock(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lock:
            if not fields:
                return make_once()
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return make(name.format(**bound.arguments))

        def passed_over(found: Lock) -> None:
            log.debug("held elsewhere", extra={"event": "lock held elsewhere", "lock": found.name})

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = lock(args, kwargs)
            held = found.acquire()
            if held is None:
                return passed_over(found) if busy == "skip" else found._or_busy(None)
            try:
                return function(*args, **kwargs)
            finally:
                held.release()

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            from solocron.dispatch.in_thread import in_thread

            found = lock(args, kwargs)
            held = await found.acquire_async()
            if held is None:
                return passed_over(found) if busy == "skip" else found._or_busy(None)
            try:
                return await function(*args, **kwargs)
            finally:
                await in_thread(held.release)

        return call_async if inspect.iscoroutinefunction(function) else call  # type: ignore[return-value]

    return decorate


def _maker(store: Any, options: dict[str, Any]) -> Callable[[str], Lock]:
    """Return a function that makes a lock of a name; the locks of one decorator share their connections."""
    if store is not None and hasattr(store, "lock"):
        return lambda name: store.lock(name, **options)
    place_options = {key: options.pop(key) for key in ("namespace", "lease") if key in options}
    place = functools.lru_cache(maxsize=1)(lambda: LockPlace.of(store, **place_options))
    return lambda name: Lock(place(), name, **options)
