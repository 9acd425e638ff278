"""`ServerTime`: the server's clock, from replies that tell of it, however bluntly.

It keeps an interval in which the difference between the server's clock and the boot clock lies. A reply that says "it
was between low and high" narrows the interval; the drift of two clocks widens it. **The time is its lower end: never
ahead of the server, so nothing fires early.** Replies that contradict everything before are a step of the server's
clock: the interval begins anew, and only then may the time go back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

from solocron.clock import MILLISECOND, SECOND, SystemClock
from solocron.stores import forking

__all__ = ["ServerTime", "Sharpener", "time_of"]

_DRIFT = 0.000_5
"""By how much the rates of two clocks may differ."""
_SHARP = 40 * MILLISECOND
"""Width of the interval that is good enough."""
_SHARPENS = 2.5
"""Seconds after which a clock that does not become sharp enough is taken as it is."""


class ServerTime:
    """One estimate for each server, shared by all clients of a process."""

    def __init__(self, boot: Callable[[], float] | None = None) -> None:
        self._boot = boot or SystemClock().boot
        self._mutex = threading.Lock()
        self._known: tuple[float, float, float] | None = None
        """Lower and upper end of server minus boot in microseconds, and the boot time at which that was so."""
        self._last = 0
        self.steps = 0
        """How often the server's clock was seen to step."""
        forking.watch(self)

    def begin_call(self) -> float:
        """Return the boot time to pass to `told` with the reply."""
        return self._boot()

    def told(self, low: int, high: int, sent: float) -> None:
        """Note a reply to a call that was sent then: the server's clock was between `low` and `high` meanwhile."""
        received = self._boot()
        lower, upper = low - received * SECOND, high - sent * SECOND
        with self._mutex:
            known = self._at(received)
            if known is not None:
                if lower <= known[1] and upper >= known[0]:
                    lower, upper = max(lower, known[0]), min(upper, known[1])
                else:
                    self.steps += 1
                    self._last = 0
            self._known = (lower, upper, received)

    def _at(self, boot: float) -> tuple[float, float] | None:
        if self._known is None:
            return None
        lower, upper, since = self._known
        drift = abs(boot - since) * SECOND * _DRIFT
        return lower - drift, upper + drift

    @property
    def is_known(self) -> bool:
        return self._known is not None

    def now(self) -> int:
        """Return a time that the server's clock has reached."""
        boot = self._boot()
        with self._mutex:
            known = self._at(boot)
            assert known is not None, "no reply has told the time yet"
            self._last = max(self._last, int(known[0] + boot * SECOND))
            return self._last

    @property
    def width(self) -> int:
        """How far behind the server's clock `now` may be, in microseconds."""
        with self._mutex:
            known = self._at(self._boot())
            return SECOND if known is None else int(known[1] - known[0])

    def next_question(self) -> float | None:
        """Return in how many seconds a question would halve the doubt; None while there is little.

        For a server that tells whole seconds: asked in the middle of the interval in which its second turns, it tells
        in which half that was.
        """
        boot = self._boot()
        with self._mutex:
            known = self._at(boot)
            if known is None or known[1] - known[0] <= _SHARP:
                return None
            middle = (known[0] + known[1]) / 2 + boot * SECOND
            return (SECOND - middle % SECOND) / SECOND

    def until_turn(self) -> float:
        """Return in how many seconds the server's second may turn, at the earliest; 0: any moment."""
        boot = self._boot()
        with self._mutex:
            known = self._at(boot)
            if known is None:
                return 0.0
            earliest, latest = known[0] + boot * SECOND, known[1] + boot * SECOND
            return 0.0 if earliest // SECOND != latest // SECOND else (SECOND - latest % SECOND) / SECOND

    def before_fork(self) -> None:
        """Do nothing: a child takes a mutex of its own."""

    def after_fork(self) -> None:
        """Nothing, as before it."""

    def forked(self) -> None:
        """Take a new mutex: a thread that does not exist in the child may have held the old one."""
        self._mutex = threading.Lock()


class Sharpener:
    """Sharpens the clock of a server that tells whole seconds, by asking while they turn."""

    def __init__(self, clock: ServerTime, ask: Callable[[], object]) -> None:
        """`ask` makes one cheap call whose reply tells the time."""
        self._clock = clock
        self._ask = ask
        self._sharp = 0

    def sharpen(self, within: int) -> None:
        """Ask until `now` is no further behind than that, or asking does not help."""
        clock = self._clock
        if clock.is_known and clock.width <= max(within, self._sharp):
            return
        until = time.monotonic() + _SHARPENS
        while time.monotonic() < until:
            self._ask()
            if clock.width <= within:
                break
            time.sleep(min(max(clock.until_turn(), 0.004), 1.0))
        # A slow network tells the time no better than that: do not ask for so long at every renewal.
        self._sharp = max(within, clock.width + clock.width // 2)


_times: dict[Hashable, ServerTime] = {}


def time_of(server: Hashable) -> ServerTime:
    """Return the estimate of a server, the same for every client of this process."""
    return _times.setdefault(server, ServerTime())  # atomic: a mutex could stay locked over a fork
