"""Three servers, three copies: the one that leads the stream is killed, and another goes on with all that was kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, Tier, Verdict
from solocron.stores.swap.nats import NatsStore
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.url import parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE
from tests.servers import Nats
from tests.servers.clusters import NatsCluster
from tests.servers.fixtures import require


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    require(Nats)
    with NatsCluster() as cluster:
        yield cluster


def opened(url: str) -> NatsStore:
    """A cluster needs some seconds to choose who keeps its streams."""
    store = NatsStore(parse(url), lease=timedelta(seconds=6))
    for _ in patience():
        with suppress(StoreError):
            store.open()
            break
    return store


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_death_of_the_leader_costs_no_claim_and_no_session(cluster: NatsCluster) -> None:
    url = cluster.fresh_url()
    with closing(opened(url)) as store:
        assert store.capabilities.tier is Tier.B
        assert {check.name: check.level for check in store.checks()}["stream"] == "OK"
        with closing(opened(url.partition("&")[0])) as blind:
            assert blind.capabilities.tier is Tier.C
            assert "cannot be seen" in blind.capabilities.why
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(30)))
        assert len(take(store, "s", everything(limit=10), session="s")) == 10
        keys = store._keys
        assert isinstance(keys, NatsKeys)
        cluster.leader(url).kill9()
        for _ in patience():
            with suppress(StoreUnavailable):
                take(store, "s", everything(limit=5), session="s")
                renewed = verdicts(write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now)))
                jobs = store.read(All(Kind.JOB))
                if all(one.active for one in jobs) and renewed == {"s": Verdict.APPLIED}:  # type: ignore[union-attr]
                    break
        assert [one.fence for one in store.read(All(Kind.JOB))] == [1] * 30  # type: ignore[union-attr]
        assert get(store, Kind.SESSION, "s").state == "live"
        assert keys._stream.lost == ""
