"""Three members: the one that leads is killed, and another goes on with everything that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.session import begin, renew
from solocron.stores.contract import All, Verdict
from solocron.stores.swap.etcd import EtcdStore
from solocron.stores.url import parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE
from tests.servers import Etcd
from tests.servers.base import free_port
from tests.servers.fixtures import require


class Member(Etcd):
    """One of several."""

    def __init__(self, number: int, peers: list[int]) -> None:
        cluster = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(peers))
        times = {"heartbeat-interval": "50", "election-timeout": "500"}
        super().__init__(settings={"name": f"m{number}", "initial-cluster": cluster, **times})
        self._peer = peers[number]
        self.joined = False

    def prepare(self) -> None:
        self.peer_port = self._peer

    def ask(self) -> None:
        """Count as ready at once when first started: none answers before a majority is there."""
        if self.joined:
            super().ask()

    @property
    def leads(self) -> bool:
        status = self.call("/v3/maintenance/status", {})
        return bool(status.get("leader") == status["header"]["member_id"])


@pytest.fixture
def members() -> Iterator[list[Member]]:
    require(Etcd)
    peers = [free_port() for _ in range(3)]
    members = [Member(number, peers) for number in range(3)]
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(member)
        for member in members:
            member.joined = True
            for _ in patience():
                with suppress(OSError):
                    member.ask()
                    break
        yield members


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_death_of_the_leader_costs_no_claim_and_no_session(members: list[Member]) -> None:
    hosts = ",".join(f"127.0.0.1:{member.port}" for member in members)
    with closing(EtcdStore(parse(f"etcd://{hosts}/jobs"), lease=timedelta(seconds=6))) as store:
        write(store, Kind.SESSION, "s", lambda doc, now: begin(doc, MINE, now=now))
        put(store, *(job(f"j{i:02}", due_at=store.clock() - SECOND) for i in range(30)))
        assert len(take(store, "s", everything(limit=10), session="s")) == 10
        leader = next(member for member in members if member.leads)
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
