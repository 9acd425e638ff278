"""What went wrong elsewhere does not go wrong here: one test or more for each of P1 to P21 (see `known.py`)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from proof.mutants import checks
from proof.simulator.options import Options
from proof.simulator.world import simulate
from solocron import InvalidError, LeaseLost, LockLost, Run, Scheduler, cron, every
from solocron.clock import to_us
from solocron.effects.locks.held import Held
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents.session import Life
from solocron.schedules import Cron
from solocron.stores.sql.pool import Pool
from solocron.stores.stock import Stock
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Past

LEASE = 15


@every("1m", name="job")
def job(run: Run) -> None: ...


@every("1h", name="idle")
def idle(run: Run) -> None: ...


def take(cluster: Cluster, number: int, box: list[Any], **options: Any) -> None:
    """Let a node take the lock in the background; the box gets what it got or what was raised."""
    member = cluster.member(number)

    def body() -> None:
        try:
            box.append(member.scheduler.lock("door", **options).acquire())
        except (StoreError, LockLost) as error:
            box.append(error)

    member.process.spawn(body, "take")


def release(cluster: Cluster, number: int, held: Held, box: list[Any]) -> None:
    def body() -> None:
        try:
            box.append(held.release())
        except (StoreError, LockLost) as error:
            box.append(error)

    cluster.member(number).process.spawn(body, "release")


def test_p1_a_renewal_after_a_partition_does_not_revive_what_was_taken_over() -> None:
    """The successor has the work; the old holder's renewal arrives and finds its own session buried."""
    cluster = Cluster(job, nodes=2)
    cluster.run("5s")
    node = cluster.process(0).name
    (old,) = [session.name for session in cluster.sessions() if session.node == node]
    cluster.freeze(0)
    cluster.run(f"{LEASE + 2}s")
    assert old in {session.name for session in cluster.sessions(Life.DEAD) + cluster.sessions(Life.SWEPT)}
    cluster.thaw(0)
    cluster.run("2m")
    assert old not in {session.name for session in cluster.sessions()}
    assert len(cluster.sessions()) == 2, "it began a new one"
    cluster.assert_ran("job", times=2)


def test_p2_nothing_runs_on_a_claim_that_was_not_answered() -> None:
    """No answer is no claim: nothing starts until the store itself says whose it is."""
    cluster = Cluster(job, nodes=1)
    cluster.run("59s")
    for _ in range(2):
        cluster.fleet.network.script(cluster.process(0).name, "commit claim", after=None)
    cluster.run("3s")
    assert cluster.starts == []
    cluster.run(f"{LEASE}s")  # I14: and it takes no poll to find out that it is still due
    cluster.assert_ran("job", times=1)
    granted = {(hold.run, hold.fence) for hold in cluster.runs("job")}
    assert {(start.run, start.fence) for start in cluster.starts} == granted


def test_p2_a_lock_that_could_not_be_asked_for_is_not_held() -> None:
    cluster = Cluster(idle, nodes=1)
    cluster.run("5s")
    cluster.cut_off(0)
    box: list[Any] = []
    take(cluster, 0, box, at_most="10m")
    cluster.run("20s")
    assert [type(got) for got in box] != [Held]
    assert isinstance(box[0], StoreError | LockLost)


def test_p3_a_node_that_cannot_reach_the_store_stops_before_its_successor_begins() -> None:
    """Its bodies are told to stop before its lease is over, and it starts nothing more."""
    worked: list[tuple[str, datetime]] = []

    @every("1h", name="worker", retries=1)
    async def worker(run: Run) -> None:
        while True:
            cluster.sleep("1s")
            worked.append((run.node, cluster.now))

    cluster = Cluster(worker, job, nodes=2)
    cluster.run("3601s")
    holder = next(cluster.started("worker")).node
    number = next(n for n in (0, 1) if cluster.process(n).name == holder)
    cluster.cut_off(number)
    cut = cluster.now
    cluster.run("10m")
    last = max(at for node, at in worked if node == holder)
    first = min(at for node, at in worked if node != holder)
    assert last <= cut + timedelta(seconds=LEASE) <= first + timedelta(seconds=5)
    assert last < first
    assert [
        start for start in cluster.starts if start.node == holder and start.at > cut + timedelta(seconds=LEASE)
    ] == []


def test_p4_after_a_suspend_longer_than_the_lease_the_first_look_raises() -> None:
    seen: list[str] = []

    @every("1h", name="sleeper")
    def sleeper(run: Run) -> None:
        cluster.sleep("1s")
        run.check()
        cluster.sleep("1m")
        try:
            run.check()
        except LeaseLost:
            seen.append("told")
            raise

    cluster = Cluster(sleeper, nodes=1)
    cluster.run("3602s")
    cluster.process(0).freeze(suspend=True)
    cluster.run(f"{4 * LEASE}s")
    cluster.thaw(0)
    cluster.run("2m")
    assert seen == ["told"]


def test_p4_a_beat_that_is_too_slow_for_its_lease_is_refused() -> None:
    with pytest.raises(InvalidError, match="lease"):
        Scheduler("memory://", lease="10s", beat="5s", enabled=True)


def test_p5_a_job_that_vanished_from_the_store_is_written_again_and_missed_by_nobody() -> None:
    """A store may not lose documents, and the start check says so; a node that starts puts them back all the same."""
    cluster = Cluster(job, nodes=2)
    cluster.run("30s")
    del cluster.fleet.database.docs[(Kind.JOB, "job")]
    cluster.fleet.database.jobs.pop("job", None)
    cluster.run("1m")
    cluster.start(2)
    cluster.run("3m")
    assert {start.slot.second for start in cluster.started("job")} == {0}
    cluster.assert_ran("job", times=3)


def test_p6_a_late_release_leaves_the_successors_lock_alone() -> None:
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Any] = []
    second: list[Any] = []
    said: list[Any] = []
    take(cluster, 0, first, at_most="10s")
    cluster.run("11s")
    take(cluster, 1, second, at_most="10m")
    cluster.run("1s")
    release(cluster, 0, first[0], said)
    cluster.run("1s")
    assert said == [False]
    assert isinstance(second[0], Held)
    assert not second[0].lost
    assert second[0].fence > first[0].fence


@pytest.mark.parametrize("leg", ["select lock", "commit lock"])
@pytest.mark.parametrize("arrives", [None, 0.01])
def test_p7_a_release_that_failed_can_be_made_again(leg: str, arrives: float | None) -> None:
    """Whatever became of the first try, the second one is still ours to make, and no process is locked out."""
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Any] = []
    said: list[Any] = []
    take(cluster, 0, first, at_most="10m")
    cluster.run("1s")
    for _ in range(6):
        cluster.fleet.network.script(cluster.process(0).name, leg, after=arrives, answered=False)
    release(cluster, 0, first[0], said)
    cluster.run("2m")
    release(cluster, 0, first[0], said)
    cluster.run("1m")
    assert len(said) == 2
    second: list[Any] = []
    take(cluster, 1, second, at_most="1m")
    cluster.run("1s")
    assert isinstance(second[0], Held), f"the first release was answered with {said}, and the lock is still taken"


def test_p8_a_connection_whose_call_was_interrupted_is_never_used_again() -> None:
    checks.an_interrupted_connection_is_never_used_again()


def test_p8_an_interrupted_connection_is_closed_and_replaced() -> None:
    made: list[Any] = []

    class Link:
        fresh = True
        closed = False

        def lend(self, count: Any) -> None:
            pass

        def back(self) -> None:
            pass

        def is_stale(self) -> bool:
            return False

        def close(self) -> None:
            self.closed = True

        discard = close

    def make() -> Any:
        made.append(Link())
        return made[-1]

    pool: Pool[Any] = Pool(make, stock=Stock(keep=2), lent=lambda link: None)
    with pytest.raises(KeyboardInterrupt), pool.link():
        raise KeyboardInterrupt
    with pool.link() as link:
        assert link is made[1]
    assert made[0].closed


def test_p9_clocks_hours_apart_give_nobody_anything_twice() -> None:
    cluster = Cluster(job, nodes=0)
    for number, skew in enumerate((-86_400.0, -3_600.0, 0.0, 3_600.0, 86_400.0)):
        cluster.start(number, skew=skew)
    cluster.run("605s")
    cluster.assert_ran("job", times=10)
    assert cluster.events["session buried"] == 0


def test_p10_a_claim_is_seen_by_everybody_as_soon_as_it_is_granted() -> None:
    """It is committed by itself, while the caller's own work, and whatever transaction that has open, goes on."""
    seen: list[bool] = []

    @every("1m", name="long", overlap="skip")
    def long(run: Run) -> None:
        other = next(n for n in (0, 1) if cluster.process(n).name != run.node)
        (doc,) = [view for view in cluster.member(other).scheduler.jobs() if view.name == "long"]
        seen.append(len(doc.running) == 1)
        cluster.sleep("30s")

    cluster = Cluster(long, nodes=2)
    cluster.run("125s")
    assert seen == [True, True]


def test_p11_a_body_that_takes_no_time_does_not_run_on_each_node_in_turn() -> None:
    """What is claimed is the slot, not a lock that is free again when the next clock gets there."""
    cluster = Cluster(job, nodes=0)
    for number, rate in enumerate((0.98, 0.99, 1.0, 1.01, 1.02)):
        cluster.start(number, rate=rate, skew=number * 7.0)
    cluster.run("605s")
    cluster.assert_ran("job", times=10)
    assert all(view.status == "succeeded" for view in cluster.runs("job"))


def test_p12_serialization_failures_crash_nothing_and_lose_nothing() -> None:
    report = simulate(Options(seed=5, nodes=3, jobs=5, lease=3.0, hours=0.03, serialization=0.3))
    assert report.violation is None
    assert report.faults["serialization"] > 50
    assert report.slots > 100


def test_p13_nodes_that_read_the_same_version_do_not_both_write() -> None:
    """All wake at the same instant and read the same document; the swap compares its version."""
    cluster = Cluster(job, nodes=5, locking=False)
    cluster.run("1205s")
    cluster.assert_ran("job", times=20)
    assert [view.attempt for view in cluster.runs("job")] == [1] * 20


def test_p14_five_replicas_run_a_job_once() -> None:
    cluster = Cluster(job, nodes=5)
    cluster.run("1205s")
    cluster.assert_ran("job", times=20)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Beirut"]
)
@pytest.mark.parametrize("expression", ["30 1 * * *", "30 2 * * *", "0 0 * * *", "*/20 * * * *", "0 */2 * * *"])
def test_p15_time_goes_on_over_every_change_of_the_clocks(expression: str, zone: str) -> None:
    """Each next slot is later than the last, it exists, and a daily job has one each day."""
    schedule = Cron(expression, tz=zone)
    at, end = to_us(datetime(2026, 1, 1, tzinfo=UTC)), to_us(datetime(2027, 1, 1, tzinfo=UTC))
    days: Counter[object] = Counter()
    while (following := schedule.after_us(at)) is not None and following < end:
        assert following > at
        at = following
        if expression.endswith("* * *") and "/" not in expression:
            days[datetime.fromtimestamp(at / 1_000_000, UTC).astimezone(ZoneInfo(zone)).date()] += 1
    assert set(days.values()) <= {1}
    assert not days or len(days) >= 364


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Los_Angeles", "Pacific/Auckland"])
def test_p16_a_zone_far_from_utc_makes_neither_twins_nor_a_storm(zone: str) -> None:
    @cron("0 */6 * * *", name="job", tz=zone)
    def body(run: Run) -> None: ...

    cluster = Cluster(body, nodes=2, lease="30m", start=datetime(2026, 4, 4, tzinfo=UTC))
    cluster.run("36h")  # in which Auckland sets its clocks back
    per_hour = Counter(start.at.replace(minute=0, second=0, microsecond=0) for start in cluster.starts)
    assert set(per_hour.values()) == {1}
    assert {start.slot.hour % 6 for start in cluster.starts} == {0}
    assert 5 <= len(cluster.starts) <= 7


def test_p17_who_lost_its_session_while_it_waited_does_not_get_the_lock() -> None:
    """The waiter freezes for longer than its lease; what it is told then is not that it holds the lock."""
    cluster = Cluster(idle, nodes=3)
    cluster.run("5s")
    first: list[Any] = []
    second: list[Any] = []
    said: list[Any] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    take(cluster, 1, second, keep_alive=True, wait="10m")
    cluster.run("5s")
    cluster.freeze(1)
    release(cluster, 0, first[0], said)
    cluster.run(f"{3 * LEASE}s")
    cluster.thaw(1)
    cluster.run("3s")
    live = {session.name for session in cluster.sessions()}
    for got in second:
        if isinstance(got, Held) and not got.lost:
            holder = cluster.fleet.database.docs[(Kind.LOCK, "door")][0]
            assert any(name in repr(holder) for name in live), "granted to a session that is dead"
    third: list[Any] = []
    take(cluster, 2, third, keep_alive=True, wait="10m")
    cluster.run(f"{3 * LEASE}s")
    holding = [got for got in (*second, *third) if isinstance(got, Held) and not got.lost]
    assert len(holding) == 1


def test_p17_a_run_whose_session_ended_while_it_waited_for_its_turn_does_not_begin() -> None:
    cluster = Cluster(job, nodes=2)
    cluster.run("59s")
    for number in (0, 1):
        member = cluster.member(number)
        member.runtime.failpoints["claimed"] = member.process.freeze
    cluster.run("5s")
    frozen = [n for n in (0, 1) if cluster.process(n).frozen]
    assert frozen
    assert cluster.starts == []
    cluster.run(f"{3 * LEASE}s")
    for number in frozen:
        cluster.thaw(number)
    cluster.run("30s")
    late = {cluster.process(number).name for number in frozen}
    assert [
        start for start in cluster.starts if start.node in late and start.attempt == 1 and start.slot.minute == 1
    ] == []


def test_p18_a_finish_whose_answer_was_lost_is_accepted_when_it_is_repeated() -> None:
    cluster = Cluster(job, nodes=2)
    cluster.run("59s")
    for number in (0, 1):
        cluster.fleet.network.script(cluster.process(number).name, "commit job", after=0.01, answered=False)
    cluster.run("2m")
    cluster.assert_ran("job", times=2)
    assert [(view.attempt, view.status) for view in cluster.runs("job")] == [(1, "succeeded")] * 2


def test_p19_the_lock_of_a_dead_holder_is_free_also_for_who_does_not_wait() -> None:
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Any] = []
    second: list[Any] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    cluster.kill(0)
    cluster.run(f"{LEASE + 6}s")
    take(cluster, 1, second, keep_alive=True)
    cluster.run("1s")
    assert isinstance(second[0], Held)


def test_p20_a_fence_that_went_back_is_noticed_and_nothing_is_claimed() -> None:
    cluster = Cluster(job, nodes=1)
    cluster.fleet.database.past = Past(3_600)
    cluster.run("3m1s")
    before = len(cluster.starts)
    cluster.fleet.database.go_back(120, failover=False)
    cluster.run("2m")
    assert len(cluster.starts) == before
    assert cluster.events["namespace closed"] > 0


@pytest.mark.parametrize("catch_up", ["skip", "latest"])
def test_p21_after_a_long_outage_the_schedule_goes_on(catch_up: str) -> None:
    """Ten thousand missed slots are one record, and the next one runs on time."""

    @every("10s", name="often", catch_up=catch_up)
    def often(run: Run) -> None: ...

    cluster = Cluster(often, nodes=1)
    cluster.run("25s")
    cluster.kill(0)
    cluster.run("28h")
    cluster.start(1)
    back = cluster.now + timedelta(seconds=10)  # a node that begins lets those who remember notice a restore first
    cluster.run("135s")
    fresh = [start for start in cluster.starts if start.slot >= back]
    assert len(fresh) == 12
    assert all(start.at - start.slot < timedelta(seconds=1) for start in fresh)
    missed = [view for view in cluster.runs("often") if view.status == "missed"]
    assert sum(view.count for view in missed) > 10_000
    assert len(missed) == 1
