"""A process's trust in its own lease. Pure: every call gets the time of the boot clock.

A session is trusted until the lease, less a margin, has passed since *before* its last acknowledged renewal was sent.
The store counts from when it applied the renewal, which is later, so this process stops first. A reply that arrives
after the trust has ended changes nothing: lost is final.
"""

from __future__ import annotations

from enum import StrEnum

from solocron.lease.terms import LeaseTerms

__all__ = ["Standing", "Trust"]


class Standing(StrEnum):
    """Degrees of a process's trust in its session."""

    NONE = "none"
    """It has no session yet, or has lost the last one."""
    HELD = "held"
    """The session was renewed in time: claim and run."""
    JEOPARDY = "jeopardy"
    """A renewal is overdue: start nothing new, keep trying."""


class Trust:
    """The trust of one process in one session after the other."""

    def __init__(self, terms: LeaseTerms) -> None:
        self._terms = terms
        self.session: str | None = None
        self.beats = 0
        """Highest number of a renewal that the store has acknowledged."""
        self._sent = 0
        """Number of the last renewal that was sent."""
        self._until = 0.0
        self.renewed_at = 0.0
        """Boot time at which the last acknowledged renewal was sent."""
        self._troubled = False
        self.in_touch_since = 0.0
        """Boot time since which renewals were acknowledged, none of them failed, and none came late."""

    def begin(self, session: str, asked: float) -> None:
        """Trust a new session from before it was requested."""
        self.session = session
        self.beats = self._sent = 0
        self._extend(asked)

    def renew(self, session: str, asked: float, now: float) -> bool:
        """Extend the trust from before the renewal was sent; False if the reply came after it had ended."""
        if not self.holds(session, now):
            return False
        self._extend(asked)
        return True

    def _extend(self, asked: float) -> None:
        if self._is_late(asked):
            self.in_touch_since = asked
        self.renewed_at = asked
        self._until = asked + self._terms.lease - self._terms.margin
        self._troubled = False

    def next_number(self) -> int:
        """Return the number of the next renewal. Each has its own, whatever the fate of those before it."""
        self._sent += 1
        return self._sent

    def acknowledge(self, session: str, number: int) -> None:
        """Record that the store has acknowledged the renewal of that number."""
        if self.session == session:
            self.beats = max(self.beats, number)

    def trouble(self) -> None:
        """Record that a renewal failed: nothing new starts until one succeeds."""
        self._troubled = True

    def lose(self) -> str | None:
        """Give the session up; return it, or None if there is none."""
        session, self.session = self.session, None
        return session

    @property
    def until(self) -> float | None:
        """Boot time at which the trust ends; None without a session."""
        return None if self.session is None else self._until

    def holds(self, session: str, now: float) -> bool:
        """Return whether that session is trusted."""
        return self.session == session and now < self._until

    def standing(self, now: float) -> Standing:
        if self.session is None or now >= self._until:
            return Standing.NONE
        return Standing.JEOPARDY if self._is_late(now) else Standing.HELD

    def _is_late(self, now: float) -> bool:
        """Return whether a renewal is overdue, or one has failed."""
        return self._troubled or now > self.renewed_at + 2 * self._terms.beat
