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
from solocron.stores.swap.zookeeper import ZooStore
from solocron.stores.url import parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, take, verdicts, write
from solocron.testing.faults.victim import MINE
from tests.servers import ZooKeeper
from tests.servers.base import free_port
from tests.servers.fixtures import require


class Member(ZooKeeper):
    """One of several."""

    def __init__(self, number: int, ports: list[tuple[int, int]]) -> None:
        members = {f"server.{i}": f"127.0.0.1:{a}:{b}" for i, (a, b) in enumerate(ports, 1)}
        super().__init__(settings={"initLimit": "20", "syncLimit": "4", "tickTime": "200", **members})
        self._number = number
        self.joined = False

    def prepare(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        (data / "myid").write_text(f"{self._number}\n")

    def ask(self) -> None:
        """Count as ready at once when first started: none serves before a majority is there."""
        if self.joined:
            super().ask()

    @property
    def leads(self) -> bool:
        return "Mode: leader" in self.told()


@pytest.fixture
def members() -> Iterator[list[Member]]:
    require(ZooKeeper)
    ports = [(free_port(), free_port()) for _ in range(3)]
    members = [Member(number, ports) for number in (1, 2, 3)]
    with ExitStack() as stack:
        for member in members:
            stack.enter_context(member)
        for member in members:
            member.joined = True
            for _ in patience():
                with suppress(OSError, AssertionError):
                    member.ask()
                    break
        yield members


def url_of(members: list[Member]) -> str:
    return f"zookeeper://{','.join(f'127.0.0.1:{member.port}' for member in members)}/jobs"


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_death_of_the_leader_costs_no_claim_and_no_session(members: list[Member]) -> None:
    with closing(ZooStore(parse(url_of(members)), lease=timedelta(seconds=6))) as store:
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
        _a_member_that_was_behind_shows_what_another_has_committed(members, store)


def _a_member_that_was_behind_shows_what_another_has_committed(members: list[Member], store: ZooStore) -> None:
    """Each client at a member of its own: a read brings its member up to date first."""
    for number, member in enumerate(members):
        with closing(ZooStore(parse(url_of([member])))) as other:
            put(other, job(f"of{number}"))
            assert get(store, Kind.JOB, f"of{number}") == job(f"of{number}")
            put(store, job(f"for{number}"))
            assert get(other, Kind.JOB, f"for{number}") == job(f"for{number}")
