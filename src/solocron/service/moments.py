"""Equal reads of one request are one statement: a page shows one moment, however many of its parts ask for the same.

The parts of a page are made by functions that know nothing of each other, and several need the sessions, the pauses or
what is held. Inside `moment()` the first one reads, and the others get what it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from types import MappingProxyType
from typing import Any, cast

from solocron.client import Client
from solocron.stores.contract import Store

__all__ = ["MomentStore", "adopt", "apart", "lasting", "moment", "of_one_moment"]

_KEPT: ContextVar[dict[Hashable, Any] | None] = ContextVar("solocron-moment", default=None)
_READS = frozenset(
    [
        *("blocked", "clock", "count_jobs", "density", "due_times"),
        *("history", "marked", "names", "read", "tally_by_time"),
    ]
)
"""The reads that return the same for the same arguments, as long as no process writes."""
_LASTING = frozenset(["blocked", "count_jobs", "due_times", "marked", "names", "read"])


@contextmanager
def moment(known: Mapping[Hashable, Any] = MappingProxyType({})) -> Iterator[Mapping[Hashable, Any]]:
    """Let equal reads of this thread be one, and yield what is read; what is `known` counts as read."""
    kept = dict(known)
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def lasting(kept: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Return what of a moment may be shown a moment later: documents and names, not the time and what was counted."""
    return {key: value for key, value in kept.items() if isinstance(key, tuple) and key[1] in _LASTING}


def adopt(read: Mapping[Hashable, Any]) -> None:
    """Let the moment of this thread know what lasts of another one that has just ended inside it."""
    kept = _KEPT.get()
    if kept is not None:
        for key, value in lasting(read).items():
            kept.setdefault(key, value)


@contextmanager
def apart() -> Iterator[None]:
    """Read anew, although it is inside a moment: what is measured or examined is not remembered."""
    token = _KEPT.set(None)
    try:
        yield
    finally:
        _KEPT.reset(token)


class MomentStore:
    """A store, with every method of its own; what was read in this moment is not read again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._once(name, found) if name in _READS else found

    def _once(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def once(*args: Any, **more: Any) -> Any:
            kept = _KEPT.get()
            if kept is None:
                return read(*args, **more)
            key = (id(self), name, args, tuple(sorted(more.items())))
            if key not in kept:
                kept[key] = read(*args, **more)
            return kept[key]

        return once


def of_one_moment(reading: Callable[[], Client]) -> Callable[[], Client]:
    """Return where clients come from whose stores know of moments; a client that stays the same is wrapped once."""
    lock, known = Lock(), list[tuple[Client, Client]]()

    def client() -> Client:
        given = reading()
        with lock:
            if not known or known[0][0] is not given:
                parts = given.documents
                store = cast("Store", MomentStore(given.store))
                made = Client(store, registry=parts.registry, runtime=parts.runtime, late_for=parts.late_for)
                known[:] = [(given, made)]
            return known[0][1]

    return client
