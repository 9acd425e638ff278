"""A store that goes back under living nodes: what they notice, what they put back, and when they stop."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from types import SimpleNamespace

import pytest

from solocron import Backoff, Run, Scheduler, every
from solocron.dispatch.carrier import Carriage, Message
from solocron.engine.namespace_gate import NamespaceGate
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.documents.namespace import NAME, Namespace, Openness
from solocron.model.documents.session import Life
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Gate
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Past
from solocron.testing.simulation.kernel import Process

LEASE, BEAT, BARRIER = 15, 5, 10


def living(*jobs: object, nodes: int = 2) -> Cluster:
    """A cluster whose store can be put back, with nodes that have begun."""
    cluster = Cluster(*jobs, nodes=nodes)
    cluster.fleet.database.past = Past(3_600)
    cluster.run("1s")
    return cluster


def state(cluster: Cluster) -> Namespace:
    held, _ = cluster.fleet.database.docs[(Kind.NAMESPACE, NAME)]
    known = namespace.read(held)
    assert known is not None
    return known


def twice(cluster: Cluster) -> list[tuple[str, int]]:
    """Attempts that started more than once."""
    counted = Counter((start.run, start.attempt) for start in cluster.starts)
    return [attempt for attempt, count in counted.items() if count > 1]


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
@pytest.mark.parametrize("failover", [True, False], ids=["failover", "restore"])
def test_what_living_nodes_remember_is_put_back_and_nothing_runs_twice(failover: bool) -> None:
    """Six seconds are lost: a renewal of each node, three claims and their ends."""

    @every("2s", name="job", catch_up="all", overlap="queue-all")
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("60s")
    cluster.fleet.database.go_back(6, failover=failover)
    cluster.run("60s")
    assert twice(cluster) == []
    assert cluster.events["put back"] > 0
    assert cluster.events["namespace open"] > 0
    assert state(cluster).openness is Openness.OPEN
    cluster.assert_ran("job")
    slots = [start.slot for start in cluster.starts]
    assert len(slots) == len(set(slots)) >= 50


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_nothing_is_claimed_until_the_check_is_over() -> None:
    @every("1s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("30s")
    cluster.fleet.database.go_back(2, failover=True)
    back = cluster.now
    cluster.run(f"{BEAT + BARRIER + 3}s")
    later = [start.at for start in cluster.starts if start.at > back]
    assert BARRIER <= (min(later) - back).total_seconds() <= BEAT + BARRIER + 1


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "quiet"])
def test_a_living_node_does_not_adopt_its_own_old_claim(busy: bool) -> None:
    """The backup was made during a run: its hold comes back although its body has ended, on record or not.

    It was adopted, and the body ran again under the same fence, also with retries=0. A node with nothing else to do
    held it until it drained.
    """

    @every("1h", name="slow")
    def slow(run: Run) -> None:
        cluster.sleep("4s")

    @every("2s", name="often")
    def often(run: Run) -> None:
        pass

    cluster = living(slow, *([often] if busy else []), nodes=1)
    cluster.run("1h")
    assert [start.job for start in cluster.starts].count("slow") == 1
    cluster.run("10s")
    cluster.fleet.database.go_back(9, failover=False)
    cluster.run("60s")
    assert twice(cluster) == []
    assert [start.job for start in cluster.starts].count("slow") == 1
    assert not cluster.job("slow").active
    assert [(run.attempt, run.status) for run in cluster.runs("slow")] == [(1, "succeeded")]


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_a_quiet_node_ends_a_hold_that_came_back_within_a_lease_and_a_beat() -> None:
    """The node has ended nothing since, so that nothing made it forget that the attempt had only just ended here."""

    @every("1h", name="slow")
    def slow(run: Run) -> None:
        cluster.sleep("4s")

    cluster = living(slow, nodes=1)
    cluster.run("1h")
    cluster.run("45s")
    assert not cluster.job("slow").active
    cluster.fleet.database.go_back(43, failover=False)
    assert cluster.job("slow").active
    cluster.run(f"{LEASE + BEAT + 1}s")
    assert not cluster.job("slow").active
    assert [(run.attempt, run.status) for run in cluster.runs("slow")] == [(1, "lost")]
    assert twice(cluster) == []


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_node_that_drains_right_after_a_loss_leaves_its_session_to_the_others() -> None:
    """An operator restores a backup and restarts the nodes: the one that remembers a run has not noticed yet.

    It closed its session, so that nothing told the other node that something was missing, and the run came again.
    """

    @every("1h", name="slow")
    def slow(run: Run) -> None:
        pass

    cluster = living(slow)
    cluster.run("1h")
    (start,) = cluster.starts
    number = int(start.node.removeprefix("n").partition(".")[0])
    cluster.run("1s")
    cluster.fleet.database.go_back(6, failover=False)
    cluster.stop(number)
    cluster.run("2m")
    assert len(cluster.starts) == 1
    assert [run.status for run in cluster.runs("slow")] == ["lost"]
    assert state(cluster).openness is Openness.OPEN


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_a_node_that_drains_in_a_store_as_it_has_checked_it_closes_its_session() -> None:
    @every("1s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("30s")
    cluster.fleet.database.go_back(6, failover=False)
    cluster.run(f"{BEAT + BARRIER + 3}s")
    cluster.stop(0)
    cluster.run("2s")
    assert [session.node[:2] for session in cluster.sessions()] == ["n1"]


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_copy_of_a_message_right_after_a_loss_starts_no_second_body() -> None:
    """The store shows the hold of this very worker again, which has ended the run for longer than a lease."""

    @every("1h", name="slow", run_in="queue")
    def slow(run: Run) -> None:
        cluster.sleep("4s")

    published: list[Message] = []

    class Queued(Cluster):
        def _declare(self, scheduler: Scheduler, process: Process) -> None:
            super()._declare(scheduler, process)
            queue = SimpleNamespace(follows=True, publish=published.append)
            core_of(scheduler).carriers["queue"] = Carriage(name="queue", carrier=queue, pickup=60_000_000)

    def deliver() -> None:
        worker.process.spawn(lambda: worker.scheduler._carry_out(published[0], None), "message")

    cluster = Queued(slow, nodes=1)
    cluster.fleet.database.past = Past(3_600)
    worker = cluster.fleet.join("w0", declare=True)
    cluster.run("1h")
    cluster.run("1s")
    deliver()
    cluster.run("22s")
    assert len(cluster.starts) == 1
    assert not cluster.job("slow").active
    cluster.fleet.database.go_back(20, failover=False)
    assert cluster.job("slow").active
    deliver()
    cluster.run("2m")
    assert len(cluster.starts) == 1
    assert [run.status for run in cluster.runs("slow")] == ["succeeded"]


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_loss_beyond_memory_stops_the_fleet_until_somebody_says_so() -> None:
    @every("10s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("5m")
    before = len(cluster.starts)
    cluster.fleet.database.go_back(3 * LEASE, failover=True)
    cluster.run("2m")
    assert len(cluster.starts) == before
    assert state(cluster).openness is Openness.CLOSED
    operator = cluster.member(0)
    moved: list[int] = []
    operator.process.spawn(lambda: moved.append(operator.scheduler.open().restored()), "restored")
    cluster.run(f"{BEAT + 11}s")
    assert moved == [1]
    assert len(cluster.starts) > before
    assert twice(cluster) == []


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_closed_namespace_is_closed_again_if_the_store_goes_back_before_the_closing() -> None:
    """The second loss is short, and the nodes remember it. The first one is still beyond what they remember.

    The nodes began a check, opened after it, and ran attempts again that had started before the first loss.
    """

    @every("10s", name="job", catch_up="all", overlap="queue-all", retries=1)
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("5m")
    for number in (0, 1):  # what is left has no session of theirs that shows how much is lost
        cluster.stop(number)
    cluster.run("20s")
    for number in (2, 3):
        cluster.start(number, body)
    cluster.run("41s")
    before = len(cluster.starts)
    cluster.fleet.database.go_back(50, failover=False)
    back = cluster.now
    cluster.run(f"{BEAT + 1}s")
    assert state(cluster).openness is Openness.CLOSED
    cluster.fleet.database.go_back((cluster.now - back).total_seconds() + 0.1, failover=False)
    assert state(cluster).openness is Openness.OPEN
    cluster.run("2m")
    assert state(cluster).openness is Openness.CLOSED
    assert len(cluster.starts) == before
    assert twice(cluster) == []


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_of_a_node_that_died_with_the_server_a_slot_without_retries_is_written_off() -> None:
    """Its claim is lost, and no node remembers it: what was due may have run."""

    @every("10s", name="job", catch_up="all")
    def body(run: Run) -> None:
        cluster.sleep("3s")

    cluster = living(body, nodes=2)
    cluster.run("60s")
    last = cluster.starts[-1]
    number = next(number for number in (0, 1) if cluster.process(number).name == last.node)
    cluster.kill(number)
    cluster.fleet.database.go_back(2.5, failover=True)
    cluster.run("90s")
    assert twice(cluster) == []
    (written_off,) = [run for run in cluster.runs("job") if run.slot == last.slot]
    assert (written_off.status, written_off.reason) == ("lost", "the store went back")


def test_jobs_that_code_declares_are_declared_again() -> None:
    @every("10s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=0)
    cluster.fleet.database.past = Past(3_600)
    cluster.start(0)
    cluster.run("2s")
    assert "job" in cluster.fleet.database.jobs
    cluster.fleet.database.go_back(2, failover=True)
    assert "job" not in cluster.fleet.database.jobs
    cluster.run("60s")
    assert len(cluster.starts) >= 3


def test_a_failover_without_loss_costs_the_barrier_and_nothing_else() -> None:
    @every("2s", name="job", catch_up="all", overlap="queue-all")
    def body(run: Run) -> None:
        pass

    cluster = living(body)
    cluster.run("30s")
    cluster.fleet.database.go_back(0, failover=True)
    cluster.run("40s")
    assert twice(cluster) == []
    assert {run.status for run in cluster.runs("job")} <= {"succeeded", "running"}
    assert cluster.events["session lost"] == 0


def lose_session(cluster: Cluster, number: int) -> None:
    """Let a node lose its session to the others, and begin the next one."""
    cluster.cut_off(number)
    cluster.run(f"{3 * LEASE}s")
    cluster.connect(number)
    cluster.run(f"{2 * LEASE}s")


def test_a_session_that_another_node_pruned_is_no_sign() -> None:
    """Each process has its own `keep`: what one node has removed, another one misses too early.

    The node with the longer one took its former session for lost and closed the namespace. The whole fleet stood still
    until a person called `solocron restored`.
    """

    @every("1m", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=0)
    cluster.start(0, keep="30d")
    cluster.start(1, keep="10m")
    cluster.run("1m")
    lose_session(cluster, 0)
    (former,) = (session.name for session in cluster.sessions(Life.SWEPT))
    cluster.run("13m")
    assert (Kind.SESSION, former) not in cluster.fleet.database.docs, "the other node has removed it"
    lose_session(cluster, 0)
    assert len(cluster.sessions()) == 2
    assert state(cluster).openness is Openness.OPEN
    assert cluster.events["store went back"] == cluster.events["namespace closed"] == 0


def test_a_session_that_is_gone_is_a_sign_although_older_ones_were_pruned() -> None:
    """The mark of what was pruned goes back with the store, and a session that began after it is missing."""

    @every("1m", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=0, keep="10m")
    cluster.fleet.database.past = Past(3_600)
    cluster.start(0)
    cluster.start(1)
    cluster.run("30s")
    lose_session(cluster, 0)
    cluster.run("13m")
    assert state(cluster).pruned > 0
    lose_session(cluster, 0)
    own = {session.name for session in cluster.sessions() if session.node == cluster.process(0).name}
    cluster.cut_off(0)
    cluster.run(f"{3 * LEASE}s")  # it is buried
    cluster.fleet.database.go_back(6 * LEASE, failover=False)
    assert not own & {session.name for session in cluster.sessions()}, "not even its beginning is left"
    cluster.kill(1)
    cluster.connect(0)
    cluster.run(f"{3 * LEASE}s")
    assert cluster.events["store went back"] + cluster.events["namespace closed"] > 0


@pytest.mark.parametrize("kind", [Kind.LOCK, Kind.KEY, Kind.STEP])
def test_locks_keys_and_steps_are_put_back(kind: Kind) -> None:
    """Their documents are lost with the rest; the run that made them lives, and its next attempt finds them."""
    seen: list[object] = []

    @every("30s", name="job", retries=1)
    def body(run: Run) -> None:
        if kind is Kind.STEP:
            seen.append(run.step("charge").call(lambda: run.attempt))
            cluster.sleep("17s")
        elif kind is Kind.KEY:
            with run.once("charge") as claim:
                seen.append(bool(claim))
            cluster.sleep("17s")
        else:
            with cluster.member(0).scheduler.lock("door", keep_alive=True) as held:
                cluster.sleep("17s")
                held.check()
                seen.append("held")
        if run.attempt == 1:
            raise ValueError("once more")

    cluster = living(body, nodes=1)
    cluster.run("30s")
    assert len(cluster.starts) == 1
    cluster.fleet.database.go_back(2, failover=True)
    assert not kept(cluster, kind), "it is lost"
    cluster.run("16s")
    assert kept(cluster, kind), "it is put back"
    cluster.run("25s")
    assert seen == {Kind.STEP: [1, 1], Kind.KEY: [True, False], Kind.LOCK: ["held", "held"]}[kind]
    assert twice(cluster) == []


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
@pytest.mark.parametrize(("kind", "attempt"), [(Kind.STEP, 1), (Kind.STEP, 2), (Kind.KEY, 1)])
def test_a_body_that_ends_its_work_before_the_loss_is_noticed_is_not_refused(kind: Kind, attempt: int) -> None:
    """The store lacks what the attempt has entered, or has what an earlier one did.

    A refusal writes nothing, so no commit has tested the gate. The body was told that another node had taken over, and
    the next attempt did the work again.
    """
    worked: list[int] = []

    def work(run: Run) -> None:
        worked.append(run.attempt)
        if run.attempt < attempt:
            raise ValueError("once more")
        if run.attempt == attempt:
            cluster.fleet.database.go_back(2, failover=True)
            cluster.sleep("100ms")

    @every("10m", name="job", retries=2, backoff=Backoff(first="10s"))
    def body(run: Run) -> None:
        if kind is Kind.STEP:
            run.step("charge").call(work, run)
        else:
            with run.once("charge", on_uncertain="repeat") as claim:
                if claim:
                    work(run)

    cluster = living(body, nodes=1)
    cluster.run("12m")
    assert worked == list(range(1, attempt + 1))
    assert str(cluster.runs("job")[-1].status) == "succeeded"
    assert cluster.events["store went back"] == 1


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
@pytest.mark.parametrize("kind", [Kind.LOCK, Kind.KEY])
@pytest.mark.parametrize("back", [2.0, 12.0], ids=["grant lost", "release lost"])
def test_what_a_living_process_gave_up_around_a_loss_is_not_held_for_ever(kind: Kind, back: float) -> None:
    """The store lacks the grant and declines the release, or has forgotten the release.

    The node put the grant back, or left it as it found it, and its session lives on: nothing would ever free it.
    """

    @every("30s", name="job")
    def body(run: Run) -> None:
        scheduler = cluster.member(0).scheduler
        if kind is Kind.LOCK:
            with scheduler.lock("door", keep_alive=True):
                away()
        else:
            with suppress(ValueError), scheduler.once("door"):
                away()
                raise ValueError("not done")
        if back > 10:
            cluster.sleep("6s")
            cluster.fleet.database.go_back(9, failover=True)

    def away() -> None:
        if back < 10:
            cluster.fleet.database.go_back(back, failover=True)
        else:
            cluster.sleep("6s")

    cluster = living(body, nodes=1)
    cluster.run("85s")
    assert cluster.events["store went back"] >= 1
    assert holders(cluster, kind) == []


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
@pytest.mark.parametrize("kind", [Kind.LOCK, Kind.KEY])
def test_what_is_given_up_while_the_store_is_away_is_released_when_it_is_back(kind: Kind) -> None:
    """Half a lease without the store: the session survives, and so would a lock that nothing releases again."""

    @every("10m", name="job")
    def body(run: Run) -> None:
        scheduler = cluster.member(0).scheduler
        if kind is Kind.LOCK:
            with scheduler.lock("door", keep_alive=True):
                cluster.cut_off(0)
        else:
            with suppress(ValueError), scheduler.once("door"):
                cluster.cut_off(0)
                raise ValueError("not done")

    cluster = Cluster(body, nodes=1, lease="2m")
    cluster.run("10m")
    cluster.run("1s")
    (session,) = cluster.sessions()
    cluster.run("70s")
    assert holders(cluster, kind) == [session.name], "the caller has given up long ago"
    cluster.connect(0)
    cluster.run("1m")
    assert [one.name for one in cluster.sessions()] == [session.name], "the session was kept"
    assert holders(cluster, kind) == []


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_step_whose_reply_comes_after_the_check_is_saved_again() -> None:
    """The save is lost between its commit and its reply, and the node checks before it knows of it.

    Nothing put the result back in that check, or later.
    """
    worked: list[int] = []
    real = NamespaceGate.wrote
    delayed: list[str] = []

    def late(self: NamespaceGate, kind: Kind, name: str, doc: object, gate: Gate | None) -> bool:
        if worked and not delayed:
            delayed.append(name)
            cluster.fleet.database.go_back(2, failover=True)
            cluster.sleep("20s")
        return real(self, kind, name, doc, gate)

    @every("10m", name="job", retries=1)
    def body(run: Run) -> None:
        run.step("charge").call(lambda: worked.append(run.attempt))
        if run.attempt == 1:
            raise ValueError("once more")

    cluster = living(body, nodes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NamespaceGate, "wrote", late)
        cluster.run("12m")
    assert worked == [1]
    assert delayed
    assert str(cluster.runs("job")[-1].status) == "succeeded"


def holders(cluster: Cluster, kind: Kind) -> list[str]:
    """Sessions that hold a lock or an open key."""
    docs = cluster.fleet.database.docs.items()
    return [str(held.session) for (of, _), (held, _) in docs if of is kind and getattr(held, "session", None)]


def kept(cluster: Cluster, kind: Kind) -> list[str]:
    return [name for of, name in cluster.fleet.database.docs if of is kind]


def test_nodes_that_begin_at_once_wait_for_each_other_a_moment_and_not_a_beat() -> None:
    """Each waits for a renewal of the others; the first renewal came a beat after the begin: nothing ran for 5 s."""

    @every("1s", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=5)
    cluster.run("3s")
    assert cluster.events["newcomer"] > 0
    assert cluster.starts
