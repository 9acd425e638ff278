"""Which client goes first after a lost race: nodes that wake at one instant read the same head of what is due.

A client that lost a due job to another takes turns for some seconds: it looks further than it needs, takes first the
jobs for which it comes first among the live sessions, and those of the others only a moment after they fell due. Never
before it has lost one: a due job goes to the first that asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from solocron.clock import MILLISECOND

__all__ = ["ClaimTurns"]

_LASTS = 10.0
"""Seconds for which a lost race is remembered."""
_GIVEN = 100 * MILLISECOND
"""For how long a due job is left to the session whose turn it is."""


class ClaimTurns:
    """The memory of one client."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._until = 0.0

    def lost_race(self) -> None:
        self._until = self._boot() + _LASTS

    @property
    def are_taken(self) -> bool:
        return self._boot() < self._until

    def split(
        self, due: Sequence[tuple[int, str]], session: str, live: Sequence[str], now: int
    ) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """Return the due jobs (instant and name) to try, ours first, and those to leave to others for a moment.

        The latter come with the instant from which on they are left to none.
        """
        ours: list[tuple[int, str]] = []
        overdue: list[tuple[int, str]] = []
        left: list[tuple[int, str]] = []
        for ready, name in due:
            if min(live, key=lambda one: _rank(one, name), default=session) == session:
                ours.append((ready, name))
            elif ready + _GIVEN <= now:
                overdue.append((ready, name))
            else:
                left.append((ready + _GIVEN, name))
        return ours + overdue, left


def _rank(session: str, name: str) -> bytes:
    return hashlib.blake2b(f"{session}\0{name}".encode(), digest_size=8).digest()
