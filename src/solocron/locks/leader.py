"""One leader among any number of processes, chosen in the background; loss is told before anyone else can win.

Leadership is a lock that is tied to a session. The leader stops trusting it a tenth of a lease before the store's
clock lets anybody bury the session, and its `on_loss` runs then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from solocron.engine.loop import Loop
from solocron.errors import Conflict, LeaseLost, StoreError
from solocron.events import Events
from solocron.locks.held import HELD, Held
from solocron.locks.lock import Lock, Place
from solocron.model.change import Kind, Note
from solocron.model.lock import state_of
from solocron.stores.contract import Named

__all__ = ["Leader"]

log = logging.getLogger("solocron")

Callback = Callable[[], Any]


class Leader:
    """A campaign for one name. `with leader:` campaigns and resigns; callbacks run on the campaign's own thread."""

    def __init__(
        self,
        place: Place,
        name: str,
        *,
        beat: float,
        on_gain: Callback | None = None,
        on_loss: Callback | None = None,
        events: Events | None = None,
    ) -> None:
        self._lock = Lock(place, f"leader:{name}", keep_alive=True)
        self._lock.watching = True
        self.name = name
        self._place = place
        self._beat = beat
        self._on_gain = on_gain
        self._on_loss = on_loss
        self._events = events or Events()
        self._held: Held | None = None
        self._loop: Loop | None = None
        self._changed = place.runtime.event()

    def __repr__(self) -> str:
        return f"<Leader {self.name!r} {'leads' if self.is_leader else 'does not lead'}>"

    @property
    def is_leader(self) -> bool:
        """Whether this process certainly leads; asks its own clock, never the store, so it is never late."""
        held = self._held
        return held is not None and not held.released and not held.lost

    @property
    def fence(self) -> int | None:
        """Grows with every leader of this name; None while this process does not lead."""
        held = self._held
        return held.fence if held is not None and self.is_leader else None

    def check(self) -> None:
        """Raise `LeaseLost` unless this process certainly leads."""
        if not self.is_leader:
            raise LeaseLost(f"this process does not lead {self.name!r} (any more); stop what only the leader may do.")

    def campaign(self) -> Leader:
        """Try to lead, in the background, until `resign`; returns at once."""
        if self._loop is not None:
            raise Conflict(f"this process campaigns for {self.name!r} already; nothing was changed.")
        self._loop = Loop("leader", self._step, runtime=self._place.runtime, events=self._events)
        self._loop.start()
        return self

    def resign(self) -> None:
        """Stop campaigning; who led is told of the loss first, then the leadership is free."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.stop()
        loop.join(timeout=self._beat)
        self._lose("resigned")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until this process leads; False if it does not within `timeout` seconds."""
        clock = self._place.runtime.clock
        until = None if timeout is None else clock.boot() + timeout
        while not self.is_leader:
            self._changed.clear()
            left = None if until is None else until - clock.boot()
            if self.is_leader:
                break
            if left is not None and left <= 0:
                return False
            self._changed.wait(left)
        return True

    def __enter__(self) -> Leader:
        return self.campaign()

    def __exit__(self, *exc: object) -> None:
        self.resign()

    def _step(self, now: float) -> float:
        """Lead on, lose, or try; returns when to look again."""
        held = self._held
        if held is not None:
            if held.lost:
                self._lose("its lease could not be renewed in time")
            elif not self._still_ours(held):
                self._lose("it was taken away by force")
            else:
                # Not later than the trust ends: that is when the loss has to be told.
                return min(now + self._beat, max(held.trusted_until(), now))
        try:
            self._held = self._lock.acquire()
        except LeaseLost:
            return now + self._beat / 4
        if self._held is None:
            return now + self._beat * self._place.runtime.rng.uniform(0.5, 1.0)
        HELD.set(())  # leadership belongs to the process, not to this thread
        log.info("leads", extra={"event": "leader gained", "leader": self.name, "fence": self._held.fence})
        self._changed.set()
        self._tell(self._on_gain)
        return now

    def _still_ours(self, held: Held) -> bool:
        """A release by force shows in the document; a store that does not answer says nothing."""
        try:
            docs = self._place.store.read(Named(Kind.LOCK, (self._lock.name,)))
        except StoreError:
            return True
        return any(isinstance(doc, Note) and state_of(doc).fence == held.fence for doc in docs)

    def _lose(self, why: str) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        log.info("leads no more", extra={"event": "leader lost", "leader": self.name, "reason": why})
        self._tell(self._on_loss)
        held.release()

    def _tell(self, callback: Callback | None) -> None:
        if callback is None:
            return
        try:
            callback()
        except Exception:
            log.exception("a leadership callback raised", extra={"event": "leader callback", "leader": self.name})
