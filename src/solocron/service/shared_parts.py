"""The main parts of pages that several readers have open: each is made once for all of them.

When something changes, every open page asks for itself at the same moment. A part depends on its address and on what
the role may see, not on who asks, so that the first one makes it and the others get the same. One that was made before
the last change is made again: no reader may be told of a change and then be shown the state before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock

from solocron.service.request import Response, packed

__all__ = ["SharedParts"]

_FRESH = 1.0
"""Seconds for which a part is given away, if nothing changes."""
_SHARE = 10
_STALE = 5.0
"""A part is given away for so many times as long as it took, and for so many seconds at most.

On a busy machine it may take a second. The readers who wait for it meanwhile shall get it, and not make it once more.
"""
_KEPT = 200


@dataclass(slots=True)
class _Part:
    lock: Lock = field(default_factory=Lock)
    response: Response | None = None
    position: Hashable = None
    made_at: float = 0.0
    until: float = 0.0


class SharedParts:
    """Parts by their keys. Safe to call from any thread; two callers of one part make it once."""

    def __init__(self, *, clock: Callable[[], float], position: Callable[[], Hashable]) -> None:
        self._clock = clock
        self._position = position
        self._lock = Lock()
        self._parts: OrderedDict[Hashable, _Part] = OrderedDict()

    def forget(self) -> None:
        """Make every part anew: this process has changed something."""
        with self._lock:
            self._parts.clear()

    def get(self, key: Hashable, make: Callable[[], Response]) -> tuple[Response, float]:
        """Return the part of a key and its age in seconds; one that is not there, or is not fresh, is made.

        Only good ones are kept.
        """
        with self._lock:
            part = self._parts.setdefault(key, _Part())
            self._parts.move_to_end(key)
            while len(self._parts) > _KEPT:
                self._parts.popitem(last=False)
        with part.lock:
            position, now = self._position(), self._clock()  # before it is made: a change meanwhile makes it old
            if part.response is None or part.position != position or now >= part.until:
                made = make()
                if made.status != 200:
                    return made, 0.0
                part.response, part.position, part.made_at = packed(made), position, now
                ended = self._clock()
                part.until = ended + min(_STALE, max(_FRESH, _SHARE * (ended - now)))
            return part.response, self._clock() - part.made_at
