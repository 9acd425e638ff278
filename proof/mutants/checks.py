"""Small tests written for one mutant each, where no world or suite is the right judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from solocron import InvalidError, Run, Scheduler, cron, every
from solocron.clock import SECOND
from solocron.doctor import repair
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.schedules import Every
from solocron.stores.contract import Named, Store
from solocron.stores.memory import MemoryStore, World
from solocron.stores.sql.pool import Pool
from solocron.stores.stock import Stock
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Commit
from tests.unit.doctor import test_repair
from tests.unit.doctor.kit import NOW, PatientRuntime, put, silent
from tests.unit.effects import test_guard, test_requests

__all__ = [
    "a_claim_of_a_buried_session_is_refused",
    "a_lease_must_be_three_beats",
    "a_repair_leaves_a_session_that_renews_alone",
    "a_repair_watches_for_a_lease",
    "a_request_that_was_half_taken_in_is_recognised",
    "a_tick_leaves_burying_to_a_node_that_watches",
    "an_interrupted_connection_is_never_used_again",
    "both_clock_changes",
    "runs_that_may_run_at_once_do_not_lock_each_other_out",
    "the_next_slot_is_later",
]


def a_claim_of_a_buried_session_is_refused() -> None:
    """The claim is sent, its node freezes, its session is buried and swept, and only then does the claim arrive."""

    @every("1m", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=2, locking=False)
    database = cluster.fleet.database

    def look(commit: Commit) -> None:
        for hold in commit.after.active if isinstance(commit.after, Job) else ():
            session = database.docs.get((Kind.SESSION, hold.session))
            live = session is not None and isinstance(session[0], Session) and session[0].state is Life.LIVE
            assert live or commit.client != hold.node, f"I5: {hold.run} was granted to a session that is not live"

    database.on_commit.append(look)
    cluster.run("59s")
    cluster.freeze(1)
    cluster.fleet.network.script(cluster.process(0).name, "commit claim", after=60.0)
    cluster.run("2s")
    cluster.freeze(0)
    cluster.start(2, pools=("elsewhere",))  # it buries, and claims nothing
    cluster.run("70s")
    cluster.thaw(1)
    cluster.run("60s")
    cluster.assert_ran("job", times=3)


def a_lease_must_be_three_beats() -> None:
    """A node that could lose its session to one lost renewal does not start."""
    try:
        Scheduler("memory://", lease="10s", beat="5s", enabled=True)
    except InvalidError:
        return
    pytest.fail("config: a lease of 10 s with a beat of 5 s was accepted")


class _Wire:
    """A connection as drivers have them: a reader gets the next reply, whichever request it answers."""

    def __init__(self) -> None:
        self.fresh = True
        self.closed = False
        self.replies: list[str] = []

    def call(self, what: str, *, interrupted: bool = False) -> str:
        self.replies.append(f"reply to {what}")
        if interrupted:
            raise KeyboardInterrupt
        return self.replies.pop(0)

    def lend(self, count: Callable[[str], None]) -> None:
        """Count nothing."""

    def back(self) -> None:
        """Know no store."""

    def is_stale(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def discard(self) -> None:
        self.closed = True


def an_interrupted_connection_is_never_used_again() -> None:
    """A reply left in the pipe would be read as the answer to the next question."""
    pool: Pool[_Wire] = Pool(_Wire, stock=Stock(keep=1), lent=lambda link: None)
    with pytest.raises(KeyboardInterrupt), pool.link() as link:
        link.call("claim of a job", interrupted=True)
    with pool.link() as link:
        answer = link.call("renewal")
    assert answer == "reply to renewal", f"I13: a renewal was answered with the {answer}"


def both_clock_changes() -> None:
    """A fixed time in a gap runs once right after it, in a fold once, the first time."""

    @cron("30 2 * * *", tz="Europe/Paris", name="job")
    def body(run: Run) -> None:
        pass

    for night, expected in (
        (datetime(2026, 3, 29, 0, tzinfo=UTC), ["2026-03-29T01:00:00+00:00"]),
        (datetime(2026, 10, 25, 0, tzinfo=UTC), ["2026-10-25T00:30:00+00:00"]),
    ):
        cluster = Cluster(body, nodes=2, start=night, lease="1m")
        cluster.run("3h")
        slots = [start.slot.astimezone(UTC).isoformat() for start in cluster.starts]
        assert slots == expected, f"I18: in the night of {night:%F} it ran at {slots}"


def the_next_slot_is_later() -> None:
    """`after` never returns the instant that it was asked about."""
    every = Every(timedelta(minutes=1))
    at = 1_790_000_040_000_000
    for _ in range(5):
        following = every.after_us(at)
        assert following is not None
        assert following > at, "I20: the next slot is not later, so it would run forever"
        at = following


def runs_that_may_run_at_once_do_not_lock_each_other_out() -> None:
    """With `allow(n)` a run is guarded against its own earlier attempts, not against its neighbours."""
    with TemporaryDirectory() as folder:
        test_guard.test_runs_that_may_run_at_once_are_guarded_each_for_itself(Path(folder))


def a_request_that_was_half_taken_in_is_recognised() -> None:
    """The job remembers its last requests; the log remembers the rest, and the successor asks both."""
    made: list[test_requests.House] = []

    def make(url: str, **options: Any) -> test_requests.House:
        made.append(test_requests.House(url, **options))
        made[-1].tick()
        return made[-1]

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        try:
            test_requests.test_a_request_that_was_half_taken_in_is_recognised_after_the_job_has_forgotten_it(
                Path(folder), make, patch
            )
        finally:
            for house in made:
                house.scheduler.stop("1s")


def a_repair_watches_for_a_lease() -> None:
    test_repair.test_rule_5_a_silent_session_is_watched_for_its_lease_before_it_is_buried(_still())


def a_repair_leaves_a_session_that_renews_alone() -> None:
    """Between the last look and the burial the session is renewed, by a node whose clock is behind."""
    store = _still()
    put(store, silent("a", since=3600))

    def renews(_: float) -> None:
        store.update(Named(Kind.SESSION, ("session of a",)), lambda doc, now: Change(replace(doc, beats=doc.beats + 1)))

    repair(store, PatientRuntime(renews))
    (found,) = store.read(Named(Kind.SESSION, ("session of a",)))
    assert isinstance(found, Session)
    assert found.state is Life.LIVE


def a_tick_leaves_burying_to_a_node_that_watches() -> None:
    scheduler = Scheduler("memory://", enabled=True, lease="3s")
    store = scheduler.open().store
    now = store.clock()
    for name, expires in (("silent", now - 60 * SECOND), ("watches", now + 3600 * SECOND)):
        begun = Session(name=name, node=name, host="h", pid=1, lease=3 * SECOND, expires_at=expires)
        store.update(Named(Kind.SESSION, (name,)), lambda doc, at, begun=begun: Change(begun))  # type: ignore[misc]
    scheduler.tick()
    assert _state(store, "silent") is Life.LIVE
    store.update(Named(Kind.SESSION, ("watches",)), lambda doc, at: Change(None))
    scheduler.tick()
    assert _state(store, "silent") is Life.SWEPT


def _state(store: Store, name: str) -> Life:
    (found,) = store.read(Named(Kind.SESSION, (name,)))
    assert isinstance(found, Session)
    return found.state


def _still() -> MemoryStore:
    return MemoryStore(world=World(clock=lambda: NOW))
