"""Messages between nodes and the store: delayed, lost, late, repeated, as the conditions say and the seed draws."""

from __future__ import annotations

from collections import Counter

from solocron.testing.simulation.conditions import MESSAGES, Conditions
from solocron.testing.simulation.kernel import Kernel

__all__ = ["Network"]


_REQUESTS = ("lost_request", "late_request", "repeated_request")


class Network:
    """Decides for every message when it arrives, if at all."""

    def __init__(self, kernel: Kernel, conditions: Conditions) -> None:
        self._dice = kernel.dice
        self._lease = conditions.lease
        self._slow = conditions.patience
        self._pace = 1 / conditions.delay
        self._rates: dict[str, float] = {
            fault: getattr(conditions, fault) for fault in MESSAGES if getattr(conditions, fault)
        }
        self.seen: Counter[str] = Counter()
        """Times that each fault has happened."""
        self.cut_off: set[str] = set()
        """Processes that cannot reach the store."""
        self.deaf: set[str] = set()
        """Processes whose requests arrive, but that receive no reply: a partition in one direction."""
        self._scripts: dict[tuple[str, str], list[tuple[float | None, bool]]] = {}

    def script(self, node: str, what: str, *, after: float | None, answered: bool = True) -> None:
        """Decide about the next message of a kind: delivered after so many seconds (None: never), replied to or not."""
        self._scripts.setdefault((node, what), []).append((after, answered))

    def scripted(self, node: str, what: str) -> tuple[float | None, bool] | None:
        if not self._scripts:
            return None
        waiting = self._scripts.get((node, what))
        return waiting.pop(0) if waiting else None

    def delay(self) -> float:
        """Draw how long a message takes: usually little; a slow one up to the patience of its sender."""
        if self._rates and self._happens("slow"):
            return self._dice.uniform(0, self._slow)
        return self._dice.expovariate(self._pace)

    def _happens(self, fault: str) -> bool:
        rate = self._rates.get(fault)
        if rate is None or self._dice.random() >= rate:
            return False
        self.seen[fault] += 1
        return True

    def request(self, node: str) -> list[float]:
        """Draw when a request arrives: not at all, once, late or twice."""
        if node in self.cut_off:
            return []
        fault = self._one_of(_REQUESTS) if self._rates else None
        if fault == "lost_request":
            return []
        if fault == "late_request":
            return [self._dice.uniform(0, 10 * self._lease)]
        if fault == "repeated_request":
            return [self.delay(), self.delay() + self._dice.uniform(0, self._lease)]
        return [self.delay()]

    def _one_of(self, faults: tuple[str, ...]) -> str | None:
        """Draw once for all that may happen to a request."""
        roll = self._dice.random()
        for fault in faults:
            roll -= self._rates.get(fault, 0.0)
            if roll < 0:
                self.seen[fault] += 1
                return fault
        return None

    def reply_passes(self, node: str) -> bool:
        if node in self.cut_off or node in self.deaf:
            return False
        return not (self._rates and self._happens("lost_reply"))

    def connect_all(self) -> None:
        """Deliver everything from here on."""
        self._rates = {}
        self.cut_off.clear()
        self.deaf.clear()

    def staleness(self) -> float:
        """Return how many seconds the replica of the next read is behind."""
        return self._dice.uniform(0, 2 * self._lease) if self._happens("stale_reads") else 0.0

    def serialization_fails(self) -> bool:
        return self._happens("serialization")
