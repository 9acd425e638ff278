"""Small tests written for one mutant each, where no world or suite is the right judge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from solocron import Invalid, Run, Scheduler, cron
from solocron.doctor.fleet import Pace
from solocron.schedules import Every
from solocron.stores.sql.pool import Pool
from solocron.testing.cluster import Cluster

__all__ = [
    "a_lease_must_be_three_beats",
    "an_interrupted_connection_is_never_used_again",
    "a_week_with_both_clock_changes",
    "the_next_slot_is_later",
]


def a_lease_must_be_three_beats() -> None:
    """A node that could lose its session to one lost renewal does not start."""
    assert Pace is not None
    try:
        Scheduler("memory://", lease="10s", beat="5s", enabled=True)
    except Invalid:
        return
    pytest.fail("config: a lease of 10 s with a beat of 5 s was accepted")


class _Wire:
    """A connection as drivers have them: whoever reads gets the next reply, whosever it is."""

    def __init__(self) -> None:
        self.fresh = True
        self.closed = False
        self.replies: list[str] = []

    def call(self, what: str, *, interrupted: bool = False) -> str:
        self.replies.append(f"reply to {what}")
        if interrupted:
            raise KeyboardInterrupt
        return self.replies.pop(0)

    def is_stale(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def discard(self) -> None:
        self.closed = True


def an_interrupted_connection_is_never_used_again() -> None:
    """A reply left in the pipe would be read as the answer to the next question."""
    pool: Pool[_Wire] = Pool(_Wire)
    with pytest.raises(KeyboardInterrupt), pool.link() as link:
        link.call("claim of a job", interrupted=True)
    with pool.link() as link:
        answer = link.call("renewal")
    assert answer == "reply to renewal", f"I13: a renewal was answered with the {answer}"


def a_week_with_both_clock_changes() -> None:
    """A fixed time in a gap runs once right after it, in a fold once, the first time."""

    @cron("30 2 * * *", tz="Europe/Paris", name="job")
    def body(run: Run) -> None:
        pass

    for day, expected in (
        (datetime(2026, 3, 28, tzinfo=UTC), ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
        (datetime(2026, 10, 24, tzinfo=UTC), ["10-24T00:30", "10-25T00:30", "10-26T01:30"]),
    ):
        cluster = Cluster(body, nodes=2, start=day)
        cluster.run("72h")
        slots = [start.slot.astimezone(UTC).isoformat()[5:16] for start in cluster.starts]
        assert slots == expected, f"I18: around {day:%F} it ran at {slots}"


def the_next_slot_is_later() -> None:
    """`after` never answers the instant that it was asked about."""
    every = Every(timedelta(minutes=1))
    at = 1_790_000_040_000_000
    for _ in range(5):
        following = every.after_us(at)
        assert following is not None
        assert following > at, "I20: the next slot is not later, so it would run for ever"
        at = following
