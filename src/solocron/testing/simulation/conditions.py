"""The conditions of a simulated cluster: its seed, its lease, how its store locks, and how messages fail."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MESSAGES", "Conditions"]

MESSAGES = ("lost_request", "lost_reply", "late_request", "repeated_request", "slow", "serialization", "stale_reads")
"""Faults of messages: the value of each is a probability, and 0 switches it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Everything that network, store and nodes of a simulated cluster need to know."""

    seed: int
    lease: float = 15.0
    locking: bool = True
    """True if a selection locks the documents that it returns; otherwise it only sees their versions."""
    keys: bool = False
    """True if the store is a map of keys, on which the shipped code of the swap family runs; then nothing is locked."""
    chain: bool = False
    """True if that map is a commit chain over objects, which the shipped code of the chain makes."""
    max_running: int = 8
    delay: float = 0.002
    """Mean seconds of a message in transit."""
    lost_request: float = 0.0
    lost_reply: float = 0.0
    late_request: float = 0.0
    repeated_request: float = 0.0
    slow: float = 0.0
    serialization: float = 0.0
    stale_reads: float = 0.0

    @property
    def patience(self) -> float:
        """Seconds after which a call is given up; slow messages take up to as long. No store waits for minutes."""
        return min(self.lease / 4, 15.0)
