"""The plot of the demo: load; one replica is killed during a run and replaced; another is frozen past its lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from solocron.clock import SystemClock, iso
from solocron.demo.screen import Screen
from solocron.testing.fleet import Fleet, FleetVerdict, Judge, Line, Replica

__all__ = ["LEASE", "Play"]

LEASE = 3.0
SLOW = "report"
"""The job whose bodies take long enough to be killed or frozen during a run."""
REPLACED_AFTER = 2.0
FROZEN_FOR = LEASE * 1.5
SETTLED_WITHIN = 30.0
_FRAME = 0.1


class Play:
    """The calls that a screen gets as the demo goes on."""

    def __init__(self, fleet: Fleet, screen: Screen, *, seconds: float) -> None:
        self._fleet = fleet
        self._screen = screen
        self._seconds = seconds
        self._judge = Judge.of(fleet)
        self._boot = SystemClock().boot
        self._pause = threading.Event()
        self._begun = 0.0
        self._over = False

    def perform(self, replicas: int) -> FleetVerdict:
        """Run the whole plot; return the verdict when the last replica has drained."""
        for replica in self._fleet.start(replicas):
            self._screen.say(f"{replica.node} runs as process {replica.pid}")
        self._judge.open()
        self._begun = time.monotonic()
        self._until(0.15)
        killed = self._hurt("killed with SIGKILL", lambda replica: replica.kill())
        self._wait(REPLACED_AFTER)
        fresh = self._fleet.start()[0]
        self._screen.say(f"{fresh.node} takes the place of {killed.node}")
        self._until(0.4)
        frozen = self._hurt("frozen with SIGSTOP", self._fleet.freeze)
        self._wait(FROZEN_FOR)
        frozen.thaw()
        self._screen.say(f"{frozen.node} goes on, {FROZEN_FOR - LEASE:g} s after its lease was over")
        self._until(1.0)
        self._wait(SETTLED_WITHIN, unless=self._judge.settled)
        self._screen.say("all replicas are asked to stop")
        self._fleet.stop()
        self._screen.show(self._fleet)
        return self._judge.verdict()

    def _hurt(self, how: str, hurt: Callable[[Replica], None]) -> Replica:
        """Kill or freeze a replica during a slow run."""
        while True:
            self._wait(SETTLED_WITHIN, unless=lambda: self._victim() is not None)
            line = self._victim()
            if line is None:
                raise RuntimeError(f"no replica ran {SLOW} within {SETTLED_WITHIN:g} s; see the replicas' logs")
            replica = self._fleet.of(line.node)
            if replica.alive:
                break
        hurt(replica)
        self._screen.say(f"{replica.node} {how} in the middle of {line.job} {iso(line.slot)}")
        return replica

    def _victim(self) -> Line | None:
        """Return the start of a slow run that has begun a while ago and does not end soon."""
        now = self._boot()
        usable = {replica.pid for replica in self._fleet.alive() if not replica.frozen}
        found = [line for line in self._fleet.ledger.open(SLOW) if line.pid in usable and 0.3 < now - line.at < 1.5]
        return found[-1] if found else None

    def _until(self, part: float) -> None:
        """Wait until this part of the time under load is over."""
        self._wait(self._begun + part * self._seconds - time.monotonic())

    def _wait(self, seconds: float, unless: Callable[[], bool] | None = None) -> None:
        end = time.monotonic() + seconds
        while unless is None or not unless():
            if not self._over and time.monotonic() >= self._begun + self._seconds:
                self._end_load()
            self._screen.show(self._fleet)
            left = end - time.monotonic()
            if left <= 0:
                return
            self._pause.wait(min(left, _FRAME))

    def _end_load(self) -> None:
        """Stop counting new slots; waiting ones still count, and a replica may still be killed or frozen."""
        self._over = True
        self._judge.close()
        self._screen.say(f"the time under load is over; still waiting: {len(self._judge.missing())} slots")
