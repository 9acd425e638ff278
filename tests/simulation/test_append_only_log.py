"""What runs is in the document, what has ended in the log: on whole nodes, through ends, takeovers and duplicates."""

from __future__ import annotations

import json

import pytest

from solocron import Run, every
from solocron.model.documents.run import Record, Status
from solocron.model.documents.session import Life
from solocron.model.transitions.claimant import record_of
from solocron.testing.cluster import Cluster


def _plant(cluster: Cluster, job: str) -> Record:
    """Put a record of the attempt that runs into the log, past every client."""
    doc = cluster.job(job)
    (hold,) = doc.active
    now = cluster.fleet.database.clock()
    first = record_of(doc, hold, Status.CANCELLED, now=now, reason="planted", finished_at=now)
    cluster.fleet.database.log[hold.run, hold.attempt] = first
    return first


def test_a_claim_writes_no_record_and_its_end_one() -> None:
    @every("1m", name="job")
    def body(run: Run) -> None:
        cluster.sleep("10s")

    cluster = Cluster(body, nodes=2)
    cluster.run("65s")
    assert len(cluster.job("job").active) == 1
    assert cluster.fleet.database.log == {}
    (running,) = cluster.runs("job")
    assert running.status == "running"
    cluster.run("20s")
    assert [record.status for record in cluster.fleet.database.log.values()] == [Status.SUCCEEDED]
    assert [view.status for view in cluster.runs("job")] == ["succeeded"]


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_an_end_that_is_on_record_already_ends_its_hold() -> None:
    """Else the end is repeated forever, and after the node's death the takeover is: the session is never swept."""

    @every("1h", name="job", overlap="skip")
    def body(run: Run) -> None:
        cluster.sleep("10s" if run.slot.hour == 1 else "1h")

    cluster = Cluster(body, nodes=2)
    cluster.run("1h2s")
    first = _plant(cluster, "job")
    cluster.run("60s")
    assert cluster.job("job").active == ()
    assert cluster.events["recorded twice"] == 1
    cluster.run("59m10s")
    second = _plant(cluster, "job")
    name = cluster.job("job").active[0].node
    cluster.kill(next(number for number in (0, 1) if cluster.process(number).name == name))
    cluster.run("60s")
    assert cluster.job("job").active == ()
    assert cluster.sessions(Life.DEAD) == []
    assert cluster.events["recorded twice"] == 2
    assert list(cluster.fleet.database.log.values()) == [first, second]


def test_the_progress_of_a_dead_node_is_on_record() -> None:
    """It rode in the session with the last renewal; the sweeper takes it from there."""

    @every("1h", name="job")
    def body(run: Run) -> None:
        run.progress(3, 9, "third")
        cluster.sleep("1h")

    cluster = Cluster(body, nodes=2)
    cluster.run("1h20s")
    (running,) = cluster.runs("job")
    assert running.progress == {"done": 3, "total": 9, "note": "third"}
    before = sum(cluster.member(number).store.statements["commit job"] for number in (0, 1))
    cluster.run("60s")
    assert sum(cluster.member(number).store.statements["commit job"] for number in (0, 1)) == before
    cluster.kill(next(number for number in (0, 1) if cluster.process(number).name == running.node))
    cluster.run("60s")
    (lost,) = cluster.fleet.database.log.values()
    assert lost.status is Status.LOST
    assert json.loads(lost.progress or "{}") == {"done": 3, "total": 9, "note": "third"}
