"""The numeric settings of a node, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from solocron.duration import parse_duration, to_us
from solocron.errors import ConfigurationError
from solocron.lease.terms import LeaseTerms, Span, check_lease
from solocron.model.policy import whole

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaseTerms):
    """Seconds as floats where the node's own clock counts, microseconds where the store's does."""

    pools: frozenset[str]
    max_running: int
    keep: int
    revision: int | None = None
    poll: float = 30.0
    """Longest sleep of a node without looking: a safety net, not the way it learns of due slots."""

    @property
    def soon(self) -> float:
        """Seconds from the begin of a session to its first renewal, and between two looks of a node that waits for it.

        Nodes that begin beside others wait for a renewal of each: a fleet that starts at once claims a second later.
        """
        return min(self.beat / 4, 1.0)

    @property
    def barrier(self) -> float:
        """Longest time between two renewals of a live node: an interval, and a call that the store never replied to.

        A check lasts at least so long, so that every node that remembers anything has taken part.
        """
        return self.beat + self.lease / 3

    @property
    def late_for(self) -> int:
        """How long after its instant a slot is late, before it is missed (microseconds)."""
        return self.lease_us + 2 * round(self.beat * 1_000_000)

    def renamed(self, node: str, pid: int) -> Settings:
        """Return the same settings for another process."""
        return replace(self, node=node, pid=pid)

    @classmethod
    def make(
        cls,
        *,
        node: str,
        host: str,
        pid: int,
        pools: tuple[str, ...],
        lease: Span,
        beat: Span | None,
        max_running: int,
        keep: Span,
        revision: int | None,
        version: str,
    ) -> Settings:
        seconds, beat_seconds = check_lease(lease, beat)
        if not whole(max_running) or max_running < 1:
            raise ConfigurationError(
                f"max_running={max_running!r}: give a whole number from 1 up; nothing was started."
            )
        if not pools:
            raise ConfigurationError(
                "pools is empty: this node could run nothing; name at least one, such as 'default'."
            )
        return cls(
            node=node,
            host=host,
            pid=pid,
            version=version,
            lease=seconds,
            beat=beat_seconds,
            pools=frozenset(pools),
            max_running=max_running,
            keep=to_us(parse_duration(keep, what="keep")),
            revision=revision,
        )
