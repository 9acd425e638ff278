"""Strikes with up to three faults at a time, each on a thread of its own, until the time is up and each has struck."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from proof.chaos.arena import Arena
from proof.chaos.fault import Fault, Scene

__all__ = ["COMBINED", "Storm"]

AT_ONCE = 3
EXTRA = 90.0
"""Seconds beyond its time in which a fault that has not struck yet is tried again."""
COMBINED = "F24"
"""Three faults at once: not one of its own, but seen to happen."""

Tell = Callable[[str], None]


class Storm:
    """`first`: each of these once, in this order; then `again` at random. Replayable by its seed, as far as real
    processes are."""

    def __init__(self, arena: Arena, *, seed: int, tell: Tell, extra: float = EXTRA) -> None:
        self.struck: Counter[str] = Counter()
        self._arena = arena
        self._dice = random.Random(seed)
        self._tell = tell
        self._extra = extra
        self._turns: Counter[str] = Counter()
        self._over = threading.Event()
        self._began = time.monotonic()

    def rage(
        self,
        seconds: float,
        *,
        first: Sequence[Fault],
        again: Sequence[Fault],
        every: tuple[float, float] | None = None,
    ) -> None:
        """`every`: the least and the most seconds between two strikes; without it the next comes when one is over."""
        self._began = time.monotonic()
        end = self._began + seconds
        waiting = list(first)
        active: dict[Future[int], Fault] = {}
        with ThreadPoolExecutor(AT_ONCE, "storm") as pool:
            try:
                while (more := bool(waiting) or time.monotonic() < end) or self._owing(active):
                    if more and len(active) < AT_ONCE:
                        fault = waiting.pop(0) if waiting else self._dice.choice(again)
                        active[pool.submit(self._strike, fault)] = fault
                        if len(active) == AT_ONCE:
                            self.struck[COMBINED] += 1
                        pause = self._dice.uniform(*every) if every else 0.0
                        done = self._finished(active, pause, end)
                    else:
                        done = self._finished(active, 1.0, end, at_least_one=True)
                    late = time.monotonic() > end + self._extra
                    waiting += [fault for fault in done if not self.struck[fault.number] and not late]
            finally:
                self._over.set()
                for future in list(active):
                    future.result()
        self._over.clear()

    def _owing(self, active: dict[Future[int], Fault]) -> bool:
        """Return whether a fault is under way that has not struck yet: if it fails, it has to be tried again."""
        return any(not self.struck[fault.number] for fault in active.values())

    def _finished(
        self, active: dict[Future[int], Fault], pause: float, end: float, *, at_least_one: bool = False
    ) -> list[Fault]:
        """Wait; the faults that are over by then. What one of them raised is raised here."""
        if at_least_one:
            wait(active, timeout=pause, return_when=FIRST_COMPLETED)
        elif pause:
            threading.Event().wait(max(0.0, min(pause, end - time.monotonic())))
        over = [future for future in active if future.done()]
        found = []
        for future in over:
            fault = active.pop(future)
            future.result()
            found.append(fault)
        return found

    def _strike(self, fault: Fault) -> int:
        turn = self._turns[fault.name]
        self._turns[fault.name] += 1
        dice = random.Random(f"{self._dice.random()} {fault.name} {turn}")
        began = time.monotonic()
        times = fault.strike(Scene(self._arena, dice, turn, self._over))
        self.struck[fault.number] += times
        took = time.monotonic() - began
        self._tell(
            f"{began - self._began:6.1f} s  {fault.number:4} {fault.name}: {times or 'did not strike'} ({took:.1f} s)"
        )
        return times
