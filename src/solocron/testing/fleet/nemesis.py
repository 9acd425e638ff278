"""Hurts a fleet at random, replayable by a seed: kill -9, SIGTERM, each with a replacement; freezes short and long."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

from solocron.testing.fleet.fleet import Fleet
from solocron.testing.fleet.replica import Replica

__all__ = ["Nemesis"]

_SPARED = 2
"""Number of replicas that are never hurt at the same time, so that one of them can take over."""
_LOOK = 0.02


class Nemesis:
    """Every plan begins with a kill and a freeze beyond the lease: a nemesis that did nothing has proved nothing."""

    def __init__(self, fleet: Fleet, *, lease: float, seed: int, pause: tuple[float, float] = (1.0, 2.5)) -> None:
        self._fleet = fleet
        self._lease = lease
        self._pause = pause
        self._random = random.Random(seed)  # noqa: S311 - a plan that can be replayed, not a secret
        self._frozen: list[tuple[float, Replica]] = []
        self._leaving: set[int] = set()
        self._nothing = threading.Event()

    def rage(self, seconds: float) -> None:
        """Hurt the fleet for so long, then thaw every replica."""
        end = time.monotonic() + seconds
        for deed in self._deeds():
            if not self._wait(min(end, time.monotonic() + self._random.uniform(*self._pause)), end):
                break
            victim = self._victim()
            if victim is None:
                continue
            if isinstance(deed, float):
                self._fleet.freeze(victim)
                self._frozen.append((time.monotonic() + deed * self._lease, victim))
                continue
            if deed == "kill":
                victim.kill()
            else:
                victim.term()
                self._leaving.add(victim.pid)
            self._fleet.spawn()
        for _, replica in self._frozen:
            replica.thaw()
        self._frozen.clear()

    def _deeds(self) -> Iterator[str | float]:
        """Yield the deeds; a number is a freeze of so many leases."""
        yield from ("kill", 1.6)
        while True:
            yield self._random.choice(("kill", "kill", "term", 0.5, 0.9, 1.2, 2.0))

    def _victim(self) -> Replica | None:
        """Return a replica in the middle of a run, if there is one; None if too few would be left."""
        here = (r for r in self._fleet.alive() if not r.frozen and r.pid not in self._leaving)
        ready = [replica for replica in here if replica.events("node started")]
        if len(ready) <= _SPARED:
            return None
        busy = {line.pid for line in self._fleet.ledger.open()}
        return self._random.choice([r for r in ready if r.pid in busy] or ready)

    def _wait(self, until: float, end: float) -> bool:
        """Wait, thawing each replica whose time has come; False if the end has come."""
        while (now := time.monotonic()) < until:
            for thaw_at, replica in [one for one in self._frozen if one[0] <= now]:
                replica.thaw()
                self._frozen.remove((thaw_at, replica))
            self._nothing.wait(_LOOK)
        return now < end
