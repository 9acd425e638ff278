"""The clock of a SQLite file: boot time plus an offset that is kept in the file, the same for every process.

The first to open the file after a boot sets the offset by its wall clock. From then on a step of the wall clock moves
nothing; a small drift is followed by at most 500 ppm. A change of pace is written down `AHEAD` before it begins, and
no process uses what it knows for longer than `FRESH`, so that all processes change pace at the same instant.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from solocron.clock import SECOND, Clock

__all__ = ["Anchor", "BootClock", "boot_key"]

PACE = 500e-6
FRESH = 20 * SECOND
AHEAD = 30 * SECOND
_WORTH = SECOND // 200
"""A drift below this is left alone."""
_NEAR = SECOND
"""Further away than this, one of the two clocks is wrong: warn, do not follow."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The store's time as a line: `store` at boot time `boot`; from `begin` to `end` it runs faster by `pace`."""

    boot: int
    store: int
    begin: int = 0
    end: int = 0
    pace: float = 0.0

    def at(self, boot: int) -> int:
        """The store's time at a boot time; it never runs backwards."""
        inside = min(max(boot, self.begin), self.end) - self.begin if self.end > self.begin else 0
        return self.store + (boot - self.boot) + int(inside * self.pace)

    def follow(self, boot: int, wall: int) -> Anchor | None:
        """The anchor that closes the gap to the wall clock; None where there is nothing to do."""
        gap = wall - self.at(boot)
        if boot < self.end or not _WORTH < abs(gap) < _NEAR:
            return None
        begin = boot + AHEAD
        pace = PACE if gap > 0 else -PACE
        return Anchor(boot, self.at(boot), begin, begin + int(abs(gap) / PACE), pace)

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Anchor:
        return cls(**json.loads(text))


class BootClock:
    """One process's view of the file's clock; `load` and `swap` read and write the anchor in the file."""

    def __init__(
        self, clock: Clock, load: Callable[[], Anchor | None], swap: Callable[[Anchor | None, Anchor], None]
    ) -> None:
        self._clock = clock
        self._load = load
        self._swap = swap
        self._anchor: Anchor | None = None
        self._loaded = -FRESH

    def now(self) -> int:
        """The store's time."""
        boot = self._boot()
        anchor = self._anchor
        if anchor is None or not self._loaded <= boot < self._loaded + FRESH:
            anchor = self.refresh(boot)
        return anchor.at(boot)

    def refresh(self, boot: int | None = None) -> Anchor:
        """Read the anchor again; set it if this is a new boot, and follow a small drift of the wall clock."""
        boot = self._boot() if boot is None else boot
        anchor = self._load()
        if anchor is None:
            first = Anchor(boot, self._clock.wall())
            self._swap(None, first)
            anchor = self._load() or first  # who only reads has written none: then the wall clock it is
        following = anchor.follow(boot, self._clock.wall())
        if following is not None:
            self._swap(anchor, following)
            anchor = self._load() or anchor
        self._anchor, self._loaded = anchor, boot
        return anchor

    def skew(self) -> int:
        """Return how far this process's wall clock is ahead of the store's, in microseconds."""
        return self._clock.wall() - self.now()

    def _boot(self) -> int:
        return int(self._clock.boot() * SECOND)


def boot_key() -> str:
    """The name of this boot, and of the time namespace in which boot time is counted."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/time")
    except OSError:  # pragma: no cover - not Linux: the monotonic clock starts anew with the machine
        boot, space = "boot", ""
    return f"clock {boot} {space}".strip()
