"""One leader among any number of processes, elected in the background; a loss is reported before another can win.

Leadership is a lock that is tied to a session. The leader stops trusting it a tenth of a lease before the store's clock
lets a sweeper bury the session. Its `on_loss` runs then, from a loop that never waits for the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NoReturn

from solocron.effects.locks.held import HELD, Held
from solocron.effects.locks.lock import Lock, LockPlace
from solocron.errors import ConflictError, LockLost, NotEntered, RunStopped, StoreError
from solocron.events import Events
from solocron.loop import Loop
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.lock import state_of
from solocron.stores.contract import Named

__all__ = ["Leader"]

log = logging.getLogger("solocron")

Callback = Callable[[], Any]


class Leader:
    """A campaign for one name. `with leader:` campaigns and resigns; callbacks run on the campaign's own thread."""

    def __init__(
        self,
        place: LockPlace,
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
        self._begin_anew()

    def _begin_anew(self) -> None:
        runtime = self._place.runtime
        self._process = runtime.process()
        self._held: Held | None = None
        self._gaining: Held | None = None
        """Won, and `on_gain` is running: only from then on may a loss be reported."""
        self._mutex = runtime.mutex()
        self._past: list[Held] = []
        """Lost, and still to be released."""
        self._loops: tuple[Loop, ...] = ()
        self._changed = runtime.event()

    def _see_to_a_fork(self) -> None:
        """Hold nothing and do not campaign in the child of a fork: the parent's leadership is the parent's."""
        if self._process != self._place.runtime.process():
            self._begin_anew()

    def __repr__(self) -> str:
        return f"<Leader {self.name!r} {'leads' if self.is_leader else 'does not lead'}>"

    @property
    def is_leader(self) -> bool:
        """True if this process certainly leads. Reads its own clock, never the store, so it is never late."""
        self._see_to_a_fork()
        held = self._held or self._gaining
        return held is not None and not held.released and not held.lost

    @property
    def fence(self) -> int | None:
        """The leader's fence, which grows with every leader of this name; None while this process does not lead."""
        self._see_to_a_fork()
        held = self._held or self._gaining
        return held.fence if held is not None and self.is_leader else None

    def check(self) -> None:
        """Raise `LockLost` unless this process certainly leads."""
        if not self.is_leader:
            raise LockLost(f"this process does not lead {self.name!r} (any more); stop what only the leader may do.")

    def campaign(self) -> Leader:
        """Try to lead, in the background, until `resign`; returns at once."""
        self._see_to_a_fork()
        if self._loops:
            raise ConflictError(f"this process campaigns for {self.name!r} already; nothing was changed.")
        steps = (("leader", self._step), ("leader-watch", self._watch))
        self._loops = tuple(Loop(name, step, runtime=self._place.runtime, events=self._events) for name, step in steps)
        for loop in self._loops:
            loop.start()
        return self

    def resign(self) -> None:
        """Stop campaigning. A leader gets `on_loss` first, then the leadership is free."""
        self._see_to_a_fork()
        loops, self._loops = self._loops, ()
        for loop in loops:
            loop.stop()
        for loop in loops:
            loop.join(timeout=self._beat)
        self._lose("resigned")
        self._release()

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

    def __bool__(self) -> NoReturn:
        raise NotEntered(
            f"the campaign for {self.name!r} was used as a truth value. Nothing was changed; use `is_leader`, which "
            "becomes true after `campaign()` or inside `with leader:`."
        )

    def __enter__(self) -> Leader:
        return self.campaign()

    def __exit__(self, *exc: object) -> None:
        self.resign()

    def _step(self, now: float) -> float:
        """Keep the leadership, notice a forced release, or try to win; return when to look again."""
        held = self._held
        if held is not None:
            if held.lost or self._still_ours(held):
                return now + self._beat
            self._lose("it was taken away by force")
        self._release()
        try:
            won = self._lock.acquire()
        except LockLost:
            return now + self._beat / 4
        if won is None:
            return now + self._beat * self._place.runtime.rng.uniform(0.5, 1.0)
        HELD.set(())  # leadership belongs to the process, not to this thread
        log.info("leads", extra={"event": "leader gained", "leader": self.name, "fence": won.fence})
        self._gaining = won
        self._tell(self._on_gain)
        self._held, self._gaining = won, None
        self._changed.set()
        for loop in self._loops:
            loop.wake()
        return now + self._beat

    def _watch(self, now: float) -> float:
        """Report the loss the moment the trust ends. Never calls the store, so a store that hangs cannot delay it."""
        held = self._held
        if held is None:
            return now + 3600
        if held.lost:
            self._lose("its lease could not be renewed in time")
            for loop in self._loops:
                loop.wake()
            return now + 3600
        return max(held.trusted_until(), now)

    def _still_ours(self, held: Held) -> bool:
        """Return False if the document shows a forced release; an unavailable store proves nothing."""
        try:
            docs = self._place.store.read(Named(Kind.LOCK, (self._lock.name,)))
        except StoreError:
            return True
        return any(isinstance(doc, SmallDocument) and state_of(doc).fence == held.fence for doc in docs)

    def _lose(self, why: str) -> None:
        with self._mutex:
            held, self._held = self._held, None
        if held is None:
            return
        log.info("leads no more", extra={"event": "leader lost", "leader": self.name, "reason": why})
        self._tell(self._on_loss)
        self._past.append(held)

    def _release(self) -> None:
        while self._past:
            self._past[0].release()
            del self._past[0]

    def _tell(self, callback: Callback | None) -> None:
        if callback is None:
            return
        try:
            callback()
        except (Exception, RunStopped):  # a callback may hold the run that campaigns
            log.exception("a leadership callback raised", extra={"event": "leader callback", "leader": self.name})
