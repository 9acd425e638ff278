"""The numbers a node lives by, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import ConfigurationError
from solocron.model.policy import whole

__all__ = ["Settings"]

Span = timedelta | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Seconds as floats where the node's own clock counts, microseconds where the store's does."""

    node: str
    host: str
    pid: int
    pools: frozenset[str]
    lease: float
    beat: float
    max_running: int
    keep: int
    revision: int | None = None
    version: str = ""
    poll: float = 30.0
    """The longest a node sleeps without looking: a safety net, not the way it learns of due slots."""

    @property
    def lease_us(self) -> int:
        return round(self.lease * 1_000_000)

    @property
    def margin(self) -> float:
        """How long before the store's expiry the node stops trusting its session."""
        return self.lease / 10

    @property
    def barrier(self) -> float:
        """The longest time between two renewals of a node that lives: a beat, and a call that the store never answered.

        A check lasts at least so long, so that every node that remembers anything has met it.
        """
        return self.beat + self.lease / 3

    @property
    def late_for(self) -> int:
        """How long after its instant a slot is late, before it is missed (microseconds)."""
        return self.lease_us + 2 * round(self.beat * 1_000_000)

    def renamed(self, node: str, pid: int) -> Settings:
        """The same numbers for another process."""
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
        lease_us = to_us(parse_duration(lease, what="lease"))
        # Down to a millisecond, so that three beats never come out a microsecond above the lease.
        beat_us = lease_us // 3000 * 1000 if beat is None else to_us(parse_duration(beat, what="beat"))
        if lease_us < 300_000:
            raise ConfigurationError(
                f"lease={format_duration(timedelta(microseconds=lease_us))} is below 300ms; nothing was started."
            )
        if beat_us <= 0 or lease_us < 3 * beat_us:
            raise ConfigurationError(
                f"lease {format_duration(timedelta(microseconds=lease_us))}, "
                f"beat {format_duration(timedelta(microseconds=beat_us))}: one lost renewal would cost the session. "
                "Nothing was started; make the lease at least three times the beat."
            )
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
            pools=frozenset(pools),
            lease=lease_us / 1_000_000,
            beat=beat_us / 1_000_000,
            max_running=max_running,
            keep=to_us(parse_duration(keep, what="keep")),
            revision=revision,
            version=version,
        )
