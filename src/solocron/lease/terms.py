"""The terms of a lease: its holder, its length, and how often it is renewed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import ConfigurationError

__all__ = ["LeaseTerms", "Span", "check_lease"]

Span = timedelta | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """The process that holds a lease, and its times in seconds."""

    node: str
    host: str
    pid: int
    version: str = ""
    lease: float
    beat: float

    @property
    def lease_us(self) -> int:
        return round(self.lease * 1_000_000)

    @property
    def margin(self) -> float:
        """How long before the store's expiry the holder stops trusting its session."""
        return self.lease / 10

    @classmethod
    def of(cls, *, node: str, host: str, pid: int, version: str, lease: Span) -> LeaseTerms:
        """Return the terms of a process that runs no node; it renews three times per lease."""
        seconds, beat = check_lease(lease, None)
        return cls(node=node, host=host, pid=pid, version=version, lease=seconds, beat=beat)


def check_lease(lease: Span, beat: Span | None) -> tuple[float, float]:
    """Return lease and beat in seconds; raise `ConfigurationError` if one lost renewal would cost the session."""
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
    return lease_us / 1_000_000, beat_us / 1_000_000
