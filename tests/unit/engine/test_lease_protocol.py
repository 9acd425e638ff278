"""The twelve rules of the lease protocol, each broken on purpose around the shipped engine on virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from solocron import Cancelled, InvalidError, Run, Scheduler, allow, every, surroundings
from solocron.model.documents.session import Life
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Past

LEASE = 15


def job(period: str = "1m", **options: object):
    @every(period, name="job", **options)
    def body(run: Run) -> None:
        pass

    return body


def statuses(cluster: Cluster, name: str = "job") -> list[tuple[int, str]]:
    return [(run.attempt, run.status) for run in cluster.runs(name)]


def test_rule_1_a_claim_that_lands_after_its_session_was_buried_is_refused() -> None:
    """The claim is sent, its node freezes, the session is buried and swept, and only then does the claim arrive."""
    cluster = Cluster(job(), nodes=2, locking=False)
    cluster.run("59s")
    cluster.freeze(1)
    cluster.fleet.network.script(cluster.process(0).name, "commit claim", after=60.0)
    cluster.run("2s")
    cluster.freeze(0)
    cluster.start(2)
    cluster.run("90s")
    assert cluster.job("job").active == ()
    assert {start.node for start in cluster.starts} == {cluster.process(2).name}
    cluster.assert_ran("job", times=2)


def test_rule_2_a_sweeper_that_dies_between_burying_and_taking_over_leaves_no_hold_behind() -> None:
    @every("1m", name="job", retries=1)
    def body(run: Run) -> None:
        if run.attempt == 1:
            cluster.sleep("10m")

    cluster = Cluster(body, nodes=2)
    cluster.run("61s")
    holder = next(n for n in (0, 1) if cluster.process(n).name == cluster.starts[0].node)
    sweeper = 1 - holder
    cluster.member(sweeper).runtime.failpoints["buried"] = lambda: cluster.kill(sweeper)
    cluster.kill(holder)
    cluster.run("20s")
    assert cluster.sessions(Life.DEAD), "the other has buried the holder's session and died"
    cluster.start(7)
    cluster.run("40s")
    assert statuses(cluster)[:2] == [(1, "lost"), (2, "succeeded")]


def test_rule_3_a_claim_whose_answer_was_lost_is_adopted_and_runs_once() -> None:
    cluster = Cluster(job(), nodes=1)
    cluster.run("59.9s")
    cluster.fleet.network.script(cluster.process(0).name, "commit claim", after=0.01, answered=False)
    cluster.run("20s")
    cluster.assert_ran("job", times=1)
    assert cluster.events["adopted"] == 1
    assert statuses(cluster) == [(1, "succeeded")]


def test_rule_3_a_claim_that_arrives_long_after_its_sender_gave_up_is_adopted() -> None:
    cluster = Cluster(job("10m"), nodes=1, locking=False)
    cluster.run("599.9s")
    cluster.fleet.network.script(cluster.process(0).name, "commit claim", after=30.0)
    cluster.freeze(0)
    cluster.run("1ms")
    cluster.thaw(0)
    cluster.run("60s")
    cluster.assert_ran("job", times=1)


def test_rule_4_a_lost_answer_costs_no_session() -> None:
    cluster = Cluster(job("1h"), nodes=1)
    cluster.run("1s")
    session = cluster.sessions()[0].name
    for _ in range(20):
        cluster.fleet.network.script(cluster.process(0).name, "commit session", after=0.01, answered=False)
        cluster.run("10s")
    assert [s.name for s in cluster.sessions()] == [session]
    assert cluster.events["session lost"] == 0


def test_rule_4_lost_is_final_and_the_node_buries_its_own_old_session() -> None:
    cluster = Cluster(job("1h"), nodes=1)
    cluster.run("1s")
    old = cluster.sessions()[0].name
    cluster.cut_off(0)
    cluster.run("14s")
    assert cluster.events["session lost"] == 1
    cluster.connect(0)
    cluster.run("6s")
    assert [s.name for s in cluster.sessions()] != [old]
    assert len(cluster.sessions()) == 1


def test_rule_5_a_step_of_the_stores_clock_costs_nobody_a_session() -> None:
    cluster = Cluster(job(), nodes=3)
    cluster.run("30s")
    before = {session.name for session in cluster.sessions()}
    cluster.step_store_clock("2m")
    cluster.run("30s")
    cluster.step_store_clock(timedelta(minutes=-4))
    cluster.run("30s")
    cluster.step_store_clock("4m")
    cluster.run("30s")
    assert {session.name for session in cluster.sessions()} == before
    assert cluster.events["session buried"] == 0


def test_rule_5_running_sweepers_take_over_within_a_lease_and_a_second() -> None:
    @every("1m", name="job", retries=1)
    def body(run: Run) -> None:
        if run.attempt == 1:
            cluster.sleep("10m")

    cluster = Cluster(body, nodes=3)
    cluster.run("61s")
    first = cluster.starts[0]
    holder = next(n for n in (0, 1, 2) if cluster.process(n).name == first.node)
    cluster.run("3s")
    session = next(s for s in cluster.sessions() if s.node == first.node)
    renewed = session.expires_at - session.lease
    cluster.kill(holder)
    cluster.run("20s")
    second = next(start for start in cluster.starts if start.attempt == 2)
    assert second.at.timestamp() - renewed / 1e6 <= LEASE + 1
    assert second.fence > first.fence


def test_rule_6_the_late_result_of_a_frozen_node_is_refused() -> None:
    @every("1m", name="job", retries=1)
    def body(run: Run) -> str:
        cluster.sleep("5s")
        return run.node

    cluster = Cluster(body, nodes=2)
    cluster.run("61s")
    frozen = next(n for n in (0, 1) if cluster.process(n).name == cluster.starts[0].node)
    cluster.freeze(frozen)
    cluster.run("25s")
    cluster.thaw(frozen)
    cluster.run("5s")
    assert statuses(cluster) == [(1, "lost"), (2, "succeeded")]
    assert cluster.events["refused"] == 1
    assert cluster.runs("job")[1].result != cluster.starts[0].node
    cluster.run("20s")  # a beat of its new session
    told = [one for session in cluster.sessions() for one in session.report.refused]
    first = cluster.starts[0]
    assert [(one.run, one.fence, one.outcome) for one in told] == [(first.run, first.fence, "succeeded")]


def test_rule_6_a_finish_whose_answer_was_lost_is_accepted_when_repeated() -> None:
    @every("1m", name="job")
    def body(run: Run) -> None:
        cluster.sleep("1s")
        cluster.fleet.network.script(run.node, "commit job", after=0.01, answered=False)

    cluster = Cluster(body, nodes=1)
    cluster.run("80s")
    assert statuses(cluster) == [(1, "succeeded")]
    assert cluster.events["refused"] == 0
    assert cluster.job("job").active == ()


def test_rule_7_replace_only_marks_the_hold_and_waits_until_it_is_gone() -> None:
    alive: list[str] = []

    @every("1m", name="job", overlap="replace")
    def body(run: Run) -> None:
        alive.append(run.id)
        assert len(alive) == 1, "two bodies of one job live at once"
        try:
            for _ in range(500):
                cluster.sleep("500ms")
                run.check()
        finally:
            alive.remove(run.id)

    cluster = Cluster(body, nodes=2)
    cluster.run("4m")
    assert [run.status for run in cluster.runs("job")][:2] == ["cancelled", "cancelled"]
    assert cluster.fleet.failure is None
    cluster.assert_ran("job", times=3)


def test_rule_8_a_body_that_ignores_its_deadline_keeps_its_hold_and_is_shown_as_stuck() -> None:
    @every("1m", name="job", timeout="5s", retries=1, overlap="skip")
    def body(run: Run) -> None:
        cluster.sleep("100s")

    cluster = Cluster(body, nodes=2)
    cluster.run("150s")
    assert cluster.events["stuck"] == 1
    assert [start.attempt for start in cluster.starts] == [1], "no node starts it again while the old body lives"
    assert len(cluster.job("job").active) == 1
    cluster.run("30s")
    assert statuses(cluster)[0] == (1, "timed_out")
    assert [start.attempt for start in cluster.starts][1] == 2


def test_rule_8_on_stuck_abandon_lets_go_but_not_to_the_node_that_still_runs_the_old_body() -> None:
    @every("1h", name="job", timeout="5s", retries=1, on_stuck="abandon")
    def body(run: Run) -> None:
        cluster.sleep("10m" if run.attempt == 1 else "1s")

    cluster = Cluster(body, nodes=2)
    cluster.run("1h1m")
    first, second = cluster.starts
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.node != first.node
    assert statuses(cluster) == [(1, "timed_out"), (2, "succeeded")]


def test_rule_9_drain_waits_for_what_runs_and_ends_the_session_last() -> None:
    @every("1m", name="job")
    def body(run: Run) -> None:
        cluster.sleep("8s")

    cluster = Cluster(body, nodes=1)
    cluster.run("61s")
    cluster.stop(0)
    cluster.run("5s")
    assert len(cluster.sessions()) == 1
    cluster.run("5s")
    assert statuses(cluster) == [(1, "succeeded")]
    assert cluster.sessions() == []


def test_rule_9_a_body_that_outlives_the_grace_is_cut_off_and_repeated_only_with_retries_left() -> None:
    @every("1h", name="retried", retries=1, overlap="queue-all")
    def retried(run: Run) -> None:
        if run.attempt == 1:
            for _ in range(1000):
                cluster.sleep("1s")
                run.check()

    @every("1h", name="once")
    def once(run: Run) -> None:
        for _ in range(1000):
            cluster.sleep("1s")
            run.check()

    cluster = Cluster(retried, once, nodes=1)
    cluster.run("3601s")
    cluster.stop(0)
    cluster.run("40s")
    cluster.start(1)
    cluster.run("10s")
    assert statuses(cluster, "retried") == [(1, "cancelled"), (2, "succeeded")]
    assert statuses(cluster, "once") == [(1, "cancelled")]


def test_rule_10_old_and_new_definitions_do_not_flip_flop() -> None:
    old, new = job("1m"), job("2m")
    cluster = Cluster(old, nodes=2)
    cluster.run("10s")
    cluster.start(2, new)
    cluster.run("1m")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "1m"}
    cluster.stop(0)
    cluster.run("1m")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "1m"}
    cluster.stop(1)
    cluster.run("1m")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "2m"}
    cluster.start(3, old)
    cluster.run("1m")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "2m"}


def test_rule_10_a_higher_revision_wins_at_once_and_a_lower_one_never() -> None:
    old, new = job("1m"), job("2m")
    cluster = Cluster(old, nodes=2, revision=1)
    cluster.run("10s")
    cluster.start(2, new, revision=2)
    cluster.run("10s")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "2m"}
    cluster.kill(2)
    cluster.start(3, old, revision=1)
    cluster.run("1m")
    assert cluster.job("job").definition.schedule == {"kind": "every", "period": "2m"}


def test_rule_11_claims_stay_within_free_capacity() -> None:
    alive: dict[str, int] = {}

    @every("1s", name="job", overlap=allow(50))
    def body(run: Run) -> None:
        alive[run.node] = alive.get(run.node, 0) + 1
        most.append(alive[run.node])
        cluster.sleep("20s")
        alive[run.node] -= 1

    most: list[int] = []
    cluster = Cluster(body, nodes=2, max_running=3)
    cluster.run("1m")
    assert max(most) == 3
    assert len(cluster.job("job").active) <= 6


def test_rule_12_a_node_in_a_container_refuses_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLOCRON_STORE", raising=False)
    monkeypatch.setattr(surroundings, "in_container", lambda: True)
    scheduler = Scheduler(enabled=True)
    with pytest.raises(InvalidError, match="SOLOCRON_STORE"):
        scheduler.start()


def test_a_cancelled_body_sees_cancelled() -> None:
    seen: list[type[BaseException]] = []

    @every("1m", name="job")
    def body(run: Run) -> None:
        try:
            for _ in range(100):
                cluster.sleep("1s")
                run.check()
        except Cancelled as error:
            seen.append(type(error))
            raise

    cluster = Cluster(body, nodes=2)
    cluster.run("61s")
    run = cluster.starts[0].run
    done: list[str] = []
    other = cluster.member(0)
    other.process.spawn(lambda: done.append(other.scheduler.cancel(run)), "cancel")
    cluster.run("5s")
    assert done == ["asked"]
    assert seen == [Cancelled]
    assert statuses(cluster) == [(1, "cancelled")]


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_a_store_that_was_restored_from_a_backup_is_not_claimed_from_until_someone_says_so() -> None:
    cluster = Cluster(job(), nodes=1)
    cluster.fleet.database.past = Past(3_600)
    cluster.run("3m1s")
    assert len(cluster.starts) == 3
    cluster.fleet.database.go_back(120, failover=False)
    cluster.run("3m")
    assert len(cluster.starts) == 3, "nothing that may have run already runs again"
    assert cluster.events["namespace closed"] > 0
    client = cluster.member(0)
    client.process.spawn(client.scheduler.open().restored, "restored")
    cluster.run("2m")
    assert len(cluster.starts) >= 4
    cluster.assert_ran("job")


def test_nor_is_what_lies_ahead_of_a_clock_that_stepped_back_meanwhile() -> None:
    cluster = Cluster(job(), nodes=1)
    cluster.fleet.database.past = Past(3_600)
    cluster.run("3m1s")
    cluster.fleet.database.go_back(120, failover=False)
    cluster.run("30s")
    assert cluster.events["namespace closed"] > 0
    cluster.step_store_clock(timedelta(seconds=-90))
    client = cluster.member(0)
    client.process.spawn(client.scheduler.open().restored, "restored")
    cluster.run("10m")
    slots = [start.slot for start in cluster.starts]
    assert len(set(slots)) == len(slots) >= 3 + 4


def test_rule_8_a_job_is_claimable_again_as_soon_as_its_old_body_has_ended() -> None:
    """The only node loses its session, its thread goes on for a while: the retry starts right after it has ended."""

    @every("1h", name="job", retries=1)
    def body(run: Run) -> None:
        if run.attempt == 1:
            cluster.sleep("30s")
            ended.append(cluster.now)

    ended: list[datetime] = []
    cluster = Cluster(body, nodes=1)
    cluster.run("3601s")
    cluster.cut_off(0)
    cluster.run("20s")
    cluster.connect(0)
    cluster.run("20s")
    (second,) = (start for start in cluster.starts if start.attempt == 2)
    assert ended[0] <= second.at <= ended[0] + timedelta(seconds=1)
