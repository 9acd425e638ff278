"""Three members: the one that leads is killed, and another goes on with everything that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, Verdict
from solocron.stores.swap.zookeeper import ZooStore
from solocron.stores.url import parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE
from tests.servers import ZooKeeper
from tests.servers.clusters import ZooCluster
from tests.servers.fixtures import require


@pytest.fixture
def cluster() -> Iterator[ZooCluster]:
    require(ZooKeeper)
    with ZooCluster() as cluster:
        yield cluster


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_death_of_the_leader_costs_no_claim_and_no_session(cluster: ZooCluster) -> None:
    url = cluster.fresh_url()
    with closing(ZooStore(parse(url), lease=timedelta(seconds=6))) as store:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(30)))
        assert len(take(store, "s", everything(limit=10), session="s")) == 10
        leader = cluster.leader(url)
        leader.kill9()
        held = 10
        for _ in patience():
            try:
                held += len(take(store, "s", everything(limit=5), session="s"))
                renewed = verdicts(write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now)))
            except StoreUnavailable:
                continue
            jobs = store.read(All(Kind.JOB))
            if all(one.active for one in jobs) and renewed == {"s": Verdict.APPLIED}:  # type: ignore[union-attr]
                break
        assert [one.fence for one in store.read(All(Kind.JOB))] == [1] * 30  # type: ignore[union-attr]
        assert held <= 30
        leader.restart()
        assert get(store, Kind.SESSION, "s").state == "live"
        assert {check.name: check.level for check in store.checks()}["members"] == "OK"
        _a_member_that_was_behind_shows_what_another_has_committed(cluster, url, store)


def _a_member_that_was_behind_shows_what_another_has_committed(cluster: ZooCluster, url: str, store: ZooStore) -> None:
    """Each client at a member of its own: a read brings its member up to date first."""
    for number, host in enumerate(cluster.hosts.split(",")):
        with closing(ZooStore(parse(url.replace(cluster.hosts, host)))) as other:
            put(other, job(f"of{number}"))
            assert get(store, Kind.JOB, f"of{number}") == job(f"of{number}")
            put(store, job(f"for{number}"))
            assert get(other, Kind.JOB, f"for{number}") == job(f"for{number}")
